//! Order, fairness and work conservation of the queues.

use crate::common::build::*;
use crate::common::{self, departures, run, with_policy, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::wire::Framing;
use qos_core::{Engine, Output, RouterConfig, Time};

fn fair_queue_policy(generation: Generation) -> RouterConfig {
    with_policy(generation, 2_000, vec![class_default().fair_queues(4096)])
}

/// Bytes that each flow gets in ten seconds of a 2 Mb/s serial line when each offers packets of its length and code
/// point all the time.
fn shares(config: &RouterConfig, flows: &[(usize, u8)]) -> Vec<u64> {
    let mut engine: Engine<usize> = common::started(2_000_000, Framing::Ppp, config);
    let mut outputs = Vec::new();
    for tick in 0..10_000 {
        let now = Time(tick * MILLI);
        run(&mut engine, now, &mut outputs);
        for (flow, (ip_len, dscp)) in flows.iter().enumerate() {
            let frame = common::datagram(*ip_len, *dscp, 1, 6_000 + 7 * flow as u16, Framing::Ppp);
            engine.transmit(now, PORT, frame, flow);
        }
    }
    let mut bytes = vec![0; flows.len()];
    for (_, flow, counted) in departures(&outputs) {
        bytes[flow] += u64::from(counted);
    }
    bytes
}

proptest! {
    #![proptest_config(crate::bounded::cases(8))]

    /// Each flow gets the same bytes, regardless of packet sizes and precedence.
    #[test]
    fn flows_get_equal_bytes(flows in prop::collection::vec((400usize..1500, 0u8..64), 2..6)) {
        let bytes = shares(&fair_queue_policy(Hqf), &flows);
        let mean = bytes.iter().sum::<u64>() / bytes.len() as u64;
        for flow in &bytes {
            prop_assert!(flow.abs_diff(mean) <= mean / 100 + 3_200, "{bytes:?}");
        }
    }

    /// In the classic generation they get bytes in the ratio of precedence + 1.
    #[test]
    fn conversations_get_weighted_bytes(flows in prop::collection::vec((400usize..1500, 0u8..8), 2..5)) {
        let marked: Vec<_> = flows.iter().map(|(len, precedence)| (*len, precedence << 3)).collect();
        let bytes = shares(&fair_queue_policy(Classic), &marked);
        // A flow that needs less than its share would leave the rest to others: here all flows offer more than the line
        // carries.
        let weights: u64 = flows.iter().map(|(_, precedence)| u64::from(*precedence) + 1).sum();
        let total: u64 = bytes.iter().sum();
        for (flow, (len, precedence)) in bytes.iter().zip(&flows) {
            let share = total * (u64::from(*precedence) + 1) / weights;
            prop_assume!(*len as u64 * 10_000 > share);
            prop_assert!(flow.abs_diff(share) <= share / 20 + 10_000, "{bytes:?} for {flows:?}");
        }
    }
}

/// A TCP-like conversation of precedence 5 against one of precedence 0 on 2 Mb/s: published 1.64 Mb/s with weights, 956
/// kb/s without.
#[test]
fn precedence_counts_in_the_classic_generation_only() {
    let flows = [(1300, 40), (1300, 0)];
    let ratio = |generation: Generation| {
        let bytes = shares(&fair_queue_policy(generation), &flows);
        bytes[0] as f64 / (bytes[0] + bytes[1]) as f64
    };
    assert!((ratio(Classic) - 6.0 / 7.0).abs() < 0.01);
    assert!((ratio(Hqf) - 0.5).abs() < 0.01);
}

/// Limits: 16 packets of a flow and no limit of all in the later generation. In the classic one 64 packets of all
/// conversations, from which on only those are taken that are not the last: of equal flows in turn none is.
#[test]
fn fair_queueing_limits_flows_by_generation() {
    let fill = |generation: Generation, flows: u16, each: usize| {
        let config = with_policy(generation, 2_000, vec![class_default().fair_queues(4096)]);
        let mut engine: Engine<usize> = common::started(2_000_000, Framing::Ppp, &config);
        for packet in 0..each {
            for flow in 0..flows {
                engine.transmit(Time(0), PORT, common::udp(1000, flow, Framing::Ppp), packet);
            }
        }
        engine.audit().unwrap();
        let class = engine.counters(Time(0), None).interfaces["Out"].policy_output.clone().unwrap().classes[0].clone();
        (class.queue.unwrap().depth_packets, class.drops.tail.packets, class.drops.flow.packets)
    };
    // One on the wire, two in the ring.
    assert_eq!(fill(Hqf, 1, 100), (16, 0, 81));
    assert_eq!(fill(Hqf, 10, 100).1, 0);
    assert!(fill(Hqf, 10, 100).0 > 150, "more than the queue limit");
    assert_eq!(fill(Classic, 1, 100), (64, 33, 0));
    let (depth, tail, flow) = fill(Classic, 50, 60);
    assert_eq!((depth + tail, flow), (50 * 60 - 3, 0));
    assert!((64..150).contains(&depth), "{depth}");
}

fn nested_policy() -> RouterConfig {
    let inner = vec![class_of("low").percent(70), class_default().fair_queue()];
    let outer = vec![class_of("udp").percent(30).service_policy("Inner")];
    common::with_policies(Hqf, 2_000, maps([("Inner", inner), ("P", outer)]))
}

fn policies() -> Vec<RouterConfig> {
    vec![
        fair_queue_policy(Hqf),
        fair_queue_policy(Classic),
        with_policy(Hqf, 2_000, vec![class_of("low").queue_limit(20), class_default().fair_queue()]),
        with_policy(Classic, 2_000, vec![class_default().police_bps(1_500_000)]),
        with_policy(Hqf, 2_000, vec![class_of("low").shape_bps(200_000)]),
        with_policy(Hqf, 2_000, vec![class_of("low").priority_percent(20), class_of("udp").percent(30).fair_queue()]),
        with_policy(
            Hqf,
            2_000,
            vec![class_of("low").remaining_ratio(7).random_detect(red_by_precedence().weight(1).row(0, 2, 20, 3))],
        ),
        with_policy(Classic, 2_000, vec![class_of("low").priority_kbps(300), class_default().fair_queue()]),
        with_policy(Classic, 2_000, vec![class_of("low").percent(50)]),
        nested_policy(),
    ]
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// Packets of one flow leave in the order in which they came, and the line never rests while a packet waits that no
    /// shaper holds.
    #[test]
    fn fair_queue_keeps_flow_order_and_is_work_conserving(
        config in prop::sample::select(policies()),
        packets in prop::collection::vec((0u64..6_000_000, 28usize..1500, 0u16..12), 1..300),
    ) {
        let shaped = config.policy_maps["P"].classes.iter().any(|class| class.shape.is_some());
        let mut engine: Engine<usize> = common::started(2_000_000, Framing::Ppp, &config);
        let mut outputs = Vec::new();
        let mut now = 0;
        let (mut arrived, mut flows) = (Vec::new(), Vec::new());
        for (number, (gap, ip_len, flow)) in packets.into_iter().enumerate() {
            now += gap;
            arrived.push(now);
            flows.push(flow);
            // Below and above the class "low".
            let frame = common::datagram(ip_len, 0, 1, 4_994 + flow, Framing::Ppp);
            engine.transmit(Time(now), PORT, frame, number);
        }
        run(&mut engine, Time(now + 3_600 * SECOND), &mut outputs);
        prop_assert_eq!(outputs.len(), arrived.len());
        let departures = departures(&outputs);
        for (index, &(_, number, _)) in departures.iter().enumerate() {
            let overtook = |&(_, later, _): &(_, usize, _)| flows[later] == flows[number] && later > number;
            prop_assert!(!departures[..index].iter().any(overtook));
        }
        if !shaped {
            let mut free = 0;
            for (time, _, counted) in &departures {
                let started = time.0 - u64::from(counted + 3) * 8 * SECOND / 2_000_000;
                if started > free + 1 {
                    // The line was idle, so no packet waited: all earlier ones had left.
                    let came = arrived.iter().filter(|at| **at + 1 < started).count();
                    let left = departures.iter().filter(|(end, ..)| end.0 <= free + 1).count();
                    let dropped = outputs
                        .iter()
                        .filter(|output| matches!(output, Output::Dropped(dropped) if dropped.time.0 < started))
                        .count();
                    prop_assert!(came <= left + dropped, "rested from {free} to {started}");
                }
                free = time.0;
            }
        }
    }
}

/// A flow alone in the queue is charged as well: when another one comes, it has only the rest of its 1600 bytes.
#[test]
fn lone_flow_pays_for_the_round_it_began() {
    let mut config = fair_queue_policy(Hqf);
    config.out().tx_ring_limit = Some(1);
    let mut engine: Engine<usize> = common::started(2_000_000, Framing::Ppp, &config);
    // 400 counted bytes each.
    let packet = |flow: u16| common::udp(396, flow, Framing::Ppp);
    (0..8).for_each(|number| engine.transmit(Time(0), PORT, packet(0), number));
    let mut outputs = Vec::new();
    // The second packet is on the line, and the third, the first that had to wait for the ring, is in the ring.
    run(&mut engine, Time(2 * MILLI), &mut outputs);
    (10..15).for_each(|number| engine.transmit(Time(2 * MILLI), PORT, packet(1), number));
    run(&mut engine, Time(SECOND), &mut outputs);
    let left: Vec<_> = departures(&outputs).into_iter().map(|(_, number, _)| number).collect();
    assert_eq!(left, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 6, 7, 14]);
}
