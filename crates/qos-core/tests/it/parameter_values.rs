//! Parameters of policers, shapers and queues: default and resolved values, and the limits of permitted ones.

use crate::common::build::*;
use crate::common::{self, class, configuration, with_policy};
use qos_core::config::defaults;
use qos_core::counters::{ClassCounters, ResolvedClass};
use qos_core::wire::Framing::{Ethernet, Ppp};
use qos_core::{Engine, RouterConfig, Time};

/// Classes of an output policy on an interface of that bandwidth, or the path of the refused value.
fn policy(generation: Generation, kbps: u64, classes: Vec<PolicyClass>) -> Result<Vec<ClassCounters>, String> {
    let config = with_policy(generation, kbps, classes);
    let mut engine: Engine<u64> = common::engine(1_000_000_000, Ethernet);
    engine.configure(Time(0), &config).map_err(|error| error.path)?;
    Ok(engine.counters(Time(0), None).interfaces["Out"].policy_output.clone().unwrap().classes)
}

/// The only class, or the place of its error.
fn with(generation: Generation, kbps: u64, class: PolicyClass) -> Result<ClassCounters, String> {
    let found = policy(generation, kbps, vec![class]);
    let place = |path: String| path.split_once("classes[0].").map_or(path.clone(), |(_, place)| place.to_owned());
    found.map(|classes| classes[0].clone()).map_err(place)
}

/// CIR, Bc, PIR and Be of a policer.
type Police = (u64, u64, Option<u64>, Option<u64>);

fn policed_class(kbps: u64, asked: &PoliceConfig) -> Result<Police, String> {
    let police = with(Hqf, kbps, class_of("c1").police(asked.clone()))?.police.unwrap();
    Ok((police.cir_bps, police.bc_bytes, police.pir_bps, police.be_bytes))
}

#[test]
fn policer_rates_are_checked_and_resolved() {
    for (asked, found) in [
        (police(7_999), Err("police.cir")),
        (police(8_000), Ok((8_000, 1_500))),
        (police(100_000_000_000), Ok((100_000_000_000, 512_000_000))),
        (police(100_000_000_001), Err("police.cir")),
        (PoliceConfig::new(RateSpec::Percent(0)), Err("police.cir")),
        (PoliceConfig::new(RateSpec::Percent(1)), Ok((20_000, 1_500))),
        (PoliceConfig::new(RateSpec::Percent(100)), Ok((2_000_000, 62_500))),
        (PoliceConfig::new(RateSpec::Percent(101)), Err("police.cir")),
    ] {
        let expected = found.map(|(cir, bc)| (cir, bc, None, None)).map_err(str::to_owned);
        assert_eq!(policed_class(2_000, &asked), expected, "{asked:?}");
    }
    // Percentages refer to the interface's bandwidth as configured.
    let whole = PoliceConfig::new(RateSpec::Percent(100));
    assert_eq!(policed_class(100_000_000, &whole).map(|found| found.0), Ok(100_000_000_000));
    assert_eq!(policed_class(100_000_001, &whole), Err("police.cir".to_owned()));
    // Two rates.
    let two = |pir: u64| PoliceConfig { pir: Some(RateSpec::Bps(pir)), ..police(64_000) };
    assert_eq!(policed_class(2_000, &two(63_999)), Err("police.pir".to_owned()));
    assert_eq!(policed_class(2_000, &two(64_000)), Ok((64_000, 2_000, Some(64_000), Some(2_000))));
    assert_eq!(policed_class(2_000, &two(128_000)), Ok((64_000, 2_000, Some(128_000), Some(4_000))));
}

/// Bursts in bytes, and in milliseconds of the rate.
#[test]
fn policer_bursts_are_checked_and_resolved() {
    use PoliceBurst::{Bytes, Ms};
    for (cir, bc, found) in [
        (64_000, Bytes(999), None),
        (64_000, Bytes(1_000), Some(1_000)),
        (64_000, Bytes(512_000_000), Some(512_000_000)),
        (64_000, Bytes(512_000_001), None),
        (1_000_000, Ms(0), None),
        (1_000_000, Ms(1), Some(125)),
        (1_000_000, Ms(100), Some(12_500)),
        (1_000_000, Ms(2_000), Some(250_000)),
        (1_000_000, Ms(2_001), None),
        (2_048_000_000, Ms(2_000), Some(512_000_000)),
        (2_048_001_000, Ms(2_000), None),
    ] {
        let asked = PoliceConfig { bc: Some(bc), ..police(cir) };
        let expected = found.map(|bc| (cir, bc, None, None)).ok_or("police.bc".to_owned());
        assert_eq!(policed_class(2_000, &asked), expected, "{asked:?}");
    }
    // Percentages of the peak rate if there is one, else of the committed rate.
    let be = Ms(100);
    let one = PoliceConfig { be: Some(be), ..police(80_000) };
    assert_eq!(policed_class(2_000, &one), Ok((80_000, 2_500, None, Some(1_000))));
    let two = PoliceConfig { pir: Some(RateSpec::Bps(160_000)), be: Some(be), ..police(80_000) };
    assert_eq!(policed_class(2_000, &two), Ok((80_000, 2_500, Some(160_000), Some(2_000))));
    // Too few bits for one byte: 1 per cent of 1 kb/s.
    let little = |ms: u64| PoliceConfig { bc: Some(Ms(ms)), ..PoliceConfig::new(RateSpec::Percent(1)) };
    assert_eq!(policed_class(1, &little(799)), Err("police.bc".to_owned()));
    assert_eq!(policed_class(1, &little(800)), Ok((10, 1, None, None)));
}

/// Makes the action that writes a value.
type Mark = fn(u16) -> PoliceAction;

#[test]
fn policer_actions_are_checked() {
    use PoliceAction::{SetCosTransmit, SetDscpTransmit, SetPrecTransmit, SetQosTransmit, Transmit};
    let set: [(Mark, u16); 4] = [
        (|value| SetDscpTransmit { value }, 63),
        (|value| SetPrecTransmit { value }, 7),
        (|value| SetQosTransmit { value }, 99),
        (|value| SetCosTransmit { value }, 7),
    ];
    for colour in ["conform", "exceed", "violate"] {
        let found = |actions: Vec<PoliceAction>| {
            let mut asked = police(64_000);
            match colour {
                "conform" => asked.conform = Some(actions),
                "exceed" => asked.exceed = Some(actions),
                _ => asked.violate = Some(actions),
            }
            policed_class(2_000, &asked).err()
        };
        assert_eq!(found(vec![]), Some(format!("police.{colour}")));
        for (action, most) in set {
            assert_eq!(found(vec![Transmit {}, action(most)]), None, "{:?}", action(most));
            let beyond = found(vec![Transmit {}, action(most + 1)]);
            assert_eq!(beyond, Some(format!("police.{colour}[1].value")), "{:?}", action(most));
        }
    }
}

/// CIR, Bc, Be in bits, and the interval in whole milliseconds.
type Shape = (u64, u64, u64, u64);

fn shaped_class(generation: Generation, kbps: u64, asked: &ShapeConfig) -> Result<Shape, String> {
    let shape = with(generation, kbps, class_of("c1").shape(asked.clone()))?.shape.unwrap();
    Ok((shape.cir_bps, shape.bc_bits, shape.be_bits, shape.interval_ms))
}

/// Bursts in bits, and in milliseconds of the rate; Be equals Bc by default, and may be zero.
#[test]
fn shaper_bursts_are_checked_and_resolved() {
    use ShapeBurst::{Bits, Ms};
    for (cir, bc, be, found) in [
        (1_000_000, Bits(255), None, Err("shape.bc")),
        (1_000_000, Bits(256), None, Ok((256, 256, 0))),
        (1_000_000, Bits(154_400_000), None, Ok((154_400_000, 154_400_000, 154_400))),
        (1_000_000, Bits(154_400_001), None, Err("shape.bc")),
        (1_000_000, Bits(0), None, Err("shape.bc")),
        (1_000_000, Ms(0), None, Err("shape.bc")),
        (1_000_000, Ms(9), None, Err("shape.bc")),
        (1_000_000, Ms(10), None, Ok((10_000, 10_000, 10))),
        (1_000_000, Ms(2_000), None, Ok((2_000_000, 2_000_000, 2_000))),
        (1_000_000, Ms(2_001), None, Err("shape.bc")),
        (1_000_000, Bits(4_000), Some(Bits(0)), Ok((4_000, 0, 4))),
        (1_000_000, Bits(4_000), Some(Ms(0)), Ok((4_000, 0, 4))),
        (1_000_000, Bits(4_000), Some(Ms(30)), Ok((4_000, 30_000, 4))),
        (1_000_000, Bits(4_000), Some(Bits(255)), Err("shape.be")),
        // The interval is reported to the nanosecond, rounded: 999999.6 are a millisecond.
        (8_000_003, Bits(8_000), None, Ok((8_000, 8_000, 1))),
        // A microsecond is accepted, a shorter time is not.
        (256_000_000, Bits(256), None, Ok((256, 256, 0))),
        (257_000_000, Bits(256), None, Err("shape.bc")),
    ] {
        let asked = ShapeConfig { bc: Some(bc), be, ..average(cir) };
        let expected = found.map(|(bc, be, ms)| (cir, bc, be, ms)).map_err(str::to_owned);
        assert_eq!(shaped_class(Hqf, 2_000, &asked), expected, "{asked:?}");
    }
    // Too few bits for the interval: 1 per cent of 1 kb/s.
    let little = |bc| shaped_class(Hqf, 1, &ShapeConfig { bc, ..ShapeConfig::average(RateSpec::Percent(1)) });
    assert_eq!(little(Some(Ms(99))), Err("shape.bc".to_owned()));
    assert_eq!(little(Some(Ms(100))), Ok((10, 1, 1, 100)));
    assert_eq!(little(None), Err("shape.bc".to_owned()), "4 ms of 10 b/s");
}

/// The later generation has intervals of 4 ms; the classic one of 25 ms, or as long as 8000 bits take.
#[test]
fn default_shaper_bursts_follow_the_generation() {
    for (generation, cir, bc, ms) in [
        (Hqf, 64_000, 256, 4),
        (Hqf, 1_000_000, 4_000, 4),
        (Classic, 64_000, 8_000, 125),
        (Classic, 128_000, 7_936, 62),
        (Classic, 320_000, 8_000, 25),
        (Classic, 1_000_000, 25_000, 25),
    ] {
        assert_eq!(shaped_class(generation, 2_000, &average(cir)), Ok((cir, bc, bc, ms)), "{generation:?} {cir}");
    }
}

#[test]
fn number_of_flow_queues_is_checked() {
    for (queues, fits) in [(8, false), (16, true), (17, false), (48, false), (4_096, true), (8_192, false)] {
        let classes = vec![class_default().fair_queues(queues)];
        for generation in [Classic, Hqf] {
            assert_eq!(policy(generation, 2_000, classes.clone()).is_ok(), fits, "{generation:?} {queues}");
        }
    }
    // The maximum number in total: 255 classes with 4096 each, eight with 2048 to 16, and sixteen with one, including
    // class-default.
    let flows = [[4_096; 255].as_slice(), &[2_048, 1_024, 512, 256, 128, 64, 32, 16]].concat();
    for (single, fits) in [(15, true), (16, false)] {
        let fair = flows.iter().map(|queues| Some(FairQueueConfig { queues: Some(*queues), queue_limit: None }));
        let fair = fair.chain(vec![None; single]);
        let one = BandwidthConfig::RemainingRatio(1);
        let named = |(number, fair)| PolicyClass { fair_queue: fair, ..class_of(&format!("m{number}")).bandwidth(one) };
        let classes: Vec<_> = fair.enumerate().map(named).collect();
        let any = match_any(vec![qos_group(1)]);
        let config = RouterConfig {
            class_maps: classes.iter().map(|class| (class.name.clone(), any.clone())).collect(),
            policy_maps: maps([("P", classes)]),
            ..RouterConfig::new("R1", Hqf)
        };
        let config = config.interface("Out", interface(2_000, None, Some("P")));
        let mut engine: Engine<u64> = common::engine(2_000_000, Ethernet);
        let error = engine.configure(Time(0), &config).err();
        assert_eq!(error.is_none(), fits, "{single}: {error:?}");
    }
}

/// As IOS numbers them: behind the flow queues and the eight of the system first that of the priority classes, then one
/// for each class with a bandwidth, and none for class-default.
#[test]
fn classic_conversations_are_numbered_as_in_ios() {
    let bandwidth = |name: &str| class_of(name).kbps(100);
    let priority = |name: &str| class_of(name).priority_kbps(100);
    let conversations = |generation: Generation, classes: Vec<PolicyClass>| {
        let classes = policy(generation, 2_000, classes).unwrap();
        let own = |class: &ClassCounters| class.queue.as_ref().and_then(|queue| queue.conversation);
        classes
            .iter()
            .map(|class| own(class).or(class.priority.as_ref().and_then(|priority| priority.conversation)))
            .collect::<Vec<_>>()
    };
    let all = vec![bandwidth("c1"), priority("c2"), bandwidth("c3"), priority("c4"), bandwidth("c5")];
    let found = conversations(Classic, all.clone());
    assert_eq!(found, [Some(265), Some(264), Some(266), Some(264), Some(267), None]);
    assert_eq!(conversations(Hqf, all), [None; 6]);
    let fewer = vec![bandwidth("c1"), class_default().fair_queues(16)];
    assert_eq!(conversations(Classic, fewer), [Some(25), None]);
}

/// A policy-map has so many classes, and one below the other three levels.
#[test]
fn number_of_classes_and_levels_is_bounded() {
    let mut engine: Engine<u64> = common::engine(2_000_000, Ethernet);
    let refused = |engine: &mut Engine<u64>, maps: Maps, output: Option<&str>| {
        let config = configuration(Hqf, maps, interface(2_000, None, output));
        engine.configure(Time(0), &config).err().map(|error| error.path)
    };
    let many = |classes: usize| maps([("P", vec![class_default(); classes])]);
    assert_eq!(refused(&mut engine, many(4_097), None), Some("policy_maps.P.classes".to_owned()));
    // Not too many, but the same.
    assert_eq!(refused(&mut engine, many(4_096), None), Some("policy_maps.P.classes[1].name".to_owned()));
    let chain = |levels: usize| {
        let map = |level: usize| {
            let service_policy = (level < levels).then(|| format!("L{}", level + 1));
            let classes = vec![PolicyClass { service_policy, ..class_default() }];
            (format!("L{level}"), PolicyMap { classes })
        };
        (1..=levels).map(map).collect::<Maps>()
    };
    assert_eq!(refused(&mut engine, chain(3), Some("L1")), None);
    let deeper = refused(&mut engine, chain(4), Some("L1"));
    assert_eq!(deeper, Some("policy_maps.L1.classes[0].service_policy".to_owned()));
    assert!(class(&mut engine, Time(0), 0).child.unwrap().classes[0].child.is_some(), "three levels are in force");
}

/// Cisco's tables: number of flow queues by bandwidth, and weight of a class by the number of flow queues.
#[test]
fn defaults_follow_bandwidth_and_flow_queues() {
    for (kbps, queues) in [
        (0, 16),
        (64, 16),
        (65, 32),
        (128, 32),
        (129, 64),
        (256, 64),
        (257, 128),
        (512, 128),
        (513, 256),
        (u64::MAX, 256),
    ] {
        assert_eq!(defaults::dynamic_queues(kbps), queues, "{kbps} kb/s");
    }
    let steps = [(32, 64), (64, 57), (128, 30), (256, 16), (512, 8), (1_024, 4), (2_048, 2), (u32::MAX, 1)];
    let mut least = 0;
    for (most, constant) in steps {
        for queues in [least, most] {
            assert_eq!(defaults::class_weight_constant(queues), constant, "{queues} flow queues");
        }
        least = most.wrapping_add(1);
    }
}

/// Early detection's thresholds by code point: those of expedited and assured forwarding are by drop precedence, those
/// of class selectors by precedence, and all others are that of best effort.
#[test]
fn default_red_thresholds_follow_the_code_point() {
    // Limits in packets, and in sixteenths of the greatest one in bytes.
    let mut expected = [(20, 8); 64];
    for precedence in 0..8 {
        expected[precedence as usize * 8] = (20 + 2 * precedence, 8 + precedence);
    }
    for class in 1..=4 {
        for (drop, least) in [(2, (32, 14)), (4, (28, 12)), (6, (24, 10))] {
            expected[class * 8 + drop] = least;
        }
    }
    expected[46] = (36, 15);
    for (dscp, (packets, sixteenths)) in (0..64u8).zip(expected) {
        let by_precedence = defaults::HQF_RANDOM_DETECT_MIN;
        let by_drop = defaults::HQF_RANDOM_DETECT_MIN_BY_DSCP;
        assert_eq!(defaults::random_detect_min_by_dscp(dscp, by_precedence, by_drop), packets, "{dscp}");
        let bytes = defaults::random_detect_by_limit(dscp, true, 96_000);
        assert_eq!(bytes, (48_000 * sixteenths / 16, 48_000), "{dscp}");
    }
    for precedence in 0..8u8 {
        let least = 48_000 * (8 + u32::from(precedence)) / 16;
        assert_eq!(defaults::random_detect_by_limit(precedence, false, 96_000), (least, 48_000), "{precedence}");
    }
    assert_eq!(defaults::random_detect_by_limit(0, false, 1), (0, 1));
    assert_eq!(defaults::random_detect_by_limit(0, false, u64::MAX), (u32::MAX / 2, u32::MAX));
}

/// The one class of a policy-map that is attached to no interface.
fn unattached_policy(class: PolicyClass) -> ResolvedClass {
    let mut engine: Engine<u64> = common::engine(2_000_000, Ethernet);
    engine.configure(Time(0), &configuration(Hqf, maps([("P", vec![class])]), interface(2_000, None, None))).unwrap();
    engine.resolve().policy_maps["P"].classes[0].clone()
}

/// A class without an interface reports the limit of its queue if it has one.
#[test]
fn unattached_class_shows_the_limit_of_its_own_queue() {
    let limit = |class: PolicyClass| unattached_policy(class).queue_limit_packets;
    assert_eq!(limit(class_of("c1")), None, "it has none");
    assert_eq!(limit(class_of("c1").set(SetField::Dscp, 1)), None);
    assert_eq!(limit(class_of("c1").kbps(100)), Some(64));
    assert_eq!(limit(class_of("c1").kbps(100).queue_limit(10)), Some(10));
    assert_eq!(limit(class_of("c1").priority_kbps(100)), None, "it shares that of its level");
    assert_eq!(limit(class_of("c1").priority_kbps(100).queue_limit(10)), Some(10));
}

/// By DSCP only the configured rows are reported, by precedence all rows.
#[test]
fn unattached_class_shows_its_red_thresholds() {
    let rows = |red: RandomDetectConfig, given: &[u8]| {
        let red = given.iter().fold(red, |red, value| red.row(*value, 10, 20, None));
        let class = unattached_policy(class_of("c1").kbps(100).random_detect(red));
        class.random_detect.unwrap().classes.iter().map(|row| row.value).collect::<Vec<_>>()
    };
    assert_eq!(rows(red_by_dscp(), &[]), [0; 0]);
    assert_eq!(rows(red_by_dscp(), &[46, 10]), [10, 46]);
    assert_eq!(rows(red_by_precedence(), &[5]), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// The later generation reports the queue that the priority classes of a level share, the classic one reports none.
#[test]
fn priority_level_queues_are_shown_by_hqf_only() {
    let levels = |generation: Generation| {
        let classes =
            vec![class_of("c1").priority_kbps(100), class_of("c2").priority_kbps(100), class_of("c3").kbps(100)];
        let mut engine: Engine<u64> = common::started(2_000_000, Ethernet, &with_policy(generation, 2_000, classes));
        let policy = engine.counters(Time(0), None).interfaces["Out"].policy_output.clone().unwrap();
        policy.priority_queues.iter().map(|queue| queue.level).collect::<Vec<_>>()
    };
    assert_eq!(levels(Hqf), [1]);
    assert_eq!(levels(Classic), [0; 0]);
}

/// Generic traffic shaping has flow queues by its rate, as an interface has by its bandwidth; under `priority-list` and
/// `queue-list` an interface has no conversations.
#[test]
fn interface_queueing_shows_its_number_of_conversations() {
    let reported = |queueing: InterfaceQueueing| {
        let mut own = interface(1_000, None, None);
        own.queueing = Some(queueing);
        let mut engine: Engine<u64> = common::started(1_000_000, Ppp, &configuration(Classic, Maps::new(), own));
        let counters = common::out(&mut engine, Time(0));
        let shapers: Vec<_> = counters.shapers.iter().map(|shaper| shaper.max_conversations).collect();
        (counters.queue.max_conversations, shapers)
    };
    let shapers = [64_000, 64_999, 65_000, 256_000, 513_000].map(|bps| traffic_shape(None, bps)).to_vec();
    let found = reported(InterfaceQueueing::Shaped { shapers });
    assert_eq!(found, (Some(256), vec![16, 16, 32, 64, 256]));
    assert_eq!(reported(priority_group(vec![])), (None, vec![]));
    assert_eq!(reported(custom_queues(vec![], vec![])), (None, vec![]));
}

/// A queue of `queue-list` without a limit has none, that of the interface's conversations neither.
#[test]
fn custom_queue_without_a_limit_drops_nothing() {
    let mut own = interface(1_000, None, None);
    own.queueing = Some(custom_queues(vec![], vec![CustomQueue { limit: 0, ..CustomQueue::new(1) }]));
    let mut engine: Engine<u64> = common::started(1_000_000, Ppp, &configuration(Classic, Maps::new(), own));
    for number in 0..2_000 {
        engine.transmit(Time(0), common::PORT, common::udp(100, 0, Ppp), number);
    }
    let counters = common::out(&mut engine, Time(0));
    assert_eq!((counters.numbered_queues[1].drops.packets, counters.numbered_queues[1].limit_packets), (0, 0));
    assert!(counters.numbered_queues[1].depth_packets > 1_900, "the ring has the others");
}
