//! The rules of IOS-XE on routers: minimum, maximum and excess, queue limits by time, thresholds by the limit. Each
//! test fails if one rule is taken for that of the later generation of IOS.

use crate::common::build::*;
use crate::common::{self, bytes_by_source, load, with_policies, with_policy, Source, SECOND};
use qos_core::counters::ClassCounters;
use qos_core::wire::Framing::Ethernet;
use qos_core::{Engine, RouterConfig, Time};

const SECONDS: u64 = 10;

/// Offered and received rates of sources on a line, kb/s of each, and the counters of the classes.
fn offered_load(line_bps: u64, config: &RouterConfig, sources: &[Source]) -> (Vec<ClassCounters>, Vec<f64>) {
    let mut engine: Engine<usize> = common::started(line_bps, Ethernet, config);
    let outputs = match sources {
        [] => Vec::new(),
        _ => load(&mut engine, Ethernet, sources, Time(SECONDS * SECOND)),
    };
    engine.audit().unwrap();
    let policy = engine.counters(Time(SECONDS * SECOND), None).interfaces["Out"].policy_output.clone().unwrap();
    let kbps = |bytes: &u64| *bytes as f64 * 8.0 / 1_000.0 / SECONDS as f64;
    (policy.classes, bytes_by_source(&outputs, sources.len()).iter().map(kbps).collect())
}

/// Below a shaper, so that no overhead of the line counts; class n is that of code point n, the last one class-default.
fn shaped_policy(shape_bps: u64, classes: &[PolicyClass], offers_kbps: &[u64]) -> Vec<f64> {
    let parent = vec![class_default().service_policy("CHILD").shape_bps(shape_bps)];
    let config = with_policies(IosXe, 1_000_000, maps([("P", parent), ("CHILD", classes.to_vec())]));
    let last = offers_kbps.len() as u16;
    let sources: Vec<_> = (1u16..)
        .zip(offers_kbps)
        .map(|(number, kbps)| Source::new(1_000, (number % last) as u8, number, kbps * 1_000))
        .collect();
    offered_load(1_000_000_000, &config, &sources).1
}

fn is_about(found: &[f64], expected: &[f64]) {
    let near = |(found, expected): (&f64, &f64)| (found - expected).abs() < expected * 0.03 + 5.0;
    assert!(found.iter().zip(expected).all(near), "{found:?}, expected {expected:?}");
}

/// Table 7.3 of the facts: every class has its minimum, and the remainder is shared by weight.
#[test]
fn bandwidth_left_by_minimum_rates_is_shared_equally() {
    let bandwidth = |name: &str, kbps: u64| class_of(name).kbps(kbps);
    let two = vec![bandwidth("c1", 400), bandwidth("c2", 600)];
    is_about(&shaped_policy(2_000_000, &two, &[3_000, 3_000, 3_000]), &[733.3, 933.3, 333.3]);
    is_about(&shaped_policy(10_000_000, &[bandwidth("c1", 6_000)], &[8_000, 8_000]), &[8_000.0, 2_000.0]);
}

#[test]
fn remaining_bandwidth_is_shared_as_configured() {
    let remaining = |name: &str, percent: u32| class_of(name).remaining_percent(percent);
    let two = vec![remaining("c1", 20), remaining("c2", 30)];
    is_about(&shaped_policy(2_000_000, &two, &[3_000, 3_000, 3_000]), &[400.0, 600.0, 1_000.0]);
    let ratio = |name: &str, ratio: u32| class_of(name).remaining_ratio(ratio);
    let two = vec![ratio("c1", 2), ratio("c2", 3)];
    is_about(&shaped_policy(2_000_000, &two, &[3_000, 3_000, 3_000]), &[666.7, 1_000.0, 333.3]);
}

/// A class that does not use its minimum gives it away, and does not save it up.
#[test]
fn an_unused_minimum_is_shared() {
    let bandwidth = |name: &str, kbps: u64| class_of(name).kbps(kbps);
    let priority = class_of("c3").strict();
    let classes = vec![bandwidth("c1", 2_000), bandwidth("c2", 1_000), priority];
    is_about(&shaped_policy(10_000_000, &classes, &[9_000, 500, 1_000, 9_000]), &[5_250.0, 500.0, 1_000.0, 3_250.0]);
}

/// The WAN edge of a published design: priority, and eight classes by `bandwidth remaining percent`.
#[test]
fn wan_edge_shares_the_bandwidth_left_by_priority() {
    let mut classes = vec![class_of("c1").strict()];
    let shares = [15, 15, 4, 3, 3, 15, 6, 1];
    for (number, percent) in (2..).zip(shares) {
        classes.push(class_of(&format!("c{number}")).remaining_percent(percent));
    }
    classes.push(class_default().remaining_percent(38));
    let offers = [5_000, 30_000, 30_000, 300, 200, 100, 30_000, 30_000, 30_000, 30_000];
    let expected = [5_000.0, 7_400.0, 7_400.0, 300.0, 200.0, 100.0, 7_400.0, 2_960.0, 493.3, 18_746.7];
    is_about(&shaped_policy(50_000_000, &classes, &offers), &expected);
}

/// Table 7.1 of the facts: 50 ms of the rate in packets of 1500 bytes, at least 64; a priority level has 512.
#[test]
fn default_queue_limits_are_fifty_milliseconds() {
    for (bps, packets) in [
        (128_000, 64),
        (8_000_000, 64),
        (15_360_000, 64),
        (20_000_000, 83),
        (42_500_000, 177),
        (50_000_000, 208),
        (100_000_000, 416),
        (1_000_000_000, 4_166),
        (10_000_000_000, 41_666),
    ] {
        let parent = vec![class_default().service_policy("CHILD").shape_bps(bps)];
        let children = vec![class_of("c1").strict(), class_of("c2").remaining_percent(8)];
        let config = with_policies(IosXe, 10_000_000, maps([("P", parent), ("CHILD", children)]));
        let (classes, _) = offered_load(10_000_000_000, &config, &[]);
        let child = classes[0].child.as_ref().unwrap();
        let limit = |class: &ClassCounters| class.queue.as_ref().and_then(|queue| queue.limit_packets);
        assert_eq!(limit(&classes[0]), Some(packets), "{bps} b/s");
        let found: Vec<_> = child.classes.iter().skip(1).map(limit).collect();
        assert_eq!(found, [Some(packets), Some(packets)], "{bps} b/s");
        assert_eq!(child.priority_queues[0].limit_packets, 512);
        let shape = classes[0].shape.as_ref().unwrap();
        assert_eq!((shape.bc_bits, shape.be_bits), (bps / 250, bps / 250));
    }
}

/// The reference rate of a limit is the class's bandwidth, else its shaper, else that of the level above; units are
/// those of the class.
#[test]
fn queue_limit_refers_to_the_class_rate() {
    let limits = |class: PolicyClass| {
        let queue = offered_load(1_000_000_000, &with_policy(IosXe, 1_000_000, vec![class]), &[]).0[0].queue.unwrap();
        (queue.limit_packets, queue.limit_bytes, queue.limit_us)
    };
    let class = || class_of("c1");
    assert_eq!(limits(class().kbps(300_000)), (Some(1_250), None, None));
    assert_eq!(limits(class().shape_bps(50_000_000)), (Some(208), None, None));
    assert_eq!(limits(class().kbps(300_000).shape_bps(50_000_000)), (Some(1_250), None, None));
    assert_eq!(limits(class().kbps(300_000).limit(Ms(10))), (None, Some(375_000), None));
    assert_eq!(limits(class().kbps(100_000).limit(Us(3_932))), (None, Some(49_150), Some(3_932)));
}

/// Table 7.2 of the facts: thresholds by precedence follow from the limit, in packets too.
#[test]
fn early_detection_follows_the_queue_limit() {
    for (limit, max, least) in [
        (64, 32, [16, 18, 20, 22, 24, 26, 28, 30]),
        (208, 104, [52, 58, 65, 71, 78, 84, 91, 97]),
        (416, 208, [104, 117, 130, 143, 156, 169, 182, 195]),
        (4_166, 2_083, [1_041, 1_171, 1_301, 1_432, 1_562, 1_692, 1_822, 1_952]),
    ] {
        let wanted = class_default().queue_limit(limit).random_detect(red_by_precedence());
        let config = with_policy(IosXe, 1_000_000, vec![wanted]);
        let rows = offered_load(1_000_000_000, &config, &[]).0[0].random_detect.clone().unwrap().classes;
        assert_eq!(rows.iter().map(|row| row.min).collect::<Vec<_>>(), least);
        assert!(rows.iter().all(|row| row.max == max));
    }
}

#[test]
fn red_thresholds_in_percent_refer_to_the_queue_limit() {
    let wanted = class_default()
        .limit(Bytes(312_500))
        .random_detect(red_by_dscp().unit(LimitUnit::Percent).row(26, 43, 50, None));
    let config = with_policy(IosXe, 1_000_000, vec![wanted]);
    let sources = [Source::new(1_000, 26, 0, 1_000_000)];
    let rows = offered_load(1_000_000_000, &config, &sources).0[0].random_detect.clone().unwrap().classes;
    let row = rows.iter().find(|row| row.value == 26).unwrap();
    assert_eq!((row.min, row.max), (134_375, 156_250));
}

/// The limit of a class with `fair-queue` holds for all its flows, and that of a flow is a quarter.
#[test]
fn flows_share_the_limit_of_their_class() {
    let config = with_policy(IosXe, 10_000, vec![class_default().fair_queue().queue_limit(64)]);
    let sources: Vec<_> = (0..30).map(|flow| Source::new(1_000, 0, flow, 2_000_000)).collect();
    let (classes, _) = offered_load(10_000_000, &config, &sources);
    let queue = classes[0].queue.unwrap();
    assert_eq!((queue.per_flow_limit, queue.max_flows), (Some(16), Some(16)));
    assert!(queue.depth_packets <= 64 && classes[0].drops.tail.packets > 0, "{:?}", classes[0]);
}

/// A flow queue may have its own limit.
#[test]
fn flow_queue_uses_the_configured_limit() {
    for generation in [Hqf, IosXe] {
        let fair = PolicyClass {
            fair_queue: Some(FairQueueConfig { queues: None, queue_limit: Some(5) }),
            ..class_default().queue_limit(64)
        };
        let config = with_policy(generation, 10_000, vec![fair]);
        let (classes, _) = offered_load(10_000_000, &config, &[Source::new(1_000, 0, 0, 20_000_000)]);
        let queue = classes[0].queue.unwrap();
        assert_eq!(queue.per_flow_limit, Some(5), "{generation:?}");
        assert!(queue.depth_packets <= 5, "{generation:?}: {queue:?}");
    }
}

/// The limits of code points are parts of that of the class: those below it are dropped first.
#[test]
fn limits_by_code_point_may_be_in_percent() {
    let wanted = class_default().queue_limit(100).queue_thresholds(vec![limit_by(
        ThresholdField::Dscp,
        10,
        QueueLimit::Percent(20),
    )]);
    let config = with_policy(IosXe, 10_000, vec![wanted]);
    let deepest = |dscp: u8| {
        let sources = [Source::new(1_000, dscp, 0, 20_000_000)];
        offered_load(10_000_000, &config, &sources).0[0].queue.unwrap().depth_packets
    };
    assert_eq!((deepest(10), deepest(0)), (20, 100));
    let whole = vec![class_default().limit(QueueLimit::Percent(20))];
    let mut engine: Engine<usize> = common::engine(10_000_000, Ethernet);
    assert!(engine.configure(Time(0), &with_policy(IosXe, 10_000, whole)).is_err());
}

/// The queue of a priority level may have a limit in bytes, or in time of the rate of its class.
#[test]
fn a_priority_queue_has_a_limit_in_bytes() {
    for (limit, bytes) in [(Bytes(20_000), 20_000), (Ms(20), 12_500)] {
        let config = with_policy(IosXe, 10_000, vec![class_of("c1").priority_kbps(5_000).limit(limit)]);
        let mut engine: Engine<usize> = common::started(10_000_000, Ethernet, &config);
        load(&mut engine, Ethernet, &[Source::new(1_000, 1, 0, 20_000_000)], Time(SECOND));
        let policy = engine.counters(Time(SECOND), None).interfaces["Out"].policy_output.clone().unwrap();
        let queue = policy.priority_queues[0];
        assert_eq!((queue.limit_packets, queue.limit_bytes), (0, Some(bytes)));
        assert!(queue.depth_bytes.is_some_and(|depth| depth <= u64::from(bytes)), "{queue:?}");
        assert!(queue.drops.packets > 0 || policy.classes[0].drops.priority.packets > 0, "{policy:?}");
    }
}

/// A shaper lets packets go one by one: no burst of 4 ms.
#[test]
fn a_shaper_spaces_packets() {
    let config = with_policy(IosXe, 1_000_000, vec![class_default().shape_bps(10_000_000)]);
    let mut engine: Engine<usize> = common::started(1_000_000_000, Ethernet, &config);
    let outputs = load(&mut engine, Ethernet, &[Source::new(1_000, 0, 0, 30_000_000)], Time(SECOND));
    let times: Vec<_> = common::departures(&outputs).iter().map(|(time, ..)| time.0).collect();
    let in_4_ms = |start: &u64| times.iter().filter(|time| (*start..start + 4_000_000).contains(*time)).count();
    // 4 ms of 10 Mb/s are five packets; a burst of HQF would have ten.
    assert!(times.iter().all(|start| in_4_ms(start) <= 7), "{:?}", &times[..20]);
    assert!((9_500_000..10_500_000).contains(&(times.len() as u64 * 1_014 * 8)));
}

/// A rate that is no multiple of the tick is held all the same.
#[test]
fn a_shaper_holds_any_rate() {
    for bps in [12_345u64, 8_001, 999_999] {
        let config = with_policy(IosXe, 10_000, vec![class_default().shape_bps(bps)]);
        let got = offered_load(10_000_000, &config, &[Source::new(86, 0, 0, 3_000_000)]).1[0];
        let most = bps as f64 / 1_000.0 + 1_522.0 * 8.0 / 1_000.0 / SECONDS as f64;
        assert!(got <= most + 0.2 && got > bps as f64 / 1_000.0 * 0.98, "{got} of {bps}");
    }
}

#[test]
fn explicit_policer_limits_a_priority_class_without_congestion() {
    let police = PoliceConfig::new(RateSpec::Percent(10));
    let always = vec![class_of("c1").strict().police(police)];
    let config = with_policy(IosXe, 10_000, always);
    let kbps = offered_load(10_000_000, &config, &[Source::new(1_000, 1, 0, 3_000_000)]).1;
    assert!((1_000.0..1_060.0).contains(&kbps[0]), "{kbps:?}");
    let in_congestion = vec![class_of("c1").priority_percent(10)];
    let config = with_policy(IosXe, 10_000, in_congestion);
    let alone = offered_load(10_000_000, &config, &[Source::new(1_000, 1, 0, 3_000_000)]).1;
    assert!(alone[0] > 2_900.0, "{alone:?}");
    let busy = [Source::new(1_000, 1, 0, 3_000_000), Source::new(1_000, 0, 1, 20_000_000)];
    let kbps = offered_load(10_000_000, &config, &busy).1;
    assert!((950.0..1_060.0).contains(&kbps[0]), "{kbps:?}");
}

#[test]
fn bandwidth_is_accepted_only_in_leaf_classes() {
    let child = vec![class_of("c2").remaining_percent(50)];
    for (generation, bandwidth, refused) in [
        (IosXe, BandwidthConfig::Percent(30), true),
        (IosXe, BandwidthConfig::RemainingRatio(30), false),
        (Hqf, BandwidthConfig::Percent(30), false),
    ] {
        let parent = vec![class_of("c1").bandwidth(bandwidth).service_policy("CHILD")];
        let config = with_policies(generation, 10_000, maps([("P", parent), ("CHILD", child.clone())]));
        let mut engine: Engine<usize> = common::engine(10_000_000, Ethernet);
        assert_eq!(engine.configure(Time(0), &config).is_err(), refused, "{generation:?}");
    }
}

/// More can be reserved than with HQF, and overhead has a wider range.
#[test]
fn ios_xe_accepts_wider_ranges_than_hqf() {
    let possible = |generation: Generation, class: PolicyClass| {
        let config = with_policy(generation, 10_000, vec![class]);
        common::engine::<usize>(10_000_000, Ethernet).configure(Time(0), &config).is_ok()
    };
    for class in [
        class_of("c1").percent(100),
        class_of("c1").remaining_ratio(65_536),
        class_of("c1").shape_bps(1_000_000).account(user_defined(1_000, false)),
    ] {
        assert!(possible(IosXe, class.clone()), "{class:?}");
        assert!(!possible(Hqf, class.clone()), "{class:?}");
    }
}
