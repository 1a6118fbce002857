//! Linux interfaces: index by name, existing names, and frames that the kernel could not deliver.

use std::ffi::CString;
use std::io;

use crate::namespace::Namespace;

/// Returns the index of the interface `name`, or `None` if there is no such interface in this network namespace.
pub fn index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is a zero-terminated string that outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Returns the names of the interfaces of this network namespace, in order.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = read(&Namespace::None).unwrap_or_default().into_iter().map(|d| d.name).collect();
    names.sort();
    names
}

/// Sent frames of one interface that the kernel could not deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsent {
    /// Name of the interface.
    pub name: String,
    /// Sent frames for which the other end of the pair had no room.
    pub frames: u64,
}

/// Returns the counter of every interface of a network namespace, from `/proc/net/dev`.
///
/// The counter of the other direction (`drop` under `Receive`) is of no use: it also counts frames that the packet
/// socket has received and no one else needs, such as those with a VLAN tag.
///
/// # Errors
/// Those of entering the namespace and of reading the file.
pub fn read(namespace: &Namespace) -> io::Result<Vec<Unsent>> {
    namespace.visit()?;
    // `thread-self`, since a process may have been moved into its namespace after starting.
    Ok(parse(&std::fs::read_to_string("/proc/thread-self/net/dev")?))
}

/// Returns the counters in the text; lines of unknown form are skipped.
fn parse(text: &str) -> Vec<Unsent> {
    text.lines()
        .filter_map(|line| {
            let (name, values) = line.split_once(':')?;
            let frames = values.split_whitespace().nth(11)?.parse().ok()?;
            Some(Unsent { name: name.trim().to_owned(), frames })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_net_dev_is_read() {
        let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|\
bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8 \
       9      10   11   12   13    14      15         16
 Fa0-1: 1 2 3 40 5 6 7 8 9 10 11 120 13 14 15 16
";
        let expected = [("lo", 12), ("Fa0-1", 120)].map(|(name, frames)| Unsent { name: name.into(), frames });
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn a_missing_interface_has_no_index() {
        assert_eq!(index("no-such-if"), None);
        assert_eq!(index("nul\0"), None);
    }
}
