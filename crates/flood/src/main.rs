//! The command line of `flood`.

mod address;
mod batch;
mod error;
mod page_receiver;
mod page_sender;
mod quantity;
mod receive;
mod send;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use clap::{ArgGroup, Args, Parser, Subcommand};

use flood::datagram::{GREATEST_SIZE, LEAST_SIZE, SHORTEST_STAMP};
use flood::pace::Gap;
use flood::source_frames::LARGEST_FRAME;
use netio::program_end::{end, print_json, Failure};
use netio::wait::{be_punctual, Stop};

use crate::error::Error;
use crate::quantity::Quantity;

/// Floods a host with UDP datagrams at an exact pace, or sends it pages over TCP; counts the data at the other end.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send datagrams; print one JSON object with the number actually sent
    Send(Send),
    /// Count datagrams until SIGINT or SIGTERM; print a line of JSON for each interval, the sums last
    Receive(Receive),
    /// Send pages over TCP at regular intervals; print one JSON object with the time of each page
    SendPages(SendPages),
    /// Receive and acknowledge pages; print one JSON object at the end
    ReceivePages(ReceivePages),
}

#[derive(Debug, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("pace").required(true).args(["bandwidth", "delay"])))]
struct Send {
    /// IPv4 or IPv6 address to flood
    destination: IpAddr,
    /// IP bits per second of each stream, in kbit/s, headers included; sizes are 256 bytes unless --size says otherwise
    #[arg(long, value_name = "KBPS", value_parser = quantity::kilobits)]
    bandwidth: Option<Quantity>,
    /// Milliseconds between two datagrams of a stream; sizes are random unless --size says otherwise
    #[arg(long, value_name = "MS", value_parser = quantity::milliseconds)]
    delay: Option<Quantity>,
    /// IP length of each packet, headers included
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = clap::value_parser!(u32).range(i64::from(LEAST_SIZE)..=i64::from(GREATEST_SIZE)),
    )]
    size: Option<u32>,
    /// Destination port. [default: a random one for each datagram]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Seconds to send. [default: until SIGINT or SIGTERM]
    #[arg(long, value_name = "S", value_parser = quantity::seconds)]
    duration: Option<Quantity>,
    /// Local address
    #[arg(long, value_name = "ADDRESS")]
    source: Option<IpAddr>,
    /// Local port; of several streams that of the first
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    source_port: Option<u16>,
    /// Source ports that take turns, each at the given rate or delay
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    streams: u16,
    /// DSCP of every packet
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
    /// Number in every datagram that identifies this flood for a receiver. [default: the time]
    #[arg(long, value_name = "N")]
    id: Option<u64>,
    /// Seed of random sizes and ports
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Datagrams of a stream that are due together, when the first of them is, and handed to the kernel in one call; a
    /// flood has whole batches
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(batch::MOST)),
    )]
    batch: u32,
    /// Payload bytes of the frames of a stream in a cycle, such as the pictures of a video: each frame leaves at
    /// once, in packets of at most --size bytes, --delay is the time between two frames, and streams start at
    /// different places of the cycle. Packets below 56 bytes are received with --id only
    #[arg(
        long,
        value_name = "BYTES,…",
        value_delimiter = ',',
        requires_all = ["delay", "size"],
        conflicts_with = "batch",
        value_parser = clap::value_parser!(u32).range(i64::from(SHORTEST_STAMP)..=i64::from(LARGEST_FRAME)),
    )]
    frames: Vec<u32>,
    /// After a stall so many overdue datagrams (with --batch: batches) are still sent, at once; older ones are skipped
    /// and counted
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1000))]
    catch_up: u32,
    /// Microseconds before each deadline that are spent looking at the clock rather than asleep
    #[arg(long, value_name = "US", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=1000))]
    spin: u64,
}

#[derive(Debug, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("where").required(true).args(["port", "any_port"])))]
struct Receive {
    /// Port to receive on
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Receive on every port, as random ports need: takes a raw socket (CAP_NET_RAW). No socket owns the ports, so the
    /// kernel answers some of the datagrams with "port unreachable", at most about one a second
    #[arg(long)]
    any_port: bool,
    /// Local address. [default: every IPv4 address]
    #[arg(long)]
    address: Option<IpAddr>,
    /// Receive on every IPv6 address instead
    #[arg(long, conflicts_with = "address")]
    ipv6: bool,
    /// Count only floods with this number. [default: all floods]
    #[arg(long, value_name = "N")]
    id: Option<u64>,
    /// Seconds between two lines of output
    #[arg(long, value_name = "S", default_value = "1", value_parser = quantity::seconds)]
    interval: Quantity,
    /// Seconds to receive. [default: until SIGINT or SIGTERM]
    #[arg(long, value_name = "S", value_parser = quantity::seconds)]
    duration: Option<Quantity>,
}

#[derive(Debug, Args)]
#[group(skip)]
struct SendPages {
    /// IPv4 or IPv6 address of the receiver
    destination: IpAddr,
    /// Port of the receiver
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Bytes of a page
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
    /// Milliseconds between the starts of two pages of a connection
    #[arg(long, value_name = "MS", value_parser = quantity::milliseconds)]
    delay: Quantity,
    /// Seconds to send; unsent data is then dropped
    #[arg(long, value_name = "S", value_parser = quantity::seconds)]
    duration: Quantity,
    /// Connections, each with separate pages
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    streams: u16,
    /// Seconds within which connections start, each at a random time. [default: all start at once]
    #[arg(long, value_name = "S", value_parser = quantity::seconds)]
    spread: Option<Quantity>,
    /// Local address
    #[arg(long, value_name = "ADDRESS")]
    source: Option<IpAddr>,
    /// Local port of the first connection, followed by those of the others. [default: chosen by the system]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    source_port: Option<u16>,
    /// DSCP of every packet
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
    /// Congestion control algorithm. [default: that of the system]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Seed of the random start times
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
#[group(skip)]
struct ReceivePages {
    /// Port to receive on
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Bytes of a page
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
    /// Local address. [default: every IPv4 address]
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    address: IpAddr,
    /// End after so many connections. [default: at SIGINT or SIGTERM]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    streams: Option<u16>,
    /// Seconds of an interval in which bytes are counted
    #[arg(long, value_name = "S", default_value = "1", value_parser = quantity::seconds)]
    interval: Quantity,
}

/// IP length of packets if `--bandwidth` is given without a size, as in flood.pl.
const DEFAULT_SIZE: u32 = 256;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Send(options) => send(&options),
        Command::Receive(options) => receive(&options),
        Command::SendPages(options) => send_pages(options),
        Command::ReceivePages(options) => receive_pages(&options),
    };
    end("flood", result)
}

fn stop() -> Result<Stop, Failure> {
    be_punctual();
    Ok(Stop::on_signals()?)
}

fn send(options: &Send) -> Result<(), Failure> {
    let size = options.size.or(options.bandwidth.map(|_| DEFAULT_SIZE));
    let gap = match (options.bandwidth, options.delay) {
        (Some(rate), _) => Gap::of_rate(size.unwrap_or(DEFAULT_SIZE), rate.0),
        (None, delay) => Gap::of_delay(delay.map_or(0, |delay| delay.0)),
    };
    let gap = gap.ok_or_else(|| {
        Error::Options("found a pace of less than a nanosecond or more than an hour between datagrams".into())
    })?;
    let flood = send::Flood {
        destination: options.destination,
        port: options.port,
        size,
        gap,
        duration: options.duration.map(|duration| duration.0),
        source: options.source,
        source_port: options.source_port,
        streams: options.streams,
        dscp: options.dscp,
        id: options.id,
        seed: options.seed,
        batch: options.batch,
        frames: options.frames.clone(),
        catch_up: options.catch_up,
        spin_ns: options.spin * 1000,
    };
    print_json(&flood.run(&mut stop()?)?)
}

fn receive(options: &Receive) -> Result<(), Failure> {
    let every = if options.ipv6 { IpAddr::from(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
    let receiver = receive::Receiver {
        address: options.address.unwrap_or(every),
        port: options.port,
        id: options.id,
        interval: options.interval.0,
        duration: options.duration.map(|duration| duration.0),
    };
    receiver.run(&mut stop()?)
}

fn send_pages(options: SendPages) -> Result<(), Failure> {
    be_punctual();
    let gap = Gap::of_delay(options.delay.0)
        .ok_or_else(|| Error::Options("found a delay of more than an hour between pages".into()))?;
    let sender = page_sender::PageSender {
        destination: SocketAddr::new(options.destination, options.port),
        source: options.source,
        source_port: options.source_port,
        bytes: options.size,
        gap,
        streams: options.streams,
        spread: options.spread.map_or(0, |spread| spread.0),
        duration: options.duration.0,
        seed: options.seed,
        dscp: options.dscp,
        congestion: options.congestion,
    };
    print_json(&sender.run()?)
}

fn receive_pages(options: &ReceivePages) -> Result<(), Failure> {
    be_punctual();
    let receiver = page_receiver::PageReceiver {
        local: SocketAddr::new(options.address, options.port),
        bytes: options.size,
        streams: options.streams,
        interval: options.interval.0,
    };
    print_json(&receiver.run()?)
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
        Cli::try_parse_from(words.split_whitespace()).expect_err(words).to_string()
    }

    #[test]
    fn wrong_arguments_are_reported() {
        for (words, said) in [
            ("flood send 10.0.0.1", "<--bandwidth <KBPS>|--delay <MS>>"),
            ("flood send 10.0.0.1 --bandwidth 600 --delay 3", "cannot be used with"),
            ("flood send 10.0.0 --delay 3", "invalid IP address"),
            ("flood send 10.0.0.1 --delay 3ms", "expected a number above zero"),
            ("flood send 10.0.0.1 --delay -3", "unexpected argument"),
            ("flood send 10.0.0.1 --bandwidth 0", "expected a number above zero"),
            ("flood send 10.0.0.1 --bandwidth 1.0001", "at most 3 digits"),
            ("flood send 10.0.0.1 --delay 3 --size 20", "20 is not in 56..=65535"),
            ("flood send 10.0.0.1 --delay 3 --port 0", "0 is not in 1.."),
            ("flood send 10.0.0.1 --delay 3 --dscp 64", "64 is not in 0..=63"),
            ("flood send 10.0.0.1 --delay 3 --batch 0", "0 is not in 1..=1024"),
            ("flood send 10.0.0.1 --delay 3 --frames 100", "--size <BYTES>"),
            ("flood send 10.0.0.1 --delay 3 --size 200 --frames 11", "11 is not in 12..=10000000"),
            ("flood send 10.0.0.1 --delay 3 --size 200 --frames 100 --batch 2", "cannot be used with"),
            ("flood receive", "<--port <PORT>|--any-port>"),
            ("flood receive --port 1 --any-port", "cannot be used with"),
            ("flood receive --port 1 --ipv6 --address ::1", "cannot be used with"),
            ("flood send-pages 10.0.0.1 --port 1 --size 0 --delay 3 --duration 1", "0 is not in 1.."),
            ("flood send-pages 10.0.0.1 --port 1 --size 9 --delay 3", "--duration <S>"),
            ("flood receive-pages --port 1", "--size <BYTES>"),
        ] {
            let message = refusal(words);
            assert!(message.contains(said), "{words}: {message}");
        }
    }
}
