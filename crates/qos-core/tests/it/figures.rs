//! The figures of policers, shapers and queues: what follows from what is asked for, and what just may be asked for.

use crate::common::{self, class, configuration, interface};
use qos_core::config::defaults;
use qos_core::counters::{ClassCounters, ResolvedClass};
use qos_core::wire::Framing::{Ethernet, Ppp};
use qos_core::{Engine, RouterConfig, Time};
use serde_json::{json, Value};

/// The classes of an output policy on an interface of that bandwidth, or the path of what is refused in it.
fn policy(generation: &str, kbps: u64, classes: Value) -> Result<Vec<ClassCounters>, String> {
    let config = configuration(generation, json!({"P": {"classes": classes}}), interface(kbps, None, Some("P")));
    let mut engine: Engine<u64> = common::engine(1_000_000_000, Ethernet);
    engine.configure(Time(0), &config).map_err(|error| error.path)?;
    Ok(engine.counters(Time(0), None).interfaces["Out"].policy_output.clone().unwrap().classes)
}

/// The one class with that action, or where in it something is wrong.
fn with(generation: &str, kbps: u64, field: &str, value: &Value) -> Result<ClassCounters, String> {
    let found = policy(generation, kbps, json!([{"name": "c1", field: value}]));
    let place = |path: String| path.split_once("classes[0].").map_or(path.clone(), |(_, place)| place.to_owned());
    found.map(|classes| classes[0].clone()).map_err(place)
}

/// CIR, Bc, PIR and Be of a policer.
type Police = (u64, u64, Option<u64>, Option<u64>);

fn police(kbps: u64, asked: &Value) -> Result<Police, String> {
    let police = with("hqf", kbps, "police", asked)?.police.unwrap();
    Ok((police.cir_bps, police.bc_bytes, police.pir_bps, police.be_bytes))
}

fn bps(bps: u64) -> Value {
    json!({"bps": bps})
}

#[test]
fn rates_of_policers() {
    for (asked, found) in [
        (json!({"cir": bps(7_999)}), Err("police.cir")),
        (json!({"cir": bps(8_000)}), Ok((8_000, 1_500))),
        (json!({"cir": bps(64_000_000_000)}), Ok((64_000_000_000, 512_000_000))),
        (json!({"cir": bps(64_000_000_001)}), Err("police.cir")),
        (json!({"cir": {"percent": 0}}), Err("police.cir")),
        (json!({"cir": {"percent": 1}}), Ok((20_000, 1_500))),
        (json!({"cir": {"percent": 100}}), Ok((2_000_000, 62_500))),
        (json!({"cir": {"percent": 101}}), Err("police.cir")),
    ] {
        let expected = found.map(|(cir, bc)| (cir, bc, None, None)).map_err(str::to_owned);
        assert_eq!(police(2_000, &asked), expected, "{asked}");
    }
    // Of an interface's bandwidth, whatever it is said to be.
    let whole = json!({"cir": {"percent": 100}});
    assert_eq!(police(64_000_000, &whole).map(|found| found.0), Ok(64_000_000_000));
    assert_eq!(police(64_000_001, &whole), Err("police.cir".to_owned()));
    // Two rates.
    let two = |pir: u64| json!({"cir": bps(64_000), "pir": bps(pir)});
    assert_eq!(police(2_000, &two(63_999)), Err("police.pir".to_owned()));
    assert_eq!(police(2_000, &two(64_000)), Ok((64_000, 2_000, Some(64_000), Some(2_000))));
    assert_eq!(police(2_000, &two(128_000)), Ok((64_000, 2_000, Some(128_000), Some(4_000))));
}

/// In bytes, and in milliseconds of the rate.
#[test]
fn bursts_of_policers() {
    for (cir, bc, found) in [
        (64_000, json!({"bytes": 999}), None),
        (64_000, json!({"bytes": 1_000}), Some(1_000)),
        (64_000, json!({"bytes": 512_000_000}), Some(512_000_000)),
        (64_000, json!({"bytes": 512_000_001}), None),
        (1_000_000, json!({"ms": 0}), None),
        (1_000_000, json!({"ms": 1}), Some(125)),
        (1_000_000, json!({"ms": 100}), Some(12_500)),
        (1_000_000, json!({"ms": 2_000}), Some(250_000)),
        (1_000_000, json!({"ms": 2_001}), None),
        (2_048_000_000, json!({"ms": 2_000}), Some(512_000_000)),
        (2_048_001_000, json!({"ms": 2_000}), None),
    ] {
        let asked = json!({"cir": bps(cir), "bc": bc});
        let expected = found.map(|bc| (cir, bc, None, None)).ok_or("police.bc".to_owned());
        assert_eq!(police(2_000, &asked), expected, "{asked}");
    }
    // Of the peak rate where there is one, else of the committed one.
    let be = json!({"ms": 100});
    let one = json!({"cir": bps(80_000), "be": be});
    assert_eq!(police(2_000, &one), Ok((80_000, 2_500, None, Some(1_000))));
    let two = json!({"cir": bps(80_000), "pir": bps(160_000), "be": be});
    assert_eq!(police(2_000, &two), Ok((80_000, 2_500, Some(160_000), Some(2_000))));
    // So few bits that no byte comes in the time: 1 per cent of 1 kb/s.
    let little = |ms: u64| json!({"cir": {"percent": 1}, "bc": {"ms": ms}});
    assert_eq!(police(1, &little(799)), Err("police.bc".to_owned()));
    assert_eq!(police(1, &little(800)), Ok((10, 1, None, None)));
}

#[test]
fn actions_of_policers() {
    for colour in ["conform", "exceed", "violate"] {
        let found = |actions: Value| police(2_000, &json!({"cir": bps(64_000), colour: actions})).err();
        assert_eq!(found(json!([])), Some(format!("police.{colour}")));
        for (action, most) in
            [("set-dscp-transmit", 63), ("set-prec-transmit", 7), ("set-qos-transmit", 99), ("set-cos-transmit", 7)]
        {
            let actions = |value: u32| json!([{"action": "transmit"}, {"action": action, "value": value}]);
            assert_eq!(found(actions(most)), None, "{action}");
            assert_eq!(found(actions(most + 1)), Some(format!("police.{colour}[1].value")), "{action}");
        }
    }
}

/// CIR, Bc, Be in bits, and the interval in whole milliseconds.
type Shape = (u64, u64, u64, u64);

fn shape(generation: &str, kbps: u64, asked: &Value) -> Result<Shape, String> {
    let mut asked = asked.clone();
    asked["mode"] = json!("average");
    let shape = with(generation, kbps, "shape", &asked)?.shape.unwrap();
    Ok((shape.cir_bps, shape.bc_bits, shape.be_bits, shape.interval_ms))
}

/// In bits, and in milliseconds of the rate; Be is Bc unless it is said, and may be none.
#[test]
fn bursts_of_shapers() {
    for (cir, bursts, found) in [
        (1_000_000, json!({"bc": {"bits": 255}}), Err("shape.bc")),
        (1_000_000, json!({"bc": {"bits": 256}}), Ok((256, 256, 0))),
        (1_000_000, json!({"bc": {"bits": 154_400_000}}), Ok((154_400_000, 154_400_000, 154_400))),
        (1_000_000, json!({"bc": {"bits": 154_400_001}}), Err("shape.bc")),
        (1_000_000, json!({"bc": {"bits": 0}}), Err("shape.bc")),
        (1_000_000, json!({"bc": {"ms": 0}}), Err("shape.bc")),
        (1_000_000, json!({"bc": {"ms": 9}}), Err("shape.bc")),
        (1_000_000, json!({"bc": {"ms": 10}}), Ok((10_000, 10_000, 10))),
        (1_000_000, json!({"bc": {"ms": 2_000}}), Ok((2_000_000, 2_000_000, 2_000))),
        (1_000_000, json!({"bc": {"ms": 2_001}}), Err("shape.bc")),
        (1_000_000, json!({"bc": {"bits": 4_000}, "be": {"bits": 0}}), Ok((4_000, 0, 4))),
        (1_000_000, json!({"bc": {"bits": 4_000}, "be": {"ms": 0}}), Ok((4_000, 0, 4))),
        (1_000_000, json!({"bc": {"bits": 4_000}, "be": {"ms": 30}}), Ok((4_000, 30_000, 4))),
        (1_000_000, json!({"bc": {"bits": 4_000}, "be": {"bits": 255}}), Err("shape.be")),
        // The interval is told to the nanosecond, rounded: 999999.6 are a millisecond.
        (8_000_003, json!({"bc": {"bits": 8_000}}), Ok((8_000, 8_000, 1))),
        // A microsecond is kept, and less is not.
        (256_000_000, json!({"bc": {"bits": 256}}), Ok((256, 256, 0))),
        (257_000_000, json!({"bc": {"bits": 256}}), Err("shape.bc")),
    ] {
        let mut asked = bursts.clone();
        asked["rate"] = bps(cir);
        let expected = found.map(|(bc, be, ms)| (cir, bc, be, ms)).map_err(str::to_owned);
        assert_eq!(shape("hqf", 2_000, &asked), expected, "{asked}");
    }
    // So few bits that none comes in the time: 1 per cent of 1 kb/s.
    let little = |bc: Value| shape("hqf", 1, &json!({"rate": {"percent": 1}, "bc": bc}));
    assert_eq!(little(json!({"ms": 99})), Err("shape.bc".to_owned()));
    assert_eq!(little(json!({"ms": 100})), Ok((10, 1, 1, 100)));
    assert_eq!(little(Value::Null), Err("shape.bc".to_owned()), "4 ms of 10 b/s");
}

/// The later generation has intervals of 4 ms; the classic one of 25 ms, or as long as 8000 bits take.
#[test]
fn default_bursts_of_shapers() {
    for (generation, cir, bc, ms) in [
        ("hqf", 64_000, 256, 4),
        ("hqf", 1_000_000, 4_000, 4),
        ("classic", 64_000, 8_000, 125),
        ("classic", 128_000, 7_936, 62),
        ("classic", 320_000, 8_000, 25),
        ("classic", 1_000_000, 25_000, 25),
    ] {
        assert_eq!(shape(generation, 2_000, &json!({"rate": bps(cir)})), Ok((cir, bc, bc, ms)), "{generation} {cir}");
    }
}

#[test]
fn numbers_of_flow_queues() {
    for (queues, fits) in [(8, false), (16, true), (17, false), (48, false), (4_096, true), (8_192, false)] {
        let classes = json!([{"name": "class-default", "fair_queue": {"queues": queues}}]);
        for generation in ["classic", "hqf"] {
            assert_eq!(policy(generation, 2_000, classes.clone()).is_ok(), fits, "{generation} {queues}");
        }
    }
    // As many as there may be together: 255 classes with 4096 each, eight with 2048 to 16, and sixteen with one, which
    // class-default is among.
    let flows = [[4_096; 255].as_slice(), &[2_048, 1_024, 512, 256, 128, 64, 32, 16]].concat();
    for (single, fits) in [(15, true), (16, false)] {
        let fair = flows.iter().map(|queues| json!({"queues": queues})).chain(vec![Value::Null; single]);
        let one = json!({"remaining_ratio": 1});
        let named = |(number, fair)| json!({"name": format!("m{number}"), "bandwidth": one, "fair_queue": fair});
        let classes: Vec<_> = fair.enumerate().map(named).collect();
        let mut config = json!({"format": 1, "router": "R1", "generation": "hqf",
            "interfaces": {"Out": interface(2_000, None, Some("P"))}});
        let any = json!({"match": "any", "criteria": [{"type": "qos_group", "value": 1}]});
        config["class_maps"] = classes.iter().map(|class| (class["name"].as_str().unwrap(), any.clone())).collect();
        config["policy_maps"] = json!({"P": {"classes": classes}});
        let mut engine: Engine<u64> = common::engine(2_000_000, Ethernet);
        let config = RouterConfig::from_json(&config.to_string()).unwrap();
        let error = engine.configure(Time(0), &config).err();
        assert_eq!(error.is_none(), fits, "{single}: {error:?}");
    }
}

/// As IOS numbers them: behind the flow queues and the eight of the system first that of the priority classes, then one
/// for each class with a bandwidth, and none for class-default.
#[test]
fn conversations_of_the_classic_generation_are_numbered() {
    let bandwidth = |name: &str| json!({"name": name, "bandwidth": {"kbps": 100}});
    let priority = |name: &str| json!({"name": name, "priority": {"unit": "kbps", "number": 100}});
    let conversations = |generation: &str, classes: Value| {
        let classes = policy(generation, 2_000, classes).unwrap();
        let own = |class: &ClassCounters| class.queue.as_ref().and_then(|queue| queue.conversation);
        classes
            .iter()
            .map(|class| own(class).or(class.priority.as_ref().and_then(|priority| priority.conversation)))
            .collect::<Vec<_>>()
    };
    let all = json!([bandwidth("c1"), priority("c2"), bandwidth("c3"), priority("c4"), bandwidth("c5")]);
    let found = conversations("classic", all.clone());
    assert_eq!(found, [Some(265), Some(264), Some(266), Some(264), Some(267), None]);
    assert_eq!(conversations("hqf", all), [None; 6]);
    let fewer = json!([bandwidth("c1"), {"name": "class-default", "fair_queue": {"queues": 16}}]);
    assert_eq!(conversations("classic", fewer), [Some(25), None]);
}

/// A policy-map has so many classes, and one below the other three levels.
#[test]
fn policy_maps_are_bounded() {
    let mut engine: Engine<u64> = common::engine(2_000_000, Ethernet);
    let refused = |engine: &mut Engine<u64>, maps: Value, output: Option<&str>| {
        let config = configuration("hqf", maps, interface(2_000, None, output));
        engine.configure(Time(0), &config).err().map(|error| error.path)
    };
    let many = |classes: usize| json!({"P": {"classes": vec![json!({"name": "class-default"}); classes]}});
    assert_eq!(refused(&mut engine, many(4_097), None), Some("policy_maps.P.classes".to_owned()));
    // Not too many, but the same.
    assert_eq!(refused(&mut engine, many(4_096), None), Some("policy_maps.P.classes[1].name".to_owned()));
    let chain = |levels: usize| {
        let map = |level: usize| {
            let mut class = json!({"name": "class-default"});
            if level < levels {
                class["service_policy"] = json!(format!("L{}", level + 1));
            }
            (format!("L{level}"), json!({"classes": [class]}))
        };
        (1..=levels).map(map).collect::<Value>()
    };
    assert_eq!(refused(&mut engine, chain(3), Some("L1")), None);
    let deeper = refused(&mut engine, chain(4), Some("L1"));
    assert_eq!(deeper, Some("policy_maps.L1.classes[0].service_policy".to_owned()));
    assert!(class(&mut engine, Time(0), 0).child.unwrap().classes[0].child.is_some(), "three levels are in force");
}

/// Cisco's tables: flow queues by bandwidth, and what a class's weight is by the number of flow queues.
#[test]
fn defaults_by_bandwidth_and_by_flow_queues() {
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
fn defaults_of_early_detection_by_code_point() {
    // In packets, and in sixteenths of the greatest one in bytes.
    let mut told = [(20, 8); 64];
    for precedence in 0..8 {
        told[precedence as usize * 8] = (20 + 2 * precedence, 8 + precedence);
    }
    for class in 1..=4 {
        for (drop, least) in [(2, (32, 14)), (4, (28, 12)), (6, (24, 10))] {
            told[class * 8 + drop] = least;
        }
    }
    told[46] = (36, 15);
    for (dscp, (packets, sixteenths)) in (0..64u8).zip(told) {
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
fn unattached(class: Value) -> ResolvedClass {
    let mut engine: Engine<u64> = common::engine(2_000_000, Ethernet);
    let maps = json!({"P": {"classes": [class]}});
    engine.configure(Time(0), &configuration("hqf", maps, interface(2_000, None, None))).unwrap();
    engine.resolve().policy_maps["P"].classes[0].clone()
}

/// What a class without an interface tells of its queue: its limit where it has a queue of its own.
#[test]
fn limits_of_queues_without_an_interface() {
    let limit = |class: &Value| {
        let mut class = class.clone();
        class["name"] = json!("c1");
        unattached(class).queue_limit_packets
    };
    let priority = json!({"unit": "kbps", "number": 100});
    assert_eq!(limit(&json!({})), None, "it has none");
    assert_eq!(limit(&json!({"set": [{"field": "dscp", "value": 1}]})), None);
    assert_eq!(limit(&json!({"bandwidth": {"kbps": 100}})), Some(64));
    assert_eq!(limit(&json!({"bandwidth": {"kbps": 100}, "queue_limit": {"packets": 10}})), Some(10));
    assert_eq!(limit(&json!({"priority": priority})), None, "it shares that of its level");
    assert_eq!(limit(&json!({"priority": priority, "queue_limit": {"packets": 10}})), Some(10));
}

/// By code point only the rows that were given are told, by precedence all.
#[test]
fn rows_of_early_detection_without_an_interface() {
    let rows = |basis: &str, given: &[u8]| {
        let thresholds: Vec<_> = given.iter().map(|value| json!({"value": value, "min": 10, "max": 20})).collect();
        let red = json!({"basis": basis, "thresholds": thresholds});
        let class = unattached(json!({"name": "c1", "bandwidth": {"kbps": 100}, "random_detect": red}));
        class.random_detect.unwrap().classes.iter().map(|row| row.value).collect::<Vec<_>>()
    };
    assert_eq!(rows("dscp", &[]), [0; 0]);
    assert_eq!(rows("dscp", &[46, 10]), [10, 46]);
    assert_eq!(rows("precedence", &[5]), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// The later generation tells of the queue that the priority classes of a level share, the classic one of none.
#[test]
fn queues_of_priority_levels_are_told() {
    let levels = |generation: &str| {
        let classes = json!([{"name": "c1", "priority": {"unit": "kbps", "number": 100}},
            {"name": "c2", "priority": {"unit": "kbps", "number": 100}}, {"name": "c3", "bandwidth": {"kbps": 100}}]);
        let maps = json!({"P": {"classes": classes}});
        let mut engine: Engine<u64> = common::engine(2_000_000, Ethernet);
        engine.configure(Time(0), &configuration(generation, maps, interface(2_000, None, Some("P")))).unwrap();
        let policy = engine.counters(Time(0), None).interfaces["Out"].policy_output.clone().unwrap();
        policy.priority_queues.iter().map(|queue| queue.level).collect::<Vec<_>>()
    };
    assert_eq!(levels("hqf"), [1]);
    assert_eq!(levels("classic"), [0; 0]);
}

/// Generic traffic shaping has flow queues by its rate, as an interface has by its bandwidth; under `priority-list` and
/// `queue-list` an interface has no conversations.
#[test]
fn conversations_of_an_interfaces_own_queueing() {
    let told = |queueing: Value| {
        let mut own = interface(1_000, None, None);
        own["queueing"] = queueing;
        let mut engine: Engine<u64> = common::engine(1_000_000, Ppp);
        engine.configure(Time(0), &configuration("classic", json!({}), own)).unwrap();
        let counters = engine.counters(Time(0), None).interfaces["Out"].clone();
        let shapers: Vec<_> = counters.shapers.iter().map(|shaper| shaper.max_conversations).collect();
        (counters.queue.max_conversations, shapers)
    };
    let shaper = |bps: u64| json!({"shape": {"mode": "average", "rate": {"bps": bps}}});
    let shapers = [64_000, 64_999, 65_000, 256_000, 513_000].map(shaper);
    let found = told(json!({"type": "shaped", "shapers": shapers}));
    assert_eq!(found, (Some(256), vec![16, 16, 32, 64, 256]));
    assert_eq!(told(json!({"type": "priority", "rules": []})), (None, vec![]));
    assert_eq!(told(json!({"type": "custom", "rules": []})), (None, vec![]));
}

/// A queue of `queue-list` without a limit has none, that of the interface's conversations neither.
#[test]
fn queues_without_a_limit_have_none() {
    let mut own = interface(1_000, None, None);
    own["queueing"] = json!({"type": "custom", "rules": [], "queues": [{"number": 1, "limit": 0}]});
    let mut engine: Engine<u64> = common::engine(1_000_000, Ppp);
    engine.configure(Time(0), &configuration("classic", json!({}), own)).unwrap();
    for number in 0..2_000 {
        engine.transmit(Time(0), common::PORT, common::udp(100, 0, Ppp), number);
    }
    let counters = engine.counters(Time(0), None).interfaces["Out"].clone();
    assert_eq!((counters.numbered_queues[1].drops.packets, counters.numbered_queues[1].limit_packets), (0, 0));
    assert!(counters.numbered_queues[1].depth_packets > 1_900, "the ring has the others");
}
