//! Policers at two and three levels of nested policy-maps (Cisco, "MQC Three-Level Hierarchical Policer"): what the
//! inner one lets pass is what the outer one meters.

use crate::common::{self, configuration, interface, load, Source, SECOND};
use proptest::prelude::*;
use qos_core::counters::ClassCounters;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Time};
use serde_json::{json, Value};

fn police(kbps: u64) -> Value {
    json!({"cir": {"bps": kbps * 1_000}, "bc": {"bytes": 4_000},
        "conform": [{"action": "transmit"}], "exceed": [{"action": "drop"}]})
}

/// What a class's policer has let pass and has dropped, in bytes.
fn metered(class: &ClassCounters) -> (u64, u64) {
    let police = class.police.as_ref().unwrap();
    (police.conformed.bytes, police.exceeded.bytes)
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    #[test]
    fn each_level_meters_what_the_one_below_lets_pass(
        generation in prop::sample::select(vec!["classic", "hqf"]),
        direction in prop::sample::select(vec!["input", "output"]),
        rates in prop::array::uniform3(100u64..1_500),
        offered in prop::array::uniform2(100_000u64..1_500_000),
    ) {
        let maps = json!({
            "Bottom": {"classes": [{"name": "c1", "police": police(rates[0])}, {"name": "class-default"}]},
            "Middle": {"classes": [{"name": "udp", "police": police(rates[1]), "service_policy": "Bottom"}]},
            "P": {"classes": [{"name": "class-default", "police": police(rates[2]), "service_policy": "Middle"}]}});
        let (input, output) = if direction == "input" { (Some("P"), None) } else { (None, Some("P")) };
        let mut engine: Engine<usize> = common::engine(100_000_000, Ppp);
        engine.configure(Time(0), &configuration(generation, maps, interface(100_000, input, output))).unwrap();
        let end = Time(4 * SECOND);
        if direction == "output" {
            let sources = [Source::new(500, 1, 1, offered[0]), Source::new(300, 2, 2, offered[1])];
            load(&mut engine, Ppp, &sources, end);
        } else {
            for number in 0..2_000u64 {
                let at = Time(number * 2 * common::MILLI);
                let packet = Source::new(500, 1 + (number % 2) as u8, 1, 1).descriptor(Ppp);
                engine.receive(at, common::PORT, packet, 0);
                engine.poll(at, &mut Vec::new());
            }
        }
        engine.audit().unwrap();
        let counters = engine.counters(end, None).interfaces["Out"].clone();
        let policy = if direction == "input" { counters.policy_input } else { counters.policy_output };
        let top = policy.unwrap().classes[0].clone();
        let middle = top.child.clone().unwrap().classes[0].clone();
        let bottom = middle.child.clone().unwrap().classes;
        let (passed, dropped) = metered(&bottom[0]);
        prop_assert_eq!(passed + dropped, bottom[0].bytes);
        let (through, held) = metered(&middle);
        prop_assert_eq!(through + held, passed + bottom[1].bytes);
        let (sent, refused) = metered(&top);
        prop_assert_eq!(sent + refused, through);
        // No level lets more pass than its rate and its bucket, and the narrowest holds all.
        for (bytes, kbps) in [(passed, rates[0]), (through, rates[1]), (sent, rates[2])] {
            prop_assert!(bytes <= kbps * 125 * 4 + 4_000, "{} bytes at {} kb/s", bytes, kbps);
        }
        prop_assert_eq!(top.drops.police.bytes, dropped + held + refused);
    }
}
