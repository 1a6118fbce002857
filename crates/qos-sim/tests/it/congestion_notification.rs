//! Explicit congestion notification (RFC 3168): the agreement of the ends, their segments, and the benefit behind a
//! marking router.

use crate::common::{Net, Path};
use crate::scene::{dumbbell, policy_out, run, MILLI, SECOND};
use qos_core::time::{Duration, Time};
use qos_core::wire::ip::ecn;
use qos_sim::tcp::{CongestionControl, Connection, Segment, Settings};
use qos_sim::Report;
use serde_json::{json, Value};

fn settings(ecn: bool) -> Settings {
    Settings { ecn, congestion_control: CongestionControl::Reno, ..Settings::modern(1500) }
}

/// Section 6.1.1: both ends must want it, and say so with different flags.
#[test]
fn handshake_negotiates_ecn() {
    for (client, server) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut out = Vec::new();
        let mut near = Connection::connect(settings(client), Time(0), &mut out);
        let syn = out.pop().unwrap();
        assert_eq!((syn.ece, syn.cwr, syn.ecn), (client, client, ecn::NOT_ECT));
        let mut far = Connection::accept(settings(server), Time(1), &syn, &mut out);
        let answer = out.pop().unwrap();
        assert_eq!((answer.ece, answer.cwr, answer.ecn), (client && server, false, ecn::NOT_ECT));
        near.on_segment(Time(2), &answer, &mut out);
        near.offer(Time(2), 5_000, &mut out);
        let capable = if client && server { ecn::ECT_0 } else { ecn::NOT_ECT };
        let (data, bare): (Vec<Segment>, Vec<Segment>) = out.drain(..).partition(|segment| segment.len > 0);
        assert!(bare.iter().all(|segment| segment.ecn == ecn::NOT_ECT));
        assert!(!data.is_empty() && data.iter().all(|segment| segment.ecn == capable), "{data:?}");
        // A mark has a meaning only if both ends have agreed on ECN.
        far.on_segment(Time(3), &bare[0], &mut out);
        far.on_segment(Time(3), &Segment { ecn: ecn::CE, ..data[0] }, &mut out);
        assert!(out.iter().all(|segment| segment.ece == (client && server)), "{out:?}");
    }
}

/// Section 6.1.1.1: a SYN that was not answered is sent again without the offer.
#[test]
fn retransmitted_syn_offers_no_ecn() {
    let mut out = Vec::new();
    let mut client = Connection::connect(settings(true), Time(0), &mut out);
    out.clear();
    client.on_timer(client.deadline().unwrap(), &mut out);
    assert_eq!((out[0].syn, out[0].ece, out[0].cwr), (true, false, false));
}

/// Section 6.1.2 and 6.1.3: while everything is marked the window is halved once in a round trip, each time reported
/// with CWR, and ECN-Echo continues until then. Retransmissions are not ECN-capable (6.1.5).
#[test]
fn the_window_is_reduced_once_per_round_trip() {
    let rtt = 100 * MILLI;
    let mut net = Net::new(Path::new(100_000_000, rtt / 2), &settings(true), 1);
    let (from, until) = (SECOND, 2 * SECOND);
    let reports = std::rc::Rc::new(std::cell::Cell::new(0));
    let heard = reports.clone();
    net.script = Some(Box::new(move |segment, number| {
        let capable = segment.len > 0 && !segment.retransmission;
        assert_eq!(segment.ecn, if capable { ecn::ECT_0 } else { ecn::NOT_ECT }, "{segment:?}");
        assert!(!segment.cwr || segment.syn || capable);
        heard.set(heard.get() + u64::from(segment.cwr && !segment.syn));
        number == 500 && !segment.retransmission
    }));
    let flow = net.flow(Time(0));
    net.run(Time(0));
    net.offer(flow, u64::MAX / 2);
    net.run(Time(from));
    let before = net.client(flow).statistics();
    assert_eq!((before.ecn_reductions, before.fast_recoveries, reports.get()), (0, 1, 1));
    net.marks = Some(Box::new(|_, _| true));
    net.run(Time(from + rtt + rtt / 2));
    let once = net.client(flow).statistics();
    assert_eq!(once.ecn_reductions, 1);
    assert!(once.ssthresh.unwrap().abs_diff(before.cwnd / 2) <= before.cwnd / 20, "{before:?} {once:?}");
    net.run(Time(until));
    net.marks = None;
    net.run(Time(until + 5 * rtt));
    let after = net.client(flow).statistics();
    assert!((5..=10).contains(&after.ecn_reductions), "{after:?}");
    assert_eq!(reports.get(), after.ecn_reductions + after.fast_recoveries);
    assert_eq!((after.timeouts, after.undone), (0, 0));
    net.run(Time(until) + Duration(20 * SECOND));
    let last = net.client(flow).statistics();
    assert_eq!(last.ecn_reductions, after.ecn_reductions, "nothing is echoed any more");
    assert!(last.cwnd > 2 * after.cwnd && last.fast_recoveries == 1, "{after:?} {last:?}");
}

/// Four connections through 10 Mb/s with 40 ms round trip and early detection.
fn transfer_behind_early_detection(control: &str, ends: bool, router: bool) -> Report {
    let mut scenario = dumbbell(10_000_000, 20 * MILLI);
    for host in ["client", "server"] {
        scenario["nodes"][host]["tcp"] = json!({"ecn": ends, "congestion_control": control});
    }
    scenario["start_jitter_ns"] = json!(10 * MILLI);
    scenario["host_jitter_ns"] = Value::Null;
    let red = json!({"basis": "precedence", "exponential_weight": 6, "ecn": router,
        "thresholds": [{"value": 0, "min": 20, "max": 400, "denominator": 1}]});
    let class = json!([{"name": "class-default", "queue_limit": {"packets": 1000}, "random_detect": red}]);
    scenario["nodes"]["R1"]["configuration"] = policy_out("FastEthernet0/1", 10_000, class);
    scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 5201, "streams": 4, "duration_ns": 30 * SECOND}]);
    run(&scenario)
}

/// RFC 3168 section 5 and Cisco's "WRED: Explicit Congestion Notification": a router that marks loses nothing of flows
/// that can be marked, and they get as much as those that lose packets.
#[test]
fn ecn_marks_avoid_all_losses_without_loss_of_throughput() {
    for control in ["reno", "cubic"] {
        let goodput = |report: &Report| report.flows["transfer"].streams.iter().map(|stream| stream.bytes).sum::<u64>();
        let red = |report: &Report| {
            let last = report.routers["R1"].samples.last().unwrap();
            let class = last.interfaces["FastEthernet0/1"].policy_output.as_ref().unwrap().classes[0].clone();
            (class.drops.random.packets, class.random_detect.unwrap().ecn_mark.map(|marks| marks.packets))
        };
        let (dropping, marking) = (
            transfer_behind_early_detection(control, true, false),
            transfer_behind_early_detection(control, true, true),
        );
        let ((lost, none), (saved, marked)) = (red(&dropping), red(&marking));
        assert!(lost > 20 && none.is_none(), "{lost} {none:?}");
        assert!(saved == 0 && marked.unwrap() > 20, "{saved} {marked:?}");
        assert!(dropping.hosts["client"].tcp.retransmitted_segments >= lost);
        assert_eq!(marking.hosts["client"].tcp.retransmitted_segments, 0);
        let share = goodput(&marking) as f64 / goodput(&dropping) as f64;
        assert!((0.97..1.06).contains(&share), "{control}: {share}");
        // No packet can be marked if an end does not support ECN.
        let (lost, marked) = red(&transfer_behind_early_detection(control, false, true));
        assert!(lost > 20 && marked == Some(0), "{lost} {marked:?}");
    }
}
