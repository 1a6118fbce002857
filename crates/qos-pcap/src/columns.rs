//! Packets as columns, and how these are written for a program that reads them as arrays.
//!
//! A stream is a line of JSON with the columns' names and types (as NumPy writes them), then pieces, each a line with
//! its number of rows and the columns one behind the other, little-endian; at last a line with the number of packets
//! and what was wrong with the file, null where nothing was.

use std::io::{self, Write};

use zerocopy::IntoBytes;

use crate::capture::Packet;
use crate::packet::{describe, Facts};

macro_rules! columns {
    ($($name:ident: $kind:ty = $code:literal,)*) => {
        /// Packets, one element of each column a packet; [`Facts`] says what they are.
        #[derive(Clone, Debug, Default)]
        pub struct Columns {
            behind_wanted: usize,
            room: Vec<u8>,
            $(#[allow(missing_docs)] pub $name: Vec<$kind>,)*
        }

        impl Columns {
            /// Names and types.
            pub const NAMES: &'static [(&'static str, &'static str)] = &[$((stringify!($name), $code)),*];

            /// Writes a piece with the packets so far, and begins anew.
            ///
            /// # Errors
            /// It cannot be written.
            pub fn write(&mut self, into: &mut impl Write) -> io::Result<()> {
                writeln!(into, "{{\"rows\":{}}}", self.len())?;
                $(
                    if cfg!(target_endian = "little") {
                        into.write_all(self.$name.as_bytes())?;
                    } else {
                        self.room.clear();
                        self.room.extend(self.$name.iter().flat_map(|value| value.to_le_bytes()));
                        into.write_all(&self.room)?;
                    }
                    self.$name.clear();
                )*
                Ok(())
            }
        }
    };
}

columns! {
    time_ns: i64 = "<i8",
    bytes: i64 = "<i8",
    network_bytes: i32 = "<i4",
    version: i8 = "|i1",
    tos: i16 = "<i2",
    ttl: i16 = "<i2",
    vlan: i16 = "<i2",
    protocol: i16 = "<i2",
    source_high: i64 = "<i8",
    source: i64 = "<i8",
    destination_high: i64 = "<i8",
    destination: i64 = "<i8",
    source_port: i32 = "<i4",
    destination_port: i32 = "<i4",
    payload: i32 = "<i4",
    sequence: i64 = "<i8",
    identity: i64 = "<i8",
    behind: i16 = "<i2",
}

impl Columns {
    /// Without packets; their identities are of so many bytes `behind` the IP header.
    pub fn new(behind: usize) -> Columns {
        Columns { behind_wanted: behind, ..Columns::default() }
    }

    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Adds a packet.
    pub fn push(&mut self, packet: Packet<'_>) {
        let facts: Facts = describe(packet, self.behind_wanted, &mut self.room);
        self.time_ns.push(packet.time_ns);
        self.bytes.push(packet.length.into());
        self.network_bytes.push(facts.network_bytes);
        self.version.push(facts.version);
        self.tos.push(facts.tos);
        self.ttl.push(facts.ttl);
        self.vlan.push(facts.vlan);
        self.protocol.push(facts.protocol);
        self.source_high.push(facts.source_high);
        self.source.push(facts.source);
        self.destination_high.push(facts.destination_high);
        self.destination.push(facts.destination);
        self.source_port.push(facts.source_port);
        self.destination_port.push(facts.destination_port);
        self.payload.push(facts.payload);
        self.sequence.push(facts.sequence);
        self.identity.push(facts.identity);
        self.behind.push(facts.behind);
    }
}
