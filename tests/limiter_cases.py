"""Captures before and after known devices, to measure how often `qoslab infer` is right.

These models are exact (integers of nanoseconds and of bits x 10^9) and share no code with the package. Each device
takes packets in the order of their arrival and returns when a packet leaves, or None if it is dropped. `python
tests/limiter_cases.py FIRST LAST` prints the results by path.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pandas as pd

from qoslab.analysis.limiter_inference import Limiter, infer, join

SECOND = 10**9
BITS = 8 * SECOND
"""Units of a byte: tokens are counted in bits x 10^9; at 1 b/s one token arrives per nanosecond."""
START_NS = 1_700_000_000 * SECOND
PACKETS = 4000
LIMITERS = frozenset({"policer", "marker", "shaper", "line"})


class PathDevice(Protocol):
    """Device that packets cross in order."""

    def offer(self, now: int, size: int) -> int | None:
        """Return when a packet that arrives now has left, in ns; None if it is dropped."""


@dataclass
class Policer:
    """Token bucket that drops (single rate)."""

    rate: int
    burst: int
    tokens: int = field(init=False)
    last: int = 0

    def __post_init__(self) -> None:
        self.tokens = self.burst * BITS

    def offer(self, now: int, size: int) -> int | None:
        self.tokens = min(self.burst * BITS, self.tokens + self.rate * (now - self.last))
        self.last = now
        if self.tokens < size * BITS:
            return None
        self.tokens -= size * BITS
        return now


@dataclass
class TwoBuckets:
    """Policer of RFC 2697 that drops violating packets: the second bucket takes the overflow of the first."""

    rate: int
    first: int
    second: int
    tokens: list[int] = field(init=False)
    last: int = 0

    def __post_init__(self) -> None:
        self.tokens = [self.first * BITS, self.second * BITS]

    def offer(self, now: int, size: int) -> int | None:
        first = self.tokens[0] + self.rate * (now - self.last)
        above = max(0, first - self.first * BITS)
        self.tokens = [first - above, min(self.second * BITS, self.tokens[1] + above)]
        self.last = now
        for each in (0, 1):
            if self.tokens[each] >= size * BITS:
                self.tokens[each] -= size * BITS
                return now
        return None


@dataclass
class TwoRates:
    """Policer of RFC 2698 that drops violating packets: the bucket of the peak rate decides, that of the CIR only
    colours.
    """

    cir: int
    committed: int
    pir: int
    peak: int
    tokens: list[int] = field(init=False)
    last: int = 0

    def __post_init__(self) -> None:
        self.tokens = [self.committed * BITS, self.peak * BITS]

    def offer(self, now: int, size: int) -> int | None:
        rates, full = (self.cir, self.pir), (self.committed, self.peak)
        self.tokens = [
            min(most * BITS, tokens + rate * (now - self.last))
            for tokens, rate, most in zip(self.tokens, rates, full, strict=True)
        ]
        self.last = now
        if self.tokens[1] < size * BITS:
            return None
        self.tokens[1] -= size * BITS
        if self.tokens[0] >= size * BITS:
            self.tokens[0] -= size * BITS
        return now


@dataclass
class Line:
    """FIFO queue with a limit of packets in front of a line; `others` share it, as (arrival, size), in order."""

    rate: int
    limit: int
    others: deque[tuple[int, int]] = field(default_factory=deque)
    free: int = 0
    """Time at which the line is idle, in ns x rate."""
    inside: deque[int] = field(default_factory=deque)

    def offer(self, now: int, size: int) -> int | None:
        while self.others and self.others[0][0] <= now:
            self._take(*self.others.popleft())
        return self._take(now, size)

    def admits(self, waiting: int) -> bool:
        return waiting < self.limit

    def _take(self, now: int, size: int) -> int | None:
        while self.inside and self.inside[0] <= now * self.rate:
            self.inside.popleft()
        if not self.admits(len(self.inside)):
            return None
        self.free = max(self.free, now * self.rate) + size * BITS
        self.inside.append(self.free)
        return -(-self.free // self.rate)


@dataclass
class Red(Line):
    """Line whose queue drops at random by its average length (RED)."""

    random: np.random.Generator = field(default_factory=np.random.default_rng)
    average: float = 0.0

    def admits(self, waiting: int) -> bool:
        self.average += (waiting - self.average) / 32
        least, most = self.limit / 8, self.limit / 2
        share = (self.average - least) / (most - least)
        return waiting < self.limit and (share <= 0 or (share < 1 and self.random.random() > 0.2 * share))


@dataclass
class TokenShaper:
    """Token bucket that delays; tokens arrive continuously (like Linux tbf)."""

    rate: int
    burst: int
    limit: int
    tokens: int = field(init=False)
    last: int = 0
    """Time of the last packet, in ns x rate."""
    inside: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.tokens = self.burst * BITS

    def offer(self, now: int, size: int) -> int | None:
        while self.inside and self.inside[0] <= now * self.rate:
            self.inside.popleft()
        if len(self.inside) >= self.limit:
            return None
        at = max(now * self.rate, self.last)
        self.tokens = min(self.burst * BITS, self.tokens + at - self.last)
        late = max(0, size * BITS - self.tokens)
        self.tokens += late - size * BITS
        self.last = at + late
        self.inside.append(self.last)
        return -(-self.last // self.rate)


@dataclass
class TickShaper:
    """Token bucket that delays; Bc arrives each Tc, and the bucket holds Bc and Be (like IOS)."""

    rate: int
    tc: int
    burst: int
    limit: int
    phase: int
    tokens: int = field(init=False)
    last: int = 0
    ticks: int = 0
    """Number of ticks that have added tokens."""
    inside: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.tokens = self.burst * BITS

    def offer(self, now: int, size: int) -> int | None:
        while self.inside and self.inside[0] <= now:
            self.inside.popleft()
        if len(self.inside) >= self.limit:
            return None
        at = max(now, self.last)
        passed = max(0, (at - self.phase) // self.tc + 1)
        self._fill(passed - self.ticks)
        while self.tokens < size * BITS:
            at = self.phase + self.ticks * self.tc
            self._fill(1)
        self.tokens -= size * BITS
        self.last = at
        self.inside.append(at)
        return at

    def _fill(self, ticks: int) -> None:
        self.ticks += ticks
        self.tokens = min(self.burst * BITS, self.tokens + ticks * self.tc * self.rate)


@dataclass
class Loss:
    """Independent losses."""

    share: float
    random: np.random.Generator

    def offer(self, now: int, size: int) -> int | None:
        return None if self.random.random() < self.share else now


@dataclass
class Jitter:
    """Variable delay, uniform or exponential around `mean` ns; order is preserved or not."""

    mean: int
    uniform: bool
    ordered: bool
    random: np.random.Generator
    last: int = 0

    def offer(self, now: int, size: int) -> int | None:
        drawn = self.random.uniform(0, 2 * self.mean) if self.uniform else self.random.exponential(self.mean)
        out = now + SECOND // 1000 + int(drawn)
        self.last = max(self.last, out)
        return self.last if self.ordered else out


@dataclass
class Drift:
    """Drifting clock behind the device, 10 ms ahead."""

    drift: float

    def offer(self, now: int, size: int) -> int | None:
        return int(now * (1 + self.drift)) + SECOND // 100


@dataclass
class Delay:
    """Constant delay."""

    ns: int

    def offer(self, now: int, size: int) -> int | None:
        return now + self.ns


@dataclass(frozen=True)
class Truth:
    """Right answer: one of the given kinds, and the values of the limiter, if there is one to find."""

    kinds: frozenset[str]
    rates: tuple[float, ...] = ()
    """Permitted rates."""
    burst: float | None = None
    two_buckets: bool = False
    tc_s: float | None = None


@dataclass(frozen=True)
class Case:
    """Packets before and after a path: times in ns; `out_ns` is -1 if the packet was lost."""

    path: str
    arrivals: str
    truth: Truth
    in_ns: np.ndarray
    out_ns: np.ndarray
    size: np.ndarray

    def captures(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both captures, like `load`."""
        constant = {"version": 4, "source_high": 0, "source": 1, "destination_high": 0, "destination": 2, "tos": 0}
        ports = {"protocol": 17, "source_port": 7, "destination_port": 8, "behind": -1}
        number = np.arange(len(self.size)) + 1000
        packets = pd.DataFrame({"bytes": self.size, "network_bytes": self.size - 14, "identity": number})
        packets = packets.assign(**constant, **ports)
        before = packets.assign(time_ns=START_NS + self.in_ns, ttl=64)
        after = packets.assign(time_ns=START_NS + self.out_ns, ttl=63)[self.out_ns >= 0]
        return before, after.sort_values("time_ns", kind="stable", ignore_index=True)

    def infer(self) -> Limiter:
        return infer(join(*self.captures()))


def send_through(devices: Iterable[PathDevice], now: int, size: int) -> int | None:
    """Return when a packet leaves the last device."""
    at: int | None = now
    for each in devices:
        if at is None:
            return None
        at = each.offer(at, size)
    return at


def packet_sizes(random: np.random.Generator) -> list[int]:
    """Return a packet size, or the possible sizes of a packet."""
    count = 1 if random.random() < 0.5 else int(random.integers(2, 6))
    found: list[int] = random.integers(100, 1515, count).tolist()
    return found


def open_loop(kind: str, rate: float, mixed: list[int], random: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Return arrivals and sizes of packets at a mean rate."""
    size = random.choice(mixed, PACKETS)
    gap = 8 * float(np.mean(mixed)) / rate
    if kind == "constant-rate":
        varied = random.choice([0.0, 0.02, 0.3])
        times = np.arange(1, PACKETS + 1) * gap + random.uniform(-0.5, 0.5, PACKETS) * varied * gap
    elif kind == "Poisson":
        times = np.cumsum(random.exponential(gap, PACKETS))
    else:
        # Bursts at three times the rate, of 20 to 200 packets, with pauses.
        gaps = np.full(PACKETS, gap / 3)
        starts = np.cumsum(random.integers(20, 200, PACKETS // 20))
        starts = starts[starts < PACKETS]
        lengths = np.diff(np.concatenate([[0], starts]))
        gaps[starts] += random.uniform(0.5, 1.5, len(starts)) * lengths * gap * 2 / 3
        times = np.cumsum(gaps)
    yield from zip(np.rint(times * SECOND).astype(int).tolist(), size.tolist(), strict=True)


def closed_loop(
    devices: list[PathDevice], random: np.random.Generator, size: int
) -> Iterator[tuple[int, int, int | None]]:
    """Simulate a TCP sender that halves its window when a packet is lost (AIMD); return arrival, size and departure."""
    back = int(random.integers(2, 40)) * SECOND // 1000
    window, flying, recovering = 10.0, 0, 0
    events: list[tuple[int, int, bool]] = [(SECOND // 100, 0, True)]
    sent = 0
    while sent < PACKETS:
        now, number, arrived = heapq.heappop(events)
        if number:
            flying -= 1
            if arrived:
                window += 1 / window
            elif number > recovering:
                window, recovering = max(2.0, window / 2), sent
        at = now
        while flying < int(window) and sent < PACKETS:
            out = send_through(devices, at, size)
            yield at, size, out
            sent, flying = sent + 1, flying + 1
            heard = (out if out is not None else at + 20 * SECOND // 1000) + back
            heapq.heappush(events, (heard, sent, out is not None))
            at += size * 8 * 10  # at 100 Mb/s
            if events[0][0] <= at:
                break
        if flying < int(window):
            heapq.heappush(events, (at, 0, True))


def packet_bytes(random: np.random.Generator, rate: int, largest: int, least_ms: float = 20) -> int:
    """Return a burst between 20 and 300 ms of the rate, and at least three packets."""
    return max(3 * largest, int(rate * random.uniform(least_ms, 300) / 8000))


@dataclass
class Draw:
    """Random choices of one case."""

    random: np.random.Generator
    rate: int
    mixed: list[int]
    offered: float

    def queue(self) -> int:
        return int(self.random.integers(10, 100))

    def loss(self) -> Loss:
        return Loss(float(self.random.choice([0.005, 0.01, 0.02, 0.05])), self.random)

    def jitter(self) -> Jitter:
        first, second = self.random.integers(0, 2, 2)
        gap = 8 * float(np.mean(self.mixed)) / self.offered * SECOND
        return Jitter(int(gap * self.random.uniform(0.05, 6)), bool(first), bool(second), self.random)


def single_bucket(draw: Draw) -> tuple[list[PathDevice], Truth]:
    burst = packet_bytes(draw.random, draw.rate, max(draw.mixed))
    return [Policer(draw.rate, burst)], Truth(frozenset({"policer"}), (draw.rate,), burst)


def two_buckets(draw: Draw) -> tuple[list[PathDevice], Truth]:
    both = max(packet_bytes(draw.random, draw.rate, max(draw.mixed)), 8 * max(draw.mixed))
    first = int(both * draw.random.uniform(0.2, 0.8))
    device = TwoBuckets(draw.rate, first, both - first)
    return [device], Truth(frozenset({"policer"}), (draw.rate,), both, two_buckets=True)


def two_rates(draw: Draw) -> tuple[list[PathDevice], Truth]:
    peak = packet_bytes(draw.random, draw.rate, max(draw.mixed))
    device = TwoRates(draw.rate // 2, peak // 2, draw.rate, peak)
    return [device], Truth(frozenset({"policer"}), (draw.rate,), peak)


def tick_shaper(draw: Draw) -> tuple[list[PathDevice], Truth]:
    tc_ms = int(draw.random.choice([4, 8, 10, 20, 25]))
    # Bc must hold a packet, or tokens are lost.
    draw.rate = max(draw.rate, int(8 * max(draw.mixed) / tc_ms * 1000 * 1.05))
    credit = draw.rate * tc_ms // 8000
    limit = max(64, 4 * credit // min(draw.mixed))
    phase = int(draw.random.integers(0, tc_ms * 10**6))
    shaper = TickShaper(draw.rate, tc_ms * 10**6, 2 * credit, limit, phase)
    line = Line(max(100 * 10**6, 20 * draw.rate), 10**6)
    return [shaper, line], Truth(frozenset({"shaper"}), (draw.rate,), 2 * credit, tc_s=tc_ms / 1000)


def token_shaper(draw: Draw) -> tuple[list[PathDevice], Truth]:
    burst = max(6 * max(draw.mixed), packet_bytes(draw.random, draw.rate, max(draw.mixed), 5))
    return [TokenShaper(draw.rate, burst, draw.queue())], Truth(frozenset({"shaper"}), (draw.rate,), burst)


def line(draw: Draw) -> tuple[list[PathDevice], Truth]:
    return [Line(draw.rate, draw.queue())], Truth(frozenset({"line"}), (draw.rate,))


def red(draw: Draw) -> tuple[list[PathDevice], Truth]:
    return [Red(draw.rate, 2 * draw.queue(), random=draw.random)], Truth(frozenset({"line"}), (draw.rate,))


def random_loss(draw: Draw) -> tuple[list[PathDevice], Truth]:
    return [draw.loss(), Delay(10**6)], Truth(frozenset({"unexplained"}))


def jitter(draw: Draw) -> tuple[list[PathDevice], Truth]:
    return [draw.jitter()], Truth(frozenset({"nothing"}))


def jitter_and_loss(draw: Draw) -> tuple[list[PathDevice], Truth]:
    return [draw.loss(), draw.jitter()], Truth(frozenset({"unexplained"}))


def nothing(draw: Draw) -> tuple[list[PathDevice], Truth]:
    return [Delay(int(draw.random.integers(1, 10**7)))], Truth(frozenset({"nothing"}))


def line_then_policer(draw: Draw) -> tuple[list[PathDevice], Truth]:
    fast = int(draw.rate * draw.random.uniform(1.1, 1.5))
    burst = packet_bytes(draw.random, draw.rate, max(draw.mixed))
    # Either device may be reported, because both are present.
    return [Line(fast, 400), Policer(draw.rate, burst)], Truth(
        frozenset({"unexplained", "line", "policer"}), (fast, draw.rate)
    )


def policer_then_line(draw: Draw) -> tuple[list[PathDevice], Truth]:
    burst = packet_bytes(draw.random, draw.rate, max(draw.mixed))
    fast = int(draw.rate * draw.random.uniform(1.1, 1.5))
    return [Policer(draw.rate, burst), Line(fast, 10**6)], Truth(frozenset({"policer"}), (draw.rate,), burst)


def policer_then_jitter(draw: Draw) -> tuple[list[PathDevice], Truth]:
    burst = packet_bytes(draw.random, draw.rate, max(draw.mixed))
    return [Policer(draw.rate, burst), draw.jitter()], Truth(frozenset({"policer"}), (draw.rate,), burst)


def line_then_jitter(draw: Draw) -> tuple[list[PathDevice], Truth]:
    known = frozenset({"unexplained", "nothing", "line", "shaper"})
    return [Line(draw.rate, draw.queue()), draw.jitter()], Truth(known, (draw.rate,))


def shaper_then_jitter(draw: Draw) -> tuple[list[PathDevice], Truth]:
    shaper, truth = token_shaper(draw)
    known = frozenset({"unexplained", "nothing", "shaper"})
    return [*shaper, draw.jitter()], Truth(known, truth.rates, truth.burst)


def two_policers(draw: Draw) -> tuple[list[PathDevice], Truth]:
    bursts = [packet_bytes(draw.random, draw.rate, max(draw.mixed)) for _ in range(2)]
    slow = int(draw.rate * draw.random.uniform(0.8, 0.95))
    # Only a policer is correct if the other device drops (nearly) nothing.
    return [Policer(draw.rate, bursts[0]), Policer(slow, bursts[1])], Truth(
        frozenset({"unexplained", "policer"}), (draw.rate, slow)
    )


def loss_then_line(draw: Draw) -> tuple[list[PathDevice], Truth]:
    draw.rate = int(draw.rate * 0.95)
    return [draw.loss(), Line(draw.rate, draw.queue())], Truth(frozenset({"line"}), (draw.rate,))


def two_lines(draw: Draw) -> tuple[list[PathDevice], Truth]:
    fast = int(draw.rate * draw.random.uniform(1.1, 3))
    return [Line(fast, draw.queue()), Line(draw.rate, draw.queue())], Truth(frozenset({"line"}), (draw.rate,))


def cross_traffic(draw: Draw) -> tuple[list[PathDevice], Truth]:
    share = draw.random.uniform(0.2, 0.6)
    mixed = packet_sizes(draw.random)
    others = deque(open_loop("Poisson", draw.rate * share, mixed, draw.random))
    # The line itself may be reported; there is no other limiter.
    device = Line(draw.rate, draw.queue(), others)
    return [device], Truth(frozenset({"unexplained", "nothing", "line"}), (draw.rate,))


PATHS = {
    single_bucket: 20,
    two_buckets: 8,
    two_rates: 5,
    tick_shaper: 10,
    token_shaper: 7,
    line: 9,
    red: 4,
    random_loss: 8,
    jitter: 7,
    jitter_and_loss: 2,
    nothing: 2,
    line_then_policer: 3,
    policer_then_line: 3,
    policer_then_jitter: 2,
    two_policers: 1,
    line_then_jitter: 2,
    shaper_then_jitter: 1,
    loss_then_line: 2,
    two_lines: 2,
    cross_traffic: 2,
}
"""Paths, and the number of cases with each among 100."""
ARRIVALS = ("constant-rate", "Poisson", "on-off", "TCP")
NO_LIMITER = ("random_loss", "jitter", "jitter_and_loss", "nothing")
MIN_CASES = 30
"""Least number of packets that a limiter drops or delays, and passes without delay, in a case in which it must be
found.
"""


def build_path(seed: int):  # type: ignore[no-untyped-def]
    """Return the path of a seed's case."""
    return [path for path, share in PATHS.items() for _ in range(share)][seed * 37 % 100]


def make_case(seed: int) -> Case:
    """Return the case of a seed: the first draw in which the limiter, if there is one, acts on enough packets."""
    path = build_path(seed)
    for attempt in range(200):
        found = _draw_case(path, np.random.default_rng([seed, attempt]))
        if path.__name__ in NO_LIMITER or has_effect(found):
            return found
    raise AssertionError(f"no case of {path.__name__} for seed {seed}")


def _draw_case(path, random: np.random.Generator) -> Case:  # type: ignore[no-untyped-def]
    arrivals = str(random.choice(ARRIVALS))
    rate = int(random.choice([256_000, 512_000, 10**6, 1_536_000, 2 * 10**6, 8 * 10**6, 34_368_000]))
    mixed = packet_sizes(random) if arrivals != "TCP" else [int(random.choice([590, 1514]))]
    over = float(random.choice([1.05, 1.1, 1.3, 1.5, 2, 3, 4]))
    draw = Draw(random, rate, mixed, rate * over)
    devices, truth = path(draw)
    draw.offered = draw.rate * over
    if arrivals == "TCP":
        # The sender's access line and the path to the device.
        rows = list(closed_loop(devices, random, mixed[0]))
    else:
        rows = [
            (now, size, send_through(devices, now, size))
            for now, size in open_loop(arrivals, draw.offered, mixed, random)
        ]
    rows.sort(key=lambda row: row[0])
    in_ns, size = (np.array([row[each] for row in rows]) for each in (0, 1))
    out_ns = np.array([-1 if row[2] is None else row[2] for row in rows])
    return Case(path.__name__, arrivals, truth, in_ns, out_ns, size)


def has_effect(case: Case) -> bool:
    """Return whether enough packets were dropped or delayed for the limiter to be found."""
    passed = case.out_ns >= 0
    if "policer" in case.path or case.path in ("single_bucket", "two_buckets", "two_rates"):
        return bool(min(passed.sum(), (~passed).sum()) >= MIN_CASES)
    delay = (case.out_ns - case.in_ns)[passed]
    waited = delay > delay.min() + 4 * BITS * case.size.mean() / max(case.truth.rates)
    return bool(waited.sum() > 10 * MIN_CASES)


@dataclass(frozen=True)
class Verdict:
    """Comparison of an answer with the truth; a missing or unknown value counts as neither right nor wrong."""

    case: Case
    answer: Limiter
    kind: bool
    inside: dict[str, bool]

    @property
    def invented(self) -> bool:
        """True if a limiter is reported and there is none."""
        return self.case.path in NO_LIMITER and self.answer.kind in LIMITERS


def judge_answer(case: Case) -> Verdict:
    answer, truth = case.infer(), case.truth
    inside: dict[str, bool] = {}
    kind = answer.kind in truth.kinds
    if kind and truth.rates and answer.rate_bps is not None:
        inside["rate"] = any(answer.rate_bps.low <= rate <= answer.rate_bps.high for rate in truth.rates)
    if kind and truth.burst is not None and answer.burst_bytes is not None:
        # Two buckets that decide like one are reported as one; each leaves less than a packet unused.
        unused = int(case.size.max()) if truth.two_buckets and answer.buckets == 1 else 0
        inside["burst"] = answer.burst_bytes.low <= truth.burst <= answer.burst_bytes.high + unused
    if kind and truth.tc_s is not None:
        known = answer.interval_s
        inside["Tc"] = known is not None and known.low <= truth.tc_s <= known.high
    return Verdict(case, answer, kind, inside)


@dataclass
class Score:
    """Results of several cases."""

    verdicts: list[Verdict] = field(default_factory=list)

    def kinds_right(self) -> float:
        return sum(each.kind for each in self.verdicts) / len(self.verdicts)

    def values_inside(self) -> float:
        checked = [value for each in self.verdicts for value in each.inside.values()]
        return sum(checked) / max(1, len(checked))

    def invented(self) -> float:
        without = [each for each in self.verdicts if each.case.path in NO_LIMITER]
        return sum(each.invented for each in without) / max(1, len(without))

    def lines(self) -> Iterator[str]:
        """Yield a table by path, and the totals."""
        by_path: dict[str, list[Verdict]] = {}
        for each in self.verdicts:
            by_path.setdefault(each.case.path, []).append(each)
        for path, verdicts in by_path.items():
            answers = Counter(each.answer.kind for each in verdicts)
            shown = ", ".join(f"{kind} {count}" for kind, count in answers.most_common())
            values = [
                f"{name} {sum(v.inside[name] for v in having)}/{len(having)}"
                for name in ("rate", "burst", "Tc")
                if (having := [v for v in verdicts if name in v.inside])
            ]
            right = sum(each.kind for each in verdicts)
            yield f"{path:20} {right:4}/{len(verdicts):<4} {', '.join(values):40} {shown}"
        yield (
            f"kind correct {100 * self.kinds_right():.1f} %, true values inside {100 * self.values_inside():.1f} %, "
            f"limiters where there is none {100 * self.invented():.1f} %"
        )


def score_cases(seeds: Iterable[int]) -> Score:
    return Score([judge_answer(make_case(seed)) for seed in seeds])


if __name__ == "__main__":
    found = score_cases(range(int(sys.argv[1]), int(sys.argv[2])))
    print("\n".join(found.lines()))
    for verdict in found.verdicts:
        if not verdict.kind or not all(verdict.inside.values()):
            case, answer = verdict.case, verdict.answer
            print(case.path, case.arrivals, sorted(set(case.size.tolist()))[:5], case.truth, verdict.inside, answer)
