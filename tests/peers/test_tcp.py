"""TCP of the simulator behaves like that of Linux, and its differences from ns-3 are explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

import against_ns3
import kernel
import ns3_causes
import pytest
from against_ns3 import METRICS, PathResult
from intervals import MIN_LISTED_DIFFERENCE, Interval
from ns3_causes import Causes
from peer_programs import package_version
from peers_section import Comparison, markdown_table, wrap_paragraph

Note = Callable[[str, Comparison], None]
SCALES = {"goodput_bps": (1e-6, "Mb/s", 3), "loss": (100, "%", 2), "delay_s": (1000, "ms", 1)}
"""Factor, unit and digits of a metric on the page."""
NAMES = {"goodput_bps": "goodput", "loss": "loss", "delay_s": "wait"}
LIMITS = {"goodput_bps": 0.02, "loss": 0.1, "delay_s": 0.05}
"""Relative difference from Linux beyond its interval at which the test fails: more than the findings on the page."""

UNEXPLAINED_PATH = 5
"""Number of the path with a finding against Linux that no mechanism explains."""
SIMILAR_STEPS = (-3, -2, -1, 1, 2, 3)
"""Packets, and milliseconds, by which similar paths differ."""


def _cell(result: PathResult, metric: str) -> str:
    scale, _, digits = SCALES[metric]
    parts = [f"{result.against('linux', metric).ours * scale:.{digits}f}"]
    for peer in ("linux", "ns3"):
        found = result.against(peer, metric)
        text = f"{found.theirs * scale:.{digits}f} ± {found.half_width * scale:.{digits}f}"
        parts.append(text if found.contains_zero else f"**{text}**")
    return ", ".join(parts)


def is_closer_to_simulator(result: PathResult, metric: str) -> bool:
    """Return whether the simulator agrees with Linux, or is at least closer to it than to ns-3."""
    linux, ns3 = result.against("linux", metric), result.against("ns3", metric)
    return linux.contains_zero or abs(linux.difference) < abs(linux.theirs - ns3.theirs)


def explanation(result: PathResult) -> str:
    """Return why the simulator differs from ns-3 on a path; empty if it does not."""
    different = [metric for metric in METRICS if not result.against("ns3", metric).contains_zero]
    if not different:
        return ""
    count = {key: sum(run[key] for run in result.ns3) for key in ("recoveries", "timeouts", "dropped")}
    reductions = count["recoveries"] + count["timeouts"]
    text = [f"{count['dropped'] / reductions:.1f} drops a reduction"] if reductions else []
    if count["timeouts"]:
        text.append(f"{count['timeouts'] / len(result.ns3):.0f} timeouts")
    if result.case.control == "cubic" and not result.ns3[0]["reno_friendly"]:
        text.append("no Reno-friendly region")
    with_linux = [NAMES[metric] for metric in different if is_closer_to_simulator(result, metric)]
    judge = f"; Linux is with the simulator ({', '.join(with_linux)})" if with_linux else ""
    return f"ns-3: {', '.join(text)}{judge}"


def findings(results: Sequence[PathResult]) -> Iterator[tuple[str, float]]:
    """Yield the differences from Linux whose intervals do not contain zero: path and metric, relative difference."""
    for number, result in enumerate(results, 1):
        for metric in METRICS:
            linux = result.against("linux", metric)
            if not linux.contains_zero:
                yield f"path {number}, {NAMES[metric]}", linux.difference / linux.theirs


def excess_difference(result: PathResult, metric: str) -> float:
    """Return the relative difference from Linux beyond its interval, from Linux without PSH if available."""
    linux = result.against("linux_without_push" if result.linux_without_push else "linux", metric)
    return max(0.0, abs(linux.difference) - linux.half_width) / linux.theirs


def without_push(numbered: Sequence[tuple[int, PathResult]]) -> list[str]:
    """Return the paragraph on segments with PSH, and the findings on paths on which the router cleared it, too."""
    left = [(number, each, metric) for number, each in numbered for metric in each.findings("linux_without_push")]
    gone = sum(len(each.findings("linux")) for _, each in numbered) - len(left)
    return wrap_paragraph(
        f"""One cause is PSH. A packet is lost when the window grows beyond the capacity of path and queue. The window
        grows again after a whole window of acknowledgements, at the time when the first SACK arrives.
        If this growth comes before fast
        recovery, it costs a second packet;
        this depends on the pairs of segments that are acknowledged together. Linux also sets PSH when the sending
        program waits for room in its buffer,
        and acknowledges a full
        segment with PSH at once (commit 4720852ed9af, October 2023), which shifts the pairs. RFC 9293 and RFC 5681
        allow both. Senders of the simulator set PSH only at the end of a write.
        Linux measured the paths with these findings again, while the router cleared PSH:
        {gone} findings are gone. Those that remain:
        {"; ".join(map(remaining, *zip(*left, strict=True))) if left else "none"}."""
    )


def remaining(number: int, result: PathResult, metric: str) -> str:
    """Return a finding without PSH with the range of the simulator's values on nearly the same paths."""
    scale, unit, digits = SCALES[metric]
    found = result.against("linux_without_push", metric)
    near = [run[metric] * scale for run in result.nearby]
    longer = result.against("linux_longer", metric)
    case, more = result.case, digits + 1
    return (
        f"path {number} ({case.control} x {case.connections}, {case.rate_bps / 1e6:.2f} Mb/s, {case.delay_ns / 1e6:.0f}"
        f" ms, {case.hold_queue} packets), {NAMES[metric]} {100 * found.difference / found.theirs:+.1f} %: Linux"
        f" {found.theirs * scale:.{more}f}, the simulator {found.ours * scale:.{more}f}, with a packet or 1 ms more or"
        f" less {min(near):.{more}f} to {max(near):.{more}f} {unit}; over"
        f" {against_ns3.LONG_SECONDS - against_ns3.WARM_UP_S} s Linux {longer.theirs * scale:.{more}f}, the simulator"
        f" {longer.ours * scale:.{more}f} ({100 * longer.difference / longer.theirs:+.1f} %,"
        f" {'within' if longer.contains_zero else 'outside'} the interval)"
    )


def _limits() -> str:
    return ", ".join(f"{100 * limit:.0f} % of {NAMES[metric]}" for metric, limit in LIMITS.items())


@pytest.mark.long
@pytest.mark.comparison("TCP, ns-3 and Linux")
def test_simulated_tcp_behaves_like_linux(note: Note) -> None:
    versions = f"ns-3 {package_version('libns3-dev')}; Linux, user-mode-linux {kernel.version()}"
    results = against_ns3.compare_all()
    rows = [
        (
            f"{number}: {each.case.control} x {each.case.connections}, {each.case.rate_bps / 1e6:.2f} Mb/s, "
            f"{each.case.delay_ns / 1e6:.0f} ms, {each.case.hold_queue}",
            *(_cell(each, metric) for metric in METRICS),
            explanation(each),
        )
        for number, each in enumerate(results, 1)
    ]
    head = [f"{NAMES[metric]}, {SCALES[metric][1]}" for metric in METRICS]
    result, lines = _summary(results)
    listed = list(markdown_table(("path", *head, "differences from ns-3"), rows))
    note("TCP, ns-3 and Linux", Comparison(versions, result, lines, each=listed))
    pairs = [(each, metric) for each in results for metric in METRICS]
    assert [(each.case, metric) for each, metric in pairs if excess_difference(each, metric) > LIMITS[metric]] == []


@pytest.mark.long
@pytest.mark.comparison("TCP and Linux on similar paths")
def test_simulated_tcp_behaves_like_linux_over_similar_paths(note: Note) -> None:
    case = against_ns3.random_paths()[UNEXPLAINED_PATH - 1]
    found = against_ns3.compare_similar_paths(case, SIMILAR_STEPS)
    paths, most = 1 + 2 * len(SIMILAR_STEPS), max(SIMILAR_STEPS)
    shown = [f"{NAMES[metric]} {_percent_interval(each)}" for metric, each in found.items()]
    lines = wrap_paragraph(
        f"""One finding against Linux has no cause in a mechanism (path {UNEXPLAINED_PATH}, above). With up to {most}
        packets of the queue or {most} ms of delay more or less, the differences of this path have both signs. Mean
        differences over {paths} such paths, without PSH: {"; ".join(shown)}. The finding is the phase of one cycle."""
    )
    version = f"Linux, user-mode-linux {kernel.version()}"
    note("TCP and Linux on similar paths", Comparison(version, f"mean over {paths} paths: {', '.join(shown)}", lines))
    assert [metric for metric, each in found.items() if each.is_finding] == []


def _summary(results: Sequence[PathResult]) -> tuple[str, list[str]]:
    """Return the result in a phrase, and the text of the page."""
    pairs = [(each, metric) for each in results for metric in METRICS]
    different = [pair for pair in pairs if not pair[0].against("ns3", pair[1]).contains_zero]
    judged = [pair for pair in different if is_closer_to_simulator(*pair)]
    found = list(findings(results))
    open_ = [f"{name} {100 * share:+.1f} %" for name, share in found if abs(share) >= MIN_LISTED_DIFFERENCE]
    lines = [
        *wrap_paragraph(
            f"""Connections through a FIFO queue on {len(results)} random paths, {against_ns3.SECONDS} s without the
            first {against_ns3.WARM_UP_S}: {against_ns3.SEEDS} runs of the simulator and of ns-3,
            {against_ns3.LINUX_RUNS} of Linux in virtual time with `netem` as line. A difference counts if zero is
            outside its 95 % confidence interval. All use SACK and timestamps; none uses RACK, tail loss probes and
            F-RTO, which ns-3 lacks. Hosts of the simulator have no random delays, and a clock of
            {1e9 / against_ns3.TICK_NS:.0f} Hz like that of user-mode Linux. The delays of both peers include the line
            time of acknowledgements. The least timeout of ns-3, which it compares with the sum of round trip and
            variance, is a full round trip longer than that of Linux, which adds it."""
        ),
        "",
        *wrap_paragraph(
            f"""ns-3: {len(different)} of {len(pairs)} values differ; in {len(judged)} of these Linux, the simulator's
            model, is with the simulator or nearer to it than to ns-3.
        The FIFO queue is not the cause: with the same packets it gives the same results (above).
        The causes are measured below."""
        ),
        "",
        *wrap_paragraph(
            f"""Linux: {len(found)} of {len(pairs)} values differ ({len(pairs) * 0.05:.0f} are expected by chance),
            {len(found) - len(open_)} of them by less than 1 %; the others: {"; ".join(open_) or "none"}. The paths have
            the same rate, the same queue to the packet and the same round trip, also of acknowledgements: these are
            differences of the model. The test accepts at most {_limits()} beyond the interval, on paths with findings
            beyond that of Linux without PSH."""
        ),
        "",
        *without_push([(number, each) for number, each in enumerate(results, 1) if each.linux_without_push]),
        "",
        *wrap_paragraph(
            """For a single connection, the differences come from single packets. Without random delays the connection
        settles in a cycle: the window grows to the same size, the same number of packets is lost, and the next
        cycle repeats this to the packet. Runs of one peer then differ only in the phase at which the measurement
        begins, so intervals are narrow, and a cycle has few drops. The last growth of the window falls shortly
        before or after the acknowledgement that starts fast recovery, so it costs a packet in each cycle or in
        none. In the simulator, one packet more in the queue or a millisecond of delay decides this, and so does the
        clock of CUBIC:
        Linux follows its curve by whole ticks (here 10 ms). By ticks, the simulator loses 4 and 2
            packets in turn at the reductions of path 10, as Linux; by the exact time it lost 5 and 2.
        With one packet more or less in the queue it loses 4 and 1, and Linux loses 21 packets in 60 s instead of
        26. An incomplete cycle at the end of the measurement also changes the result by some drops, so the
        remaining findings are measured over a longer time."""
        ),
    ]
    result = f"{len(pairs) - len(different)} of {len(pairs)} values as ns-3's, {len(judged)} of the others nearer to "
    excess = 100 * max(excess_difference(each, "goodput_bps") for each in results)
    result += f"Linux's; goodput within {excess:.1f} % of Linux's"
    return result, lines


@pytest.mark.long
@pytest.mark.comparison("Causes of differences from ns-3")
def test_differences_from_ns3_have_measured_causes(note: Note) -> None:
    results = ns3_causes.compare()
    pairs = [(each, metric) for each in results for metric in METRICS]
    usual = [(each, metric) for each, metric in pairs if not each.usual[metric].contains_zero]
    left = [(each, metric) for each, metric in pairs if not each.like_linux[metric].contains_zero]
    means = {
        metric: [100 * fmean(abs(part[metric].relative_difference) for part in parts) for parts in _both(results)]
        for metric in METRICS
    }
    shown = [
        (f"{text} (path {ns3_causes.SHOWN[name]}: {_percent(each.like_linux)} with all, {_percent(found)} without)")
        for name, text in ns3_causes.MECHANISMS.items()
        for each in results
        for other, found in each.without.items()
        if other == name
    ]
    small = [pair for pair in left if abs(pair[0].like_linux[pair[1]].relative_difference) < MIN_LISTED_DIFFERENCE]
    open_ = [
        f"path {number}, {NAMES[metric]} {100 * each.like_linux[metric].relative_difference:+.1f} % (with delays"
        f" {_percent_interval(each.with_delays[metric])})"
        for number, each in enumerate(results, 1)
        for metric in each.remaining()
    ]
    gone = [metric for each in results for metric in each.remaining() if not each.with_delays[metric].is_finding]
    lines = [
        *wrap_paragraph(
            f"""ns-3 with mechanisms of Linux in place of its own (`tests/peers/ns3_like_linux.h`), on the paths above,
            {len(ns3_causes.SEEDS)} runs each. {len(usual)} of {len(pairs)} values differ without them, {len(left)} with
            them, {len(small)} of these by less than 1 %. Mean differences without and with them:
            {"; ".join(f"{NAMES[metric]} {a:.1f} and {b:.1f} %" for metric, (a, b) in means.items())}.
            The mechanisms, with the differences of goodput, loss and wait on one path if ns-3 has all of them or all
            but this one:"""
        ),
        "",
        *(line for text in shown for line in list_item(text)),
        "",
        *wrap_paragraph(
            f"""Differences of at least 1 % that remain: {"; ".join(open_) or "none"}. Without random delays,
            connections settle in a common cycle, and its phase decides which of them loses a packet (Floyd and
            Jacobson, 1992).
            In {ns3_causes.RUNS_WITH_DELAYS} further runs of both programs, hosts delayed each packet by up to the time
            of a packet on the slow line: {len(gone)} of these {len(open_)} values differ by less than 1 % then, or not
            at all."""
        ),
    ]
    rows = [
        (
            number,
            each.case.control,
            *(f"{100 * part[key].relative_difference:+.2f}" for part in pair for key in METRICS),
        )
        for number, each in enumerate(results, 1)
        for pair in [(each.usual, each.like_linux)]
    ]
    head = [f"{NAMES[key]}{mode}, %" for mode in ("", " with mechanisms") for key in METRICS]
    result = f"{len(pairs) - len(left)} of {len(pairs)} values agree with {len(ns3_causes.MECHANISMS)} mechanisms of "
    result += f"Linux in ns-3, {len(pairs) - len(usual)} without"
    version = f"ns-3 {package_version('libns3-dev')}"
    values = list(markdown_table(("path", "control", *head), rows))
    note("Causes of differences from ns-3", Comparison(version, result, lines, each=values))
    # A mechanism without effect on wait or loss would not be a cause.
    assert all(means[metric][1] < means[metric][0] / 2 for metric in ("loss", "delay_s")), means
    assert len(left) < len(usual)


def _both(results: Sequence[Causes]) -> list[list[dict[str, Interval]]]:
    return [[each.usual for each in results], [each.like_linux for each in results]]


def _percent_interval(found: Interval) -> str:
    return f"{100 * found.relative_difference:+.1f} ± {100 * found.relative_half_width:.1f} %"


def _percent(found: dict[str, Interval]) -> str:
    return ", ".join(f"{100 * found[metric].relative_difference:+.1f} %" for metric in METRICS)


def list_item(text: str) -> list[str]:
    """Return an item of a list."""
    return wrap_paragraph(f"- {text}.", "  ")
