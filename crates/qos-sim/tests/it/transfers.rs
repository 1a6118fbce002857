//! Transfers over faulty paths: everything arrives once and in order, with any faults of the network.

use crate::common::{Net, Path};
use qos_core::time::Time;
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
    assert!(net.server(flow).is_peer_finished());
    assert_eq!(net.client(flow).statistics().acknowledged_bytes, 10_000_000);
}
