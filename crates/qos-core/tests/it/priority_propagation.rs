//! Priority of a class below another one, at the levels above it (later generation).

use crate::common::build::*;
use crate::common::{self, bytes_by_source, class, configuration, departures, load, run, Source, PORT, SECOND};
use proptest::prelude::*;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Output, Time};

/// Two sites, each with voice (code points 1 and 3) and others (2 and 4), on 2 Mb/s. `deep`: one level more.
fn site_policies(generation: Generation, shares: [u32; 2], shape: Option<u64>, deep: bool) -> Engine<usize> {
    let site = |voice: &str| vec![class_of(voice).strict(), class_default().queue_limit(200)];
    let first = PolicyClass { shape: shape.map(average), ..class_of("site1").percent(shares[0]) };
    let both = vec![first.service_policy("Site1"), class_of("site2").percent(shares[1]).service_policy("Site2")];
    let sites = maps([("Site1", site("c1")), ("Site2", site("c3"))]);
    let upper = if deep {
        maps([("Both", both), ("P", vec![class_default().service_policy("Both").shape_bps(1_900_000)])])
    } else {
        maps([("P", both)])
    };
    let config =
        configuration(generation, [sites, upper].into_iter().flatten().collect(), interface(2_000, None, Some("P")))
            .class_map("site1", match_all(vec![dscp(&[1, 2])]))
            .class_map("site2", match_all(vec![dscp(&[3, 4])]));
    common::started(2_000_000, Ppp, &config)
}

proptest! {
    #![proptest_config(crate::bounded::cases(32))]

    /// With any load of another site and any share of its own, at most the ring, the packet on the wire and
    /// the voice of both sites are ahead of a voice packet.
    #[test]
    fn propagated_priority_does_not_wait_for_other_sites(
        share in 1u32..90,
        lengths in prop::array::uniform2(60usize..1500),
        voice in 60usize..400,
        gaps in prop::collection::vec(1u64..30_000_000, 1..50),
    ) {
        let mut engine = site_policies(Hqf, [share, 90 - share], None, false);
        let floods = [Source::new(lengths[0], 2, 2, 1_500_000), Source::new(lengths[1], 4, 4, 3_000_000)];
        let probes = [Source::new(voice, 1, 1, 1), Source::new(voice, 3, 3, 1)];
        let (mut outputs, mut arrivals, mut next, mut now) = (Vec::new(), Vec::new(), [0u64; 2], SECOND / 2);
        for (number, gap) in gaps.into_iter().enumerate() {
            now += gap;
            while let Some(flood) = (0..2).filter(|flood| next[*flood] < now).min_by_key(|flood| next[*flood]) {
                run(&mut engine, Time(next[flood]), &mut outputs);
                engine.transmit(Time(next[flood]), PORT, floods[flood].descriptor(Ppp), usize::MAX);
                next[flood] += floods[flood].gap_ns;
            }
            run(&mut engine, Time(now), &mut outputs);
            engine.transmit(Time(now), PORT, probes[number % 2].descriptor(Ppp), number);
            engine.audit().unwrap();
            arrivals.push(now);
        }
        run(&mut engine, Time(now + SECOND), &mut outputs);
        let departures = departures(&outputs);
        for (left, number, _) in departures.iter().filter(|(_, number, _)| *number != usize::MAX) {
            let ahead = departures.iter()
                .filter(|(time, other, _)| *other == usize::MAX && time.0 > arrivals[*number] && time < left)
                .count();
            prop_assert!(ahead <= 3, "{ahead} packets of others ahead of {number}");
        }
    }

    /// Voice takes nothing from its site's share: the remainder is shared by weight.
    #[test]
    fn voice_does_not_reduce_the_share_of_its_site(share in 10u32..80, deep in any::<bool>()) {
        let shares = [share, 90 - share];
        let mut engine = site_policies(Hqf, shares, None, deep);
        let sources = [
            Source::new(200, 1, 1, 150_000), Source::new(1000, 2, 2, 2_500_000),
            Source::new(200, 3, 3, 50_000), Source::new(1000, 4, 4, 2_500_000)];
        let outputs = load(&mut engine, Ppp, &sources, Time(20 * SECOND));
        engine.audit().unwrap();
        let bytes = bytes_by_source(&outputs, 4);
        let voice = [150_000, 50_000].map(|bps: u64| bps * 204 / 200 / 8 * 20);
        prop_assert!(bytes[0].abs_diff(voice[0]) <= 4 * 204 && bytes[2].abs_diff(voice[1]) <= 4 * 204, "{bytes:?}");
        // Packets that had filled the queues are still in them.
        let ratio = bytes[1] as f64 / bytes[3] as f64;
        let wanted = shares[0] as f64 / shares[1] as f64;
        prop_assert!((ratio / wanted - 1.0).abs() < 0.02, "{ratio} instead of {wanted}: {bytes:?}");
    }
}

/// The audit's case: 100 kb/s of voice in one site, the other saturates 2 Mb/s. Voice waits for a ring of two and the
/// packet on the wire, its jitter is less than one packet's time; before priority went up it was 2.3 ms more.
#[test]
fn jitter_of_voice_is_below_a_packets_time() {
    for deep in [false, true] {
        let mut engine = site_policies(Hqf, [10, 80], None, deep);
        let sources = [Source::new(200, 1, 1, 100_000), Source::new(500, 4, 4, 3_000_000)];
        let outputs = load(&mut engine, Ppp, &sources, Time(10 * SECOND));
        assert_eq!(outputs.iter().filter(|o| matches!(o, Output::Dropped(d) if d.payload == 0)).count(), 0);
        let voice: Vec<u64> = departures(&outputs)
            .iter()
            .filter(|(_, source, _)| *source == 0)
            .enumerate()
            .map(|(number, (left, ..))| left.0 - number as u64 * sources[0].gap_ns)
            .skip(60)
            .collect();
        let (least, most) = (voice.iter().min().unwrap(), voice.iter().max().unwrap());
        // A shaper that covers everything may have lent the packet before to the ring.
        let packet = 507 * 8 * 500 * (1 + u64::from(deep));
        assert!(most - least <= packet + 1_000, "{deep}: {} ns between {least} and {most}", most - least);
        assert!(*most <= 3 * packet + 207 * 8 * 500 + 1_000, "{deep}: {most}");
    }
}

/// A shaper around the site holds its voice too.
#[test]
fn parent_shaper_delays_priority_packets() {
    let mut engine = site_policies(Hqf, [10, 80], Some(100_000), false);
    let sources = [Source::new(200, 1, 1, 190_000), Source::new(500, 4, 4, 3_000_000)];
    let outputs = load(&mut engine, Ppp, &sources, Time(10 * SECOND));
    engine.audit().unwrap();
    let voice = bytes_by_source(&outputs, 2)[0] * 8 / 10;
    assert!((98_000..104_000).contains(&voice), "{voice} b/s");
    let class = class(&mut engine, Time(10 * SECOND), 0).child.unwrap().classes[0].clone();
    assert!(class.drops.tail.packets + class.drops.priority.packets > 0, "{:?}", class.drops);
}

/// At the same level voice of several sites goes in the order in which it came, and a site that has more goes behind
/// the others again.
#[test]
fn voice_of_two_sites_is_served_in_order_of_arrival() {
    for [first, second] in [[1, 3], [3, 1]] {
        let mut engine = site_policies(Hqf, [40, 40], None, false);
        let packets = [2, 2, 2, first, first, second, second];
        for dscp in packets {
            engine.transmit(Time(0), PORT, Source::new(200, dscp, 0, 1).descriptor(Ppp), usize::from(dscp));
        }
        let mut outputs = Vec::new();
        run(&mut engine, Time(SECOND), &mut outputs);
        let left: Vec<_> = departures(&outputs).into_iter().skip(3).map(|(_, dscp, _)| dscp).collect();
        // Three were on the line and in the ring.
        assert_eq!(left, [first, second, first, second].map(usize::from));
    }
}
