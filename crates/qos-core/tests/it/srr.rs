//! Properties of the switch's scheduler and memory.

use std::collections::BTreeMap;

use crate::common::build::*;
use crate::common::switch::{config, defaults, interface, name, port, started};
use crate::common::{MILLI, SECOND};
use proptest::prelude::*;
use qos_core::wire::Framing;
use qos_core::Label;
use qos_core::{Descriptor, Engine, Output, PortId, Side, Time};

/// A code point of each queue's, by default.
const DSCP: [u8; 4] = [46, 0, 16, 32];
const PORT: PortId = PortId(0);
const SPEED: u64 = 100_000_000;

/// A frame for a queue (from 0) with an IP packet of `ip_len` bytes.
fn frame(queue: usize, ip_len: usize) -> Descriptor {
    let parsed = crate::common::datagram(ip_len, DSCP[queue], 1, 2, Framing::Ethernet);
    Descriptor { label: Some(Label { dscp: DSCP[queue], ..Label::default() }), ..parsed }
}

/// A departed frame: its start, its time on the wire, its queue, its bytes on the wire.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    queue: usize,
    line_len: u64,
}

impl Sent {
    /// Time on the wire in 1/SPEED seconds of 10⁻⁹ bits: without rounding.
    fn wire(&self) -> u64 {
        self.line_len * 8 * SECOND
    }
}

fn sent(outputs: &[Output<usize>]) -> Vec<Sent> {
    let of = |output: &Output<usize>| match output {
        Output::Departure(departure) if departure.side == Side::Wire => {
            let line_len = u64::from(departure.descriptor.line_len);
            Some(Sent { start: departure.time.0 - line_len * 8 * SECOND / SPEED, queue: departure.payload, line_len })
        }
        _ => None,
    };
    outputs.iter().filter_map(of).collect()
}

fn engine(port: SwitchPortConfig) -> Engine<usize> {
    with_switch(defaults(), port)
}

fn with_switch(switch: SwitchConfig, port: SwitchPortConfig) -> Engine<usize> {
    let port = interface(SwitchPortConfig { speed_bps: Some(SPEED), ..port });
    started(1, &config(switch).interface(name(1), port))
}

/// Offers frames, each a queue, a length and the time since the one before; polls when it likes.
fn offer(engine: &mut Engine<usize>, load: &[(usize, usize, u64)], poll_every: u64) -> Vec<Sent> {
    let mut outputs = Vec::new();
    let (mut now, mut polled) = (0, 0);
    for &(queue, ip_len, gap) in load {
        now += gap;
        if now >= polled + poll_every {
            engine.poll(Time(now), &mut outputs);
            polled = now;
        }
        engine.transmit(Time(now), PORT, frame(queue, ip_len), queue);
    }
    engine.audit().unwrap();
    engine.poll(Time(now + 3_600 * SECOND), &mut outputs);
    engine.audit().unwrap();
    sent(&outputs)
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1_500), Just(46), 46..1_500usize]
}

/// More than the line carries, now and then less.
fn load(queues: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(usize, usize, u64)>> {
    prop::collection::vec((queues, lengths(), prop_oneof![9 => 0..60_000u64, 1 => 0..2_000_000u64]), 1..600)
}

/// Longest frame on the wire, bytes (1522 with FCS).
const LONGEST: u64 = 1_542;

proptest! {
    #![proptest_config(crate::bounded::cases(100))]

    /// In any window that begins with a frame of a shaped queue, the frames that start before its last one take at most
    /// 1/w of the window, and of one longest frame's time at the port's operational bandwidth.
    #[test]
    fn shaped_srr_queue_never_exceeds_its_share(
        load in load(0..4), weights in prop::array::uniform4(0u32..40), share in prop::array::uniform4(1u32..=255),
        limit in prop_oneof![Just(100u32), 10..=90u32], expedite in any::<bool>()
    ) {
        let mut engine = engine(SwitchPortConfig { shape: weights, share, limit, priority_queue: expedite, ..port() });
        let sent = offer(&mut engine, &load, 1);
        let operational = if limit == 70 { 7_038 } else { u64::from(limit) * 100 };
        let slack = (LONGEST * 8 * SECOND).div_ceil(SPEED * operational / 10_000);
        for (queue, weight) in weights.into_iter().enumerate() {
            if weight == 0 || (expedite && queue == 0) {
                continue;
            }
            // Start less what earlier frames may take, in units that do not round; never less than the greatest of
            // these before, except the slack.
            let (mut taken, mut greatest) = (0u128, i128::MIN);
            for (number, frame) in sent.iter().filter(|frame| frame.queue == queue).enumerate() {
                let lead = i128::from(frame.start) * i128::from(SPEED) - (taken * u128::from(weight)) as i128;
                greatest = greatest.max(lead);
                // Departures are whole nanoseconds.
                let rounding = 2 * (number as i128 + 1) * i128::from(SPEED);
                prop_assert!(lead >= greatest - i128::from(slack) * i128::from(SPEED) - rounding,
                    "queue {queue}, weight {weight}: frame {number}");
                taken += u128::from(frame.wire());
            }
        }
    }

    /// While two shared queues are both busy, their sent bytes divided by their weights never differ by more than one
    /// frame of each, divided by its weight; and the port never idles while a shared queue has frames.
    #[test]
    fn shared_queues_are_proportional_and_work_conserving(
        weights in prop::array::uniform4(1u32..=255), lens in prop::array::uniform4(lengths()), busy in 1usize..=4,
        limit in prop_oneof![Just(100u32), 10..=90u32]
    ) {
        let mut engine = engine(SwitchPortConfig { shape: [0, 0, 0, 0], share: weights, limit, ..port() });
        let mut load = Vec::new();
        for (queue, len) in lens.into_iter().enumerate().take(busy) {
            // 16 frames of 6 cells or fewer fit.
            load.extend((0..16).map(|_| (queue, len, 0)));
        }
        let sent = offer(&mut engine, &load, 1);
        prop_assert_eq!(sent.len(), load.len());
        let mut bytes = [0u64; 4];
        let mut left = [16; 4];
        for frame in &sent {
            if (0..busy).all(|queue| left[queue] > 0) {
                for a in 0..busy {
                    for b in 0..busy {
                        let of = |queue: usize| bytes[queue] as f64 / f64::from(weights[queue]);
                        let line = |queue: usize| (lens[queue].max(46) + 38) as f64 / f64::from(weights[queue]);
                        // The first frame left before the others arrived.
                        let first = (sent[0].line_len as f64) / f64::from(weights[sent[0].queue]);
                        prop_assert!((of(a) - of(b)).abs() <= line(a) + line(b) + first + 0.01,
                            "{bytes:?} at weights {weights:?}");
                    }
                }
            }
            bytes[frame.queue] += frame.line_len;
            left[frame.queue] -= 1;
        }
        // Back to back at the operational bandwidth.
        let operational = SPEED * if limit == 70 { 7_038 } else { u64::from(limit) * 100 } / 10_000;
        let mut expected = 0u128;
        for frame in &sent {
            prop_assert!(frame.start.abs_diff((expected / u128::from(operational)) as u64) <= 2);
            expected += u128::from(frame.wire());
        }
    }

    /// A queue drops when its cells with the frame's would be more than the label's threshold, and only then. Queue-set
    /// 2 is this port's own, so the memory suffices for it with any reservation.
    #[test]
    fn weighted_tail_drop_begins_above_the_threshold(
        load in load(0..4), t1 in prop::array::uniform4(1u32..400), maximum in prop::array::uniform4(1u32..400),
        reserved in prop::array::uniform4(1u32..=100)
    ) {
        let mut switch = defaults();
        for queue in 0..4 {
            let (t1, reserved, maximum) = (t1[queue], reserved[queue], maximum[queue]);
            switch.queue_sets[1].thresholds[queue] = QueueThresholds { t1, t2: 100, reserved, maximum };
        }
        let mut engine = with_switch(switch, SwitchPortConfig { queue_set: 2, ..port() });
        let mut now = 0;
        for &(queue, ip_len, gap) in load.iter().take(250) {
            now += gap;
            let state = |engine: &mut Engine<usize>| {
                engine.counters(Time(now), None).interfaces[&name(1)].switch.clone().unwrap()
            };
            let before = state(&mut engine);
            engine.transmit(Time(now), PORT, frame(queue, ip_len), queue);
            let after = state(&mut engine);
            // 64 bytes at least, with FCS; 100 cells are allocated to each queue.
            let cells = ((ip_len as u32).max(46) + 18).div_ceil(256);
            let threshold = t1[queue].min(maximum[queue]);
            let expected = before.depth_cells[queue] + cells > threshold;
            prop_assert_eq!(after.dropped[queue][0] > before.dropped[queue][0], expected);
            prop_assert_eq!(after.enqueued[queue][0] > before.enqueued[queue][0], !expected);
        }
    }

    /// The same frames leave at the same times and the same are dropped, however late the caller polls.
    #[test]
    fn late_polls_change_nothing(load in load(0..4), poll_every in 1u64..300 * MILLI, kind in 0usize..4) {
        let port = [
            port(),
            SwitchPortConfig { shape: [0, 0, 0, 0], share: [30, 70, 1, 1], limit: 70, ..port() },
            SwitchPortConfig { priority_queue: true, ..port() },
            SwitchPortConfig { shape: [50, 0, 80, 0], limit: 40, ..port() },
        ][kind].clone();
        let punctual = offer(&mut engine(port.clone()), &load, 1);
        let late = offer(&mut engine(port), &load, poll_every);
        let values = |frame: &Sent| (frame.start, frame.queue, frame.line_len);
        let of = |sent: &[Sent]| sent.iter().map(values).collect::<Vec<_>>();
        prop_assert_eq!(of(&late), of(&punctual));
    }

    /// Random programs over many ports: cells are never negative (which would panic), every frame is accounted for, and
    /// in the end all cells are back.
    #[test]
    fn every_buffer_cell_is_released(
        steps in prop::collection::vec((0u8..24, 0usize..30, 0usize..4, lengths(), 0u64..40_000), 1..400)
    ) {
        let mut switch = defaults();
        let mut engine: Engine<usize> = started(30, &config(switch.clone()));
        let mut outputs = Vec::new();
        let (mut now, mut offered) = (0, BTreeMap::new());
        for (step, number, queue, ip_len, gap) in steps {
            now += gap;
            match step {
                0 => {
                    let set = &mut switch.queue_sets[ip_len % 2];
                    let (length, gap) = (ip_len as u32, gap as u32);
                    set.thresholds[queue] = QueueThresholds {
                        t1: 1 + length % 3_200,
                        t2: 1 + gap % 3_200,
                        reserved: 1 + length % 100,
                        maximum: 1 + (gap * 7) % 3_200,
                    };
                    set.buffers = [[25, 25, 25, 25], [0, 100, 0, 0], [70, 10, 10, 10], [1, 1, 1, 97]][queue];
                }
                1 => switch.qos = ip_len % 4 > 0,
                2 => engine.poll(Time(now), &mut outputs),
                _ => {
                    let port = PortId((number % if step < 12 { 30 } else { 3 }) as u16);
                    *offered.entry(port).or_insert(0u64) += 1 + u64::from(step);
                    for _ in 0..=step {
                        engine.transmit(Time(now), port, frame(queue, ip_len), queue);
                    }
                }
            }
            if step < 2 {
                let own = SwitchPortConfig {
                    queue_set: 1 + queue as u32 % 2,
                    shape: [ip_len as u32 % 100, 0, queue as u32, 0],
                    priority_queue: queue == 3,
                    ..port()
                };
                let own = InterfaceConfig { enabled: gap % 3 > 0, ..interface(own) };
                engine.configure(Time(now), &config(switch.clone()).interface(name(1 + ip_len % 30), own)).unwrap();
            }
            engine.audit().unwrap();
        }
        let memory = engine.counters(Time(now), None).switch.unwrap();
        prop_assert!(memory.cells_common_free <= memory.cells_common
            && memory.cells_reserved <= 2 * memory.cells_total);
        engine.poll(Time(now + 3_600 * SECOND), &mut outputs);
        let counters = engine.counters(Time(now + 3_600 * SECOND), None);
        let memory = counters.switch.unwrap();
        prop_assert_eq!(memory.cells_common_free, memory.cells_common);
        prop_assert_eq!(engine.ports().count(), counters.interfaces.len());
        for (port, name) in engine.ports() {
            prop_assert_eq!(counters.interfaces[name].switch.as_ref().unwrap().depth_cells, [0; 4]);
            let totals = engine.totals(port, Side::Wire);
            prop_assert_eq!(totals.offered.packets, offered.get(&port).copied().unwrap_or(0));
        }
        engine.audit().unwrap();
    }
}

/// The article's last phase: 13 Mb/s in queue 1 with any traffic in queue 2, 100 Mb/s with a limit of 70. The caller
/// stalls for 300 ms again and again; queue 1 loses nothing.
#[test]
fn stalls_of_the_caller_lose_no_frames() {
    let port = SwitchPortConfig { shape: [0, 0, 0, 0], share: [30, 70, 1, 1], limit: 70, ..port() };
    let mut load: Vec<(u64, usize)> = (0..5_532).map(|frame| (frame * 904_000, 0)).collect();
    // 200 Mb/s of full frames.
    load.extend((0..80_000).map(|frame| (frame * 61_520, 1)));
    load.sort_unstable();
    let mut last = 0;
    let gaps: Vec<_> = load
        .into_iter()
        .map(|(at, queue)| {
            let gap = at - last;
            last = at;
            (queue, if queue == 0 { 1_498 } else { 1_500 }, gap)
        })
        .collect();
    for poll_every in [1, 300 * MILLI] {
        let mut engine = engine(port.clone());
        let sent = offer(&mut engine, &gaps, poll_every);
        let counters = engine.counters(Time(4_000 * SECOND), None).interfaces[&name(1)].switch.clone().unwrap();
        assert_eq!((counters.enqueued[0][0], counters.dropped[0]), (5_532, [0; 3]));
        assert!(counters.dropped[1][0] > 0);
        // 13.6 of 70.38 Mb/s on the wire, and queue 2 has the rest.
        let end = sent.iter().filter(|frame| frame.start < 4 * SECOND);
        let bits = end.fold([0; 2], |mut bits, frame| {
            bits[frame.queue] += frame.line_len * 8 / 4;
            bits
        });
        assert!((bits[0] + bits[1]).abs_diff(70_380_000) < 30_000, "{bits:?}");
        assert!(bits[0].abs_diff(13_592_920) < 30_000, "{bits:?}");
    }
}

/// A shaped queue has its part even where shared ones always have something to send.
#[test]
fn shaped_srr_queue_gets_its_share() {
    for (shape, limit) in [(25, 100), (2, 100), (10, 70), (50, 40)] {
        let mut engine = engine(SwitchPortConfig { shape: [shape, 0, 0, 0], limit, ..port() });
        let gaps: Vec<_> = (0..60_000).map(|frame| (frame % 2, 1_500, 25_000)).collect();
        let sent = offer(&mut engine, &gaps, 1);
        let end = 60_000 * 25_000;
        let bytes: u64 =
            sent.iter().filter(|frame| frame.queue == 0 && frame.start < end).map(|frame| frame.line_len).sum();
        let expected = SPEED / 8 / u64::from(shape) * end / SECOND;
        assert!(bytes.abs_diff(expected) <= 2 * LONGEST, "1/{shape} of the port: {bytes} of {expected} bytes");
    }
}

/// It pays for no wait behind a frame of another queue, were it the longest: short frames have their half of the port
/// with full ones, however often they wait.
#[test]
fn shaped_queue_is_not_charged_for_waiting_behind_a_frame() {
    let mut engine = engine(SwitchPortConfig { shape: [2, 0, 0, 0], ..port() });
    let gaps: Vec<_> =
        (0..60_000).map(|number| if number % 10 == 0 { (1, 1_500, 10_000) } else { (0, 46, 10_000) }).collect();
    let sent = offer(&mut engine, &gaps, 1);
    let end = 60_000 * 10_000;
    let bytes: u64 =
        sent.iter().filter(|frame| frame.queue == 0 && frame.start < end).map(|frame| frame.line_len).sum();
    let expected = SPEED / 8 / 2 * end / SECOND;
    assert!(bytes.abs_diff(expected) <= 2 * LONGEST, "half of the port: {bytes} of {expected} bytes");
}
