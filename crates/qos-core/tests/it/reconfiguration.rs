//! State that a router keeps, and state that restarts, with a new configuration.

use crate::common::build::*;
use crate::common::{self, with_policy, MILLI, PORT, SECOND};
use qos_core::wire::Framing::Ethernet;
use qos_core::{Engine, PortId, RouterConfig, Time};

fn router(config: &RouterConfig) -> Engine<u64> {
    common::started(100_000_000, Ethernet, config)
}

/// Packets in transit to these ports, at an instant.
fn send(engine: &mut Engine<u64>, at: u64, ports: &[u16]) {
    for port in ports {
        let packet = common::datagram(100, 0, 1, *port, Ethernet);
        engine.transmit(Time(at), PORT, packet, 0);
    }
    let mut outputs = Vec::new();
    common::run(engine, Time(at + MILLI), &mut outputs);
}

fn hits(engine: &mut Engine<u64>, list: &str) -> Vec<u64> {
    engine.counters(Time(SECOND), None).access_lists[list].iter().map(|entry| entry.packets).collect()
}

fn matched_packets(engine: &mut Engine<u64>) -> u64 {
    common::class(engine, Time(SECOND), 0).packets
}

/// The list `low` has packets to ports below 5000; a class has those of the list.
fn policy_with_low_rate() -> RouterConfig {
    with_policy(Hqf, 100_000, vec![class_of("low").set(SetField::Dscp, 10)])
}

fn policy_below(config: &RouterConfig, port: u16) -> RouterConfig {
    let low = config.access_lists["low"][0].clone();
    let below = AccessListEntry { destination_port: ports(PortOperator::Lt, &[port]), ..low };
    config.clone().access_list("low", vec![below])
}

#[test]
fn unchanged_access_list_keeps_counting_and_a_changed_one_restarts() {
    let config = policy_with_low_rate();
    let mut engine = router(&config);
    send(&mut engine, 0, &[4_999, 5_000, 4_000]);
    assert_eq!((hits(&mut engine, "low"), matched_packets(&mut engine)), (vec![2], 2));

    engine.configure(Time(2 * MILLI), &config).unwrap();
    send(&mut engine, 2 * MILLI, &[4_999, 5_000]);
    assert_eq!((hits(&mut engine, "low"), matched_packets(&mut engine)), (vec![3], 3));

    engine.configure(Time(4 * MILLI), &policy_below(&config, 6_000)).unwrap();
    assert_eq!(hits(&mut engine, "low"), [0]);
    send(&mut engine, 4 * MILLI, &[5_000, 6_000]);
    assert_eq!((hits(&mut engine, "low"), matched_packets(&mut engine)), (vec![1], 4));
    engine.audit().unwrap();
}

#[test]
fn replacement_access_list_has_its_own_entries() {
    let low = policy_with_low_rate();
    let high =
        AccessListEntry { destination_port: ports(PortOperator::Gt, &[7_000]), ..low.access_lists["low"][0].clone() };
    let two = low.access_list("high", vec![high]);
    let mut engine = router(&two);
    send(&mut engine, 0, &[4_999, 7_001, 7_002]);
    assert_eq!((hits(&mut engine, "high"), hits(&mut engine, "low")), (vec![0], vec![1]), "nobody asks the first");

    // If the first of them, in the order of their names, is removed, the second does not change.
    let mut one = two.clone();
    one.access_lists.remove("high");
    engine.configure(Time(2 * MILLI), &one).unwrap();
    send(&mut engine, 2 * MILLI, &[4_999, 7_001]);
    assert_eq!((hits(&mut engine, "low"), matched_packets(&mut engine)), (vec![2], 2));

    // Another name may get the number of the removed one.
    let mut third = one.clone();
    third.access_lists.insert("aside".into(), two.access_lists["high"].clone());
    engine.configure(Time(4 * MILLI), &third).unwrap();
    send(&mut engine, 4 * MILLI, &[4_999, 7_001]);
    assert_eq!(
        (hits(&mut engine, "aside"), hits(&mut engine, "low"), matched_packets(&mut engine)),
        (vec![0], vec![3], 3)
    );
}

/// Rates are shown as of the load interval that is in force.
#[test]
fn unchanged_policy_gets_the_new_load_interval() {
    let config = policy_with_low_rate();
    let mut other = config.clone();
    other.interfaces.get_mut("Out").unwrap().load_interval_s = 600;
    let rate = |configurations: [&RouterConfig; 2]| {
        let mut engine = router(configurations[0]);
        engine.configure(Time(0), configurations[1]).unwrap();
        for at in 0..60 {
            send(&mut engine, at * SECOND, &[4_000; 10]);
        }
        common::class(&mut engine, Time(60 * SECOND), 0).offered_rate_bps
    };
    let (short, long) = (rate([&config, &config]), rate([&other, &other]));
    assert!(short > 4.0 * long, "{short} after two intervals of 30 s, {long} after a tenth of one of 600 s");
    assert_eq!((rate([&other, &config]), rate([&config, &other])), (short, long));
}

/// The same for the policy of what comes in.
#[test]
fn unchanged_input_policy_keeps_its_state() {
    let configured = |load_interval_s: u32, bps: u64| {
        let policies = maps([("P", vec![class_default().police_bps(bps)])]);
        let mut port = interface(100_000, Some("P"), None);
        port.load_interval_s = load_interval_s;
        common::configuration(Hqf, policies, port)
    };
    let packets = |engine: &mut Engine<u64>| {
        let counters = common::out(engine, Time(SECOND));
        counters.policy_input.unwrap().classes[0].packets
    };
    let mut engine = router(&configured(30, 1_000_000));
    let mut outputs = Vec::new();
    let mut come = |engine: &mut Engine<u64>, at: u64| {
        engine.receive(Time(at), PortId(0), common::udp(100, 0, Ethernet), 0);
        common::run(engine, Time(at + MILLI), &mut outputs);
    };
    come(&mut engine, 0);
    assert_eq!(packets(&mut engine), 1);
    for (number, load_interval_s) in [30, 60].into_iter().enumerate() {
        let at = (2 * number as u64 + 2) * MILLI;
        engine.configure(Time(at), &configured(load_interval_s, 1_000_000)).unwrap();
        come(&mut engine, at);
        assert_eq!(packets(&mut engine), 2 + number as u64);
    }
    engine.configure(Time(8 * MILLI), &configured(60, 2_000_000)).unwrap();
    come(&mut engine, 8 * MILLI);
    assert_eq!(packets(&mut engine), 1, "another policer is another policy");
}

/// The kind of a policer decides on its counters.
#[test]
fn policer_shows_only_its_own_parameters() {
    let shown = |police: PoliceConfig| {
        let class = vec![class_default().police(police)];
        let police = common::class(&mut router(&with_policy(Hqf, 100_000, class)), Time(0), 0).police.unwrap();
        (police.bc_bytes, police.pir_bps, police.be_bytes, police.violated.is_some())
    };
    let mut police = police(800_000).bytes(9_000);
    assert_eq!(shown(police.clone()), (9_000, None, None, false));
    police.be = Some(PoliceBurst::Bytes(7_000));
    police.violate = Some(vec![PoliceAction::Drop {}]);
    assert_eq!(shown(police.clone()), (9_000, None, Some(7_000), true));
    police.pir = Some(RateSpec::Bps(1_600_000));
    assert_eq!(shown(police), (9_000, Some(1_600_000), Some(7_000), true));
}
