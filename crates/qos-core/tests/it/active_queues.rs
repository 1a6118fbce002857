//! Trees of queues with active queue management: CoDel, FQ-CoDel, PIE, CAKE, RED.

use crate::common::{self, departures, load, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{InterfaceCounters, TreeNodeCounters};
use qos_core::wire::Framing;
use qos_core::{DropReason, Engine, Output, Side, Time};
use serde_json::{json, Value};

const LINE_BPS: u64 = 20_000_000;

fn engine<P>(nodes: Value, rules: Value, default: u8) -> Engine<P> {
    let mut interface = common::interface(LINE_BPS / 1_000, None, None);
    interface["queueing"] = json!({"type": "tree", "nodes": nodes, "rules": rules, "default": default});
    interface["tx_ring_limit"] = json!(1);
    let mut engine = common::engine(LINE_BPS, Framing::Ethernet);
    engine.configure(Time(0), &common::configuration("hqf", json!({}), interface)).unwrap();
    engine
}

fn single<P>(queue: &Value) -> Engine<P> {
    engine(json!([{"name": "1:", "queue": queue}]), json!([]), 0)
}

fn codel(ecn: bool) -> Value {
    json!({"kind": "codel", "limit": 1000, "target_us": 5000, "interval_us": 100_000, "ecn": ecn})
}

fn fq_codel(limit: u32) -> Value {
    json!({"kind": "fq_codel", "limit": limit, "flows": 1024, "quantum": 1514, "target_us": 5000,
           "interval_us": 100_000, "memory_limit": 32 << 20, "drop_batch": 64})
}

fn pie() -> Value {
    json!({"kind": "pie", "limit": 1000, "target_us": 15_000, "tupdate_us": 15_000, "alpha": 2, "beta": 20})
}

fn cake(diffserv: &str, memory: Option<u64>) -> Value {
    json!({"kind": "cake", "diffserv": diffserv, "isolation": "triple_isolate", "rtt_us": 100_000,
           "target_us": 5000, "memory_limit": memory})
}

fn red() -> Value {
    json!({"kind": "red", "limit": 400_000, "min": 30_000, "max": 90_000, "exponential_weight": 9, "denominator": 50})
}

fn counters<P>(engine: &mut Engine<P>, at: u64) -> InterfaceCounters {
    engine.counters(Time(at), None).interfaces["Out"].clone()
}

fn node<P>(engine: &mut Engine<P>, at: u64) -> TreeNodeCounters {
    counters(engine, at).tree[0].clone()
}

/// Twice the line's rate in packets of 1500 bytes.
fn overload(flow: u16) -> Source {
    Source::new(1_486, 0, flow, 2 * LINE_BPS)
}

/// When packets left, with the number of their source.
fn sources(outputs: &[Output<usize>]) -> Vec<(u64, usize)> {
    departures(outputs).into_iter().map(|(at, source, _)| (at.0, source)).collect()
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// Whatever comes, each packet leaves, is dropped or waits, and what is counted of the nodes is what is there.
    #[test]
    fn every_packet_is_accounted_for(
        kind in 0usize..6,
        shaped in any::<bool>(),
        packets in prop::collection::vec((0u64..400_000, 0u16..40, 60usize..1_500, 0u8..64), 2..400),
    ) {
        let small_cake = cake("diffserv4", Some(30_000));
        let queue = [codel(false), fq_codel(30), pie(), small_cake, red(), codel(true)][kind].clone();
        let shape = if shaped { json!({"rate_bps": 5_000_000, "burst_bytes": 3_000}) } else { Value::Null };
        let mut engine = engine(json!([{"name": "1:", "queue": queue, "shape": shape}]), json!([]), 0);
        let (mut at, mut outputs) = (0, Vec::new());
        let count = packets.len();
        for (number, (gap, flow, ip_len, dscp)) in packets.into_iter().enumerate() {
            at += gap;
            common::run(&mut engine, Time(at), &mut outputs);
            let source = Source { ip_len, dscp, flow, gap_ns: 0 };
            engine.transmit(Time(at), PORT, source.descriptor(Framing::Ethernet), number);
            engine.audit().unwrap();
        }
        common::run(&mut engine, Time(at + 100 * SECOND), &mut outputs);
        engine.audit().unwrap();
        let found = node(&mut engine, at + 100 * SECOND);
        prop_assert_eq!(found.depth_packets, 0);
        prop_assert_eq!(found.sent.packets + found.drops.packets, count as u64);
        prop_assert_eq!(departures(&outputs).len() as u64, found.sent.packets);
        let managed = found.managed;
        prop_assert!(managed.is_none_or(|each| each.overlimit.plus(each.early) == found.drops));
        // Packets of a flow stay in order, and none leaves before it came; outputs come in the order of time.
        prop_assert!(departures(&outputs).windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}

/// A flood that does not slow down: CoDel's drops become more frequent, PIE drops what is in excess, half of what
/// comes.
#[test]
fn a_flood_is_dropped_more_and_more() {
    for (queue, delay_ms) in [(codel(false), 600), (pie(), 40)] {
        let mut engine = single(&queue);
        load(&mut engine, Framing::Ethernet, &[overload(0)], Time(30 * SECOND));
        let found = node(&mut engine, 30 * SECOND);
        let managed = found.managed.unwrap();
        assert!(managed.early.packets > 1_000, "{managed:?}");
        engine.audit().unwrap();
        assert_eq!(engine.totals(PORT, Side::Wire).dropped[DropReason::Aqm as usize], managed.early);
        let delay = managed.sojourn_ns.unwrap() / MILLI;
        assert!(delay < delay_ms, "{delay} ms: {managed:?}");
        if managed.probability.is_some() {
            let part = found.drops.packets as f64 / (found.drops.packets + found.sent.packets) as f64;
            assert!((part - 0.5).abs() < 0.02, "{part}");
        }
    }
}

/// A queue that stays below the target loses nothing.
#[test]
fn a_line_with_room_drops_nothing() {
    for queue in [codel(false), fq_codel(10_240), pie(), cake("besteffort", None), red()] {
        let mut engine = single(&queue);
        let sources = [Source::new(1_486, 0, 0, LINE_BPS * 9 / 10)];
        load(&mut engine, Framing::Ethernet, &sources, Time(5 * SECOND));
        let found = node(&mut engine, 6 * SECOND);
        assert_eq!((found.drops.packets, found.marked.packets), (0, 0), "{queue}");
        assert!(found.sent.packets > 7_000);
    }
}

/// RFC 8290, section 1: flows get equal shares, and a flow that sends less than its share waits for hardly a packet of
/// each other flow.
#[test]
fn flows_share_evenly_and_sparse_ones_do_not_wait() {
    for queue in [fq_codel(10_240), cake("besteffort", None)] {
        let mut engine = single(&queue);
        let flows = [overload(0), overload(1), overload(2), Source::new(100, 0, 3, 100_000)];
        let outputs = load(&mut engine, Framing::Ethernet, &flows, Time(10 * SECOND));
        engine.audit().unwrap();
        let left = sources(&outputs);
        let count = |source| left.iter().filter(|(at, found)| *found == source && *at > SECOND).count();
        let bulk = [count(0), count(1), count(2)];
        assert!(bulk.iter().max().unwrap() - bulk.iter().min().unwrap() <= 3, "{bulk:?}: {queue}");
        let gap = flows[3].gap_ns;
        let waits = left.iter().filter(|(at, source)| *source == 3 && *at > SECOND).map(|(at, _)| at % gap);
        // A packet on the line, one in the ring, at most one turn, and itself.
        assert!(waits.max().unwrap() < 2 * MILLI, "{queue}");
    }
}

/// RFC 8290, section 4.1: at the limit the longest queue loses, not the one whose packet comes.
#[test]
fn at_the_limit_the_longest_queue_loses() {
    for queue in [fq_codel(100), cake("besteffort", Some(230_400))] {
        let mut engine = single(&queue);
        let flows = [Source::new(1_486, 0, 0, 20 * LINE_BPS), Source::new(1_486, 0, 1, LINE_BPS / 4)];
        let outputs = load(&mut engine, Framing::Ethernet, &flows, Time(2 * SECOND));
        engine.audit().unwrap();
        let found = node(&mut engine, 2 * SECOND).managed.unwrap();
        assert!(found.overlimit.packets > 10_000, "{found:?}");
        let small = sources(&outputs).iter().filter(|(_, source)| *source == 1).count();
        assert!(small as u64 >= 2 * LINE_BPS / 4 / 8 / 1_500 - 3, "{small}: {queue}");
    }
}

/// tc-cake(8): a source with nine flows gets as much as one with one, with triple isolation too unless all flows have
/// one destination.
#[test]
fn cake_is_fair_among_hosts() {
    for (isolation, destinations, ratio) in
        [("dual_srchost", 1, 1.0), ("triple_isolate", 2, 1.0), ("triple_isolate", 1, 9.0), ("flows", 2, 9.0)]
    {
        let mut queue = cake("besteffort", None);
        queue["isolation"] = json!(isolation);
        let mut engine = single(&queue);
        let mut outputs = Vec::new();
        let frame = |host: u8, flow: u16| {
            let plain = overload(flow).descriptor(Framing::Ethernet);
            let source = std::net::IpAddr::from([10, 0, 0, host]);
            let destination = std::net::IpAddr::from([10, 0, 1, host % destinations]);
            let flow = (u64::from(host) << 32) | u64::from(flow);
            qos_core::Descriptor { source, destination, flow, ..plain }
        };
        for step in 0..15_000u64 {
            let at = Time(step * SECOND / 10_000);
            common::run(&mut engine, at, &mut outputs);
            (0..9).for_each(|flow| engine.transmit(at, PORT, frame(1, flow), 1));
            engine.transmit(at, PORT, frame(2, 0), 2);
        }
        let left = sources(&outputs);
        let count = |host| left.iter().filter(|(at, found)| *found == host && *at > SECOND / 2).count() as f64;
        let found = count(1) / count(2);
        assert!((found / ratio - 1.0).abs() < 0.05, "{isolation}: {found}");
    }
}

/// tc-cake(8): voice has priority up to a quarter of the rate; above it best effort has its part too.
#[test]
fn cake_gives_a_tin_priority_up_to_its_threshold() {
    let rate = 8_000_000;
    let shape = json!({"rate_bps": rate, "burst_bytes": 0, "deficit": true});
    let node = json!({"name": "1:", "queue": cake("diffserv4", None), "shape": shape});
    let mut engine = engine(json!([node]), json!([]), 0);
    let flows = [Source::new(1_486, 0, 0, rate), Source::new(1_486, 46, 1, rate / 5)];
    let outputs = load(&mut engine, Framing::Ethernet, &flows, Time(10 * SECOND));
    let left = sources(&outputs);
    let voice = left.iter().filter(|(_, source)| *source == 1).count() as u64;
    assert!(voice >= rate / 5 * 10 / 8 / 1_500 - 3, "{voice}");
    let tins = counters(&mut engine, 10 * SECOND).tree[0].managed.clone().unwrap().tins;
    assert_eq!(tins.iter().map(|tin| tin.threshold_bps).collect::<Vec<_>>(), [rate, rate / 16, rate / 2, rate / 4]);
    assert_eq!((tins[3].sent.packets, tins[3].early.packets, tins[1].sent.packets), (voice, 0, 0));
    // The whole keeps the rate: 1500 counted bytes in 1.5 ms.
    let sent: u64 = tins.iter().map(|tin| tin.sent.bytes).sum();
    assert!(sent.abs_diff(rate * 10 / 8) <= 2 * 1_500, "{sent}");
}

/// CAKE's shaper has no burst: packets leave one after the other at the rate, with the overhead that is asked for.
#[test]
fn cake_spaces_packets_by_their_adjusted_length() {
    for (account, length) in [
        (json!(null), 1_500),
        (json!({"offset_bytes": 24, "least_bytes": 64}), 1_524),
        (json!({"offset_bytes": 34, "carrier": "atm"}), 32 * 53),
        (json!({"offset_bytes": 16, "carrier": "ptm"}), 1_516 + 24),
    ] {
        let shape = json!({"rate_bps": 1_000_000, "burst_bytes": 0, "deficit": true, "account": account});
        let mut engine =
            engine(json!([{"name": "1:", "queue": cake("besteffort", None), "shape": shape}]), json!([]), 0);
        let outputs = load(&mut engine, Framing::Ethernet, &[overload(0)], Time(SECOND));
        let left = sources(&outputs);
        let gaps: Vec<_> = left.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.iter().all(|gap| gap.abs_diff(length * 8 * 1_000) <= 1_000), "{length}: {:?}", &gaps[..4]);
    }
}

/// RFC 3168: packets of ECN-capable transports are marked, others dropped, by each that may mark.
#[test]
fn capable_packets_are_marked_and_others_dropped() {
    let with_ecn = |mut queue: Value| {
        queue["ecn"] = json!(true);
        queue
    };
    for queue in [with_ecn(codel(false)), with_ecn(fq_codel(10_240)), with_ecn(pie()), cake("besteffort", None)] {
        for capable in [true, false] {
            let mut engine = single(&queue);
            let mut outputs = Vec::new();
            // A little more than the line takes, so that PIE's probability stays below a tenth.
            for step in 0..6_000u64 {
                let at = Time(step * 600_000);
                common::run(&mut engine, at, &mut outputs);
                let mut descriptor = overload(0).descriptor(Framing::Ethernet);
                descriptor.ecn = if capable { 2 } else { 0 };
                engine.transmit(at, PORT, descriptor, 0usize);
            }
            let found = node(&mut engine, 4 * SECOND);
            let early = found.managed.unwrap().early.packets;
            let left = outputs.iter().filter_map(|output| match output {
                Output::Departure(departure) => Some(departure.descriptor.ecn),
                Output::Dropped(_) => None,
            });
            let marked = left.filter(|ecn| *ecn == 3).count() as u64;
            if capable {
                assert!(
                    marked > 0 && marked <= found.marked.packets && (early == 0 || queue["kind"] == "pie"),
                    "{queue}: {marked}, {early}"
                );
            } else {
                assert!(marked == 0 && early > 0, "{queue}");
            }
        }
    }
}

/// HTB: each class has its rate, what is left goes by quantum, and none has more than its ceil.
#[test]
fn classes_have_their_rates_and_share_the_rest() {
    let shape = |ceil: u64| json!({"rate_bps": ceil, "burst_bytes": 1600, "deficit": true});
    let class = |name: &str, rate: u64, ceil: u64| {
        json!({"name": name, "parent": "1:1", "minimum_bps": rate, "weight": 1514, "shape": shape(ceil),
               "queue": {"kind": "pfifo", "limit": 50}})
    };
    let nodes = json!([
        {"name": "1:1", "minimum_bps": 10_000_000, "shape": shape(10_000_000)},
        class("1:10", 6_000_000, 10_000_000),
        class("1:20", 1_000_000, 10_000_000),
        class("1:30", 1_000_000, 1_500_000),
    ]);
    let rule = |flow: u16, queue: u8| json!({"queue": queue, "port": {"protocol": 17, "number": 6_000 + flow}});
    let mut engine = engine(nodes, json!([rule(0, 1), rule(1, 2)]), 3);
    let outputs = load(&mut engine, Framing::Ethernet, &[overload(0), overload(1), overload(2)], Time(10 * SECOND));
    engine.audit().unwrap();
    let left = sources(&outputs);
    let rate = |source| left.iter().filter(|(at, found)| *found == source && *at > SECOND).count() as u64 * 12_000 / 9;
    let found = [rate(0), rate(1), rate(2)];
    // 2 Mb/s are left, of which the third takes no more than the half that its ceil allows.
    for (rate, (least, most)) in
        found.into_iter().zip([(6_000_000, 8_000_000), (1_000_000, 3_000_000), (1_000_000, 1_500_000)])
    {
        assert!(rate >= least - least / 50 && rate <= most + most / 50, "{found:?}");
    }
    assert!(found.iter().sum::<u64>().abs_diff(10_000_000) < 50_000, "{found:?}");
    let tree = counters(&mut engine, 10 * SECOND).tree;
    assert_eq!(tree.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["1:1", "1:10", "1:20", "1:30"]);
    assert_eq!((tree[0].discipline.as_deref(), tree[3].discipline.as_deref()), (None, Some("pfifo")));
}

/// A packet of a `bfifo` must fit below the limit with its whole length.
#[test]
fn a_limit_in_bytes_holds_whole_packets() {
    for (limit, waiting) in [(15_000, 10), (14_999, 9), (1_499, 0)] {
        let mut engine: Engine<usize> = single(&json!({"kind": "bfifo", "limit": limit}));
        (0..20).for_each(|number| engine.transmit(Time(0), PORT, overload(0).descriptor(Framing::Ethernet), number));
        engine.audit().unwrap();
        assert_eq!(node(&mut engine, 0).depth_packets, waiting, "{limit}");
    }
}

#[test]
fn mistakes_in_a_tree_are_named_with_their_place() {
    let refused = |nodes: Value, default: u8| {
        let mut interface = common::interface(1_000, None, None);
        interface["queueing"] = json!({"type": "tree", "nodes": nodes, "default": default});
        let mut engine: Engine<()> = common::engine(1_000_000, Framing::Ethernet);
        let config = common::configuration("hqf", json!({}), interface);
        engine.configure(Time(0), &config).unwrap_err().to_string()
    };
    let fifo = json!({"kind": "pfifo", "limit": 10});
    for (nodes, default, expected) in [
        (json!([]), 0, "queueing.nodes"),
        (json!([{"name": "1:", "queue": fifo}]), 1, "queueing.default"),
        (json!([{"name": "1:"}, {"name": "2:", "parent": "1:", "queue": fifo}]), 0, "node 0 is a class"),
        (json!([{"name": "1:"}]), 0, "queueing.nodes[0].queue"),
        (json!([{"name": "1:", "queue": fifo}, {"name": "1:", "queue": fifo}]), 0, "is there already"),
        (json!([{"name": "1:", "parent": "9:", "queue": fifo}]), 0, "there is no class"),
        (
            json!([{"name": "1:", "queue": fifo}, {"name": "2:", "parent": "1:", "queue": fifo}]),
            0,
            "nothing can be below",
        ),
        (
            json!([{"name": "1:", "queue": {"kind": "pfifo", "limit": 1}, "shape": {"rate_bps": 0, "burst_bytes": 0}}]),
            0,
            "shape.rate_bps",
        ),
    ] {
        let found = refused(nodes, default);
        assert!(found.contains(expected), "{found}");
    }
}
