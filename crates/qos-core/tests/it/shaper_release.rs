//! Release of packets by shapers. A classic shaper releases its burst at the end of each interval into the queues of
//! the interface. In the later generation packets wait behind the shaper until the transmit ring has room.

use crate::common::build::*;
use crate::common::{self, configuration, load, out, run, with_policies, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{ClassCounters, InterfaceCounters};
use qos_core::wire::Framing::{self, Ppp};
use qos_core::{Engine, Output, RouterConfig, Time};

fn class(counters: &InterfaceCounters, number: usize) -> ClassCounters {
    counters.policy_output.as_ref().unwrap().classes[number].clone()
}

/// A line with a transmit ring of one packet.
fn config(generation: Generation, classes: Vec<PolicyClass>) -> RouterConfig {
    let mut port = interface(2_000, None, Some("P"));
    port.tx_ring_limit = Some(1);
    configuration(generation, maps([("P", classes)]), port)
}

fn shaped_departures(name: &str, bps: u64) -> PolicyClass {
    class_of(name).shape_bps(bps)
}

/// `shape average 1000000` prints `6250 25000 25000 25 3125`: byte limit, Bc, Be, interval in ms, increment in bytes.
/// So of 60 packets that count 1500 bytes and come at once four go at once, and then two each 25 ms, for which the line
/// of
/// 1.2 Mb/s takes 20 ms: three when the remainders of 125 bytes make one more, in the tenth interval.
#[test]
fn two_full_packets_are_released_each_interval() {
    let mut engine: Engine<usize> =
        common::started(1_200_000, Ppp, &config(Classic, vec![shaped_departures("class-default", 1_000_000)]));
    let descriptor = common::datagram(1496, 0, 1, 2, Ppp);
    assert_eq!(descriptor.counted_len, 1500);
    (0..60).for_each(|number| engine.transmit(Time(0), PORT, descriptor, number));
    let counters = out(&mut engine, Time(0));
    let shape = class(&counters, 0).shape.unwrap();
    let values = (shape.byte_limit, shape.bc_bits, shape.be_bits, shape.interval_ms, shape.increment_bytes);
    assert_eq!(values, (6250, 25_000, 25_000, 25, 3125));
    // One on the line and one in the ring: of the four packets that left the shaper, two wait for the line.
    assert_eq!((class(&counters, 0).queue.unwrap().depth_packets, counters.queue.depth), (56, 2));
    let mut outputs = Vec::new();
    let mut waiting = Vec::new();
    for interval in 0..=11 {
        let at = interval * 25 * MILLI + 24_900_000;
        run(&mut engine, Time(at), &mut outputs);
        waiting.push(class(&out(&mut engine, Time(at)), 0).queue.unwrap().depth_packets);
    }
    assert_eq!(waiting, [56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 35, 33]);
    engine.audit().unwrap();
}

/// A class shaped to 1.5 Mb/s that is offered 1.4 Mb/s, on a line of 2 Mb/s of which class-default wants 3 Mb/s.
fn next_to_a_flood(generation: Generation) -> InterfaceCounters {
    let mut engine: Engine<usize> =
        common::started(2_000_000, Ppp, &config(generation, vec![shaped_departures("af", 1_500_000), class_default()]));
    let sources = [Source::new(996, 10, 0, 1_400_000), Source::new(996, 0, 1, 3_000_000)];
    load(&mut engine, Ppp, &sources, Time(10 * SECOND));
    engine.audit().unwrap();
    out(&mut engine, Time(10 * SECOND))
}

#[test]
fn excess_waits_after_a_classic_shaper_and_in_an_hqf_shaper() {
    let counters = next_to_a_flood(Classic);
    let af = class(&counters, 0);
    let (shape, queue) = (af.shape.unwrap(), af.queue.unwrap());
    assert!(!shape.active && queue.depth_packets < 3, "{queue:?}");
    // The queue behind the shaper is full, and packets that it does not accept are dropped.
    assert!(af.drops.tail.packets > 0 && counters.queue.depth > 100, "{af:?} {:?}", counters.queue);
    let other = class(&counters, 1).drops.tail.packets;
    assert_eq!(counters.queue.drops, af.drops.tail.packets + other, "and is counted as dropped by the queue");
    let later = class(&next_to_a_flood(Hqf), 0);
    assert!(later.shape.unwrap().active && later.queue.unwrap().depth_packets > 60, "{later:?}");
}

/// Packets released by the shaper of the first class after each arrival, on a line of that rate.
fn released_at(line: u64, config: &RouterConfig, arrivals: &[(u64, usize, u8)]) -> Vec<(u64, u64, u64)> {
    let mut engine: Engine<usize> = common::started(line, Framing::Ethernet, config);
    let mut outputs: Vec<Output<usize>> = Vec::new();
    let mut now = 0;
    let mut found = Vec::new();
    for (number, (gap, ip_len, dscp)) in arrivals.iter().enumerate() {
        now += gap;
        run(&mut engine, Time(now), &mut outputs);
        let packet = common::datagram(*ip_len, *dscp, 1, 2 + u16::from(*dscp), Framing::Ethernet);
        engine.transmit(Time(now), PORT, packet, number);
        engine.audit().unwrap();
        let af = class(&out(&mut engine, Time(now)), 0);
        let shape = af.shape.unwrap();
        found.push((shape.sent.packets, shape.delayed.packets, af.queue.unwrap().depth_packets));
    }
    found
}

proptest! {
    #![proptest_config(crate::bounded::cases(60))]

    /// Release times of a classic shaper do not depend on the line, the ring and the other classes.
    #[test]
    fn classic_shaper_releases_regardless_of_the_line(
        cir in 64_000u64..2_000_000,
        line in prop::sample::select(vec![300_000u64, 1_000_000, 10_000_000]),
        arrivals in prop::collection::vec(
            (0u64..20 * MILLI, 60usize..1500, prop::sample::select(vec![0u8, 10])), 1..200),
    ) {
        let config = config(Classic, vec![shaped_departures("af", cir), class_default()]);
        prop_assert_eq!(released_at(line, &config, &arrivals), released_at(1_000_000_000, &config, &arrivals));
    }
}

/// A packet that the credit would let go waits behind one that waits, and counts as delayed.
#[test]
fn packet_behind_a_waiting_one_counts_as_delayed() {
    // Bursts of 8000 bits, twice in the classic generation: packets of 4000 bits, then one of 12 000 that waits.
    for (generation, before) in [(Classic, 2), (Hqf, 1)] {
        let mut engine: Engine<usize> =
            common::started(2_000_000, Ppp, &config(generation, vec![shaped_departures("class-default", 64_000)]));
        let lengths = [[496].repeat(before), vec![1_496, 40]].concat();
        for (number, ip_len) in lengths.into_iter().enumerate() {
            engine.transmit(Time(0), PORT, common::udp(ip_len, 0, Ppp), number);
        }
        let sent = |engine: &mut Engine<usize>, at: u64| class(&out(engine, Time(at)), 0).shape.unwrap().sent.packets;
        assert_eq!(sent(&mut engine, 0), before as u64, "{generation:?}: the last but one waits");
        run(&mut engine, Time(10 * SECOND), &mut Vec::new());
        assert_eq!(sent(&mut engine, 10 * SECOND), before as u64 + 2);
        let delayed = class(&out(&mut engine, Time(10 * SECOND)), 0).shape.unwrap().delayed.packets;
        assert_eq!(delayed, 2, "{generation:?}");
    }
}

/// With nested shapers, only the shaper that made a packet wait counts it as delayed.
#[test]
fn a_packet_is_delayed_by_the_shaper_that_held_it() {
    // A shaper of 10 Mb/s around one of 64 kb/s, whose bursts are 8000 bits at most.
    let maps = maps([
        ("Child", vec![shaped_departures("class-default", 64_000)]),
        ("P", vec![class_default().service_policy("Child").shape_bps(10_000_000)]),
    ]);
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with_policies(Hqf, 2_000, maps));
    (0..2).for_each(|number| engine.transmit(Time(0), PORT, common::udp(996, 0, Ppp), number));
    run(&mut engine, Time(SECOND), &mut Vec::new());
    let outer = class(&out(&mut engine, Time(SECOND)), 0);
    let inner = &outer.child.as_ref().unwrap().classes[0];
    let counted =
        [&outer, inner].map(|class| class.shape.as_ref().map(|shape| (shape.sent.packets, shape.delayed.packets)));
    assert_eq!(counted, [Some((2, 0)), Some((2, 1))]);
}

/// Credit of a shaper above a queue comes back while nothing waits: packets that take all of it do not wait.
#[test]
fn packet_once_a_second_is_not_delayed() {
    let maps = maps([
        ("Child", vec![class_of("af").percent(50)]),
        ("P", vec![class_default().service_policy("Child").shape_bps(64_000)]),
    ]);
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with_policies(Hqf, 2_000, maps));
    for number in 0..5 {
        let now = Time(number * SECOND);
        run(&mut engine, now, &mut Vec::new());
        engine.transmit(now, PORT, common::udp(1_496, 0, Ppp), 0);
    }
    let shape = class(&out(&mut engine, Time(5 * SECOND)), 0).shape.unwrap();
    assert_eq!((shape.sent.packets, shape.delayed.packets), (5, 0));
}

/// Packets released by a shaper of the later generation join a ring with room at once, even if the next frame starts
/// later: packets that arrive in between, even with priority, are behind them.
#[test]
fn released_packet_enters_the_ring_before_the_next_frame_starts() {
    let mut port = interface(64, None, Some("P"));
    port.tx_ring_limit = Some(4);
    let voice = class_of("c1").strict();
    let maps = maps([("P", vec![voice, class_of("af"), shaped_departures("class-default", 64_000)])]);
    let mut engine: Engine<usize> = common::started(64_000, Ppp, &configuration(Hqf, maps, port));
    let af = Source::new(1_496, 10, 0, 1).descriptor(Ppp);
    // The third takes the credit, and the fourth waits for the next interval: of 125 ms, where a frame takes 187.5.
    let packets = [af, af, common::udp(996, 0, Ppp), common::udp(496, 0, Ppp)];
    for (number, packet) in packets.into_iter().enumerate() {
        engine.transmit(Time(0), PORT, packet, number);
    }
    assert_eq!(class(&out(&mut engine, Time(0)), 2).queue.unwrap().depth_packets, 1, "the fourth");
    let mut outputs = Vec::new();
    run(&mut engine, Time(150 * MILLI), &mut outputs);
    engine.transmit(Time(150 * MILLI), PORT, Source::new(100, 1, 0, 1).descriptor(Ppp), 4);
    run(&mut engine, Time(2 * SECOND), &mut outputs);
    let left: Vec<_> = common::departures(&outputs).into_iter().map(|(_, number, _)| number).collect();
    assert_eq!(left, [0, 1, 2, 3, 4]);
}
