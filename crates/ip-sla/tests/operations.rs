//! Operations against a target made up in virtual time.

use ip_sla::config::{IpSlaConfig, Kind, OperationConfig, Schedule, Start};
use ip_sla::packet::{ms_of_day, Remote};
use ip_sla::report::{Latest, OperationReport, ReturnCode, State};
use ip_sla::{Action, Monitor, Nanos, Probe, Reply, MILLISECOND, SECOND};
use proptest::prelude::*;

const START: Nanos = 1_000 * SECOND;

fn operation(kind: Kind) -> OperationConfig {
    OperationConfig {
        kind,
        destination: [172, 16, 1, 130].into(),
        source: None,
        destination_port: kind.udp().then_some(5000),
        source_port: None,
        control: false,
        num_packets: 10,
        interval_ms: 20,
        frequency_s: 2,
        timeout_ms: 1_000,
        threshold_ms: 500,
        request_data_size: 32,
        tos: 0,
        hours_kept: 2,
        distributions_kept: 1,
        distribution_interval_ms: 20,
        schedule: Some(Schedule { start: Start::Now, life_s: None, recurring: false }),
    }
}

/// What happens to a packet: nothing, or a reply after so many ms, of which so many on the way there.
type Fate = Option<(u64, u64)>;

struct World {
    monitor: Monitor,
    now: Nanos,
    answered: u32,
}

impl World {
    fn new(config: OperationConfig) -> World {
        let mut monitor = Monitor::default();
        let config = IpSlaConfig { responder: false, operations: [(1, config)].into() };
        monitor.configure(START, &config).expect("the configuration is good");
        World { monitor, now: START, answered: 0 }
    }

    /// Runs until `until`; the fate of each packet is decided by its sequence number.
    fn run(&mut self, until: Nanos, mut fate: impl FnMut(u32) -> Fate) -> u32 {
        let mut replies: Vec<Reply> = Vec::new();
        let mut packets = 0;
        loop {
            let next = replies.iter().map(|reply| reply.at).chain(self.monitor.next_deadline()).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            let due = |reply: &Reply| reply.at <= next;
            for reply in replies.iter().filter(|reply| due(reply)) {
                self.monitor.received(*reply);
            }
            replies.retain(|reply| !due(reply));
            let mut actions = Vec::new();
            self.monitor.poll(self.now, &mut actions);
            for action in actions {
                let Action::Send(probe, _) = action else { continue };
                packets += 1;
                self.monitor.sent(probe, self.now);
                if let Some((total, there)) = fate(probe.sequence) {
                    let at_target = ms_of_day(self.now + there * MILLISECOND);
                    let remote = Remote { received_ms: at_target, sent_ms: at_target, order: Some(self.answered) };
                    self.answered += 1;
                    replies.push(Reply { probe, at: self.now + total * MILLISECOND, remote: Some(remote) });
                }
            }
        }
        self.now = until;
        packets
    }

    fn report(&self) -> OperationReport {
        self.monitor.report(self.now).operations[&1].clone()
    }

    fn latest(&self) -> Latest {
        self.report().latest.expect("a run has ended")
    }
}

#[test]
fn a_jitter_operation_sends_ten_packets_20_ms_apart_every_two_seconds() {
    let mut world = World::new(operation(Kind::IcmpJitter));
    assert_eq!(world.run(START + 9 * SECOND, |_| Some((15, 10))), 50);
    let report = world.report();
    assert_eq!((report.successes, report.failures, report.state), (5, 0, State::Active));
    let latest = world.latest();
    assert_eq!((latest.return_code, latest.rtt_ms), (ReturnCode::Ok, Some(15)));
    assert_eq!(latest.figures.source_to_destination.pairs, 9);
    // Equal delays: jitter of zero is neither positive nor negative.
    assert_eq!(latest.figures.source_to_destination.positive.count, 0);
    assert_eq!(report.hours[0].figures.rtt_ms.count, 50);
}

#[test]
fn jitter_is_told_apart_by_direction() {
    let mut world = World::new(operation(Kind::IcmpJitter));
    // There: 10, 14, 10, 14, …; back always 5.
    world.run(START + SECOND, |sequence| Some(if sequence % 2 == 0 { (15, 10) } else { (19, 14) }));
    let figures = world.latest().figures;
    let there = figures.source_to_destination;
    assert_eq!((there.positive.count, there.positive.min, there.positive.max), (5, 4, 4));
    assert_eq!((there.negative.count, there.negative.sum), (4, 16));
    assert_eq!(figures.destination_to_source.positive.count + figures.destination_to_source.negative.count, 0);
}

#[test]
fn nothing_answered_is_a_timeout_after_the_last_packet() {
    let mut world = World::new(operation(Kind::IcmpJitter));
    world.run(START + 1_179 * MILLISECOND, |_| None);
    assert_eq!(world.report().latest, None);
    world.run(START + 1_180 * MILLISECOND, |_| None);
    let latest = world.latest();
    assert_eq!((latest.return_code, latest.rtt_ms), (ReturnCode::Timeout, None));
    assert_eq!((latest.figures.lost.unknown, latest.figures.loss_periods.max), (10, 10));
    assert_eq!(world.report().failures, 1);
}

#[test]
fn the_responders_count_tells_where_packets_were_lost() {
    let mut world = World::new(operation(Kind::UdpJitter));
    // 2 and 3 never arrive; the answer to 5 is lost; 9 vanishes at the end, nobody knows where.
    let mut answered = 0;
    let mut actions = Vec::new();
    while let Some(at) = world.monitor.next_deadline().filter(|at| *at < START + SECOND) {
        actions.clear();
        world.monitor.poll(at, &mut actions);
        for action in &actions {
            let Action::Send(probe, _) = *action else { continue };
            world.monitor.sent(probe, at);
            if [2, 3, 9].contains(&probe.sequence) {
                continue;
            }
            let remote = Remote { received_ms: ms_of_day(at), sent_ms: ms_of_day(at), order: Some(answered) };
            answered += 1;
            if probe.sequence != 5 {
                world.monitor.received(Reply { probe, at: at + MILLISECOND, remote: Some(remote) });
            }
        }
    }
    world.run(START + 1_500 * MILLISECOND, |_| None);
    let lost = world.latest().figures.lost;
    assert_eq!((lost.source_to_destination, lost.destination_to_source, lost.unknown), (2, 1, 1));
}

#[test]
fn a_reply_after_the_timeout_is_late_and_not_lost() {
    let mut world = World::new(OperationConfig { timeout_ms: 100, ..operation(Kind::IcmpJitter) });
    world.run(START + SECOND, |sequence| Some(if sequence == 0 { (150, 140) } else { (10, 5) }));
    let figures = world.latest().figures;
    assert_eq!((figures.late, figures.lost.unknown, figures.rtt_ms.count), (1, 0, 9));
}

#[test]
fn replies_slower_than_the_threshold_are_counted() {
    let mut world = World::new(OperationConfig { threshold_ms: 20, ..operation(Kind::IcmpEcho) });
    world.run(START + SECOND, |_| Some((21, 10)));
    let latest = world.latest();
    assert_eq!((latest.return_code, latest.rtt_ms), (ReturnCode::OverThreshold, Some(21)));
    assert_eq!(latest.figures.over_threshold, 1);
}

#[test]
fn overtaking_is_seen_and_placed() {
    let mut world = World::new(operation(Kind::IcmpJitter));
    // Packet 4 takes 50 ms there: the target gets 5 and 6 before it.
    world.run(START + SECOND, |sequence| Some(if sequence == 4 { (55, 50) } else { (10, 5) }));
    let order = world.latest().figures.out_of_sequence;
    // The made-up target numbers packets as they are sent, so the overtaking seems to have been on the way back.
    assert_eq!((order.source_to_destination, order.destination_to_source, order.both), (0, 1, 0));
}

#[test]
fn a_run_that_is_due_before_the_last_has_ended_is_busy() {
    let config = OperationConfig { frequency_s: 1, timeout_ms: 1_000, ..operation(Kind::IcmpJitter) };
    let mut world = World::new(config);
    // 9 × 20 ms and the timeout: each run takes longer than the second.
    world.run(START + 3 * SECOND, |_| None);
    assert!(world.report().hours[0].figures.busy >= 1);
}

#[test]
fn only_the_wanted_hours_are_kept() {
    let config = OperationConfig { frequency_s: 600, hours_kept: 2, ..operation(Kind::IcmpEcho) };
    let mut world = World::new(config);
    world.run(START + 4 * 3_600 * SECOND, |_| Some((5, 2)));
    let hours = world.report().hours;
    assert_eq!(hours.len(), 2);
    assert_eq!((hours[1].start_ns - hours[0].start_ns) / SECOND, 3_600);
    assert_eq!(hours[0].successes, 6);
}

#[test]
fn a_responder_that_does_not_answer_means_no_connection() {
    let mut world = World::new(OperationConfig { control: true, ..operation(Kind::UdpEcho) });
    assert_eq!(world.run(START + SECOND, |_| Some((1, 1))), 0);
    assert_eq!(world.latest().return_code, ReturnCode::NoConnection);
}

#[test]
fn a_responder_that_listens_gets_the_packets() {
    let mut world = World::new(OperationConfig { control: true, ..operation(Kind::UdpJitter) });
    let mut actions = Vec::new();
    world.monitor.poll(START, &mut actions);
    assert!(matches!(actions[..], [Action::Ask { operation: 1, duration_ms: 1_180, .. }]));
    world.monitor.control(1, true, START + 5 * MILLISECOND);
    assert_eq!(world.run(START + SECOND, |_| Some((3, 1))), 10);
    assert_eq!(world.latest().rtt_ms, Some(3));
}

#[test]
fn an_operation_that_did_not_change_goes_on() {
    let config = operation(Kind::IcmpEcho);
    let mut world = World::new(config.clone());
    world.run(START + 3 * SECOND, |_| Some((1, 1)));
    let same = IpSlaConfig { responder: true, operations: [(1, config.clone())].into() };
    world.monitor.configure(world.now, &same).unwrap();
    assert_eq!(world.report().successes, 2);
    let other = OperationConfig { tos: 184, ..config };
    let changed = IpSlaConfig { responder: true, operations: [(1, other)].into() };
    world.monitor.configure(world.now, &changed).unwrap();
    assert_eq!(world.report().successes, 0);
}

#[test]
fn what_is_out_of_range_is_refused_and_changes_nothing() {
    let mut world = World::new(operation(Kind::IcmpEcho));
    let bad = OperationConfig { timeout_ms: 3_000, frequency_s: 2, ..operation(Kind::IcmpEcho) };
    let bad = IpSlaConfig { responder: false, operations: [(2, bad)].into() };
    let (number, (field, message)) = world.monitor.configure(START, &bad).unwrap_err();
    assert_eq!((number, field), (2, "timeout_ms"));
    assert!(message.contains("frequency of 2 s"), "{message}");
    assert!(world.monitor.report(START).operations.contains_key(&1));
}

#[test]
fn icmp_identifiers_lead_back_to_the_packet() {
    let mut world = World::new(operation(Kind::IcmpJitter));
    world.run(START + 5 * SECOND, |_| Some((1, 1)));
    let id = world.monitor.icmp_id(1).unwrap();
    assert_eq!(world.monitor.icmp_probe(id, 12), Some(Probe { operation: 1, sequence: 12 }));
    assert_eq!(world.monitor.icmp_probe(id.wrapping_add(1), 12), None);
}

proptest! {
    /// Whatever the target does: every packet is answered, late or lost, once.
    #[test]
    fn every_packet_is_accounted_for(
        fates in prop::collection::vec(prop::option::of((0u64..1_500, 0u64..100)), 10),
        kind in prop::sample::select(vec![Kind::IcmpJitter, Kind::UdpJitter]),
    ) {
        let mut world = World::new(operation(kind));
        let fate = |sequence: u32| fates[sequence as usize % 10].map(|(total, there)| (total, there.min(total)));
        world.run(START + 1_999 * MILLISECOND, fate);
        let figures = world.latest().figures;
        let lost = figures.lost.source_to_destination + figures.lost.destination_to_source + figures.lost.unknown;
        prop_assert_eq!(figures.rtt_ms.count + figures.late + lost, 10);
        prop_assert_eq!(figures.loss_periods.sum, lost);
        prop_assert!(figures.rtt_ms.min <= figures.rtt_ms.average() && figures.rtt_ms.average() <= figures.rtt_ms.max);
        let there = figures.source_to_destination;
        prop_assert!(there.positive.count + there.negative.count <= there.pairs && there.pairs <= 9);
    }
}
