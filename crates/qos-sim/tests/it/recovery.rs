//! Probes, timeouts and spurious losses, compared with documents: each test is one situation with calculated values.

use crate::common::peer::{segments, Peer, MS};
use qos_sim::tcp::{CongestionControl, Settings};

const WINDOW: u64 = 320 << 7;

fn settings() -> Settings {
    Settings { timestamps: false, mss: 1000, congestion_control: CongestionControl::Reno, ..Settings::modern(1500) }
}

/// A connection with a round trip of 100 ms that has sent ten segments.
fn ten_segments_outstanding(settings: &Settings, sack: bool) -> Peer {
    // The other end includes the bytes of the timestamps in its segment size.
    let mut peer = Peer::open(settings, if settings.timestamps { 1012 } else { 1000 }, sack, WINDOW, 100);
    peer.write(10_000);
    assert_eq!(peer.sent(), segments(1, 10_001, 1000));
    peer
}

fn elapsed_times(peer: &mut Peer, start: u64) -> Vec<(u64, u64)> {
    peer.sent_when().iter().map(|(at, first, _)| ((at.0 - start) / MS, *first)).collect()
}

#[test]
fn the_tail_is_probed_after_two_round_trips() {
    // RFC 8985 section 7.2: 2 × 100 ms, and 2 ms; the round trip is that of the handshake.
    let mut peer = ten_segments_outstanding(&settings(), true);
    let start = peer.now.0;
    peer.wait(250 * MS);
    assert_eq!(elapsed_times(&mut peer, start), [(202, 9001)]);
    assert_eq!((peer.statistics().probes, peer.cwnd()), (1, 10));
}

#[test]
fn tail_loss_probe_sends_new_data_if_available() {
    let mut peer = Peer::open(&settings(), 1000, true, WINDOW, 100);
    peer.write(15_000);
    peer.sent();
    let start = peer.now.0;
    peer.wait(250 * MS);
    assert_eq!(elapsed_times(&mut peer, start), [(202, 10_001)]);
    assert_eq!(peer.statistics().retransmitted_segments, 0);
}

#[test]
fn tail_loss_probe_reduces_the_window_only_if_it_repaired_a_loss() {
    for duplicate in [false, true] {
        let mut peer = ten_segments_outstanding(&settings(), true);
        peer.ack_after(100 * MS, 9001, &[]);
        peer.wait(350 * MS);
        assert_eq!(peer.sent(), [(9001, 10_001)]);
        peer.ack(10_001, if duplicate { &[(9001, 10_001)] } else { &[] });
        peer.write(3000);
        let before = peer.cwnd();
        peer.ack_after(100 * MS, 13_001, &[]);
        let statistics = peer.statistics();
        if duplicate {
            assert_eq!((statistics.cwnd >= before, statistics.ssthresh), (true, None));
        } else {
            assert_eq!(statistics.ssthresh, Some(before / 2));
        }
        assert_eq!((statistics.timeouts, statistics.fast_recoveries), (0, 0));
    }
}

#[test]
fn retransmission_timeout_doubles() {
    let settings = Settings { tail_loss_probe: false, ..settings() };
    let mut peer = ten_segments_outstanding(&settings, true);
    let start = peer.now.0;
    peer.wait(5_000 * MS);
    // 100 ms and 200 ms of variance, then twice, four times, eight times as long.
    assert_eq!(elapsed_times(&mut peer, start), [(300, 1), (900, 1), (2100, 1), (4500, 1)]);
    assert_eq!((peer.statistics().timeouts, peer.cwnd(), peer.statistics().ssthresh), (4, 1, Some(5)));
}

#[test]
fn minimum_timeout_follows_the_sum_in_rfc_6298() {
    let settings =
        Settings { tail_loss_probe: false, rto_floor_on_variance: false, min_rto_ns: 1_000 * MS, ..settings() };
    let mut peer = ten_segments_outstanding(&settings, true);
    let start = peer.now.0;
    peer.wait(1_500 * MS);
    assert_eq!(elapsed_times(&mut peer, start), [(1000, 1)]);
}

#[test]
fn a_spurious_timeout_is_detected_by_an_original_segment() {
    // RFC 5682: after the first acknowledgement new data is sent; the second acknowledges data that was never
    // retransmitted.
    let settings = Settings { tail_loss_probe: false, ..settings() };
    let mut peer = Peer::open(&settings, 1000, true, WINDOW, 100);
    peer.write(20_000);
    peer.sent();
    peer.wait(310 * MS);
    assert_eq!(peer.sent(), [(1, 1001)]);
    peer.ack(1001, &[]);
    assert_eq!(peer.sent(), segments(10_001, 12_001, 1000));
    peer.ack(2001, &[]);
    let statistics = peer.statistics();
    assert_eq!((statistics.timeouts, statistics.undone, statistics.ssthresh), (1, 1, None));
    assert!(statistics.cwnd >= 10);
}

#[test]
fn a_real_timeout_is_followed_by_slow_start_of_retransmissions() {
    let settings = Settings { tail_loss_probe: false, ..settings() };
    let mut peer = ten_segments_outstanding(&settings, true);
    peer.wait(310 * MS);
    assert_eq!(peer.sent(), [(1, 1001)]);
    for (ack, sent) in
        [(1001, segments(1001, 3001, 1000)), (2001, segments(3001, 5001, 1000)), (3001, segments(5001, 7001, 1000))]
    {
        peer.ack_after(50 * MS, ack, &[]);
        assert_eq!(peer.sent(), sent);
    }
    assert_eq!((peer.statistics().undone, peer.statistics().ssthresh), (0, Some(5)));
}

#[test]
fn reported_duplicates_undo_a_recovery() {
    let mut peer = ten_segments_outstanding(&settings(), true);
    peer.wait(100 * MS);
    for end in [2001, 3001, 4001] {
        peer.ack(1, &[(1001, end)]);
    }
    assert_eq!(peer.sent(), [(1, 1001)]);
    assert_eq!(peer.statistics().ssthresh, Some(5));
    // It was only late: the original is acknowledged, and the retransmission is then reported as a duplicate.
    peer.ack_after(10 * MS, 4001, &[]);
    peer.ack_after(90 * MS, 4001, &[(1, 1001)]);
    let statistics = peer.statistics();
    assert_eq!((statistics.undone, statistics.ssthresh), (1, None));
    assert!(statistics.cwnd >= 10);
}

#[test]
fn an_old_echo_undoes_a_recovery() {
    // RFC 3522: the acknowledgement echoes the original's time.
    let settings = Settings { timestamps: true, ..settings() };
    let mut peer = ten_segments_outstanding(&settings, true);
    peer.echo = peer.now.0;
    peer.wait(100 * MS);
    for end in [2001, 3001, 4001] {
        peer.ack(1, &[(1001, end)]);
    }
    assert_eq!(peer.sent(), [(1, 1001)]);
    peer.ack_after(10 * MS, 10_001, &[]);
    let statistics = peer.statistics();
    assert_eq!((statistics.undone, statistics.ssthresh), (1, None));
}

#[test]
fn without_sack_a_partial_acknowledgement_retransmits_the_next_hole() {
    // RFC 6582. Segments 1 and 5 are lost.
    let mut peer = ten_segments_outstanding(&settings(), false);
    peer.wait(100 * MS);
    for _ in 0..3 {
        peer.ack(1, &[]);
    }
    assert_eq!(peer.sent(), [(1, 1001)]);
    for _ in 0..5 {
        peer.ack(1, &[]);
    }
    assert_eq!(peer.sent(), []);
    peer.ack_after(100 * MS, 4001, &[]);
    assert_eq!(peer.sent(), [(4001, 5001)]);
    peer.ack_after(100 * MS, 10_001, &[]);
    let statistics = peer.statistics();
    assert_eq!((statistics.retransmitted_segments, statistics.fast_recoveries, statistics.timeouts), (2, 1, 0));
    // RFC 6582: the phase continues until something above is acknowledged; then the window is the threshold.
    peer.write(10_000);
    peer.ack_after(100 * MS, 11_001, &[]);
    assert_eq!(peer.statistics().ssthresh, Some(5));
    assert_eq!(peer.cwnd(), 5);
}

#[test]
fn loss_is_detected_by_three_later_segments_or_by_time() {
    // Segments 1 and 9 are lost; 2 to 4 are SACKed, then 10. RFC 6675 requires three above 9.
    for rack in [false, true] {
        let settings = Settings { rack, tail_loss_probe: false, ..settings() };
        let mut peer = ten_segments_outstanding(&settings, true);
        peer.wait(100 * MS);
        for end in [2001, 3001, 4001] {
            peer.ack(1, &[(1001, end)]);
        }
        peer.ack_after(10 * MS, 1, &[(9001, 10_001), (1001, 8001)]);
        peer.ack_after(90 * MS, 8001, &[(9001, 10_001)]);
        let sent = peer.sent();
        assert_eq!(sent.contains(&(8001, 9001)), rack, "{sent:?}");
    }
}

#[test]
fn a_closed_window_is_probed_with_doubling_waits() {
    let mut peer = ten_segments_outstanding(&settings(), true);
    peer.window = 0;
    peer.write(5000);
    peer.ack_after(100 * MS, 10_001, &[]);
    let start = peer.now.0;
    let timeout = peer.statistics().rto_ns;
    peer.bare.clear();
    peer.wait(3_000 * MS);
    assert_eq!(peer.sent(), [], "data into a closed window");
    let probes: Vec<u64> = peer.bare.iter().map(|at| (at.0 - start) / timeout).collect();
    assert_eq!(probes, [1, 3, 7]);
    peer.window = 2500;
    peer.ack(10_001, &[]);
    assert_eq!(peer.sent(), segments(10_001, 12_001, 1000));
    peer.window = WINDOW;
    peer.ack_after(100 * MS, 12_001, &[]);
    assert_eq!(peer.sent(), segments(12_001, 15_001, 1000));
}
