"""Queues, shapers and schedulers of the engine behave like those of the Linux kernel and of ns-3."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import against_tc
import against_tc_aqm
import kernel
import ns3_fifo
import ns3_red
import pytest
from intervals import Interval
from ns3_red import RedResult
from peer_programs import package_version
from peers_section import Comparison, markdown_table, wrap_paragraph

Note = Callable[[str, Comparison], None]
LARGEST_DIFFERENCE = 0.005
"""Greatest relative difference of mean rates."""
SHAPER_DIFFERENCE = 0.0001
"""Greatest difference of the rate of a single shaper."""
LARGEST_SHARE = {"CoDel": 0.002, "FQ-CoDel": 0.002, "PIE": 0.01, "CAKE": 0.01}
"""Greatest difference of the share of dropped packets of a flow, beyond its confidence interval."""
LARGEST_DELAY = {"CoDel": 0.02, "FQ-CoDel": 0.02, "PIE": 0.1, "CAKE": 0.1}
"""Greatest relative difference of a median delay, beyond its confidence interval."""


@pytest.mark.long
@pytest.mark.comparison("Shapers, schedulers and tc")
def test_mean_rates_equal_those_of_tc(note: Note) -> None:
    version = kernel.version()
    found = against_tc.compare_rates()
    alone = [each for each in found if each.policy.kind in ("TBF", "HTB")]
    shapers = [
        max(abs(each.engine_bps / each.policy.rate_bps - 1) for each in alone),
        max(abs(each.kernel_bps / each.policy.rate_bps - 1) for each in alone),
    ]
    rows = []
    for kind in against_tc.KINDS:
        mine = [each for each in found if each.policy.kind == kind]
        worst = max(mine, key=lambda each: abs(each.difference))
        policies = len({id(each.policy) for each in mine})
        rates = f"{worst.engine_bps:,.0f} and {worst.kernel_bps:,.0f}"
        rows.append((kind, policies, len(mine), rates, f"{100 * worst.difference:+.3f} %"))
    lines = [
        *wrap_paragraph(
            f"""Mean rates of classes, in b/s of layer-2 bytes, over {against_tc.WINDOW_S} s after
            {against_tc.WARM_UP_S} s, of random policies of 0.5 to 2 Mb/s in the engine (`shape average`, below it
            `bandwidth remaining ratio`, `priority` with `police`, or `fair-queue`) and in the kernel (virtual time as
            above). Classes are offered more than their shares, some less.
        A mean is the slope of a least-squares line through the received bytes."""
        ),
        "",
        *markdown_table(
            ("queueing disciplines", "policies", "classes", "largest difference: engine, kernel", "relative"), rows
        ),
        "",
        f"Shapers alone are within {1e6 * shapers[0]:.0f} millionths of their rate in the engine, and within "
        f"{1e6 * shapers[1]:.0f} in the kernel.",
    ]
    largest = max(abs(each.difference) for each in found)
    rates = [
        (one.policy.rate_bps, one.policy.classes[one.number - 1].offered_bps, one.engine_bps, one.kernel_bps)
        for one in found
    ]
    each = markdown_table(
        ("disciplines", "class", "rate, b/s", "offered, b/s", "engine, b/s", "kernel, b/s"),
        [(one.policy.kind, one.number, *(f"{rate:,.0f}" for rate in of)) for one, of in zip(found, rates, strict=True)],
    )
    result = f"means of {against_tc.POLICIES} policies within {100 * largest:.2f} %, "
    result += f"of shapers alone within {100 * max(shapers):.4f} % of the configured rate"
    note("Shapers, schedulers and tc", Comparison(f"Linux, user-mode-linux {version}", result, lines, each=list(each)))
    assert [each for each in found if abs(each.difference) > LARGEST_DIFFERENCE] == []
    assert max(shapers) <= SHAPER_DIFFERENCE


@pytest.mark.long
@pytest.mark.comparison("Active queue management and Linux")
def test_active_queue_management_drops_as_that_of_linux(note: Note) -> None:
    version = kernel.version()
    found = against_tc_aqm.compare_discipline()
    rows, phrases = [], []
    for name in LARGEST_SHARE:
        mine = [each for each in found if each.discipline == name]
        shares, delays = [each.dropped for each in mine], [each.p50_ms for each in mine]
        share, delay = (
            max(abs(each.difference) for each in shares),
            max(abs(each.relative_difference) for each in delays),
        )
        beyond = max(each.excess for each in shares), max(each.excess / each.theirs for each in delays)
        rows.append((name, *(f"{100 * value:.2f}" for value in (share, beyond[0], delay, beyond[1]))))
        phrases.append(f"{name} {100 * beyond[0]:.2f}")
    lines = [
        *wrap_paragraph(
            f"""The same packets at 1, 4 and 20 Mb/s in the engine and in the kernel (virtual time as above): two flows
            that exceed the rate for some seconds, pause, and start again, and a sparse flow. Each discipline is below
            an HTB, and CAKE has its own shaper. Engine and kernel carry the packets {against_tc_aqm.RUNS} times. CoDel
            and FQ-CoDel decide as in the kernel except for single packets: the engine, too, approximates the root of
            the control law by steps of Newton's method. PIE and the BLUE algorithm of CAKE drop at random, so that runs
            of the kernel differ, too. Two properties of Linux matter to PIE: the drop probability may exceed 1, which
            RFC 8033 does not permit (the engine permits it, too), and the timer expires a tick late (with ticks of
            10 ms, `tupdate 20ms` is an update each 30 ms, which the engine is configured to; its runs begin at random
            phases of the updates). One property matters to CAKE: the inverse root of the count of signals is 0 at
            first, so that the first signal of a queue comes at once, not after an interval. The table has the largest
            difference of a flow between the means of all runs, and the largest part of a difference outside its 95 %
            confidence interval: of dropped packets in percentage points, and of the median delay in percent."""
        ),
        "",
        *markdown_table(
            ("discipline", "drops: difference", "beyond interval", "delay: difference", "beyond interval"),
            rows,
        ),
    ]
    each = markdown_table(
        (
            *("discipline", "rate, Mb/s", "flow", "packets", "dropped, %", "in Linux", "±"),
            *("median delay, ms", "in Linux", "±"),
        ),
        [
            (
                *(one.discipline, f"{one.rate_bps / 1e6:.0f}", one.flow, f"{one.packets:,}"),
                *(f"{100 * share:.2f}" for share in (one.dropped.ours, one.dropped.theirs, one.dropped.half_width)),
                *(f"{delay:.2f}" for delay in (one.p50_ms.ours, one.p50_ms.theirs, one.p50_ms.half_width)),
            )
            for one in found
        ],
    )
    result = f"shares of dropped packets within {', '.join(phrases)} percentage points"
    title = "Active queue management and Linux"
    note(title, Comparison(f"Linux, user-mode-linux {version}", result, lines, each=list(each)))
    assert [one for one in found if one.dropped.excess > LARGEST_SHARE[one.discipline]] == []
    assert [one for one in found if one.p50_ms.excess > LARGEST_DELAY[one.discipline] * one.p50_ms.theirs] == []


@pytest.mark.long
@pytest.mark.comparison("FIFO queue and ns-3")
def test_fifo_drops_and_departures_equal_those_of_ns3(note: Note) -> None:
    version = package_version("libns3-dev")
    found = ns3_fifo.compare_fifo()
    rows = [
        (
            f"{each.rate_bps / 1e6:.3f} Mb/s, {each.hold_queue} packets",
            f"{each.load:.2f}",
            f"{each.dropped:,}",
            each.different_drops,
            each.different_times,
        )
        for each in found
    ]
    lines = wrap_paragraph(
        f"""The same {ns3_fifo.PACKETS:,} packets on each of {len(found)} lines, through the port of a router with
        `hold-queue` and through a `PointToPointNetDevice` with a `DropTailQueue`, whose limit includes the packet of
        the engine's transmit ring. Rates are {_range([each.rate_bps / 1e6 for each in found], 2)} Mb/s, queues
        {_range([each.hold_queue for each in found])} packets, loads {_range([each.load for each in found], 2)}. A byte
        takes whole nanoseconds; departures are compared to the nanosecond."""
    )
    listed = list(markdown_table(("line, queue", "load", "dropped", "different drops", "different departures"), rows))
    different = sum(each.different_drops + each.different_times for each in found)
    result = f"{different} of {sum(each.packets for each in found):,} drops and departures differ"
    note("FIFO queue and ns-3", Comparison(f"ns-3 {version}", result, lines, each=listed))
    assert different == 0


def _range(values: Sequence[float], digits: int = 0) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _outside(intervals: Sequence[Interval]) -> int:
    return sum(not each.contains_zero for each in intervals)


def _unexplained(each: RedResult) -> float:
    """Return the distance of a corrected difference from its interval, relative to the value, beyond half of the
    loss.
    """
    pairs = (each.loss_corrected, each.wait_corrected)
    return max((abs(one.difference) - one.half_width) / one.ours - each.loss.ours / 2 for one in pairs)


@pytest.mark.long
@pytest.mark.comparison("Random early detection and ns-3")
def test_random_early_detection_equals_that_of_ns3(note: Note) -> None:
    version = package_version("libns3-dev")
    found = ns3_red.compare_red()
    rows = [
        (
            f"{each.rate_bps / 1e6:.2f} Mb/s, {each.thresholds[0]} to {each.thresholds[1]} packets, {each.exponent}",
            f"{each.load:.3f}",
            *(_cell(each.loss, 100, 2), _cell(each.wait, 1000, 2)),
            *(_cell(each.loss_corrected, 100, 2), _cell(each.wait_corrected, 1000, 2)),
        )
        for each in found
    ]
    corrected = [each for one in found for each in (one.loss_corrected, one.wait_corrected)]
    largest = max((abs(each.difference) - each.half_width) / each.ours for each in corrected)
    head = ("line, thresholds, constant", "load", "loss, %", "wait, ms")
    listed = list(markdown_table((*head, "loss with ns-3's distance of drops, %", "wait with it, ms"), rows))
    lengths = [each.wait.theirs / each.wait.ours - 1 for each in found]
    lines = wrap_paragraph(
        f"""The same {ns3_red.PACKETS:,} packets with {ns3_red.SEEDS} seeds on each of {len(found)} lines of
        {_range([each.rate_bps / 1e6 for each in found], 2)} Mb/s: `random-detect` with an exponential weighting
        constant and a mark probability of 1 in {ns3_red.DENOMINATOR}, and a `RedQueueDisc`. Mean waits in ns-3 are
        {_range([-100 * each for each in lengths])} % shorter, because of one mechanism. The engine drops each
        packet with the probability p of the mean queue. ns-3 counts packets since the last drop (Floyd and Jacobson,
        1993): the distance of drops is uniform from 1 to 1/p,
        so that 2p/(1 + p) of all packets are dropped. In both programs this traffic loses the part that exceeds the
        rate of the line, but ns-3 drops it at a shorter mean queue.
        With p/(2 - loss) in ns-3 in
        place of p, the share at the same mean queue is the engine's, exactly so at the mean queue:
        {_outside(corrected)} of {len(corrected)} intervals do not contain zero then.
        At other queue lengths, the slope of the share differs by half of the loss (1 - loss/2): the remaining
        difference is at most
        {100 * largest:.1f} %, and
        in each case less than that. Cisco's documents do not mention the count; the engine's rule is an inference."""
    )
    result = f"one mechanism differs; apart from it loss and wait are within {100 * largest:.1f} %"
    note("Random early detection and ns-3", Comparison(f"ns-3 {version}", result, lines, each=listed))
    assert [each for each in found if _unexplained(each) > 0] == []


def _cell(each: Interval, scale: float, digits: int) -> str:
    text = f"{each.ours * scale:.{digits}f}, {each.theirs * scale:.{digits}f} ± {each.half_width * scale:.{digits}f}"
    return text if each.contains_zero else f"**{text}**"
