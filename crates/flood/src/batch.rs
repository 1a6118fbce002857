//! Datagrams that are handed to the kernel in one call.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{sendmmsg, ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage};

use flood::datagram::{Draw, Stamp};

/// Maximum number of datagrams of a batch: the limit of the kernel per call (UIO_MAXIOV).
pub const MOST: u32 = 1024;

/// A batch of datagrams from one socket; its memory is reused.
pub struct Batch {
    to: Vec<SocketAddr>,
    /// The destinations in the kernel's format.
    destinations: Vec<Option<SockaddrStorage>>,
    payloads: Vec<Vec<u8>>,
    /// Number of datagrams of the batch; further payloads are left from an earlier, larger batch.
    length: usize,
    headers: MultiHeaders<SockaddrStorage>,
}

impl Batch {
    /// Creates a batch with room for this many datagrams.
    pub fn new(datagrams: u32) -> Self {
        let datagrams = datagrams as usize;
        Self {
            to: Vec::with_capacity(datagrams),
            destinations: Vec::with_capacity(datagrams),
            payloads: vec![Vec::new(); datagrams],
            length: datagrams,
            headers: MultiHeaders::preallocate(datagrams, None),
        }
    }

    /// Returns the number of datagrams of the batch.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Fills the batch with new datagrams to one host, each with the drawn port and length.
    pub fn draw(&mut self, draw: &mut Draw, host: IpAddr) {
        self.to.clear();
        for payload in &mut self.payloads {
            let (port, length) = draw.next();
            self.to.push(SocketAddr::new(host, port));
            payload.resize(length as usize, 0);
        }
        self.destinations.clear();
        self.destinations.extend(self.to.iter().map(|to| Some(SockaddrStorage::from(*to))));
    }

    /// Fills the batch with new datagrams of these lengths to one host, each with a drawn port.
    pub fn draw_frame(&mut self, draw: &mut Draw, host: IpAddr, lengths: impl Iterator<Item = u32>) {
        self.to.clear();
        for (payload, length) in self.payloads.iter_mut().zip(lengths) {
            self.to.push(SocketAddr::new(host, draw.next().0));
            payload.resize(length as usize, 0);
        }
        self.length = self.to.len();
        self.destinations.clear();
        self.destinations.extend(self.to.iter().map(|to| Some(SockaddrStorage::from(*to))));
    }

    /// Returns the destination of a datagram.
    pub fn destination(&self, number: usize) -> SocketAddr {
        self.to[number]
    }

    /// Stamps the datagrams from `first` on: the first with `stamp`, each later one with the next sequence number.
    pub fn stamp(&mut self, first: usize, stamp: Stamp) {
        for (sequence, payload) in (stamp.sequence..).zip(&mut self.payloads[first..self.length]) {
            let stamp = Stamp { sequence, ..stamp };
            match payload.len() {
                Stamp::LENGTH.. => stamp.write(payload),
                _ => stamp.write_short(payload),
            }
        }
    }

    /// Passes the datagrams from `first` on to the kernel in one call. Returns the number that the kernel accepted, at
    /// least one, or its reason for refusing the first. Datagrams after a refused one have not been tried.
    pub fn send(&mut self, socket: &OwnedFd, first: usize) -> Result<usize, Errno> {
        let vectors: Vec<_> = self.payloads[first..self.length].iter().map(|payload| [IoSlice::new(payload)]).collect();
        let control: [ControlMessage<'_>; 0] = [];
        let to = &self.destinations[first..];
        let taken = sendmmsg(socket.as_raw_fd(), &mut self.headers, &vectors, to, control, MsgFlags::MSG_DONTWAIT)?;
        Ok(taken.count())
    }

    /// Returns the number of bytes of payload of these datagrams.
    pub fn bytes(&self, datagrams: std::ops::Range<usize>) -> u64 {
        self.payloads[datagrams].iter().map(|payload| payload.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const STAMP: Stamp = Stamp { flood: 3, sequence: 40, sent_ns: 5 };

    /// Returns a batch to these ports of the machine itself, with payloads of 100 bytes.
    fn batch(ports: &[u16]) -> Batch {
        let mut batch = Batch::new(ports.len() as u32);
        let mut draw = Draw::new(Some(1), Some(100), 1);
        batch.draw(&mut draw, IpAddr::from([127, 0, 0, 1]));
        for (destination, port) in batch.destinations.iter_mut().zip(ports) {
            *destination = Some(SocketAddr::from(([127, 0, 0, 1], *port)).into());
        }
        batch
    }

    fn sequences(receiver: &UdpSocket) -> Vec<u64> {
        let mut payload = [0; 200];
        let next = || receiver.recv(&mut payload).ok().map(|length| Stamp::read(&payload[..length]).unwrap().sequence);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn single_call_sends_a_whole_batch() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_nonblocking(true).unwrap();
        let sender = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut batch = batch(&[receiver.local_addr().unwrap().port(); 5]);
        batch.stamp(0, STAMP);
        assert_eq!((batch.send(&sender, 0), batch.bytes(1..4)), (Ok(5), 300));
        assert_eq!(sequences(&receiver), [40, 41, 42, 43, 44]);
    }

    #[test]
    fn a_refusal_ends_the_call_and_later_packets_can_be_tried() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_nonblocking(true).unwrap();
        let sender = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = receiver.local_addr().unwrap().port();
        // The kernel refuses port 0.
        let mut batch = batch(&[port, port, 0, port]);
        batch.stamp(0, STAMP);
        assert_eq!((batch.send(&sender, 0), batch.send(&sender, 2)), (Ok(2), Err(Errno::EINVAL)));
        batch.stamp(3, Stamp { sequence: 42, ..STAMP });
        assert_eq!(batch.send(&sender, 3), Ok(1));
        assert_eq!(sequences(&receiver), [40, 41, 42]);
    }
}
