//! Event loop: one thread waits for frames, requests, notifications and signals of a group of routers, and handles
//! them.

use std::os::fd::AsRawFd;
use std::thread;

use netio::wait::{be_punctual, Interest, Signals, Waiter};
use qos_core::{Duration, Time};

use crate::gathering::Gathering;
use crate::group::Group;
use crate::wakeup::Wakeup;

/// Interval at which the control sockets and signals are checked while frames keep the thread busy.
const CONTROL_EVERY_NS: u64 = 1_000_000;

/// Routers with work to do.
#[derive(Debug, Clone, Copy)]
enum Token {
    Ring(usize),
    Kernel,
    Links,
    Sla(usize),
    Signal,
    Listener(usize),
    Connection(usize, usize),
}

/// Serves a group.
pub struct Server<'a> {
    group: Group,
    signals: &'a Signals,
    waiter: Waiter<Token>,
    wakeup: Wakeup,
    gathering: Gathering,
    stopping: bool,
}

impl<'a> Server<'a> {
    /// Creates the event loop of these routers, which serves them until a signal arrives.
    pub fn new(group: Group, signals: &'a Signals, wakeup: Wakeup) -> Self {
        let gathering = Gathering::new(group.now());
        Self { group, signals, waiter: Waiter::default(), wakeup, gathering, stopping: false }
    }

    /// Returns the name of its thread: that of its first router.
    pub fn name(&self) -> String {
        self.group.members.first().map_or_else(String::new, |member| member.service.name.clone())
    }

    /// Serves until the end.
    pub fn serve(mut self) {
        be_punctual();
        let mut looked = self.group.now();
        while !self.stopping {
            let began = self.group.now();
            self.gathering.round(began);
            let ahead = self.wakeup.at(began);
            self.group.round(Duration(ahead));
            let timeout = self.idle_for();
            let now = self.group.now();
            if timeout == Some(0) && now.since(looked).0 < CONTROL_EVERY_NS {
                continue;
            }
            looked = now;
            let timeout = self.set_up(now, timeout);
            self.waiter.wait(timeout);
            if let Some(asked) = timeout.filter(|&ns| ns > 0) {
                if self.waiter.ready().next().is_none() {
                    let slept = self.group.now().since(now).0;
                    self.wakeup.learn(slept.saturating_sub(asked));
                }
            }
            self.attend();
        }
        // In parallel, because the kernel takes long for each.
        thread::scope(|scope| {
            for member in &mut self.group.members {
                scope.spawn(|| member.service.plane.close());
            }
        });
    }

    /// Returns the time to sleep: 0 to continue at once. Waits actively for a departure that is near. Under load it
    /// sleeps here, as long as there is nothing to look for.
    fn idle_for(&mut self) -> Option<u64> {
        let group = &self.group;
        if group.is_ready() {
            return Some(0);
        }
        let from = group.now();
        let lead = self.wakeup.at(from);
        let rest = self.gathering.rest(from);
        if rest > 0 {
            let left = group.departure().map_or(rest, |departure| departure.since(from).0.saturating_sub(lead));
            let asked = rest.min(left);
            if asked > 0 {
                thread::sleep(std::time::Duration::from_nanos(asked));
                self.wakeup.learn(group.now().since(from).0.saturating_sub(asked));
                return Some(0);
            }
        }
        let deadline = group.deadline()?;
        let left = deadline.since(from).0;
        if left > lead {
            return Some(left - lead);
        }
        while group.now() < deadline && !group.is_ready() {
            std::hint::spin_loop();
        }
        self.wakeup.spent(group.now().since(from).0);
        Some(0)
    }

    /// Collects the events to wait for from now on. Returns the time limit: at most until a resting control socket must
    /// be read again.
    fn set_up(&mut self, now: Time, mut timeout_ns: Option<u64>) -> Option<u64> {
        let waiter = &mut self.waiter;
        waiter.clear();
        for (number, member) in self.group.members.iter().enumerate() {
            if member.is_running() {
                let plane = &member.service.plane;
                let rings = plane.descriptors().map(|ring| (ring, Token::Ring(number)));
                let sla = plane.sla_descriptors().map(|socket| (socket, Token::Sla(number)));
                let kernel = plane.kernel_descriptor().map(|socket| (socket, Token::Kernel));
                let links = plane.link_news_descriptor().map(|socket| (socket, Token::Links));
                for (descriptor, token) in rings.chain(sla).chain(kernel).chain(links) {
                    waiter.add(descriptor, Interest::READ, token);
                }
            }
            let Some(control) = &member.control else { continue };
            match control.accepts_from() {
                Some(from) if from > now => {
                    let rest = from.since(now).0;
                    timeout_ns = Some(timeout_ns.map_or(rest, |ns| ns.min(rest)));
                }
                Some(_) => waiter.add(control.as_raw_fd(), Interest::READ, Token::Listener(number)),
                None => {}
            }
            for (index, connection) in control.connections.iter().enumerate() {
                waiter.add(connection.as_raw_fd(), connection.interest(), Token::Connection(number, index));
            }
        }
        waiter.add(self.signals.as_raw_fd(), Interest::READ, Token::Signal);
        timeout_ns
    }

    /// Handles the events of the wait, except frames, which the next round takes.
    fn attend(&mut self) {
        let mut over = Vec::new();
        let found: Vec<_> = self.waiter.ready().collect();
        if found.iter().any(|(token, _)| matches!(token, Token::Connection(..))) {
            // Frames that arrived before a request are processed before it is answered.
            self.group.round(Duration::ZERO);
        }
        for (token, broken) in found {
            match token {
                Token::Ring(number) if broken => {
                    self.group.with(number, |member| member.service.plane.take_errors());
                }
                // The next round takes the frames.
                Token::Ring(_) => {}
                // Done below, with or without messages.
                Token::Kernel => {}
                Token::Links => self.group.follow_links(),
                // An error on such a socket is cleared by reading it.
                Token::Sla(number) => {
                    self.group.with(number, |member| member.service.plane.wake_sla());
                }
                Token::Signal => self.stopping = true,
                Token::Listener(number) => self.group.accept(number),
                Token::Connection(number, index) => {
                    if !self.group.answer(number, index) {
                        over.push((number, index));
                    }
                }
            }
        }
        // Netlink messages come before the frames, so that frames are forwarded by the state of the kernel at their
        // arrival.
        self.group.follow_kernel_changes();
        for (number, index) in over.into_iter().rev() {
            self.group.hang_up(number, index);
        }
        self.stopping |= self.group.end_stopped();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    use qos_core::PortsConfig;

    use super::*;
    use crate::control::Control;
    use crate::daemon_clock::Clock;
    use crate::member::Member;
    use crate::plane::Dataplane;
    use crate::requests::Service;

    /// Says to this program that it may use up its descriptors: it runs one test only.
    const ALONE: &str = "QOS_ROUTER_TEST_ALONE";

    /// Leaves this process room for no further descriptor, and returns the ones that took it up.
    fn use_up_descriptors() -> Vec<File> {
        // SAFETY: the pointer is to a valid limit.
        let done = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &libc::rlimit { rlim_cur: 64, rlim_max: 64 }) };
        assert_eq!(done, 0);
        std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
    }

    /// Returns whether the listener is among what was found.
    fn listener_is_ready(server: &Server) -> bool {
        server.waiter.ready().any(|(token, _)| matches!(token, Token::Listener(_)))
    }

    #[test]
    fn accept_pauses_without_free_descriptors() {
        if std::env::var_os(ALONE).is_none() {
            let name = "serve::tests::accept_pauses_without_free_descriptors";
            let mut again = Command::new(std::env::current_exe().unwrap());
            let done = again.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
            let output = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && output.contains("1 passed"), "{output}");
            return;
        }
        let path = std::env::temp_dir().join(format!("qos-router-rests-{}.sock", std::process::id()));
        let clock = Clock::new();
        let plane = Dataplane::in_memory(&PortsConfig::from_json(r#"{"ports": {}}"#).unwrap(), clock.now(), clock);
        let member = Member::new(Service::new("R".to_owned(), plane), Some(Control::listen(&path).unwrap()), None);
        let signals = Signals::new().unwrap();
        let group = Group::new(clock, vec![member], vec![vec![]], true);
        let mut server = Server::new(group, &signals, Wakeup::new(0, clock.now()));

        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"{\"op\": \"hello\"}\n").unwrap();
        let taken = use_up_descriptors();
        assert_eq!(server.set_up(clock.now(), None), None);
        server.waiter.wait(Some(0));
        assert!(listener_is_ready(&server));
        server.attend();
        let control = |server: &Server| -> (Option<Time>, usize) {
            let control = server.group.members[0].control.as_ref().unwrap();
            (control.accepts_from(), control.connections.len())
        };
        let (Some(from), 0) = control(&server) else { panic!("{:?}", control(&server)) };

        // The client waits still, and is not looked at: neither before its time nor later than that.
        let before = Time(from.0 - 1_000);
        for (asked, expected) in [(None, 1_000), (Some(5_000), 1_000), (Some(10), 10)] {
            assert_eq!(server.set_up(before, asked), Some(expected));
        }
        server.waiter.wait(Some(0));
        assert!(!listener_is_ready(&server));

        drop(taken);
        assert_eq!(server.set_up(from, None), None);
        server.waiter.wait(Some(0));
        assert!(listener_is_ready(&server));
        server.attend();
        assert_eq!(control(&server), (Some(from), 1));
        assert!(server.group.answer(0, 0));
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).unwrap();
        assert!(answer.contains("\"ok\":true"), "{answer}");
        drop(server);
        assert!(!path.exists());
    }
}
