//! Output of the examples. Those that read files only have to compile.

#[allow(dead_code)]
#[path = "../../examples/fair_queue.rs"]
mod fair_queue;
#[allow(dead_code)]
#[path = "../../examples/meter.rs"]
mod meter;
#[allow(dead_code)]
#[path = "../../examples/police.rs"]
mod police;
#[allow(dead_code)]
#[path = "../../examples/port.rs"]
mod port;
#[allow(dead_code)]
#[path = "../../examples/shape.rs"]
mod shape;

#[test]
fn a_policer_passes_its_rate_and_its_burst() {
    let printed = [
        "rate 1000000 b/s, burst 31250 bytes",
        "conformed  1262 packets, 1.024 Mb/s",
        "exceeded   1203 packets, 0.976 Mb/s",
    ];
    assert_eq!(police::report().unwrap(), printed);
}

#[test]
fn a_shaper_lets_its_burst_go_and_then_its_rate() {
    let printed = [
        "packet  leaves after",
        "    10  76.8 ms",
        "    20  156.8 ms",
        "    30  236.8 ms",
        "    40  320.8 ms",
        "    50  400.8 ms",
        "    60  480.8 ms",
        "    70  560.8 ms",
        "    80  644.8 ms",
        "    90  724.8 ms",
        "   100  804.8 ms",
        "waited 403.6 ms on average, 804.0 ms at most",
    ];
    assert_eq!(shape::report().unwrap(), printed);
}

#[test]
fn fair_queueing_gives_the_small_flow_all_that_it_asks_for() {
    let printed = [
        "offered  FIFO   fair queueing (Mb/s)",
        "   2.00   0.02   1.99",
        "   6.00   0.08   3.81",
        "  12.00   9.54   3.84",
    ];
    assert_eq!(fair_queue::report().unwrap(), printed);
}
