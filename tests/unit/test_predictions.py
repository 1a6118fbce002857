"""Predictions of experiments follow from their mechanism: recomputed here if no expression in the file can."""

from __future__ import annotations

import math
import random
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import mean, median, pstdev
from typing import cast

import pytest

from levels import long_cases
from qoslab.model.comparison import PublishedValue
from qoslab.model.expectations import Expectation, resolve_expectation
from qoslab.model.experiment import Experiment
from qoslab.model.instants import MeasurementDemand
from qoslab.model.matrix import arm_combinations
from qoslab.plan import make_plan
from qoslab.schema import load_experiment, load_sweep, published_values
from qoslab.schema.published import COLUMNS
from qoslab.simulation.scenario import build_scenario, configured_routers
from qoslab.system import program_formats
from qoslab.trial.simulate import simulate

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
PUBLISHED = EXPERIMENTS.parent / "reports/published"
ALL = sorted(path.stem for path in EXPERIMENTS.glob("*.yml"))


@cache
def load_experiment_by_name(name: str) -> Experiment:
    """Return an experiment of the folder, as a constant."""
    return load_experiment(EXPERIMENTS / f"{name}.yml")


def expected(experiment: Experiment) -> list[Expectation]:
    """Return every expectation of an experiment, by combination of parameter values."""
    assert experiment.compare is not None
    found: list[Expectation] = []
    for each in experiment.compare.expectations:
        arm = experiment.arm(each.arms[0])
        cells = arm_combinations(experiment.arm_matrix(arm), arm.name)
        found += resolve_expectation(each, experiment.compare.quantities, cells, experiment.duration)
    return found


def published_rows(name: str, experiment: Experiment) -> tuple[PublishedValue, ...]:
    """Return the rows of the published table of an experiment."""
    return published_values(EXPERIMENTS / f"{name}.yml", experiment)


def published(name: str, experiment: Experiment) -> dict[tuple[str, str, str], PublishedValue]:
    """Return every published value of a measured quantity, by its metric and place."""
    values = published_rows(name, experiment)
    return {(each.arm, each.metric, each.selection): each for each in values if each.metric and each.is_published}


def operation(ring: int, flood_ms: float, echo_ms: float, start: random.Random) -> list[float]:
    """Return the time of ten probes, 20 ms apart, from arrival to the end of their transmission.

    The line is never idle: a FIFO ring of `ring` packets. A waiting probe takes the next free place, otherwise a packet
    of the flood.
    """
    arrivals = [20.0 * number for number in range(10)]
    places: list[tuple[float, int | None]] = [(flood_ms, None)] * ring
    waiting: list[tuple[float, int | None]] = []
    now, on_line = start.random() * flood_ms, None
    gone: dict[int, float] = {}
    upcoming = 0
    while len(gone) < len(arrivals):
        while upcoming < len(arrivals) and arrivals[upcoming] <= now:
            waiting.append((echo_ms, upcoming))
            upcoming += 1
        if on_line is not None:
            gone[on_line] = now
        length, on_line = places.pop(0)
        now += length
        places.append(waiting.pop(0) if waiting else (flood_ms, None))
    return [gone[number] - arrival for number, arrival in enumerate(arrivals)]


@pytest.mark.parametrize(
    ("kbps", "ring"), [(128, 1), (128, 2), (128, 5), (512, 2), (512, 5), (512, 10)], ids=lambda value: str(value)
)
def test_probes_queue_behind_each_other_in_the_ring(kbps: int, ring: int) -> None:
    experiment = load_experiment_by_name("tx-ring-limit")
    text = {
        each.metric: each.prediction
        for each in expected(experiment)
        if each.arm == "cbr" and each.selection == f"line = {kbps} kb/s, ring = {ring}"
    }
    flood_ms, echo_ms = 207 * 8 / kbps, 47 * 8 / kbps
    start = random.Random(1)
    operations = [operation(ring, flood_ms, echo_ms, start) for _ in range(4000)]
    trips = [wait + echo_ms + 3 * 0.32 for each in operations for wait in each]
    jitter = [abs(after - before) for each in operations for before, after in pairwise(each)]
    # The maximum and minimum of 40 000 are within a hundredth of a packet of the possible ones.
    assert max(trips) == pytest.approx(text["rtt.max"], abs=flood_ms / 100)
    assert min(trips) == pytest.approx(text["rtt.min"], abs=flood_ms / 100)
    assert mean(trips) == pytest.approx(text["rtt.avg"], abs=0.1)
    if kbps == 128:
        assert mean(jitter) == pytest.approx(text["jitter.avg"], abs=0.1)
        assert min(jitter) == pytest.approx(text["jitter.min"], abs=0.1)


@pytest.mark.parametrize("name", ALL)
def test_unreproduced_values_are_explained(name: str) -> None:
    """Check that the report explains each published value that differs from the prediction."""
    experiment = load_experiment_by_name(name)
    known = published(name, experiment)
    if experiment.compare is None:
        return
    silent = []
    for each in expected(experiment):
        value = known.get((each.arm, each.metric, each.selection))
        if (
            value is not None
            and not each.is_within_bounds(value.value, uncertain=value.resolution / 2)
            and not each.explained
        ):
            silent.append(f"{each.arm} {each.metric} {each.selection}: {value.value:g}, expected {each.tolerance}")
    assert not silent


@pytest.mark.parametrize("name", ALL)
def test_prediction_is_within_its_own_bounds(name: str) -> None:
    experiment = load_experiment_by_name(name)
    if experiment.compare is None:
        return
    for each in expected(experiment):
        assert each.prediction is None or each.is_within_bounds(each.prediction), (
            f"{each.arm} {each.metric} {each.selection}"
        )
        assert each.prediction is None or each.reason, f"{each.arm} {each.metric}: nothing says why"


FIGURES = {
    "policing-vs-shaping": 53,
    "hqf-fair-queue": 34,
    "srr-3750": 33,
    "tx-ring-limit": 103,
    "tcp-friendly-policer": 17,
}
"""Printed, claimed and drawn values of each of the five articles, without products of rate and time.

Two are ratios of values that also count separately: the spread of ten streams, and a second quotient of drops.
"""


@pytest.mark.parametrize("name", FIGURES)
def test_every_value_of_an_article_is_accounted_for(name: str) -> None:
    """Account for every value: the experiment has an expectation for it, or its row says why none is possible."""
    experiment = load_experiment_by_name(name)
    judged = {(each.arm, each.metric, each.selection) for each in expected(experiment)}
    rows = published_rows(name, experiment)
    assert len([each for each in rows if each.is_published]) == FIGURES[name]
    silent = [each for each in rows if not each.remark and (each.arm, each.metric, each.selection) not in judged]
    assert silent == []


@pytest.mark.parametrize("name", ALL)
def test_every_table_row_has_its_source_and_time(name: str) -> None:
    """Check every row: it has the time given by the article, or a note that it gives none, and its place, unless it is
    derived.
    """
    rows = published_rows(name, load_experiment_by_name(name))
    assert [each.source for each in rows if not each.kind or not each.moment] == []
    assert [each.source for each in rows if not each.place and each.kind != "derived"] == []


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.csv")), ids=lambda path: path.stem)
def test_tables_have_all_columns(path: Path) -> None:
    head = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert tuple(head[: len(COLUMNS) + 5]) == (*COLUMNS, "resolution", "kind", "moment", "place", "remark")


def test_grid_has_the_scenarios_of_the_slides() -> None:
    experiment = load_experiment_by_name("tcp-friendly-policer")
    cells = list(arm_combinations(experiment.arm_matrix(experiment.arm("grid")), "grid"))
    various = {name: {str(cell[name]) for cell in cells} for name in ("rtt", "link", "pir", "connections")}
    assert [len(values) for values in various.values()] == [3, 3, 5, 4]
    assert len(cells) == 180


UNITS = {"b/s": 1.0, "kb/s": 1e3, "Mb/s": 1e6, "%": 0.01}
COMPARED_AT_LEAST = 200
"""Minimum number of compared values, of the 240 of the five articles.

The others are processor load, which is not modelled; averages over five minutes that their own counters contradict;
pictures and opinions; inputs and triggers of a comparison; and counts of a time, or of packets, that the article does
not give.
"""
CLAIM = "claim"
"""Unit of a claim without a value."""


def named_expectations(reference: str, own: str) -> list[Expectation]:
    """Return the expectations that a reference names: `[EXPERIMENT: ]ARM METRIC[ (CELLS)]`; any cells without."""
    before, separator, text = reference.partition(": ")
    found = expected(load_experiment_by_name(before if separator else own))
    text = text or before
    return [
        each for each in found if text in (f"{each.arm} {each.metric}", f"{each.arm} {each.metric} ({each.selection})")
    ]


def is_implied(claim: str, own: str) -> bool:
    """Return whether `A > B` follows from expectations: every passing result has more of A than of B.

    A is a reference, B a reference or a number in the metric's unit.
    """
    above, _, below = claim.partition(" > ")
    least = [-math.inf if low is None else low for low, _ in (each.bounds for each in named_expectations(above, own))]
    if below.replace(".", "", 1).isdigit():
        greatest = [float(below)]
    else:
        greatest = [
            math.inf if high is None else high for _, high in (each.bounds for each in named_expectations(below, own))
        ]
    return bool(least) and bool(greatest) and min(least) > max(greatest)


def is_compared(reference: str, metric_value: PublishedValue, name: str) -> bool:
    """Return whether the expectation of a reference judges the value: a test of an output, bounds, or an implied
    claim.
    """
    if "::" in reference:
        file, function = reference.split("::")
        begins = "fn" if file.endswith(".rs") else "def"
        return f"{begins} {function}(" in (EXPERIMENTS.parent / file).read_text(encoding="utf-8")
    if metric_value.unit == CLAIM:
        return is_implied(reference, name)
    unit = UNITS.get(metric_value.unit, 1.0)
    value, uncertain = metric_value.value * unit, metric_value.resolution * unit / 2
    if reference.startswith("average "):
        compare = load_experiment_by_name(name).compare
        assert compare is not None
        found = [each for each in compare.averages if f"average {each.title}" == reference]
        return bool(found) and all(each.is_within_bounds(value, value, value) for each in found)
    bounds = named_expectations(reference, name)
    return bool(bounds) and all(each.is_within_bounds(value, uncertain=uncertain) for each in bounds)


def test_minimum_number_of_values_is_compared() -> None:
    """Count the values with an expectation of their own, or with one named by `compared` in their row."""
    compared, unlike = 0, []
    for name in ALL:
        experiment = load_experiment_by_name(name)
        judged = {(each.arm, each.metric, each.selection) for each in expected(experiment)}
        for value in published_rows(name, experiment):
            references = list(filter(None, value.compared.split("; ")))
            unlike += [(name, value.source, each) for each in references if not is_compared(each, value, name)]
            own = (value.arm, value.metric, value.selection) in judged
            compared += name in FIGURES and value.is_published and (own or bool(references))
    assert unlike == []
    assert compared >= COMPARED_AT_LEAST


def hashed_queue(flows: int, chance: random.Random) -> list[int]:
    """Return the number of flows in each used queue of 256."""
    queues: dict[int, int] = {}
    for _ in range(flows):
        number = chance.randrange(256)
        queues[number] = queues.get(number, 0) + 1
    return sorted(queues.values())


def queue_shares(queues: list[int], offered_bps: float, class_bps: float) -> float:
    """Return the share of each queue: equal for queues with more load, the load for the others."""
    left = class_bps
    for place, count in enumerate(queues):
        if count * offered_bps > left / (len(queues) - place):
            return left / (len(queues) - place)
        left -= count * offered_bps
    return math.inf


@pytest.mark.parametrize("flows", [100, *long_cases(1000)])
def test_hashed_flows_share_as_computed(flows: int) -> None:
    """Hash flows: counted bytes are 260 for 256 of IP, and 30 % of the counted bytes of the line."""
    chance = random.Random(1)
    offered_bps, class_bps = 1_500_000 / flows * 260 / 256, 594.3e3
    every = [hashed_queue(flows, chance) for _ in range(2000)]
    alike = [queue_shares(queues, offered_bps, class_bps) for queues in every]
    found = [
        [min(offered_bps, share / count) for count in queues for _ in range(count)]
        for queues, share in zip(every, alike, strict=True)
    ]
    of = {
        "fairness.jain(flows)": [sum(each) ** 2 / flows / sum(one**2 for one in each) for each in found],
        "goodput.flow.max(flows)": [max(each) * 228 / 260 for each in found],
        "goodput.flow.median(flows)": [median(each) * 228 / 260 for each in found],
    }
    rows = {
        each.metric: each
        for each in expected(load_experiment_by_name("hqf-fair-queue"))
        if each.arms == (f"flows-{flows}",)
    }
    assert len(of.keys() & rows.keys()) == (3 if flows == 100 else 2)
    for metric in of.keys() & rows.keys():
        centre, spread = mean(of[metric]), pstdev(of[metric])
        # The median of a thousand jumps from a fifth of a queue's share to a quarter.
        jumps = flows == 1000 and metric.startswith("goodput.flow.median")
        ends = (min(of[metric]), max(of[metric])) if jumps else (centre - 3 * spread, centre + 3 * spread)
        assert rows[metric].prediction == pytest.approx(centre, rel=0.005)
        assert rows[metric].bounds == pytest.approx(ends, rel=0.01)
    # Two thirds of 65 s; the flows did not send in the first five.
    waited = [
        sum(min(16.0, max(0.0, count * offered_bps - share) * (65 * 2 / 3 - 5) / (8 * 260)) for count in queues)
        for queues, share in zip(every, alike, strict=True)
    ]
    centre, spread, most = mean(waited), pstdev(waited), mean([len(queues) for queues in every])
    low, high = rows["class.queue_depth.during(P5003)"].bounds
    assert (low, high) == pytest.approx((centre - 3 * spread - most, centre + 3 * spread), rel=0.002)


@pytest.mark.parametrize(
    ("name", "arm", "flows"),
    [
        ("policing-vs-shaping", "shaped", ["transfer"]),
        ("policing-vs-shaping", "unequal", ["narrow", "wide"]),
        ("hqf-fair-queue", "fair-10", ["session"]),
    ],
)
def test_client_ports_separate_the_streams_of_a_fair_queue(name: str, arm: str, flows: list[str]) -> None:
    """Run the arm with the flow hash of the virtual lab, whose seed is 0: in a shared queue a stream gets half."""
    sweep = load_sweep(EXPERIMENTS / f"{name}.yml")
    (cell,) = (each.experiment for each in make_plan(sweep).cells if each.experiment.arms[0].name == arm)
    routers = configured_routers(cell, sweep.configuration_text(cell, cell.arms[0]))
    scenario = build_scenario(cell, routers, 1, MeasurementDemand()) | {"seed": 0, "captures": []}
    (result,) = simulate([cast("program_formats.Scenario", scenario)])
    received = [stream["bytes"] for flow in flows for stream in result["flows"][flow]["streams"]]
    assert min(received) > 0.98 * max(received)
