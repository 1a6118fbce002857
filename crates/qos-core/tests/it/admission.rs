//! What a policy-map may not ask for is refused with the path of what is wrong, and changes nothing.

use crate::common::{self, configuration, interface, read, with_policy};
use proptest::prelude::*;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, RouterConfig, Time};
use serde_json::{json, Value};

fn refused(config: &RouterConfig) -> Option<(String, String)> {
    let mut engine: Engine<()> = common::engine(2_000_000, Ppp);
    let before = with_policy("hqf", 2_000, json!([{"name": "c1", "bandwidth": {"percent": 99}}]));
    let other = serde_json::to_value(&before).unwrap();
    let same = config.generation == before.generation;
    if same {
        engine.configure(Time(0), &before).unwrap();
    }
    let error = engine.configure(Time(0), config).err()?;
    if same {
        assert_eq!(
            serde_json::to_value(engine.config().unwrap()).unwrap(),
            other,
            "a refused configuration changes nothing"
        );
    }
    Some((error.path, error.message))
}

fn assert_refused(generation: &str, classes: Value, path: &str, words: &str) {
    let (found, message) =
        refused(&with_policy(generation, 2_000, classes.clone())).unwrap_or_else(|| panic!("accepted: {classes}"));
    assert_eq!(
        found.trim_start_matches("policy_maps.P.").trim_start_matches("interfaces.Out.service_policy_output."),
        path,
        "{message}"
    );
    assert!(message.contains(words), "{message}");
}

fn class(name: &str, actions: Value) -> Value {
    let mut class = json!({"name": name});
    common::extend(&mut class, &actions);
    class
}

fn percent(name: &str, percent: u32) -> Value {
    class(name, json!({"bandwidth": {"percent": percent}}))
}

fn kbps(name: &str, kbps: u32) -> Value {
    class(name, json!({"bandwidth": {"kbps": kbps}}))
}

fn priority(name: &str, kbps: u32) -> Value {
    class(name, json!({"priority": {"unit": "kbps", "number": kbps}}))
}

#[test]
fn more_than_there_is() {
    // Later generation: 99 per cent, and 100 with class-default's own.
    assert_refused("hqf", json!([percent("c1", 60), percent("c2", 40)]), "classes[1].bandwidth", "99");
    assert_refused(
        "hqf",
        json!([kbps("c1", 1_000), kbps("c2", 981)]),
        "classes[1].bandwidth",
        "1980 kb/s can be reserved",
    );
    assert_refused("hqf", json!([kbps("c1", 1_000), priority("c2", 981)]), "classes[1].priority", "1980 kb/s");
    assert_refused("hqf", json!([percent("c1", 90), percent("class-default", 11)]), "classes[1].bandwidth", "100");
    for classes in [
        json!([percent("c1", 59), percent("c2", 40)]),
        json!([kbps("c1", 1_000), kbps("c2", 980)]),
        json!([percent("c1", 90), percent("class-default", 10)]),
    ] {
        assert_eq!(refused(&with_policy("hqf", 2_000, classes)), None);
    }
    // Classic: 75 per cent, class-default aside, or what max-reserved-bandwidth says.
    assert_refused(
        "classic",
        json!([percent("c1", 50), percent("c2", 26)]),
        "classes[1].bandwidth",
        "75 per cent of 2000 kb/s",
    );
    assert_eq!(refused(&with_policy("classic", 2_000, json!([percent("c1", 75), percent("class-default", 20)]))), None);
    let mut more = serde_json::to_value(with_policy("classic", 2_000, json!([percent("c1", 90)]))).unwrap();
    assert!(refused(&read(&more)).is_some());
    more["interfaces"]["Out"]["max_reserved_percent"] = json!(90);
    assert_eq!(refused(&read(&more)), None);
    // Parts of the rest.
    let remaining = |name: &str, percent: u32| class(name, json!({"bandwidth": {"remaining_percent": percent}}));
    assert_refused("hqf", json!([remaining("c1", 60), remaining("c2", 41)]), "classes[1].bandwidth", "at most 100");
}

proptest! {
    /// Classes are admitted up to what can be reserved, to the kb/s, and the first that goes beyond it is named.
    #[test]
    fn what_can_be_reserved_is_the_limit(
        hqf in any::<bool>(),
        in_percent in any::<bool>(),
        most in prop::option::of(1u32..=100),
        asked in prop::collection::vec((1u32..60, 0u32..20, any::<bool>()), 1..7),
    ) {
        let unit = if in_percent { "percent" } else { "kbps" };
        let amount = |(percent, more, _): &(u32, u32, bool)| if in_percent { *percent } else { percent * 20 + more };
        let classes: Vec<_> = asked.iter().enumerate().map(|(number, class)| {
            let (name, amount) = (format!("c{}", number + 1), amount(class));
            if class.2 {
                json!({"name": name, "priority": {"unit": unit, "number": amount}})
            } else {
                json!({"name": name, "bandwidth": {unit: amount}})
            }
        }).collect();
        let generation = if hqf { "hqf" } else { "classic" };
        let mut config = serde_json::to_value(with_policy(generation, 2_000, json!(classes))).unwrap();
        config["interfaces"]["Out"]["max_reserved_percent"] = json!(most.filter(|_| !hqf));
        let percent = if hqf { 99 } else { most.unwrap_or(75) };
        let limit = if in_percent { percent } else { percent * 20 };
        let mut sum = 0;
        let beyond = asked.iter().position(|class| {
            sum += amount(class);
            sum > limit
        });
        let path = refused(&read(&config)).map(|(path, _)| path);
        match beyond {
            None => prop_assert_eq!(path, None),
            Some(class) => {
                let field = if asked[class].2 { "priority" } else { "bandwidth" };
                let path = path.unwrap_or_default();
                prop_assert!(path.ends_with(&format!("classes[{class}].{field}")),
                    "{} instead of class {}", path, class);
            }
        }
    }
}

/// The rate that a parent's shaper lets pass is what its children divide.
#[test]
fn more_than_the_parent_has() {
    let maps = |child: u32| {
        let shape = json!({"mode": "average", "rate": {"bps": 500_000}});
        json!({"Inner": {"classes": [kbps("c1", child)]},
            "P": {"classes": [class("class-default", json!({"shape": shape, "service_policy": "Inner"}))]}})
    };
    let config = |child: u32| configuration("hqf", maps(child), interface(2_000, None, Some("P")));
    assert_eq!(refused(&config(495)), None);
    let (path, message) = refused(&config(496)).unwrap();
    assert_eq!(path, "policy_maps.Inner.classes[0].bandwidth");
    assert!(message.contains("99 per cent of 500 kb/s"), "{message}");
}

#[test]
fn mixed_units() {
    assert_refused("hqf", json!([percent("c1", 10), kbps("c2", 10)]), "classes[1].bandwidth", "same unit");
    let ratio = class("c2", json!({"bandwidth": {"remaining_ratio": 3}}));
    assert_refused("hqf", json!([percent("c1", 10), ratio]), "classes[1].bandwidth", "same unit");
}

#[test]
fn what_does_not_go_together() {
    let urgent = json!({"unit": "kbps", "number": 100});
    let shape = json!({"mode": "average", "rate": {"bps": 500_000}});
    let red = json!({"basis": "precedence"});
    for (field, value) in [
        ("bandwidth", json!({"percent": 10})),
        ("fair_queue", json!({})),
        ("random_detect", red.clone()),
        ("shape", shape.clone()),
    ] {
        assert_refused(
            "hqf",
            json!([class("c1", json!({"priority": urgent, field: value}))]),
            &format!("classes[0].{field}"),
            "priority",
        );
    }
    assert_refused(
        "hqf",
        json!([class("class-default", json!({"priority": urgent}))]),
        "classes[0].priority",
        "class-default",
    );
    assert_refused(
        "hqf",
        json!([class("c1", json!({"random_detect": red}))]),
        "classes[0].random_detect",
        "needs bandwidth or shape",
    );
    assert_refused(
        "classic",
        json!([class("c1", json!({"bandwidth": {"percent": 10}, "fair_queue": {}}))]),
        "classes[0].fair_queue",
        "class-default only",
    );
    let levelled = class("c1", json!({"priority": {"unit": "kbps", "number": 100, "level": 2}}));
    assert_refused("classic", json!([levelled]), "classes[0].priority.level", "one level");
    let ratio = class("c1", json!({"bandwidth": {"remaining_ratio": 3}}));
    assert_refused("classic", json!([ratio]), "classes[0].bandwidth.remaining_ratio", "classic");
}

#[test]
fn figures_out_of_range() {
    let wrong = |field: &str, value: Value, path: &str| {
        assert_refused("hqf", json!([class("c1", json!({field: value}))]), &format!("classes[0].{path}"), "");
    };
    wrong("bandwidth", json!({"kbps": 0}), "bandwidth.kbps");
    wrong("bandwidth", json!({"percent": 0}), "bandwidth.percent");
    wrong("bandwidth", json!({"percent": 101}), "bandwidth.percent");
    wrong("bandwidth", json!({"remaining_ratio": 0}), "bandwidth.remaining_ratio");
    wrong("priority", json!({"unit": "kbps"}), "priority.number");
    wrong("priority", json!({"unit": "strict", "number": 5}), "priority.number");
    wrong("priority", json!({"unit": "strict", "burst_bytes": 500}), "priority.burst_bytes");
    wrong("priority", json!({"unit": "kbps", "number": 64, "burst_bytes": 31}), "priority.burst_bytes");
    wrong("priority", json!({"unit": "kbps", "number": 64, "burst_bytes": 2_000_001}), "priority.burst_bytes");
    wrong("priority", json!({"unit": "kbps", "number": 64, "level": 3}), "priority.level");
    let red = |threshold: Value| json!({"basis": "precedence", "thresholds": [threshold]});
    wrong("random_detect", red(json!({"value": 8, "min": 1, "max": 2})), "random_detect.thresholds[0].value");
    wrong("random_detect", red(json!({"value": 0, "min": 3, "max": 2})), "random_detect.thresholds[0].max");
    wrong(
        "random_detect",
        red(json!({"value": 0, "min": 1, "max": 2, "denominator": 0})),
        "random_detect.thresholds[0].denominator",
    );
    wrong(
        "random_detect",
        json!({"basis": "precedence", "exponential_weight": 17}),
        "random_detect.exponential_weight",
    );
}

#[test]
fn nesting() {
    let nested = |levels: usize| {
        let mut maps = json!({});
        for level in 0..levels {
            let name = if level == 0 { "P".to_owned() } else { format!("P{level}") };
            let child = if level + 1 < levels { json!(format!("P{}", level + 1)) } else { Value::Null };
            maps[name] =
                json!({"classes": [class("c1", json!({"bandwidth": {"percent": 50}, "service_policy": child}))]});
        }
        configuration("hqf", maps, interface(2_000, None, Some("P")))
    };
    assert_eq!(refused(&nested(3)), None);
    assert!(refused(&nested(4)).unwrap().1.contains("more than 3 levels"));
    assert_refused(
        "hqf",
        json!([class("c1", json!({"service_policy": "None"}))]),
        "classes[0].service_policy",
        "no policy-map",
    );
    assert_refused(
        "hqf",
        json!([class("c1", json!({"service_policy": "P"}))]),
        "classes[0].service_policy",
        "in itself",
    );
    let maps =
        |actions: Value| json!({"Inner": {"classes": [percent("c1", 10)]}, "P": {"classes": [class("c2", actions)]}});
    let of = |generation: &str, actions: Value| {
        refused(&configuration(generation, maps(actions), interface(2_000, None, Some("P"))))
    };
    let (path, message) = of("classic", json!({"bandwidth": {"percent": 10}, "service_policy": "Inner"})).unwrap();
    assert!(path.ends_with("classes[0].service_policy") && message.contains("shaper"), "{path}: {message}");
    let (path, _) =
        of("hqf", json!({"bandwidth": {"percent": 10}, "fair_queue": {}, "service_policy": "Inner"})).unwrap();
    assert!(path.ends_with("classes[0].fair_queue"), "{path}");
    let (path, _) = of("hqf", json!({"priority": {"unit": "strict"}, "service_policy": "Inner"})).unwrap();
    assert!(path.ends_with("classes[0].service_policy"), "{path}");
    // Queues are for output.
    let input = configuration("hqf", json!({"P": {"classes": [percent("c1", 10)]}}), interface(2_000, Some("P"), None));
    let (path, message) = refused(&input).unwrap();
    assert!(path == "interfaces.Out.service_policy_input" && message.contains("output only"), "{path}: {message}");
}

/// What no interface could give is refused of a policy-map that is attached to none, too: 99 per cent in the later
/// generation, 100 with class-default, and 100 of the rest.
#[test]
fn percentages_are_counted_without_an_interface() {
    let urgent = |name: &str, percent: u32| class(name, json!({"priority": {"unit": "percent", "number": percent}}));
    let rest = |name: &str, percent: u32| class(name, json!({"bandwidth": {"remaining_percent": percent}}));
    for (classes, wrong) in [
        (json!([percent("c1", 60), percent("c2", 39)]), None),
        (json!([percent("c1", 60), percent("c2", 40)]), Some("classes[1].bandwidth")),
        (json!([percent("c1", 60), urgent("c2", 39)]), None),
        (json!([percent("c1", 60), urgent("c2", 40)]), Some("classes[1].priority")),
        (json!([urgent("c1", 100)]), Some("classes[0].priority")),
        (json!([percent("c1", 60), percent("class-default", 40)]), None),
        (json!([percent("c1", 60), percent("class-default", 41)]), Some("classes[1].bandwidth")),
        (json!([rest("c1", 60), rest("c2", 40)]), None),
        (json!([rest("c1", 60), rest("c2", 41)]), Some("classes[1].bandwidth")),
    ] {
        let maps = json!({"P": {"classes": classes}});
        let found = refused(&configuration("hqf", maps, interface(2_000, None, None))).map(|(path, _)| path);
        assert_eq!(found, wrong.map(|place| format!("policy_maps.P.{place}")), "{classes}");
    }
}
