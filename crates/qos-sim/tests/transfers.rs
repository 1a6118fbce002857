//! Transfers over paths that err: everything arrives, once and in order, whatever the network does.
#![allow(clippy::disallowed_macros)]

mod common;

use common::{Net, Path, Policer};
use qos_core::time::{Duration, Time};
use qos_sim::tcp::{CongestionControl, Settings, State};

fn settings(congestion_control: CongestionControl) -> Settings {
    Settings { congestion_control, ..Settings::modern(1500) }
}

#[test]
fn a_transfer_without_loss_uses_the_link() {
    let mut net = Net::new(Path::new(10_000_000, 5_000_000), &settings(CongestionControl::Reno), 1);
    let flow = net.flow(Time(0));
    net.run(Time(0));
    net.offer(flow, 10_000_000);
    net.close(flow);
    net.run(Time(60_000_000_000));
    assert_eq!(net.received(flow), 10_000_000);
    assert_eq!(net.client(flow).state(), State::Closed);
    assert!(net.server(flow).peer_finished());
    assert_eq!(net.client(flow).figures().acknowledged_bytes, 10_000_000);
}

#[test]
#[ignore = "prints the reference curve"]
fn figure_1() {
    for control in [CongestionControl::Reno, CongestionControl::Cubic] {
        for bucket in [3000, 4500, 6250, 9000, 12_500, 15_625, 20_000, 31_250, 62_500, 187_500] {
            let mut path = Path::new(10_000_000, 25_000_000);
            path.policer = Some(Policer::new(1_000_000, bucket));
            let mut net = Net::new(path, &settings(control), 1);
            let flow = net.flow(Time(0));
            net.run(Time(0));
            net.offer(flow, u64::MAX / 2);
            net.run(Time(10_000_000_000));
            let before = net.received(flow);
            net.run(Time(70_000_000_000));
            let goodput = (net.received(flow) - before) as f64 * 8.0 / 60e6 * 100.0;
            let policer = net.path.policer.as_ref().expect("a policer");
            let dropped = policer.dropped as f64 / (policer.passed + policer.dropped) as f64 * 100.0;
            println!("{control:?} {bucket}: {goodput:.1} % {dropped:.1} % {:?}", net.client(flow).figures());
        }
    }
    let _ = Duration(0);
}
