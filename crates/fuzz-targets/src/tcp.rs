//! Any fate of a connection's segments: delivered data is received once and in order, nothing is sent beyond the
//! window, and every transfer ends. The network is that of the simulator's tests, which keeps separate records.

use std::cell::RefCell;
use std::rc::Rc;

use qos_core::time::{Duration, Time};
use qos_sim::tcp::{CongestionControl, Settings, State};

use crate::decisions::Input;
use crate::network::{Net, Path, Policer};

/// Maximum number of consecutive lost segments: a connection gives up after as many timeouts as in Linux.
const IN_A_ROW: u32 = 4;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (first, second) = (input.byte(), input.byte());
    let flag = |byte: u8, bit: u8| (byte >> bit) & 1 == 1;
    let settings = Settings {
        congestion_control: if flag(first, 0) { CongestionControl::Reno } else { CongestionControl::Cubic },
        sack: flag(first, 1),
        dsack: flag(first, 2),
        timestamps: flag(first, 3),
        rack: flag(first, 4),
        tail_loss_probe: flag(first, 5),
        frto: flag(first, 6),
        ecn: flag(first, 7),
        byte_counting: flag(second, 0),
        initial_window: 1 + u32::from((second >> 1) & 15),
        receive_buffer: 3_000 + u64::from(input.word()) * 3,
        send_buffer: 3_000 + u64::from(input.word()) * 3,
        ..Settings::modern(1500)
    };
    let mut path = Path::new(200_000 + u64::from(input.word()) * 500, u64::from(input.word()) * 1000);
    path.policer = flag(second, 5).then(|| Policer::new(1_000_000, 3_000 + u64::from(input.byte()) * 100));
    path.reorder = f64::from(input.byte()) / 600.0;
    path.duplicate = f64::from(input.byte()) / 600.0;
    path.detour = Duration(u64::from(input.word()) * 1000);
    let offered = u64::from(input.word()) * 2;
    let mut net = Net::new(path, &settings, u64::from(input.word()));
    // One bit for each segment of the client: lost, or marked if it is ECN-capable.
    let fates = Rc::new(RefCell::new((input.0.to_vec(), 0, 0)));
    let lost = Rc::clone(&fates);
    net.script = Some(Box::new(move |_, _| {
        let (bytes, at, row) = &mut *lost.borrow_mut();
        let bit = bytes.get(*at / 8).is_some_and(|byte| (byte >> (*at % 8)) & 1 == 1);
        *at += 1;
        *row = if bit { *row + 1 } else { 0 };
        bit && *row <= IN_A_ROW
    }));
    net.marks = Some(Box::new(move |segment, _| segment.len > 0 && (segment.seq / 1000) % 7 == 0));
    let flow = net.flow(Time(0));
    net.run(Time(0));
    net.offer(flow, offered / 3);
    net.run(Time(700_000_000));
    net.offer(flow, offered - offered / 3);
    net.close(flow);
    net.run(Time(u64::MAX / 2));
    assert_eq!(net.received(flow), offered, "{:?}", net.client(flow).statistics());
    assert_eq!(net.client(flow).state(), State::Closed);
    assert_eq!(net.client(flow).statistics().acknowledged_bytes, offered);
}
