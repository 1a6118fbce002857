//! Late callers: their engine takes the decisions of a punctual caller's, at the same event times.

use crate::common::build::*;
use crate::common::{self, with_policy, PORT};
use proptest::prelude::*;
use qos_core::wire::Framing;
use qos_core::{Duration, Engine, Output, PortId, RouterConfig, Side, Time};

/// A packet: time, length, flow and DSCP.
type Arrival = (u64, usize, u16, u8);

/// Outcome of each packet: departure time and DSCP, or reason and time of its drop.
fn packet_fates(outputs: &[Output<usize>]) -> Vec<(usize, String)> {
    let mut fates: Vec<_> = outputs
        .iter()
        .map(|output| match output {
            Output::Departure(d) => (d.payload, format!("{} dscp {}", d.time, d.descriptor.dscp)),
            Output::Dropped(d) => (d.payload, format!("{} {:?}", d.time, d.reason)),
        })
        .collect();
    fates.sort();
    fates
}

fn configurations() -> Vec<RouterConfig> {
    let shape = |bps: u64| average(bps);
    vec![
        with_policy(Classic, 10_000, vec![class_default().police_bps(1_000_000)]),
        with_policy(Classic, 10_000, vec![class_default().shape(shape(1_000_000))]),
        with_policy(Hqf, 10_000, vec![class_default().shape(shape(500_000)).fair_queue()]),
        with_policy(
            Hqf,
            10_000,
            vec![
                class_of("low").shape(shape(300_000)).queue_limit(8),
                class_of("af").police(PoliceConfig {
                    pir: Some(RateSpec::Percent(6)),
                    violate: Some(vec![PoliceAction::Drop {}]),
                    ..PoliceConfig::new(RateSpec::Percent(3)).exceed(PoliceAction::SetDscpTransmit { value: 8 })
                }),
                class_default().fair_queues(16),
            ],
        ),
    ]
}

/// Feeds the packets; `late` says for each whether the caller polls before it (a punctual one does, for every
/// deadline).
fn feed_arrivals(
    config: &RouterConfig,
    rate: u64,
    arrivals: &[Arrival],
    late: Option<&[u64]>,
    receive: bool,
) -> Vec<(usize, String)> {
    let mut engine: Engine<usize> = common::started(rate, Framing::Ppp, config);
    let mut outputs = Vec::new();
    for (index, &(at, ip_len, flow, dscp)) in arrivals.iter().enumerate() {
        match late {
            None => common::run(&mut engine, Time(at), &mut outputs),
            // The caller wakes occasionally, after reading all frames that had arrived by then.
            Some(naps) if naps[index % naps.len()] % 4 == 0 => engine.poll(Time(at), &mut outputs),
            Some(_) => {}
        }
        let descriptor = common::datagram(ip_len, dscp, 1, 4_990 + flow, Framing::Ppp);
        if receive {
            engine.receive(Time(at), PORT, descriptor, index);
        } else {
            engine.transmit(Time(at), PORT, descriptor, index);
        }
    }
    assert_eq!(engine.totals(PORT, Side::Wire).late_arrivals, 0);
    // A punctual caller goes from deadline to deadline; a late one returns long after.
    if late.is_none() {
        while let Some(deadline) = engine.next_deadline() {
            engine.poll(deadline, &mut outputs);
        }
    }
    engine.poll(Time(u64::MAX / 4), &mut outputs);
    packet_fates(&outputs)
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0), 1u64..3_000_000, 1u64..40_000_000, 1u64..600_000_000];
    prop::collection::vec((gap, 28usize..1500, 0u16..20, prop::sample::select(vec![0u8, 10, 46])), 1..300).prop_map(
        |mut arrivals| {
            let mut at = 0;
            for arrival in &mut arrivals {
                at += arrival.0;
                arrival.0 = at;
            }
            arrivals
        },
    )
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    #[test]
    fn late_polling_changes_no_decision(
        config in prop::sample::select(configurations()),
        rate in prop::sample::select(vec![128_000u64, 2_000_000, 10_000_000]),
        arrivals in arrivals(),
        naps in prop::collection::vec(any::<u64>(), 1..50),
        receive in prop::bool::weighted(0.2),
    ) {
        let mut config = config;
        if receive {
            let out = config.interfaces.get_mut("Out").unwrap();
            out.service_policy_output = None;
        }
        let punctual = feed_arrivals(&config, rate, &arrivals, None, receive);
        prop_assert_eq!(punctual.len(), arrivals.len());
        let late = feed_arrivals(&config, rate, &arrivals, Some(&naps), receive);
        prop_assert_eq!(punctual, late);
    }

    /// Arrivals that reach the engine after a poll that was later than them, but within a line time, are decided as if
    /// they had come first.
    #[test]
    fn scheduler_decides_only_at_departure_time(
        config in prop::sample::select(configurations()),
        arrivals in arrivals(),
        slow in prop::collection::vec(0u64..300_000, 1..50),
    ) {
        // A frame of 28 bytes takes 280 us at 1 Mb/s.
        let rate = 1_000_000;
        let punctual = feed_arrivals(&config, rate, &arrivals, None, false);
        let mut engine: Engine<usize> = common::started(rate, Framing::Ppp, &config);
        let mut outputs = Vec::new();
        for (index, &(at, ip_len, flow, dscp)) in arrivals.iter().enumerate() {
            engine.poll(Time(at + slow[index % slow.len()].min(279_000)), &mut outputs);
            let descriptor = common::datagram(ip_len, dscp, 1, 4_990 + flow, Framing::Ppp);
            engine.transmit(Time(at), PORT, descriptor, index);
        }
        engine.poll(Time(u64::MAX / 4), &mut outputs);
        prop_assert_eq!(engine.totals(PORT, Side::Wire).late_arrivals, 0);
        prop_assert_eq!(packet_fates(&outputs), punctual);
    }
}

/// Sends frames that came inside by `now` out of the other port, with their arrival times; the rest stays in `outputs`.
fn forward(now: Time, engine: &mut Engine<usize>, outputs: &mut Vec<Output<usize>>, fates: &mut Vec<Output<usize>>) {
    for output in std::mem::take(outputs) {
        match output {
            Output::Departure(d) if d.side == Side::Inside && d.time > now => outputs.push(output),
            Output::Departure(d) if d.side == Side::Inside => {
                engine.transmit(d.time, PortId(1), d.descriptor, d.payload);
            }
            out => fates.push(out),
        }
    }
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// Through the whole router: a caller that wakes every `nap`, takes frames from the links ahead of their time and
    /// brings what came inside through before it polls decides as one that is there for each frame.
    #[test]
    fn sleeping_router_changes_no_decision(
        arrivals in arrivals(), nap in 1u64..200_000_000, police in any::<bool>(), delay in 0u64..2_000_000,
        ahead in 0u64..2_000_000
    ) {
        let port = |rate: u64, delay: u64| {
            PortConfig::new(LinkConfig::new(rate, Framing::Ethernet).delay(Duration(delay)))
        };
        let ports = PortsConfig::new().port("In", port(10_000_000, delay)).port("Out", port(2_000_000, 500));
        let action = if police {
            class_default().police_bps(500_000)
        } else {
            class_default().shape_bps(500_000)
        };
        let new = || {
            let mut engine: Engine<usize> = Engine::new(&ports, Time(0)).unwrap();
            engine.configure(Time(0), &with_policy(Classic, 2_000, vec![action.clone()])).unwrap();
            engine
        };
        let frame = |arrival: &Arrival| {
            common::datagram(arrival.1, arrival.3, 1, 4_990 + arrival.2, Framing::Ethernet)
        };
        let end = arrivals[arrivals.len() - 1].0 + 600_000_000_000;

        let (mut engine, mut outputs, mut punctual) = (new(), Vec::new(), Vec::new());
        for step in 0..=arrivals.len() {
            let until = arrivals.get(step).map_or(end, |arrival| arrival.0);
            while let Some(deadline) = engine.next_deadline().filter(|deadline| deadline.0 <= until) {
                engine.poll_inside(deadline, Duration::ZERO, &mut outputs);
                forward(deadline, &mut engine, &mut outputs, &mut punctual);
                engine.poll(deadline, &mut outputs);
                forward(deadline, &mut engine, &mut outputs, &mut punctual);
            }
            if let Some(arrival) = arrivals.get(step) {
                engine.receive(Time(arrival.0), PortId(0), frame(arrival), step);
            }
        }
        prop_assert_eq!(engine.totals(PortId(1), Side::Wire).late_arrivals, 0);

        let (mut engine, mut outputs, mut napping) = (new(), Vec::new(), Vec::new());
        let mut next = 0;
        let mut now = 0;
        while now < end {
            now = if next == arrivals.len() { end } else { arrivals[next].0 + nap };
            while next < arrivals.len() && arrivals[next].0 <= now {
                engine.receive(Time(arrivals[next].0), PortId(0), frame(&arrivals[next]), next);
                next += 1;
            }
            engine.poll_inside(Time(now), Duration(ahead), &mut outputs);
            forward(Time(now), &mut engine, &mut outputs, &mut napping);
            engine.poll(Time(now), &mut outputs);
            forward(Time(now), &mut engine, &mut outputs, &mut napping);
        }
        prop_assert_eq!(engine.totals(PortId(1), Side::Wire).late_arrivals, 0);
        prop_assert_eq!(packet_fates(&napping).len(), arrivals.len());
        prop_assert_eq!(packet_fates(&napping), packet_fates(&punctual));
    }
}

#[test]
fn late_arrivals_are_counted() {
    let mut engine: Engine<usize> = common::engine(10_000_000, Framing::Ethernet);
    let mut outputs = Vec::new();
    for payload in 0..3 {
        engine.transmit(Time(0), PORT, common::udp(1500, 0, Framing::Ethernet), payload);
    }
    // By now the second frame has left, and the third has been on the wire since 2460800.
    engine.poll(Time(3_000_000), &mut outputs);
    engine.transmit(Time(2_000_000), PORT, common::udp(100, 0, Framing::Ethernet), 3);
    assert_eq!(engine.totals(PORT, Side::Wire).late_arrivals, 0, "the start at 2460800 is not settled yet");
    engine.transmit(Time(2_000_000), PORT, common::udp(100, 0, Framing::Ethernet), 4);
    engine.poll(Time(20_000_000), &mut outputs);
    engine.transmit(Time(2_000_000), PORT, common::udp(100, 0, Framing::Ethernet), 5);
    let totals = engine.totals(PORT, Side::Wire);
    assert_eq!(totals.late_arrivals, 1);
    assert!(totals.latest_arrival_ns > 0);
}

/// A frame that a caller brings after a later one is counted with how far it is behind; two of one instant are in
/// order.
#[test]
fn frames_from_the_link_that_come_out_of_order_are_counted() {
    let mut engine: Engine<u64> = common::started(100_000_000, Framing::Ethernet, &with_policy(Hqf, 100_000, vec![]));
    for at in [100, 100, 60, 90, 200, 199] {
        engine.receive(Time(at * 1_000), PORT, common::udp(100, 0, Framing::Ethernet), at);
    }
    let totals = engine.totals(PORT, Side::Inside);
    assert_eq!((totals.late_arrivals, totals.latest_arrival_ns), (3, 40_000));
}
