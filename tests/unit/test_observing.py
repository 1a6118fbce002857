"""Show commands of several routers at one time."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from qoslab.errors import DeviceError
from qoslab.model.experiment import Observation
from qoslab.run.cell.observing import observe_all
from qoslab.run.devices.collector import RouterAnswer


def make_observations(*pairs: tuple[str, str]) -> list[Observation]:
    return [Observation(node=node, command=command) for node, command in pairs]


def test_routers_answer_in_parallel_and_each_in_order() -> None:
    both = threading.Barrier(2)
    asked: list[tuple[str, str]] = []

    def observe(device: str, command: str) -> RouterAnswer:
        if command == "show clock":
            both.wait(30)  # No router is read before the other one is asked.
        asked.append((device, command))
        return RouterAnswer(f"{device}: {command}\n", None)

    pairs = [("R1", "show clock"), ("R2", "show clock"), ("R1", "show users"), ("R2", "show version")]
    found = observe_all(make_observations(*pairs), observe)
    assert [each.raw for each in found] == [f"{device}: {command}\n" for device, command in pairs]
    for router in ("R1", "R2"):
        assert [each for each in asked if each[0] == router] == [each for each in pairs if each[0] == router]


def test_routers_are_contacted_only_for_observations() -> None:
    assert observe_all([], lambda device, command: pytest.fail("it was asked")) == []


def test_unresponsive_router_is_reported_after_the_others_answered() -> None:
    asked, silent, done = threading.Event(), threading.Event(), threading.Event()

    def observe(device: str, command: str) -> RouterAnswer:
        if device == "R1":
            assert asked.wait(30)
            silent.set()
            raise DeviceError("R1 did not answer")
        asked.set()
        assert silent.wait(30)
        done.set()
        return RouterAnswer("", None)

    with pytest.raises(DeviceError, match="R1 did not answer"):
        observe_all(make_observations(("R1", "show clock"), ("R2", "show clock")), observe)
    assert done.is_set()


def test_ctrl_c_does_not_wait_for_routers() -> None:
    released = threading.Event()

    def observe(device: str, command: str) -> RouterAnswer:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(60)
        return RouterAnswer("", None)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        observe_all(make_observations(("R1", "show clock")), observe)
    assert time.monotonic() - began < 30
    released.set()
