"""Show commands at a time or at the value of a counter: in the file, in the plan, in a simulation, in a lab."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from qoslab.errors import DeviceError, ExperimentError
from qoslab.lab_kinds import lab_kind
from qoslab.model.experiment import MAX_TRIGGERS, Experiment, Observation, Trigger
from qoslab.model.instants import MeasurementDemand, counter_reading_times, trigger_bytes, triggers
from qoslab.model.units import Duration, Size
from qoslab.run.cell import triggers as waiting
from qoslab.run.cell.journal import CellJournal
from qoslab.run.cell.triggers import TriggerThreads
from qoslab.run.devices.collector import RouterAnswer
from qoslab.schema import load_sweep
from qoslab.simulation.history import SampleHistory

FILE = Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml"
SHOW = "show policy-map interface"
CONFORMED = Trigger(conformed_bytes=Size(3000))
SOON = Trigger(time=Duration(10**7))


def experiment(*observations: str) -> Experiment:
    """Return an experiment with these entries of `observe`."""
    return load_sweep(FILE, {"observe": f"[{', '.join(observations)}]"}).experiment


def observe(when: str, more: str = "") -> str:
    return f"{{node: R1, command: {SHOW}, when: {when}{more}}}"


def test_trigger_is_a_word_a_time_or_a_counter() -> None:
    found = experiment(observe("during"), observe("[before, {time: 6 s}]"), observe("{conformed_bytes: 1992832 B}"))
    assert [each.moments for each in found.observe] == [
        ("during",),
        ("before", Trigger(time=Duration(6 * 10**9))),
        (Trigger(conformed_bytes=Size(1992832)),),
    ]
    assert [str(each) for each in triggers(found)] == ["time 6 s", "conformed_bytes 1992832 B"]
    assert Experiment.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            observe("{conformed_bytes: 1 MB, time: 6 s}"),
            "found the keys time, conformed_bytes, expected exactly one of",
        ),
        (
            observe("[before, {}]"),
            "observe[0].when[1]: found no key, expected exactly one of time, conformed_bytes, bytes",
        ),
        (observe("{time: 0 s}"), "expected a duration above zero"),
        (observe("{conformed_bytes: 6 s}"), 'found "6 s"'),
        (
            observe("{conformed: 1 MB}"),
            'found the unknown key "conformed", expected one of bytes, conformed_bytes, time',
        ),
        (observe("durnig"), 'did you mean "during"?'),
        (observe("[before, 6 s]"), 'found "6 s", expected one of before, during, after'),
        (observe("during", ", arms: [polised]"), 'found "polised", expected'),
    ],
)
def test_invalid_trigger_is_reported_with_its_place(entry: str, message: str) -> None:
    with pytest.raises(ExperimentError) as error:
        experiment(entry)
    (finding,) = error.value.findings
    assert message in str(finding) and "observe[0]." in str(finding)


def test_number_of_observations_per_router_is_limited() -> None:
    """Count the entries of one arm together; other routers and other arms have separate limits."""
    times = [f"{{time: {number} ms}}" for number in range(1, MAX_TRIGGERS + 2)]
    most, one_more = f"[before, {', '.join(times[:-1])}]", times[-1]
    assert len(triggers(experiment(observe(most)))) == MAX_TRIGGERS
    experiment(observe(most, ", arms: [policed]"), observe(one_more, ", arms: [shaped]"))
    with pytest.raises(ExperimentError) as error:
        experiment(observe(most), observe(one_more, ", arms: [policed]"))
    (finding,) = error.value.findings
    assert "observe[1].when: found more than 32 observation triggers for R1 in arm" in str(finding)


def test_plan_shows_the_trigger() -> None:
    found = experiment(observe("[{time: 2 s}, {conformed_bytes: 5 kB}]"), observe("{time: 1 s}", ", arms: [policed]"))
    arms = {arm.name: found.model_copy(update={"arms": (arm,)}) for arm in found.arms}
    steps = {
        name: [(step.detail, step.after_s) for step in lab_kind("virtual").steps(each) if step.kind == "observe"]
        for name, each in arms.items()
    }
    both = [(f"time 2 s: {SHOW}", 2.0), (f"once conformed_bytes 5 kB: {SHOW}", 0.0)]
    assert steps.pop("policed") == [*both, (f"time 1 s: {SHOW}", 1.0)]
    assert all(each == both for each in steps.values())


def counters(conformed: int, seconds: float = 0.0) -> Any:
    """Return counters of R1: a policed class with a child, one without a policer, and an input class."""
    policed = {"name": "a", "bytes": 2 * conformed, "police": {"conformed": {"bytes": conformed}}}
    inside = {"policy": "Q", "classes": [{**policed, "child": None}]}
    output = {"policy": "P", "classes": [{**policed, "child": inside}, {"name": "b", "bytes": 7, "police": None}]}
    ports = {"Fa0/0": {"policy_input": output, "policy_output": None}, "Fa0/1": {"policy_output": output}}
    return {"time_ns": int(seconds * 1e9), "interfaces": ports}


def test_classes_of_output_policies_count() -> None:
    assert trigger_bytes(Trigger(conformed_bytes=Size(1)), counters(500)) == 500
    assert trigger_bytes(Trigger(bytes=Size(1)), counters(500)) == 1007
    ports = {"Fa0/0": {"subinterfaces": counters(500)["interfaces"]}}
    assert trigger_bytes(Trigger(bytes=Size(1)), cast(Any, {"interfaces": ports})) == 1007


def test_simulation_advances_to_the_sample_of_the_trigger() -> None:
    history = SampleHistory([counters(1000 * second, 100 + second) for second in range(5)])

    def last(found: SampleHistory | str) -> float:
        assert isinstance(found, SampleHistory)
        return found.samples[-1]["time_ns"] / 1e9

    assert last(history.history_until_trigger(CONFORMED, 4 * 10**9)) == 103
    assert last(history.history_until_trigger(Trigger(conformed_bytes=Size(2001)), 4 * 10**9)) == 103
    assert last(history.history_until_trigger(Trigger(time=Duration(2_900_000_000)), 4 * 10**9)) == 102
    assert history.history_until_trigger(Trigger(conformed_bytes=Size(4001)), 4 * 10**9) == "4000 B at the end"
    assert (
        history.history_until_trigger(Trigger(time=Duration(5 * 10**9)), 4 * 10**9)
        == "the simulation ended after 4.0 s"
    )


def test_routers_are_observed_only_on_request() -> None:
    def reading_times(*when: str, asked: tuple[float, ...] = ()) -> list[float]:
        found = experiment(*map(observe, when))
        return [each.seconds for each in counter_reading_times(found, MeasurementDemand(times_s=asked))]

    # The experiment's traffic takes 30 s; `during` applies to each cell.
    assert reading_times("before") == reading_times("after") == reading_times("{conformed_bytes: 1992832 B}") == [20]
    assert reading_times("{time: 6 s}", "[after, {time: 2.5 s}]", asked=(5.7, 6.0)) == [2.5, 5.7, 6, 20]
    # Never, and at the end.
    assert reading_times("{time: 31 s}", asked=(0.0, 30.0)) == [20]


class FakeJournal:
    """Part of a journal that `Triggered` needs."""

    def __init__(self, *wanted: Trigger) -> None:
        self._wanted = Observation(node="R1", command=SHOW, when=wanted)
        self.events: list[tuple[str, str]] = []
        self.task: Any = self
        self.experiment: Any = self
        self.arms = ("policed",)

    def arm_observations(self, arm: object) -> tuple[Observation, ...]:
        return (self._wanted,)

    def observations(self, moment: Trigger) -> list[Observation]:
        return [self._wanted]

    def save_observation(self, each: Observation, moment: Trigger, raw: str, data: object, between: object) -> None:
        self.events.append((str(moment), raw))

    record_unobserved = CellJournal.record_unobserved

    def warn(self, text: str) -> None:
        self.events.append(("warning", text))


class FakeLab:
    """Data plane whose policer passes 1000 more bytes at each reading."""

    def __init__(self) -> None:
        self.asked = 0

    def control(self, router: str) -> FakeLab:
        return self

    async def __aenter__(self) -> FakeLab:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def counters(self) -> Any:
        self.asked += 1
        return counters(1000 * self.asked)


def wait_for_triggers(
    journal: FakeJournal, data_planes: tuple[str, ...] = ("R1",), observe: Any = None, patience_s: float = 30.0
) -> FakeJournal:
    """Return the events within that time, or until the trigger fires."""
    lab = FakeLab()
    came = threading.Event()

    def taken(device: str, command: str) -> RouterAnswer:
        came.set()
        return observe(device, command) if observe else RouterAnswer(f"{device} at {1000 * lab.asked} B", None)

    triggered = TriggerThreads(cast(Any, lab), data_planes, cast(Any, journal), taken)
    with triggered:
        triggered.start(time.monotonic())
        came.wait(patience_s)
    triggered.keep()
    return journal


def test_lab_is_polled_until_the_trigger_fires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_READING_INTERVAL_S", 0.01)
    assert wait_for_triggers(FakeJournal(CONFORMED)).events == [("conformed_bytes 3 kB", "R1 at 3000 B")]
    assert wait_for_triggers(FakeJournal(SOON)).events == [("time 10 ms", "R1 at 0 B")]


def test_trigger_that_never_fires_is_reported() -> None:
    ((kind, late),) = wait_for_triggers(FakeJournal(Trigger(time=Duration(10**11))), patience_s=0.3).events
    assert kind == "warning" and re.fullmatch(
        rf'R1: "{SHOW}" was due at time 100 s, a time that was never reached: '
        r"the traffic ended after \d+\.\d+ s",
        late,
    )
    ((_, few),) = wait_for_triggers(FakeJournal(Trigger(conformed_bytes=Size(10**9))), patience_s=0.3).events
    assert few.startswith(f'R1: "{SHOW}" was due at conformed_bytes 1') and few.endswith(" B at the end")
    ((_, blind),) = wait_for_triggers(FakeJournal(CONFORMED), data_planes=(), patience_s=0.3).events
    assert blind.endswith("R1 provides no counters during the traffic; use a time as the trigger")


def test_unresponsive_router_is_reported_in_the_cell() -> None:
    def silent(device: str, command: str) -> RouterAnswer:
        raise DeviceError("R1 did not answer")

    with pytest.raises(DeviceError, match="R1 did not answer"):
        wait_for_triggers(FakeJournal(SOON), observe=silent)
