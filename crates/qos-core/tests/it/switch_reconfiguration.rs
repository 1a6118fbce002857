//! State that a switch keeps, and state that restarts, with a new configuration; and the memory that its ports share.

use crate::common::build::*;
use crate::common::switch::{config, defaults, interface, name, port, ports, started};
use crate::common::{MILLI, SECOND};
use qos_core::counters::SwitchPortCounters;
use qos_core::wire::Framing;
use qos_core::{Descriptor, DropReason, Duration, Engine, Label, Output, PortId, RouterConfig, Side, Time};

const PORT: PortId = PortId(0);

fn one_port(qos: bool, switch: SwitchPortConfig) -> RouterConfig {
    config(SwitchConfig { qos, ..defaults() }).interface(name(1), interface(switch))
}

/// A frame of 1518 bytes, 6 cells, which takes 12.304 us.
fn full_port(dscp: u8) -> Descriptor {
    crate::common::datagram(1_500, dscp, 1, 2, Framing::Ethernet)
}

fn labelled_frames(dscp: u8) -> Descriptor {
    Descriptor { label: Some(Label { dscp, ..Label::default() }), ..full_port(dscp) }
}

fn counters(engine: &mut Engine<u64>, at: u64) -> SwitchPortCounters {
    engine.counters(Time(at), None).interfaces[&name(1)].switch.clone().unwrap()
}

fn common_free(engine: &mut Engine<u64>, at: u64) -> u32 {
    engine.counters(Time(at), None).switch.unwrap().cells_common_free
}

#[test]
fn shut_down_port_drops_waiting_frames_and_frees_their_cells() {
    let on = one_port(true, port());
    let shut = InterfaceConfig { enabled: false, ..interface(port()) };
    let off = config(defaults()).interface(name(1), shut);
    let mut engine = started(1, &on);
    let free = common_free(&mut engine, 0);
    for number in 0..20 {
        engine.transmit(Time(MILLI), PORT, labelled_frames(0), number);
    }
    let held = counters(&mut engine, MILLI).depth_cells[1];
    assert_eq!((held, common_free(&mut engine, MILLI)), (120, free - 70), "50 are reserved for the queue");
    engine.configure(Time(MILLI), &off).unwrap();
    engine.audit().unwrap();
    let shut = counters(&mut engine, MILLI);
    assert_eq!((shut.depth_cells, shut.depth_packets), ([0, 6, 0, 0], [0; 4]), "the one on the wire");
    engine.configure(Time(MILLI), &on).unwrap();
    let mut outputs = Vec::new();
    engine.poll(Time(SECOND), &mut outputs);
    let left = outputs.iter().filter(|output| matches!(output, Output::Departure(_))).count();
    let totals = engine.totals(PORT, Side::Wire);
    assert_eq!((left, totals.dropped[DropReason::Disabled as usize].packets), (1, 19));
    assert_eq!((common_free(&mut engine, SECOND), counters(&mut engine, SECOND).depth_cells), (free, [0; 4]));
    engine.transmit(Time(SECOND), PORT, labelled_frames(0), 20);
    outputs.clear();
    engine.poll(Time(2 * SECOND), &mut outputs);
    assert_eq!(outputs.len(), 1, "it works again");
}

#[test]
fn counters_go_on_while_qos_is_on() {
    let config = |qos, limit: u32| one_port(qos, SwitchPortConfig { trust: Some(Trust::Dscp), limit, ..port() });
    let mut engine = started(1, &config(true, 100));
    let mut outputs = Vec::new();
    let mut both_ways = |engine: &mut Engine<u64>, at: u64| {
        engine.receive(Time(at), PORT, full_port(46), 0);
        engine.transmit(Time(at), PORT, labelled_frames(46), 0);
        engine.poll(Time(at + MILLI), &mut outputs);
        let counted = counters(engine, at + MILLI);
        (counted.dscp_in[46], counted.input_enqueued[1][0], counted.dscp_out[46], counted.enqueued[0][0])
    };
    assert_eq!(both_ways(&mut engine, MILLI), (1, 1, 1, 1));
    engine.configure(Time(3 * MILLI), &config(true, 50)).unwrap();
    assert_eq!(both_ways(&mut engine, 4 * MILLI), (2, 2, 2, 2), "the port has changed, and QoS is on");
    engine.configure(Time(6 * MILLI), &config(false, 50)).unwrap();
    assert_eq!(both_ways(&mut engine, 7 * MILLI), (0, 0, 0, 0), "without QoS nothing is counted");
    engine.configure(Time(9 * MILLI), &config(true, 50)).unwrap();
    assert_eq!(both_ways(&mut engine, 10 * MILLI), (1, 1, 1, 1));
}

/// While QoS is off frames count at one threshold of one queue, and continue to do so with any change of the port.
#[test]
fn counters_go_on_while_qos_is_off() {
    let config = |limit: u32| one_port(false, SwitchPortConfig { limit, ..port() });
    let mut engine = started(1, &config(100));
    engine.transmit(Time(MILLI), PORT, full_port(46), 0);
    engine.configure(Time(2 * MILLI), &config(50)).unwrap();
    engine.transmit(Time(3 * MILLI), PORT, full_port(46), 0);
    assert_eq!(counters(&mut engine, 4 * MILLI).enqueued[3], [0, 0, 2]);
}

#[test]
fn changed_trust_changes_the_label() {
    let trusting = |trust: Option<Trust>| one_port(true, SwitchPortConfig { trust, ..port() });
    let mut engine = started(1, &trusting(Some(Trust::Dscp)));
    let mut label = |trust: Option<Trust>, at: u64| {
        engine.configure(Time(at), &trusting(trust)).unwrap();
        let mut outputs = Vec::new();
        engine.receive(Time(at), PORT, full_port(46), 0);
        engine.poll_inside(Time(at), Duration::ZERO, &mut outputs);
        let Some(Output::Departure(departure)) = outputs.first() else { panic!("{outputs:?}") };
        departure.descriptor.label.unwrap().dscp
    };
    assert_eq!(label(Some(Trust::Dscp), MILLI), 46);
    assert_eq!(label(None, 2 * MILLI), 0);
    assert_eq!(label(Some(Trust::IpPrecedence), 3 * MILLI), 40);
}

/// Frames of the switch itself came by no port that could have labelled them.
#[test]
fn a_frame_without_a_label_has_the_queue_of_its_code_point() {
    for (dscp, queue) in [(46, 0), (0, 1), (16, 2), (32, 3)] {
        let mut engine = started(1, &one_port(true, port()));
        engine.transmit(Time(MILLI), PORT, full_port(dscp), 0);
        let enqueued = counters(&mut engine, MILLI).enqueued;
        assert_eq!((enqueued[queue][0], enqueued.iter().flatten().sum::<u64>()), (1, 1), "code point {dscp}");
    }
}

/// Ports 25 and following have their own memory, which those before cannot use up.
#[test]
fn each_asic_has_its_own_memory() {
    let mut shared = defaults();
    shared.queue_sets[0].thresholds = [QueueThresholds { t1: 400, t2: 400, reserved: 1, maximum: 400 }; 4];
    let mut engine = started(25, &config(shared));
    let drops = |engine: &Engine<u64>, port| engine.totals(port, Side::Wire).dropped[DropReason::Tail as usize].packets;
    for port in 0..24 {
        for dscp in [0, 16, 32] {
            for _ in 0..66 {
                engine.transmit(Time(MILLI), PortId(port), labelled_frames(dscp), 0);
            }
        }
    }
    engine.transmit(Time(MILLI), PORT, labelled_frames(46), 0);
    assert_eq!(drops(&engine, PORT), 1, "the memory is used up");
    for _ in 0..66 {
        engine.transmit(Time(MILLI), PortId(24), labelled_frames(46), 0);
    }
    assert_eq!(drops(&engine, PortId(24)), 0);
    engine.audit().unwrap();
}

/// Before its first configuration a port is a router's. What waits then is dropped where it becomes a switch's.
#[test]
fn port_that_becomes_a_switch_port_drops_waiting_frames() {
    let mut engine = Engine::new(&ports(1), Time(0)).unwrap();
    for number in 0..20 {
        engine.transmit(Time(0), PORT, full_port(0), number);
    }
    engine.configure(Time(0), &one_port(true, port())).unwrap();
    engine.audit().unwrap();
    let mut outputs = Vec::new();
    engine.poll(Time(SECOND), &mut outputs);
    let dropped = |output: &&Output<u64>| matches!(output, Output::Dropped(_));
    let totals = engine.totals(PORT, Side::Wire);
    // One frame was on the wire.
    assert_eq!((outputs.len(), outputs.iter().filter(dropped).count()), (20, 19));
    assert_eq!(totals.dropped[DropReason::Disabled as usize].packets, 19);
}
