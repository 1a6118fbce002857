//! Trees of queues with active queue management: CoDel, FQ-CoDel, PIE, CAKE, RED.

use crate::common::build::*;
use crate::common::{self, departures, load, out, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::TreeNodeCounters;
use qos_core::wire::Framing;
use qos_core::{DropReason, Engine, Output, Side, Time};

const LINE_BPS: u64 = 20_000_000;

fn engine<P>(nodes: Vec<TreeNode>, rules: Vec<QueueRule>, default: u8) -> Engine<P> {
    let mut interface = interface(LINE_BPS / 1_000, None, None);
    interface.queueing = Some(InterfaceQueueing::Tree { nodes, rules, default });
    interface.tx_ring_limit = Some(1);
    common::started(LINE_BPS, Framing::Ethernet, &common::configuration(Hqf, Maps::new(), interface))
}

fn single_queue<P>(queue: &QueueDiscipline) -> Engine<P> {
    engine(vec![tree_node("1:", None, Some(queue.clone()))], vec![], 0)
}

/// The only queue behind a shaper.
fn queue_behind_shaper<P>(shape: Option<TreeShape>, queue: QueueDiscipline) -> Engine<P> {
    engine(vec![TreeNode { shape, ..tree_node("1:", None, Some(queue)) }], vec![], 0)
}

fn codel(ecn: bool) -> QueueDiscipline {
    QueueDiscipline::Codel { limit: 1_000, target_us: 5_000, interval_us: 100_000, ce_threshold_us: None, ecn }
}

fn fq_codel(limit: u32, ecn: bool) -> QueueDiscipline {
    QueueDiscipline::FqCodel {
        limit,
        flows: 1_024,
        quantum: 1_514,
        target_us: 5_000,
        interval_us: 100_000,
        memory_limit: 32 << 20,
        drop_batch: 64,
        ce_threshold_us: None,
        ecn,
    }
}

fn pie(ecn: bool) -> QueueDiscipline {
    let (target_us, tupdate_us) = (15_000, 15_000);
    QueueDiscipline::Pie { limit: 1_000, target_us, tupdate_us, alpha: 2, beta: 20, ecn, bytemode: false }
}

fn cake(diffserv: Diffserv, isolation: Isolation, memory_limit: Option<u64>) -> QueueDiscipline {
    QueueDiscipline::Cake { diffserv, isolation, rtt_us: 100_000, target_us: 5_000, memory_limit, wash: false }
}

/// CAKE with one tin.
fn plain_cake(memory_limit: Option<u64>) -> QueueDiscipline {
    cake(Diffserv::Besteffort, Isolation::TripleIsolate, memory_limit)
}

fn red() -> QueueDiscipline {
    let (min, max) = (30_000, 90_000);
    QueueDiscipline::Red { limit: 400_000, min, max, exponential_weight: 9, denominator: 50, ecn: false }
}

fn node<P>(engine: &mut Engine<P>, at: u64) -> TreeNodeCounters {
    out(engine, Time(at)).tree[0].clone()
}

/// Twice the line's rate in packets of 1500 bytes.
fn overload_queue(flow: u16) -> Source {
    Source::new(1_486, 0, flow, 2 * LINE_BPS)
}

/// Departure times of packets, with the number of their source.
fn sources(outputs: &[Output<usize>]) -> Vec<(u64, usize)> {
    departures(outputs).into_iter().map(|(at, source, _)| (at.0, source)).collect()
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// With any input each packet leaves, is dropped or waits, and the counters of the nodes equal their contents.
    #[test]
    fn every_packet_is_accounted_for(
        kind in 0usize..6,
        shaped in any::<bool>(),
        packets in prop::collection::vec((0u64..400_000, 0u16..40, 60usize..1_500, 0u8..64), 2..400),
    ) {
        let small_cake = cake(Diffserv::Diffserv4, Isolation::TripleIsolate, Some(30_000));
        let queue = [codel(false), fq_codel(30, false), pie(false), small_cake, red(), codel(true)][kind].clone();
        let shape = TreeShape { rate_bps: 5_000_000, burst_bytes: 3_000, deficit: false, account: None };
        let mut engine = queue_behind_shaper(shaped.then_some(shape), queue);
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
        // Packets of a flow stay in order, and none leaves before its arrival; outputs are in order of time.
        prop_assert!(departures(&outputs).windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}

/// A flood that does not slow down: CoDel's drops become more frequent; PIE drops the excess, half of the arrivals.
#[test]
fn aqm_drops_more_of_a_flood_over_time() {
    for (queue, delay_ms) in [(codel(false), 600), (pie(false), 40)] {
        let mut engine = single_queue(&queue);
        load(&mut engine, Framing::Ethernet, &[overload_queue(0)], Time(30 * SECOND));
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
fn aqm_drops_nothing_below_the_line_rate() {
    for queue in [codel(false), fq_codel(10_240, false), pie(false), plain_cake(None), red()] {
        let mut engine = single_queue(&queue);
        let sources = [Source::new(1_486, 0, 0, LINE_BPS * 9 / 10)];
        load(&mut engine, Framing::Ethernet, &sources, Time(5 * SECOND));
        let found = node(&mut engine, 6 * SECOND);
        assert_eq!((found.drops.packets, found.marked.packets), (0, 0), "{queue:?}");
        assert!(found.sent.packets > 7_000);
    }
}

/// RFC 8290, section 1: flows get equal shares, and a flow that sends less than its share waits for hardly a packet of
/// each other flow.
#[test]
fn flows_share_evenly_and_sparse_ones_do_not_wait() {
    for queue in [fq_codel(10_240, false), plain_cake(None)] {
        let mut engine = single_queue(&queue);
        let flows = [overload_queue(0), overload_queue(1), overload_queue(2), Source::new(100, 0, 3, 100_000)];
        let outputs = load(&mut engine, Framing::Ethernet, &flows, Time(10 * SECOND));
        engine.audit().unwrap();
        let left = sources(&outputs);
        let count = |source| left.iter().filter(|(at, found)| *found == source && *at > SECOND).count();
        let bulk = [count(0), count(1), count(2)];
        assert!(bulk.iter().max().unwrap() - bulk.iter().min().unwrap() <= 3, "{bulk:?}: {queue:?}");
        let gap = flows[3].gap_ns;
        let waits = left.iter().filter(|(at, source)| *source == 3 && *at > SECOND).map(|(at, _)| at % gap);
        // A packet on the line, one in the ring, at most one turn, and itself.
        assert!(waits.max().unwrap() < 2 * MILLI, "{queue:?}");
    }
}

/// RFC 8290, section 4.1: at the limit the longest queue drops, not the queue of the arriving packet.
#[test]
fn full_queue_drops_from_the_longest_flow() {
    for queue in [fq_codel(100, false), plain_cake(Some(230_400))] {
        let mut engine = single_queue(&queue);
        let flows = [Source::new(1_486, 0, 0, 20 * LINE_BPS), Source::new(1_486, 0, 1, LINE_BPS / 4)];
        let outputs = load(&mut engine, Framing::Ethernet, &flows, Time(2 * SECOND));
        engine.audit().unwrap();
        let found = node(&mut engine, 2 * SECOND).managed.unwrap();
        assert!(found.overlimit.packets > 10_000, "{found:?}");
        let small = sources(&outputs).iter().filter(|(_, source)| *source == 1).count();
        assert!(small as u64 >= 2 * LINE_BPS / 4 / 8 / 1_500 - 3, "{small}: {queue:?}");
    }
}

/// tc-cake(8): a source with nine flows gets as much as one with one, with triple isolation too unless all flows have
/// one destination.
#[test]
fn cake_is_fair_among_hosts() {
    use Isolation::{DualSrchost, Flows, TripleIsolate};
    for (isolation, destinations, ratio) in
        [(DualSrchost, 1, 1.0), (TripleIsolate, 2, 1.0), (TripleIsolate, 1, 9.0), (Flows, 2, 9.0)]
    {
        let mut engine = single_queue(&cake(Diffserv::Besteffort, isolation, None));
        let mut outputs = Vec::new();
        let frame = |host: u8, flow: u16| {
            let plain = overload_queue(flow).descriptor(Framing::Ethernet);
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
        assert!((found / ratio - 1.0).abs() < 0.05, "{isolation:?}: {found}");
    }
}

/// tc-cake(8): voice has priority up to a quarter of the rate; above it best effort has its part too.
#[test]
fn cake_gives_a_tin_priority_up_to_its_threshold() {
    let rate = 8_000_000;
    let queue = cake(Diffserv::Diffserv4, Isolation::TripleIsolate, None);
    let mut engine = queue_behind_shaper(Some(tree_shape(rate, 0)), queue);
    let flows = [Source::new(1_486, 0, 0, rate), Source::new(1_486, 46, 1, rate / 5)];
    let outputs = load(&mut engine, Framing::Ethernet, &flows, Time(10 * SECOND));
    let left = sources(&outputs);
    let voice = left.iter().filter(|(_, source)| *source == 1).count() as u64;
    assert!(voice >= rate / 5 * 10 / 8 / 1_500 - 3, "{voice}");
    let tins = out(&mut engine, Time(10 * SECOND)).tree[0].managed.clone().unwrap().tins;
    assert_eq!(tins.iter().map(|tin| tin.threshold_bps).collect::<Vec<_>>(), [rate, rate / 16, rate / 2, rate / 4]);
    assert_eq!((tins[3].sent.packets, tins[3].early.packets, tins[1].sent.packets), (voice, 0, 0));
    // Overall the rate is kept: 1500 counted bytes in 1.5 ms.
    let sent: u64 = tins.iter().map(|tin| tin.sent.bytes).sum();
    assert!(sent.abs_diff(rate * 10 / 8) <= 2 * 1_500, "{sent}");
}

/// CAKE's shaper has no burst: packets leave one after the other at the rate, with the overhead that is asked for.
#[test]
fn cake_spaces_packets_by_their_adjusted_length() {
    for (account, length) in [
        (None, 1_500),
        (Some((24, 64, Carrier::Frames)), 1_524),
        (Some((34, 0, Carrier::Atm)), 32 * 53),
        (Some((16, 0, Carrier::Ptm)), 1_516 + 24),
    ] {
        let account =
            account.map(|(offset_bytes, least_bytes, carrier)| LengthAccount { offset_bytes, least_bytes, carrier });
        let mut engine = queue_behind_shaper(Some(TreeShape { account, ..tree_shape(1_000_000, 0) }), plain_cake(None));
        let outputs = load(&mut engine, Framing::Ethernet, &[overload_queue(0)], Time(SECOND));
        let left = sources(&outputs);
        let gaps: Vec<_> = left.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.iter().all(|gap| gap.abs_diff(length * 8 * 1_000) <= 1_000), "{length}: {:?}", &gaps[..4]);
    }
}

/// RFC 3168: packets of ECN-capable transports are marked, others dropped, by each that may mark.
#[test]
fn ecn_capable_packets_are_marked_and_others_dropped() {
    for queue in [codel(true), fq_codel(10_240, true), pie(true), plain_cake(None)] {
        for capable in [true, false] {
            let mut engine = single_queue(&queue);
            let mut outputs = Vec::new();
            // A little more than the line takes, so that PIE's probability stays below a tenth.
            for step in 0..6_000u64 {
                let at = Time(step * 600_000);
                common::run(&mut engine, at, &mut outputs);
                let mut descriptor = overload_queue(0).descriptor(Framing::Ethernet);
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
                    marked > 0
                        && marked <= found.marked.packets
                        && (early == 0 || matches!(queue, QueueDiscipline::Pie { .. })),
                    "{queue:?}: {marked}, {early}"
                );
            } else {
                assert!(marked == 0 && early > 0, "{queue:?}");
            }
        }
    }
}

/// HTB: each class has its rate, the rest is shared by quantum, and none exceeds its ceil.
#[test]
fn htb_classes_get_their_rates_and_share_the_rest() {
    let with_rate = |minimum_bps: u64, ceil: u64, node: TreeNode| {
        let shape = Some(tree_shape(ceil, 1_600));
        TreeNode { minimum_bps, shape, ..node }
    };
    let class = |name: &str, rate: u64, ceil: u64| {
        let queue = Some(QueueDiscipline::Pfifo { limit: 50 });
        with_rate(rate, ceil, TreeNode { weight: 1_514, ..tree_node(name, Some("1:1"), queue) })
    };
    let nodes = vec![
        with_rate(10_000_000, 10_000_000, tree_node("1:1", None, None)),
        class("1:10", 6_000_000, 10_000_000),
        class("1:20", 1_000_000, 10_000_000),
        class("1:30", 1_000_000, 1_500_000),
    ];
    let rule = |flow: u16, queue: u8| {
        let port = Some(QueuedPort { protocol: 17, number: 6_000 + flow });
        QueueRule { queue, port, ..QueueRule::default() }
    };
    let mut engine = engine(nodes, vec![rule(0, 1), rule(1, 2)], 3);
    let outputs = load(
        &mut engine,
        Framing::Ethernet,
        &[overload_queue(0), overload_queue(1), overload_queue(2)],
        Time(10 * SECOND),
    );
    engine.audit().unwrap();
    let left = sources(&outputs);
    let rate = |source| left.iter().filter(|(at, found)| *found == source && *at > SECOND).count() as u64 * 12_000 / 9;
    let found = [rate(0), rate(1), rate(2)];
    // 2 Mb/s remain, of which the third class takes only the half that its ceil allows.
    for (rate, (least, most)) in
        found.into_iter().zip([(6_000_000, 8_000_000), (1_000_000, 3_000_000), (1_000_000, 1_500_000)])
    {
        assert!(rate >= least - least / 50 && rate <= most + most / 50, "{found:?}");
    }
    assert!(found.iter().sum::<u64>().abs_diff(10_000_000) < 50_000, "{found:?}");
    let tree = out(&mut engine, Time(10 * SECOND)).tree;
    assert_eq!(tree.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["1:1", "1:10", "1:20", "1:30"]);
    assert_eq!((tree[0].discipline.as_deref(), tree[3].discipline.as_deref()), (None, Some("pfifo")));
}

/// A packet of a `bfifo` must fit below the limit with its whole length.
#[test]
fn bfifo_limit_counts_whole_packets() {
    for (limit, waiting) in [(15_000, 10), (14_999, 9), (1_499, 0)] {
        let mut engine: Engine<usize> = single_queue(&QueueDiscipline::Bfifo { limit });
        (0..20)
            .for_each(|number| engine.transmit(Time(0), PORT, overload_queue(0).descriptor(Framing::Ethernet), number));
        engine.audit().unwrap();
        assert_eq!(node(&mut engine, 0).depth_packets, waiting, "{limit}");
    }
}

#[test]
fn errors_in_a_tree_name_their_path() {
    let refused = |nodes: Vec<TreeNode>, default: u8| {
        let mut interface = interface(1_000, None, None);
        interface.queueing = Some(InterfaceQueueing::Tree { nodes, rules: vec![], default });
        let mut engine: Engine<usize> = common::engine(1_000_000, Framing::Ethernet);
        engine.configure(Time(0), &common::configuration(Hqf, Maps::new(), interface)).unwrap_err().to_string()
    };
    let below = |parent, name| tree_node(name, parent, Some(QueueDiscipline::Pfifo { limit: 10 }));
    let fifo = |name| below(None, name);
    let no_rate = TreeShape { deficit: false, ..tree_shape(0, 0) };
    for (nodes, default, expected) in [
        (vec![], 0, "queueing.nodes"),
        (vec![fifo("1:")], 1, "queueing.default"),
        (vec![tree_node("1:", None, None), below(Some("1:"), "2:")], 0, "node 0 is a class"),
        (vec![tree_node("1:", None, None)], 0, "queueing.nodes[0].queue"),
        (vec![fifo("1:"), fifo("1:")], 0, "already exists"),
        (vec![below(Some("9:"), "1:")], 0, "there is no earlier class"),
        (vec![fifo("1:"), below(Some("1:"), "2:")], 0, "a class with a queue has no children"),
        (vec![TreeNode { shape: Some(no_rate), ..fifo("1:") }], 0, "shape.rate_bps"),
    ] {
        let found = refused(nodes, default);
        assert!(found.contains(expected), "{found}");
    }
}
