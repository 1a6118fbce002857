//! Random early detection on an idle line: the mean depth ages.

use crate::common::build::*;
use crate::common::{self, load, with_policy, Source, MILLI, PORT, SECOND};
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Time};

/// Packets dropped of 300 at `bps` in packets of `ip_len` bytes, on a line of 2 Mb/s that 4 Mb/s came to for ten
/// seconds and nothing for so many after them.
fn dropped_packets(generation: Generation, silence: u64, ip_len: usize, bps: u64) -> u64 {
    let red = class_default().kbps(1000).random_detect(red_by_precedence());
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with_policy(generation, 2_000, vec![red]));
    load(&mut engine, Ppp, &[Source::new(1000, 0, 0, 4_000_000)], Time(10 * SECOND));
    let class = common::class(&mut engine, Time(10 * SECOND), 0);
    assert!(class.random_detect.unwrap().mean_depth > 20.0, "early detection has been at work");
    let flood = class.drops;
    let light = common::datagram(ip_len, 0, 1, 7, Ppp);
    let (mut outputs, gap) = (Vec::new(), ip_len as u64 * 8 * SECOND / bps);
    let mut now = (10 + silence) * SECOND;
    for _ in 0..300 {
        common::run(&mut engine, Time(now), &mut outputs);
        engine.transmit(Time(now), PORT, light, 0);
        now += gap;
    }
    engine.audit().unwrap();
    let drops = common::class(&mut engine, Time(now), 0).drops;
    drops.random.packets + drops.random_tail.packets + drops.tail.packets
        - (flood.random.packets + flood.random_tail.packets + flood.tail.packets)
}

/// 40 kb/s are 2 % of the line: nothing ever waits. Before the mean aged, 11 of 300 packets were dropped, after 5 s and
/// after 300 s alike, and 6 of 119 at 95 % of the line.
#[test]
fn an_idle_line_drops_nothing() {
    for generation in [Classic, Hqf] {
        for silence in [5, 300] {
            assert_eq!(dropped_packets(generation, silence, 200, 40_000), 0, "{generation:?} after {silence} s");
            assert_eq!(
                dropped_packets(generation, silence, 1000, 1_900_000),
                0,
                "{generation:?} at 95 % after {silence} s"
            );
        }
    }
}

/// A queue ages at what its line can send now, not at what it could before.
#[test]
fn mean_depth_ages_at_the_line_rate() {
    let mean = |before: u64| {
        let red = vec![class_default().random_detect(red_by_precedence())];
        let with = |clock: u64| {
            let mut config = with_policy(Hqf, 2_000, red.clone());
            config.out().clock_rate_bps = Some(clock);
            config
        };
        let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with(before));
        engine.configure(Time(0), &with(2_000_000)).unwrap();
        load(&mut engine, Ppp, &[Source::new(1000, 0, 0, 4_000_000)], Time(10 * SECOND));
        common::run(&mut engine, Time(11 * SECOND), &mut Vec::new());
        engine.transmit(Time(11 * SECOND), PORT, common::udp(1000, 0, Ppp), 0);
        common::class(&mut engine, Time(11 * SECOND), 0).random_detect.unwrap().mean_depth
    };
    let expected = mean(2_000_000);
    assert!(expected > 0.1, "{expected}");
    assert_eq!(mean(64_000), expected);
}

/// The later generation asks early detection ahead of everything, even where the transmit ring has room; in the classic
/// one such a packet never meets the queue. Of twenty packets the mean is still that of a moment ago.
#[test]
fn hqf_applies_red_before_a_ring_with_room() {
    for (generation, dropped) in [(Hqf, 1), (Classic, 0)] {
        let red = red_by_dscp().weight(1).row(0, 60, 61, 1).row(10, 1, 2, 1);
        let mut config = with_policy(generation, 2_000, vec![class_default().kbps(1000).random_detect(red)]);
        config.out().tx_ring_limit = Some(1);
        let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &config);
        let packet = |dscp| Source::new(996, dscp, 0, 1).descriptor(Ppp);
        (0..20).for_each(|number| engine.transmit(Time(0), PORT, packet(0), number));
        // A frame of 1000 bytes and its framing takes 4 ms and a little: the last one is on the line.
        let (mut now, mut outputs) = (Time(76 * MILLI), Vec::new());
        while common::departures(&outputs).len() < 19 {
            now = Time(now.0 + MILLI / 10);
            common::run(&mut engine, now, &mut outputs);
        }
        engine.transmit(now, PORT, packet(10), 20);
        let drops = common::class(&mut engine, now, 0).drops;
        assert_eq!(drops.random.packets + drops.random_tail.packets, dropped, "{generation:?}");
    }
}
