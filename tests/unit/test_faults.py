"""Names of a dead lab and a dead program."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from qoslab.errors import DeviceError
from qoslab.ios.environment import DataPlaneDownError
from qoslab.run import faults
from qoslab.run.faults import TransientFault, describe_death
from qoslab.run.workers.measured import MeasuredWorker
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.system.programs import describe_exit
from qoslab.virtual_lab import Lab, LabError
from qoslab.virtual_lab.lab import DaemonFailure


class DyingLab:
    """Lab that returns its next state at each reading."""

    def __init__(self, *states: list[DaemonFailure] | LabError) -> None:
        self.states = list(states)

    def failures(self) -> list[DaemonFailure]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, LabError):
            raise state
        return state

    def describe_death(self, **options: Any) -> str:
        return describe_death(VirtualLab(cast(Lab, self)), **options)


KILLED = DaemonFailure("R1", -9, "one\ntwo\nthree\nfour\nfive\nsix\n")


def test_dead_process_is_reported_with_its_status_and_last_output() -> None:
    assert DyingLab([]).describe_death() == ""
    assert DyingLab([KILLED, DaemonFailure("iosd", 1, "")]).describe_death() == (
        "the lab stopped:  R1: its daemon was killed by SIGKILL; its last output: two / three / four / five / six; "
        "iosd: its daemon ended with status 1"
    )
    gone = LabError("its supervisor (process 7) was killed by SIGKILL")
    assert DyingLab(gone).describe_death() == "the lab stopped:  its supervisor (process 7) was killed by SIGKILL"


def test_fault_detection_waits_for_a_dying_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DyingLab([], [], [KILLED]).describe_death(wait=True).startswith("the lab stopped:  R1")
    monkeypatch.setattr(faults, "DETECTION_S", 0.1)
    assert DyingLab([]).describe_death(wait=True) == ""


@pytest.mark.parametrize(
    ("states", "error", "fault"),
    [
        ([[KILLED]], DeviceError("R1 refused the configuration"), "the lab stopped:  R1: its daemon was killed"),
        ([[], [KILLED]], TransientFault("R1 cannot be reached"), "the lab stopped:  R1: its daemon was killed"),
        ([[]], TransientFault("R1 cannot be reached"), "R1 cannot be reached"),
        ([[]], DataPlaneDownError("control.sock: no answer to 'config'"), "control.sock: no answer to 'config'"),
        ([[]], DeviceError("R1 refused the configuration"), ""),
        ([[KILLED]], KeyboardInterrupt(), ""),
    ],
)
def test_later_errors_are_attributed_to_the_dead_lab(
    monkeypatch: pytest.MonkeyPatch, states: list[Any], error: BaseException, fault: str
) -> None:
    monkeypatch.setattr(faults, "DETECTION_S", 0.2)
    lab = VirtualLab(cast(Lab, DyingLab(*states)))
    worker = cast(MeasuredWorker, SimpleNamespace(lab=lab, _interrupted=threading.Event()))
    text = MeasuredWorker._lab_fault(worker, error)
    assert text.startswith(fault) and bool(text) == bool(fault)


def test_end_of_a_program_is_described() -> None:
    assert [describe_exit(status) for status in (0, 3, -2, -9, -35)] == [
        "ended with status 0",
        "ended with status 3",
        "was killed by SIGINT",
        "was killed by SIGKILL",
        "was killed by signal 35",
    ]
