//! Random early detection drops between its thresholds at the probability that they give, and above them everything.

use crate::common::build::*;
use crate::common::{self, class, run, with_policy, MILLI, PORT};
use proptest::prelude::*;
use qos_core::wire::ip::ecn;
use qos_core::wire::Framing::Ppp;
use qos_core::{Descriptor, Engine, Output, Time};

proptest! {
    #![proptest_config(crate::bounded::cases(48))]

    #[test]
    fn red_drops_between_and_above_the_thresholds(
        generation in prop::sample::select(vec![Classic, Hqf]),
        weight in 1u8..8,
        rows in prop::array::uniform2((1u32..30, 0u32..30, 1u32..8)),
        arrivals in prop::collection::vec((0u64..8_000_000, 0usize..2), 1..400),
    ) {
        let red = (0..).zip(rows).fold(red_by_precedence().weight(weight), |red, (value, (min, above, denominator))| {
            red.row(value, min, min + above, denominator)
        });
        let udp = class_of("udp").percent(50).queue_limit(1000).random_detect(red);
        let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with_policy(generation, 2_000, vec![udp]));
        let (mut now, mut outputs, mut before) = (0, Vec::new(), (0, 0));
        let mut mean = 0.0;
        for (gap, value) in arrivals {
            now += gap;
            run(&mut engine, Time(now), &mut outputs);
            let depth = class(&mut engine, Time(now), 0).queue.unwrap().depth_packets;
            let frame = common::datagram(1000, (value as u8) << 3, 1, 6_000, Ppp);
            engine.transmit(Time(now), PORT, frame, value);
            let class = class(&mut engine, Time(now), 0);
            let red = class.random_detect.unwrap();
            // The mean moves towards an earlier depth of the queue: waiting packets are settled at the arrival, so the
            // depth may be lower than the observed one.
            let part = 0.5f64.powi(weight as i32);
            let found = (red.mean_depth - mean * (1.0 - part)) / part;
            let after = class.queue.as_ref().unwrap().depth_packets;
            let moved = (found - found.round()).abs() < 1e-3 && (0.0..=depth as f64).contains(&found.round());
            if !moved {
                // An empty queue ages by one packet's weight for each packet that the line could have sent since the
                // last one.
                let least = mean * (1.0 - part).powf(gap as f64 * 2e6 / 8e9 / 1004.0 + 1.0);
                prop_assert!(after <= 1 && red.mean_depth >= least - 1e-6 && red.mean_depth <= mean,
                    "{} after {mean}, {found} of {depth}", red.mean_depth);
            }
            mean = red.mean_depth;
            let (min, max) = (f64::from(rows[value].0), f64::from(rows[value].0 + rows[value].1));
            let drops = (class.drops.random.packets, class.drops.random_tail.packets);
            let (random, tail) = (drops.0 - before.0, drops.1 - before.1);
            // In the classic generation a packet that goes straight to the ring bypasses early detection.
            let straight = generation == Classic && after == 0 && random + tail == 0;
            prop_assert!(tail == u64::from(mean >= max) || straight, "{tail} at a mean of {mean}, {max}");
            prop_assert!(random == 0 || (mean >= min && mean < max), "mean {mean} between {min} and {max}");
            before = drops;
        }
        engine.audit().unwrap();
        // The values of the table are those of the class.
        let class = class(&mut engine, Time(now), 0);
        let red = class.random_detect.unwrap().classes;
        prop_assert_eq!(red.len(), 8);
        prop_assert_eq!(red.iter().map(|row| row.random_drop.packets).sum::<u64>(), class.drops.random.packets);
        prop_assert_eq!(red.iter().map(|row| row.tail_drop.packets).sum::<u64>(), class.drops.random_tail.packets);
        prop_assert_eq!(red.iter().map(|row| row.transmitted.bytes).sum::<u64>(), class.queue.unwrap().output.bytes);
    }
}

/// Over many packets as many are dropped as the probabilities of their moments add up to.
#[test]
fn number_of_red_drops_matches_the_probabilities() {
    let config = with_policy(
        Hqf,
        2_000,
        vec![class_default().queue_limit(1000).random_detect(red_by_dscp().weight(6).row(10, 5, 60, 4))],
    );
    let mut engine: Engine<u64> = common::started(2_000_000, Ppp, &config);
    let frame = common::datagram(1000, 10, 1, 6_000, Ppp);
    let (mut outputs, mut expected, mut variance) = (Vec::new(), 0.0, 0.0);
    let packets = 20_000;
    for packet in 0..packets {
        // 2.2 Mb/s in 1007 bytes each.
        let now = Time(packet * MILLI * 366 / 100);
        run(&mut engine, now, &mut outputs);
        engine.transmit(now, PORT, frame, packet);
        let mean = class(&mut engine, now, 0).random_detect.unwrap().mean_depth;
        assert!(mean < 60.0);
        let probability = (mean - 5.0).max(0.0) / 55.0 / 4.0;
        expected += probability;
        variance += probability * (1.0 - probability);
    }
    let dropped = class(&mut engine, Time(packets * MILLI * 366 / 100), 0).drops.random.packets as f64;
    assert!(expected > 500.0, "{expected}");
    assert!((dropped - expected).abs() < 5.0 * variance.sqrt(), "{dropped} dropped, {expected} expected");
}

/// Outputs of an engine: sent frames, and the code point of frames marked by the router.
struct Sent {
    engine: Engine<u64>,
    departed: Vec<u8>,
}

/// 20 000 packets at 1.1 times the rate of the line, `capable` of whether those of a number can be marked.
fn congested_engine(ecn: bool, capable: impl Fn(u64) -> u8) -> Sent {
    let config = with_policy(
        Hqf,
        2_000,
        vec![class_default().queue_limit(1000).random_detect(red_by_dscp().weight(6).ecn(ecn).row(10, 5, 60, 4))],
    );
    let mut engine: Engine<u64> = common::started(2_000_000, Ppp, &config);
    let frame = common::datagram(1000, 10, 1, 6_000, Ppp);
    let (mut outputs, mut departed) = (Vec::new(), Vec::new());
    for packet in 0..20_000 {
        let now = Time(packet * MILLI * 366 / 100);
        outputs.clear();
        run(&mut engine, now, &mut outputs);
        departed.extend(outputs.iter().filter_map(|output| match output {
            Output::Departure(departure) => Some(departure.descriptor.ecn),
            Output::Dropped(_) => None,
        }));
        engine.transmit(now, PORT, Descriptor { ecn: capable(packet), ..frame }, packet);
    }
    engine.audit().unwrap();
    Sent { engine, departed }
}

/// RFC 3168 section 5, and Cisco's "WRED: Explicit Congestion Notification": what would be dropped at random is marked
/// if it can be, ECT(0) and ECT(1) alike; others are dropped; the same packets are chosen.
#[test]
fn ecn_marks_replace_random_drops() {
    let last = Time(20_000 * MILLI * 366 / 100);
    let mut without = congested_engine(false, |_| ecn::ECT_0);
    let plain = class(&mut without.engine, last, 0);
    assert!(plain.drops.random.packets > 500 && plain.random_detect.unwrap().ecn_mark.is_none());
    assert!(without.departed.iter().all(|mark| *mark == ecn::ECT_0));

    for codes in [[ecn::ECT_0; 2], [ecn::ECT_1; 2], [ecn::ECT_0, ecn::NOT_ECT]] {
        let mut sent = congested_engine(true, |packet| codes[packet as usize % 2]);
        let class = class(&mut sent.engine, last, 0);
        let red = class.random_detect.unwrap();
        let marked = sent.departed.iter().filter(|mark| **mark == ecn::CE).count() as u64;
        let waiting = class.queue.unwrap().depth_packets;
        let counted = red.ecn_mark.unwrap();
        assert!(counted.packets > 500 && (marked..=marked + waiting + 3).contains(&counted.packets), "{counted:?}");
        assert_eq!(red.classes.iter().map(|row| row.ecn_mark.bytes).sum::<u64>(), counted.bytes);
        assert_eq!(class.drops.random.packets > 0, codes.contains(&ecn::NOT_ECT));
        assert!(sent.departed.iter().filter(|mark| **mark == ecn::NOT_ECT).count() > 0 || codes[1] != ecn::NOT_ECT);
    }
}

/// Marks do not shorten the queue of who does not heed them: from the greatest threshold on everything is dropped.
#[test]
fn ecn_capable_packets_are_dropped_above_the_maximum_threshold() {
    let config = with_policy(
        Hqf,
        2_000,
        vec![class_default().queue_limit(1000).random_detect(red_by_precedence().weight(1).ecn(true).row(0, 4, 8, 1))],
    );
    let mut engine: Engine<u64> = common::started(2_000_000, Ppp, &config);
    let frame = common::datagram(1000, 0, 1, 6_000, Ppp);
    for packet in 0..100 {
        engine.transmit(Time(packet), PORT, Descriptor { ecn: ecn::CE, ..frame }, packet);
    }
    let class = class(&mut engine, Time(100), 0);
    assert_eq!((class.drops.random.packets, class.random_detect.unwrap().ecn_mark.unwrap().packets), (0, 0));
    assert!(class.drops.random_tail.packets > 80, "{:?}", class.drops);
}

/// Half way between the thresholds half of one in the denominator is marked: with the mean held there the marks are
/// binomial.
#[test]
fn marks_halfway_between_thresholds_match_half_the_probability() {
    let config = with_policy(
        Hqf,
        2_000,
        vec![class_default()
            .queue_limit(1000)
            .random_detect(red_by_precedence().weight(1).ecn(true).row(0, 10, 50, 10))],
    );
    let mut engine: Engine<u64> = common::started(2_000_000, Ppp, &config);
    let frame = Descriptor { ecn: ecn::ECT_0, ..common::datagram(1000, 0, 1, 6_000, Ppp) };
    let (mut now, mut outputs, packets) = (0, Vec::new(), 20_000u64);
    // Each packet arrives as soon as one of 30 places is free.
    let (mut sent, mut before) = (0, None);
    while sent < packets {
        run(&mut engine, Time(now), &mut outputs);
        let mut held = class(&mut engine, Time(now), 0);
        while held.queue.as_ref().unwrap().depth_packets <= 30 && sent < packets {
            engine.transmit(Time(now), PORT, frame, sent);
            sent += 1;
            held = class(&mut engine, Time(now), 0);
            let detect = held.random_detect.as_ref().unwrap();
            if before.is_none() && detect.mean_depth > 29.0 {
                before = Some((sent, detect.ecn_mark.as_ref().unwrap().packets));
            }
        }
        // A packet takes a little longer on the line.
        now += 4 * MILLI;
    }
    let (first, marked) = before.unwrap();
    let all = class(&mut engine, Time(now), 0);
    assert_eq!(all.drops.random.packets, 0);
    let (tried, marked) =
        ((packets - first) as f64, (all.random_detect.unwrap().ecn_mark.unwrap().packets - marked) as f64);
    let expected = tried / 20.0;
    assert!((marked - expected).abs() < 5.0 * (expected * 0.95).sqrt(), "{marked} marked, {expected} expected");
}

/// Drops of a full queue count in the row of the packet, and counters restart when they are cleared.
#[test]
fn drops_of_a_full_queue_are_in_their_rows() {
    let classes = vec![class_default().queue_limit(5).random_detect(red_by_precedence().weight(9))];
    let mut engine: Engine<u64> = common::started(2_000_000, Ppp, &with_policy(Hqf, 2_000, classes));
    for packet in 0..100 {
        let frame = common::datagram(1000, (packet % 2 * 8) as u8, 1, 6_000, Ppp);
        engine.transmit(Time(packet), PORT, frame, packet);
    }
    let rows = |engine: &mut Engine<u64>| {
        let class = class(engine, Time(100), 0);
        let rows = class.random_detect.unwrap().classes;
        (class.drops.tail.packets, [rows[0].tail_drop.packets, rows[1].tail_drop.packets])
    };
    let (all, [even, odd]) = rows(&mut engine);
    assert!(all > 90 && even > 40 && odd > 40 && even + odd == all, "{all} {even} {odd}");
    engine.clear(Time(100), None);
    assert_eq!(rows(&mut engine), (0, [0, 0]));
}
