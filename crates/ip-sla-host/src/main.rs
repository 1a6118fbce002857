//! The command line of `sla`: IP SLA on a host.

use std::io;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ip_sla::config::{Schedule, Start};
use ip_sla::{Config, Nanos, OperationConfig, OperationReport};
use ip_sla_host::{Responder, Sender};
use ipnet::IpNet;
use netio::clock::wall;
use netio::program_end::{end, print_json, Failure};
use netio::socket::Socket;
use netio::wait::{be_punctual, Stop};
use serde::Serialize;

/// IP SLA on a host: runs an operation, or answers those of others. Packets and arithmetic are those of qos-router.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an operation; at the end, or after SIGINT or SIGTERM, print one JSON object with the measurements. Needs raw
    /// sockets (CAP_NET_RAW) for ICMP
    Probe(Probe),
    /// Answer UDP operations until SIGINT or SIGTERM; then print one JSON object with the number of answers
    Respond(Respond),
}

#[derive(Debug, Args)]
struct Probe {
    /// Type of the operation
    #[arg(value_enum)]
    kind: OperationKind,
    /// IPv4 or IPv6 address of the other end; ICMP jitter runs over IPv4 only
    target: IpAddr,
    /// UDP: port on which the responder answers
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Local address, of the same version of IP
    #[arg(long, value_name = "ADDRESS")]
    source: Option<IpAddr>,
    /// UDP: local port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    source_port: Option<u16>,
    /// UDP: do not ask the responder to listen before each run
    #[arg(long)]
    no_control: bool,
    /// Jitter: packets of a run
    #[arg(long, value_name = "N", default_value_t = 10)]
    packets: u32,
    /// Jitter: milliseconds between two packets
    #[arg(long, value_name = "MS", default_value_t = 20)]
    interval: u32,
    /// Seconds between the starts of two runs
    #[arg(long, value_name = "S", default_value_t = 60)]
    frequency: u32,
    /// Milliseconds after which an answer no longer counts
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    timeout: u32,
    /// Round trips of more milliseconds are counted apart
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    threshold: u32,
    /// Bytes of request data. [default: that of the operation]
    #[arg(long, value_name = "BYTES")]
    size: Option<u16>,
    /// Type-of-service byte, of IPv6 the traffic class
    #[arg(long, default_value_t = 0)]
    tos: u8,
    /// Seconds to run. [default: until SIGINT or SIGTERM]
    #[arg(long, value_name = "S", value_parser = seconds)]
    duration: Option<Duration>,
}

#[derive(Debug, Args)]
struct Respond {
    /// A port to answer on without having been asked by a control message; may be given several times
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Prefix of the senders to answer, such as 10.0.0.0/8 or 2001:db8::/32; repeatable. 0.0.0.0/0 and ::/0 are anyone
    #[arg(long, value_name = "PREFIX", required = true)]
    allow: Vec<IpNet>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OperationKind {
    IcmpEcho,
    IcmpJitter,
    UdpEcho,
    UdpJitter,
}

impl From<OperationKind> for ip_sla::Kind {
    fn from(kind: OperationKind) -> Self {
        match kind {
            OperationKind::IcmpEcho => Self::IcmpEcho,
            OperationKind::IcmpJitter => Self::IcmpJitter,
            OperationKind::UdpEcho => Self::UdpEcho,
            OperationKind::UdpJitter => Self::UdpJitter,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|n| *n > 0.0).and_then(|n| Duration::try_from_secs_f64(n).ok());
    number.ok_or_else(|| "expected a number above zero".into())
}

/// The number of the only operation.
const NUMBER: u32 = 1;

impl Probe {
    fn config(&self) -> Result<Config, (String, String)> {
        let operation = OperationConfig {
            kind: self.kind.into(),
            target: self.target,
            target_port: self.port,
            source: self.source,
            source_port: self.source_port,
            control: !self.no_control,
            packets: self.packets,
            interval_ms: self.interval,
            frequency_s: self.frequency,
            timeout_ms: self.timeout,
            threshold_ms: self.threshold,
            request_data_size: self.size,
            tos: self.tos,
            hours: 25,
            buckets: 1,
            bucket_ms: 20,
            schedule: Some(Schedule { life_s: None, start: Start::Now, ageout_s: 0, recurring: false }),
        };
        let config = Config { operations: [(NUMBER, operation)].into(), ..Config::default() };
        config.check()?;
        Ok(config)
    }
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Probe(options) => match options.config() {
            Ok(config) => probe(&config, options.duration),
            Err((path, message)) => {
                let key = path.rsplit('.').next().unwrap_or_default();
                Err(Failure::Usage(format!("{key}: {message}")))
            }
        },
        Command::Respond(options) => respond(&options.port, &options.allow),
    };
    end("sla", result)
}

fn stop() -> io::Result<Stop> {
    be_punctual();
    Stop::on_signals()
}

/// Returns the granularity of waits for a time of the wall clock.
fn until(deadline: Option<Nanos>) -> Option<Nanos> {
    deadline.map(|at| at.saturating_sub(wall()))
}

fn probe(config: &Config, duration: Option<Duration>) -> Result<(), Failure> {
    let mut stop = stop()?;
    let over = duration.map(|duration| wall() + duration.as_nanos() as Nanos);
    let mut sender = Sender::new(config, wall());
    loop {
        sender.step(wall);
        if over.is_some_and(|over| wall() >= over) {
            break;
        }
        let deadline = sender.deadline().into_iter().chain(over).min();
        if stop.wait(sender.descriptors(), until(deadline)) {
            break;
        }
    }
    for error in sender.errors.values() {
        eprintln!("sla: {error}");
    }
    #[derive(Serialize)]
    struct Measured {
        version: &'static str,
        #[serde(flatten)]
        report: OperationReport,
    }
    let report = sender.report(wall()).remove(&NUMBER).expect("an operation without an end stays");
    print_json(&Measured { version: env!("CARGO_PKG_VERSION"), report })
}

fn respond(permanent: &[u16], allowed: &[IpNet]) -> Result<(), Failure> {
    let mut stop = stop()?;
    let open = |kind| Socket::open(kind, None, 0);
    let mut responder = Responder::new();
    responder.configure(permanent, allowed, Responder::open_missing(permanent, None, open)?);
    loop {
        responder.poll(wall());
        if stop.wait(responder.descriptors(), until(responder.deadline())) {
            break;
        }
        for port in responder.ports().collect::<Vec<_>>() {
            while let Some(received) = responder.receive(port) {
                let at = received.stamp;
                if let Err(error) = responder.serve(port.0, received, at, wall, open) {
                    if let Some(line) = responder.complaint(&error, wall()) {
                        eprintln!("sla: {line}");
                    }
                }
            }
        }
    }
    print_json(&responder.protocol().counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Returns the message for an invalid command line.
    fn refusal(words: &str) -> String {
        match Cli::try_parse_from(words.split_whitespace()).map(|cli| cli.command) {
            Err(error) => error.to_string(),
            Ok(Command::Probe(options)) => {
                let (key, message) = options.config().expect_err(words);
                format!("{key}: {message}")
            }
            Ok(Command::Respond(_)) => panic!("{words} is no mistake"),
        }
    }

    #[test]
    fn wrong_arguments_are_reported() {
        for (words, said) in [
            ("sla probe icmp-echo 10.0.0", "invalid IP address"),
            ("sla probe icmp-jitter 2001:db8::1", "ICMPv6 has no timestamps: use udp-jitter"),
            ("sla probe icmp-echo 2001:db8::1 --source 10.0.0.1", "an address of the family of 2001:db8::1"),
            ("sla probe icmp-echo fe80::1", "found the link-local address"),
            ("sla probe ping 10.0.0.1", "invalid value 'ping'"),
            ("sla probe icmp-echo 10.0.0.1 --port 5000", "target_port"),
            ("sla probe udp-echo 10.0.0.1", "the responder's port"),
            ("sla probe icmp-jitter 10.0.0.1 --size 100", "leave it out"),
            ("sla probe icmp-jitter 10.0.0.1 --interval 3", "4 to 60000"),
            ("sla probe icmp-echo 10.0.0.1 --frequency 2", "at most the frequency"),
            ("sla probe icmp-echo 10.0.0.1 --duration 0", "expected a number above zero"),
            ("sla respond --allow 10.0.0.0/8 --port 0", "0 is not in 1.."),
            ("sla respond", "--allow <PREFIX>"),
            ("sla respond --allow 10.0.0.0/33", "invalid value '10.0.0.0/33'"),
            ("sla respond --allow 2001:db8::/129", "invalid value '2001:db8::/129'"),
        ] {
            let message = refusal(words);
            assert!(message.contains(said), "{words}: {message}");
        }
    }
}
