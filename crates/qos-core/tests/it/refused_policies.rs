//! Policy-maps that are refused, with the path of the error; a refusal changes nothing.

use crate::common::build::*;
use crate::common::{self, configuration, with_policies, with_policy};
use proptest::prelude::*;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, RouterConfig, Time};

fn refusal_of(config: &RouterConfig) -> Option<(String, String)> {
    let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
    let before = with_policy(Hqf, 2_000, vec![class_of("c1").percent(99)]);
    let same = config.generation == before.generation;
    if same {
        engine.configure(Time(0), &before).unwrap();
    }
    let error = engine.configure(Time(0), config).err()?;
    if same {
        assert_eq!(engine.config(), Some(&before), "a refused configuration changes nothing");
    }
    Some((error.path, error.message))
}

fn assert_refused(generation: Generation, classes: Vec<PolicyClass>, path: &str, words: &str) {
    let (found, message) =
        refusal_of(&with_policy(generation, 2_000, classes.clone())).unwrap_or_else(|| panic!("accepted: {classes:?}"));
    assert_eq!(
        found.trim_start_matches("policy_maps.P.").trim_start_matches("interfaces.Out.service_policy_output."),
        path,
        "{message}"
    );
    assert!(message.contains(words), "{message}");
}

fn percent(name: &str, percent: u32) -> PolicyClass {
    class_of(name).percent(percent)
}

fn kbps(name: &str, kbps: u64) -> PolicyClass {
    class_of(name).kbps(kbps)
}

fn priority(name: &str, kbps: u64) -> PolicyClass {
    class_of(name).priority_kbps(kbps)
}

#[test]
fn reservation_beyond_the_bandwidth_is_refused() {
    // Later generation: 99 per cent, and 100 with class-default's own.
    assert_refused(Hqf, vec![percent("c1", 60), percent("c2", 40)], "classes[1].bandwidth", "99");
    assert_refused(Hqf, vec![kbps("c1", 1_000), kbps("c2", 981)], "classes[1].bandwidth", "1980 kb/s can be reserved");
    assert_refused(Hqf, vec![kbps("c1", 1_000), priority("c2", 981)], "classes[1].priority", "1980 kb/s");
    assert_refused(Hqf, vec![percent("c1", 90), percent("class-default", 11)], "classes[1].bandwidth", "100");
    for classes in [
        vec![percent("c1", 59), percent("c2", 40)],
        vec![kbps("c1", 1_000), kbps("c2", 980)],
        vec![percent("c1", 90), percent("class-default", 10)],
    ] {
        assert_eq!(refusal_of(&with_policy(Hqf, 2_000, classes)), None);
    }
    // Classic: 75 per cent, not counting class-default, or the value of max-reserved-bandwidth.
    assert_refused(
        Classic,
        vec![percent("c1", 50), percent("c2", 26)],
        "classes[1].bandwidth",
        "75 per cent of 2000 kb/s",
    );
    assert_eq!(refusal_of(&with_policy(Classic, 2_000, vec![percent("c1", 75), percent("class-default", 20)])), None);
    let mut more = with_policy(Classic, 2_000, vec![percent("c1", 90)]);
    assert!(refusal_of(&more).is_some());
    more.out().max_reserved_percent = Some(90);
    assert_eq!(refusal_of(&more), None);
    // Parts of the rest.
    let remaining = |name: &str, percent: u32| class_of(name).remaining_percent(percent);
    assert_refused(Hqf, vec![remaining("c1", 60), remaining("c2", 41)], "classes[1].bandwidth", "at most 100");
}

proptest! {
    /// Classes are admitted up to the reservable bandwidth, to the kb/s, and the first class beyond it is named.
    #[test]
    fn classes_are_admitted_up_to_the_reservable_bandwidth(
        hqf in any::<bool>(),
        in_percent in any::<bool>(),
        most in prop::option::of(1u32..=100),
        asked in prop::collection::vec((1u32..60, 0u32..20, any::<bool>()), 1..7),
    ) {

        let amount = |(percent, more, _): &(u32, u32, bool)| if in_percent { *percent } else { percent * 20 + more };
        let classes: Vec<_> = asked.iter().enumerate().map(|(number, class)| {
            let (named, amount) = (class_of(&format!("c{}", number + 1)), amount(class));
            match (class.2, in_percent) {
                (true, true) => named.priority_percent(amount),
                (true, false) => named.priority_kbps(amount.into()),
                (false, true) => named.percent(amount),
                (false, false) => named.kbps(amount.into()),
            }
        }).collect();
        let generation = if hqf { Hqf } else { Classic };
        let mut config = with_policy(generation, 2_000, classes);
        config.out().max_reserved_percent = most.filter(|_| !hqf);
        let percent = if hqf { 99 } else { most.unwrap_or(75) };
        let limit = if in_percent { percent } else { percent * 20 };
        let mut sum = 0;
        let beyond = asked.iter().position(|class| {
            sum += amount(class);
            sum > limit
        });
        let path = refusal_of(&config).map(|(path, _)| path);
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

/// The children share the rate of the parent's shaper.
#[test]
fn reservation_beyond_the_parent_shaper_is_refused() {
    let maps = |child: u64| {
        let parent = class_default().shape_bps(500_000).service_policy("Inner");
        maps([("Inner", vec![kbps("c1", child)]), ("P", vec![parent])])
    };
    let config = |child: u64| with_policies(Hqf, 2_000, maps(child));
    assert_eq!(refusal_of(&config(495)), None);
    let (path, message) = refusal_of(&config(496)).unwrap();
    assert_eq!(path, "policy_maps.Inner.classes[0].bandwidth");
    assert!(message.contains("99 per cent of 500 kb/s"), "{message}");
}

#[test]
fn bandwidth_in_mixed_units_is_refused() {
    assert_refused(Hqf, vec![percent("c1", 10), kbps("c2", 10)], "classes[1].bandwidth", "same unit");
    let ratio = class_of("c2").remaining_ratio(3);
    assert_refused(Hqf, vec![percent("c1", 10), ratio], "classes[1].bandwidth", "same unit");
}

#[test]
fn conflicting_actions_of_a_class_are_refused() {
    let urgent = || priority("c1", 100);
    for (field, class) in [
        ("bandwidth", urgent().percent(10)),
        ("fair_queue", urgent().fair_queue()),
        ("random_detect", urgent().random_detect(red_by_precedence())),
        ("shape", urgent().shape_bps(500_000)),
    ] {
        assert_refused(Hqf, vec![class], &format!("classes[0].{field}"), "priority");
    }
    assert_refused(Hqf, vec![priority("class-default", 100)], "classes[0].priority", "class-default");
    assert_refused(
        Hqf,
        vec![class_of("c1").random_detect(red_by_precedence())],
        "classes[0].random_detect",
        "needs bandwidth or shape",
    );
    assert_refused(
        Classic,
        vec![class_of("c1").percent(10).fair_queue()],
        "classes[0].fair_queue",
        "class-default only",
    );
    let levelled = class_of("c1").priority(PriorityConfig { level: Some(2), ..priority_kbps(100) });
    assert_refused(Classic, vec![levelled], "classes[0].priority.level", "one level");
    let ratio = class_of("c1").remaining_ratio(3);
    assert_refused(Classic, vec![ratio], "classes[0].bandwidth.remaining_ratio", "classic");
}

#[test]
fn queueing_values_out_of_range_are_refused() {
    use PriorityUnit::{Kbps, Strict};
    let class = || class_of("c1");
    let urgent =
        |unit, number, burst_bytes, level| class().priority(PriorityConfig { unit, number, burst_bytes, level });
    let red = red_by_precedence;
    for (class, path) in [
        (class().kbps(0), "bandwidth.kbps"),
        (class().percent(0), "bandwidth.percent"),
        (class().percent(101), "bandwidth.percent"),
        (class().remaining_ratio(0), "bandwidth.remaining_ratio"),
        (urgent(Kbps, None, None, None), "priority.number"),
        (urgent(Strict, Some(5), None, None), "priority.number"),
        (urgent(Strict, None, Some(500), None), "priority.burst_bytes"),
        (urgent(Kbps, Some(64), Some(31), None), "priority.burst_bytes"),
        (urgent(Kbps, Some(64), Some(2_000_001), None), "priority.burst_bytes"),
        (urgent(Kbps, Some(64), None, Some(3)), "priority.level"),
        (class().random_detect(red().row(8, 1, 2, None)), "random_detect.thresholds[0].value"),
        (class().random_detect(red().row(0, 3, 2, None)), "random_detect.thresholds[0].max"),
        (class().random_detect(red().row(0, 1, 2, 0)), "random_detect.thresholds[0].denominator"),
        (class().random_detect(red().weight(17)), "random_detect.exponential_weight"),
    ] {
        assert_refused(Hqf, vec![class], &format!("classes[0].{path}"), "");
    }
}

#[test]
fn policies_nest_to_three_levels_and_only_where_allowed() {
    let nested = |levels: usize| {
        let mut maps = Maps::new();
        for level in 0..levels {
            let name = if level == 0 { "P".to_owned() } else { format!("P{level}") };
            let service_policy = (level + 1 < levels).then(|| format!("P{}", level + 1));
            let class = PolicyClass { service_policy, ..percent("c1", 50) };
            maps.insert(name, PolicyMap { classes: vec![class] });
        }
        with_policies(Hqf, 2_000, maps)
    };
    assert_eq!(refusal_of(&nested(3)), None);
    assert!(refusal_of(&nested(4)).unwrap().1.contains("more than 3 levels"));
    assert_refused(Hqf, vec![class_of("c1").service_policy("None")], "classes[0].service_policy", "no policy-map");
    assert_refused(Hqf, vec![class_of("c1").service_policy("P")], "classes[0].service_policy", "contains itself");
    let of = |generation: Generation, actions: fn(PolicyClass) -> PolicyClass| {
        let parent = actions(class_of("c2").service_policy("Inner"));
        let maps = maps([("Inner", vec![percent("c1", 10)]), ("P", vec![parent])]);
        refusal_of(&with_policies(generation, 2_000, maps))
    };
    let (path, message) = of(Classic, |parent| parent.percent(10)).unwrap();
    assert!(path.ends_with("classes[0].service_policy") && message.contains("shaper"), "{path}: {message}");
    let (path, _) = of(Hqf, |parent| parent.percent(10).fair_queue()).unwrap();
    assert!(path.ends_with("classes[0].fair_queue"), "{path}");
    let (path, _) = of(Hqf, |parent| parent.strict()).unwrap();
    assert!(path.ends_with("classes[0].service_policy"), "{path}");
    // Queues are for output.
    let input = configuration(Hqf, maps([("P", vec![percent("c1", 10)])]), interface(2_000, Some("P"), None));
    let (path, message) = refusal_of(&input).unwrap();
    assert!(path == "interfaces.Out.service_policy_input" && message.contains("output only"), "{path}: {message}");
}

/// Bandwidths that no interface could give are refused for an unattached policy-map as well: 99 per cent in the later
/// generation, 100 with class-default, and 100 of the remainder.
#[test]
fn percentages_are_checked_without_an_interface() {
    let urgent = |name: &str, percent: u32| class_of(name).priority_percent(percent);
    let rest = |name: &str, percent: u32| class_of(name).remaining_percent(percent);
    for (classes, wrong) in [
        (vec![percent("c1", 60), percent("c2", 39)], None),
        (vec![percent("c1", 60), percent("c2", 40)], Some("classes[1].bandwidth")),
        (vec![percent("c1", 60), urgent("c2", 39)], None),
        (vec![percent("c1", 60), urgent("c2", 40)], Some("classes[1].priority")),
        (vec![urgent("c1", 100)], Some("classes[0].priority")),
        (vec![percent("c1", 60), percent("class-default", 40)], None),
        (vec![percent("c1", 60), percent("class-default", 41)], Some("classes[1].bandwidth")),
        (vec![rest("c1", 60), rest("c2", 40)], None),
        (vec![rest("c1", 60), rest("c2", 41)], Some("classes[1].bandwidth")),
    ] {
        let maps = maps([("P", classes.clone())]);
        let found = refusal_of(&configuration(Hqf, maps, interface(2_000, None, None))).map(|(path, _)| path);
        assert_eq!(found, wrong.map(|place| format!("policy_maps.P.{place}")), "{classes:?}");
    }
}
