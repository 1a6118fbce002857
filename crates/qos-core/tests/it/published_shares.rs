//! Published results with exact arithmetic, without TCP: shares of classes that all offer more than their share.

use crate::common::build::*;
use crate::common::{self, bytes_by_source, class, load, with_policies, with_policy, Source, SECOND};
use qos_core::counters::ClassCounters;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Output, RouterConfig, Time};

const SECONDS: u64 = 30;

fn outcome(config: &RouterConfig, sources: &[Source]) -> (Vec<u64>, Engine<usize>, Vec<Output<usize>>) {
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, config);
    let outputs = load(&mut engine, Ppp, sources, Time(SECONDS * SECOND));
    engine.audit().unwrap();
    (bytes_by_source(&outputs, sources.len()), engine, outputs)
}

/// Counted bits a second of each share when shares are exact and every packet takes 3 bytes more on the line than are
/// counted.
fn expected(shares: &[f64], lengths: &[usize]) -> Vec<f64> {
    let line: f64 =
        shares.iter().zip(lengths).map(|(share, ip_len)| share * (*ip_len as f64 + 7.0) / (*ip_len as f64 + 4.0)).sum();
    shares.iter().map(|share| share / line * 2e6).collect()
}

fn assert_shares(bytes: &[u64], shares: &[f64], lengths: &[usize]) -> Vec<f64> {
    let rates: Vec<_> = bytes.iter().map(|bytes| *bytes as f64 * 8.0 / SECONDS as f64).collect();
    for (rate, expected) in rates.iter().zip(expected(shares, lengths)) {
        // Two packets, and those that went straight to the ring at the start.
        assert!((rate - expected).abs() < 5.0 * 1_504.0 * 8.0 / SECONDS as f64, "{rates:?}, {expected} expected");
    }
    rates
}

/// 20 %, 30 % and class-default on 2 Mb/s PPP. Published, as counted: 394, 594 and 990 kb/s.
#[test]
fn classes_of_20_and_30_percent_get_published_shares() {
    let lengths = [256, 1210, 256];
    let config = with_policy(
        Hqf,
        2_000,
        vec![class_of("c1").percent(20), class_of("c2").percent(30), class_default().fair_queue()],
    );
    let sources: Vec<_> =
        lengths.iter().zip(0..).map(|(len, n)| Source::new(*len, n, u16::from(n), 2_500_000)).collect();
    // c1 has the long packets, like TCP.
    let sources = vec![sources[0], Source { ip_len: 1210, ..sources[1] }, Source { ip_len: 256, ..sources[2] }];
    let (bytes, ..) = outcome(&config, &sources);
    let rates = assert_shares(&bytes, &[0.5, 0.2, 0.3], &[256, 1210, 256]);
    for (rate, published) in rates.iter().zip([990e3, 394e3, 594e3]) {
        assert!((rate / published - 1.0).abs() < 0.03, "{rates:?}");
    }
}

/// A child of 70 % and a rest inside a class of 30 %: 420 and 180 of 600 kb/s. Published: 401 kb/s of TCP goodput,
/// 0.9638 of what is counted.
#[test]
fn child_of_70_percent_in_30_gets_published_share() {
    let maps = maps([
        ("Inner", vec![class_of("c1").percent(70).fair_queue(), class_default().fair_queue()]),
        ("P", vec![class_of("parent").percent(30).service_policy("Inner"), class_of("c3").percent(20)]),
    ]);
    let config = with_policies(Hqf, 2_000, maps).class_map("parent", match_all(vec![dscp(&[1, 2])]));
    let lengths = [256, 1300, 256, 256];
    let sources: Vec<_> =
        lengths.iter().zip(0..).map(|(len, n)| Source::new(*len, n, u16::from(n), 2_500_000)).collect();
    let (bytes, mut engine, _) = outcome(&config, &sources);
    let rates = assert_shares(&bytes, &[0.5, 0.3 * 0.7, 0.3 * 0.3, 0.2], &lengths);
    assert!((rates[1] * 0.9638 / 401e3 - 1.0).abs() < 0.03, "{rates:?}");
    // A parent's values include those of its children.
    let parent = class(&mut engine, Time(SECONDS * SECOND), 0);
    let children = &parent.child.as_ref().unwrap().classes;
    let sum = |value: fn(&ClassCounters) -> u64| children.iter().map(value).sum::<u64>();
    assert_eq!((parent.packets, parent.bytes), (sum(|class| class.packets), sum(|class| class.bytes)));
    assert_eq!(parent.drops.flow.packets, sum(|class| class.drops.flow.packets));
    assert_eq!(parent.queue.as_ref().unwrap().depth_packets, sum(|class| class.queue.as_ref().unwrap().depth_packets));
    assert_eq!(parent.queue.unwrap().output.bytes, sum(|class| class.queue.as_ref().unwrap().output.bytes));
}

/// Three classes, the same on all: 397, 598 and 997 kb/s were published for packets of 1304 counted bytes.
#[test]
fn classes_with_equal_packets_get_published_shares() {
    let config = with_policy(Hqf, 2_000, vec![class_of("c1").percent(20), class_of("c2").percent(30)]);
    let sources: Vec<_> = (0..3).map(|n| Source::new(1300, n, u16::from(n), 2_500_000)).collect();
    let (bytes, ..) = outcome(&config, &sources);
    let rates = assert_shares(&bytes, &[0.5, 0.2, 0.3], &[1300; 3]);
    for (rate, published) in rates.iter().zip([997e3, 397e3, 598e3]) {
        assert!((rate / published - 1.0).abs() < 0.01, "{rates:?}");
    }
}

/// Precedence 5 against 0 in class-default: 6 to 1 in the classic generation (published: 1.64 Mb/s of goodput), equal
/// in the later one (956 kb/s).
#[test]
fn precedence_5_and_0_share_as_published() {
    for (generation, part, published) in [(Classic, 6.0 / 7.0, 1.64e6), (Hqf, 0.5, 956e3)] {
        let config = with_policy(generation, 2_000, vec![class_default().fair_queue()]);
        let sources = [Source::new(1300, 40, 0, 2_500_000), Source::new(1300, 0, 1, 2_500_000)];
        let (bytes, ..) = outcome(&config, &sources);
        let rates = assert_shares(&bytes, &[part, 1.0 - part], &[1300; 2]);
        assert!((rates[0] * 0.9638 / published - 1.0).abs() < 0.05, "{rates:?}");
    }
}

/// `fair-queue` in a class: a flow may hold 16 packets, all together more than the queue limit of 64 (published: 111
/// waiting, none dropped).
#[test]
fn flows_of_a_class_are_limited_one_by_one() {
    let config = with_policy(Hqf, 2_000, vec![class_of("c1").percent(30).fair_queues(4096)]);
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &config);
    let fill = |engine: &mut Engine<usize>, each: usize| {
        for _ in 0..each {
            for flow in 0..10 {
                engine.transmit(Time(0), common::PORT, Source::new(1300, 1, flow, 1).descriptor(Ppp), 0);
            }
        }
        let class = class(engine, Time(0), 0);
        (class.queue.unwrap().depth_packets, class.drops.tail.packets, class.drops.flow.packets)
    };
    // One on the wire, two in the ring.
    assert_eq!(fill(&mut engine, 11), (107, 0, 0));
    assert_eq!(fill(&mut engine, 9), (160, 0, 200 - 163));
}

/// One flow with small packets and one with long ones get half of a class each, and ten and a flood an eleventh each.
#[test]
fn flows_of_a_class_get_equal_bytes() {
    for flows in [2usize, 11] {
        let config =
            with_policy(Hqf, 2_000, vec![class_of("c1").percent(30).fair_queues(4096), class_of("c2").percent(20)]);
        let lengths: Vec<_> = (0..flows).map(|n| if n == 0 { 256 } else { 1300 }).chain([256, 256]).collect();
        let sources: Vec<_> = lengths
            .iter()
            .enumerate()
            .map(|(n, len)| {
                Source::new(
                    *len,
                    if n < flows { 1 } else { 2 * (n - flows) as u8 },
                    n as u16,
                    2_500_000 / if n < flows { 4 } else { 1 },
                )
            })
            .collect();
        let (bytes, ..) = outcome(&config, &sources);
        let shares: Vec<_> = (0..flows).map(|_| 0.3 / flows as f64).chain([0.5, 0.2]).collect();
        assert_shares(&bytes, &shares, &lengths);
    }
}
