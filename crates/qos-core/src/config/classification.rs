//! Classification part of the configuration: access lists and class-maps.

use std::net::IpAddr;

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Entry of an extended access list. Its addresses, and those of the other entries of the list, have one IP version: it
/// matches only packets of that version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct AccessListEntry {
    /// Action for a matching packet.
    pub action: AccessAction,
    /// IP protocol number; null for `ip` and `ipv6`.
    pub protocol: Option<u8>,
    /// Source address.
    pub source: AddressMatch,
    /// Destination address.
    pub destination: AddressMatch,
    /// Source port (TCP and UDP).
    pub source_port: Option<PortMatch>,
    /// Destination port (TCP and UDP).
    pub destination_port: Option<PortMatch>,
    /// Differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// IP precedence, 0 to 7.
    pub precedence: Option<u8>,
    /// TCP with ACK or RST set.
    #[cfg_attr(feature = "serde", serde(default))]
    pub established: bool,
    /// ICMP type; of an IPv6 entry the ICMPv6 type.
    pub icmp_type: Option<u8>,
    /// ICMP code.
    pub icmp_code: Option<u8>,
    /// Only fragments other than the first.
    #[cfg_attr(feature = "serde", serde(default))]
    pub fragments: bool,
}

/// Action of an access list entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum AccessAction {
    /// The packet is in the class.
    Permit,
    /// The packet is not in the class.
    Deny,
}

/// Address and wildcard bits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct AddressMatch {
    /// IPv4 or IPv6 address.
    pub address: IpAddr,
    /// Bits set here are ignored; written as an address of the same family.
    pub wildcard: IpAddr,
}

/// A match of a TCP or UDP port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct PortMatch {
    /// Operator of the comparison.
    pub op: PortOperator,
    /// One or more ports for `eq` and `neq`, one for `gt` and `lt`, first and last for `range`.
    pub ports: Vec<u16>,
}

/// Operator of a port comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum PortOperator {
    /// Equal to one of the ports.
    Eq,
    /// Equal to none of the ports.
    Neq,
    /// Greater.
    Gt,
    /// Less.
    Lt,
    /// Range from the first to the last value, inclusive.
    Range,
}

/// Class-map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct ClassMap {
    /// Combination of the criteria.
    #[cfg_attr(feature = "serde", serde(rename = "match"))]
    pub combine: MatchMode,
    /// Criteria in configured order; without any nothing matches.
    pub criteria: Vec<Criterion>,
}

/// Combination of criteria.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum MatchMode {
    /// `match-all`.
    All,
    /// `match-any`.
    Any,
}

/// Match statement; `negate` is `match not`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "type", rename_all = "snake_case", deny_unknown_fields))]
pub enum Criterion {
    /// `match any`.
    Any {
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match access-group`.
    AccessGroup {
        /// Name or number.
        name: String,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match [ip] dscp`.
    Dscp {
        /// Code points, 0 to 63.
        values: Vec<u8>,
        /// IPv4 only.
        #[cfg_attr(feature = "serde", serde(default))]
        ip_only: bool,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match [ip] precedence`.
    Precedence {
        /// Precedences, 0 to 7.
        values: Vec<u8>,
        /// IPv4 only.
        #[cfg_attr(feature = "serde", serde(default))]
        ip_only: bool,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match cos`.
    Cos {
        /// Values, 0 to 7.
        values: Vec<u8>,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match vlan`: the VLAN of the frame's tag.
    Vlan {
        /// First and last of each range, 1 to 4094.
        ranges: Vec<(u16, u16)>,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match protocol`.
    Protocol {
        /// The protocol.
        name: ProtocolName,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match packet length`, of the IP packet in bytes.
    PacketLength {
        /// Minimum, if any.
        min: Option<u32>,
        /// Maximum, if any.
        max: Option<u32>,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match input-interface`.
    InputInterface {
        /// IOS name of the interface.
        name: String,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match input-interface` of a switch, with any of several ports.
    InputInterfaces {
        /// IOS names. An unconnected port of the switch matches nothing.
        names: Vec<String>,
    },
    /// `match qos-group`.
    QosGroup {
        /// The group.
        value: u16,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match discard-class`.
    DiscardClass {
        /// The class, 0 to 7.
        value: u8,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
    /// `match class-map`.
    ClassMap {
        /// Name of the other class-map.
        name: String,
        /// `match not`.
        #[cfg_attr(feature = "serde", serde(default))]
        negate: bool,
    },
}

/// Protocol recognised by IP protocol number or well-known port (at either end).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum ProtocolName {
    Icmp,
    Ospf,
    Eigrp,
    Bgp,
    Http,
    SecureHttp,
    Smtp,
    Rip,
    Tcp,
    Udp,
    Ip,
    Ipv6,
}
