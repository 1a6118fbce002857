//! Queueing delay of an interface: the time from the arrival of a packet to its start on the line.

use crate::common::build::*;
use crate::common::switch::{self, config, defaults, interface, name};
use crate::common::{self, with_policy, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::QueueingDelayCounters;
use qos_core::wire::Framing;
use qos_core::{Engine, Output, PortId, RouterConfig, Time};

/// A byte takes a microsecond, so no fraction of a nanosecond is about.
const RATE: u64 = 8_000_000;
const BYTE: u64 = 1_000;

fn configurations() -> Vec<Option<RouterConfig>> {
    vec![
        None,
        Some(with_policy(Classic, 8_000, vec![class_default().shape_bps(1_000_000)])),
        Some(with_policy(Classic, 8_000, vec![class_default().fair_queues(16)])),
        Some(with_policy(Hqf, 8_000, vec![class_default().police_bps(2_000_000)])),
        Some(with_policy(
            Hqf,
            8_000,
            vec![
                class_of("low").priority_kbps(500),
                class_of("af").shape_bps(600_000).queue_limit(9),
                class_default().fair_queues(16),
            ],
        )),
    ]
}

fn shown_delay(engine: &mut Engine<usize>, now: Time) -> Option<QueueingDelayCounters> {
    let port = engine.counters(now, Some(PORT)).interfaces["Out"].clone();
    assert_eq!(port.queueing_delay.map_or(0, |delay| delay.packets), port.output.packets);
    port.queueing_delay
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// Each departure has the start time of its packet, so the single waits are known.
    #[test]
    fn queueing_delay_runs_from_arrival_to_the_start_on_the_line(
        config in prop::sample::select(configurations()),
        packets in prop::collection::vec(
            (prop_oneof![Just(0), 0u64..20 * MILLI], 28usize..1_500, 0u16..20, prop::sample::select(vec![0u8, 10])),
            1..250),
        naps in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        let mut engine: Engine<usize> = common::engine(RATE, Framing::Ppp);
        if let Some(config) = &config {
            engine.configure(Time(0), config).unwrap();
        }
        prop_assert_eq!(shown_delay(&mut engine, Time(0)), None);
        let (mut now, mut outputs) = (0, Vec::new());
        let mut arrivals = Vec::new();
        for (number, (gap, ip_len, flow, dscp)) in packets.into_iter().enumerate() {
            now += gap;
            if naps[number % naps.len()] {
                engine.poll(Time(now), &mut outputs);
            }
            let descriptor = common::datagram(ip_len, dscp, 1, 4_990 + flow, Framing::Ppp);
            engine.transmit(Time(now), PORT, descriptor, number);
            arrivals.push((now, descriptor.line_len));
        }
        let end = Time(now + 3_600 * SECOND);
        common::run(&mut engine, end, &mut outputs);
        let mut waits: Vec<u64> = common::departures(&outputs)
            .into_iter()
            .map(|(left, number, _)| left.0 - u64::from(arrivals[number].1) * BYTE - arrivals[number].0)
            .collect();
        waits.sort_unstable();
        let delay = shown_delay(&mut engine, end);
        let Some(delay) = delay else { return Err(TestCaseError::fail("the first packet always leaves")) };
        let count = waits.len();
        prop_assert_eq!(delay.packets, count as u64);
        prop_assert_eq!(delay.mean_ns, waits.iter().sum::<u64>() / count as u64);
        prop_assert_eq!(delay.max_ns, waits[count - 1]);
        for (shown, percent) in [(delay.p50_ns, 50), (delay.p99_ns, 99)] {
            let exact = waits[(count * percent).div_ceil(100) - 1];
            prop_assert!(shown.abs_diff(exact) <= exact / 100, "{} per cent: {} for {}", percent, shown, exact);
        }
        engine.clear(end, Some(PORT));
        prop_assert_eq!(shown_delay(&mut engine, end), None);
    }
}

#[test]
fn shaper_and_ring_count_and_the_policer_takes_no_time() {
    let shape = vec![class_default().shape(ShapeConfig {
        bc: Some(ShapeBurst::Bits(8_000)),
        be: Some(ShapeBurst::Bits(0)),
        ..average(80_000)
    })];
    let mut engine: Engine<usize> = common::started(RATE, Framing::Ppp, &with_policy(Classic, 8_000, shape));
    let mut outputs = Vec::new();
    for number in 0..4 {
        // 996 bytes of IP are 1000 counted ones: one interval's credit, 100 ms.
        engine.transmit(Time(0), PORT, common::udp(996, 0, Framing::Ppp), number);
    }
    common::run(&mut engine, Time(SECOND), &mut outputs);
    let delay = shown_delay(&mut engine, Time(SECOND)).unwrap();
    assert_eq!((delay.packets, delay.mean_ns, delay.max_ns), (4, 150 * MILLI, 300 * MILLI));
    // Without a queue in between, only the ring: each packet waits for the earlier ones.
    engine.configure(Time(SECOND), &with_policy(Classic, 8_000, vec![])).unwrap();
    engine.clear(Time(SECOND), None);
    for number in 0..4 {
        engine.transmit(Time(SECOND), PORT, common::udp(993, 0, Framing::Ppp), number);
    }
    common::run(&mut engine, Time(2 * SECOND), &mut outputs);
    let delay = shown_delay(&mut engine, Time(2 * SECOND)).unwrap();
    assert_eq!((delay.packets, delay.mean_ns, delay.max_ns), (4, 1_500_000, 3 * MILLI));
}

#[test]
fn cleared_queueing_delay_counts_packets_sent_afterwards() {
    let mut engine: Engine<usize> = common::engine(RATE, Framing::Ppp);
    let mut outputs = Vec::new();
    for number in 0..10 {
        engine.transmit(Time(0), PORT, common::udp(993, 0, Framing::Ppp), number);
    }
    common::run(&mut engine, Time(4_500_000), &mut outputs);
    let before = shown_delay(&mut engine, Time(4_500_000)).unwrap();
    engine.clear(Time(4_500_000), None);
    common::run(&mut engine, Time(SECOND), &mut outputs);
    let delay = shown_delay(&mut engine, Time(SECOND)).unwrap();
    assert!(before.packets > 0 && delay.packets > 0);
    assert_eq!((delay.max_ns, before.packets + delay.packets), (9 * MILLI, 10));
    assert_eq!(before.mean_ns * before.packets + delay.mean_ns * delay.packets, 45 * MILLI);
}

#[test]
fn switch_port_shows_queueing_delay() {
    let port = |limit| interface(SwitchPortConfig { limit, ..SwitchPortConfig::default() });
    let config = config(defaults()).interface(name(1), port(100)).interface(name(2), port(50));
    let mut engine: Engine<usize> = switch::started(2, &config);
    let mut outputs = Vec::new();
    for number in 0..3 {
        engine.transmit(Time(0), PortId(1), common::udp(962, 0, Framing::Ethernet), number);
    }
    common::run(&mut engine, Time(SECOND), &mut outputs);
    assert!(outputs.iter().all(|output| matches!(output, Output::Departure(_))));
    let port = engine.counters(Time(SECOND), None).interfaces[&name(2)].clone();
    let delay = port.queueing_delay.unwrap();
    assert_eq!(delay.packets, port.output.packets);
    // 1000 bytes take 8 us at 1 Gb/s and, at the bandwidth limit, twice as long from start to start.
    let share = port.switch.unwrap().operational_bandwidth_percent / 100.0;
    let gap = 8_000.0 / share;
    assert!((delay.mean_ns as f64 - gap).abs() < 1.0 && (delay.max_ns as f64 - 2.0 * gap).abs() < 1.0, "{delay:?}");
}
