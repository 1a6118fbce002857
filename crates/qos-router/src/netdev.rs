//! Linux interfaces: index by name, the names that exist, and the kernel's drop counters.

use std::ffi::CString;
use std::io;

/// Index of the interface `name`, or `None` where there is no such interface in this network namespace.
pub fn index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is a zero-terminated string that outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Names of the interfaces of this network namespace, in order.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = read().unwrap_or_default().into_iter().map(|d| d.name).collect();
    names.sort();
    names
}

/// The kernel's drop counters of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drops {
    /// Name of the interface.
    pub name: String,
    /// Received frames that were dropped before anyone saw them (a full backlog).
    pub received: u64,
    /// Sent frames that the other end of the pair had no room for.
    pub sent: u64,
}

/// Drop counters of every interface of this network namespace, from `/proc/net/dev`.
pub fn read() -> io::Result<Vec<Drops>> {
    // `thread-self`, since a process may have been moved into its namespace after starting.
    Ok(parse(&std::fs::read_to_string("/proc/thread-self/net/dev")?))
}

/// Lines that do not have the known form are skipped.
fn parse(text: &str) -> Vec<Drops> {
    text.lines()
        .filter_map(|line| {
            let (name, figures) = line.split_once(':')?;
            let figures: Vec<u64> = figures.split_whitespace().map_while(|f| f.parse().ok()).collect();
            Some(Drops {
                name: name.trim().to_owned(),
                received: *figures.get(3)?,
                sent: *figures.get(11)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_net_dev_is_read() {
        let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16
 Fa0-1: 1 2 3 40 5 6 7 8 9 10 11 120 13 14 15 16
";
        let drops = parse(text);
        assert_eq!(drops.len(), 2);
        assert_eq!(
            drops[1],
            Drops {
                name: "Fa0-1".into(),
                received: 40,
                sent: 120
            }
        );
    }

    #[test]
    fn a_missing_interface_has_no_index() {
        assert_eq!(index("no-such-if"), None);
        assert_eq!(index("nul\0"), None);
    }
}
