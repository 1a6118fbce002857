//! Propagation delay, jitter and loss of a link, exact to the engine's clock and reproducible from the seed.

use crate::common::build::*;
use crate::common::{self, udp, MILLI, SECOND};
use proptest::prelude::*;
use qos_core::wire::Framing;
use qos_core::{ConfigError, DropReason, Duration, Engine, Output, PortId, Side, Time};

const WAN: PortId = PortId(1);

/// A link of 10 Mb/s with this delay.
fn link(delay_ns: u64) -> LinkConfig {
    LinkConfig::new(10_000_000, Framing::Ethernet).delay(Duration(delay_ns))
}

/// Jitter without correlation, which overtakes nothing.
fn jitter(distribution: JitterDistribution, ns: u64) -> JitterConfig {
    JitterConfig { distribution, ns, correlation: 0.0, reorder: false }
}

fn random(probability: f64) -> LossConfig {
    LossConfig::Random { probability }
}

/// Bursts in which everything is lost, and nothing outside them.
fn bursts(p: f64, r: f64) -> LossConfig {
    LossConfig::GilbertElliott { p, r, loss_good: 0.0, loss_bad: 1.0 }
}

/// Two ports, `Lan` without delay and `Wan` with the given link.
fn router(link: &LinkConfig) -> Engine<u64> {
    let lan = LinkConfig::new(100_000_000, Framing::Ethernet);
    let ports = PortsConfig::new().port("Lan", PortConfig::new(lan)).port("Wan", PortConfig::new(link.clone()));
    Engine::new(&ports, Time(0)).unwrap()
}

/// Sends frames of 46 bytes (72 us each at 10 Mb/s with padding) at even distances by the WAN; returns each one's time
/// on the way beyond its line time, None for a lost one, in the order in which they were sent.
fn crossing_times(link: &LinkConfig, frames: u64, gap_ns: u64, side: Side) -> Vec<Option<i64>> {
    let mut engine = router(link);
    let mut outputs = Vec::new();
    for number in 0..frames {
        let at = Time(number * gap_ns);
        engine.poll(at, &mut outputs);
        match side {
            Side::Wire => engine.transmit(at, WAN, udp(46, 0, Framing::Ethernet), number),
            Side::Inside => engine.receive(at, WAN, udp(46, 0, Framing::Ethernet), number),
        }
    }
    common::run(&mut engine, Time(frames * gap_ns + 3_600 * SECOND), &mut outputs);
    engine.audit().unwrap();
    let lost = engine.totals(WAN, side).dropped[DropReason::Lost as usize].packets;
    let counters = engine.counters(Time(frames * gap_ns + 3_600 * SECOND), Some(WAN)).interfaces["Wan"].clone();
    let shown = if side == Side::Wire { counters.link.output } else { counters.link.input };
    assert_eq!((shown.lost.packets, shown.in_flight), (lost, 0));
    let known = if side == Side::Wire { counters.output } else { counters.input };
    assert_eq!(known.drops, 0, "no router knows of what its link lost");
    assert_eq!(known.packets, if side == Side::Wire { frames } else { frames - lost });
    let mut times = vec![None; frames as usize];
    for output in outputs {
        if let Output::Departure(departure) = output {
            let line = udp(46, 0, Framing::Ethernet).line_len;
            let ready = departure.payload * gap_ns + u64::from(line) * 8 * 100;
            times[departure.payload as usize] = Some(departure.time.0 as i64 - ready as i64);
        }
    }
    assert_eq!(times.iter().filter(|time| time.is_none()).count() as u64, lost);
    times
}

/// Mean, standard deviation, and correlation of neighbours.
fn mean_and_deviation(values: &[i64]) -> (f64, f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<i64>() as f64 / count;
    let apart: Vec<f64> = values.iter().map(|value| *value as f64 - mean).collect();
    let variance = apart.iter().map(|value| value * value).sum::<f64>() / count;
    let covariance = apart.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / (count - 1.0);
    (mean, variance.sqrt(), covariance / variance)
}

/// Two engines with a link between them, of which each does its half.
#[test]
fn a_link_between_two_routers_takes_its_delay_once() {
    let jitter = Some(jitter(JitterDistribution::Uniform, 5_000_000));
    let link = LinkConfig { jitter, loss: Some(random(0.1)), ..link(25_000_001) };
    let ports = PortsConfig::new().port("Wan", PortConfig { paced_by_peer: true, ..PortConfig::new(link) });
    let new = || Engine::<u64>::new(&ports, Time(0)).unwrap();
    let (mut near, mut far) = (new(), new());
    let (frames, gap_ns, frame) = (2_000, MILLI, udp(46, 0, Framing::Ethernet));
    let mut outputs = Vec::new();
    (0..frames).for_each(|number| near.transmit(Time(number * gap_ns), PortId(0), frame, number));
    common::run(&mut near, Time(3_600 * SECOND), &mut outputs);
    assert_eq!(outputs.len() as u64, frames, "what is lost is lost in the second half");
    let line_ns = u64::from(frame.line_len) * 800;
    for output in std::mem::take(&mut outputs) {
        let Output::Departure(half) = output else { panic!("{output:?}") };
        assert_eq!(half.time.0 - half.payload * gap_ns - line_ns, (25_000_001 - 5_000_000) / 2);
        far.receive(half.time, PortId(0), half.descriptor, half.payload);
    }
    common::run(&mut far, Time(3_600 * SECOND), &mut outputs);
    let times: Vec<i64> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Departure(there) => Some(there.time.0 as i64 - (there.payload * gap_ns + line_ns) as i64),
            Output::Dropped(_) => None,
        })
        .collect();
    assert!((1_700..1_900).contains(&times.len()), "{}", times.len());
    assert!(times.iter().all(|time| (20_000_001..=30_000_001 + MILLI as i64 * 5).contains(time)));
    assert!(times.iter().any(|time| *time < 21_000_000), "nothing that could be early was");
}

/// The caller's stack needs time: frames that only wait for their delay can be taken before it is over.
#[test]
fn frames_in_flight_can_be_polled_ahead_of_arrival() {
    let frame = udp(46, 0, Framing::Ethernet);
    let arrives = u64::from(frame.line_len) * 800 + 20 * MILLI;
    let inside = |now: u64, ahead: u64| {
        let mut engine = router(&link(20 * MILLI));
        engine.receive(Time(0), WAN, frame, 0);
        let mut outputs = Vec::new();
        engine.poll_inside(Time(now), Duration(ahead), &mut outputs);
        let times: Vec<u64> = common::departures(&outputs).iter().map(|(time, _, _)| time.0).collect();
        (times, outputs.len())
    };
    assert_eq!(inside(arrives, 0), (vec![arrives], 1));
    assert_eq!(inside(arrives + 7 * MILLI, 0), (vec![arrives], 1), "a late caller has it with the time when it came");
    assert_eq!(inside(arrives - 1, 0), (vec![], 0));
    assert_eq!(inside(arrives - 5 * MILLI, 5 * MILLI), (vec![arrives], 1));
    assert_eq!(inside(arrives - 5 * MILLI - 1, 5 * MILLI), (vec![], 0));
    // Not before the whole frame was on the line: a later frame could be first.
    assert_eq!(inside(arrives - 20 * MILLI, 3_600 * SECOND), (vec![arrives], 1));
    assert_eq!(inside(arrives - 20 * MILLI - 1, 3_600 * SECOND), (vec![], 0));
}

#[test]
fn round_trip_takes_the_configured_delay() {
    for round_trip_ms in [10, 50, 100] {
        let mut engine = router(&link(round_trip_ms * MILLI / 2));
        let mut outputs = Vec::new();
        // An echo request of 84 bytes from the LAN via the WAN and back, with event times.
        let (request, line) = (udp(84, 0, Framing::Ethernet), 84 + 38);
        engine.receive(Time(0), PortId(0), request, 0);
        let mut came = None;
        while let Some(deadline) = engine.next_deadline() {
            engine.poll(deadline, &mut outputs);
            for output in std::mem::take(&mut outputs) {
                let Output::Departure(departure) = output else { panic!("nothing is dropped") };
                match (departure.side, departure.port) {
                    (Side::Inside, PortId(0)) => engine.transmit(departure.time, WAN, request, 0),
                    // The host at the other end answers at once.
                    (Side::Wire, WAN) => engine.receive(departure.time, WAN, request, 0),
                    (Side::Inside, _) => engine.transmit(departure.time, PortId(0), request, 0),
                    (Side::Wire, _) => came = Some(departure.time),
                }
            }
        }
        let line_time = 2 * (line * 8 * 10 + line * 8 * 100);
        assert_eq!(came, Some(Time(round_trip_ms * MILLI + line_time)));
    }
}

#[test]
fn long_fat_link_keeps_all_frames_in_flight() {
    let mut engine: Engine<u64> = router(&LinkConfig { rate_bps: 50_000_000, ..link(100 * MILLI) });
    let mut outputs = Vec::new();
    // Twice the bandwidth-delay product in the shortest frames, both ways, at line rate: 84 bytes take 13.44 us.
    let frames = 2 * 100 * MILLI / 13_440;
    for number in 0..frames {
        let at = Time(number * 13_440);
        engine.transmit(at, WAN, udp(46, 0, Framing::Ethernet), number);
        engine.receive(at, WAN, udp(46, 0, Framing::Ethernet), number);
        engine.poll(at, &mut outputs);
    }
    let most = engine.counters(Time(frames * 13_440), Some(WAN)).interfaces["Wan"].link;
    assert!(most.output.in_flight > 7_400 && most.input.in_flight > 7_400, "{most:?}");
    common::run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(common::departures(&outputs).len() as u64, 2 * frames);
    for side in [Side::Wire, Side::Inside] {
        let totals = engine.totals(WAN, side);
        assert_eq!((totals.sent.packets, totals.queued.packets), (frames, 0));
    }
}

#[test]
fn delays_follow_the_configured_distribution() {
    let size = 2.0 * MILLI as f64;
    for side in [Side::Wire, Side::Inside] {
        for correlation in [0.0, 0.9] {
            for (distribution, mean, deviation) in [
                (JitterDistribution::Uniform, 20.0 * MILLI as f64, size / 3f64.sqrt()),
                (JitterDistribution::Normal, 20.0 * MILLI as f64, size),
                (JitterDistribution::Exponential, 20.0 * MILLI as f64 + size, size),
            ] {
                let jitter = JitterConfig { correlation, reorder: true, ..jitter(distribution, 2 * MILLI) };
                let link = LinkConfig { jitter: Some(jitter), seed: 11, ..link(20 * MILLI) };
                let times: Vec<i64> = crossing_times(&link, 20_000, MILLI, side).into_iter().flatten().collect();
                let (found_mean, found_deviation, neighbours) = mean_and_deviation(&times);
                // The deviation of the mean of 20 000 values that correlate by 0.9 is four times as large.
                assert!((found_mean - mean).abs() < 0.1 * deviation, "{distribution:?}: mean {found_mean}");
                assert!((found_deviation / deviation - 1.0).abs() < 0.1, "{distribution:?}: {found_deviation}");
                // A copula's correlation is that of the normal sequence; of others it is a little less.
                assert!((neighbours - correlation).abs() < 0.1, "{distribution:?}: {neighbours}");
                if distribution == JitterDistribution::Uniform {
                    assert!(times.iter().all(|time| (*time - 20_000_000).abs() <= 2_000_000));
                }
            }
        }
    }
}

#[test]
fn frames_are_reordered_only_if_allowed() {
    let overtaken = |reorder: bool| {
        let jitter = JitterConfig { reorder, ..jitter(JitterDistribution::Uniform, 10 * MILLI) };
        let times = crossing_times(&LinkConfig { jitter: Some(jitter), ..link(20 * MILLI) }, 1_000, MILLI, Side::Wire);
        let arrivals: Vec<i64> = times.into_iter().flatten().zip(0..).map(|(t, n)| t + n * MILLI as i64).collect();
        arrivals.windows(2).filter(|pair| pair[0] > pair[1]).count()
    };
    assert_eq!(overtaken(false), 0);
    assert!(overtaken(true) > 300);
}

#[test]
fn losses_follow_the_configured_rate_and_burst_length() {
    let frames = 100_000;
    let lost = |loss: LossConfig| -> Vec<bool> {
        let times =
            crossing_times(&LinkConfig { loss: Some(loss), seed: 5, ..link(0) }, frames, MILLI / 10, Side::Wire);
        times.iter().map(Option::is_none).collect()
    };
    let share = |lost: &[bool]| lost.iter().filter(|lost| **lost).count() as f64 / frames as f64;
    let count_bursts = |lost: &[bool]| lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;

    let random = lost(self::random(0.02));
    assert!((share(&random) - 0.02).abs() < 0.002);
    assert!((share(&random) * frames as f64 / count_bursts(&random) - 1.0 / 0.98).abs() < 0.02);

    let burst = lost(bursts(0.005, 0.2));
    assert!((share(&burst) - 0.005 / 0.205).abs() < 0.004, "{}", share(&burst));
    let length = share(&burst) * frames as f64 / count_bursts(&burst);
    assert!((length - 5.0).abs() < 0.5, "bursts of {length}");

    let partly = lost(LossConfig::GilbertElliott { p: 0.005, r: 0.2, loss_good: 0.01, loss_bad: 0.5 });
    let expected = 0.01 * 0.2 / 0.205 + 0.5 * 0.005 / 0.205;
    assert!((share(&partly) - expected).abs() < 0.003, "{}", share(&partly));
    assert!(lost(self::random(1.0)).iter().all(|lost| *lost));
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// The seed decides, and nothing else; another loss leaves the jitter as it was, and the two directions differ.
    #[test]
    fn seed_determines_delay_and_loss(seed in any::<u64>(), probability in 0.01f64..0.5) {
        let jitter = JitterConfig { correlation: 0.3, reorder: true, ..jitter(JitterDistribution::Normal, MILLI) };
        let link = |seed: u64, loss: Option<LossConfig>| {
            LinkConfig { jitter: Some(jitter), loss, seed, ..link(5 * MILLI) }
        };
        let random = Some(random(probability));
        let first = crossing_times(&link(seed, random), 300, MILLI, Side::Wire);
        prop_assert_eq!(&first, &crossing_times(&link(seed, random), 300, MILLI, Side::Wire));
        let all = crossing_times(&link(seed, None), 300, MILLI, Side::Wire);
        for (with, without) in first.iter().zip(&all) {
            prop_assert!(with.is_none() || with == without);
        }
        prop_assert_ne!(&all, &crossing_times(&link(seed, None), 300, MILLI, Side::Inside));
        prop_assert_ne!(&all, &crossing_times(&link(seed ^ 1, None), 300, MILLI, Side::Wire));
    }

    /// A caller that sleeps finds the same fates as one that is there for each frame.
    #[test]
    fn late_caller_gets_the_same_delays_and_losses(nap in 1u64..400, seed in any::<u64>(), reorder in any::<bool>()) {
        let jitter = JitterConfig { reorder, ..jitter(JitterDistribution::Exponential, 4 * MILLI) };
        let link = LinkConfig { jitter: Some(jitter), loss: Some(bursts(0.1, 0.4)), seed, ..link(20 * MILLI) };
        let fates = |every: u64| {
            let (mut engine, mut outputs) = (router(&link), Vec::new());
            for number in 0..500 {
                if number % every == 0 {
                    engine.poll(Time(number * MILLI / 4), &mut outputs);
                }
                engine.transmit(Time(number * MILLI / 4), WAN, udp(300, 0, Framing::Ethernet), number);
            }
            engine.poll(Time(SECOND), &mut outputs);
            outputs
        };
        let departed = |outputs: &[Output<u64>]| common::departures(outputs);
        prop_assert_eq!(departed(&fates(1)), departed(&fates(nap)));
    }
}

/// A serial link of 1 ms with this jitter and loss in an engine.
fn serial(jitter: Option<JitterConfig>, loss: Option<LossConfig>) -> Result<(), ConfigError> {
    let link = LinkConfig::new(1_000_000, Framing::Ppp).delay(Duration::from_millis(1));
    let ports = PortsConfig::new().port("S", PortConfig::new(LinkConfig { jitter, loss, ..link }));
    Engine::<()>::new(&ports, Time(0)).map(drop)
}

#[test]
fn impossible_jitter_and_loss_are_refused() {
    use JitterDistribution::{Exponential, Normal, Uniform};
    let correlated = JitterConfig { correlation: 1.0, ..jitter(Uniform, 5) };
    for (jitter, loss, path) in [
        (Some(jitter(Uniform, 1_000_001)), None, "jitter.ns"),
        (Some(jitter(Normal, 250_001)), None, "jitter.ns"),
        (Some(jitter(Exponential, 0)), None, "jitter.ns"),
        (Some(correlated), None, "jitter.correlation"),
        (None, Some(random(1.01)), "loss.probability"),
        (None, Some(bursts(0.1, 0.0)), "loss.r"),
        (None, Some(bursts(-0.1, 0.1)), "loss.p"),
    ] {
        assert_eq!(serial(jitter, loss).unwrap_err().path, format!("ports.S.link.{path}"), "{jitter:?} {loss:?}");
    }
    let unknown = r#"{"ports": {"S": {"inside": "i", "wire": "w", "paced_by_peer": false,
        "link": {"rate_bps": 1, "framing": "ppp", "loss": {"model": "none"}}}}}"#;
    assert!(PortsConfig::from_json(unknown).unwrap_err().to_string().contains("gilbert_elliott"));
}

/// Extreme values are accepted: jitter as large as the delay, or a channel that never turns bad.
#[test]
fn limiting_values_of_jitter_and_loss_are_accepted() {
    use JitterDistribution::{Exponential, Normal, Uniform};
    for jitter in [jitter(Uniform, 1_000_000), jitter(Normal, 250_000), jitter(Exponential, 1), jitter(Uniform, 5)] {
        assert_eq!(serial(Some(jitter), None), Ok(()), "{jitter:?}");
    }
    for loss in [random(0.0), random(1.0), bursts(0.0, 0.0), bursts(0.1, 1.0)] {
        assert_eq!(serial(None, Some(loss)), Ok(()), "{loss:?}");
    }
}
