"""Captures joined packet by packet, and the limiter between them; simulated ones are inferred within bounds."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from test_pcap import pcap

from levels import example_count, long_cases, value_by_level
from qoslab.analysis.limiter_inference import infer, join
from qoslab.analysis.limiter_inference.bucket import infer_bucket
from qoslab.analysis.limiter_inference.releases import infer_releases
from qoslab.analysis.limiter_inference.two_buckets import infer_two_buckets
from qoslab.cli import main
from qoslab.errors import UserError

Array = npt.NDArray[np.float64]
START_NS = 1_700_000_000 * 10**9


def police_load(time_s: Array, size: Array, rate_bps: float, burst: float) -> npt.NDArray[np.bool_]:
    """Return the packets that a token bucket passes."""
    tokens, last, passed = burst, time_s[0], []
    for now, each in zip(time_s, size, strict=True):
        tokens, last = min(burst, tokens + rate_bps / 8 * (now - last)), now
        passed.append(tokens >= each)
        tokens -= each if passed[-1] else 0.0
    return np.array(passed)


def police_load_twice(
    time_s: Array, size: Array, rate_bps: float, first: float, second: float
) -> npt.NDArray[np.bool_]:
    """Return the packets that pass if the second bucket gets the overflow of the first (RFC 2697)."""
    one, other, last, passed = first, second, time_s[0], []
    for now, each in zip(time_s, size, strict=True):
        above = max(0.0, one + rate_bps / 8 * (now - last) - first)
        one, other, last = one + rate_bps / 8 * (now - last) - above, min(second, other + above), now
        passed.append(one >= each or other >= each)
        if one >= each:
            one -= each
        elif other >= each:
            other -= each
    return np.array(passed)


def shape_load(time_s: Array, size: Array, rate_bps: float, tc_s: float, limit: int) -> Array:
    """Return departure times from a shaper whose bucket gets Bc each Tc and holds twice that; nan for drops."""
    credit = rate_bps * tc_s / 8
    out, queue, tokens, free, ticks, at = np.full(len(size), np.nan), [], 2 * credit, 0.0, 0, 0
    while at < len(size) or queue:
        now = ticks * tc_s
        ticks += 1
        while True:
            while queue and tokens >= size[queue[0]]:
                first = queue.pop(0)
                tokens -= size[first]
                free = max(now, free) + (size[first] + 24) * 8 / 100e6
                out[first] = free
            if at == len(size) or time_s[at] >= ticks * tc_s:
                break
            now = time_s[at]
            if len(queue) < limit:
                queue.append(at)
            at += 1
        tokens = min(tokens + credit, 2 * credit)
    return out


def limit_by_line(time_s: Array, size: Array, rate_bps: float, limit: int) -> Array:
    """Return departure times from a line with a queue of packets; nan for drops."""
    out, free = np.full(len(size), np.nan), 0.0
    inside: list[float] = []
    for number, (now, each) in enumerate(zip(time_s, size, strict=True)):
        inside = [moment for moment in inside if moment > now]
        if len(inside) < limit:
            free = max(now, free) + 8 * each / rate_bps
            out[number] = free
            inside.append(free)
    return out


def limit_by_ring(time_s: Array, size: Array, first: npt.NDArray[np.bool_], rate_bps: float, ring: int) -> Array:
    """Return departure times from a line with a ring in front of it, which takes the `first` packets before others."""
    out, waiting = np.full(len(size), np.nan), (list[int](), list[int]())
    inside: list[int] = []
    free, at = 0.0, 0
    while at < len(size) or inside or any(waiting):
        while len(inside) < ring and any(waiting):
            inside.append(waiting[0].pop(0) if waiting[0] else waiting[1].pop(0))
        leaves = free if inside else np.inf
        if at < len(size) and (time_s[at] < leaves or not inside):
            free = max(free, time_s[at])
            waiting[0 if first[at] else 1].append(at)
            at += 1
        else:
            now = inside.pop(0)
            free += 8 * size[now] / rate_bps
            out[now] = free
    return out


@dataclass(frozen=True)
class Load:
    """Arriving packets: a mean rate with pauses."""

    seed: int
    rate_bps: float
    equal: bool
    paced: bool
    count: int = 5000
    pause_s: float = 0.5
    random: np.random.Generator = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "random", np.random.default_rng(self.seed))

    def packets(self) -> tuple[Array, Array]:
        """Return arrival times and sizes of packets."""
        kinds = self.random.integers(100, 1515, 1 if self.equal else 5)
        size = self.random.choice(kinds, self.count).astype(np.float64)
        gap = 8 * size.mean() / self.rate_bps
        gaps = np.full(self.count, gap) if self.paced else self.random.exponential(gap, self.count)
        gaps[self.random.integers(self.count // 10, self.count, 3)] += self.random.uniform(0, self.pause_s, 3)
        return np.cumsum(gaps), size


LOADS = {"seed": st.integers(0, 10**6), "equal": st.booleans(), "paced": st.booleans()}


@settings(max_examples=example_count(25), deadline=None)
@given(rate=st.floats(1e5, 1e8), burst_ms=st.floats(30, 500), over=st.floats(1.2, 3), **LOADS)
@example(rate=1e5, burst_ms=30.0, over=1.2, seed=3489, equal=False, paced=False)  # two packets in the bucket
def test_any_policer_is_inferred(
    rate: float, burst_ms: float, over: float, seed: int, equal: bool, paced: bool
) -> None:
    # Packets of one size at one pace pass in turn, which many buckets explain.
    assume(not (equal and paced))
    burst = max(rate * burst_ms / 8000, 3028.0)
    time_s, size = Load(seed, rate * over, equal, paced, pause_s=burst_ms / 500).packets()
    # The bucket is full at first, so enough packets must arrive to empty it.
    size_of_all = 8 * size.sum() * (over - 1) / over
    passed = police_load(time_s, size, rate, burst)
    if size_of_all < 16 * burst or min(passed.sum(), (~passed).sum()) < 300:
        return
    found = infer_bucket(time_s, size, passed)
    assert found is not None
    assert found.rate_bps.value == pytest.approx(rate, rel=2e-3)
    assert found.burst_bytes.value == pytest.approx(burst, abs=size.max())
    assert found.rate_bps.low <= rate <= found.rate_bps.high


@settings(max_examples=value_by_level(short=1, long=8), deadline=None)
@given(
    rate=st.floats(3e6, 1e8),
    burst_ms=st.floats(100, 500),
    share=st.floats(0.1, 0.9),
    over=st.floats(1.2, 3),
    seed=st.integers(0, 10**6),
    paced=st.booleans(),
)
@example(rate=9999695.0, burst_ms=223.5, share=0.5, over=1.616947557313409, seed=122706, paced=True)  # few are lost
def test_two_buckets_of_one_rate_are_inferred_together(
    rate: float, burst_ms: float, share: float, over: float, seed: int, paced: bool
) -> None:
    both = rate * burst_ms / 8000
    first = min(max(both * share, 8 * 1514), both - 8 * 1514)
    time_s, size = Load(seed, rate * over, equal=False, paced=paced, pause_s=burst_ms / 500).packets()
    passed = police_load_twice(time_s, size, rate, first, both - first)
    assume(8 * size.sum() * (over - 1) / over >= 16 * both and min(passed.sum(), (~passed).sum()) >= 300)
    found = infer_two_buckets(time_s, size, passed)
    assert found is not None and found.buckets == 2
    assert found.rate_bps.value == pytest.approx(rate, rel=1e-3)
    assert found.burst_bytes.value == pytest.approx(both, abs=size.max())
    assert found.burst_bytes.low <= found.burst_bytes.value <= found.burst_bytes.high


@settings(max_examples=example_count(20), deadline=None)
@given(
    rate=st.sampled_from([256e3, 1e6, 1.5e6, 8e6]),
    tc_ms=st.sampled_from([4.0, 8.0, 10.0, 25.0, 125.0]),
    over=st.floats(1.3, 3),
    **LOADS,
)
@example(rate=256000.0, tc_ms=10.0, over=1.5, seed=353, equal=True, paced=True)
@example(rate=256000.0, tc_ms=10.0, over=2.0, seed=353, equal=True, paced=False)
def test_any_shaper_is_inferred(rate: float, tc_ms: float, over: float, seed: int, equal: bool, paced: bool) -> None:
    time_s, size = Load(seed, rate * over, equal, paced, count=8000).packets()
    credit = rate * tc_ms / 8000
    # A bucket of less than two packets loses tokens, which looks like another rate. A few intervals show little.
    assume(credit >= size.max() and time_s[-1] >= 200 * tc_ms / 1000)
    # A queue that is empty at each tick leaves tokens behind.
    out = shape_load(time_s, size, rate, tc_ms / 1000, max(64, int(4 * credit / size.min())))
    through = ~np.isnan(out)
    found = infer_releases(time_s[through], out[through], size[through])
    assert found is not None
    assert found.rate_bps.low <= rate <= found.rate_bps.high
    assert found.rate_bps.value == pytest.approx(rate, rel=1e-3)
    assert found.interval_s is not None and found.interval_s.value == pytest.approx(tc_ms / 1000, rel=1e-5)


def capture_load(time_s: Array, size: Array, out_s: Array, **changes: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two captures of arriving and leaving packets, like `load`."""
    usual = {
        "version": 4,
        "source_high": 0,
        "source": 1,
        "destination_high": 0,
        "destination": 2,
        "protocol": 17,
        "source_port": 7,
        "destination_port": 8,
        "tos": 0,
        "behind": -1,
    }
    packets = pd.DataFrame({"bytes": size.astype(int), "network_bytes": size.astype(int) - 14, "ttl": 64})
    packets = packets.assign(identity=np.arange(len(size)) + 1000, **usual).assign(**changes)
    before = packets.assign(time_ns=START_NS + np.rint(time_s * 1e9).astype(np.int64))
    kept = ~np.isnan(out_s)
    stamps = START_NS + np.rint(np.where(kept, out_s, 0) * 1e9).astype(np.int64)
    after = packets.assign(time_ns=stamps, ttl=63)[kept].sort_values("time_ns", kind="stable")
    return before, after.reset_index(drop=True)


def capture_both_ways(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([one, other]).sort_values("time_ns", kind="stable", ignore_index=True)


def answer_packets(time_s: Array, delay_s: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return packets in the reverse direction: seen behind the device first."""
    size = np.full(len(time_s), 64.0)
    seen_there, seen_here = capture_load(time_s, size, time_s + delay_s, source=2, destination=1)
    shift = 10**6
    return seen_here.assign(identity=seen_here["identity"] + shift), seen_there.assign(
        identity=seen_there["identity"] + shift
    )


class TestLimiters:
    time_s, size = Load(1, 1.5e6, False, False).packets()

    def test_policer_is_inferred(self) -> None:
        passed = police_load(self.time_s, self.size, 1e6, 31250)
        found = infer(join(*capture_load(self.time_s, self.size, np.where(passed, self.time_s + 0.001, np.nan))))
        assert (found.kind, found.queue_packets, found.interval_s) == ("policer", None, None)
        assert found.rate_bps is not None and found.rate_bps.value == pytest.approx(1e6, rel=1e-4)
        assert found.burst_bytes is not None and found.burst_bytes.value == pytest.approx(31250, abs=100)

    @pytest.mark.sample(2)
    @pytest.mark.parametrize(("ahead_s", "drift"), [(3.7, 50e-6), (-3.7, -50e-6), (0.2, 0.0)])
    def test_results_with_two_clocks_are_right_or_omitted(self, ahead_s: float, drift: float) -> None:
        passed = police_load(self.time_s, self.size, 1e6, 31250)
        of_policer = np.where(passed, self.time_s + 0.001, np.nan)
        for out in (of_policer, shape_load(self.time_s, self.size, 1e6, 0.025, 64)):
            before, after = capture_load(self.time_s, self.size, out)
            shown = START_NS + np.rint((after["time_ns"] - START_NS) * (1 + drift) + ahead_s * 1e9).astype(np.int64)
            right, wrong = infer(join(before, after)), infer(join(before, after.assign(time_ns=shown)))
            assert wrong.kind == right.kind
            if right.queue_packets is not None:
                # A drifting clock makes the result less certain, which is reported.
                assert wrong.queue_packets is not None
                assert wrong.queue_packets.low <= right.queue_packets.value <= wrong.queue_packets.high
            packet = self.size.max()
            for name, coarse in (("rate_bps", 0.0), ("interval_s", 0.0), ("burst_bytes", packet)):
                true, found = getattr(right, name), getattr(wrong, name)
                # The value is withheld if a drift would blur it.
                assert (found is None) == (true is None) or (found is None and drift)
                if found is not None:
                    assert found.value == pytest.approx(true.value, rel=1e-3, abs=coarse), name

    def test_policer_before_a_line_is_inferred(self) -> None:
        passed = police_load(self.time_s, self.size, 1e6, 31250)
        out = np.full(len(passed), np.nan)
        out[passed] = limit_by_line(self.time_s[passed], self.size[passed], 4e6, 1000)
        found = infer(join(*capture_load(self.time_s, self.size, out)))
        assert found.kind == "policer" and found.rate_bps is not None
        assert found.rate_bps.value == pytest.approx(1e6, rel=1e-4)

    def test_shaper_and_its_queue_are_inferred(self) -> None:
        joined = join(*capture_load(self.time_s, self.size, shape_load(self.time_s, self.size, 1e6, 0.025, 64)))
        found = infer(joined)
        assert found.kind == "shaper" and found.interval_s is not None and found.queue_packets is not None
        assert found.interval_s.value == pytest.approx(0.025, rel=1e-6)
        assert (found.queue_packets.low, found.queue_packets.value) == (64, 64)
        assert found.burst_bytes is not None and found.burst_bytes.value == pytest.approx(6250, abs=self.size.max())

    def test_line_and_its_queue_are_inferred(self) -> None:
        found = infer(join(*capture_load(self.time_s, self.size, limit_by_line(self.time_s, self.size, 1e6, 40))))
        assert (found.kind, found.interval_s) == ("line", None)
        assert found.rate_bps is not None and found.rate_bps.value == pytest.approx(1e6, rel=1e-5)
        queue = found.queue_packets
        assert queue is not None and (queue.low, queue.value, queue.high) == (40, 40, 40)

    @pytest.mark.parametrize("alone", [True, False])
    def test_ring_behind_a_priority_queue_is_inferred(self, alone: bool) -> None:
        """Infer a ring even if no packet finds the line idle, so that none shows the shortest time."""
        rate, ring = 10e6, 3
        time_s = np.sort(np.concatenate([np.arange(2000) * 0.7e-3, 0.1003 + np.arange(250) * 5.11e-3]))
        voice = ~np.isin(time_s, np.arange(2000) * 0.7e-3)
        size = np.where(voice, 214.0, 1014.0)
        if alone:
            time_s[0], voice[0], size[0] = -0.01, True, 214.0
        out = limit_by_ring(time_s, size, voice, rate, ring)
        found = infer(join(*capture_load(time_s, size, out, source_port=np.where(voice, 9, 7))))
        assert found.kind == "line" and found.ahead_packets == ring + 1

    def test_unlimited_captures_give_no_limiter(self) -> None:
        found = infer(join(*capture_load(self.time_s, self.size, self.time_s + 0.002)))
        assert found.kind == "nothing" and found.rate_bps is None
        assert list(found.lines()) == [
            f"No rate limit: up to {found.busiest_bps:,.0f} b/s arrived over 0.1 s and left without waiting."
        ]
        assert found.busiest_bps is not None and 1.5e6 < found.busiest_bps < 4e6

    def test_random_losses_are_not_a_policer(self) -> None:
        lost = np.random.default_rng(3).random(len(self.size)) < 0.05
        found = infer(join(*capture_load(self.time_s, self.size, np.where(lost, np.nan, self.time_s + 0.002))))
        assert found.kind == "unexplained"

    def test_marking_policer_is_inferred(self) -> None:
        conformed = police_load(self.time_s, self.size, 1e6, 31250)
        before, after = capture_load(self.time_s, self.size, self.time_s + 0.002, tos=0xB8)
        joined = join(before, after.assign(tos=np.where(conformed, 0xB8, 0x28)))
        found = infer(joined)
        assert found.kind == "marker" and found.burst_bytes is not None
        assert found.burst_bytes.value == pytest.approx(31250, abs=100)
        (row,) = joined.summarise_flows().to_dict("records")
        assert (row["packets"], row["lost"], row["remarked"]) == (5000, 0, int((~conformed).sum()))

    @pytest.mark.long
    def test_counted_layer_is_inferred(self) -> None:
        counted = self.size - 14
        passed = police_load(self.time_s, counted, 1e6, 31250)
        joined = join(*capture_load(self.time_s, self.size, np.where(passed, self.time_s + 0.001, np.nan)))
        right, wrong = infer(joined, "ip"), infer(joined, "frame")
        assert right.kind == "policer" and right.unexplained is not None and right.unexplained < 5
        assert wrong.kind == "unexplained" or (wrong.unexplained or 0) > 10 * right.unexplained


@pytest.mark.parametrize("seed", [0, *long_cases(4)])
def test_rate_of_a_shaper_before_a_policer_is_a_range(seed: int) -> None:
    """The packets that the policer drops were sent by the shaper, so its rate is above that of the passed packets."""
    time_s, size = Load(seed, 3e6, equal=True, paced=True).packets()
    out = shape_load(time_s, size, 2e6, 0.01, 200)
    sent = np.flatnonzero(~np.isnan(out))
    out[sent[~police_load(out[sent], size[sent], 1.5e6, 20000)]] = np.nan
    found = infer(join(*capture_load(time_s, size, out)))
    assert found.kind == "shaper" and found.rate_bps is not None and found.queue_packets is None
    assert found.rate_bps.low < 1.5e6 < 2e6 < found.rate_bps.high
    assert any("highest if the packets were lost after the shaper" in line for line in found.lines())


def test_full_queue_leaves_the_rate_of_a_shaper_known() -> None:
    time_s, size = Load(0, 3e6, equal=True, paced=True).packets()
    found = infer(join(*capture_load(time_s, size, shape_load(time_s, size, 2e6, 0.01, 200))))
    assert found.kind == "shaper" and found.rate_bps is not None and found.queue_packets is not None
    assert found.rate_bps.high < 1.01 * 2e6


@pytest.mark.parametrize("paced", [True, False])
def test_losses_of_large_packets_alone_are_no_policer(paced: bool) -> None:
    """An MTU drops what a bucket smaller than these packets drops at any rate."""
    time_s, _ = Load(1, 2e6, equal=True, paced=paced).packets()
    size = np.random.default_rng(1).choice([200.0, 800.0, 1500.0], len(time_s))
    found = infer(join(*capture_load(time_s, size, np.where(size > 1000, np.nan, time_s + 0.001))))
    assert found.kind == "unexplained" and found.largest_passed_bytes == 800
    assert "all packets larger than 800 B were lost, and no other packets" in next(found.lines())


class TestJoining:
    time_s = np.arange(1, 201) / 100
    size = np.full(200, 514.0)

    def test_identical_packets_are_matched_in_order(self) -> None:
        before, after = capture_load(self.time_s, self.size, self.time_s + 0.004)
        alike = before["identity"] // 4
        joined = join(before.assign(identity=alike), after.assign(identity=alike))
        assert (joined.packets["out_s"] - joined.packets["in_s"]).to_numpy() == pytest.approx(0.004)

    def test_overtaking_packets_are_counted(self) -> None:
        out = self.time_s + 0.001
        out[50] = out[53] + 0.005
        joined = join(*capture_load(self.time_s, self.size, out))
        assert joined.packets["overtook"].to_numpy()[48:56].tolist() == [0, 0, 0, 1, 1, 1, 0, 0]

    def test_overtaking_is_counted_as_by_comparing_all_pairs(self) -> None:
        out = self.time_s + np.random.default_rng(1).exponential(0.1, 200)
        out[::9] = np.nan
        later = (out[:, None] > out[None, :]) & (self.time_s[:, None] < self.time_s[None, :])
        found = join(*capture_load(self.time_s, self.size, out)).packets
        assert found["overtook"].tolist() == later.sum(axis=0)[1:].tolist() and len(found) == 199

    def test_packets_outside_the_common_time_are_counted(self) -> None:
        out = self.time_s + 0.001
        out[:30] = np.nan
        out[-20:] = np.nan
        joined = join(*capture_load(self.time_s, self.size, out))
        assert joined.outside == 50 and len(joined.packets) == 150

    def test_each_flow_has_its_delay_and_loss(self) -> None:
        out = self.time_s + np.where(np.arange(200) % 2, 0.001, 0.003)
        out[[10, 12, 15]] = np.nan
        ports = np.where(np.arange(200) % 2, 7, 9)
        rows = join(*capture_load(self.time_s, self.size, out, source_port=ports)).summarise_flows().set_index("flow")
        one, other = rows.loc["0.0.0.1:7 > 0.0.0.2:8"], rows.loc["0.0.0.1:9 > 0.0.0.2:8"]
        assert (one["packets"], one["lost"], other["packets"], other["lost"]) == (100, 1, 100, 2)
        assert (one["delay_ms_max"], other["delay_ms_min"]) == (pytest.approx(1), pytest.approx(3))

    def test_direction_follows_from_time_to_live_with_any_clocks(self) -> None:
        before, after = capture_load(self.time_s, self.size, self.time_s - 5)
        joined = join(before, after)
        assert joined.clocks.state == "offset unknown" and len(joined.packets) == 200
        with pytest.raises(UserError, match="all common packets went the other way"):
            join(after, before)

    @pytest.mark.parametrize("ahead_s", [-3.0, 0.0, 2.5])
    def test_clocks_are_corrected_by_packets_of_both_directions(self, ahead_s: float) -> None:
        before, after = capture_load(self.time_s, self.size, self.time_s + 0.004)
        there, back = answer_packets(self.time_s + 0.0042, 0.002)
        drift = 40e-6
        one, other = capture_both_ways(before, there), capture_both_ways(after, back)
        shown = (other["time_ns"] - START_NS) * (1 + drift) + ahead_s * 1e9
        joined = join(one, other.assign(time_ns=START_NS + np.rint(shown).astype(np.int64)))
        delay = (joined.packets["out_s"] - joined.packets["in_s"]).to_numpy()
        if ahead_s:
            assert joined.clocks.state == "corrected" and joined.clocks.error_s == pytest.approx(0.003, abs=1e-4)
            assert joined.clocks.ahead_s == pytest.approx(ahead_s + 0.001, abs=1e-3)
        else:
            assert joined.clocks.state == "agree"
        assert delay == pytest.approx(0.004, abs=0.0035) and len(delay) == 200

    def test_clock_that_was_set_is_refused(self) -> None:
        before, after = capture_load(self.time_s, self.size, self.time_s + 0.004)
        there, back = answer_packets(self.time_s + 0.0042, 0.002)
        one, other = capture_both_ways(before, there), capture_both_ways(after, back)
        stepped = other["time_ns"].where(other["time_ns"] < START_NS + 10**9, other["time_ns"] + 10**9)
        with pytest.raises(UserError, match="cannot be aligned"):
            join(one, other.assign(time_ns=stepped))
        stepped = other["time_ns"].where(other["time_ns"] < START_NS + 10**9, other["time_ns"] - 10**8)
        with pytest.raises(UserError, match="the clock of the second capture was set back"):
            join(one, other.assign(time_ns=stepped))


def ethernet_frame(number: int, size: int, ttl: int, source: int = 0x0A000001, dscp: int = 0) -> bytes:
    ip = struct.pack(">BBHHHBBHII", 0x45, dscp << 2, size - 14, number & 0xFFFF, 0, ttl, 17, 0, source, 0x0A000002)
    udp = struct.pack(">HHHHI", 7, 8, size - 34, 0, number)
    return bytes(12) + b"\x08\x00" + ip + udp + bytes(size - 46)


def capture_files(
    folder: Path,
    passed: npt.NDArray[np.bool_],
    time_s: Array,
    *,
    source: int = 0x0A000001,
    dscp: npt.NDArray[np.int_] | None = None,
) -> tuple[str, str]:
    """Provide two captures of packets of 514 bytes, the second compressed."""
    marks = np.zeros(len(passed), int) if dscp is None else dscp
    rows = [(int(each), int(each % 1 * 1e9)) for each in time_s + 100]
    marked = list(enumerate(zip(rows, marks.tolist(), strict=True)))
    before = [(*row, ethernet_frame(number, 514, 64, dscp=mark)) for number, (row, mark) in marked]
    after = [(*row, ethernet_frame(number, 514, 63, source, mark)) for number, (row, mark) in marked if passed[number]]
    (folder / "before.pcap").write_bytes(pcap("<", 0xA1B23C4D, 1, before, kept=128))
    (folder / "after.pcap.gz").write_bytes(gzip.compress(pcap("<", 0xA1B23C4D, 1, after, kept=128), 1))
    return str(folder / "before.pcap"), str(folder / "after.pcap.gz")


def test_two_buckets_are_reported() -> None:
    time_s, size = Load(1, 1.6e6, equal=False, paced=True).packets()
    passed = police_load_twice(time_s, size, 1e6, 20000, 30000)
    found = infer(join(*capture_load(time_s, size, np.where(passed, time_s + 0.001, np.nan))))
    assert found.kind == "policer" and found.as_json()["buckets"] == 2
    assert any(
        line.startswith("  burst") and line.endswith(", two buckets with the same rate together")
        for line in found.lines()
    )


EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("switched betwen", 'found "betwen" in limiter.rate(switched betwen), expected a capture point'),
        (
            "switched",
            'found "switched" in limiter.rate(switched), expected BEFORE AFTER [dscp 0-63], the names of two',
        ),
        (
            "switched between dscp 64",
            'found "switched between dscp 64" in limiter.rate(switched between dscp 64), expected BEFORE AFTER [dscp',
        ),
    ],
)
def test_captures_named_by_a_metric_must_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, message: str
) -> None:
    folder = tmp_path / "experiments"
    shutil.copytree(EXPERIMENTS / "templates", folder / "templates")
    text = (EXPERIMENTS / "bucket-truth.yml").read_text()
    (folder / "e.yml").write_text(text.replace("limiter.rate(switched between)", f"limiter.rate({written})", 1))
    assert main(["validate", str(folder / "e.yml")]) == 2
    assert message in capsys.readouterr().err


class TestCommand:
    time_s = np.arange(1, 3001) * 514 * 8 / 1.5e6
    passed = police_load(time_s, np.full(3000, 514.0), 1e6, 31250)

    def test_command_prints_the_inferred_limiter(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        table = tmp_path / "joined.parquet"
        assert main(["infer", *capture_files(tmp_path, self.passed, self.time_s), "--table", str(table)]) == 0
        output = capsys.readouterr().out
        dropped = int((~self.passed).sum())
        assert f"before.pcap: 3,000 IP packets; {tmp_path}/after.pcap.gz: {3000 - dropped:,};" in output
        assert "Clocks agree" in output and "10.0.0.1:7 > 10.0.0.2:8, 0" in output
        assert "A policer, counted in frames without FCS, as counted by IOS routers:" in output
        assert pd.read_parquet(table)["out_s"].isna().sum() <= dropped

    def test_json_output_has_all_values(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["infer", *capture_files(tmp_path, self.passed, self.time_s), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["limiter"]["kind"] == "policer" and found["clocks"]["state"] == "agree"
        assert found["limiter"]["rate_bps"]["value"] == pytest.approx(1e6, rel=1e-3)
        assert found["limiter"]["burst_bytes"]["value"] == pytest.approx(31250, abs=514)

    def test_one_class_is_inferred_among_others(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        # Every other packet belongs to a class without a limiter.
        ours = np.arange(3000) % 2 == 0
        passed = ~ours
        passed[ours] = police_load(self.time_s[ours], np.full(ours.sum(), 514.0), 0.5e6, 31250)
        names = capture_files(tmp_path, passed, self.time_s, dscp=np.where(ours, 46, 10))
        assert main(["infer", *names]) == 0
        assert "rate   1,250,000 b/s" in capsys.readouterr().out  # of both together
        assert main(["infer", *names, "--dscp", "46", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["limiter"]
        assert found["rate_bps"]["value"] == pytest.approx(0.5e6, rel=1e-3)
        assert main(["infer", *names, "--dscp", "12"]) == 2
        assert "found no input packet with DSCP 12, expected one of DSCP 10, 46" in capsys.readouterr().err

    def test_unrelated_captures_are_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        names = capture_files(tmp_path, self.passed, self.time_s, source=0x0A000009)
        table = tmp_path / "joined.parquet"
        assert main(["infer", *names, "--table", str(table)]) == 2
        output = capsys.readouterr().err
        assert "the captures are unrelated: they have 3,000 and" in output and "but only 0 are in both" in output
        assert "The captures have no host in common" in output and not list(tmp_path.glob("*parquet*"))

    def test_truncated_capture_is_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before, after = capture_files(tmp_path, self.passed, self.time_s)
        Path(before).write_bytes(Path(before).read_bytes()[:-7])
        assert main(["infer", before, after]) == 2
        assert "before.pcap: the packet at byte 431880 is malformed or truncated" in capsys.readouterr().err

    def test_missing_or_empty_capture_is_reported(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before, after = capture_files(tmp_path, self.passed, self.time_s)
        assert main(["infer", before, str(tmp_path / "none")]) == 2
        assert "none: cannot be read: No such file" in capsys.readouterr().err
        Path(after).write_bytes(pcap("<", 0xA1B23C4D, 1, []))
        assert main(["infer", before, after]) == 2
        assert "after.pcap.gz: found no packets" in capsys.readouterr().err

    def test_captures_with_a_short_snap_length_are_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = capture_files(tmp_path, self.passed, self.time_s)
        Path(before).write_bytes(pcap("<", 0xA1B23C4D, 1, [(1, 0, ethernet_frame(1, 514, 64))] * 20, kept=40))
        assert main(["infer", before, after]) == 2
        assert "only 6 bytes after the IP header, expected at least 20" in capsys.readouterr().err

    def test_unwritable_table_is_reported(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        names = capture_files(tmp_path, self.passed, self.time_s)
        (tmp_path / "file").touch()
        assert main(["infer", *names, "--table", str(tmp_path / "file" / "x.parquet")]) == 2
        assert "x.parquet: cannot be written: " in capsys.readouterr().err
