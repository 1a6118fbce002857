//! Token buckets and shapers keep their rates.

use crate::common::build::*;
use crate::common::{self, departures, offer, with_policy, MILLI, SECOND};
use proptest::prelude::*;
use qos_core::meter::{Colour, TokenBuckets};
use qos_core::wire::Framing;
use qos_core::{Engine, Time};

fn rate_at(seconds: f64) -> Time {
    Time((seconds * SECOND as f64) as u64)
}

/// The worked examples of the command reference.
#[test]
fn single_bucket_policer_matches_the_worked_example() {
    let mut buckets = TokenBuckets::single_bucket(8_000, 1_000, Time(0));
    assert_eq!(buckets.colour(Time(0), 450), Colour::Conform);
    assert_eq!(buckets.tokens().0, 550);
    assert_eq!(buckets.colour(rate_at(0.25), 900), Colour::Exceed);
    assert_eq!(buckets.tokens().0, 800);
}

#[test]
fn single_rate_policer_matches_the_worked_example() {
    let mut buckets = TokenBuckets::single_rate(8_000, 1_000, 1_000, Time(0));
    assert_eq!(buckets.colour(Time(0), 450), Colour::Conform);
    assert_eq!(buckets.colour(rate_at(0.25), 900), Colour::Exceed);
    assert_eq!(buckets.tokens(), (800, 100));
    assert_eq!(buckets.colour(rate_at(0.65), 1_000), Colour::Conform);
    assert_eq!(buckets.tokens(), (0, 300));
    assert_eq!(buckets.colour(rate_at(0.85), 400), Colour::Violate);
    assert_eq!(buckets.tokens(), (200, 300));
}

#[test]
fn two_rate_policer_matches_the_worked_example() {
    let mut buckets = TokenBuckets::two_rate(100_000, 2_000, 200_000, 2_000, Time(0));
    let mut bits = [0; 3];
    let seconds = 100;
    // 250 kb/s in packets of 125 bytes.
    for packet in 0..250 * seconds {
        bits[buckets.colour(Time(packet * 4 * MILLI), 125) as usize] += 1_000;
    }
    for (bits, kbps) in bits.into_iter().zip([100, 100, 50]) {
        let measured = bits / seconds;
        assert!(measured.abs_diff(kbps * 1_000) < 1_000, "{measured} b/s instead of {kbps} kb/s");
    }
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// Between any two packets, the conforming bytes are at most the burst plus the rate times the time between them.
    #[test]
    fn token_bucket_bounds_every_interval(
        cir in 8_000u64..10_000_000_000,
        bc in 1_000u64..100_000,
        packets in prop::collection::vec((prop_oneof![Just(0u64), 0u64..2_000_000, 0u64..SECOND], 20u32..1600), 1..120),
    ) {
        let mut buckets = TokenBuckets::single_bucket(cir, bc, Time(0));
        let mut now = 0;
        let mut conformed = Vec::new();
        for (gap, bytes) in packets {
            now += gap;
            if buckets.colour(Time(now), bytes) == Colour::Conform {
                conformed.push((now, u128::from(bytes)));
            }
        }
        for first in 0..conformed.len() {
            let mut bytes = 0;
            for last in &conformed[first..] {
                bytes += last.1;
                let time = u128::from(last.0 - conformed[first].0);
                let allowed = u128::from(bc) * 8 * u128::from(SECOND) + u128::from(cir) * time;
                prop_assert!(bytes * 8 * u128::from(SECOND) <= allowed);
            }
        }
    }

    #[test]
    fn token_bucket_keeps_its_rate(cir in 8_000u64..1_000_000_000, bytes in 60u32..1500, burst in 1_500u64..20_000) {
        let mut buckets = TokenBuckets::single_bucket(cir, burst, Time(0));
        // Twice the rate, for 20000 packets.
        let gap = u64::from(bytes) * 8 * SECOND / cir / 2;
        let conforms = |n: &u64| buckets.colour(Time(n * gap), bytes) == Colour::Conform;
        let conformed = (0..20_000u64).filter(conforms).count() as u64;
        let expected = u128::from(cir) * u128::from(20_000 * gap) / u128::from(SECOND) / 8 + u128::from(burst);
        let measured = u128::from(conformed) * u128::from(bytes);
        prop_assert!(measured.abs_diff(expected) <= expected / 1000 + u128::from(bytes) + 1,
            "{measured} bytes instead of {expected}");
    }
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// The shaper's rate is exact to a thousandth for any bursts, even if they are smaller than a packet.
    #[test]
    fn a_shaper_keeps_its_rate(
        generation in prop::sample::select(vec![Classic, Hqf]),
        mode in prop::sample::select(vec![ShapeMode::Average, ShapeMode::Peak]),
        cir in 8_000u64..20_000_000,
        bursts in prop::option::of((256u64..40_000, 0u64..2)),
        ip_len in 60usize..1500,
    ) {
        let mut shape = ShapeConfig { mode, ..average(cir) };
        if let Some((bc, be)) = bursts {
            shape.bc = Some(ShapeBurst::Bits(bc));
            shape.be = Some(ShapeBurst::Bits(be * bc));
        }
        let config = with_policy(generation, 100_000, vec![class_default().shape(shape)]);
        let mut engine: Engine<u64> = common::started(1_000_000_000, Framing::Ethernet, &config);
        let values =
            engine.counters(Time(0), None).interfaces["Out"].policy_output.clone().unwrap().classes[0].shape.unwrap();
        let descriptor = common::udp(ip_len, 0, Framing::Ethernet);
        // Long enough for a packet and a burst to be a small part of it.
        let bits = u64::from(descriptor.counted_len) * 8;
        let packet_time = (u128::from(bits) * u128::from(SECOND) / u128::from(values.target_bps)) as u64;
        let interval = (u128::from(values.bc_bits) * u128::from(SECOND) / u128::from(cir)) as u64;
        let length = (3_000 * packet_time).max(1_000 * interval);
        let outputs = offer(&mut engine, descriptor, packet_time * 3 / 4, Time(0), Time(length));
        engine.audit().unwrap();
        let sent: u64 = departures(&outputs).iter().map(|(_, _, bytes)| u64::from(*bytes) * 8).sum();
        let expected = (u128::from(values.target_bps) * u128::from(length) / u128::from(SECOND)) as u64;
        let burst = values.bc_bits + values.be_bits;
        let slack = expected / 1000 + burst.max(bits) + 2 * bits;
        prop_assert!(sent <= expected + slack && sent + slack >= expected,
            "{sent} bits instead of {expected}, {values:?}");

        // No interval has more than the burst, the increments in it, and the debt of one packet.
        let departures = departures(&outputs);
        let increment = values.increment_bytes * 8 + 8;
        for window in [2, 5, 40, 300] {
            for frames in departures.windows(window) {
                let time = frames[window - 1].0.since(frames[0].0).0;
                let bound = burst + (time / interval + 2) * increment + bits;
                prop_assert!(window as u64 * bits <= bound, "{window} packets in {time} ns");
            }
        }
    }
}

#[test]
fn after_a_pause_a_shaper_sends_the_whole_burst() {
    let config = with_policy(Classic, 100_000, vec![class_default().shape_bps(1_000_000)]);
    let mut engine: Engine<u64> = common::started(1_000_000_000, Framing::Ethernet, &config);
    let mut outputs = Vec::new();
    let start = Time(10 * SECOND);
    for packet in 0..20 {
        engine.transmit(start, common::PORT, common::udp(1500, 0, Framing::Ethernet), packet);
    }
    common::run(&mut engine, Time(10 * SECOND + 99 * MILLI), &mut outputs);
    let offsets: Vec<_> = departures(&outputs).iter().map(|(time, ..)| time.since(start).0 / MILLI).collect();
    // 6250 bytes at once, then 3125 every 25 ms: two frames, sometimes three.
    assert_eq!(offsets, [0, 0, 0, 0, 25, 25, 50, 50, 75, 75]);
    let class =
        engine.counters(Time(10 * SECOND + 99 * MILLI), None).interfaces["Out"].policy_output.clone().unwrap().classes
            [0]
        .clone();
    let shape = class.shape.unwrap();
    assert_eq!((shape.sent.packets, shape.delayed.packets, shape.active), (10, 6, true));
    assert_eq!(class.queue.unwrap().depth_packets, 10);
    let values = (shape.byte_limit, shape.bc_bits, shape.be_bits, shape.interval_ms, shape.increment_bytes);
    assert_eq!(values, (6250, 25_000, 25_000, 25, 3125));
}

#[test]
fn a_link_keeps_its_rate() {
    for (rate, framing, ip_len, line) in
        [(2_000_000u64, Framing::Ppp, 256, 263), (100_000_000, Framing::Ethernet, 1500, 1538)]
    {
        let mut engine: Engine<u64> = common::engine(rate, framing);
        let outputs =
            offer(&mut engine, common::udp(ip_len, 0, framing), line * 8 * SECOND / rate / 2, Time(0), rate_at(2.0));
        let sent = departures(&outputs).len() as u64;
        let bits = sent * line * 8;
        assert!(bits.abs_diff(2 * rate) <= 8 * line, "{bits} bits in two seconds at {rate} b/s");
    }
}
