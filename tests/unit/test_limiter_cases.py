"""A sample of the captures of known devices; `tests/inference` has 2,000 of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import pytest

from limiter_cases import (
    PATHS,
    SECOND,
    START_NS,
    Case,
    Delay,
    Drift,
    Jitter,
    Line,
    Loss,
    PathDevice,
    Policer,
    TickShaper,
    Truth,
    build_path,
    judge_answer,
    make_case,
    send_through,
)
from qoslab.analysis.limiter_inference import Limiter, infer, join

UNKNOWN = Truth(frozenset())


FIRST_SEEDS = {path: next(seed for seed in range(100) if build_path(seed) is path) for path in PATHS}


@pytest.mark.sample(8)
@pytest.mark.parametrize("path", [pytest.param(path, id=path.__name__) for path in PATHS])
def test_known_limiter_is_inferred(path) -> None:  # type: ignore[no-untyped-def]
    found = judge_answer(make_case(FIRST_SEEDS[path]))
    assert found.kind, (found.case.path, found.case.arrivals, found.answer)
    assert all(found.inside.values()), (found.case.path, found.case.truth, found.answer)


def infer_case(devices: list[PathDevice], in_ns: np.ndarray, size: int) -> Limiter:
    out = [send_through(devices, int(now), size) for now in in_ns]
    out_ns = np.array([-1 if each is None else each for each in out])
    return Case("by hand", "", UNKNOWN, in_ns, out_ns, np.full(len(in_ns), size)).infer()


def paced_load(rate: int, size: int, count: int, jitter: float = 0.0, seed: int = 1) -> np.ndarray:
    gap = size * 8 * SECOND / rate
    late = np.random.default_rng(seed).uniform(-jitter, jitter, count) * gap
    found: np.ndarray = np.rint(np.arange(1, count + 1) * gap + late).astype(np.int64)
    return found


def poisson(rate: int, size: int, count: int, seed: int = 1) -> np.ndarray:
    gaps = np.random.default_rng(seed).exponential(size * 8 * SECOND / rate, count)
    found: np.ndarray = np.rint(np.cumsum(gaps)).astype(np.int64)
    return found


@pytest.mark.sample(12)
@pytest.mark.parametrize("share", [0.03, 0.005])
@pytest.mark.parametrize("jitter", [0.02, 0.0, 0.1])
@pytest.mark.parametrize("size", [1000, 214])
def test_random_loss_of_constant_rate_traffic_is_not_a_policer(share: float, jitter: float, size: int) -> None:
    loss = Loss(share, np.random.default_rng(7))
    found = infer_case([loss, Delay(SECOND // 1000)], paced_load(10**6, size, 2500, jitter), size)
    assert found.kind == "unexplained" and found.rate_bps is None


@pytest.mark.parametrize("jitter", [0, SECOND // 500])
def test_packets_missing_from_the_first_capture_have_consumed_tokens(jitter: int) -> None:
    in_ns = poisson(3 * 10**6, 1000, 2000)
    devices: list[PathDevice] = [Policer(2 * 10**6, 10_000), Delay(SECOND // 1000)]
    out = [send_through(devices, int(now), 1000) for now in in_ns]
    late = np.random.default_rng(3).integers(0, jitter + 1, len(out))
    out_ns = np.array([-1 if each is None else each for each in out]) + late
    before, after = Case("by hand", "", UNKNOWN, in_ns, out_ns, np.full(len(in_ns), 1000)).captures()
    found = infer(join(before[np.random.default_rng(4).random(len(before)) > 0.03], after))
    if jitter:
        assert found.rate_bps is None and found.unseen_packets is None
        return
    assert found.rate_bps is not None and found.rate_bps.low <= 2 * 10**6 <= found.rate_bps.high
    assert found.unseen_packets and "missing from the first capture" in "\n".join(found.lines())


@dataclass
class RegularLoss:
    """Loss of every n-th packet."""

    every: int
    count: int = 0

    def offer(self, now: int, size: int) -> int | None:
        self.count += 1
        return None if self.count % self.every == 0 else now


@pytest.mark.parametrize(("every", "jitter"), [(2, 0.0), (25, 0.0), (25, 0.1), (100, 0.02)])
def test_regular_loss_of_constant_rate_traffic_is_not_a_policer(every: int, jitter: float) -> None:
    found = infer_case([RegularLoss(every)], paced_load(10**6, 500, 1200, jitter), 500)
    assert (found.kind, found.rate_bps, found.lost_every) == ("unexplained", None, every)
    assert f"one packet in {every} was lost" in "\n".join(found.lines())


@pytest.mark.sample(16)
@pytest.mark.parametrize("over", [1.1, 1.5, 2, 4])
@pytest.mark.parametrize("share", [0.005, 0.02])
@pytest.mark.parametrize("burst", [1500, 6000])
def test_policer_before_random_loss_is_not_inferred_with_another_rate(over: float, share: float, burst: int) -> None:
    loss = Loss(share, np.random.default_rng(7))
    found = infer_case([Policer(10**6, burst), loss], paced_load(int(10**6 * over), 700, 1500), 700)
    assert found.rate_bps is None or found.rate_bps.low <= 10**6 <= found.rate_bps.high


@pytest.mark.sample(4)
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize(("over", "share"), [(1.5, 0.01), (1.3, 0.03), (2.0, 0.05)])
def test_policer_is_inferred_on_a_path_with_random_loss(place: str, over: float, share: float) -> None:
    policer, loss = Policer(2 * 10**6, 10_000), Loss(share, np.random.default_rng(5))
    devices: list[PathDevice] = [loss, policer] if place == "before" else [policer, loss]
    found = infer_case(devices, poisson(int(over * 2 * 10**6), 1000, 3000), 1000)
    assert (found.kind, found.random_losses) == ("policer", place)
    assert found.rate_bps is not None and found.rate_bps.low <= 2 * 10**6 <= found.rate_bps.high
    assert found.burst_bytes is not None and found.burst_bytes.low <= 10_000 <= found.burst_bytes.high
    assert found.random_share == pytest.approx(share, rel=0.5)
    assert any(f"{place} the policer" in line for line in found.lines())


def test_burst_of_a_bucket_that_was_never_full_is_a_lower_bound() -> None:
    policer = Policer(2 * 10**6, 40_000)
    policer.tokens = 0
    found = infer_case([policer], poisson(2_600_000, 1000, 2500), 1000)
    assert (found.kind, found.burst_from) == ("policer", "least")
    assert found.rate_bps is not None and found.rate_bps.low <= 2 * 10**6 <= found.rate_bps.high
    assert found.burst_bytes is not None and found.burst_bytes.low <= 40_000
    assert any("at least" in line for line in found.lines())


def test_burst_that_depends_on_a_full_bucket_at_the_start_is_reported_so() -> None:
    found = infer_case([Policer(10**6, 20_000)], paced_load(1_500_000, 1000, 1500), 1000)
    assert (found.kind, found.burst_from) == ("policer", "start")
    assert any("full at the start of the capture" in line for line in found.lines())
    arrivals = np.concatenate([paced_load(3 * 10**6, 1000, 300) + number * 2 * SECOND for number in range(5)])
    assert infer_case([Policer(10**6, 20_000)], arrivals, 1000).burst_from == "full"


@pytest.mark.sample(12)
@pytest.mark.parametrize("over", [1.1, 1.5, 4])
@pytest.mark.parametrize("jitter", [0.0, 0.02])
@pytest.mark.parametrize("burst", [3000, 10000])
def test_policer_of_constant_rate_traffic_is_one_bucket_with_the_true_rate(
    over: float, jitter: float, burst: int
) -> None:
    found = infer_case([Policer(10**6, burst)], paced_load(int(10**6 * over), 1000, 1500, jitter), 1000)
    assert (found.kind, found.buckets) == ("policer", 1)
    assert found.rate_bps is not None and found.rate_bps.low <= 10**6 <= found.rate_bps.high
    assert found.burst_bytes is not None and found.burst_bytes.low <= burst <= found.burst_bytes.high


@pytest.mark.sample(8)
@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("arrivals", [paced_load, poisson])
def test_jitter_is_not_a_shaper(uniform: bool, ordered: bool, arrivals) -> None:  # type: ignore[no-untyped-def]
    jitter = Jitter(5 * SECOND // 1000, uniform, ordered, np.random.default_rng(3))
    found = infer_case([jitter], arrivals(4 * 10**6, 1000, 2500), 1000)
    assert found.kind == "nothing" and found.rate_bps is None
    assert "jitter" in "\n".join(found.lines())


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("line", "limit", "arrivals", "offered"),
    [
        (1_200_000, 400, poisson, 2 * 10**6),
        (1_200_000, 400, paced_load, 1_300_000),
        (2 * 10**6, 40, poisson, 2 * 10**6),
        (2 * 10**6, 400, paced_load, 3 * 10**6),
        (3 * 10**6, 40, poisson, 3 * 10**6),
    ],
)
def test_line_before_a_policer_is_not_inferred_with_another_rate(line: int, limit: int, arrivals, offered: int) -> None:  # type: ignore[no-untyped-def]
    found = infer_case([Line(line, limit), Policer(10**6, 6000)], arrivals(offered, 700, 4000), 700)
    if found.kind == "line":
        assert found.rate_bps is not None and found.rate_bps.low <= line <= found.rate_bps.high
        assert found.unexplained and found.queue_packets is None
    else:
        assert found.kind == "unexplained" and found.rate_bps is None


def test_line_before_a_policer_is_inferred_without_queue_drops() -> None:
    found = infer_case([Line(1_200_000, 1200), Policer(10**6, 6000)], paced_load(1_300_000, 700, 4000), 700)
    assert found.kind == "line" and found.rate_bps is not None
    assert found.rate_bps.value == pytest.approx(1_200_000, rel=1e-5)
    assert "lost while the queue was not full" in "\n".join(found.lines())


def test_line_shared_with_uncaptured_traffic_is_not_a_shaper() -> None:
    others = deque(zip(poisson(600_000, 500, 2000, seed=9).tolist(), [500] * 2000, strict=True))
    found = infer_case([Line(1_500_000, 50, others)], poisson(1_300_000, 700, 3000), 700)
    assert found.kind == "unexplained" and found.rate_bps is None


def test_losses_before_a_line_are_not_attributed_to_its_queue() -> None:
    loss = Loss(0.02, np.random.default_rng(7))
    found = infer_case([loss, Line(10**6, 200)], poisson(950_000, 700, 4000), 700)
    assert found.kind == "line" and found.queue_packets is None
    assert found.rate_bps is not None and found.rate_bps.low <= 10**6 <= found.rate_bps.high
    assert "lost while the queue was not full" in "\n".join(found.lines())


def test_interval_of_a_shaper_with_one_packet_per_interval_is_inferred() -> None:
    tc_ns = 10 * SECOND // 1000
    devices = [TickShaper(256_000, tc_ns, 640, 64, 0), Line(100 * 10**6, 10**6)]
    found = infer_case(devices, paced_load(384_000, 320, 3000), 320)
    assert found.kind == "shaper" and found.interval_s is not None and found.rate_bps is not None
    assert found.interval_s.low <= 0.01 <= found.interval_s.high
    assert found.rate_bps.low < 256_000 < found.rate_bps.high


def test_captures_of_a_limiter_case_have_the_expected_times() -> None:
    before, after = make_case(0).captures()
    assert before["time_ns"].min() >= START_NS and len(after) < len(before)


@pytest.mark.sample(4)
@pytest.mark.parametrize("uneven", [True, False])
@pytest.mark.parametrize("over", [2.5, 1.1])
def test_line_with_jitter_behind_it_is_not_a_policer(uneven: bool, over: float) -> None:
    arrivals = (poisson if uneven else paced_load)(int(over * 10**6), 1000, 3000)
    devices: list[PathDevice] = [Line(10**6, 30), Jitter(SECOND // 2000, False, True, np.random.default_rng(3))]
    found = infer_case(devices, arrivals, 1000)
    assert found.kind == "line" and found.rate_bps is not None and found.burst_bytes is None
    assert found.rate_bps.low <= 10**6 <= found.rate_bps.high
    assert found.queue_packets is not None and found.queue_packets.value == pytest.approx(30, abs=1)


def test_policer_with_jitter_behind_it_is_a_policer() -> None:
    jitter = Jitter(SECOND // 200, False, True, np.random.default_rng(3))
    found = infer_case([Policer(10**6, 20_000), jitter], poisson(2 * 10**6, 1000, 3000), 1000)
    assert found.kind == "policer" and found.burst_bytes is not None and found.burst_bytes.low <= 20_000


def test_rate_of_a_bucket_that_fills_between_bursts_has_a_wide_interval() -> None:
    bursts = np.concatenate([SECOND // 2 * number + 20_000 * np.arange(8) for number in range(1, 100)])
    found = infer_case([Policer(10**6, 3500)], bursts, 1000)
    assert found.kind == "policer" and found.rate_bps is not None
    assert found.rate_bps.low <= 10**6 <= found.rate_bps.high and found.rate_bps.high > 100 * found.rate_bps.low
    assert any("use longer bursts" in line for line in found.lines())


@pytest.mark.parametrize("drift", [-60e-6, 60e-6])
def test_line_rate_interval_includes_undetectable_clock_drift(drift: float) -> None:
    found = infer_case([Line(10**6, 30), Drift(drift)], poisson(2 * 10**6, 1000, 3000), 1000)
    assert found.kind == "line" and found.rate_bps is not None
    assert found.rate_bps.low <= 10**6 <= found.rate_bps.high
