//! Marks by another field, the discard class, and lengths that a policer accounts for.

use crate::common::build::*;
use crate::common::{self, class, configuration, load, run, with_policy, Source, PORT, SECOND};
use qos_core::wire::Framing::Ethernet;
use qos_core::{Departure, Descriptor, Engine, Output, Side, Time};

/// Outputs of the router, in the order of their inputs.
fn passed_packet<P: Copy>(outputs: &[Output<P>], towards: Side) -> Vec<Descriptor> {
    let departed = |output: &Output<P>| match output {
        Output::Departure(Departure { descriptor, side, .. }) if *side == towards => Some(*descriptor),
        _ => None,
    };
    outputs.iter().filter_map(departed).collect()
}

/// The mark of `field` by so many values of `source`.
fn map(field: SetField, source: ThresholdField, count: usize, marks: &[(usize, u16)]) -> MapAction {
    let mut values = vec![None; count];
    marks.iter().for_each(|(old, new)| values[*old] = Some(*new));
    MapAction { field, source, table: None, values }
}

/// A map writes the value for the packet's field as it came to the class, and counts no packet without a value.
#[test]
fn table_map_sets_the_mark_from_another_field() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Ethernet);
    let map = vec![
        map(SetField::QosGroup, ThresholdField::Dscp, 64, &[(46, 5), (10, 7)]),
        map(SetField::Cos, ThresholdField::Precedence, 8, &[(5, 3)]),
    ];
    let class = PolicyClass { map, ..class_default().set(SetField::Dscp, 8) };
    engine.configure(Time(0), &with_policy(Hqf, 10_000, vec![class])).unwrap();
    for (index, dscp) in [46, 10, 0].into_iter().enumerate() {
        engine.transmit(Time(0), PORT, common::datagram(100, dscp, 1, 2, Ethernet), index as u64);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let marks: Vec<_> = passed_packet(&outputs, Side::Wire).iter().map(|d| (d.dscp, d.qos_group, d.cos)).collect();
    assert_eq!(marks, [(8, 5, 3), (8, 7, 0), (8, 0, 0)]);
    let counted = common::class(&mut engine, Time(SECOND), 0);
    assert_eq!(counted.map.iter().map(|map| map.packets).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(counted.set[0].packets, 3);
}

/// A policer of the way in sets it, and classes and early drops of the way out distinguish packets by it.
#[test]
fn a_discard_class_is_carried_through_the_router() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Ethernet);
    let policies = maps([
        (
            "I",
            vec![class_default()
                .police(police(8_000).bytes(1_000).exceed(PoliceAction::SetDiscardClassTransmit { value: 3 }))],
        ),
        ("O", vec![class_of("third"), class_default()]),
    ]);
    let config = configuration(Hqf, policies, interface(10_000, Some("I"), Some("O")))
        .class_map("third", match_all(vec![discard_class(3)]));
    engine.configure(Time(0), &config).unwrap();
    for number in 0..3 {
        engine.receive(Time(0), PORT, common::datagram(900, 0, 1, 2, Ethernet), number);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let inside = passed_packet(&outputs, Side::Inside);
    assert_eq!(inside.iter().map(|d| d.discard_class).collect::<Vec<_>>(), [0, 3, 3]);
    for (number, descriptor) in inside.into_iter().enumerate() {
        engine.transmit(Time(SECOND), PORT, descriptor, number as u64);
    }
    run(&mut engine, Time(2 * SECOND), &mut outputs);
    let packets: Vec<_> = (0..2).map(|index| class(&mut engine, Time(2 * SECOND), index).packets).collect();
    assert_eq!(packets, [2, 1]);
}

/// `account` below `police`: the lengths are longer for the meter, and not for its counters.
#[test]
fn account_lengthens_packets_for_the_policer_only() {
    let rate = |account: Option<AccountConfig>| {
        let police = PoliceConfig { account, ..police(1_000_000) };
        let config = with_policy(IosXe, 10_000, vec![class_default().police(police)]);
        let mut engine = common::started(10_000_000, Ethernet, &config);
        load(&mut engine, Ethernet, &[Source::new(86, 0, 0, 5_000_000)], Time(20 * SECOND));
        let conformed = class(&mut engine, Time(20 * SECOND), 0).police.unwrap().conformed;
        assert_eq!(conformed.bytes, conformed.packets * 100);
        conformed.packets * 800 / 20 / 1_000
    };
    let (plain, more) = (rate(None), rate(Some(user_defined(100, false))));
    assert!(plain.abs_diff(1_012) <= 2 && more.abs_diff(506) <= 2, "{plain} {more}");
}

/// By class of service and by discard class early drops have rows for eight values.
#[test]
fn red_uses_cos_and_discard_class() {
    for (basis, field) in
        [(RandomDetectBasis::Cos, SetField::Cos), (RandomDetectBasis::DiscardClass, SetField::DiscardClass)]
    {
        let red = red(basis).weight(1).row(5, 1, 2, None);
        let classes = vec![class_of("c1").set(field, 5), class_default()];
        let policies = maps([("I", classes), ("O", vec![class_default().queue_limit(1000).random_detect(red)])]);
        let config = configuration(Hqf, policies, interface(10_000, Some("I"), Some("O")));
        let mut engine: Engine<u64> = common::started(10_000_000, Ethernet, &config);
        for number in 0..100 {
            engine.receive(Time(0), PORT, common::datagram(900, (number % 2) as u8, 1, 2, Ethernet), number);
        }
        let mut outputs = Vec::new();
        run(&mut engine, Time(SECOND), &mut outputs);
        for descriptor in passed_packet(&outputs, Side::Inside) {
            engine.transmit(Time(SECOND), PORT, descriptor, 0);
        }
        let rows = class(&mut engine, Time(SECOND), 0).random_detect.unwrap().classes;
        assert_eq!(rows.len(), 8);
        let drops: Vec<_> = rows.iter().map(|row| row.random_drop.packets + row.tail_drop.packets).collect();
        assert!(drops[5] > 10 && drops[0] == 0, "{basis:?}: {drops:?}");
    }
}

/// Early detection of an interface drops from its own queue, which no policy has taken.
#[test]
fn interface_random_detect_drops_early() {
    for generation in [Classic, Hqf, IosXe] {
        let mut port = interface(1_000, None, None);
        port.random_detect = Some(red_by_precedence().weight(1));
        let mut engine = common::started(1_000_000, Ethernet, &configuration(generation, Maps::new(), port));
        load(&mut engine, Ethernet, &[Source::new(1_000, 0, 0, 2_000_000)], Time(10 * SECOND));
        let counted = common::out(&mut engine, Time(10 * SECOND));
        let row = counted.random_detect.unwrap().classes[0];
        assert!(row.random_drop.packets > 0, "{generation:?}: {row:?}");
        assert_eq!(counted.output.drops, row.random_drop.packets + row.tail_drop.packets);
        assert!(counted.queue.depth <= u64::from(row.max), "{generation:?}");
    }
}
