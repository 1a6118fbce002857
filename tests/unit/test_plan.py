"""Plan of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoslab.cli.plan import plan_lines
from qoslab.errors import ExperimentError
from qoslab.lab_kinds.measured import DRAIN_S
from qoslab.model.experiment import BACKGROUND_MARGIN_S
from qoslab.model.instants import traffic_time
from qoslab.model.units import Duration
from qoslab.plan import Options, make_plan
from qoslab.schema import load_experiment, load_sweep

TOP = Path(__file__).parents[2]
GOLDENS = TOP / "tests" / "goldens" / "plan"
ARTICLE = load_experiment(TOP / "experiments" / "policing-vs-shaping.yml")


def seconds(count: int) -> Duration:
    return Duration(count * 10**9)


def test_plan_of_the_article_is_printed(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDENS / "policing-vs-shaping.txt", "\n".join(plan_lines(make_plan(ARTICLE))) + "\n")


def test_plan_is_printed_as_json(golden: Callable[[Path, str], None]) -> None:
    plan = make_plan(ARTICLE, Options(arms=("policed",), duration=seconds(3)))
    golden(GOLDENS / "policed.json", json.dumps(plan.as_dict(), indent=2) + "\n")


def test_probes_need_time_to_come_to_their_end() -> None:
    ring = load_sweep(TOP / "experiments" / "tx-ring-limit.yml", {})
    for short in (2, 3):
        with pytest.raises(ExperimentError, match=f'found the duration {short} s, too short for the probe "echo"'):
            make_plan(ring, Options(duration=seconds(short)))
    assert make_plan(ring, Options(duration=seconds(8))).cells


def test_engine_router_has_a_separate_role() -> None:
    experiment = load_experiment(TOP / "experiments" / "policing-vs-shaping.yml", {"R1.platform": "engine"})
    details = [step.detail for cell in make_plan(experiment).cells for step in cell.steps if step.kind == "apply"]
    assert details
    assert all("engine_router" in detail for detail in details)


@given(
    st.lists(st.sampled_from([arm.name for arm in ARTICLE.arms]), max_size=5),
    st.integers(min_value=1, max_value=5),
    st.integers(min_value=1, max_value=1000),
)
def test_plan_follows_the_options(arms: list[str], repetitions: int, length: int) -> None:
    plan = make_plan(ARTICLE, Options(arms=tuple(arms), duration=seconds(length), repetitions=repetitions))
    chosen = [arm.name for arm in ARTICLE.arms if not arms or arm.name in arms]
    assert [(cell.repetition, cell.arm) for cell in plan.cells] == [
        (repetition, arm) for repetition in range(1, repetitions + 1) for arm in chosen
    ]
    assert len({cell.name for cell in plan.cells}) == len(plan.cells)
    assert (plan.experiment.duration, plan.experiment.repetitions) == (seconds(length), repetitions)
    for cell in plan.cells:
        traffic = [step.seconds for step in cell.steps if step.kind == "traffic"]
        assert traffic == [length + DRAIN_S]
    assert plan.seconds > sum(cell.seconds for cell in plan.cells)


def test_parallel_labs_do_not_shorten_a_cell() -> None:
    plan = make_plan(load_sweep(TOP / "experiments" / "tx-ring-limit.yml"))
    longest = max(step.seconds for cell in plan.cells for step in cell.steps if step.kind == "traffic")
    estimates = [plan.estimate_seconds(labs) for labs in (1, 2, 4, 8, 100)]
    assert estimates == sorted(estimates, reverse=True)
    assert longest > 27 and estimates[-1] > longest


def test_steps_of_a_cell_are_in_order() -> None:
    for cell in make_plan(ARTICLE).cells:
        kinds = [step.kind for step in cell.steps]
        # Ansible removes the previous cell's configuration, in the order that configures this one.
        assert kinds[0] == "restore"
        assert kinds.index("wait") < kinds.index("prepare") < kinds.index("capture on")
        assert kinds.index("capture on") < kinds.index("traffic") < kinds.index("capture off")
        if ARTICLE.arm_configurations(ARTICLE.arm(cell.arm)):
            assert kinds.index("apply") < kinds.index("verify") < kinds.index("wait")
        else:
            assert "apply" not in kinds
        for step in cell.steps:
            assert (step.after_s is None) == (step.moment in (None, "before", "after"))
            assert step.moment != "during" or step.after_s == pytest.approx(20.0)


def test_traffic_lasts_until_the_last_flow_ends() -> None:
    flow = ARTICLE.traffic[0]
    flows = (flow, flow.model_copy(update={"name": "late", "start_after": seconds(25), "duration": seconds(10)}))
    arm = ARTICLE.arms[0].model_copy(update={"traffic": flows})
    assert traffic_time(ARTICLE, arm) == seconds(35)
    assert traffic_time(ARTICLE, arm.model_copy(update={"traffic": ()})) == seconds(0)


def test_background_traffic_outlasts_the_measured_flows() -> None:
    flow = ARTICLE.traffic[0]
    load = flow.model_copy(update={"name": "load", "background": True})
    late = flow.model_copy(update={"name": "late", "start_after": Duration(2_500_000_000)})
    arm = ARTICLE.arms[0].model_copy(update={"traffic": (load, late)})
    whole = round(ARTICLE.duration.seconds) + 3 + BACKGROUND_MARGIN_S
    assert ARTICLE.flow_duration(arm, late) == ARTICLE.duration
    assert ARTICLE.flow_duration(arm, load) == seconds(whole)
    assert traffic_time(ARTICLE, arm) == seconds(whole)
    alone = arm.model_copy(update={"traffic": (load,)})
    assert ARTICLE.flow_duration(alone, load) == ARTICLE.duration


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(arms=("policed", "polcied")), 'found the arm "polcied", expected one of unrestricted'),
        (Options(repetitions=0), "found 0 repetitions"),
        (Options(duration=Duration(0)), "found the duration 0 s"),
    ],
)
def test_conflicting_plan_options_are_refused(options: Options, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        make_plan(ARTICLE, options)
