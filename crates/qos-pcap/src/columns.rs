//! Packets as columns, and their output format for a program that reads them as arrays.
//!
//! A stream is a line of JSON with the columns' names and types (as NumPy writes them), then pieces, each a line with
//! its number of rows and the columns one after another, little-endian; at last a line with the number of packets and
//! the error in the file, null if there was none.

use std::io::{self, Write};

use zerocopy::little_endian::{I16, I32, I64};
use zerocopy::IntoBytes;

use crate::capture::Packet;
use crate::packet::{describe, Facts};

macro_rules! columns {
    ($($name:ident: $kind:ty = $code:literal,)*) => {
        /// Packets, with one element per packet in each column; see [`Facts`].
        #[derive(Clone, Debug, Default)]
        pub struct Columns {
            behind_wanted: usize,
            room: Vec<u8>,
            $(#[allow(missing_docs)] pub $name: Vec<$kind>,)*
        }

        impl Columns {
            /// Names and types.
            pub const NAMES: &'static [(&'static str, &'static str)] = &[$((stringify!($name), $code)),*];

            /// Writes a part with the packets so far, and starts the next one.
            ///
            /// # Errors
            /// It cannot be written.
            pub fn write(&mut self, into: &mut impl Write) -> io::Result<()> {
                writeln!(into, "{{\"rows\":{}}}", self.len())?;
                $(
                    into.write_all(self.$name.as_bytes())?;
                    self.$name.clear();
                )*
                Ok(())
            }
        }
    };
}

columns! {
    time_ns: I64 = "<i8",
    bytes: I64 = "<i8",
    network_bytes: I32 = "<i4",
    version: i8 = "|i1",
    tos: I16 = "<i2",
    ttl: I16 = "<i2",
    vlan: I16 = "<i2",
    protocol: I16 = "<i2",
    source_high: I64 = "<i8",
    source: I64 = "<i8",
    destination_high: I64 = "<i8",
    destination: I64 = "<i8",
    source_port: I32 = "<i4",
    destination_port: I32 = "<i4",
    payload: I32 = "<i4",
    sequence: I64 = "<i8",
    identity: I64 = "<i8",
    behind: I16 = "<i2",
    interface: I32 = "<i4",
}

impl Columns {
    /// Creates empty columns; identities cover `behind` bytes after the IP header.
    pub fn new(behind: usize) -> Columns {
        Columns { behind_wanted: behind, ..Columns::default() }
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Returns whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Adds a packet.
    pub fn push(&mut self, packet: Packet<'_>) {
        let facts: Facts = describe(packet, self.behind_wanted, &mut self.room);
        self.time_ns.push(packet.time_ns.into());
        self.bytes.push(i64::from(packet.length).into());
        self.network_bytes.push(facts.network_bytes.into());
        self.version.push(facts.version);
        self.tos.push(facts.tos.into());
        self.ttl.push(facts.ttl.into());
        self.vlan.push(facts.vlan.into());
        self.protocol.push(facts.protocol.into());
        self.source_high.push(facts.source_high.into());
        self.source.push(facts.source.into());
        self.destination_high.push(facts.destination_high.into());
        self.destination.push(facts.destination.into());
        self.source_port.push(facts.source_port.into());
        self.destination_port.push(facts.destination_port.into());
        self.payload.push(facts.payload.into());
        self.sequence.push(facts.sequence.into());
        self.identity.push(facts.identity.into());
        self.behind.push(facts.behind.into());
        let interface = packet.link.interface(packet.frame).unwrap_or(packet.interface);
        self.interface.push(i32::try_from(interface).unwrap_or(-1).into());
    }
}
