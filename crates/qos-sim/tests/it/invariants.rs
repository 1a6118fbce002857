//! Invariants under any network faults: everything arrives once and in order (the network of these tests keeps its own
//! account), nothing is sent beyond the window, no timer is set in the past, the same seed gives the same segments, and
//! every transfer ends.

use crate::common::{Net, Path, Policer};
use proptest::prelude::*;
use qos_core::time::{Duration, Rate, Time};
use qos_sim::tcp::{CongestionControl, Settings, State, Statistics};

prop_compose! {
    fn any_settings()(
        reno in any::<bool>(),
        sack in any::<bool>(),
        dsack in any::<bool>(),
        timestamps in any::<bool>(),
        rack in any::<bool>(),
        tail_loss_probe in any::<bool>(),
        frto in any::<bool>(),
        byte_counting in any::<bool>(),
        rto_floor_on_variance in any::<bool>(),
        initial_window in 1u32..20,
        min_rto in prop::sample::select(vec![200u64, 300, 1000]),
        quick_acks in 0u32..17,
        compression in prop::sample::select(vec![0u64, 1_000_000]),
        receive_buffer in 3_000u64..200_000,
        send_buffer in 3_000u64..200_000,
    ) -> Settings {
        Settings {
            congestion_control: if reno { CongestionControl::Reno } else { CongestionControl::Cubic },
            sack, dsack, timestamps, rack, tail_loss_probe, frto, byte_counting, rto_floor_on_variance, initial_window,
            min_rto_ns: min_rto * 1_000_000,
            quick_acks,
            sack_compression_ns: compression,
            receive_buffer,
            initial_receive_window: receive_buffer.min(65_535),
            send_buffer,
            ..Settings::modern(1500)
        }
    }
}

prop_compose! {
    fn any_path()(
        link in 200_000u64..50_000_000,
        delay_us in 0u64..100_000,
        policed in any::<bool>(),
        pir in 100_000u64..2_000_000,
        bucket in 3_000u64..50_000,
        loss in prop::sample::select(vec![0.0, 0.01, 0.1, 0.29]),
        reorder in prop::sample::select(vec![0.0, 0.05, 0.3]),
        detour_us in 100u64..50_000,
        duplicate in prop::sample::select(vec![0.0, 0.05, 0.3]),
        both_ways in any::<bool>(),
    ) -> Path {
        Path {
            lan: Rate(100_000_000),
            policer: policed.then(|| Policer::new(pir, bucket)),
            loss, reorder, duplicate, both_ways,
            detour: Duration(detour_us * 1000),
            ..Path::new(link, delay_us * 1000)
        }
    }
}

/// Sends `bytes`, partly later, and closes. Returns the client's statistics and how many events there were.
fn transfer(path: &Path, settings: &Settings, seed: u64, bytes: u64) -> (Statistics, u64) {
    let mut net = Net::new(path.clone(), settings, seed);
    let flow = net.flow(Time(0));
    net.run(Time(0));
    net.offer(flow, bytes / 3);
    net.run(Time(700_000_000));
    net.offer(flow, bytes - bytes / 3);
    net.close(flow);
    net.run(Time(u64::MAX / 2));
    assert_eq!(net.received(flow), bytes, "{:?}", net.client(flow).statistics());
    assert_eq!(net.client(flow).state(), State::Closed);
    assert!(net.server(flow).is_peer_finished());
    let statistics = net.client(flow).statistics();
    assert_eq!(statistics.acknowledged_bytes, bytes);
    assert_eq!(statistics.pipe, 0);
    (statistics, net.events)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn every_transfer_ends_complete_and_in_order(
        settings in any_settings(),
        path in any_path(),
        seed in any::<u64>(),
        bytes in 0u64..300_000,
    ) {
        let once = transfer(&path, &settings, seed, bytes);
        prop_assert_eq!(once, transfer(&path, &settings, seed, bytes));
    }

    #[test]
    fn no_segment_is_retransmitted_without_a_reason(
        settings in any_settings(),
        delay_us in 0u64..100_000,
        bytes in 0u64..300_000,
    ) {
        // A receiver that waits for longer than a timeout would be a reason.
        let settings = Settings { delayed_ack_min_ns: 40_000_000, delayed_ack_max_ns: 40_000_000, ..settings };
        let longest = 2 * delay_us * 1000 + settings.delayed_ack_max_ns;
        prop_assume!(settings.rto_floor_on_variance || longest < settings.min_rto_ns);
        let (statistics, _) = transfer(&Path::new(50_000_000, delay_us * 1000), &settings, 1, bytes);
        prop_assert_eq!(statistics.retransmitted_segments - statistics.probes, 0);
        prop_assert_eq!(statistics.ssthresh.is_some() && settings.congestion_control == CongestionControl::Reno, false);
    }
}
