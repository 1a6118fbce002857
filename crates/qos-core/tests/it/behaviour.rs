//! Treatment of packets and configurations by a router.

use crate::common::build::*;
use crate::common::{self, class, configuration, departures, out, run, udp, with_policy, MILLI, PORT, SECOND};
use qos_core::counters::{Count, Strategy};
use qos_core::wire::Framing;
use qos_core::{DropReason, Engine, Output, RouterConfig, Side, Time};

fn plain_policy(bandwidth_kbps: u64) -> InterfaceConfig {
    interface(bandwidth_kbps, None, None)
}

fn without_policy(interface: InterfaceConfig) -> RouterConfig {
    configuration(Classic, Maps::new(), interface)
}

fn frame(dscp: u8, source: u16, destination: u16, framing: Framing) -> qos_core::Descriptor {
    common::datagram(200, dscp, source, destination, framing)
}

#[test]
fn default_queueing_follows_bandwidth_and_encapsulation() {
    let strategy = |rate, framing, interface| {
        let mut engine: Engine<u64> = common::started(rate, framing, &without_policy(interface));
        let out = out(&mut engine, Time(0));
        (out.queue.strategy, out.queue.limit, out.queue.max_conversations, out.tx_ring.limit)
    };
    use Framing::{Ethernet, Hdlc, Ppp};
    assert_eq!(strategy(100_000_000, Ethernet, plain_policy(100_000)), (Strategy::Fifo, 40, None, 64));
    assert_eq!(strategy(1_000_000_000, Ethernet, plain_policy(1_000_000)), (Strategy::Fifo, 40, None, 128));
    assert_eq!(strategy(512_000, Ppp, plain_policy(512)), (Strategy::WeightedFair, 1000, Some(128), 2));
    assert_eq!(strategy(2_048_000, Hdlc, plain_policy(2_048)), (Strategy::WeightedFair, 1000, Some(256), 2));
    assert_eq!(strategy(4_000_000, Ppp, plain_policy(4_000)), (Strategy::Fifo, 40, None, 128));
    let fifo = InterfaceFairQueue { enabled: false, ..fair_queue() };
    let no_fair_queue = InterfaceConfig { fair_queue: Some(fifo), ..plain_policy(512) };
    assert_eq!(strategy(512_000, Ppp, no_fair_queue), (Strategy::Fifo, 40, None, 128));
    let limited = InterfaceConfig { tx_ring_limit: Some(5), hold_queue_out: Some(99), ..plain_policy(512) };
    assert_eq!(strategy(512_000, Ppp, limited), (Strategy::WeightedFair, 99, Some(128), 5));

    // A policy that does not queue leaves it alone; one that does replaces it.
    let mut engine: Engine<u64> = common::engine(512_000, Ppp);
    engine.configure(Time(0), &with_policy(Classic, 512, vec![class_default().police_bps(64_000)])).unwrap();
    assert_eq!(out(&mut engine, Time(0)).queue.strategy, Strategy::WeightedFair);
    engine.configure(Time(0), &with_policy(Classic, 512, vec![class_default().shape_bps(64_000)])).unwrap();
    assert_eq!(out(&mut engine, Time(0)).queue.strategy, Strategy::ClassBased);
}

#[test]
fn full_fifo_drops_arriving_packets() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Framing::Ethernet);
    engine
        .configure(Time(0), &without_policy(InterfaceConfig { tx_ring_limit: Some(3), ..plain_policy(10_000) }))
        .unwrap();
    for packet in 0..100 {
        engine.transmit(Time(0), PORT, udp(1500, 0, Framing::Ethernet), packet);
    }
    let out = out(&mut engine, Time(0));
    // One on the wire, 3 in the ring, 40 in the queue.
    assert_eq!((out.output.packets, out.tx_ring.depth, out.queue.depth, out.queue.drops), (1, 3, 40, 56));
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let sent: Vec<_> = departures(&outputs).iter().map(|(_, packet, _)| *packet).collect();
    assert_eq!(sent, (0..44).collect::<Vec<_>>());
    assert_eq!(engine.totals(PORT, Side::Wire).dropped[DropReason::Tail as usize].packets, 56);
}

/// A packet that comes to a saturated line waits for the rest of the frame on the wire and for the ring: at most N + 1
/// frames.
#[test]
fn tx_ring_holds_packets_in_addition_to_the_one_on_the_wire() {
    for (rate, ring) in [(512_000, 2), (512_000, 5), (512_000, 10), (128_000, 1), (128_000, 2), (128_000, 5)] {
        let mut engine: Engine<u64> = common::engine(rate, Framing::Ppp);
        let port =
            InterfaceConfig { tx_ring_limit: Some(ring), clock_rate_bps: Some(rate), ..plain_policy(rate / 1_000) };
        engine.configure(Time(0), &without_policy(port)).unwrap();
        let mut outputs = Vec::new();
        let flood = udp(200, 0, Framing::Ppp);
        let probe = common::datagram(40, 46, 1, 2, Framing::Ppp);
        for tick in 0..20_000u64 {
            let now = Time(tick * MILLI + tick % 37 * 26_000);
            engine.poll(now, &mut outputs);
            engine.transmit(now, PORT, flood, 0);
            if tick % 500 == 499 {
                // The packet has precedence 5 and is small, so weighted fair queueing serves it next.
                engine.transmit(now, PORT, probe, now.0);
            }
        }
        run(&mut engine, Time(40 * SECOND), &mut outputs);
        let line = |bytes: u64| bytes * 8 * SECOND / rate;
        let waits: Vec<_> =
            departures(&outputs).iter().filter(|(_, sent, _)| *sent > 0).map(|(time, sent, _)| time.0 - sent).collect();
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        let ring = u64::from(ring);
        assert!(waits.len() >= 35, "{waits:?}");
        assert!(*least >= ring * line(207) + line(47) - MILLI, "ring {ring} at {rate}: least {least}");
        assert!(*most <= (ring + 1) * line(207) + line(47) + 1_000, "ring {ring} at {rate}: most {most}");
        assert!(*most >= (ring + 1) * line(207) + line(47) - line(207) / 4, "ring {ring} at {rate}: most {most}");
    }
}

/// A published run: `police cir 1000000` conformed 1394 packets with 1992832 bytes and exceeded 673 with 1005594.
#[test]
fn policer_conforms_and_exceeds_as_published() {
    let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
    let police = vec![class_default().police_bps(1_000_000)];
    engine.configure(Time(0), &with_policy(Classic, 100_000, police)).unwrap();
    // The conformed bytes are the burst plus the rate: they give the duration, and with it the offered rate.
    let length = (1_992_832 - 31_250) * 8 * SECOND / 1_000_000;
    let mut offered = 0;
    let mut packets = 0;
    while offered < 1_992_832 + 1_005_594 {
        // Writes of 8 KB over segments of 1460 bytes, occasionally a short one; acknowledgements of the data come in
        // pairs.
        let ip_len = if packets % 11 == 10 { 848 } else { 1500 };
        let at = Time(length * offered / (1_992_832 + 1_005_594));
        engine.transmit(at, PORT, udp(ip_len, 0, Framing::Ethernet), packets);
        offered += ip_len as u64 + 14;
        packets += 1;
    }
    let class = class(&mut engine, Time(length), 0);
    let police = class.police.unwrap();
    assert_eq!(police.bc_bytes, 31_250);
    assert_eq!(police.conformed.packets + police.exceeded.packets, packets);
    assert!(packets.abs_diff(1394 + 673) < 10, "{packets} packets");
    assert!(police.conformed.bytes.abs_diff(1_992_832) < 2 * 1_514, "{police:?}");
    assert!(police.exceeded.bytes.abs_diff(1_005_594) < 2 * 1_514, "{police:?}");
    assert!(police.exceeded.packets.abs_diff(673) < 673 / 20, "{police:?}");
    assert_eq!(class.drops.police, Count { packets: police.exceeded.packets, bytes: police.exceeded.bytes });
    // The classic generation shows no drop rate for drops of its policer.
    assert_eq!(class.drop_rate_bps, 0.0);
    assert!(class.offered_rate_bps > 500_000.0);
}

#[test]
fn unchanged_policy_keeps_its_state_and_a_changed_one_restarts() {
    let police = |bps: u64| vec![class_default().police_bps(bps)];
    let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
    let config = with_policy(Classic, 100_000, police(8_000));
    engine.configure(Time(0), &config).unwrap();
    let send = |engine: &mut Engine<u64>| engine.transmit(Time(0), PORT, udp(1400, 0, Framing::Ethernet), 0);
    send(&mut engine);
    send(&mut engine);
    let conformed = |engine: &mut Engine<u64>| {
        let class = class(engine, Time(0), 0);
        (class.packets, class.police.unwrap().conformed.packets)
    };
    assert_eq!(conformed(&mut engine), (2, 1));

    // Another part changes: an access list, a class-map, the load interval.
    let mut other = config.clone();
    other.access_lists.get_mut("low").unwrap().clear();
    other.class_maps.remove("af");
    other.interfaces.get_mut("Out").unwrap().load_interval_s = 60;
    engine.configure(Time(0), &other).unwrap();
    send(&mut engine);
    assert_eq!(conformed(&mut engine), (3, 1));

    engine.clear(Time(0), None);
    assert_eq!(conformed(&mut engine), (0, 0));
    send(&mut engine);
    assert_eq!(conformed(&mut engine), (1, 0), "the bucket is still empty");

    engine.configure(Time(0), &with_policy(Classic, 100_000, police(16_000))).unwrap();
    send(&mut engine);
    assert_eq!(conformed(&mut engine), (1, 1));
    engine.audit().unwrap();
}

#[test]
fn waiting_packets_move_to_the_new_policy() {
    let shape = vec![class_default().shape_bps(64_000)];
    let mut engine: Engine<u64> = common::started(100_000_000, Framing::Ethernet, &with_policy(Hqf, 100_000, shape));
    for packet in 0..50 {
        engine.transmit(Time(0), PORT, udp(1400, 0, Framing::Ethernet), packet);
    }
    assert_eq!(class(&mut engine, Time(0), 0).queue.unwrap().depth_packets, 49);
    let low = vec![class_of("low").queue_limit(30), class_of("udp").shape_bps(128_000).queue_limit(20)];
    engine.configure(Time(0), &with_policy(Hqf, 100_000, low)).unwrap();
    let moved = class(&mut engine, Time(0), 1);
    assert_eq!(moved.packets, 49, "what waits counts as offered to the new policy");
    assert_eq!((moved.queue.unwrap().depth_packets, moved.drops.tail.packets), (19, 29));
    engine.audit().unwrap();

    // Without a policy everything leaves at the line rate.
    engine.configure(Time(0), &without_policy(plain_policy(100_000))).unwrap();
    let mut outputs = Vec::new();
    run(&mut engine, Time(10 * MILLI), &mut outputs);
    assert_eq!(departures(&outputs).len(), 21);
    assert_eq!(outputs.len(), 50);
}

#[test]
fn shut_down_interface_drops_everything() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Framing::Ethernet);
    for packet in 0..10 {
        engine.transmit(Time(0), PORT, udp(1400, 0, Framing::Ethernet), packet);
        engine.receive(Time(0), PORT, udp(1400, 0, Framing::Ethernet), 100 + packet);
    }
    let shut = InterfaceConfig { enabled: false, ..plain_policy(10_000) };
    engine.configure(Time(1), &without_policy(shut)).unwrap();
    engine.transmit(Time(2), PORT, udp(1400, 0, Framing::Ethernet), 10);
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    // The frame that was on the wire arrives.
    assert_eq!(departures(&outputs).iter().map(|(_, packet, _)| *packet).collect::<Vec<_>>(), [0]);
    assert_eq!(outputs.len(), 21);
    let disabled = |side| engine.totals(PORT, side).dropped[DropReason::Disabled as usize].packets;
    assert_eq!((disabled(Side::Inside), disabled(Side::Wire)), (10, 10));
    engine.audit().unwrap();
}

#[test]
fn arriving_frames_are_spaced_at_the_link_rate() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Framing::Ethernet);
    let police = maps([(
        "P",
        vec![class_of("af").set(SetField::QosGroup, 7).set(SetField::Dscp, 46), class_of("udp").police_bps(8_000)],
    )]);
    engine.configure(Time(0), &configuration(Hqf, police, interface(10_000, Some("P"), None))).unwrap();
    let marked = common::datagram(1234, 18, 1, 2, Framing::Ethernet);
    let plain = udp(1234, 0, Framing::Ethernet);
    for (packet, descriptor) in [plain, marked, plain].into_iter().enumerate() {
        engine.receive(Time(0), PORT, descriptor, packet as u64);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let line = 1272 * 8 * 100;
    assert!(matches!(&outputs[0], Output::Departure(d) if d.time == Time(line) && d.side == Side::Inside
            && d.descriptor.dscp == 0));
    assert!(matches!(&outputs[1], Output::Departure(d) if d.time == Time(2 * line)
        && (d.descriptor.dscp, d.descriptor.qos_group, d.descriptor.input_port) == (46, 7, Some(PORT))));
    assert!(matches!(&outputs[2], Output::Dropped(d) if d.time == Time(3 * line) && d.reason == DropReason::Police
            && d.towards == Side::Inside));
    let out = out(&mut engine, Time(SECOND));
    assert_eq!((out.input.packets, out.input.bytes, out.input.drops), (3, 3 * 1248, 1));
    let classes = out.policy_input.unwrap().classes;
    assert_eq!(classes[0].set.iter().map(|set| set.packets).collect::<Vec<_>>(), [1, 1]);
    // The later generation's drop rate includes the policer's drops.
    assert_eq!(classes[1].packets, 2);
}

#[test]
fn classes_are_tried_in_order() {
    let deny_some = AccessListEntry {
        source: address("10.0.10.1", "0.0.0.0"),
        destination_port: ports(PortOperator::Eq, &[5_001, 5_002]),
        ..deny(Some(17))
    };
    let permit_subnet = AccessListEntry {
        source: address("10.0.0.0", "0.0.255.255"),
        destination: address("10.0.20.10", "0.0.0.0"),
        ..permit(None)
    };
    let not_ef = Criterion::Dscp { values: vec![46], ip_only: false, negate: true };
    let config = RouterConfig::new("R1", Hqf)
        .access_list("110", vec![deny_some, permit_subnet])
        .class_map("list", match_all(vec![access_group("110"), not_ef]))
        .class_map("voice", match_any(vec![ip_precedence(&[5, 6]), other_class("small")]))
        .class_map("small", match_all(vec![packet_length(Some(100), Some(250))]))
        .class_map("none", match_any(vec![]))
        .policy_map("P", vec![class_of("none"), class_of("list"), class_of("voice").service_policy("C")])
        .policy_map("C", vec![class_of("small").police_bps(8_000)])
        .interface("Out", interface(100_000, None, Some("P")));
    let mut engine: Engine<u64> = common::started(100_000_000, Framing::Ethernet, &config);
    let ethernet = Framing::Ethernet;
    // Denied by the list, but small enough; permitted; permitted but EF, therefore voice; neither.
    for descriptor in
        [frame(0, 1, 5001, ethernet), frame(0, 1, 80, ethernet), frame(46, 1, 80, ethernet), udp(300, 1, ethernet)]
    {
        engine.transmit(Time(0), PORT, descriptor, 0);
    }
    let counters = engine.counters(Time(0), None);
    let classes = counters.interfaces["Out"].policy_output.clone().unwrap().classes;
    let packets: Vec<_> = classes.iter().map(|class| (class.name.as_str(), class.packets)).collect();
    assert_eq!(packets, [("none", 0), ("list", 1), ("voice", 2), ("class-default", 1)]);
    assert_eq!(classes[2].criteria.iter().map(|criterion| criterion.packets).collect::<Vec<_>>(), [1, 1]);
    let child = classes[2].child.clone().unwrap();
    assert_eq!((child.policy.as_str(), child.classes[0].packets, child.classes[1].packets), ("C", 2, 0));
    assert_eq!(counters.access_lists["110"].iter().map(|entry| entry.packets).collect::<Vec<_>>(), [2, 2]);
    engine.audit().unwrap();
}

#[test]
fn police_percent_refers_to_bandwidth_or_parent_shaper() {
    let cir = |shape: Option<ShapeConfig>| {
        let mut engine: Engine<u64> = common::engine(2_000_000, Framing::Ppp);
        let child = class_default().police(PoliceConfig::new(RateSpec::Percent(10)));
        let parent = PolicyClass { shape, ..class_default().service_policy("C") };
        let config = with_policy(Hqf, 1_544, vec![parent]).policy_map("C", vec![child]);
        engine.configure(Time(0), &config).unwrap();
        let resolved = engine.resolve();
        assert_eq!(resolved.policy_maps["C"].classes[0].police.clone().unwrap().cir_bps, None);
        let police = class(&mut engine, Time(0), 0).child.unwrap().classes[0].police.clone().unwrap();
        (police.cir_bps, police.cir_percent, police.bc_bytes)
    };
    assert_eq!(cir(None), (154_400, Some(10), 4_825));
    assert_eq!(cir(Some(ShapeConfig::average(RateSpec::Percent(50)))), (77_200, Some(10), 2_412));
}

fn valid_configuration() -> RouterConfig {
    with_policy(Classic, 100_000, vec![class_default().police_bps(64_000)])
}

/// Each is refused with a path and a message, and the previous configuration continues.
fn refusal_of(cases: &[(RouterConfig, &str, &str)]) {
    let good = valid_configuration();
    let mut engine: Engine<u64> = common::started(100_000_000, Framing::Ethernet, &good);
    for (config, path, message) in cases {
        let error = engine.configure(Time(0), config).unwrap_err();
        assert_eq!(error.path, *path, "{error}");
        assert!(error.message.contains(message), "{error}");
        assert_eq!(engine.config(), Some(&good));
    }
}

#[test]
fn refused_policy_changes_nothing() {
    let policy = |classes: Vec<PolicyClass>| with_policy(Classic, 100_000, classes);
    let shape = vec![class_default().shape_bps(64_000)];
    let input = configuration(Classic, maps([("P", shape)]), interface(100_000, Some("P"), None));
    refusal_of(&[
        (policy(vec![class_default().police_bps(1)]), "policy_maps.P.classes[0].police.cir", "8000"),
        (policy(vec![class_of("nothing")]), "policy_maps.P.classes[0].name", "no class-map \"nothing\""),
        (policy(vec![class_of("udp"), class_of("udp")]), "policy_maps.P.classes[1].name", "already"),
        (policy(vec![class_of("udp").kbps(76_000)]), "policy_maps.P.classes[0].bandwidth", "75 per cent"),
        (policy(vec![class_of("udp").fair_queue()]), "policy_maps.P.classes[0].fair_queue", "class-default only"),
        (
            policy(vec![class_of("udp").service_policy("P")]),
            "policy_maps.P.classes[0].service_policy",
            "contains itself",
        ),
        (policy(vec![class_of("udp").set(SetField::Dscp, 64)]), "policy_maps.P.classes[0].set[0].value", "0 to 63"),
        (input, "interfaces.Out.service_policy_input", "output only"),
    ]);
}

#[test]
fn refused_interface_changes_nothing() {
    let changed = |change: fn(&mut RouterConfig)| {
        let mut config = valid_configuration();
        change(&mut config);
        config
    };
    refusal_of(&[
        (changed(|c| c.format = 2), "format", "this engine reads 1"),
        (
            changed(|c| c.interfaces.get_mut("Out").unwrap().clock_rate_bps = Some(1)),
            "interfaces.Out.clock_rate_bps",
            "serial",
        ),
        (
            changed(|c| c.interfaces.get_mut("Out").unwrap().load_interval_s = 31),
            "interfaces.Out.load_interval_s",
            "multiple of 30",
        ),
        (
            changed(|c| c.interfaces.get_mut("Out").unwrap().service_policy_input = Some("Q".into())),
            "interfaces.Out.service_policy_input",
            "no policy-map \"Q\"",
        ),
        (changed(|c| c.access_lists.clear()), "class_maps.low.criteria[0].name", "no access list"),
        (
            changed(|c| {
                let out = c.interfaces["Out"].clone();
                c.interfaces.insert("Nowhere".into(), out);
            }),
            "interfaces.Nowhere",
            "it has Out",
        ),
    ]);
}

#[test]
fn malformed_configuration_is_refused_with_its_path() {
    let error = |text: &str| RouterConfig::from_json(text).unwrap_err();
    let head =
        r#"{"format": 1, "router": "R1", "generation": "classic", "policy_maps": {"P": {"classes": [{"name": "x", "#;
    let unknown = error(&format!("{head}\"polise\": null}}]}}}}}}"));
    assert_eq!(unknown.path, "policy_maps.P.classes[0].polise");
    assert!(unknown.message.contains("unknown field `polise`"), "{unknown}");
    let wrong = error(&format!("{head}\"police\": {{\"cir\": {{\"bps\": \"1M\"}}}}}}]}}}}}}"));
    assert_eq!(wrong.path, "policy_maps.P.classes[0].police.cir.bps");
    assert!(error("{").message.contains("EOF"));
    assert!(error("{} {}").path.is_empty());
}
