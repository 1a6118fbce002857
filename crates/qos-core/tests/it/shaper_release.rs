//! A classic shaper lets its burst go at the end of each interval, into the interface's queues. The later generation's
//! packets wait behind the shaper until the transmit ring has room.

use crate::common::{self, configuration, interface, load, run, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{ClassCounters, InterfaceCounters};
use qos_core::wire::Framing::{self, Ppp};
use qos_core::{frame, Engine, Output, RouterConfig, Time};
use serde_json::{json, Value};

fn out(engine: &mut Engine<usize>, now: u64) -> InterfaceCounters {
    engine.counters(Time(now), None).interfaces["Out"].clone()
}

fn class(counters: &InterfaceCounters, number: usize) -> ClassCounters {
    counters.policy_output.as_ref().unwrap().classes[number].clone()
}

/// A line with a transmit ring of one packet.
fn config(generation: &str, classes: Value) -> RouterConfig {
    let mut port = interface(2_000, None, Some("P"));
    port["tx_ring_limit"] = json!(1);
    configuration(generation, json!({"P": {"classes": classes}}), port)
}

fn started(rate_bps: u64, config: &RouterConfig) -> Engine<usize> {
    let mut engine = common::engine(rate_bps, Ppp);
    engine.configure(Time(0), config).unwrap();
    engine
}

fn shaped(name: &str, bps: u64) -> Value {
    json!({"name": name, "shape": {"mode": "average", "rate": {"bps": bps}}})
}

/// `shape average 1000000` prints `6250 25000 25000 25 3125`: byte limit, Bc, Be, interval in ms, increment in bytes.
/// So of 60 packets that count 1500 bytes and come at once four go at once, and then two each 25 ms, for which the line
/// of
/// 1.2 Mb/s takes 20 ms: three when the remainders of 125 bytes make one more, in the tenth interval.
#[test]
fn two_full_packets_are_released_each_interval() {
    let mut engine = started(1_200_000, &config("classic", json!([shaped("class-default", 1_000_000)])));
    let descriptor = frame::parse(&common::frames::udp(1496, 0, 1, 2), Ppp);
    assert_eq!(descriptor.counted_len, 1500);
    (0..60).for_each(|number| engine.transmit(Time(0), PORT, descriptor, number));
    let counters = out(&mut engine, 0);
    let shape = class(&counters, 0).shape.unwrap();
    let figures = (shape.byte_limit, shape.bc_bits, shape.be_bits, shape.interval_ms, shape.increment_bytes);
    assert_eq!(figures, (6250, 25_000, 25_000, 25, 3125));
    // One on the line and one in the ring: of the four that have gone two wait for the line.
    assert_eq!((class(&counters, 0).queue.unwrap().depth_packets, counters.queue.depth), (56, 2));
    let mut outputs = Vec::new();
    let mut waiting = Vec::new();
    for interval in 0..=11 {
        let at = interval * 25 * MILLI + 24_900_000;
        run(&mut engine, Time(at), &mut outputs);
        waiting.push(class(&out(&mut engine, at), 0).queue.unwrap().depth_packets);
    }
    assert_eq!(waiting, [56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 35, 33]);
    engine.audit().unwrap();
}

/// A class shaped to 1.5 Mb/s that is offered 1.4 Mb/s, on a line of 2 Mb/s of which class-default wants 3 Mb/s.
fn beside_a_flood(generation: &str) -> InterfaceCounters {
    let classes = json!([shaped("af", 1_500_000), {"name": "class-default"}]);
    let mut engine = started(2_000_000, &config(generation, classes));
    let sources = [Source::new(996, 10, 0, 1_400_000), Source::new(996, 0, 1, 3_000_000)];
    load(&mut engine, Ppp, &sources, Time(10 * SECOND));
    engine.audit().unwrap();
    out(&mut engine, 10 * SECOND)
}

#[test]
fn what_the_line_has_no_time_for_waits_behind_a_classic_shaper_and_before_a_later_one() {
    let counters = beside_a_flood("classic");
    let af = class(&counters, 0);
    let (shape, queue) = (af.shape.unwrap(), af.queue.unwrap());
    assert!(!shape.active && queue.depth_packets < 3, "{queue:?}");
    // The queue behind the shaper is full, and what it does not take is dropped.
    assert!(af.drops.tail.packets > 0 && counters.queue.depth > 100, "{af:?} {:?}", counters.queue);
    let other = class(&counters, 1).drops.tail.packets;
    assert_eq!(counters.queue.drops, af.drops.tail.packets + other, "and is counted as dropped by the queue");
    let later = class(&beside_a_flood("hqf"), 0);
    assert!(later.shape.unwrap().active && later.queue.unwrap().depth_packets > 60, "{later:?}");
}

/// What the shaper of the first class has let go after each packet that arrives, on a line of that rate.
fn released(line: u64, config: &RouterConfig, arrivals: &[(u64, usize, u8)]) -> Vec<(u64, u64, u64)> {
    let mut engine: Engine<usize> = common::engine(line, Framing::Ethernet);
    engine.configure(Time(0), config).unwrap();
    let mut outputs: Vec<Output<usize>> = Vec::new();
    let mut now = 0;
    let mut found = Vec::new();
    for (number, (gap, ip_len, dscp)) in arrivals.iter().enumerate() {
        now += gap;
        run(&mut engine, Time(now), &mut outputs);
        let packet = common::frames::udp(*ip_len, *dscp, 1, 2 + u16::from(*dscp));
        engine.transmit(Time(now), PORT, frame::parse(&packet, Framing::Ethernet), number);
        engine.audit().unwrap();
        let af = class(&out(&mut engine, now), 0);
        let shape = af.shape.unwrap();
        found.push((shape.sent.packets, shape.delayed.packets, af.queue.unwrap().depth_packets));
    }
    found
}

proptest! {
    #![proptest_config(crate::bounded::cases(60))]

    /// The line, the ring and the other classes decide nothing of what a classic shaper lets go, and when.
    #[test]
    fn a_classic_shaper_does_not_look_at_the_line(
        cir in 64_000u64..2_000_000,
        line in prop::sample::select(vec![300_000u64, 1_000_000, 10_000_000]),
        arrivals in prop::collection::vec(
            (0u64..20 * MILLI, 60usize..1500, prop::sample::select(vec![0u8, 10])), 1..200),
    ) {
        let config = config("classic", json!([shaped("af", cir), {"name": "class-default"}]));
        prop_assert_eq!(released(line, &config, &arrivals), released(1_000_000_000, &config, &arrivals));
    }
}

/// A packet that the credit would let go waits behind one that waits, and counts as delayed.
#[test]
fn what_comes_behind_a_waiting_packet_is_delayed() {
    for generation in ["classic", "hqf"] {
        let mut engine = started(2_000_000, &config(generation, json!([shaped("class-default", 64_000)])));
        let delayed = |engine: &mut Engine<usize>, at: u64| {
            let shape = class(&out(engine, at), 0).shape.unwrap();
            (shape.sent.packets, shape.delayed.packets)
        };
        // Bursts of 8000 bits, twice in the classic generation: packets of 4000 bits, then one of 12 000 that waits.
        let mut number = 0;
        while !class(&out(&mut engine, 0), 0).shape.unwrap().active {
            engine.transmit(Time(0), PORT, common::udp(496, 0, Ppp), number);
            number += 1;
        }
        let (sent, _) = delayed(&mut engine, 0);
        assert_eq!(sent as usize + 1, number, "{generation}: the last one waits");
        engine.transmit(Time(0), PORT, common::udp(40, 0, Ppp), number);
        run(&mut engine, Time(10 * SECOND), &mut Vec::new());
        assert_eq!(delayed(&mut engine, 10 * SECOND), (sent + 2, 2), "{generation}");
    }
}
