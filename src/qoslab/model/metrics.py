"""The figures that a run yields for each arm: their names, units and meaning.

`analysis` computes them, experiment files expect and published tables list them, all under these names. A name may be
followed by a selector in parentheses, which says of what the figure is: `goodput.sum(transfer)`, `class.passed(VOICE)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from qoslab.plugins import Registry
from qoslab.units import Duration, Percent, QuantityError, Rate, Size

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["b/s", "B", "bit", "ms", "packets", "count", "fraction", "ratio", "index", "flag"]
Bound = Rate | Size | Duration | Percent | int | float
"""A figure as an experiment file writes it."""

QUANTITY_OF_UNIT: dict[Unit, type[Rate | Size | Duration | Percent]] = {
    "b/s": Rate,
    "B": Size,
    "ms": Duration,
    "fraction": Percent,
}
"""Units that experiment files write as a quantity; the figures of all other units are plain numbers."""


Selector = Literal["traffic", "host", "class", "interface", "queue", "probe", "captures"]
"""What a selector names: an entry of the arm's traffic, a host, a class of an attached policy, an interface of a
router, a queue of a switch's port, a probe, or two capture points."""
FORM_OF_SELECTOR: dict[Selector, str] = {
    "traffic": "the name of a traffic entry",
    "host": "the name of a host",
    "class": "[ROUTER] [INTERFACE] [input|output] CLASS",
    "interface": "[ROUTER] INTERFACE",
    "queue": "[ROUTER] [INTERFACE] QUEUE [THRESHOLD]",
    "probe": "the name of a probe",
    "captures": "BEFORE AFTER [dscp 0-63], the names of two capture points",
}

TableName = Literal[
    "flows", "hosts", "intervals", "probes", "classes", "interfaces", "queues", "conversations", "limiters"
]
"""A table of `docs/architecture.md` by whose rows metrics are computed."""
SELECTOR_OF_TABLE: dict[TableName, Selector] = {
    "flows": "traffic",
    "hosts": "host",
    "intervals": "traffic",
    "probes": "probe",
    "classes": "class",
    "interfaces": "interface",
    "queues": "queue",
    "conversations": "traffic",
    "limiters": "captures",
}
"""What selectors of a table's metrics name."""


@dataclass(frozen=True)
class Metric:
    """One figure of an arm, a float in `unit`."""

    name: str
    unit: Unit
    description: str
    selector: Selector
    """What its selector names; without one the figure is of all flows or classes together."""
    of_one: bool = field(default=False, kw_only=True)
    """Whether a single packet decides it, as the longest of all delays: such a figure tolerates no late packet."""


@dataclass(frozen=True)
class AddedMetric(Metric):
    """A metric of another package, with what computes it."""

    table: TableName
    figure: Callable[[pd.DataFrame], float | None]
    """Of the rows of one cell that the selector means, in `unit`; None where they have no such figure."""


_NAME = re.compile(r"[a-z0-9_.]+")


def _wrong(name: str, value: object) -> Iterator[str]:
    """What keeps a value of another package from being a metric of that name."""
    if not isinstance(value, AddedMetric):
        yield "it is no qoslab.model.metrics.AddedMetric"
        return
    if value.name != name:
        yield f'its name is "{value.name}"'
    if _NAME.fullmatch(name) is None:
        yield "its name has other characters than a-z, 0-9, _ and ."
    if value.unit not in get_args(Unit):
        yield f'its unit is "{value.unit}", expected one of {", ".join(get_args(Unit))}'
    if value.table not in SELECTOR_OF_TABLE:
        yield f'its table is "{value.table}", expected one of {", ".join(SELECTOR_OF_TABLE)}'
    elif value.selector != SELECTOR_OF_TABLE[value.table]:
        yield f'its selector is "{value.selector}", expected "{SELECTOR_OF_TABLE[value.table]}" of {value.table}'
    if not callable(value.figure):
        yield "its figure is no function"


_LONGEST = frozenset({"rtt.max", "jitter.max", "jitter.back.max", "interface.delay.max"})


def _of(selector: Selector, rows: tuple[tuple[str, Unit, str], ...]) -> tuple[Metric, ...]:
    return tuple(Metric(*row, selector, of_one=row[0] in _LONGEST) for row in rows)


_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *_of(
            "traffic",
            (
                (
                    "goodput.sum",
                    "b/s",
                    "TCP or UDP payload received, sum of all flows; of flows that come and go, over the time of all",
                ),
                ("goodput.steady", "b/s", "TCP or UDP payload received, without the warm-up (docs/statistics.md)"),
                (
                    "goodput.together",
                    "b/s",
                    "TCP or UDP payload received, counted only while all traffic of the arm ran, "
                    "each from when its connections were there to where its last interval begins",
                ),
                ("goodput.warm_up", "ms", "time at the start until goodput was steady"),
                ("goodput.flow.min", "b/s", "goodput of the slowest flow"),
                ("goodput.flow.max", "b/s", "goodput of the fastest flow"),
                ("goodput.flow.second_min", "b/s", "goodput of the flow that is slowest but for one"),
                ("goodput.flow.second_max", "b/s", "goodput of the flow that is fastest but for one"),
                ("goodput.flow.median", "b/s", "goodput of the flow in the middle, or the mean of the two there"),
                ("goodput.share", "fraction", "goodput.sum over that of all traffic of the arm"),
                (
                    "goodput.of_pir",
                    "fraction",
                    "goodput.sum over what the only policer grants, in IP bytes of full packets; at most 96.5 % (MSS "
                    "1448)",
                ),
                (
                    "goodput.of_pir.ip",
                    "fraction",
                    "IP bytes of the full segments that carry goodput.sum over what the only policer grants; at most "
                    "100 %",
                ),
                (
                    "goodput.of_pir.steady",
                    "fraction",
                    "goodput.steady over the same: without what a bucket that is full at the start lets through more",
                ),
                (
                    "goodput.of_bottleneck",
                    "fraction",
                    "goodput.sum over the least rate on the path, in IP bytes of full packets: the policer's or a "
                    "link's",
                ),
                ("goodput.spread", "ratio", "fastest flow over slowest flow"),
                ("fairness.jain", "index", "Jain's index over the flows' goodputs; 1 is equal shares"),
                (
                    "tcp.transfer_time_ratio",
                    "ratio",
                    "RFC 6349: actual over ideal transfer time, the ideal one being at the least rate on the path",
                ),
                (
                    "tcp.efficiency",
                    "fraction",
                    "RFC 6349: payload that arrived over that and the payload that was sent again",
                ),
                (
                    "tcp.buffer_delay",
                    "fraction",
                    "RFC 6349: mean round trip of the connections above that of the idle path, over the latter",
                ),
                ("tcp.rtt", "ms", "mean round trip as the senders' TCP knows it, mean of the streams"),
                ("datagrams.lost", "packets", "UDP datagrams that were sent and did not arrive"),
                ("datagrams.loss", "fraction", "lost datagrams over all that were sent"),
                ("datagrams.jitter", "ms", "jitter as the receiver reckons it (RFC 3550), the greatest of the flows"),
                (
                    "conversation.depth",
                    "packets",
                    "packets that waited in the conversations of weighted fair queueing, the median of the readings "
                    "over the last two thirds of the traffic time in which any did",
                ),
                (
                    "conversation.weight",
                    "count",
                    "weight of these conversations, as show queue prints it, where all had the same",
                ),
            ),
        ),
        *_of(
            "host",
            (
                ("tcp.retransmits", "packets", "segments that the sending hosts' TCP sent again"),
                ("tcp.retransmitted", "B", "payload of these segments, taken as full ones"),
                ("tcp.timeouts", "count", "how often a retransmission timer of the sending hosts' TCP ran out"),
            ),
        ),
        *_of(
            "probe",
            (
                ("rtt.min", "ms", "shortest round trip"),
                ("rtt.avg", "ms", "mean round trip, as IP SLA truncates it"),
                ("rtt.max", "ms", "longest round trip"),
                ("rtt.count", "packets", "packets that were answered in time"),
                ("jitter.min", "ms", "least jitter from source to destination; the print of 2008 leaves out zeros"),
                ("jitter.avg", "ms", "mean jitter from source to destination"),
                ("jitter.max", "ms", "greatest jitter from source to destination"),
                ("jitter.back.min", "ms", "least jitter from destination to source, without zeros as above"),
                ("jitter.back.avg", "ms", "mean jitter from destination to source"),
                ("jitter.back.max", "ms", "greatest jitter from destination to source"),
            ),
        ),
        *_of(
            "captures",
            (
                (
                    "limiter.rate",
                    "b/s",
                    "rate of what limits between two captures, in bits of frames without check sequence",
                ),
                ("limiter.burst", "B", "what it lets pass at once, likewise"),
                ("limiter.interval", "ms", "Tc, at whose multiples it lets packets go"),
                ("limiter.queue", "packets", "packets inside when one was dropped for want of room, the median"),
                ("limiter.ahead", "packets", "most packets for which one waits that overtakes others"),
            ),
        ),
        *_of(
            "interface",
            (
                (
                    "interface.drops",
                    "packets",
                    "output drops over the traffic time, Total output drops of the interface",
                ),
                (
                    "interface.delay.mean",
                    "ms",
                    "queueing delay, from a packet's arrival at the output interface to its start on the line: mean",
                ),
                (
                    "interface.delay.p50",
                    "ms",
                    "median of the queueing delay; of several interfaces always the greatest",
                ),
                ("interface.delay.p99", "ms", "99th percentile of the queueing delay"),
                ("interface.delay.max", "ms", "longest queueing delay"),
            ),
        ),
        *_of(
            "queue",
            (
                ("queue.drops", "packets", "frames that a switch port's egress queue dropped over the traffic time"),
                ("queue.enqueued", "packets", "frames that it took in over the same time"),
            ),
        ),
        *_of(
            "class",
            (
                ("police.bc", "B", "committed burst in force"),
                ("police.conformed_packets", "packets", "packets that conformed"),
                ("police.exceeded_packets", "packets", "packets that exceeded"),
                ("police.conformed_bytes", "B", "bytes of these packets, as the policer counts them"),
                ("police.exceeded_bytes", "B", "bytes of the packets that exceeded, likewise"),
                ("police.conformed_rate", "b/s", "conformed rate as the router prints it"),
                ("police.exceeded_rate", "b/s", "exceed rate as the router prints it"),
                ("police.exceed_share", "fraction", "exceeded packets over all policed packets"),
                ("police.tokens_lost", "B", "tokens that overflowed a bucket while there was demand"),
                (
                    "police.tokens_lost.longest",
                    "ms",
                    "the longest time for which tokens overflowed at every arrival; of several policers the longest",
                ),
                ("police.bucket.mean", "B", "size of a dynamic bucket, the mean over the traffic time"),
                ("police.bucket.mean_ms", "ms", "mean size of a dynamic bucket as time at the CIR"),
                ("police.bucket.p95", "B", "95th percentile of a dynamic bucket's sizes, sampled once a second"),
                ("police.bucket.p95_ms", "ms", "95th percentile of a dynamic bucket's sizes as time at the CIR"),
                ("police.bucket.final", "B", "size of a dynamic bucket at the end"),
                ("police.bucket.final_ms", "ms", "size of a dynamic bucket at the end as time at the CIR"),
                ("police.bucket.late", "B", "mean size of a dynamic bucket over the second half of the traffic time"),
                ("police.bucket.growths", "count", "how often a dynamic bucket grew"),
                ("police.bucket.shrinks", "count", "how often a dynamic bucket shrank"),
                (
                    "police.bucket.settled",
                    "ms",
                    "time until a dynamic bucket's size was first within 20 % of its mean over the second half",
                ),
                ("shape.byte_limit", "B", "(Bc + Be) / 8, the Byte Limit column"),
                ("shape.sustain_bits", "bit", "Bc, the Sustain bits/int column"),
                ("shape.excess_bits", "bit", "Be, the Excess bits/int column"),
                ("shape.interval_ms", "ms", "Tc, the Interval column"),
                ("shape.increment_bytes", "B", "Bc / 8, the Increment column"),
                ("shape.sent_packets", "packets", "packets that the shaper sent"),
                ("shape.sent_bytes", "B", "their bytes, as it counts them"),
                ("shape.delayed_packets", "packets", "those of them that had waited in its queue"),
                ("shape.delayed_bytes", "B", "their bytes, likewise"),
                ("shape.queue_depth.during", "packets", "packets in the shaping queue while traffic ran"),
                ("shape.active.during", "flag", "1 if shaping was active while traffic ran, else 0"),
                ("class.packets", "packets", "packets that the class got in all"),
                ("class.bytes", "B", "their bytes, as the router counts them"),
                (
                    "class.offered",
                    "b/s",
                    "bits of packets that the class got, over the last two thirds of the traffic time",
                ),
                ("class.dropped", "b/s", "bits of packets that the class dropped, over the same time"),
                ("class.passed", "b/s", "bits of packets that left the class, over the same time"),
                ("class.share", "fraction", "what passed the class over what passed all classes of its policy"),
                (
                    "class.line_share",
                    "fraction",
                    "time that what passed took on the line, framing included, over the same time",
                ),
                ("class.drops", "packets", "packets that the class dropped in all"),
                (
                    "class.ecn_marks",
                    "packets",
                    "packets that the class marked as having met congestion, rather than drop them at random",
                ),
                ("class.offered.during", "b/s", "offered rate as the router prints it, while traffic ran"),
                ("class.dropped.during", "b/s", "drop rate as the router prints it, while traffic ran"),
                ("class.passed.during", "b/s", "offered rate less drop rate as printed, while traffic ran"),
                (
                    "class.share.during",
                    "fraction",
                    "class.passed.during of the class over that of all classes of its policy",
                ),
                ("class.drops.during", "packets", "packets that the class had dropped while traffic ran"),
                (
                    "class.queue_depth.during",
                    "packets",
                    "packets in the class's queue while traffic ran; in the later generation with those in the "
                    "transmit ring and on the line, as it prints them",
                ),
            ),
        ),
    )
}
METRICS: Registry[Metric] = Registry("metrics", _METRICS, _wrong)
"""By name; those behind ours come from packages (docs/extending.md)."""

COUNTERS: dict[str, type[Size | Duration]] = {"time": Duration, "conformed_bytes": Size, "bytes": Size}
"""By what a moment may be told: the traffic time, what a policer's conform action had, what the class was offered."""


@dataclass(frozen=True)
class At:
    """A moment: the first at which a counter of the class has a value."""

    counter: str
    """One of `COUNTERS`."""
    quantity: Size | Duration
    written: str
    """The quantity as the author wrote it: figures are found by their whole name."""

    @classmethod
    def parse(cls, text: str) -> At:
        """Read `conformed_bytes 1992832 B` or `time 6 s`. `KeyError` for a counter, `QuantityError` for a value."""
        counter, _, value = text.strip().partition(" ")
        return cls(counter, COUNTERS[counter].parse(value), value)

    @property
    def value(self) -> float:
        """In bytes, or in milliseconds."""
        return self.quantity.ns / 10**6 if isinstance(self.quantity, Duration) else float(self.quantity.bytes)

    def __str__(self) -> str:
        return f"{self.counter} {self.written}"


_REFERENCE = re.compile(r"(?P<name>[a-z0-9_.]+)(?:\((?P<selector>[^()]+)\))?(?: @ (?P<at>[a-z_]+ [0-9][^()@]*))?")


@dataclass(frozen=True)
class Reference:
    """A metric as experiment files name it: with a selector or without."""

    metric: Metric
    selector: str | None = None
    at: At | None = None
    """Of the counters of classes: as they stood at this moment, not at the end."""

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read `name`, `name(selector)` or one of them with ` @ moment`; `KeyError` where no metric is called so."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise KeyError(text)
        selector = match["selector"]
        metric = METRICS[match["name"]]
        try:
            at = None if match["at"] is None else At.parse(match["at"])
        except QuantityError as error:
            raise KeyError(text) from error
        if at is not None and metric.selector != "class":
            raise KeyError(text)
        return cls(metric, None if selector is None else " ".join(selector.split()), at)

    def __str__(self) -> str:
        name = self.metric.name if self.selector is None else f"{self.metric.name}({self.selector})"
        return name if self.at is None else f"{name} @ {self.at}"

    @property
    def description(self) -> str:
        """What the figure is, and of what."""
        of = "" if self.selector is None else f" ({self.metric.selector} {self.selector})"
        return self.metric.description + of + ("" if self.at is None else f", at {self.at}")


DIRECTIONS = ("input", "output")


@dataclass(frozen=True)
class ClassSelector:
    """Which classes `[ROUTER] [INTERFACE] [input|output] CLASS` means.

    CLASS is a path where policies are nested, `Parent/Child`, and `*` is all classes of the outermost policy. What is
    left out does not matter, except for the direction, which is then output.
    """

    path: str
    router: str | None = None
    interface: str | None = None
    direction: str = "output"

    @classmethod
    def parse(cls, text: str | None, interfaces: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> ClassSelector:
        """Read a selector; None is all classes. `SelectorError` for a word that is none of `interfaces`, by router."""
        *words, path = (text or "*").split()
        return cls(path, **_place(words, interfaces, DIRECTIONS))


def _place(words: list[str], interfaces: Mapping[str, tuple[str, ...]], directions: tuple[str, ...]) -> dict[str, str]:
    """What the words of a selector that say where something is mean: router, interface, direction."""
    found: dict[str, str] = {}
    every = [name for names in interfaces.values() for name in names]
    for word in words:
        if word in directions:
            kind = "direction"
        elif word in interfaces:
            kind = "router"
        elif word in every:
            kind = "interface"
        else:
            raise SelectorError(word, [*interfaces, *dict.fromkeys(every), *directions])
        if kind in found:
            raise SelectorError(word, [])
        found[kind] = word
    return found


@dataclass(frozen=True)
class QueueSelector:
    """Which queues of a switch `[ROUTER] [INTERFACE] QUEUE [THRESHOLD]` means; or interfaces, `[ROUTER] INTERFACE`.

    Queues and thresholds count from 1, as in the switch's configuration. What is left out does not matter.
    """

    router: str | None = None
    interface: str | None = None
    queue: int | None = None
    threshold: int | None = None

    @classmethod
    def parse(cls, text: str | None, interfaces: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> QueueSelector:
        """Read a selector; None is everything. `SelectorError` for a word that means nothing there."""
        words = (text or "").split()
        numbers: list[int] = []
        while words and words[-1].isdecimal():
            number = int(words.pop())
            numbers.insert(0, number)
        tops = (QUEUES, THRESHOLDS)
        if len(numbers) > len(tops):
            raise SelectorError(str(numbers[-1]), [])
        for number, top in zip(numbers, tops, strict=False):
            if not 1 <= number <= top:
                raise SelectorError(str(number), [str(each) for each in range(1, top + 1)])
        place = _place(words, interfaces, ())
        return cls(place.get("router"), place.get("interface"), *numbers)


QUEUES = 4
THRESHOLDS = 3
"""Egress queues of a switch's port, and thresholds of a queue."""


_CAPTURES = re.compile(r"(?P<before>[^ ]+) (?P<after>[^ ]+)(?: dscp (?P<dscp>[1-5]?[0-9]|6[0-3]))?")


@dataclass(frozen=True)
class CapturesSelector:
    """Which packets `BEFORE AFTER [dscp 0-63]` means: those that go from one capture point to another one."""

    before: str
    after: str
    dscp: int | None = None
    """With which they go in; None is any."""

    @classmethod
    def parse(cls, text: str) -> CapturesSelector:
        """Read a selector. `SelectorError` for one that has another form, or the same point twice."""
        match = _CAPTURES.fullmatch(text)
        if match is None or match["before"] == match["after"]:
            raise SelectorError(text, [])
        return cls(match["before"], match["after"], None if match["dscp"] is None else int(match["dscp"]))

    def __str__(self) -> str:
        return f"{self.before} {self.after}" + ("" if self.dscp is None else f" dscp {self.dscp}")


class SelectorError(ValueError):
    """A word of a selector that means nothing there; `known` are those that would (none: one of its kind too many)."""

    def __init__(self, word: str, known: list[str]) -> None:
        super().__init__(word)
        self.word = word
        self.known = known


def as_float(bound: Bound, unit: Unit) -> float:
    """The figure in `unit`; `QuantityError` where its kind does not fit the unit (a rate for packets, say)."""
    expected = QUANTITY_OF_UNIT.get(unit)
    if expected is not None and type(bound) is expected:
        match bound:
            case Rate():
                return float(bound.bps)
            case Size():
                return float(bound.bytes)
            case Duration():
                return bound.ns / 10**6
            case Percent():
                return bound.fraction
    if expected is None and isinstance(bound, int | float):
        return float(bound)
    if expected is not None and isinstance(bound, int | float):
        expected.parse(str(int(bound) if bound == int(bound) else bound))  # refuses, with a proposal
    wanted = f'a {expected.KIND} such as "{expected.EXAMPLES[0]}"' if expected else f"a plain number ({unit})"
    raise QuantityError(f'found "{bound}", expected {wanted}')


def prefixed(value: float, unit: str) -> str:
    """Four significant digits and the prefix that fits them: 999.97 kb/s are 1 Mb/s, not 1000 kb/s."""
    shown = abs(float(f"{value:.4g}"))
    for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if shown >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def format_value(value: float, unit: Unit) -> str:
    """For people: four significant digits and a fitting prefix, as `841 kb/s`, `32.6 %`, `31250 B`."""
    match unit:
        case "b/s":
            return prefixed(value, unit)
        case "fraction":
            return f"{value * 100:.3g} %"
        case "ratio" | "index":
            return f"{value:.4g}"
        case "flag":
            return "yes" if value else "no"
        case "B" | "bit" | "ms" | "packets" | "count":
            number = f"{value:.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.4g}"
            return number if unit == "count" else f"{number} {unit}"
