//! A UDP generator for benchmarks: `flood ADDRESS:PORT FRAME_BYTES SECONDS [PACKETS_PER_SECOND]`.
//!
//! Sends frames of the given size (Ethernet header included, FCS not) in batches as fast as it can, or one by one at an even pace. Prints how many.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;
const BATCH: usize = 32;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match parse(&words).and_then(|(target, size, time, gap)| flood(&target, size, time, gap)) {
        Ok(count) => {
            println!("{count}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("flood: {message}; usage: flood ADDRESS:PORT FRAME_BYTES SECONDS [PACKETS_PER_SECOND]");
            ExitCode::FAILURE
        }
    }
}

type Arguments = (String, usize, Duration, Option<Duration>);

fn parse(words: &[String]) -> Result<Arguments, String> {
    let number = |at: usize| -> Result<f64, String> {
        let word = words.get(at).ok_or_else(|| format!("argument {} is missing", at + 1))?;
        word.parse().ok().filter(|n: &f64| *n > 0.0).ok_or_else(|| format!("{word:?} is not a number above zero"))
    };
    let target = words.first().ok_or("argument 1 is missing")?.clone();
    let gap = if words.len() > 3 { Some(Duration::from_secs_f64(1.0 / number(3)?)) } else { None };
    let size = number(1)? as usize;
    let payload = size.checked_sub(HEADERS).ok_or_else(|| format!("a frame has at least {HEADERS} bytes"))?;
    Ok((target, payload, Duration::from_secs_f64(number(2)?), gap))
}

fn flood(target: &str, payload: usize, time: Duration, gap: Option<Duration>) -> Result<u64, String> {
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(|e| e.to_string())?;
    socket.connect(target).map_err(|e| format!("{target}: {e}"))?;
    let bytes = vec![0u8; payload];
    let (start, mut count) = (Instant::now(), 0u64);
    while start.elapsed() < time {
        count += match gap {
            None => batch(&socket, &bytes)?,
            Some(gap) => {
                let due = start + Duration::from_nanos(gap.as_nanos() as u64 * count);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                socket.send(&bytes).map_err(|e| e.to_string())?;
                1
            }
        };
    }
    Ok(count)
}

fn batch(socket: &UdpSocket, bytes: &[u8]) -> Result<u64, String> {
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros is a valid empty mmsghdr.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for message in &mut messages {
        message.msg_hdr.msg_iov = &mut vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: every message refers to the one vector, and that to `bytes`; both outlive the call.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as libc::c_uint, 0) };
    u64::try_from(sent).map_err(|_| std::io::Error::last_os_error().to_string())
}
