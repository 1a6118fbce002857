//! What routers since 12.4(20)T do with packets that wait, against their prints.

use crate::common::{self, bytes_by_source, class, configuration, interface, load, with_policy, Source, PORT, SECOND};
use qos_core::counters::ClassCounters;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, RouterConfig, Time};
use serde_json::json;

/// Ten seconds of those sources on a line; counters at the end.
fn after_ten_seconds(rate_bps: u64, config: &RouterConfig, sources: &[Source]) -> (Vec<ClassCounters>, Vec<u64>) {
    let mut engine: Engine<usize> = common::engine(rate_bps, Ppp);
    engine.configure(Time(0), config).unwrap();
    let outputs = load(&mut engine, Ppp, sources, Time(10 * SECOND));
    engine.audit().unwrap();
    let policy = engine.counters(Time(10 * SECOND), None).interfaces["Out"].policy_output.clone().unwrap();
    let kbps = bytes_by_source(&outputs, sources.len()).iter().map(|bytes| bytes * 8 / 10_000).collect();
    (policy.classes, kbps)
}

/// `fair-queue` with `random-detect`: no flow has a limit of its own, early detection's thresholds hold for all
/// together. Before, one flow stopped at 16 packets, and thresholds of 20 and 40 could never act.
#[test]
fn early_detection_alone_limits_the_flows_of_a_class() {
    let red = json!({"name": "class-default", "fair_queue": {}, "random_detect": {"basis": "precedence"}});
    let config = with_policy("hqf", 2_000, json!([red]));
    for flows in [1, 20] {
        let sources: Vec<_> = (0..flows).map(|flow| Source::new(1000, 0, flow, 4_000_000 / u64::from(flows))).collect();
        let (classes, _) = after_ten_seconds(2_000_000, &config, &sources);
        let drops = classes[0].drops;
        assert_eq!((drops.flow.packets, drops.tail.packets), (0, 0), "{flows} flows");
        assert!(drops.random.packets + drops.random_tail.packets > 1_500, "{drops:?}");
        let queue = classes[0].queue.unwrap();
        assert_eq!((queue.per_flow_limit, queue.max_flows), (None, Some(256)));
        assert!(classes[0].random_detect.clone().unwrap().mean_depth > 20.0);
    }
}

/// A class that only marks, beside a shaped class-default: it is not in the shaper, whether or not class-default has a
/// child policy, in both generations.
#[test]
fn a_class_beside_a_shaped_class_default_is_not_shaped() {
    for generation in ["classic", "hqf"] {
        for child in [None, Some("CHILD")] {
            let mark = json!({"name": "af", "set": [{"field": "dscp", "value": 12}]});
            let shape = json!({"mode": "average", "rate": {"bps": 1_000_000}});
            let default = json!({"name": "class-default", "shape": shape, "service_policy": child});
            let maps = json!({"P": {"classes": [mark, default]},
                "CHILD": {"classes": [{"name": "low", "bandwidth": {"kbps": 200}}]}});
            let config = configuration(generation, maps, interface(10_000, None, Some("P")));
            let sources = [Source::new(1000, 10, 0, 3_000_000), Source::new(1000, 0, 1, 3_000_000)];
            let (_, kbps) = after_ten_seconds(10_000_000, &config, &sources);
            assert!((2_990..3_030).contains(&kbps[0]), "{generation}, {child:?}: {kbps:?}");
            assert!((990..1_015).contains(&kbps[1]), "{generation}, {child:?}: {kbps:?}");
        }
    }
}
