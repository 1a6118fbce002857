//! Packet counters of a class.

use crate::common::build::*;
use crate::common::{self, class, frames, with_policy, MILLI, PORT, SECOND};
use qos_core::wire::Framing::Ethernet;
use qos_core::{frame, Engine, Time};

/// UDP packets of 100 bytes with these code points, at once, to a class that matches so.
fn criteria(class_map: ClassMap) -> (u64, Vec<u64>) {
    let config = with_policy(Hqf, 100_000, vec![class_of("it")]).class_map("it", class_map);
    let mut engine: Engine<u64> = common::started(100_000_000, Ethernet, &config);
    for dscp in [10, 10, 10, 18, 18, 0] {
        engine.transmit(Time(0), PORT, common::datagram(100, dscp, 1, 2, Ethernet), 0);
    }
    engine.audit().unwrap();
    let counters = class(&mut engine, Time(MILLI), 0);
    let counted = counters.criteria.iter().map(|criterion| {
        assert_eq!(criterion.bytes % criterion.packets, 0, "packets of one length");
        criterion.packets
    });
    (counters.packets, counted.collect())
}

/// With match-all, each statement counts all packets of the class; otherwise the first matching one counts a packet.
#[test]
fn class_counts_packets_by_match_statement() {
    let udp = || protocol(ProtocolName::Udp);
    assert_eq!(criteria(match_all(vec![dscp(&[10]), udp()])), (3, vec![3, 3]));
    assert_eq!(criteria(match_all(vec![dscp(&[10, 18])])), (5, vec![5]));
    assert_eq!(criteria(match_any(vec![dscp(&[10]), dscp(&[10, 18]), udp()])), (6, vec![3, 2, 1]));
    assert_eq!(criteria(match_any(vec![dscp(&[18])])), (2, vec![2]));
}

/// Packets of 1000 bytes for 10 s, 800 kb/s, to a class; its drop rate, b/s, with how many were dropped.
fn drops(generation: Generation, dropping: PolicyClass) -> (f64, u64) {
    let mut engine: Engine<u64> =
        common::started(100_000_000, Ethernet, &with_policy(generation, 100_000, vec![dropping]));
    let mut outputs = Vec::new();
    for number in 0..1_000 {
        engine.transmit(Time(number * 10 * MILLI), PORT, common::udp(1_000, 0, Ethernet), 0);
        engine.poll(Time(number * 10 * MILLI), &mut outputs);
    }
    let class = class(&mut engine, Time(10 * SECOND), 0);
    (class.drop_rate_bps, class.drops.police.packets + class.drops.tail.packets)
}

#[test]
fn classic_drop_rate_excludes_policer_drops() {
    for generation in [Classic, Hqf] {
        let (rate, packets) = drops(generation, class_default().police_bps(100_000));
        assert!(packets > 500, "{generation:?}: {packets} of 1000 packets dropped");
        assert_eq!(rate > 0.0, generation == Hqf, "{generation:?}: {rate} b/s by a policer");
        let (rate, packets) = drops(generation, class_default().shape_bps(100_000));
        assert!(packets > 500, "{generation:?}: {packets} of 1000 packets dropped");
        assert!(rate > 0.0, "{generation:?}: {rate} b/s by a shaper");
    }
}

/// Each class of service is in the class that asks for it, and in no other.
#[test]
fn match_cos_matches_only_its_value() {
    for asked in 0..8u8 {
        let config = with_policy(Hqf, 100_000, vec![class_of("it")]).class_map("it", match_all(vec![cos(&[asked])]));
        let mut engine: Engine<u64> = common::started(100_000_000, Ethernet, &config);
        for cos in 0..8u8 {
            let packet = frame::parse(&frames::tagged(&frames::udp(100, 0, 1, 2), cos, 10), Ethernet);
            engine.transmit(Time(u64::from(cos) * MILLI), PORT, packet, 0);
            let found = class(&mut engine, Time(u64::from(cos) * MILLI), 0).packets;
            assert_eq!(found, u64::from(cos >= asked), "cos {asked} was asked for, {cos} came");
        }
    }
}

/// A class reports its bandwidth in the configured unit, and in kb/s if they follow from it.
#[test]
fn class_shows_bandwidth_as_configured() {
    for (asked, expected) in [
        (BandwidthConfig::Kbps(500), (Some(500), None, None, None)),
        (BandwidthConfig::Percent(40), (Some(40_000), Some(40), None, None)),
        (BandwidthConfig::RemainingPercent(40), (None, None, Some(40), None)),
        (BandwidthConfig::RemainingRatio(7), (None, None, None, Some(7))),
    ] {
        let mut engine: Engine<u64> = common::engine(100_000_000, Ethernet);
        engine.configure(Time(0), &with_policy(Hqf, 100_000, vec![class_of("c1").bandwidth(asked)])).unwrap();
        let bandwidth = class(&mut engine, Time(0), 0).bandwidth.unwrap();
        let found = (bandwidth.kbps, bandwidth.percent, bandwidth.remaining_percent, bandwidth.remaining_ratio);
        assert_eq!(found, expected, "{asked:?}");
        let resolved = engine.resolve().policy_maps["P"].classes[0].bandwidth.unwrap();
        let percent = (resolved.percent, resolved.remaining_percent, resolved.remaining_ratio);
        assert_eq!(percent, (expected.1, expected.2, expected.3), "{asked:?}");
        assert_eq!(resolved.kbps, expected.0.filter(|_| expected.1.is_none()), "no interface, so no base: {asked:?}");
    }
}

/// Thresholds in milliseconds refer to a rate, which a policy-map without an interface does not have.
#[test]
fn thresholds_in_milliseconds_are_resolved_only_on_an_interface() {
    for (unit, without, rows) in [(LimitUnit::Packets, 8, 8), (LimitUnit::Bytes, 8, 8), (LimitUnit::Ms, 0, 8)] {
        let red = red_by_precedence().unit(unit).row(0, 100, 200, None);
        let classes = vec![class_of("c1").kbps(500).random_detect(red)];
        let mut engine: Engine<u64> = common::started(100_000_000, Ethernet, &with_policy(Hqf, 100_000, classes));
        let resolved = engine.resolve().policy_maps["P"].classes[0].random_detect.clone().unwrap();
        assert_eq!(resolved.classes.len(), without, "{unit:?}");
        let found = class(&mut engine, Time(0), 0).random_detect.unwrap();
        assert_eq!(found.classes.len(), rows, "{unit:?}");
    }
}
