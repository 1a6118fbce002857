"""Simulator query for one packet at one router, and its answer."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from qoslab.errors import MachineError, UserError
from qoslab.explain.packet import Packet
from qoslab.explain.subject import Route, Subject, longest_prefix_route, route_all_to
from qoslab.system import program_formats
from qoslab.system.programs import SIMULATOR, describe_exit
from qoslab.trial.simulate import call_simulator

QUESTION, SCENARIO = f"{SIMULATOR}: question: ", f"{SIMULATOR}: scenario: "
"""Prefixes of a refusal; the path and the reason follow."""


@dataclass(frozen=True)
class RouterPassage:
    """A packet at a router: the queried routes, and the simulator's answer."""

    subject: Subject
    packet: Packet
    routes: tuple[Route, ...]
    input: str | None
    """Input interface; None if it is unknown."""
    input_reason: str
    found: program_formats.Explanation

    @property
    def route(self) -> Route | None:
        """The route of the packet."""
        index = self.found["route"]
        return None if index is None else self.routes[index]


def ask_simulator(
    subject: Subject,
    packet: Packet,
    *,
    interface: str | None = None,
    source: str | None = None,
    came: str = "",
    at_ns: int = 0,
) -> RouterPassage:
    """Send the packet to the router, and return the result.

    `interface` replaces the output interface of the route; `source` replaces the input interface, which is by default
    that of the route to the packet's source; `came` is the arrival of a packet of a run. Raise UserError for an
    impossible query.
    """
    routes = subject.routes()
    entered, reason = (came, "as in the run") if came else _input_passage(subject, packet, routes, source)
    routes = _output_passage(subject, packet, routes, interface)
    question: program_formats.Question = {
        "router": subject.name,
        "at_ns": at_ns,
        "packet": packet.to_question(),
        "input": None if entered is None else subject.simulator_place(entered),
        "routes": [
            {
                "prefix": str(each.prefix),
                "output": None if each.interface is None else subject.simulator_place(each.interface),
            }
            for each in routes
        ],
        "addresses": [str(each) for each in subject.addresses()] if interface is None else [],
    }
    return RouterPassage(subject, packet, tuple(routes), entered, reason, explain_packet(subject.scenario, question))


def _input_passage(subject: Subject, packet: Packet, routes: list[Route], given: str | None) -> tuple[str | None, str]:
    if given is not None:
        return subject.interface(given, "--from").name, "given by --from"
    index = longest_prefix_route(routes, packet.source)
    if index is None:
        with_policy = _interfaces_with_policy(subject, "input")
        if subject.partial and len(with_policy) == 1:
            return with_policy[0], f"no route to {packet.source}; the only interface with an input policy"
        return None, f"not known: no route to the source {packet.source}"
    name = routes[index].interface
    return name, f"route to the source {packet.source}" if name else f"not known: {packet.source} is routed to Null0"


def _output_passage(subject: Subject, packet: Packet, routes: list[Route], given: str | None) -> list[Route]:
    if given is not None:
        return route_all_to(packet, subject.interface(given, "--interface").name, "given by --interface")
    if longest_prefix_route(routes, packet.destination) is not None or packet.destination in subject.addresses():
        return routes
    with_policy = _interfaces_with_policy(subject, "output")
    if not subject.partial or len(with_policy) != 1:
        return routes
    return route_all_to(
        packet, with_policy[0], f"no route to {packet.destination}; the only interface with an output policy"
    )


def _interfaces_with_policy(subject: Subject, direction: str) -> list[str]:
    """Return the interfaces with a policy in a direction."""
    return [
        each.name
        for each in subject.device.interfaces.values()
        if getattr(each, f"service_policy_{direction}") is not None and (each.parent or each.name) in subject.ports
    ]


def explain_packet(
    scenario: program_formats.Scenario, question: program_formats.Question
) -> program_formats.Explanation:
    """Return the answer of the simulator. Raise UserError if it refuses the query or the scenario."""
    with tempfile.TemporaryDirectory(prefix="qoslab-explain-") as folder:
        file = Path(folder) / "question.json"
        file.write_text(json.dumps(question), encoding="utf-8")
        answer: program_formats.Explanation = json.loads(_run_simulator(("explain", str(file)), scenario, Path(folder)))
    return answer


def simulate(scenario: program_formats.Scenario, folder: Path) -> None:
    """Run a scenario with captures in a folder. Raise UserError if the simulator refuses it."""
    _run_simulator(("run",), scenario, folder)


def _run_simulator(arguments: tuple[str, ...], scenario: program_formats.Scenario, folder: Path) -> str:
    """Return the output of the simulator."""
    done = call_simulator(arguments, scenario, folder)
    if done.returncode == 0:
        return done.stdout
    reason = (done.stderr.strip().splitlines() or [""])[-1]
    for start in (QUESTION, SCENARIO):
        if reason.startswith(start):
            raise UserError(f"the simulator rejects it: {reason.removeprefix(start)}")
    raise MachineError(f"{SIMULATOR} {arguments[0]} {describe_exit(done.returncode)}: {reason or 'no message'}")
