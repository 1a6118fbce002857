"""The engine's queues, shapers and schedulers behave as those of the Linux kernel and of ns-3."""

from __future__ import annotations

from collections.abc import Callable

import against_tc
import kernel
import ns3_fifo
import pytest
from peer_programs import package_version
from peers_section import Comparison, paragraph, table

Note = Callable[[str, Comparison], None]
LARGEST_DIFFERENCE = 0.005
"""Relative difference of mean rates."""
SHAPER_DIFFERENCE = 0.0001
"""Of the rate of a shaper alone."""


@pytest.mark.long
@pytest.mark.comparison("Shapers, schedulers and tc")
def test_mean_rates_are_those_of_tc(note: Note) -> None:
    version = kernel.version()
    found = against_tc.compare()
    rows = []
    for kind in against_tc.KINDS:
        mine = [each for each in found if each.policy.kind == kind]
        worst = max(mine, key=lambda each: abs(each.difference))
        policies = len({id(each.policy) for each in mine})
        rates = f"{worst.engine_bps:,.0f} and {worst.kernel_bps:,.0f}"
        rows.append((kind, policies, len(mine), rates, f"{100 * worst.difference:+.3f} %"))
    lines = [
        *paragraph(
            f"""Mean rates of classes, in b/s of layer-2 bytes, over {against_tc.WINDOW_S} s after
            {against_tc.WARM_UP_S} s, of random policies of 0.5 to 2 Mb/s in the engine (`shape average`, below it
            `bandwidth remaining ratio`, `priority` with `police`, or `fair-queue`) and in the kernel (virtual time as
            above). Classes are offered more than their shares, some less. A mean counts from the first to the
            last packet of a class. Queues that a scheduler serves by turns differ by up to a packet at both ends."""
        ),
        "",
        *table(("queueing disciplines", "policies", "classes", "largest difference: engine, kernel", "relative"), rows),
    ]
    shapers = [abs(each.difference) for each in found if each.policy.kind in ("TBF", "HTB")]
    largest = max(abs(each.difference) for each in found)
    result = f"means of {against_tc.POLICIES} policies within {100 * largest:.2f} %, "
    result += f"of shapers alone within {100 * max(shapers):.3f} %"
    note("Shapers, schedulers and tc", Comparison(f"Linux, user-mode-linux {version}", result, lines))
    assert [each for each in found if abs(each.difference) > LARGEST_DIFFERENCE] == []
    assert max(shapers) <= SHAPER_DIFFERENCE


@pytest.mark.long
@pytest.mark.comparison("FIFO queue and ns-3")
def test_fifo_drops_and_departures_are_those_of_ns3(note: Note) -> None:
    version = package_version("libns3-dev")
    found = ns3_fifo.compare()
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
    lines = [
        *paragraph(
            f"""The same {ns3_fifo.PACKETS:,} packets on each of {len(found)} lines, through the port of a router with
            `hold-queue` and through a `PointToPointNetDevice` with a `DropTailQueue`, whose limit includes the packet
            of the engine's transmit ring. A byte takes whole nanoseconds; departures are compared to the
            nanosecond."""
        ),
        "",
        *table(("line, queue", "load", "dropped", "different drops", "different departures"), rows),
    ]
    different = sum(each.different_drops + each.different_times for each in found)
    result = f"{different} of {sum(each.packets for each in found):,} drops and departures differ"
    note("FIFO queue and ns-3", Comparison(f"ns-3 {version}", result, lines))
    assert different == 0
