//! Packet sockets with a memory-mapped receive ring (packet(7), TPACKET_V2) and batched sending.
//!
//! Version 2 of the ring hands over frame by frame; version 3 would hold frames back until a block is full or its timer
//! of at least a millisecond has run out. Sending does not use the kernel's transmit ring: over a veth pair the
//! receiver still refers to the ring's pages after the kernel has reported the slot free, so reusing it would change
//! packets that have been sent.

use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::closing::close_later;
use crate::frame::{self, LONGEST};

/// Bytes of a ring slot: the ring's header (66 with the link's address, before the Ethernet header) and the longest
/// frame, rounded up to the kernel's slot alignment. Not a power of two, because headers of slots would share cache
/// sets.
const SLOT: usize = 1600;
/// Size of a block of the ring, the kernel's unit of allocation, in bytes.
const BLOCK: usize = 64 * 1024;
/// Slots in a block, at its start: no slot lies in two blocks.
const SLOTS_PER_BLOCK: usize = BLOCK / SLOT;
/// Maximum number of frames sent in one call.
pub const BATCH: usize = 64;

const VLAN_TAG: usize = 4;

/// Returns the start of a slot in a ring.
fn offset(slot: usize) -> usize {
    slot / SLOTS_PER_BLOCK * BLOCK + slot % SLOTS_PER_BLOCK * SLOT
}

/// Returns the number of bytes of memory that a ring of at least `slots` frames takes.
pub fn memory_bytes(slots: usize) -> usize {
    slots.div_ceil(SLOTS_PER_BLOCK).max(1) * BLOCK
}

/// A frame that cannot be passed: too short, too long, or with a checksum that cannot be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// A packet socket on one interface.
#[derive(Debug)]
pub struct Ring {
    socket: ManuallyDrop<OwnedFd>,
    map: NonNull<u8>,
    slots: usize,
    /// The next slot to read.
    next: usize,
    lost: u64,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Ring {}

fn check(result: libc::c_int, doing: &str) -> io::Result<libc::c_int> {
    if result < 0 {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(error.kind(), format!("{doing}: {error}")));
    }
    Ok(result)
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T, doing: &str) -> io::Result<()> {
    let length = std::mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` points to `length` readable bytes.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
    check(result, doing).map(drop)
}

/// Opens a packet socket without an interface. It sends past the queueing discipline.
fn open_socket() -> io::Result<OwnedFd> {
    // Protocol 0 receives nothing until the socket is bound, so that no frame of another interface gets in.
    // SAFETY: no pointers are involved; nobody else owns the returned descriptor.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0);
        check(fd, "opening a packet socket (this needs CAP_NET_RAW)")?;
        OwnedFd::from_raw_fd(fd)
    };
    set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1, "bypassing the qdisc")?;
    // The kernel limits this silently to net.core.wmem_max; a full buffer is counted when it happens.
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &(4 << 20), "sizing the send buffer")?;
    Ok(socket)
}

/// Binds a packet socket to its interface; with protocol 0 it receives nothing.
fn bind(socket: &OwnedFd, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as libc::c_int;
    // SAFETY: the address is a sockaddr_ll of the given size.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            std::mem::size_of_val(&address) as libc::socklen_t,
        )
    };
    check(bound, "binding the packet socket to the interface").map(drop)
}

/// Opens a packet socket that sends on the interface with this index and receives nothing.
///
/// # Errors
/// As of [`Ring::open`].
pub fn open_sender(interface: u32) -> io::Result<OwnedFd> {
    let socket = open_socket()?;
    bind(&socket, interface, 0)?;
    Ok(socket)
}

impl Ring {
    /// Opens a socket on the interface with this index, with a ring of at least `slots` frames.
    ///
    /// # Errors
    /// Those of the system calls, with the failed action: usually a missing `CAP_NET_RAW`.
    pub fn open(interface: u32, slots: usize) -> io::Result<Self> {
        let blocks = memory_bytes(slots) / BLOCK;
        let slots = blocks * SLOTS_PER_BLOCK;
        let socket = open_socket()?;
        let packet = libc::SOL_PACKET;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set(&socket, packet, libc::PACKET_VERSION, &version, "setting the ring's version")?;
        set(&socket, packet, libc::PACKET_IGNORE_OUTGOING, &1, "ignoring outgoing frames")?;
        // Stamps are taken on entry into the interface's queue instead of on arrival at the ring.
        let software = libc::SOF_TIMESTAMPING_SOFTWARE as libc::c_int;
        set(&socket, packet, libc::PACKET_TIMESTAMP, &software, "selecting receive timestamps")?;
        set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1, "enabling receive timestamps")?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: SLOT as libc::c_uint,
            tp_frame_nr: slots as libc::c_uint,
        };
        set(&socket, packet, libc::PACKET_RX_RING, &request, "allocating the receive ring")?;
        // SAFETY: a new mapping of the ring that was just created, of its exact size.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                blocks * BLOCK,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        let map = match NonNull::new(map.cast::<u8>()) {
            Some(map) if map.as_ptr().cast() != libc::MAP_FAILED => map,
            _ => return Err(check(-1, "mapping the receive ring").unwrap_err()),
        };
        let ring = Self { socket: ManuallyDrop::new(socket), map, slots, next: 0, lost: 0 };
        bind(&ring.socket, interface, libc::ETH_P_ALL as u16)?;
        Ok(ring)
    }

    fn header(&self, slot: usize) -> *mut libc::tpacket2_hdr {
        debug_assert!(slot < self.slots);
        // SAFETY: the slot lies within the mapping; slots are aligned to 16 bytes.
        unsafe { self.map.as_ptr().add(offset(slot)).cast() }
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: `tp_status` is an aligned u32 that the kernel and we both access as an atomic.
        unsafe { AtomicU32::from_ptr(std::ptr::addr_of_mut!((*self.header(slot)).tp_status)) }
    }

    /// Returns whether a frame waits in the ring.
    pub fn is_ready(&self) -> bool {
        self.status(self.next).load(Ordering::Relaxed) & libc::TP_STATUS_USER != 0
    }

    /// Takes the next frame from the ring: `look` sees the kernel's stamp (wall clock in nanoseconds) and the bytes.
    /// `None` when the ring is empty.
    pub fn take<R>(&mut self, look: impl FnOnce(u64, &[u8]) -> R) -> Option<Result<R, Malformed>> {
        let slot = self.next;
        let status = self.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.next = (self.next + 1) % self.slots;
        let result = self.inspect(slot, status).map(|(stamp, bytes)| look(stamp, bytes));
        self.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        Some(result.ok_or(Malformed))
    }

    /// Returns the stamp and bytes of a slot that the kernel has filled.
    fn inspect(&mut self, slot: usize, status: u32) -> Option<(u64, &mut [u8])> {
        // SAFETY: the status says that the slot is ours, and the kernel does not touch it until it is returned.
        let header = unsafe { self.header(slot).read() };
        let (mut start, mut length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let whole = header.tp_len == header.tp_snaplen && start + length <= SLOT;
        if !whole || !(frame::SHORTEST..=LONGEST).contains(&length) {
            return None;
        }
        if status & libc::TP_STATUS_VLAN_VALID != 0 {
            let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => libc::ETH_P_8021Q as u16,
                _ => header.tp_vlan_tpid,
            };
            // The kernel has removed the tag; there is room for it between the ring's header and the frame.
            if start < std::mem::size_of::<libc::tpacket2_hdr>() + VLAN_TAG || length + VLAN_TAG > LONGEST {
                return None;
            }
            start -= VLAN_TAG;
            length += VLAN_TAG;
            let bytes = self.bytes(slot, start, length);
            bytes.copy_within(VLAN_TAG..VLAN_TAG + 12, 0);
            bytes[12..14].copy_from_slice(&tpid.to_be_bytes());
            bytes[14..16].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
        }
        let bytes = self.bytes(slot, start, length);
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 && !frame::complete_checksum(bytes) {
            return None;
        }
        Some((u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec), bytes))
    }

    fn bytes(&mut self, slot: usize, start: usize, length: usize) -> &mut [u8] {
        assert!(slot < self.slots && start + length <= SLOT);
        // SAFETY: checked to lie within one slot of the mapping; only slots that are ours are requested, one at a time.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_ptr().add(offset(slot) + start), length) }
    }

    /// Clears the error of a socket with an interface that went down or disappeared.
    pub fn take_error(&self) -> Option<io::Error> {
        let (mut error, mut length) = (0, std::mem::size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: `error` has room for `length` bytes.
        unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                std::ptr::from_mut(&mut error).cast(),
                &mut length,
            );
        }
        (error != 0).then(|| io::Error::from_raw_os_error(error))
    }

    /// Returns the number of frames that found the ring full, since the socket was opened.
    pub fn lost(&mut self) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = std::mem::size_of_val(&stats) as libc::socklen_t;
        // SAFETY: `stats` has room for `length` bytes. Reading zeroes the kernel's own counters.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut stats).cast(),
                &mut length,
            )
        };
        if result == 0 {
            self.lost += u64::from(stats.tp_drops);
        }
        self.lost
    }
}

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was created with this size and nothing refers to it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.slots / SLOTS_PER_BLOCK * BLOCK) };
        // SAFETY: taken once, and nobody uses it afterwards.
        close_later(unsafe { ManuallyDrop::take(&mut self.socket) });
    }
}

/// Sends frames by a packet socket in order, at most [`BATCH`]; returns the number that the kernel took. Frames after
/// the first refused one have not been tried.
pub fn send<'a>(socket: &impl AsRawFd, frames: impl Iterator<Item = &'a [u8]>) -> usize {
    // Left uninitialised beyond the used part: most calls send one frame.
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut count = 0;
    for bytes in frames.take(BATCH) {
        let vector =
            vectors[count].write(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        // SAFETY: all zeros is a valid empty mmsghdr.
        let message = messages[count].write(unsafe { std::mem::zeroed() });
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    if count == 0 {
        return 0;
    }
    loop {
        // SAFETY: the first `count` messages are initialised and refer to live vectors, and these to frames that
        // live for 'a.
        let sent = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr().cast(), count as libc::c_uint, libc::MSG_DONTWAIT)
        };
        if sent >= 0 {
            return sent as usize;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return 0;
        }
    }
}
