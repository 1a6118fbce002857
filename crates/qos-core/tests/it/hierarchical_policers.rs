//! Policers at two and three levels of nested policy-maps (Cisco, "MQC Three-Level Hierarchical Policer"): the outer
//! one meters the packets that the inner one passes.

use crate::common::build::*;
use crate::common::{self, configuration, load, Source, SECOND};
use proptest::prelude::*;
use qos_core::counters::ClassCounters;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Time};

fn policer(kbps: u64) -> PoliceConfig {
    police(kbps * 1_000).bytes(4_000).conform(PoliceAction::Transmit {}).exceed(PoliceAction::Drop {})
}

/// Bytes passed and dropped by a class's policer.
fn metered_packets(class: &ClassCounters) -> (u64, u64) {
    let police = class.police.as_ref().unwrap();
    (police.conformed.bytes, police.exceeded.bytes)
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    #[test]
    fn each_level_meters_the_traffic_passed_by_the_level_below(
        generation in prop::sample::select(vec![Classic, Hqf]),
        direction in prop::sample::select(vec!["input", "output"]),
        rates in prop::array::uniform3(100u64..1_500),
        offered in prop::array::uniform2(100_000u64..1_500_000),
    ) {
        let bottom = vec![class_of("c1").police(policer(rates[0])), class_default()];
        let middle = vec![class_of("udp").police(policer(rates[1])).service_policy("Bottom")];
        let top = vec![class_default().police(policer(rates[2])).service_policy("Middle")];
        let maps = maps([("Bottom", bottom), ("Middle", middle), ("P", top)]);
        let (input, output) = if direction == "input" { (Some("P"), None) } else { (None, Some("P")) };
        let config = configuration(generation, maps, interface(100_000, input, output));
        let mut engine: Engine<usize> = common::started(100_000_000, Ppp, &config);
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
        let counters = common::out(&mut engine, end);
        let policy = if direction == "input" { counters.policy_input } else { counters.policy_output };
        let top = policy.unwrap().classes[0].clone();
        let middle = top.child.clone().unwrap().classes[0].clone();
        let bottom = middle.child.clone().unwrap().classes;
        let (passed, dropped) = metered_packets(&bottom[0]);
        prop_assert_eq!(passed + dropped, bottom[0].bytes);
        let (through, held) = metered_packets(&middle);
        prop_assert_eq!(through + held, passed + bottom[1].bytes);
        let (sent, refused) = metered_packets(&top);
        prop_assert_eq!(sent + refused, through);
        // No level passes more than its rate and its bucket, and the narrowest level limits everything.
        for (bytes, kbps) in [(passed, rates[0]), (through, rates[1]), (sent, rates[2])] {
            prop_assert!(bytes <= kbps * 125 * 4 + 4_000, "{} bytes at {} kb/s", bytes, kbps);
        }
        prop_assert_eq!(top.drops.police.bytes, dropped + held + refused);
    }
}
