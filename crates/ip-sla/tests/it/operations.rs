//! Operations and responder against a simulated network.

use std::net::{IpAddr, Ipv4Addr};

use ip_sla::config::{Config, OperationConfig};
use ip_sla::packet::{self, icmp, CONTROL_PORT};
use ip_sla::statistics::{OperationReport, ReturnCode, State};
use ip_sla::{since_midnight, Channel, Nanos, Prober, Responder, Send, MILLI, SECOND};
use proptest::prelude::*;

const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 16, 1, 130));
const START: Nanos = 1_700_000_000 * SECOND;

fn operation(text: &str) -> OperationConfig {
    serde_json::from_str(text).expect("the operation is well-formed")
}

fn config(text: &str) -> Config {
    let config = Config { operations: [(7, operation(text))].into(), ..Config::default() };
    config.check().expect("the operation is in range");
    config
}

/// Runs the operation until `end`; `delay` returns the round-trip time of each packet, or its loss.
fn run(text: &str, end: Nanos, mut delay: impl FnMut(u32) -> Option<(Nanos, Nanos)>) -> OperationReport {
    let mut prober = Prober::new(0);
    prober.configure(&config(text), START);
    let target = operation(text).target;
    let mut replies: Vec<(Nanos, Vec<u8>)> = Vec::new();
    let (mut sends, mut count) = (Vec::new(), 0);
    loop {
        replies.sort();
        let now = prober.deadline().into_iter().chain(replies.first().map(|r| r.0)).min().unwrap_or(end);
        if now >= end {
            break;
        }
        if replies.first().is_some_and(|r| r.0 == now) {
            let (at, bytes) = replies.remove(0);
            prober.record_packet(Channel::Icmp, (target, 0), &bytes, at);
        }
        prober.poll(now, &mut sends);
        for Send { sequence, bytes, .. } in sends.drain(..) {
            prober.record_sent(7, sequence.expect("ICMP needs no control message"), now);
            if let Some((there, back)) = delay(count) {
                replies.push((now + there + back, answer(&bytes, now + there)));
            }
            count += 1;
        }
    }
    prober.report(end, None, true).remove(&7).expect("it is configured")
}

fn answer(request: &[u8], at: Nanos) -> Vec<u8> {
    let mut bytes = request.to_vec();
    if bytes[0] == icmp::ECHO_V6 {
        // The kernel computes the checksum.
        bytes[0] = icmp::ECHO_REPLY_V6;
        return bytes;
    }
    bytes[0] = if bytes[0] == icmp::ECHO { icmp::ECHO_REPLY } else { icmp::TIMESTAMP_REPLY };
    if bytes[0] == icmp::TIMESTAMP_REPLY {
        bytes[12..16].copy_from_slice(&since_midnight(at).to_be_bytes());
        bytes[16..20].copy_from_slice(&since_midnight(at).to_be_bytes());
    }
    bytes[2..4].copy_from_slice(&[0, 0]);
    let sum = packet::checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

const JITTER: &str = r#"{"type": "icmp-jitter", "target": "172.16.1.130", "frequency_s": 2, "timeout_ms": 1000,
    "threshold_ms": 500, "schedule": {"life_s": null, "start": "now"}}"#;

#[test]
fn a_timestamp_request_is_an_ip_packet_of_40_bytes() {
    assert_eq!(packet::timestamp(1, 1, START).len() + 20, 40);
    assert_eq!(packet::echo(1, 1, START, 28).len() + 20, 64);
}

#[test]
fn an_echo_over_ipv6_is_one_of_icmpv6() {
    let bytes = packet::echo_v6(7, 9, START, 28);
    assert_eq!((bytes.len() + 40, &bytes[..8]), (84, &[128, 0, 0, 0, 0, 7, 0, 9][..]));
    let text = r#"{"type": "icmp-echo", "target": "2001:db8::2", "schedule": {"life_s": null, "start": "now"}}"#;
    let report = run(text, START + 2 * SECOND, |_| Some((MILLI, 3 * MILLI)));
    assert_eq!((report.latest.return_code, report.latest.rtt_ms), (ReturnCode::Ok, Some(4)));
    // A reply of the other IP version does not count.
    assert_eq!(packet::icmp_reply(&answer(&bytes, START)), None);
    assert_eq!(packet::icmpv6_reply(&answer(&packet::echo(7, 9, START, 28), START)), None);
}

#[test]
fn addresses_of_two_families_or_of_one_link_are_refused() {
    let refused = |text: &str| {
        let operations = [(7, operation(text))].into();
        Config { operations, ..Config::default() }.check().unwrap_err()
    };
    for (text, path, said) in [
        (r#"{"type": "icmp-jitter", "target": "2001:db8::2"}"#, "target", "ICMPv6 has no timestamps"),
        (r#"{"type": "icmp-echo", "target": "fe80::2"}"#, "target", "link-local"),
        (r#"{"type": "icmp-echo", "target": "2001:db8::2", "source": "fe80::1"}"#, "source", "link-local"),
        (r#"{"type": "icmp-echo", "target": "2001:db8::2", "source": "10.0.0.1"}"#, "source", "family of 2001:db8::2"),
    ] {
        let (found, message) = refused(text);
        assert_eq!(found, format!("operations.7.{path}"));
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn a_burst_is_ten_packets_and_its_round_trips_are_whole_milliseconds() {
    let report = run(JITTER, START + 2 * SECOND, |n| Some((u64::from(n) * MILLI, 3 * MILLI)));
    let found = report.latest.statistics;
    assert_eq!((found.sent, found.rtt.count, found.rtt.min, found.rtt.max), (10, 10, 3, 12));
    assert_eq!((found.jitter_sd.pairs, found.jitter_sd.positive.count, found.jitter_sd.positive.sum), (9, 9, 9));
    assert_eq!((found.jitter_ds.pairs, found.jitter_ds.positive.count, found.jitter_ds.negative.count), (9, 0, 0));
    assert_eq!((report.latest.return_code, report.latest.rtt_ms, report.successes), (ReturnCode::Ok, Some(7), 1));
    assert_eq!(report.samples.len(), 10);
    assert_eq!(report.samples[1].sent_ns - report.samples[0].sent_ns, 20 * MILLI);
    assert_eq!(found.one_way_sd.count, 0, "the clocks are not known to agree");
}

#[test]
fn a_reply_after_the_timeout_is_late_and_not_lost() {
    let within = run(JITTER, START + 2 * SECOND, |n| Some((if n == 3 { 1100 * MILLI } else { MILLI }, 0)));
    let losses = within.latest.statistics.losses;
    assert_eq!((losses.total, losses.late, losses.period_max, within.latest.statistics.rtt.count), (0, 1, 0, 9));
    // This one arrives when its run has already been counted.
    let after = run(JITTER, START + 2 * SECOND, |n| Some((if n == 9 { 1100 * MILLI } else { MILLI }, 0)));
    let losses = after.latest.statistics.losses;
    assert_eq!((losses.total, losses.late, losses.missing), (0, 1, 0));
    assert_eq!(after.hours[0].statistics, after.latest.statistics);
}

#[test]
fn loss_breaks_pairs_and_nothing_at_all_is_a_timeout() {
    let report = run(JITTER, START + 2 * SECOND, |n| (n != 4 && n != 5).then_some((MILLI, 0)));
    let found = report.latest.statistics;
    assert_eq!(
        (found.losses.total, found.losses.period_min, found.losses.period_max, found.jitter_sd.pairs),
        (2, 2, 2, 6)
    );
    let none = run(JITTER, START + 4 * SECOND, |_| None);
    assert_eq!((none.latest.return_code, none.failures, none.successes), (ReturnCode::Timeout, 2, 0));
}

#[test]
fn probe_reports_reordering_in_both_directions() {
    // Packet 3 is overtaken on the outward path, packet 6 on the return path.
    let report = run(JITTER, START + 2 * SECOND, |n| {
        Some(match n {
            3 => (45 * MILLI, MILLI),
            6 => (MILLI, 45 * MILLI),
            _ => (MILLI, MILLI),
        })
    });
    let losses = report.latest.statistics.losses;
    assert_eq!((losses.out_of_sequence_sd, losses.out_of_sequence_ds, losses.out_of_sequence_both), (1, 1, 0));
}

#[test]
fn a_run_that_is_due_before_the_last_has_ended_is_busy() {
    let text = JITTER.replace("\"schedule\"", "\"packets\": 200, \"schedule\"");
    let report = run(&text, START + 3 * SECOND, |_| Some((MILLI, 0)));
    assert_eq!((report.latest.return_code, report.failures, report.hours[0].busies), (ReturnCode::Busy, 1, 1));
}

#[test]
fn operation_ends_after_life_and_is_deleted_after_ageout() {
    let text = JITTER.replace("\"life_s\": null", "\"life_s\": 5, \"ageout_s\": 10");
    let mut prober = Prober::new(0);
    prober.configure(&config(&text), START);
    let mut sends = Vec::new();
    let mut bursts = 0;
    while let Some(at) = prober.deadline() {
        prober.poll(at, &mut sends);
        bursts += sends.drain(..).filter(|s| s.sequence.is_some()).count();
        if let Some(report) = prober.report(at, None, false).get(&7) {
            assert_eq!(report.state == State::Active, at < START + 5 * SECOND, "{at}");
        }
    }
    assert_eq!(bursts, 30);
    assert!(prober.is_empty());
    // Applying the same configuration again does not restart it.
    prober.configure(&config(&text), START + 20 * SECOND);
    assert!(prober.is_empty());
}

#[test]
fn without_schedule_nothing_runs() {
    let mut prober = Prober::new(0);
    let text = r#"{"type": "icmp-echo", "target": "172.16.1.130"}"#;
    prober.configure(&config(text), START);
    assert_eq!(prober.deadline(), None);
    assert_eq!(prober.report(START, None, false)[&7].state, State::Pending);
}

#[test]
fn jitter_keeps_two_hours() {
    let text = JITTER.replace("\"frequency_s\": 2", "\"frequency_s\": 600");
    let report = run(&text, START + 4 * 3600 * SECOND, |_| Some((MILLI, 0)));
    let starts: Vec<Nanos> = report.hours.iter().map(|h| (h.start_ns - START) / SECOND).collect();
    assert_eq!(starts, [7200, 10_800]);
    assert_eq!(report.hours[0].successes, 6);
}

/// Two routers with udp-jitter between them; `lost_there` and `lost_back` by packet.
fn udp(control: bool, listening: bool, lost_there: &[u16], lost_back: &[u16]) -> OperationReport {
    let text = format!(
        r#"{{"type": "udp-jitter", "target": "172.16.1.130", "target_port": 5000, "frequency_s": 2, "timeout_ms": 500,
            "control": {control}, "schedule": {{"life_s": null, "start": "now"}}}}"#
    );
    let (mut prober, mut responder) = (Prober::new(0), Responder::default());
    prober.configure(&config(&text), START);
    let (mut sends, us) = (Vec::new(), (IpAddr::V4(Ipv4Addr::new(172, 16, 1, 129)), 60_000));
    let mut first = None;
    while let Some(at) = prober.deadline().filter(|at| *at < START + 2 * SECOND) {
        prober.poll(at, &mut sends);
        for send in sends.drain(..) {
            let mut bytes = send.bytes;
            let Some(sequence) = send.sequence else {
                assert_eq!(send.target, (TARGET, CONTROL_PORT));
                if let Some(reply) = listening.then(|| responder.control(us, &bytes, at).ok()).flatten() {
                    prober.record_packet(Channel::Udp(7), (TARGET, CONTROL_PORT), &reply, at);
                }
                continue;
            };
            let place = sequence - *first.get_or_insert(sequence);
            assert_eq!(bytes.len(), 32);
            if !lost_there.contains(&place)
                && responder.answer(5000, us, &mut bytes, at + MILLI, at + 2 * MILLI)
                && !lost_back.contains(&place)
            {
                prober.record_packet(Channel::Udp(7), (TARGET, 5000), &bytes, at + 4 * MILLI);
            }
        }
    }
    prober.report(START + 2 * SECOND, None, false).remove(&7).expect("it is configured")
}

#[test]
fn the_responder_reports_the_direction_of_losses() {
    let report = udp(true, true, &[2, 3], &[5]);
    let losses = report.latest.statistics.losses;
    assert_eq!((losses.source_to_destination, losses.destination_to_source, losses.missing), (2, 1, 0));
    assert_eq!(
        (report.latest.statistics.rtt.min, report.latest.statistics.rtt.max),
        (3, 3),
        "its own time is left out"
    );
    let tail = udp(true, true, &[9], &[]).latest.statistics.losses;
    assert_eq!((tail.source_to_destination, tail.missing), (0, 1));
}

#[test]
fn without_a_responder_there_is_no_connection() {
    assert_eq!(udp(true, false, &[], &[]).latest.return_code, ReturnCode::NoConnection);
    assert_eq!(udp(false, false, &[], &[]).latest.return_code, ReturnCode::Timeout);
}

proptest! {
    #[test]
    fn every_packet_is_answered_late_or_lost(
        delays in prop::collection::vec(prop::option::of((0..1200u64, 0..1200u64)), 30),
    ) {
        let delay = |n: u32| delays[n as usize % delays.len()].map(|(there, back)| (there * MILLI, back * MILLI));
        let report = run(JITTER, START + 10 * SECOND, delay);
        let mut sums = (0, 0);
        for found in report.hours.iter().map(|h| h.statistics) {
            prop_assert_eq!(found.sent, found.rtt.count + found.losses.total + found.losses.late);
            prop_assert_eq!(found.losses.total,
                found.losses.source_to_destination + found.losses.destination_to_source + found.losses.missing);
            prop_assert!(found.rtt.count == 0 || found.rtt.min <= found.rtt.average()
                && found.rtt.average() <= found.rtt.max);
            prop_assert!(found.jitter_sd.positive.count + found.jitter_sd.negative.count <= found.jitter_sd.pairs);
            sums = (sums.0 + found.rtt.count, sums.1 + found.sent);
        }
        prop_assert_eq!(report.samples.len() as u64, sums.0);
        prop_assert!(report.samples.iter().all(|s| s.rtt_ms <= 1001));
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut prober = Prober::new(0);
        prober.configure(&config(JITTER), START);
        prober.poll(START, &mut Vec::new());
        prober.record_packet(Channel::Icmp, (TARGET, 0), &bytes, START);
        prober.record_packet(Channel::Icmp, (IpAddr::from([0; 16]), 0), &bytes, START);
        prober.record_packet(Channel::Udp(7), (TARGET, 5000), &bytes, START);
        let mut responder = Responder::default();
        prop_assert!(responder.control((TARGET, 1), &bytes, START).is_err());
        responder.configure(&[5000], &[]);
        responder.answer(5000, (TARGET, 1), &mut bytes.clone(), START, START);
    }
}
