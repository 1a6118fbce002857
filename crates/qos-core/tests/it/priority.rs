//! Low-latency queueing: the wait of a priority packet, and the policing of its class.

use crate::common::build::*;
use crate::common::{self, class, departures, load, run, with_policies, with_policy, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::wire::Framing::Ppp;
use qos_core::{Duration, Engine, Output, Time};

fn with_ring(mut config: RouterConfig, ring: u32, clock: u64) -> RouterConfig {
    config.out().tx_ring_limit = Some(ring);
    config.out().clock_rate_bps = Some(clock);
    config
}

fn llq(generation: Generation, kbps: u64, priority: PriorityConfig) -> RouterConfig {
    with_policy(generation, kbps, vec![class_of("c1").priority(priority), class_of("c2").percent(40)])
}

proptest! {
    #![proptest_config(crate::bounded::cases(32))]

    /// At most the ring, the packet on the wire and its own queue are ahead of an admitted priority packet.
    #[test]
    fn priority_packet_waits_for_the_ring_and_one_packet_at_most(
        generation in prop::sample::select(vec![Classic, Hqf]),
        ring in 1u32..11,
        lengths in prop::array::uniform3(60usize..1500),
        probes in prop::collection::vec((1u64..40_000_000, 40usize..300), 1..60),
    ) {
        let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
        let config = llq(generation, 2_000, priority(PriorityUnit::Percent, Some(30)));
        engine.configure(Time(0), &with_ring(config, ring, 2_000_000)).unwrap();
        let flood = |(dscp, len): (&u8, usize)| Source::new(len, *dscp, u16::from(*dscp), 1_500_000);
        let floods: Vec<_> = [0, 2, 3].iter().zip(lengths).map(flood).collect();
        let descriptors: Vec<_> = floods.iter().map(|flood| flood.descriptor(Ppp)).collect();
        let mut arrivals = Vec::new();
        let (mut outputs, mut now, mut next) = (Vec::new(), SECOND / 2, [0u64; 3]);
        for (gap, ip_len) in probes {
            now += gap;
            while let Some(flood) = (0..3).filter(|flood| next[*flood] < now).min_by_key(|flood| next[*flood]) {
                run(&mut engine, Time(next[flood]), &mut outputs);
                engine.transmit(Time(next[flood]), PORT, descriptors[flood], usize::MAX);
                next[flood] += floods[flood].gap_ns;
            }
            run(&mut engine, Time(now), &mut outputs);
            let probe = common::datagram(ip_len, 1, 9, 9, Ppp);
            engine.transmit(Time(now), PORT, probe, arrivals.len());
            arrivals.push(now);
        }
        run(&mut engine, Time(now + SECOND), &mut outputs);
        engine.audit().unwrap();
        let departures = departures(&outputs);
        let mut seen = 0;
        for (left, number, _) in departures.iter().filter(|(_, number, _)| *number != usize::MAX) {
            let ahead = departures.iter()
                .filter(|(time, other, _)| *other == usize::MAX && time.0 > arrivals[*number] && time < left)
                .count() as u64;
            prop_assert!(ahead <= u64::from(ring) + 1, "{ahead} packets ahead with a ring of {ring}");
            seen += 1;
        }
        prop_assert!(seen > 0, "none was admitted");
    }

    /// Under congestion a priority class gets exactly its rate and its burst.
    #[test]
    fn priority_class_is_policed_to_its_rate_in_congestion(
        generation in prop::sample::select(vec![Classic, Hqf]),
        kbps in 64u64..1_000,
        burst in prop::option::of(2_000u64..20_000),
        ip_len in 60usize..1500,
    ) {
        let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
        let priority = PriorityConfig { burst_bytes: burst, ..priority_kbps(kbps) };
        engine.configure(Time(0), &with_policy(generation, 2_000, vec![class_of("c1").priority(priority)])).unwrap();
        let sources = [Source::new(1000, 0, 0, 4_000_000), Source::new(ip_len, 1, 1, 1_900_000)];
        let seconds = 10;
        let outputs = load(&mut engine, Ppp, &sources, Time(seconds * SECOND));
        engine.audit().unwrap();
        let sent = common::bytes_by_source(&outputs, 2)[1];
        let burst = burst.unwrap_or(25 * kbps);
        let allowed = kbps * 125 * seconds;
        let packet = ip_len as u64 + 4;
        // The very first packets went straight to an empty ring.
        prop_assert!(sent <= allowed + burst + 4 * packet, "{sent} bytes, {allowed} and {burst} allowed");
        prop_assert!(sent + 4 * packet >= allowed, "{sent} bytes of {allowed}");
        let counters = class(&mut engine, Time(seconds * SECOND), 0);
        let exceed = counters.priority.unwrap().exceed_drops;
        prop_assert!(exceed.packets > 0);
        prop_assert_eq!(exceed, counters.drops.priority);
    }
}

/// Without congestion a priority class may send more than its rate.
#[test]
fn without_congestion_a_priority_class_is_not_policed() {
    for generation in [Classic, Hqf] {
        let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &llq(generation, 2_000, priority_kbps(8)));
        let sources = [Source::new(500, 0, 0, 200_000), Source::new(500, 1, 1, 1_500_000)];
        let outputs = load(&mut engine, Ppp, &sources, Time(5 * SECOND));
        assert!(outputs.iter().all(|output| matches!(output, Output::Departure(_))), "{generation:?}");
        let class = class(&mut engine, Time(5 * SECOND), 0);
        assert_eq!((class.drops.priority.packets, class.queue.map_or(0, |queue| queue.congested.packets)), (0, 0));
    }
}

/// Level 1 is served before level 2, and both before the rest.
#[test]
fn priority_level_1_is_served_before_level_2() {
    let classes = vec![
        class_of("c2").priority(PriorityConfig { level: Some(2), ..priority(PriorityUnit::Strict, None) }),
        class_of("c1").priority(PriorityConfig { level: Some(1), ..priority(PriorityUnit::Strict, None) }),
    ];
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with_policy(Hqf, 2_000, classes));
    for dscp in [0, 0, 0, 0, 0, 2, 2, 1, 1] {
        let frame = common::datagram(500, dscp, 1, 6_000, Ppp);
        engine.transmit(Time(0), PORT, frame, usize::from(dscp));
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    // One packet on the wire and two in the ring were there before.
    assert_eq!(departures(&outputs).iter().map(|(_, dscp, _)| *dscp).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 2, 2, 0, 0]);
}

/// Priority applies among the classes of its own policy-map, under the shaper around them.
#[test]
fn priority_in_a_child_policy_is_served_before_its_siblings() {
    for generation in [Classic, Hqf] {
        let maps = maps([
            ("Inner", vec![class_of("c1").priority_percent(30), class_of("c2").percent(30)]),
            ("P", vec![class_default().shape_bps(500_000).service_policy("Inner")]),
        ]);
        let mut engine: Engine<usize> = common::started(100_000_000, Ppp, &with_policies(generation, 100_000, maps));
        // 100 kb/s of the 150 that are admitted: no packet is dropped.
        let sources =
            [Source::new(1000, 0, 0, 600_000), Source::new(200, 1, 1, 100_000), Source::new(1000, 2, 2, 600_000)];
        let outputs = load(&mut engine, Ppp, &sources, Time(10 * SECOND));
        engine.audit().unwrap();
        let bytes = common::bytes_by_source(&outputs, 3);
        assert!(bytes[1].abs_diff(100_000 * 204 / 200 / 8 * 10) <= 3 * 204, "{generation:?}: {bytes:?}");
        let class = class(&mut engine, Time(10 * SECOND), 0).child.unwrap().classes[0].clone();
        assert_eq!(class.drops.priority.packets, 0, "{generation:?}");
    }
}

/// A probe of 40 bytes against packets of 200 waits for N packets at least and N + 1 at most, in the set-up of the
/// published tx-ring-limit, with the greatest round trips in milliseconds: they are above twice the
/// probe's line time and the longest wait, by less than 2.5 ms, which routers and probes take.
#[test]
fn waits_behind_the_ring_are_less_than_published_round_trips() {
    let rows = [(512, 2, 13.0), (512, 5, 23.0), (512, 10, 39.0), (128, 1, 34.0), (128, 2, 47.0), (128, 5, 85.0)];
    for (kbps, ring, round_trip) in rows {
        let line = |bytes: u64| bytes * 8 * 1_000_000 / kbps;
        for generation in [Classic, Hqf] {
            let (mut least, mut most) = (u64::MAX, 0);
            let (phases, packets) = (64, u64::from(ring));
            for phase in 0..phases {
                let mut engine: Engine<usize> = common::engine(kbps * 1_000, Ppp);
                let config = llq(generation, kbps, priority(PriorityUnit::Strict, None));
                engine.configure(Time(0), &with_ring(config, ring, kbps * 1_000)).unwrap();
                for _ in 0..40 {
                    engine.transmit(Time(0), PORT, Source::new(200, 0, 0, 1).descriptor(Ppp), 0);
                }
                let mut outputs = Vec::new();
                let now = Time(5 * line(207) + 1 + phase * line(207) / phases);
                run(&mut engine, now, &mut outputs);
                engine.transmit(now, PORT, Source::new(40, 1, 1, 1).descriptor(Ppp), 1);
                run(&mut engine, Time(60 * SECOND), &mut outputs);
                let (left, ..) = *departures(&outputs).iter().find(|(_, source, _)| *source == 1).unwrap();
                let wait = left.since(now).0;
                (least, most) = (least.min(wait), most.max(wait));
            }
            assert!(
                least >= packets * line(207) + line(47) - 100
                    && least <= packets * line(207) + line(47) + line(207) / phases
            );
            assert!(
                most <= (packets + 1) * line(207) + line(47)
                    && most + line(207) / phases >= (packets + 1) * line(207) + line(47)
            );
            let waits = (most + line(47)) as f64 / 1e6;
            assert!((0.0..2.5).contains(&(round_trip - waits)), "{kbps} kb/s, ring {ring}: {waits} ms of {round_trip}");
        }
    }
}

/// A priority class is policed if a shaper above it holds packets back, regardless of room on the line.
#[test]
fn waiting_parent_shaper_counts_as_congestion() {
    let classes = vec![class_default().shape_bps(1_000_000).service_policy("Child")];
    let child = vec![class_of("udp").priority_kbps(64), class_default()];
    let config = with_policies(Hqf, 100_000, maps([("P", classes), ("Child", child)]));
    let mut engine: Engine<usize> = common::started(100_000_000, Ppp, &config);
    load(&mut engine, Ppp, &[Source::new(500, 0, 0, 3_000_000)], Time(2 * SECOND));
    let found = engine.counters(Time(2 * SECOND), None).interfaces["Out"].policy_output.clone().unwrap();
    let own = &found.classes[0].child.as_ref().unwrap().classes[0];
    assert!(own.drops.priority.packets > 300, "{:?} of {}", own.drops, own.packets);
}

/// Below a parent shaper a priority class gets its rate and no more while other packets wait for the shaper, although
/// its own packets are short enough for the credit that these wait for.
#[test]
fn short_priority_packets_are_policed_while_long_packets_wait_for_the_parent_shaper() {
    for generation in [Hqf, IosXe] {
        let classes = vec![class_default().shape_bps(2_000_000).service_policy("Child")];
        let child = vec![class_of("c1").priority_kbps(200), class_default()];
        let config = with_policies(generation, 100_000, maps([("P", classes), ("Child", child)]));
        // Also at the instants at which the shaper gets new credit.
        for gap_ns in [941_000, 1_000_000] {
            let mut engine: Engine<usize> = common::started(100_000_000, Ppp, &config);
            let voice = Source { gap_ns, ..Source::new(200, 1, 1, 1_700_000) };
            let outputs = load(&mut engine, Ppp, &[Source::new(1500, 0, 0, 4_000_000), voice], Time(10 * SECOND));
            let sent = common::bytes_by_source(&outputs, 2);
            let allowed = 200 * 125 * 10;
            assert!((allowed..allowed + 8_000).contains(&sent[1]), "{generation:?}: {sent:?}, {allowed} allowed");
            assert!(sent[0] > 2_000_000, "{generation:?}: {sent:?}");
        }
    }
}

/// A shaper of one class that holds packets does not congest a priority class of the same policy.
#[test]
fn a_waiting_shaper_of_another_class_is_no_congestion() {
    for generation in [Hqf, IosXe] {
        let classes = vec![class_default().shape_bps(10_000_000).service_policy("Child")];
        let child = vec![class_of("c1").priority_kbps(200), class_of("c2").shape_bps(1_000_000), class_default()];
        let config = with_policies(generation, 100_000, maps([("P", classes), ("Child", child)]));
        let mut engine: Engine<usize> = common::started(100_000_000, Ppp, &config);
        let sources = [Source::new(1500, 2, 0, 4_000_000), Source::new(200, 1, 1, 1_700_000)];
        load(&mut engine, Ppp, &sources, Time(5 * SECOND));
        let found = engine.counters(Time(5 * SECOND), None).interfaces["Out"].policy_output.clone().unwrap();
        let own = &found.classes[0].child.as_ref().unwrap().classes[0];
        let drops = own.drops.priority.packets;
        assert!(drops * 100 < own.packets, "{generation:?}: {drops} of {} packets", own.packets);
    }
}

/// Classes with priority share a queue, which each class of the classic generation shows as its own, and none of the
/// later generation.
#[test]
fn priority_classes_show_their_shared_queue() {
    let priority = |name: &str| class_of(name).priority_kbps(200);
    let classes = vec![priority("c1"), priority("c2"), class_of("c3").kbps(200)];
    for (generation, depths) in [(Classic, [Some(5), Some(5), Some(1)]), (Hqf, [None, None, Some(1)])] {
        let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
        engine.configure(Time(0), &with_ring(with_policy(generation, 2_000, classes.clone()), 1, 2_000_000)).unwrap();
        for dscp in [0, 0, 1, 1, 2, 2, 2, 3] {
            engine.transmit(Time(0), PORT, Source::new(100, dscp, 0, 1).descriptor(Ppp), 0);
        }
        let shown = [0, 1, 2].map(|number| class(&mut engine, Time(0), number).queue.map(|queue| queue.depth_packets));
        assert_eq!(shown, depths, "{generation:?}");
    }
}

/// On a line that delays, what is in the ring is settled at its own time, and not as much earlier as the line delays:
/// a packet with priority that comes in between is before those that are not yet in the ring.
#[test]
fn propagation_delay_does_not_change_the_order_in_the_ring() {
    let link = LinkConfig::new(1_000_000, Ppp).delay(Duration::from_millis(10));
    let mut engine: Engine<usize> = Engine::new(&common::ports(link), Time(0)).unwrap();
    let classes = vec![class_of("c1").strict()];
    engine.configure(Time(0), &with_ring(with_policy(Hqf, 1_000, classes), 1, 1_000_000)).unwrap();
    let packet = |dscp| Source::new(1_000, dscp, 0, 1).descriptor(Ppp);
    (0..3).for_each(|number| engine.transmit(Time(0), PORT, packet(0), number));
    let mut outputs = Vec::new();
    // The first packet is on the line until a little after 8 ms.
    run(&mut engine, Time(7 * MILLI), &mut outputs);
    engine.transmit(Time(7 * MILLI), PORT, packet(1), 3);
    run(&mut engine, Time(SECOND), &mut outputs);
    let left: Vec<_> = departures(&outputs).into_iter().map(|(_, number, _)| number).collect();
    assert_eq!(left, [0, 1, 3, 2]);
}
