//! Routers that are joined by links in memory. One thread runs them in the order of event time, like the simulator, but
//! by the real clock.
//!
//! Frames on such a link reach the engine of the other router before any later decision there, however late the thread
//! is. So event time crosses the link to the nanosecond, and lateness does not.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use qos_core::{Duration, Time};

use crate::daemon_clock::Clock;
use crate::member::Member;
use crate::requests::{refusal, Refusal};

/// The other end of each port's link in memory, by router and port: router and port there.
pub type Links = Vec<Vec<Option<(usize, usize)>>>;

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// Group of routers joined by links; a router without such links is a group by itself.
pub struct Group {
    clock: Clock,
    /// The routers, by number.
    pub members: Vec<Member>,
    links: Links,
    /// There are such links.
    joined: bool,
    /// Time at which each router next has work to do; stored separately, because it is read at every event.
    due: Vec<u64>,
    /// Whether frames have arrived at a router since its last step.
    touched: Vec<bool>,
    /// Time up to which all frames have been taken and all decisions made.
    horizon: Time,
    /// Whether a panic in a router ends the process, because there is no other router.
    alone: bool,
    /// Frames that have left by ports with a link without another end.
    #[cfg(test)]
    left: Vec<(Time, usize, usize)>,
}

#[cfg(test)]
mod tests;

fn key(due: Option<Time>) -> u64 {
    due.map_or(NEVER, |due| due.0)
}

/// Returns the message of a panic.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason given".to_owned())
}

/// Returns two routers mutably.
fn two(members: &mut [Member], one: usize, other: usize) -> (&mut Member, &mut Member) {
    if one < other {
        let (low, high) = members.split_at_mut(other);
        (&mut low[one], &mut high[0])
    } else {
        let (low, high) = members.split_at_mut(one);
        (&mut high[0], &mut low[other])
    }
}

impl Group {
    /// Creates a group of these routers with their links, on that clock. With `alone` a panic ends the process.
    pub fn new(clock: Clock, members: Vec<Member>, links: Links, alone: bool) -> Self {
        let count = members.len();
        let joined = links.iter().flatten().any(Option::is_some);
        let mut group = Self {
            clock,
            members,
            links,
            joined,
            due: vec![NEVER; count],
            touched: vec![false; count],
            horizon: clock.now(),
            alone,
            #[cfg(test)]
            left: Vec::new(),
        };
        group.set_taps();
        group
    }

    /// Returns the event time now.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the running routers.
    pub fn running(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_running())
    }

    /// Returns whether a frame waits.
    pub fn is_ready(&self) -> bool {
        self.running().any(|member| member.service.plane.is_ready())
    }

    /// Returns the time of the next round, if nothing arrives before.
    pub fn deadline(&self) -> Option<Time> {
        self.running().filter_map(|member| member.service.plane.deadline()).min()
    }

    /// Returns the time of the next event that must not be late.
    pub fn departure(&self) -> Option<Time> {
        self.running().filter_map(|member| member.service.plane.departure()).min()
    }

    /// Runs a function with a running router. After a panic, the router has failed; the others continue.
    pub fn with<T>(&mut self, number: usize, work: impl FnOnce(&mut Member) -> T) -> Option<T> {
        let member = &mut self.members[number];
        if !member.is_running() {
            return None;
        }
        // A router that has panicked is not used again, so its incomplete state is never read.
        match catch_unwind(AssertUnwindSafe(|| work(member))) {
            Ok(done) => Some(done),
            Err(payload) if self.alone => resume_unwind(payload),
            Err(payload) => {
                member.fail(&panic_message(&*payload));
                None
            }
        }
    }

    /// Takes arrived frames, catches up with the clock and sends due frames.
    pub fn round(&mut self, ahead: Duration) {
        let now = self.clock.tick();
        let (clock, mut horizon) = (self.clock, now);
        for number in 0..self.members.len() {
            if let Some((until, some)) = self.with(number, |member| member.service.plane.take(clock, now)) {
                horizon = horizon.min(until);
                self.touched[number] |= some;
            }
        }
        self.horizon = horizon.max(self.horizon);
        if self.joined {
            self.advance_in_order(ahead);
        } else {
            (0..self.members.len()).for_each(|number| self.settle(number, ahead));
        }
        for number in 0..self.members.len() {
            self.with(number, |member| member.service.plane.flush());
        }
    }

    /// Lets a router catch up with the others.
    fn settle(&mut self, number: usize, ahead: Duration) {
        let horizon = self.horizon;
        self.touched[number] = false;
        self.with(number, |member| member.service.plane.step(horizon, ahead));
    }

    /// Lets the routers catch up event by event.
    fn advance_in_order(&mut self, ahead: Duration) {
        for number in 0..self.members.len() {
            let own =
                self.with(number, |member| (member.service.plane.take_own_frames(), member.service.plane.deadline()));
            let (some, due) = own.unwrap_or((false, None));
            self.touched[number] |= some;
            self.due[number] = key(due);
        }
        while let Some((number, &due)) = self.due.iter().enumerate().min_by_key(|(_, due)| **due) {
            if due > self.horizon.0 {
                break;
            }
            let after = self.with(number, |member| {
                member.service.plane.step(Time(due), ahead);
                member.service.plane.deadline()
            });
            self.touched[number] = false;
            // Work that was impossible at its time (a socket's turn) waits for the next round.
            self.due[number] = key(after.flatten().filter(|after| after.0 > due));
            self.transfer_frames(number);
        }
        // Drops set no deadline, but their frames have to be returned.
        for number in 0..self.members.len() {
            if self.touched[number] {
                self.settle(number, ahead);
                self.transfer_frames(number);
            }
        }
    }

    /// Passes frames that have left a router by links in memory to the other ends.
    fn transfer_frames(&mut self, number: usize) {
        if self.members[number].service.plane.has_no_crossing_frames() {
            return;
        }
        let mut crossing = self.members[number].service.plane.take_crossing_frames();
        for frame in crossing.drain(..) {
            let Some((to, port)) = self.links[number][frame.port] else {
                #[cfg(test)]
                self.left.push((frame.time, number, frame.port));
                self.members[number].service.plane.finish_crossing(frame, false);
                continue;
            };
            let (sender, receiver) = two(&mut self.members, number, to);
            let plane = &sender.service.plane;
            let delivered = receiver.is_running() && plane.wire_state(frame.port).up && {
                let arrived = catch_unwind(AssertUnwindSafe(|| {
                    receiver.service.plane.arrive(port, frame.time, plane.crossing_bytes(&frame));
                    receiver.service.plane.deadline()
                }));
                match arrived {
                    Ok(due) => (self.due[to], self.touched[to]) = (key(due), true),
                    Err(payload) => receiver.fail(&panic_message(&*payload)),
                }
                true
            };
            sender.service.plane.finish_crossing(frame, delivered);
        }
        self.members[number].service.plane.store_crossing_frame(crossing);
    }

    /// Updates a router before a request to it.
    pub fn catch_up(&mut self, number: usize) {
        self.settle(number, Duration::ZERO);
        self.transfer_frames(number);
    }

    /// Reads the kernel's messages about the interfaces that stand for links.
    pub fn follow_links(&mut self) {
        let mut changed = false;
        for number in 0..self.members.len() {
            changed |= self.with(number, |member| member.service.plane.process_link_news()) == Some(true);
        }
        if changed {
            self.set_taps();
        }
    }

    /// Enables copies of the frames on links with a capture.
    fn set_taps(&mut self) {
        for number in 0..self.links.len() {
            for port in 0..self.links[number].len() {
                let Some((to, there)) = self.links[number][port] else { continue };
                let captured = |number: usize, port| {
                    let member: &Member = &self.members[number];
                    member.is_running() && member.service.plane.wire_state(port).captured
                };
                let wanted = captured(number, port) || captured(to, there);
                self.with(number, |member| member.service.plane.set_tap(port, wanted));
            }
        }
    }

    /// Reads the messages of the routers' kernels.
    pub fn follow_kernel_changes(&mut self) {
        for number in 0..self.members.len() {
            self.with(number, |member| member.service.plane.follow_kernel());
        }
    }

    /// Accepts a connection to a router's control socket.
    pub fn accept(&mut self, number: usize) {
        let now = self.now();
        if let Some(control) = &mut self.members[number].control {
            control.accept(now);
        }
    }

    /// Answers the requests of a connection. Returns false if the connection is over.
    pub fn answer(&mut self, number: usize, connection: usize) -> bool {
        self.catch_up(number);
        let alone = self.alone;
        let Member { service, control: Some(control), .. } = &mut self.members[number] else { return true };
        let mut failed = None;
        let answer = |line: &[u8]| match catch_unwind(AssertUnwindSafe(|| service.answer(line))) {
            Ok(reply) => reply,
            Err(payload) if alone => resume_unwind(payload),
            Err(payload) => {
                let why = panic_message(&*payload);
                service.failure = Some(why.clone());
                let reply = refusal(&Refusal { code: "internal", message: why.clone() });
                failed = Some(why);
                reply
            }
        };
        let open = control.connections[connection].serve(answer, || refusal(&Refusal::too_long()));
        if let Some(why) = failed {
            self.members[number].fail(&why);
        }
        open
    }

    /// Removes a closed connection.
    pub fn hang_up(&mut self, number: usize, connection: usize) {
        if let Some(control) = &mut self.members[number].control {
            control.connections.remove(connection);
        }
    }

    /// Ends the routers that were requested to stop. Returns whether none is left.
    pub fn end_stopped(&mut self) -> bool {
        for member in &mut self.members {
            if member.service.stopping && member.control.is_some() {
                member.end();
            }
        }
        self.members.iter().all(|member| member.control.is_none())
    }
}
