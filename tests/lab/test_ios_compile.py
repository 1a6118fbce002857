"""Lines accepted by the configuration model: the real `qos-router` accepts each of them, line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from dataplane import BINARY, DataPlaneLab, missing_tools
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from ios_commands import typed_line
from ios_strategies import PORTS, devices, hardware
from levels import value_by_level
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.running_config import render
from rollback_lines import undo_lines

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("ios_compile")]

#: Errors that only the data plane detects: shares of this interface's bandwidth that are too small or too large.
FIGURES = re.compile("per cent of .* a rate that is not possible|ms of .* gives a burst of|gives an interval of")


class Bench(DataPlaneLab):
    """Daemon with two Ethernet and two serial ports without links."""

    def _build(self, rates_bps: tuple[int, int], daemon: bool) -> None:
        owner = self._hold(["unshare", "--user", "--map-root-user", "--net", "--mount"])
        self._nodes |= {"owner": owner, "R1.dp": owner}
        wiring: dict[str, Any] = {}
        for number, name in enumerate(PORTS):
            for side in ("in", "wire"):
                self._pair(("owner", f"{side}{number}"), ("owner", f"{side}{number}x"))
            framing = "hdlc" if name.startswith("Serial") else "ethernet"
            link = {"rate_bps": 100_000_000, "framing": framing, "delay_ns": 0}
            wiring[name] = {"inside": f"in{number}", "wire": f"wire{number}", "link": link, "paced_by_peer": False}
        (self.folder / "ports.json").write_text(json.dumps({"ports": wiring}))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    assert BINARY.exists(), f"{BINARY} is missing: run cargo build --release -p qos-router"
    assert not missing_tools(), f"install {missing_tools()}"
    with Bench(follow=False, options=["--kernel-netns", "/proc/self/ns/net"]) as bench:
        yield bench


def activate(bench: Bench, device: Device) -> None:
    """Configure the daemon like the device; a refusal fails the test."""
    request = {"op": "configure", "config": {**compile_device(device), "router": "R1"}}
    reply = json.loads(bench.talk(json.dumps(request).encode() + b"\n"))
    if not reply["ok"] and FIGURES.search(reply["error"]["message"]):
        reject()
    assert reply == {"ok": True}, f"{reply}\n{render(device)}"


def enter_lines(bench: Bench, device: Device, lines: list[str]) -> None:
    """Enter lines of configuration, each of which takes effect at once like on the command line."""
    session = ConfigSession(device)
    for line in lines:
        before = device.copy()
        session.execute(line)
        if device != before:
            activate(bench, device)


ENGINE = settings(
    max_examples=value_by_level(short=4, long=20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@given(device=devices())
@ENGINE
def test_every_device_is_accepted(bench: Bench, device: Device) -> None:
    activate(bench, device)


@given(before=devices("hqf"), after=devices("hqf"))
@ENGINE
def test_data_plane_accepts_every_rollback_step(bench: Bench, before: Device, after: Device) -> None:
    device = after.copy()
    enter_lines(bench, device, undo_lines(render(before), render(after), before.hardware))
    assert device == before


@given(random=st.randoms(use_true_random=False), generation=st.sampled_from(["classic", "hqf"]))
@ENGINE
def test_data_plane_accepts_the_result_of_any_typed_line(bench: Bench, random: Random, generation: Generation) -> None:
    device = Device(hardware(generation))
    session = ConfigSession(device)
    for line in ("class-map Voice", "policy-map Edge", "class Voice"):
        session.execute(line)
    for _ in range(40):
        before = device.copy()
        with suppress(CliError):
            session.execute(typed_line(random, session))
        if device != before:
            activate(bench, device)
        if session.finished:
            session = ConfigSession(device)


POLICIES = {
    "police": "police cir 1000000",
    "bursts": "police 8000 2000 3000 conform-action set-dscp-transmit ef exceed-action set-prec-transmit 1",
    "two rates": "police cir 1000000 bc 20000 pir 2000000 be 40000\n violate-action drop",
    "percent": "police cir percent 10 bc 100 ms pir percent 20 be 200 ms",
    "rate": "police rate 1000000 burst 20000 peak-rate 2000000 peak-burst 40000",
    "rate percent": "police rate percent 50\n violate-action drop",
    "shape": "shape average 1000000",
    "shape with bursts": "shape average 1000000 8000 0",
    "shape peak": "shape peak 512000 12800 12800",
    "shape percent": "shape average percent 10 125 ms 250 ms",
    "fair-queue": "fair-queue 256",
    "queue-limit": "queue-limit 20",
    "mark": "set dscp af31\nset cos 3\nset qos-group 7",
}


@pytest.mark.parametrize("generation", ["classic", "hqf"])
@pytest.mark.parametrize("actions", POLICIES.values(), ids=POLICIES)
def test_actions_can_be_typed_under_an_attached_policy(bench: Bench, actions: str, generation: Generation) -> None:
    typed = (
        "class-map Web\n match access-group name Web\n"
        "policy-map P\n class Web\n  police cir 64000\n class class-default\n"
        f"interface FastEthernet0/1\n service-policy output P\npolicy-map P\nclass class-default\n{actions}\n"
        "ip access-list extended Web\n permit tcp any any eq www\nno ip access-list extended Web\n"
    )
    device = Device(hardware(generation))
    enter_lines(bench, device, typed.splitlines())
    (policy,) = bench.ask("config")["config"]["policy_maps"].values()
    assert any(policy["classes"][1][kind] for kind in ("police", "shape", "fair_queue", "queue_limit", "set"))


BOTH_GENERATIONS: tuple[Generation, ...] = ("classic", "hqf")
QUEUEING: dict[str, tuple[tuple[Generation, ...], str]] = {
    "bandwidth": (BOTH_GENERATIONS, "class Web\nbandwidth 500\nqueue-limit 20\nclass Voice\nbandwidth 64"),
    "percent": (BOTH_GENERATIONS, "class Web\nbandwidth percent 40\nclass Voice\npriority percent 20 3000"),
    "remaining": (BOTH_GENERATIONS, "class Voice\npriority 64\nclass Web\nbandwidth remaining percent 30"),
    "ratio": (("hqf",), "class Web\nbandwidth remaining ratio 4\nclass Voice\npriority level 2"),
    "strict": (BOTH_GENERATIONS, "class Voice\npriority"),
    "early": (BOTH_GENERATIONS, "class Web\nbandwidth 500\nrandom-detect dscp-based\nrandom-detect dscp af11 10 20 5"),
    "early in fair queues": (("hqf",), "class Web\nbandwidth 500\nfair-queue\nrandom-detect"),
    "fair queues": (("hqf",), "class Web\nbandwidth percent 20\nfair-queue\nclass class-default\nfair-queue 64"),
    "nested": (
        BOTH_GENERATIONS,
        "class class-default\nshape average 1000000\nservice-policy Child\npolicy-map Child\nclass Voice\npriority 64\n"
        "class Web\nbandwidth 500",
    ),
    "three levels": (
        BOTH_GENERATIONS,
        "class class-default\nshape average 1000000\nservice-policy Child\npolicy-map Child\nclass Web\n"
        "shape average 500000\nservice-policy Leaf\npolicy-map Leaf\nclass Voice\nbandwidth percent 30",
    ),
}


@pytest.mark.parametrize(
    ("generation", "actions"),
    [
        pytest.param(generation, actions, id=f"{name}-{generation}")
        for name, (generations, actions) in QUEUEING.items()
        for generation in generations
    ],
)
def test_queueing_can_be_typed_under_an_attached_policy(bench: Bench, generation: Generation, actions: str) -> None:
    typed = (
        "class-map Web\n match cos 1\nclass-map Voice\n match dscp ef\npolicy-map Leaf\n"
        "policy-map Child\npolicy-map P\ninterface Serial0/0\n bandwidth 2000\n service-policy output P\n"
    )
    device = Device(hardware(generation))
    enter_lines(bench, device, [*typed.splitlines(), "policy-map P", *actions.splitlines()])
    # The typed lines are removed too.
    enter_lines(bench, device, undo_lines(render(Device(hardware(generation))), render(device), device.hardware))
    assert device == Device(hardware(generation))
