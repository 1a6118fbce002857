//! Builders of the engine's configuration: classes and their actions, class-maps, access lists, interfaces.
//!
//! Rare fields are set by struct update: `InterfaceConfig { tx_ring_limit: Some(1), ..interface(2_000, None, None) }`.

use std::collections::BTreeMap;

pub use qos_core::config::AccessAction::{Deny, Permit};
pub use qos_core::config::Generation::{Classic, Hqf, IosXe};
pub use qos_core::config::QueueLimit::{Bytes, Ms, Packets, Us};
pub use qos_core::config::*;

/// Policy-maps by name.
pub type Maps = BTreeMap<String, PolicyMap>;

/// Policy-maps of these classes.
pub fn maps<const N: usize>(maps: [(&str, Vec<PolicyClass>); N]) -> Maps {
    maps.into_iter().map(|(name, classes)| (name.to_owned(), PolicyMap { classes })).collect()
}

/// A class without actions.
pub fn class_of(class_map: &str) -> PolicyClass {
    PolicyClass::new(class_map)
}

pub fn class_default() -> PolicyClass {
    PolicyClass::new("class-default")
}

/// A trait for a type of the engine, with a method for each line: it sets the field to that value.
macro_rules! setters {
    ($(#[$doc:meta])* $trait:ident for $type:ident {
        $($method:ident($($arg:ident: $of:ty),*) => $field:ident: $value:expr,)*
    }) => {
        $(#[$doc])*
        pub trait $trait {
            $(fn $method(self, $($arg: $of),*) -> Self;)*
        }

        impl $trait for $type {
            $(fn $method(self, $($arg: $of),*) -> $type {
                $type { $field: $value, ..self }
            })*
        }
    };
}

setters! {
    /// Actions of a class, as they are typed.
    Actions for PolicyClass {
        kbps(kbps: u64) => bandwidth: Some(BandwidthConfig::Kbps(kbps)),
        percent(percent: u32) => bandwidth: Some(BandwidthConfig::Percent(percent)),
        remaining_percent(percent: u32) => bandwidth: Some(BandwidthConfig::RemainingPercent(percent)),
        remaining_ratio(ratio: u32) => bandwidth: Some(BandwidthConfig::RemainingRatio(ratio)),
        priority(config: PriorityConfig) => priority: Some(config),
        strict() => priority: Some(priority(PriorityUnit::Strict, None)),
        priority_kbps(kbps: u64) => priority: Some(priority_kbps(kbps)),
        priority_percent(percent: u32) => priority: Some(priority(PriorityUnit::Percent, Some(percent.into()))),
        shape_bps(bps: u64) => shape: Some(average(bps)),
        police_bps(bps: u64) => police: Some(police(bps)),
        limit(limit: QueueLimit) => queue_limit: Some(limit),
        queue_thresholds(thresholds: Vec<QueueThreshold>) => queue_thresholds: thresholds,
        fair_queues(queues: u32) => fair_queue: Some(FairQueueConfig { queues: Some(queues), queue_limit: None }),
        random_detect(red: RandomDetectConfig) => random_detect: Some(red),
        service_policy(policy_map: &str) => service_policy: Some(policy_map.to_owned()),
        trust(trust: Trust) => trust: Some(trust),
        police_aggregate(policer: &str) => police_aggregate: Some(policer.to_owned()),
        account(account: AccountConfig) => account: Some(account),
    }
}

setters! {
    Policing for PoliceConfig {
        bytes(bc: u64) => bc: Some(PoliceBurst::Bytes(bc)),
        conform(action: PoliceAction) => conform: Some(vec![action]),
        exceed(action: PoliceAction) => exceed: Some(vec![action]),
    }
}

setters! {
    EarlyDetection for RandomDetectConfig {
        weight(exponential_weight: u8) => exponential_weight: Some(exponential_weight),
        ecn(ecn: bool) => ecn: ecn,
        unit(unit: LimitUnit) => unit: Some(unit),
    }
}

pub trait Thresholds {
    /// Minimum and greatest threshold of a value, and the denominator of the greatest probability between them.
    fn row(self, value: u8, min: u32, max: u32, denominator: impl Into<Option<u32>>) -> Self;
}

impl Thresholds for RandomDetectConfig {
    fn row(mut self, value: u8, min: u32, max: u32, denominator: impl Into<Option<u32>>) -> RandomDetectConfig {
        self.thresholds.push(RandomDetectThreshold { value, min, max, denominator: denominator.into() });
        self
    }
}

pub fn priority(unit: PriorityUnit, number: Option<u64>) -> PriorityConfig {
    PriorityConfig { unit, number, burst_bytes: None, level: None }
}

pub fn priority_kbps(kbps: u64) -> PriorityConfig {
    priority(PriorityUnit::Kbps, Some(kbps))
}

/// `shape average` with default bursts.
pub fn average(bps: u64) -> ShapeConfig {
    ShapeConfig::average(RateSpec::Bps(bps))
}

/// A policer with one bucket of the default size that drops exceeding packets.
pub fn police(bps: u64) -> PoliceConfig {
    PoliceConfig::new(RateSpec::Bps(bps))
}

/// `account user-defined`.
pub fn user_defined(offset: i32, atm: bool) -> AccountConfig {
    AccountConfig::UserDefined(UserDefinedAccount { offset, atm })
}

/// Weighted random early detection with default thresholds.
pub fn red(basis: RandomDetectBasis) -> RandomDetectConfig {
    RandomDetectConfig { basis, exponential_weight: None, ecn: false, unit: None, thresholds: Vec::new() }
}

pub fn red_by_precedence() -> RandomDetectConfig {
    red(RandomDetectBasis::Precedence)
}

pub fn red_by_dscp() -> RandomDetectConfig {
    red(RandomDetectBasis::Dscp)
}

/// The limit of a queue for packets with a value of a field.
pub fn limit_by(field: ThresholdField, value: u8, limit: QueueLimit) -> QueueThreshold {
    QueueThreshold { field, value, limit }
}

pub fn match_all(criteria: Vec<Criterion>) -> ClassMap {
    ClassMap { combine: MatchMode::All, criteria }
}

pub fn match_any(criteria: Vec<Criterion>) -> ClassMap {
    ClassMap { combine: MatchMode::Any, criteria }
}

/// Functions for match statements, none of them `match not`.
macro_rules! criteria {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $of:ty),*) => $kind:ident { $($field:ident: $value:expr),* },)*) => {
        $($(#[$doc])* pub fn $name($($arg: $of),*) -> Criterion {
            Criterion::$kind { $($field: $value,)* negate: false }
        })*
    };
}

criteria! {
    any_packet() => Any {},
    dscp(values: &[u8]) => Dscp { values: values.to_vec(), ip_only: false },
    /// `match ip dscp`.
    ip_dscp(values: &[u8]) => Dscp { values: values.to_vec(), ip_only: true },
    precedence(values: &[u8]) => Precedence { values: values.to_vec(), ip_only: false },
    /// `match ip precedence`.
    ip_precedence(values: &[u8]) => Precedence { values: values.to_vec(), ip_only: true },
    cos(values: &[u8]) => Cos { values: values.to_vec() },
    vlans(ranges: &[(u16, u16)]) => Vlan { ranges: ranges.to_vec() },
    protocol(name: ProtocolName) => Protocol { name: name },
    packet_length(min: Option<u32>, max: Option<u32>) => PacketLength { min: min, max: max },
    access_group(name: &str) => AccessGroup { name: name.to_owned() },
    input_interface(name: &str) => InputInterface { name: name.to_owned() },
    qos_group(value: u16) => QosGroup { value: value },
    discard_class(value: u8) => DiscardClass { value: value },
    /// `match class-map`.
    other_class(name: &str) => ClassMap { name: name.to_owned() },
}

pub fn address(address: &str, wildcard: &str) -> AddressMatch {
    AddressMatch { address: address.parse().unwrap(), wildcard: wildcard.parse().unwrap() }
}

pub fn any_ipv4() -> AddressMatch {
    address("0.0.0.0", "255.255.255.255")
}

pub fn any_ipv6() -> AddressMatch {
    address("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
}

/// An entry for a protocol from any address to any address.
pub fn entry(action: AccessAction, protocol: Option<u8>, any: &AddressMatch) -> AccessListEntry {
    AccessListEntry {
        action,
        protocol,
        source: any.clone(),
        destination: any.clone(),
        source_port: None,
        destination_port: None,
        dscp: None,
        precedence: None,
        established: false,
        icmp_type: None,
        icmp_code: None,
        fragments: false,
    }
}

pub fn permit(protocol: Option<u8>) -> AccessListEntry {
    entry(AccessAction::Permit, protocol, &any_ipv4())
}

pub fn deny(protocol: Option<u8>) -> AccessListEntry {
    entry(AccessAction::Deny, protocol, &any_ipv4())
}

pub fn ports(op: PortOperator, ports: &[u16]) -> Option<PortMatch> {
    Some(PortMatch { op, ports: ports.to_vec() })
}

/// An interface that averages over 30 seconds.
pub fn interface(bandwidth_kbps: u64, input: Option<&str>, output: Option<&str>) -> InterfaceConfig {
    InterfaceConfig {
        load_interval_s: 30,
        service_policy_input: input.map(str::to_owned),
        service_policy_output: output.map(str::to_owned),
        ..InterfaceConfig::new(bandwidth_kbps)
    }
}

pub trait PortOut {
    /// The interface `Out`.
    fn out(&mut self) -> &mut InterfaceConfig;
}

impl PortOut for RouterConfig {
    fn out(&mut self) -> &mut InterfaceConfig {
        self.interfaces.get_mut("Out").unwrap()
    }
}

/// `fair-queue` of an interface with default numbers.
pub fn fair_queue() -> InterfaceFairQueue {
    InterfaceFairQueue { enabled: true, discard_threshold: None, dynamic_queues: None, reserved_queues: None }
}

/// `priority-group` with the default limits, and all else to the normal queue.
pub fn priority_group(rules: Vec<QueueRule>) -> InterfaceQueueing {
    InterfaceQueueing::Priority { rules, default: 2, limits: defaults::PRIORITY_LIST_LIMITS }
}

/// `custom-queue-list`, with all else to queue 1, from which on the queues take turns.
pub fn custom_queues(rules: Vec<QueueRule>, queues: Vec<CustomQueue>) -> InterfaceQueueing {
    InterfaceQueueing::Custom { rules, default: 1, lowest: 1, queues }
}

/// `traffic-shape` of an access list, or of everything, with default bursts and buffers.
pub fn traffic_shape(access_list: Option<&str>, bps: u64) -> InterfaceShaper {
    let access_list = access_list.map(str::to_owned);
    InterfaceShaper { access_list, shape: average(bps), buffers: defaults::GTS_BUFFERS }
}

/// A rule that takes all packets to a queue.
pub fn to_queue(queue: u8) -> QueueRule {
    QueueRule { queue, ..QueueRule::default() }
}

/// A queue that takes turns and holds any number of packets.
pub fn custom_queue(number: u8, byte_count: u32) -> CustomQueue {
    CustomQueue { number, limit: 0, byte_count }
}

/// A class or queue of a tree, without a rate.
pub fn tree_node(name: &str, parent: Option<&str>, queue: Option<QueueDiscipline>) -> TreeNode {
    TreeNode { name: name.to_owned(), parent: parent.map(str::to_owned), shape: None, minimum_bps: 0, weight: 1, queue }
}

/// A shaper of a tree, which lets packets go while its bucket is not below empty.
pub fn tree_shape(rate_bps: u64, burst_bytes: u64) -> TreeShape {
    TreeShape { rate_bps, burst_bytes, deficit: true, account: None }
}
