//! Capabilities of the process, which are dropped as soon as they are not needed.

use std::io;

/// Sets of capget(2): three of 64 capabilities.
const VERSION_3: u32 = 0x2008_0522;
/// Capability to open namespaces of process 1 (capabilities(7)).
const CAP_SYS_PTRACE: u32 = 19;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// The lower or the upper halves of the three sets.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Halves {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops the capabilities that are needed only to find namespaces, for this thread and those that it starts from now
/// on.
///
/// # Errors
/// Those of `capget` and `capset`.
pub fn know_all_namespaces() -> io::Result<()> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Halves::default(); 2];
    // SAFETY: both pointers are valid, and this version of the interface has two halves.
    if unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let rest = !(1 << CAP_SYS_PTRACE);
    let lower = &mut sets[0];
    *lower = Halves { effective: lower.effective & rest, permitted: lower.permitted & rest, inheritable: 0 };
    // SAFETY: as above.
    match unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;

    /// Returns this thread's effective capabilities.
    fn effective() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn data_plane_drops_the_right_to_open_other_namespaces() {
        let has = effective();
        if has & (1 << CAP_SYS_PTRACE) == 0 {
            // For an ordinary user: again, as root of a user namespace.
            let name = "rights::tests::a_data_plane_that_has_its_namespaces_cannot_look_for_others";
            let mut again = Command::new("unshare");
            again.args(["--user", "--map-root-user"]).arg(std::env::current_exe().unwrap()).args(["--exact", name]);
            let done = again.output().unwrap();
            let output = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && output.contains("1 passed"), "{output}");
            return;
        }
        // Capabilities are a thread's, and this one ends with the test.
        know_all_namespaces().unwrap();
        let rest = has & !(1 << CAP_SYS_PTRACE);
        assert_eq!(effective(), rest);
        assert_eq!(thread::scope(|scope| scope.spawn(effective).join().unwrap()), rest);
    }
}
