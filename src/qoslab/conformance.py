"""Conformance checks of plug-ins, for the tests of their packages and as a command.

    from qoslab import conformance

    def test_it_conforms() -> None:
        conformance.require("tools", "mytool")

`python -m qoslab.conformance` checks all plug-ins of the packages in this environment, prints their errors, and exits
with status 2 if there are any. It does not check properties that only a real run can show (correct values from a tool,
a router that behaves as its platform declares); see docs/internals/extending.md for further tests.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address
from itertools import product
from typing import Any, get_args

from qoslab.errors import ExitStatus, QoslabError
from qoslab.exchange.plugin_figures import FIGURES
from qoslab.model.experiment import Family, Flow, Node
from qoslab.model.framing import Framing
from qoslab.model.metrics import METRICS, AddedMetric
from qoslab.model.units import Duration, Rate, Size
from qoslab.platforms import PLATFORMS, Platform
from qoslab.platforms.base import ACCESS_METHODS
from qoslab.results import tables
from qoslab.system.plugins import (
    KINDS,
    NAME_OF_KIND,
    PluginError,
    PluginKind,
    PluginRegistry,
    installed_plugins,
    plugin_package,
)
from qoslab.traffic import TOOLS, Commands, Endpoints, FlowOutput, TrafficError, TrafficTool

ROLES = (None, "ios", "ios_switch", "engine_router")
"""Roles in playbooks/roles that can push a configuration."""
SECONDS = 3
ENDS: dict[Family, Endpoints] = {
    4: Endpoints(IPv4Address("192.0.2.1"), IPv4Address("198.51.100.1"), 5201, 40_000),
    6: Endpoints(IPv6Address("2001:db8::1"), IPv6Address("2001:db8:1::1"), 5201, 40_000),
}
GARBAGE = ("", "\0\ufffd{", '{"end": []}', "[  3] 0.0-1.0 sec\n" * 3, "9" * 5000)
"""Output that no tool prints: truncated, of another tool, damaged."""


def require(kind: PluginKind, name: str) -> None:
    """Raise `AssertionError` with every error of a plug-in that an installed package adds under this name."""
    problems = list(plugin_problems(kind, name))
    assert not problems, f"the {NAME_OF_KIND[kind]} {name}:\n" + "\n".join(problems)


def plugin_problems(kind: PluginKind, name: str) -> Iterator[str]:
    """Yield the errors of a plug-in, one sentence each."""
    registry, examine = _CHECK_OF_KIND[kind]
    if name in registry.own:
        yield f"the name is already used by a built-in {NAME_OF_KIND[kind]} of qoslab"
        return
    if name not in registry:
        yield f'no package of this environment has an entry point "{name}" in the group qoslab.{kind}'
        return
    try:
        value = registry[name]
    except PluginError as error:
        yield error.message
        return
    yield from examine(name, value)


def tool_problems(name: str, tool: TrafficTool) -> Iterator[str]:
    """Yield the errors of a traffic tool: commands for accepted flows, refusals, broken output."""
    if not tool.programs or not all(isinstance(each, str) and each for each in tool.programs):
        yield f"programs is {tool.programs!r}, expected the names of programs"
    if not tool.suffix.isalnum():
        yield f'suffix is "{tool.suffix}", expected the ending of a file without the dot'
    if not tool.families or not set(tool.families) <= set(ENDS):
        yield f"families is {tool.families!r}, expected (4,), (6,) or both"
        return
    taken = 0
    for family, flow in product(tool.families, _example_flows(name)):
        flow = flow.model_copy(update={"family": family})
        what = f"{flow.protocol} over IPv{family}, {flow.streams} streams"
        try:
            refused = list(tool.check(flow))
            for problem in refused:
                if problem.key not in _flow_keys() or not problem.message.startswith("found "):
                    yield f'{what}: check returns {problem}, expected a key of a flow and "found …, expected …"'
            if not refused:
                taken += 1
                yield from (f"{what}: {each}" for each in _flow_problems(tool, flow, ENDS[family]))
        except QoslabError as error:
            yield f"{what}: check accepts the flow, but commands fails: {error.message}"
        except Exception as error:
            yield f"{what}: {type(error).__name__}: {error}"
    if not taken:
        yield "check refuses every flow: tcp and udp, with and without rate and size"


def _flow_keys() -> set[str]:
    return {field.alias or name for name, field in Flow.model_fields.items()}


def _example_flows(name: str) -> Iterator[Flow]:
    for protocol, streams, rate, size in product(("tcp", "udp"), (1, 4), (None, Rate(10**6)), (None, Size(1000))):
        yield Flow.model_validate(
            {"name": "transfer", "tool": name, "from": "client", "to": "server", "protocol": protocol}
            | {"streams": streams, "rate": rate, "size": size}
        )


def _flow_problems(tool: TrafficTool, flow: Flow, ends: Endpoints) -> Iterator[str]:
    duration = Duration(SECONDS * 10**9)
    commands = tool.commands(flow, duration, ends, "reno")
    yield from _command_problems(tool, commands, duration)
    if commands != tool.commands(flow, duration, ends, "reno"):
        yield "commands returns different commands when it is called again"
    uncounted = tool.uncounted_bounds(flow)
    if uncounted.stream_bytes < 0 or uncounted.last_s < 0:
        yield f"uncounted is {uncounted}, expected 0 or more"
    if flow.protocol == "udp":
        tool.sending_pattern(flow)
        if not 0 < tool.largest_datagram(flow.family or 4) <= 65_535:
            yield "largest_datagram is not a datagram size"
    for text in GARBAGE:
        tool.is_finished(flow, text)
        for client, server in (
            (FlowOutput(text), FlowOutput(text)),
            (FlowOutput(text, "refused", 1), FlowOutput(text)),
        ):
            try:
                found = tool.parse(flow, duration, client, server)
            except TrafficError:
                continue
            if not found.failure:
                yield f"parse accepts {text[:20]!r}, expected a TrafficError"


def _command_problems(tool: TrafficTool, commands: Commands, duration: Duration) -> Iterator[str]:
    for side in ("server", "client"):
        words = getattr(commands, side)
        if not isinstance(words, tuple) or not words or not all(isinstance(word, str) and word for word in words):
            yield f"the {side}'s command is {words!r}, expected words"
        elif words[0] not in tool.programs:
            yield f"the {side}'s command starts {words[0]}, a program that `programs` does not list"
    if not 0 < commands.listener.port <= 65_535:
        yield f"the listener's port is {commands.listener.port}"
    if not commands.deadline_s > duration.seconds:
        yield f"the deadline is {commands.deadline_s:g} s, expected more than the {duration.seconds:g} s of traffic"


def platform_problems(name: str, platform: Platform) -> Iterator[str]:
    """Yield the errors of a platform: access, role that pushes its configuration, properties of a node."""
    if platform.access not in ACCESS_METHODS:
        known = ", ".join(each.name for each in ACCESS_METHODS)
        yield f"its access method is {platform.access!r}, expected one of {known}"
    if platform.is_router and None in (platform.forwarding, platform.counters):
        yield "it is a router, but has no forwarding or no counters"
    node = Node.model_validate({"platform": name})
    try:
        if list(platform.check(node)):
            # A platform that needs a model reports it, and cannot be checked further without one.
            return
        role = platform.ansible_role(node)
        if role not in ROLES:
            yield f'its role is "{role}", expected one of {", ".join(str(each) for each in ROLES)}'
        if platform.is_router and role is None:
            yield "it is a router, but no role pushes its configuration"
        interfaces = platform.interfaces(node)
        for interface in interfaces or ():
            problems = [platform.interface_problem(node, interface, each) for each in get_args(Framing)]
            if None not in problems:
                yield f"it has the interface {interface}, but rejects it on every link"
        if platform.interface_problem(node, "no such interface", "ethernet") is None:
            yield 'it accepts "no such interface" as an interface name'
        if platform.is_router and platform.generation(node) is None:
            yield "it is a router, but has no QoS generation"
    except Exception as error:
        yield f"{type(error).__name__}: {error}"


def metric_problems(name: str, metric: AddedMetric) -> Iterator[str]:
    """Yield the errors of a metric: its words, and its result without rows."""
    if not metric.description.strip():
        yield "its description is empty"
    try:
        value = metric.figure(tables.frame(metric.table, []))
    except Exception as error:
        yield f"for a table without rows: {type(error).__name__}: {error}; expected None"
        return
    if value is not None:
        odd = not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value)
        yield f"its result for a table without rows is {value!r}, expected None{' or a number' if odd else ''}"


def figure_problems(name: str, figure: Any) -> Iterator[str]:
    """Yield the errors of a figure without a run: its title."""
    if not isinstance(figure.title, str) or not figure.title.strip() or "\n" in figure.title:
        yield f"its title is {figure.title!r}, expected one line"
    if not callable(figure.draw):
        yield "draw is not a method"


_CHECK_OF_KIND: dict[PluginKind, tuple[PluginRegistry[Any], Callable[[str, Any], Iterator[str]]]] = {
    "tools": (TOOLS, tool_problems),
    "platforms": (PLATFORMS, platform_problems),
    "metrics": (METRICS, metric_problems),
    "figures": (FIGURES, figure_problems),
}


def main() -> int:
    """Check all installed plug-ins and return the exit status."""
    bad = 0
    for kind in KINDS:
        for name, point in installed_plugins(kind).items():
            problems = list(plugin_problems(kind, name))
            bad += bool(problems)
            print(f"{'differs' if problems else 'ok':<8} {NAME_OF_KIND[kind]} {name}, of {plugin_package(point)}")
            for problem in problems:
                print(f"{'':8} {problem}")
    if not any(map(installed_plugins, KINDS)):
        print("no package of this environment adds anything")
    return ExitStatus.USER_MISTAKE if bad else ExitStatus.WITHIN


if __name__ == "__main__":
    sys.exit(main())
