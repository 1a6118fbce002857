//! Window under loss: documented response functions of congestion controls, without policer and queue.

use crate::common::{Net, Path, Script};
use crate::scene::sample_only;
use qos_core::time::{Rate, Time};
use qos_sim::tcp::{CongestionControl, Settings};

const SECOND: u64 = 1_000_000_000;
/// The tables are of a continuous curve with one loss at its top. Whole segments, the round trip of a recovery and fast
/// convergence are not in them; the largest differences seen are -16 % (Reno, 1/100) and +19 % (CUBIC, 1/1000, where
/// its two regions meet).
const TOLERANCE: f64 = 0.20;

/// Losses until the window repeats from loss to loss.
const WARM_UP: u64 = 30;

/// Mean window in segments over a path that is never the limit, of which every `period`-th segment is lost, in so many
/// losses after the first ones; `marked` segments are not lost.
fn mean_window(control: CongestionControl, rtt_ns: u64, period: u64, losses: u64, marked: bool) -> f64 {
    let big = 1 << 40;
    let settings = Settings {
        congestion_control: control,
        receive_buffer: big,
        initial_receive_window: big,
        send_buffer: big,
        ecn: marked,
        ..Settings::modern(1500)
    };
    let mut path = Path::new(100_000_000_000_000, rtt_ns / 2);
    path.lan = Rate(100_000_000_000_000);
    let mut net = Net::new(path, &settings, 1);
    let nth: Script = Box::new(move |segment, number| segment.len > 0 && number % period == 0);
    if marked {
        net.marks = Some(nth);
    } else {
        net.script = Some(nth);
    }
    let flow = net.flow(Time(0));
    net.run(Time(0));
    net.offer(flow, u64::MAX / 2);
    let until = |net: &mut Net, segments: u64| {
        while net.data_segments < segments {
            let now = net.now;
            net.run(now + qos_core::time::Duration(rtt_ns));
            assert!(net.now < Time(20_000 * SECOND), "too slow: {:?}", net.client(flow).statistics());
        }
        (net.now, net.received(flow))
    };
    let (start, before) = until(&mut net, WARM_UP * period);
    let (end, after) = until(&mut net, (WARM_UP + losses) * period);
    let segments = (after - before) as f64 / f64::from(settings.mss);
    let statistics = net.client(flow).statistics();
    assert_eq!(
        (statistics.retransmitted_segments == 0, statistics.ecn_reductions > 0),
        (marked, marked),
        "{statistics:?}"
    );
    segments * rtt_ns as f64 / end.since(start).0 as f64
}

/// RFC 9438 table 1 and 2 (RFC 5681's response by Mathis et al. for Reno): the mean window with one loss in 1/p
/// segments.
#[test]
fn periodic_loss_leaves_the_window_of_the_response_function() {
    let cases = [
        (CongestionControl::Reno, 100, 100, 12.0),
        (CongestionControl::Reno, 100, 1_000, 38.0),
        (CongestionControl::Reno, 100, 10_000, 120.0),
        (CongestionControl::Cubic, 100, 100, 12.0),
        (CongestionControl::Cubic, 100, 1_000, 38.0),
        (CongestionControl::Cubic, 100, 10_000, 187.0),
        (CongestionControl::Cubic, 10, 1_000, 38.0),
        (CongestionControl::Cubic, 10, 10_000, 120.0),
    ];
    check(&cases, false);
}

/// RFC 3168 section 5: the answer to a mark is the same as to a loss.
#[test]
fn periodic_marks_leave_the_same_window() {
    let cases = [
        (CongestionControl::Reno, 100, 100, 12.0),
        (CongestionControl::Reno, 100, 1_000, 38.0),
        (CongestionControl::Cubic, 100, 100, 12.0),
        (CongestionControl::Cubic, 100, 1_000, 38.0),
        (CongestionControl::Cubic, 10, 1_000, 38.0),
    ];
    check(&cases, true);
}

fn check(cases: &[(CongestionControl, u64, u64, f64)], marked: bool) {
    let mut wrong = Vec::new();
    // With 10,000 segments per loss, the short level only has the case in which CUBIC differs from Reno.
    let long = |expected: f64, period: u64| period == 10_000 && expected <= 120.0;
    for &(control, rtt_ms, period, expected) in cases {
        if sample_only() && long(expected, period) {
            continue;
        }
        let window = mean_window(control, rtt_ms * 1_000_000, period, 10, marked);
        if (window / expected - 1.0).abs() > TOLERANCE {
            wrong.push(format!("{control:?} {rtt_ms} ms 1/{period}: {window:.1}, expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
