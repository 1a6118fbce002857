//! ATM links: cells on the line, counted bytes, the transmit ring in particles, and the traffic contract of a virtual
//! circuit. The values are arithmetic: a cell has 53 bytes, 48 of them payload.

use crate::common::build::*;
use crate::common::{self, class, configuration, departures, offer, udp, with_policy, PORT, SECOND};
use qos_core::wire::Framing;
use qos_core::{Engine, Time};

/// A configuration without a policy and with a changed interface.
fn plain_circuit(change: impl FnOnce(&mut InterfaceConfig)) -> RouterConfig {
    let mut port = interface(2_000, None, None);
    change(&mut port);
    configuration(Hqf, Maps::new(), port)
}

/// The traffic contract of a circuit without its own burst.
fn circuit(peak_bps: u64, sustainable_bps: Option<u64>) -> Option<VirtualCircuitConfig> {
    Some(VirtualCircuitConfig { peak_bps, sustainable_bps, burst_cells: None })
}

/// Packets a second that a link of 2 Mb/s carries, of `ip_len` bytes.
fn packets_a_second(ip_len: usize, framing: Framing) -> usize {
    let mut engine: Engine<u64> = common::started(2_000_000, framing, &plain_circuit(|_| ()));
    let outputs = offer(&mut engine, udp(ip_len, 0, framing), 100_000, Time(0), Time(10 * SECOND));
    let end = Time(10 * SECOND);
    departures(&outputs).iter().filter(|(time, ..)| *time <= end).count() / 10
}

#[test]
fn short_packets_take_whole_cells() {
    // 64 + 8 + 8 bytes are two cells: 2000000 / (2 * 53 * 8).
    assert_eq!(packets_a_second(64, Framing::Aal5snap), 2_358);
    // 40 + 8 are one, with LLC/SNAP 56 are two.
    assert_eq!(packets_a_second(40, Framing::Aal5mux), 4_716);
    assert_eq!(packets_a_second(40, Framing::Aal5snap), 2_358);
    // 1500 + 16 are 32 cells.
    assert_eq!(packets_a_second(1_500, Framing::Aal5snap), 147);
}

/// Cisco's document 10420: of 60 bytes of IP with LLC/SNAP 72 are counted, and no cell.
#[test]
fn counters_include_encapsulation_and_exclude_cells() {
    let mut engine: Engine<u64> =
        common::started(2_000_000, Framing::Aal5snap, &with_policy(Classic, 2_000, vec![class_default()]));
    let descriptor = udp(60, 0, Framing::Aal5snap);
    offer(&mut engine, descriptor, SECOND / 50, Time(0), Time(SECOND));
    let counted = class(&mut engine, Time(SECOND), 0);
    assert_eq!((counted.packets, counted.bytes), (50, 50 * 72));
    assert_eq!(descriptor.line_len, 106);
}

/// A packet of 1500 bytes takes three particles of 576, so that a ring of 3 holds one more than that on the line.
#[test]
fn tx_ring_limit_counts_particles() {
    for (limit, ip_len, particles, packets) in [
        (Some(3), 1_500, 3, 1),
        (Some(6), 1_500, 6, 2),
        (Some(3), 500, 3, 3),
        (Some(4), 1_100, 4, 2),
        // With the eight bytes of LLC/SNAP exactly one cell, and just more than one.
        (Some(2), 568, 2, 2),
        (Some(2), 569, 2, 1),
    ] {
        let mut engine: Engine<u64> =
            common::started(2_000_000, Framing::Aal5snap, &plain_circuit(|port| port.tx_ring_limit = limit));
        let descriptor = udp(ip_len, 0, Framing::Aal5snap);
        for number in 0..200 {
            engine.transmit(Time(0), PORT, descriptor, number);
        }
        let counters = engine.counters(Time(1), None);
        let port = &counters.interfaces["Out"];
        assert_eq!((port.tx_ring.limit, port.tx_ring.depth), (limit.unwrap(), particles));
        // One is on the line, 40 are in the queue.
        assert_eq!(200 - port.queue.drops - 40 - 1, packets);
        engine.audit().unwrap();
    }
}

/// The circuit sends a burst at its peak rate, then at the rate that it may sustain.
#[test]
fn virtual_circuit_keeps_its_traffic_contract() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Framing::Aal5snap);
    let contract =
        VirtualCircuitConfig { peak_bps: 2_000_000, sustainable_bps: Some(1_000_000), burst_cells: Some(320) };
    let config = plain_circuit(|port| (port.virtual_circuit, port.hold_queue_out) = (Some(contract), Some(1_000)));
    engine.configure(Time(0), &config).unwrap();
    // 32 cells each.
    let descriptor = udp(1_500, 0, Framing::Aal5snap);
    for number in 0..100 {
        engine.transmit(Time(0), PORT, descriptor, number);
    }
    let mut outputs = Vec::new();
    common::run(&mut engine, Time(10 * SECOND), &mut outputs);
    let ends: Vec<u64> = departures(&outputs).iter().map(|(time, ..)| time.0).collect();
    assert_eq!(ends.len(), 100);
    let cell = 53 * 8 * SECOND / 2_000_000;
    assert_eq!(ends[9], 320 * cell);
    assert_eq!(ends[99], 320 * cell + 90 * 32 * 2 * cell);
}

/// Seconds of a measurement: long enough to distinguish one byte in a packet.
const MEASURED: u64 = 50;

/// Bytes a second that leave through a shaper of 1 Mb/s, in packets of `ip_len` bytes on Ethernet.
fn shaped_circuit(account: Option<AccountConfig>, ip_len: usize) -> u64 {
    let class = PolicyClass { account, ..class_default().shape_bps(1_000_000) };
    let mut engine: Engine<u64> =
        common::started(100_000_000, Framing::Ethernet, &with_policy(Hqf, 100_000, vec![class]));
    let descriptor = udp(ip_len, 0, Framing::Ethernet);
    // More than can leave: at most 83 long packets or 2358 short ones per second.
    let gap_ns = (ip_len as u64 * 1_000).max(300_000);
    let outputs = offer(&mut engine, descriptor, gap_ns, Time(0), Time((10 + MEASURED) * SECOND));
    let within = |time: &Time| (Time(10 * SECOND)..Time((10 + MEASURED) * SECOND)).contains(time);
    let packets = departures(&outputs).iter().filter(|(time, ..)| within(time)).count() as u64;
    engine.audit().unwrap();
    packets * u64::from(descriptor.counted_len) / MEASURED
}

/// A shaper counts as `account` configures, to within two packets.
#[test]
fn shaper_uses_the_accounted_length() {
    use AccessEncapsulation::{Dot1q, Qinq};
    use SubscriberEncapsulation::{MuxRouted, SnapDot1qRbe, SnapPppoa};
    let line = |access, subscriber| Some(AccountConfig::Aal5(SubscriberLineAccount { access, subscriber }));
    for (account, ip_len, taken) in [
        (None, 1_500, 1_514),
        (Some(user_defined(24, false)), 1_500, 1_538),
        (Some(user_defined(-14, false)), 1_500, 1_500),
        // 1514 + 2 bytes are 32 cells, 54 are 2.
        (Some(user_defined(2, true)), 1_500, 32 * 53),
        (Some(user_defined(0, true)), 40, 2 * 53),
        // 1514 - 18 + 12 = 1508, and 1514 - 22 + 36 = 1528.
        (line(Dot1q, SnapPppoa), 1_500, 32 * 53),
        (line(Qinq, SnapDot1qRbe), 1_500, 32 * 53),
        // 1514 - 18 + 8 = 1504; 54 - 18 + 8 = 44.
        (line(Dot1q, MuxRouted), 40, 53),
    ] {
        let counted = ip_len as u64 + 14;
        let expected = 125_000 * counted / taken;
        let measured = shaped_circuit(account, ip_len);
        assert!(
            measured.abs_diff(expected) <= 2 * counted / MEASURED + 1,
            "{account:?}: {measured} B/s, not {expected}"
        );
    }
}

/// Two classes with the same part of the line: in cells a short packet takes more of it.
#[test]
fn bandwidth_shares_use_the_accounted_length() {
    let packets = |account: Option<AccountConfig>, parts: [u32; 2]| {
        let class = |name, part| PolicyClass { account, ..class_of(name).remaining_percent(part) };
        let config = with_policy(Hqf, 10_000, vec![class("c1", parts[0]), class("c2", parts[1])]);
        let mut engine: Engine<usize> = common::started(10_000_000, Framing::Ethernet, &config);
        let source = |ip_len, dscp, gap_ns| common::Source { ip_len, dscp, flow: 0, gap_ns };
        let sources = [source(60, 1, 50_000), source(1_500, 2, 500_000)];
        let outputs = common::load(&mut engine, Framing::Ethernet, &sources, Time(10 * SECOND));
        let left = departures(&outputs);
        [0, 1].map(|source| left.iter().filter(|(_, payload, _)| *payload == source).count() as f64)
    };
    let ratio = |[short, long]: [f64; 2]| short / long;
    let plain = ratio(packets(None, [45, 45]));
    assert!((plain - 1_514.0 / 74.0).abs() < 0.2, "{plain}");
    // 74 bytes take 2 cells, 1514 take 32.
    for (parts, expected) in [([45, 45], 16.0), ([30, 60], 8.0), ([60, 20], 48.0)] {
        let cells = ratio(packets(Some(user_defined(0, true)), parts));
        assert!((cells / expected - 1.0).abs() < 0.0125, "{cells} instead of {expected}");
    }
}

#[test]
fn account_offset_out_of_range_is_refused() {
    for offset in [-64, 64] {
        let class = class_default().shape_bps(1_000_000).account(user_defined(offset, false));
        let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
        let error = engine.configure(Time(0), &with_policy(Hqf, 100_000, vec![class])).unwrap_err();
        assert_eq!(error.path, "policy_maps.P.classes[0].account.user_defined.offset");
    }
}

#[test]
fn settings_that_do_not_fit_the_link_are_refused() {
    use Framing::{Aal5mux, Aal5snap, Ethernet, Ppp, PppoaMux, Pppoe, PppoeoaSnap};
    let configured = |framing, change: &dyn Fn(&mut InterfaceConfig)| {
        common::engine::<u64>(2_000_000, framing).configure(Time(0), &plain_circuit(change))
    };
    let refused = |framing, change: &dyn Fn(&mut InterfaceConfig), path: &str| {
        let error = configured(framing, change).unwrap_err();
        assert_eq!(error.path, format!("interfaces.Out.{path}"), "{error}");
    };
    for (framing, other) in [(Aal5snap, Aal5mux), (Aal5snap, Ethernet), (Aal5mux, Aal5snap), (Ppp, Aal5snap)] {
        refused(framing, &|port| port.encapsulation = Some(other), "encapsulation");
    }
    refused(Aal5snap, &|port| port.clock_rate_bps = Some(1_000_000), "clock_rate_bps");
    refused(Ppp, &|port| port.virtual_circuit = circuit(1, None), "virtual_circuit");
    refused(Aal5snap, &|port| port.virtual_circuit = circuit(0, None), "virtual_circuit.peak_bps");
    refused(Aal5snap, &|port| port.virtual_circuit = circuit(5, Some(6)), "virtual_circuit.sustainable_bps");
    for (framing, other) in [(PppoeoaSnap, Aal5snap), (PppoaMux, PppoaMux), (Pppoe, Ethernet)] {
        configured(framing, &|port| port.encapsulation = Some(other)).unwrap();
    }
}
