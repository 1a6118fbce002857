"""Metrics: names, units and meaning of the values that a run yields for each arm.

`analysis` computes them, experiment files expect and published tables list them, all under these names. A name may be
followed by a selector in parentheses, which selects a part of the experiment: `goodput.sum(transfer)`,
`class.passed(VOICE)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, cast, get_args

from qoslab.model.units import Duration, Percent, QuantityError, Rate, Size
from qoslab.system.plugins import PluginRegistry

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["b/s", "B", "bit", "ms", "packets", "count", "fraction", "ratio", "index", "flag"]
Bound = Rate | Size | Duration | Percent | int | float
"""A value as an experiment file writes it."""

QUANTITY_BY_UNIT: dict[Unit, type[Rate | Size | Duration | Percent]] = {
    "b/s": Rate,
    "B": Size,
    "ms": Duration,
    "fraction": Percent,
}
"""Units that experiment files write as a quantity; the values of all other units are plain numbers."""


Selector = Literal["traffic", "host", "class", "interface", "queue", "probe", "captures"]
"""Kinds of selectors: an entry of the arm's traffic, a host, a class of an attached policy, an interface of a router, a
queue of a switch's port, a probe, or two capture points.
"""
SELECTOR_FORMS: dict[Selector, str] = {
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
"""A table of `docs/internals/architecture.md` by whose rows metrics are computed."""
SELECTOR_BY_TABLE: dict[TableName, Selector] = {
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
"""Selector kinds by table of metrics."""


@dataclass(frozen=True)
class Metric:
    """One value of an arm, a float in `unit`."""

    name: str
    unit: Unit
    description: str
    selector: Selector
    """Kind of the selector; without a selector the value covers all flows or classes."""
    depends_on_one_packet: bool = field(default=False, kw_only=True)
    """True if a single packet decides it, such as the longest delay: the value tolerates no late packet."""


@dataclass(frozen=True)
class AddedMetric(Metric):
    """A metric of another package, with the function that computes it."""

    table: TableName
    figure: Callable[[pd.DataFrame], float | None]
    """Function of the selected rows of one cell, in `unit`; None if they have no such value."""


_NAME = re.compile(r"[a-z0-9_.]+")


def _metric_problems(name: str, value: object) -> Iterator[str]:
    """Yield the reasons why a value of another package is no metric of that name."""
    if not isinstance(value, AddedMetric):
        yield "it is not a qoslab.model.metrics.AddedMetric"
        return
    if value.name != name:
        yield f'its name is "{value.name}"'
    if _NAME.fullmatch(name) is None:
        yield "its name contains characters other than a-z, 0-9, _ and ."
    if value.unit not in get_args(Unit):
        yield f'its unit is "{value.unit}", expected one of {", ".join(get_args(Unit))}'
    if value.table not in SELECTOR_BY_TABLE:
        yield f'its table is "{value.table}", expected one of {", ".join(SELECTOR_BY_TABLE)}'
    elif value.selector != SELECTOR_BY_TABLE[value.table]:
        yield f'its selector is "{value.selector}", expected "{SELECTOR_BY_TABLE[value.table]}" of {value.table}'
    if not callable(value.figure):
        yield "its figure is not a function"


_MAX_NAME_LENGTH = frozenset({"rtt.max", "jitter.max", "jitter.back.max", "interface.delay.max"})


_METRIC_TABLE = """
[traffic]
goodput.sum b/s total goodput: TCP or UDP payload received by all flows, from the first start to the last end
goodput.steady b/s total goodput without the warm-up (docs/reference/statistics.md)
goodput.together b/s total goodput while all traffic entries of the arm were sending
goodput.warm_up ms duration of the warm-up: time until the goodput was steady
goodput.flow.min b/s goodput of the slowest flow
goodput.flow.max b/s goodput of the fastest flow
goodput.flow.second_min b/s goodput of the second-slowest flow
goodput.flow.second_max b/s goodput of the second-fastest flow
goodput.flow.median b/s median goodput of the flows
goodput.share fraction bytes received relative to those of all traffic in the arm
goodput.of_pir fraction goodput relative to the rate of the only policer, in IP bytes; at most 96.5 % with full packets
    (MSS 1448)
goodput.of_pir.ip fraction IP bytes of the packets that carry the goodput, relative to the rate of the only policer; at
    most 100 %
goodput.of_pir.steady fraction steady goodput relative to the rate of the only policer, without the initial burst from
    a full bucket
goodput.of_bottleneck fraction goodput relative to the lowest rate on the path, of a policer or a link, in IP bytes
goodput.spread ratio goodput of the fastest flow divided by that of the slowest flow
fairness.jain index Jain's fairness index of the flows' goodputs while all of them ran; 1 means equal shares
tcp.transfer_time_ratio ratio TCP transfer time ratio (RFC 6349): actual divided by ideal transfer time at the lowest
    rate on the path
tcp.efficiency fraction TCP efficiency (RFC 6349): payload received relative to payload received plus payload
    retransmitted
tcp.buffer_delay fraction buffer delay (RFC 6349): increase of the mean round-trip time relative to that of the idle
    path
tcp.rtt ms mean round-trip time measured by the senders' TCP, averaged over the streams
datagrams.lost packets lost UDP datagrams
datagrams.loss fraction UDP loss: lost datagrams relative to sent datagrams
datagrams.jitter ms UDP jitter at the receiver (RFC 3550), maximum of the flows
datagrams.delay.p50 ms median one-way delay of UDP datagrams, maximum of the flows
datagrams.delay.p99 ms 99th percentile of the one-way delay, maximum of the flows
datagrams.delay.max ms maximum one-way delay of UDP datagrams
voice.r index rating R of calls (ITU-T G.107), minimum of the calls; 93.2 without impairments
voice.mos index estimated mean opinion score of calls (ITU-T G.107), minimum of the calls: 1 to 4.5
pages.complete count complete pages of web users and other TCP sources with pauses
pages.unfinished count pages of the same sources that were unfinished at the end of the traffic
pages.time.p50 ms median time from the start of a page until its last byte arrives, maximum of the users; an unfinished
    page counts as longer than all others
pages.time.mean ms mean time from the start of a page until its last byte arrives; missing if a page was unfinished at
    the end
pages.time.max ms maximum time from the start of a page until its last byte arrives; missing if a page was unfinished at
    the end
conversation.depth packets packets queued in the conversations of weighted fair queueing: median of the readings with a
    queue, over the last two thirds of the traffic time
conversation.weight count weight of the conversations in show queue, if all conversations have the same weight
[host]
tcp.retransmits packets TCP segments retransmitted by the sending hosts
tcp.retransmitted B TCP payload retransmitted by the sending hosts, assuming full segments
tcp.timeouts count TCP retransmission timeouts of the sending hosts
[probe]
rtt.min ms minimum round-trip time
rtt.avg ms mean round-trip time, truncated to milliseconds as in IP SLA
rtt.p50 ms median round-trip time of single packets
rtt.max ms maximum round-trip time
rtt.count packets probe packets answered in time
jitter.min ms minimum source-to-destination jitter, without zeros in the IOS output of 2008
jitter.avg ms mean source-to-destination jitter
jitter.max ms maximum source-to-destination jitter
jitter.back.min ms minimum destination-to-source jitter, without zeros
jitter.back.avg ms mean destination-to-source jitter
jitter.back.max ms maximum destination-to-source jitter
[captures]
limiter.rate b/s rate of the limiter between two captures, in bits of frames without FCS
limiter.burst B burst size of the limiter between two captures, in bytes of frames without FCS
limiter.interval ms interval Tc of the shaper between two captures
limiter.queue packets packets queued in the limiter when a packet was tail-dropped, median
limiter.ahead packets maximum number of packets that delay a packet of a preferred class
[interface]
interface.drops packets output drops of the interface during the traffic time (Total output drops)
interface.delay.mean ms mean queueing delay, from arrival at the output interface to the start of transmission
interface.delay.p50 ms median queueing delay; the maximum if there are several interfaces
interface.delay.p99 ms 99th percentile of the queueing delay
interface.delay.max ms maximum queueing delay
[queue]
queue.drops packets frames dropped by the egress queue of a switch port during the traffic time
queue.enqueued packets frames accepted by the egress queue of a switch port during the traffic time
[class]
police.bc B committed burst (Bc) of the policer
police.conformed_packets packets packets that conformed to the policer
police.exceeded_packets packets packets that exceeded the policer
police.conformed_bytes B bytes of the packets that conformed, as counted by the policer
police.exceeded_bytes B bytes of the packets that exceeded, as counted by the policer
police.conformed_rate b/s conform rate shown by the router
police.exceeded_rate b/s exceed rate shown by the router
police.exceed_share fraction exceeded packets relative to all policed packets; violating packets are not included
police.violate_share fraction violating packets relative to all policed packets
police.without_tokens_share fraction exceeding and violating packets relative to all policed packets
police.tokens_lost B tokens lost to a full bucket while there was demand
police.tokens_lost.longest ms longest time during which tokens overflowed at every arrival; the maximum if there are
    several policers
police.bucket.mean B mean size of a dynamic bucket over the traffic time
police.bucket.mean_ms ms mean size of a dynamic bucket, as time at the CIR
police.bucket.p95 B 95th percentile of the size of a dynamic bucket, sampled once a second
police.bucket.p95_ms ms 95th percentile of the size of a dynamic bucket, as time at the CIR
police.bucket.final B final size of a dynamic bucket
police.bucket.final_ms ms final size of a dynamic bucket, as time at the CIR
police.bucket.late B mean size of a dynamic bucket over the second half of the traffic time
police.bucket.growths count number of times a dynamic bucket grew
police.bucket.shrinks count number of times a dynamic bucket shrank
police.bucket.settled ms time until the size of a dynamic bucket was first within 20 % of its mean over the second half
shape.byte_limit B byte limit of the shaper, (Bc + Be) / 8 (Byte Limit column)
shape.sustain_bits bit committed burst Bc of the shaper (Sustain bits/int column)
shape.excess_bits bit excess burst Be of the shaper (Excess bits/int column)
shape.interval_ms ms interval Tc of the shaper (Interval column)
shape.increment_bytes B increment of the shaper, Bc / 8 (Increment column)
shape.sent_packets packets packets sent by the shaper
shape.sent_bytes B bytes sent by the shaper, as it counts them
shape.delayed_packets packets packets delayed by the shaper: sent after waiting in its queue
shape.delayed_bytes B bytes delayed by the shaper: sent after waiting in its queue
shape.queue_depth.during packets packets in the shaping queue during the traffic
shape.active.during flag shaping active during the traffic: 1 yes, 0 no
class.packets packets packets classified into the class
class.bytes B bytes classified into the class, as counted by the router
class.offered b/s offered rate of the class, over the last two thirds of the traffic time
class.dropped b/s drop rate of the class, over the last two thirds of the traffic time
class.passed b/s rate of the packets that left the class, over the last two thirds of the traffic time
class.share fraction rate that left the class relative to the rate that left all classes of its policy
class.line_share fraction share of the line time used by the class, including framing, over the last two thirds of the
    traffic time
class.drops packets packets dropped by the class
class.ecn_marks packets packets that the class marked with congestion experienced (ECN) instead of dropping them
class.queue_delay ms queueing delay measured by the active queue management of the class: median of the readings over
    the last two thirds of the traffic time
class.offered.during b/s offered rate shown by the router during the traffic
class.dropped.during b/s drop rate shown by the router during the traffic
class.passed.during b/s offered rate minus drop rate shown by the router during the traffic
class.share.during fraction rate passed by the class relative to that of all classes of its policy, during the traffic
class.drops.during packets packets dropped by the class up to a reading during the traffic
class.queue_depth.during packets packets in the queue of the class during the traffic; in HQF output including the
    transmit ring and the line
"""
"""Name, unit and description of each metric, by selector."""
MAXIMA: dict[str, float] = {
    "goodput.share": 1,
    "fairness.jain": 1,
    "tcp.efficiency": 1,
    "datagrams.loss": 1,
    "police.exceed_share": 1,
    "police.violate_share": 1,
    "police.without_tokens_share": 1,
    "class.share": 1,
    "class.share.during": 1,
    "class.line_share": 1,
    "voice.mos": 4.5,
    "voice.r": 100,
}
"""Maxima of metrics that are limited by definition: an upper bound at or above it holds for every value."""


def _parse_metrics(table: str) -> Iterator[Metric]:
    """Yield the metrics of a table; an indented line continues a description."""
    for section in table.replace("\n    ", " ").strip().removeprefix("[").split("\n["):
        selector, *rows = section.splitlines()
        for row in rows:
            name, unit, description = row.split(" ", 2)
            kind = cast(Selector, selector.removesuffix("]"))
            yield Metric(name, cast(Unit, unit), description, kind, depends_on_one_packet=name in _MAX_NAME_LENGTH)


_METRICS: dict[str, Metric] = {metric.name: metric for metric in _parse_metrics(_METRIC_TABLE)}
METRICS: PluginRegistry[Metric] = PluginRegistry("metrics", _METRICS, _metric_problems)
"""Metrics by name; those after ours come from packages (docs/internals/extending.md)."""

COUNTERS: dict[str, type[Size | Duration]] = {"time": Duration, "conformed_bytes": Size, "bytes": Size}
"""Counters that define a time: the traffic time, conformed bytes of a policer, offered bytes of the class."""


@dataclass(frozen=True)
class CounterTrigger:
    """A moment: the first at which a counter of the class has a value."""

    counter: str
    """One of `COUNTERS`."""
    quantity: Size | Duration
    written: str
    """The quantity as the author wrote it: values are found by their whole name."""

    @classmethod
    def parse(cls, text: str) -> CounterTrigger:
        """Read `conformed_bytes 1992832 B` or `time 6 s`. `KeyError` for a counter, `QuantityError` for a value."""
        counter, _, value = text.strip().partition(" ")
        return cls(counter, COUNTERS[counter].parse(value), value)

    @property
    def value(self) -> float:
        """Return the counter's value in bytes, or in milliseconds."""
        return self.quantity.ns / 10**6 if isinstance(self.quantity, Duration) else float(self.quantity.bytes)

    def __str__(self) -> str:
        return f"{self.counter} {self.written}"


_REFERENCE = re.compile(r"(?P<name>[a-z0-9_.]+)(?:\((?P<selector>[^()]+)\))?(?: @ (?P<at>[a-z_]+ [0-9][^()@]*))?")


@dataclass(frozen=True)
class Reference:
    """A metric as experiment files name it: with a selector or without."""

    metric: Metric
    selector: str | None = None
    at: CounterTrigger | None = None
    """Time of the class counters, instead of the end."""

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read `name`, `name(selector)` or one of them with ` @ moment`; `KeyError` if no metric is called so."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise KeyError(text)
        selector = match["selector"]
        metric = METRICS[match["name"]]
        try:
            at = None if match["at"] is None else CounterTrigger.parse(match["at"])
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
        """Return the description of the value with its object."""
        of = "" if self.selector is None else f" ({self.metric.selector} {self.selector})"
        return self.metric.description + of + ("" if self.at is None else f", at {self.at}")


DIRECTIONS = ("input", "output")


@dataclass(frozen=True)
class ClassSelector:
    """Selector of classes: `[ROUTER] [INTERFACE] [input|output] CLASS`.

    CLASS is a path where policies are nested, `Parent/Child`, and `*` is all classes of the outermost policy. What is
    left out does not matter, except for the direction, which is then output.
    """

    path: str
    router: str | None = None
    interface: str | None = None
    direction: str = "output"

    @classmethod
    def parse(cls, text: str | None, interfaces: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> ClassSelector:
        """Read a selector; None: all classes. Raise `SelectorError` for a word not in `interfaces`, by router."""
        *words, path = (text or "*").split()
        return cls(path, **_parse_place(words, interfaces, DIRECTIONS))


def _parse_place(
    words: list[str], interfaces: Mapping[str, tuple[str, ...]], directions: tuple[str, ...]
) -> dict[str, str]:
    """Parse the place in a selector: router, interface, direction."""
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
    """Selector of a switch's queues, `[ROUTER] [INTERFACE] QUEUE [THRESHOLD]`; or of interfaces, `[ROUTER] INTERFACE`.

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
        place = _parse_place(words, interfaces, ())
        return cls(place.get("router"), place.get("interface"), *numbers)


QUEUES = 4
THRESHOLDS = 3
"""Egress queues of a switch's port, and thresholds of a queue."""


_CAPTURES = re.compile(r"(?P<before>[^ ]+) (?P<after>[^ ]+)(?: dscp (?P<dscp>[1-5]?[0-9]|6[0-3]))?")


@dataclass(frozen=True)
class CapturesSelector:
    """Selector of packets between two capture points: `BEFORE AFTER [dscp 0-63]`."""

    before: str
    after: str
    dscp: int | None = None
    """DSCP at the first capture point; None is any."""

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
    """The value in `unit`. Raise `QuantityError` if its kind does not fit the unit, such as a rate for packets."""
    expected = QUANTITY_BY_UNIT.get(unit)
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


def format_prefixed(value: float, unit: str) -> str:
    """Four significant digits and the prefix that fits them: 999.97 kb/s are 1 Mb/s, not 1000 kb/s."""
    shown = abs(float(f"{value:.4g}"))
    for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if shown >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def format_value(value: float, unit: Unit) -> str:
    """Format a value for people: four significant digits and a fitting prefix, as `841 kb/s`, `32.6 %`, `31250 B`."""
    match unit:
        case "b/s":
            return format_prefixed(value, unit)
        case "fraction":
            return f"{value * 100:.3g} %"
        case "ratio" | "index":
            return f"{value:.4g}"
        case "flag":
            return "yes" if value else "no"
        case "B" | "bit" | "ms" | "packets" | "count":
            number = f"{value:.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.4g}"
            named = "packet" if unit == "packets" and number == "1" else unit
            return number if unit == "count" else f"{number} {named}"
