//! Committed access rate: the extended burst, the order of lines, and marks.

use crate::common::build::*;
use crate::common::{self, departures, offer, SECOND};
use proptest::prelude::*;
use qos_core::meter::{AccessRate, Colour, TokenBuckets};
use qos_core::wire::Framing;
use qos_core::{Engine, Output, Time};

/// Cisco, "Policing and Shaping Overview", example of actual and compounded debt: a token each time unit, a normal
/// burst of 2 and an extended burst of 4 data units, of which 2 come each time unit: the one that the token pays for,
/// and one that borrows. The stream begins to borrow in time unit 3.
///
/// The table is remembered: the chapter could not be had again. Its rules were read again in the excerpt of Cisco Press
/// on enterprisenetworkingplanet.com ("Frame Relay Traffic Policing and Shaping", 11 February 2002, page 5): compounded
/// debt is the sum of the actual debts since the last drop and is compared with the extended burst, a drop forgives it
/// but not the actual debt, and with an actual debt above the extended limit all is dropped.
#[test]
fn debts_match_the_worked_example() {
    const UNIT: u32 = 1_000;
    let mut meter = AccessRate::new(8_000, 2 * u64::from(UNIT), 4 * u64::from(UNIT), Time(2 * SECOND));
    assert!(meter.conforms(Time(2 * SECOND), 2 * UNIT), "the normal burst is used up by time unit 2");
    let mut table = Vec::new();
    for unit in 3..=10 {
        assert!(meter.conforms(Time(unit * SECOND), UNIT), "the token of a time unit pays for one data unit");
        let sent = meter.conforms(Time(unit * SECOND), UNIT);
        let (actual, compounded) = meter.debts();
        table.push((unit, sent, actual / u64::from(UNIT), compounded / u64::from(UNIT)));
    }
    let expected = [
        (3, true, 1, 1),
        (4, true, 2, 3),
        (5, false, 2, 0),
        (6, true, 3, 3),
        (7, false, 3, 0),
        (8, true, 4, 4),
        (9, false, 4, 0),
        (10, false, 4, 0),
    ];
    assert_eq!(table, expected);
}

fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..2_000_000, 1 => 0u64..SECOND];
    prop::collection::vec((gap, 20u32..1600), 1..200)
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// Between any two packets, the conforming bytes are at most the rate times the time between them, plus both
    /// bursts.
    #[test]
    fn both_bursts_bound_every_interval(
        rate in 8_000u64..100_000_000,
        normal in 1_000u64..50_000,
        more in 0u64..100_000,
        packets in packets(),
    ) {
        let extended = normal + more;
        let mut meter = AccessRate::new(rate, normal, extended, Time(0));
        let mut passed = Vec::new();
        let mut at = 0;
        for (gap, bytes) in packets {
            at += gap;
            if meter.conforms(Time(at), bytes) {
                passed.push((at, bytes));
            }
            let (actual, compounded) = meter.debts();
            prop_assert!(actual <= extended && compounded <= extended);
        }
        let most = u128::from(normal + if more > 0 { extended } else { 0 }) * 8 * u128::from(SECOND);
        for first in 0..passed.len() {
            let mut bits = 0;
            for (at, bytes) in &passed[first..] {
                bits += u128::from(*bytes) * 8 * u128::from(SECOND);
                prop_assert!(bits <= most + u128::from(rate) * u128::from(at - passed[first].0));
            }
        }
    }

    /// Without an extended burst it is the bucket of a policer: every decision is the same.
    #[test]
    fn equal_bursts_are_a_token_bucket(
        rate in 8_000u64..100_000_000,
        normal in 1_000u64..50_000,
        packets in packets(),
    ) {
        let mut meter = AccessRate::new(rate, normal, normal, Time(0));
        let mut bucket = TokenBuckets::single_bucket(rate, normal, Time(0));
        let mut at = 0;
        for (gap, bytes) in packets {
            at += gap;
            prop_assert_eq!(meter.conforms(Time(at), bytes), bucket.colour(Time(at), bytes) == Colour::Conform);
        }
    }

    /// Borrowing only delays the loss: over a long time a stream above the rate gets the rate.
    #[test]
    fn a_steady_stream_gets_the_rate(rate_kbps in 64u64..2_000, times in 2u64..6) {
        let mut meter = AccessRate::new(rate_kbps * 1_000, 10_000, 20_000, Time(0));
        let gap = 8_000 * SECOND / (rate_kbps * 1_000 * times);
        let bits: u64 = (0..).map(|n| n * gap).take_while(|at| *at < 100 * SECOND)
            .map(|at| if meter.conforms(Time(at), 1_000) { 8_000 } else { 0 }).sum();
        let expected = 100 * rate_kbps * 1_000;
        prop_assert!(bits.abs_diff(expected) <= 8 * 30_000 + 8_000, "{bits} bits instead of {expected}");
    }
}

/// A burst of a window of TCP, 60 packets in 60 ms at 1 Mb/s: a bucket loses all that exceeds in a row, the extended
/// burst single packets first.
#[test]
fn a_burst_loses_single_packets_first() {
    let dropped = |normal, extended| {
        let mut meter = AccessRate::new(1_000_000, normal, extended, Time(0));
        let lost = (0..60u64).filter(|n| !meter.conforms(Time(n * SECOND / 1_000), 1_000));
        lost.collect::<Vec<_>>()
    };
    let plain = dropped(20_000, 20_000);
    assert_eq!(&plain[..5], [22, 23, 25, 26, 27], "the bucket is empty, and seven of eight packets are lost");
    let extended = dropped(20_000, 40_000);
    assert_eq!(extended, [31, 36, 40, 43, 46, 49, 52, 54, 56, 58], "the distances shrink while the debt grows");
    assert!(extended.len() < plain.len());
}

/// The configuration of an interface with these lines for what goes out.
fn with_lines(rate_limit_output: Vec<RateLimitConfig>) -> InterfaceConfig {
    InterfaceConfig { rate_limit_output, ..interface(10_000, None, None) }
}

fn limited_engine(lines: Vec<RateLimitConfig>) -> Engine<u64> {
    common::started(10_000_000, Framing::Ethernet, &common::configuration(Classic, Maps::new(), with_lines(lines)))
}

/// A line for all packets, which drops what exceeds.
fn line(rate_bps: u64) -> RateLimitConfig {
    RateLimitConfig::new(rate_bps, 4_000, 4_000)
}

fn write(field: SetField, value: u16, then: RateLimitOutcome) -> RateLimitAction {
    RateLimitAction { set: Some(SetAction { field, value }), then }
}

/// `continue` takes a packet to the next line that it matches, as it was marked; `transmit` past all of them.
#[test]
fn rate_limit_lines_apply_in_order() {
    use RateLimitOutcome::{Continue, Transmit};
    let first = RateLimitConfig {
        only: Some(access_group("low")),
        conform: write(SetField::Precedence, 5, Continue),
        exceed: write(SetField::Precedence, 1, Continue),
        ..line(400_000)
    };
    let second = RateLimitConfig {
        only: Some(precedence(&[5])),
        conform: write(SetField::Dscp, 46, Transmit),
        ..line(8_000_000)
    };
    let mut engine = limited_engine(vec![first, second, line(8_000_000)]);
    // Destination port 5000 is not in the list, 4999 is.
    let packet = |port| common::datagram(986, 0, 40_000, port, Framing::Ethernet);
    let mut outputs = offer(&mut engine, packet(4_999), SECOND / 100, Time(0), Time(2 * SECOND));
    outputs.extend(offer(&mut engine, packet(5_000), SECOND / 100, Time(2 * SECOND), Time(3 * SECOND)));
    let counters = common::out(&mut engine, Time(3 * SECOND));
    let found: Vec<_> =
        counters.rate_limit_output.iter().map(|line| (line.conformed.packets, line.exceeded.packets)).collect();
    // 800 kb/s against 400: every second packet, and the four of the burst.
    assert_eq!(found, [(103, 97), (103, 0), (197, 0)]);
    let marks = |dscp| {
        let leaves = |output: &&Output<u64>| matches!(output, Output::Departure(d) if d.descriptor.dscp == dscp);
        outputs.iter().filter(leaves).count()
    };
    assert_eq!((marks(46), marks(8), marks(0)), (103, 97, 100));
    assert_eq!(departures(&outputs).len(), 300);
}

/// Dropped packets count as output drops by a policer; clearing keeps the bucket.
#[test]
fn drops_are_counted_and_clearing_keeps_the_bucket() {
    let mut engine = limited_engine(vec![line(8_000)]);
    let packet = common::udp(986, 0, Framing::Ethernet);
    offer(&mut engine, packet, SECOND / 1_000, Time(0), Time(SECOND / 100));
    let out = |engine: &mut Engine<u64>, at| common::out(engine, at);
    let before = out(&mut engine, Time(SECOND));
    assert_eq!((before.output.drops, before.rate_limit_output[0].exceeded.packets), (6, 6));
    let line = before.rate_limit_output[0];
    assert_eq!((line.current_burst_bytes, line.last_packet_ns), (3_991, Some(991_000_000)));
    engine.clear(Time(SECOND), None);
    let after = out(&mut engine, Time(2 * SECOND)).rate_limit_output[0];
    assert_eq!((after.conformed.packets, after.current_burst_bytes, after.counting_ns), (0, 3_991, SECOND));
    engine.audit().unwrap();
}

/// A line that cannot be is refused with its place.
#[test]
fn impossible_lines_are_refused() {
    let refused = |line: RateLimitConfig| {
        let interface = InterfaceConfig { rate_limit_input: vec![line], ..interface(10_000, None, None) };
        let config = common::configuration(Hqf, Maps::new(), interface);
        common::engine::<u64>(10_000_000, Framing::Ethernet).configure(Time(0), &config).unwrap_err().path
    };
    let beyond = write(SetField::Dscp, 64, RateLimitOutcome::Drop);
    let cos = write(SetField::Cos, 1, RateLimitOutcome::Transmit);
    for (line, field) in [
        (line(7_999), "rate_bps"),
        (RateLimitConfig { normal_burst_bytes: 0, ..line(8_000) }, "normal_burst_bytes"),
        (RateLimitConfig { extended_burst_bytes: 0, ..line(8_000) }, "extended_burst_bytes"),
        (RateLimitConfig { exceed: beyond, ..line(8_000) }, "exceed.set.value"),
        (RateLimitConfig { conform: cos, ..line(8_000) }, "conform.set.field"),
        (RateLimitConfig { only: Some(access_group("x")), ..line(8_000) }, "match.name"),
    ] {
        assert_eq!(refused(line), format!("interfaces.Out.rate_limit_input[0].{field}"));
    }
}

/// The counters of what comes in restart when they are cleared, those of its lines, too.
#[test]
fn input_rate_limit_counters_are_cleared() {
    let interface = InterfaceConfig { rate_limit_input: vec![line(1_000_000)], ..interface(10_000, None, None) };
    let mut engine: Engine<u64> =
        common::started(10_000_000, Framing::Ethernet, &common::configuration(Hqf, Maps::new(), interface));
    let mut counted = |from: u64| {
        for number in 0..3 {
            let at = Time(from + number * SECOND / 100);
            engine.receive(at, common::PORT, common::udp(500, 0, Framing::Ethernet), 0);
            engine.poll(at, &mut Vec::new());
        }
        let end = Time(from + SECOND);
        let counters = common::out(&mut engine, end);
        engine.clear(end, None);
        let cleared = common::out(&mut engine, end);
        let packets = |counters: &qos_core::counters::InterfaceCounters| {
            (counters.input.packets, counters.rate_limit_input.iter().map(|line| line.conformed.packets).collect())
        };
        (packets(&counters), packets(&cleared))
    };
    for from in [0, 2 * SECOND] {
        let (before, after): ((u64, Vec<u64>), (u64, Vec<u64>)) = counted(from);
        assert_eq!((before, after), ((3, vec![3]), (0, vec![0])));
    }
}

/// Lines that stay go on with what they have counted and spent; others restart.
#[test]
fn unchanged_rate_limit_lines_keep_their_state() {
    let packet = common::udp(986, 0, Framing::Ethernet);
    let after = |rate: u64| {
        let mut engine = limited_engine(vec![line(8_000)]);
        offer(&mut engine, packet, 1, Time(0), Time(10));
        let mut config = engine.config().unwrap().clone();
        config.out().rate_limit_output = vec![line(rate)];
        config.out().load_interval_s = 60;
        engine.configure(Time(10), &config).unwrap();
        let counted = engine.counters(Time(10), None).interfaces["Out"].rate_limit_output[0];
        (counted.conformed.packets, counted.exceeded.packets > 0)
    };
    let (conformed, exceeded) = after(8_000);
    assert!(conformed > 0 && exceeded);
    assert_eq!(after(16_000), (0, false));
}
