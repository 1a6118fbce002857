//! Windows and retransmissions that Linux is known to have in situations that are written down to the millisecond.
//!
//! The values are facts about Linux's TCP, as packetdrill's scripts for it state them (`docs/internals/simulator.md`
//! names them); each test tells the situation in its own way.

use crate::common::peer::{segments, Peer, MS};
use qos_sim::tcp::{CongestionControl, Settings, State};

const WINDOW: u64 = 320 << 7;

/// Linux's defaults (CUBIC) without timestamps and with segments of 1000 bytes, as the scripts have them.
fn settings() -> Settings {
    Settings { timestamps: false, mss: 1000, ..Settings::modern(1500) }
}

fn open(rtt_ms: u64) -> Peer {
    Peer::open(&settings(), 1000, true, WINDOW, rtt_ms)
}

#[test]
fn slow_start_sends_two_segments_per_acknowledged_segment() {
    let mut peer = open(100);
    peer.write(1_000_000);
    assert_eq!(peer.sent(), segments(1, 10_001, 1000));
    for i in 1..=5 {
        peer.ack_after(if i == 1 { 105 * MS } else { 5 * MS }, 1 + 2000 * i, &[]);
        assert_eq!(peer.sent().len(), 4);
    }
    assert_eq!(peer.cwnd(), 20);
}

#[test]
fn an_application_limited_window_grows_to_twice_its_use() {
    for (bytes, expected) in [(10_000, [12, 14, 16, 18, 20]), (9_000, [12, 14, 16, 18, 18])] {
        let mut peer = open(100);
        peer.write(bytes);
        for (i, cwnd) in expected.into_iter().enumerate() {
            let ack = 1 + (2000 * (i as u64 + 1)).min(bytes);
            peer.ack_after(if i == 0 { 105 * MS } else { 5 * MS }, ack, &[]);
            assert_eq!(peer.cwnd(), cwnd, "after {ack}");
        }
    }
}

#[test]
fn the_window_restarts_after_idle() {
    let mut peer = Peer::open(&settings(), 1000, true, 511 << 7, 100);
    peer.write(26_000);
    peer.ack_after(100 * MS, 10_001, &[]);
    assert_eq!(peer.cwnd(), 20);
    peer.ack_after(100 * MS, 26_001, &[]);
    assert_eq!(peer.cwnd(), 36);
    peer.wait(2_000 * MS);
    peer.sent();
    peer.write(20_000);
    assert_eq!(peer.cwnd(), 10);
    assert_eq!(peer.sent(), segments(26_001, 36_001, 1000));
}

#[test]
fn duplicate_acknowledgements_release_new_segments() {
    let mut peer = open(100);
    peer.write(15_000);
    peer.sent();
    peer.ack_after(110 * MS, 1, &[(1001, 2001)]);
    assert_eq!(peer.sent(), [(10_001, 11_001)]);
    peer.ack_after(10 * MS, 1, &[(1001, 3001)]);
    assert_eq!(peer.sent(), [(11_001, 12_001)]);
    // It was reordering.
    peer.ack_after(10 * MS, 3001, &[]);
    assert_eq!(peer.sent(), segments(12_001, 14_001, 1000));
    peer.ack_after(20 * MS, 5001, &[]);
    assert_eq!(peer.sent(), [(14_001, 15_001)]);
    for ack in [7001, 9001, 11_001, 13_001, 15_001] {
        peer.ack_after(20 * MS, ack, &[]);
    }
    peer.wait(170 * MS);
    peer.close();
    assert_eq!(peer.sent(), [(15_001, 15_002)]);
    peer.ack_after(100 * MS, 15_002, &[]);
    assert_eq!(peer.connection.state(), State::Closed);
    assert_eq!(peer.statistics().retransmitted_segments, 0);
}

#[test]
fn third_duplicate_acknowledgement_retransmits() {
    for sack in [true, false] {
        let settings = Settings { mss: 1460, ..settings() };
        let mut peer = Peer::open(&settings, 1460, sack, 257 << 7, 100);
        peer.write(5840);
        assert_eq!(peer.sent(), segments(1, 5841, 1460));
        peer.wait(100 * MS);
        for end in [2921, 4381] {
            peer.ack(1, &[(1461, end)][..usize::from(sack)]);
            assert_eq!(peer.sent(), []);
        }
        peer.ack(1, &[(1461, 5841)][..usize::from(sack)]);
        assert_eq!(peer.sent(), [(1, 1461)]);
        peer.ack_after(100 * MS, 5841, &[]);
        peer.wait(100 * MS);
        peer.close();
        assert_eq!(peer.sent(), [(5841, 5842)]);
    }
}

#[test]
fn recovery_sends_one_segment_per_delivered_segment() {
    let mut peer = open(100);
    peer.write(10_000);
    peer.sent();
    peer.ack_after(110 * MS, 1, &[(1001, 2001)]);
    peer.ack_after(10 * MS, 1, &[(1001, 3001)]);
    assert_eq!(peer.sent(), []);
    peer.ack_after(10 * MS, 1, &[(1001, 4001)]);
    assert_eq!(peer.sent(), [(1, 1001)]);
    assert_eq!((peer.cwnd(), peer.statistics().ssthresh), (7, Some(7)));
    assert_eq!(peer.statistics().fast_recoveries, 1);
    peer.wait(20 * MS);
    peer.write(7000);
    assert_eq!(peer.sent(), []);
    for i in 0..6 {
        peer.ack_after(10 * MS, 1, &[(1001, 5001 + 1000 * i)]);
        assert_eq!(peer.sent(), [(10_001 + 1000 * i, 11_001 + 1000 * i)]);
    }
    peer.ack_after(20 * MS, 10_001, &[]);
    assert_eq!(peer.sent(), [(16_001, 17_001)]);
    assert_eq!((peer.cwnd(), peer.statistics().ssthresh), (7, Some(7)));
}

#[test]
fn recovery_retransmits_every_hole_as_segments_are_delivered() {
    let mut peer = open(10);
    peer.write(10_000);
    peer.sent();
    peer.ack_after(10 * MS, 1, &[(4001, 5001)]);
    peer.ack_after(2 * MS, 1, &[(4001, 6001)]);
    assert_eq!(peer.sent(), []);
    for i in 0..4 {
        peer.ack(1, &[(4001, 7001 + 1000 * i)]);
        assert_eq!(peer.sent(), [(1 + 1000 * i, 1001 + 1000 * i)]);
    }
    peer.wait(10 * MS);
    for ack in [1001, 2001, 3001] {
        peer.ack(ack, &[(4001, 10_001)]);
    }
    peer.ack(10_001, &[]);
    assert_eq!(peer.sent(), []);
    peer.wait(10 * MS);
    peer.write(10_000);
    assert_eq!(peer.sent(), segments(10_001, 17_001, 1000));
}

#[test]
fn lost_retransmission_is_detected_and_resent() {
    let mut peer = open(10);
    peer.write(20_000);
    peer.sent();
    // Segments 1 to 4 are lost.
    let steps: [(u64, &[(u64, u64)]); 8] = [
        (5001, &[(10_001, 11_001)]),
        (6001, &[(11_001, 12_001)]),
        (7001, &[(1, 1001)]),
        (8001, &[(1001, 2001)]),
        (9001, &[(2001, 3001)]),
        (10_001, &[(3001, 4001)]),
        // In proportion, and at most as much as was delivered.
        (11_001, &[(12_001, 13_001)]),
        (12_001, &[(13_001, 14_001)]),
    ];
    for (i, (end, sent)) in steps.into_iter().enumerate() {
        peer.ack_after(if i == 0 { 10 * MS } else { 2 * MS }, 1, &[(4001, end)]);
        assert_eq!(peer.sent(), sent, "after SACK to {end}");
    }
    // An acknowledgement that advances without a new loss: one more.
    peer.ack_after(10 * MS, 1001, &[(4001, 12_001)]);
    assert_eq!(peer.sent(), segments(14_001, 16_001, 1000));
    // The retransmissions of segments 3 and 4 are delivered, that of 2 is not.
    peer.ack_after(2 * MS, 1001, &[(2001, 12_001)]);
    assert_eq!(peer.sent(), [(1001, 2001), (16_001, 17_001)]);
    peer.ack_after(2 * MS, 1001, &[(2001, 13_001)]);
    assert_eq!(peer.sent(), [(17_001, 18_001)]);
    peer.ack_after(2 * MS, 1001, &[(2001, 14_001)]);
    assert_eq!(peer.sent(), [(18_001, 19_001)]);
    assert_eq!(peer.statistics().timeouts, 0);
}

#[test]
fn a_late_acknowledgement_counts_for_its_sacks() {
    let mut peer = Peer::open(&settings(), 1000, true, 320 << 8, 10);
    peer.write(10_000);
    peer.sent();
    // Segments 1, 5 and 8 are lost.
    peer.ack_after(10 * MS, 1, &[(1001, 2001)]);
    peer.ack(1, &[(1001, 3001)]);
    peer.ack(1, &[(1001, 3001), (8001, 9001)]);
    assert_eq!(peer.sent(), [(1, 1001)]);
    peer.ack_after(12 * MS, 4001, &[(8001, 9001)]);
    assert_eq!(peer.sent(), segments(4001, 7001, 1000));
    peer.write(10_000);
    assert_eq!(peer.sent(), []);
    peer.ack_after(2 * MS, 3001, &[(5001, 7001)]);
    assert_eq!(peer.sent(), [(7001, 8001), (10_001, 11_001)]);
}

#[test]
fn hystart_ends_slow_start_at_the_ninth_long_round_trip() {
    let mut peer = Peer::open(&settings(), 1000, true, 257 << 7, 200);
    peer.write(30_000);
    peer.ack_after(200 * MS, 10_001, &[]);
    assert_eq!(peer.cwnd(), 20);
    for i in 0..8 {
        peer.ack_after(if i == 0 { 240 * MS } else { MS }, 12_001 + 2000 * i, &[]);
        assert_eq!((peer.cwnd(), peer.statistics().ssthresh), (22 + 2 * i as u32, None));
    }
    peer.ack_after(MS, 28_001, &[]);
    assert_eq!((peer.cwnd(), peer.statistics().ssthresh), (36, Some(36)));
    peer.ack_after(MS, 30_001, &[]);
    assert_eq!(peer.cwnd(), 36);
}

#[test]
fn cubic_grows_by_at_most_one_segment_for_two_after_hystart() {
    let settings = Settings { tail_loss_probe: false, hystart_late_rounds: true, ..settings() };
    let mut peer = Peer::open(&settings, 1000, true, 514 << 10, 100);
    peer.write(400_000);
    let mut acked = 0;
    let mut to = |peer: &mut Peer, bytes: u64| {
        while acked < bytes {
            acked += 2000;
            peer.ack_after(100 * MS, 1 + acked, &[]);
        }
        peer.cwnd()
    };
    assert_eq!([10_000, 20_000, 30_000].map(|bytes| to(&mut peer, bytes)), [20, 30, 40]);
    assert_eq!(to(&mut peer, 38_000), 48);
    assert_eq!([60_000, 80_000, 100_000, 120_000].map(|bytes| to(&mut peer, bytes)), [49, 50, 52, 58]);
    for i in 1..=10 {
        assert_eq!(to(&mut peer, 120_000 + 2000 * i), 58 + i as u32);
    }
    for i in 1..=13 {
        assert_eq!(to(&mut peer, 140_000 + 20_000 * i), 68 + 10 * i as u32);
    }
}

#[test]
fn cubic_gains_nothing_from_being_idle() {
    let settings =
        Settings { tail_loss_probe: false, hystart_late_rounds: true, slow_start_after_idle: false, ..settings() };
    let mut peer = Peer::open(&settings, 1000, true, 514 << 10, 100);
    peer.write(40_000);
    for i in 1..=20 {
        peer.ack_after(100 * MS, 1 + 2000 * i, &[]);
    }
    assert_eq!(peer.cwnd(), 48);
    peer.wait(4_000 * MS);
    peer.write(160_000);
    // The script's sender is paced and not limited by its window when the first acknowledgement comes, which counts for
    // nothing then; so the script has 48 at first. Here all 48 segments leave at once.
    for (from, cwnd) in [(40_000, 49), (60_000, 50), (80_000, 52), (100_000, 58)] {
        for i in 1..=10 {
            peer.ack_after(100 * MS, 1 + from + 2000 * i, &[]);
        }
        assert_eq!(peer.cwnd(), cwnd, "after {from} and 20000 more");
    }
}

#[test]
fn a_timeout_is_followed_by_slow_start_to_the_threshold() {
    let mut peer = Peer::open(&settings(), 1000, true, 257 << 7, 100);
    peer.write(1000);
    peer.ack_after(100 * MS, 1001, &[]);
    assert_eq!(peer.cwnd(), 10);
    peer.sent();
    let start = peer.now;
    peer.write(1000);
    peer.wait(700 * MS);
    // The probe, at the time of the timeout; then the timeout, three round trips later.
    let times: Vec<u64> = peer.sent_when().iter().map(|(at, ..)| at.since(start).0 / MS).collect();
    assert_eq!(times, [0, 300, 600]);
    peer.ack(2001, &[]);
    assert_eq!((peer.cwnd(), peer.statistics().ssthresh), (2, Some(7)));
    peer.write(200_000);
    assert_eq!(peer.sent(), segments(2001, 4001, 1000));
    let mut ack = 2001;
    let mut next = |peer: &mut Peer, ms: u64| {
        ack += 1000;
        peer.ack_after(ms * MS, ack, &[]);
        (peer.cwnd(), peer.sent().len())
    };
    for (i, ms) in [100, 2, 98, 2, 2].into_iter().enumerate() {
        assert_eq!(next(&mut peer, ms), (3 + i as u32, 2));
    }
    for ms in [2, 98, 2, 2, 2, 2, 2, 2, 98, 3, 2, 2, 2, 2, 2] {
        assert_eq!(next(&mut peer, ms), (7, 1));
    }
    assert_eq!(next(&mut peer, 98), (8, 2));
}

#[test]
fn reno_halves_and_grows_by_one_a_window() {
    let settings = Settings { congestion_control: CongestionControl::Reno, ..settings() };
    let mut peer = Peer::open(&settings, 1000, true, 514 << 10, 100);
    peer.write(10_000);
    peer.wait(100 * MS);
    for end in [2001, 3001, 4001, 10_001] {
        peer.ack(1, &[(1001, end)]);
    }
    assert_eq!(peer.statistics().ssthresh, Some(5));
    peer.ack_after(100 * MS, 10_001, &[]);
    assert_eq!(peer.cwnd(), 5);
    peer.write(1_000_000);
    let mut windows = Vec::new();
    for i in 1..=17 {
        peer.ack_after(20 * MS, 10_001 + 1000 * i, &[]);
        windows.push(peer.cwnd());
    }
    // The acknowledgement that ended the recovery counts for the first.
    assert_eq!(windows, [5, 5, 5, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 8]);
}

#[test]
fn hystart_counts_rounds_from_the_first_segment() {
    // Like Linux since 6.14: the second round begins with the eleventh segment; its ninth round trip ends slow start.
    let settings = Settings { tail_loss_probe: false, ..settings() };
    let mut peer = Peer::open(&settings, 1000, true, 514 << 10, 100);
    peer.write(400_000);
    for i in 1..=13 {
        peer.ack_after(100 * MS, 1 + 2000 * i, &[]);
        assert_eq!(peer.statistics().ssthresh, None);
    }
    peer.ack_after(100 * MS, 28_001, &[]);
    assert_eq!((peer.cwnd(), peer.statistics().ssthresh), (36, Some(36)));
}
