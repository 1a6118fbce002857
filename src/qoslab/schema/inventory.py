"""Conversion of inventory variables into settings, and obstacles to running an experiment on an inventory.

Findings name file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from qoslab.errors import Finding, did_you_mean, format_alternatives, format_found
from qoslab.ios.model.ios_names import interface_name
from qoslab.model.experiment import Experiment
from qoslab.model.inventory import (
    EMULATED_BY,
    ISOLATIONS,
    LINE,
    PREFIX,
    REACHES,
    ROLLBACK_METHODS,
    HostSettings,
    LinuxRouterSettings,
    RouterSettings,
)
from qoslab.model.units import Duration
from qoslab.platforms import host_names, inventory_group, router_names, tc_command_nodes

Settings = TypeVar("Settings", HostSettings, RouterSettings, LinuxRouterSettings)
KINDS = (HostSettings, RouterSettings, LinuxRouterSettings)

NAMES = {kind: tuple(PREFIX + each.name for each in fields(kind)) for kind in KINDS}
"""The variables of each kind of node."""
ALL = "all"
"""The group that contains every node."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of an inventory, by name."""

    hosts: Mapping[str, HostSettings]
    routers: Mapping[str, RouterSettings]
    addresses: Mapping[str, str]
    """Address and port of each node as text: two nodes with the same text are one device."""
    linux_routers: Mapping[str, LinuxRouterSettings] = field(default_factory=dict)
    emulated_by: Mapping[str, str] = field(default_factory=dict)
    """Source of delay, jitter and loss, by link: `line`, or a node of the inventory."""


class VariablePlaces:
    """Locations of variables in an inventory; those of INI files, folders and scripts are unknown."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self._root: Any = None
        if file.is_file() and file.suffix in (".yml", ".yaml"):
            try:
                self._root = YAML().load(file.read_text(encoding="utf-8"))
            except (OSError, YAMLError, ValueError):
                return  # Ansible could read it

    def finding(self, node: str, variable: str, message: str, hint: str = "") -> Finding:
        """Return a finding about a variable of a node, or about the node itself if `variable` is empty."""
        line, column = (
            self._variable_place(self._root, node, variable)
            or self._variable_place(self._root, "vars", variable)
            or (0, 0)
        )
        return Finding(self.file, line, column, "", " ".join(filter(None, (node, variable))), message, hint)

    def finding_in(self, group: str, message: str, hint: str = "") -> Finding:
        """Return a finding about a missing part of a group, at its hosts, else at the group, else at `all`."""
        known = ((group, "hosts"), (group, ""), (ALL, "")) if group != ALL else ((ALL, ""),)
        line, column = next(filter(None, (self._variable_place(self._root, *each) for each in known)), (0, 0))
        return Finding(self.file, line, column, "", "", message, hint)

    def _variable_place(self, around: Any, node: str, variable: str) -> tuple[int, int] | None:
        if not isinstance(around, dict):
            return None
        for key, value in around.items():
            if key == node and not variable:
                return self._key_place(around, key)
            if key == node and isinstance(value, dict) and variable in value:
                return self._key_place(value, variable)
            found = self._variable_place(value, node, variable)
            if found is not None:
                return found
        return None

    @staticmethod
    def _key_place(mapping: Any, key: str) -> tuple[int, int]:
        line, column = mapping.lc.key(key)
        return line + 1, column + 1


class Reader:
    """Reader of settings that collects findings."""

    def __init__(self, file: Path) -> None:
        self.places = VariablePlaces(file)
        self.findings: list[Finding] = []

    def read(self, kind: type[Settings], node: str, variables: Mapping[str, Any]) -> Settings:
        """Return the settings of a node from its variables. Invalid variables count as absent."""
        given: dict[str, Any] = {}
        for variable, value in variables.items():
            if not variable.startswith(PREFIX) or variable == EMULATED_BY:
                continue
            if variable not in NAMES[kind]:
                self._unknown(kind, node, variable)
                continue
            name = variable.removeprefix(PREFIX)
            expected = _EXPECTED[name](value)
            if expected:
                self.refuse(node, variable, f"found {format_found(value)}, expected {expected}")
                continue
            given[name] = _CONVERSIONS[name](value) if name in _CONVERSIONS else value
            if kind is RouterSettings and name == "interfaces":
                full = {interface_name(each): interface_name(device) for each, device in value.items()}
                if None in full or None in full.values():
                    expected = "names of a router's interfaces, such as {FastEthernet0/0: GigabitEthernet0/1}"
                    self.refuse(node, variable, f"found {format_found(value)}, expected {expected}")
                given[name] = full
        devices: dict[str, str] = {}
        for interface, device in given.get("interfaces", {}).items():
            if device in devices:
                found = f"found {device} for {devices[device]} and for {interface}"
                self.refuse(node, PREFIX + "interfaces", f"{found}, expected one interface for each")
            devices[device] = interface
        return kind(**given)

    def read_emulated_by(self, variables: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Read the sources of delay, jitter and loss of links. `variables` are all variables of the inventory,
        by node.
        """
        made_by: dict[str, str] = {}
        known = (LINE, *variables)
        for node, values in variables.items():
            value = values.get(EMULATED_BY, {})
            if not isinstance(value, dict) or not all(isinstance(each, str) for pair in value.items() for each in pair):
                expected = "a mapping of links to the source of their delay, jitter and loss, such as {wan: line}"
                self.refuse(node, EMULATED_BY, f"found {format_found(value)}, expected {expected}")
                continue
            for link, maker in value.items():
                if maker not in known:
                    message = f'found "{maker}" for the link {link}, expected {LINE} or a node of the inventory'
                    self.refuse(node, EMULATED_BY, message, did_you_mean(maker, known))
                elif made_by.setdefault(link, maker) != maker:
                    message = f"found {maker} and {made_by[link]} for the link {link}, expected one of them"
                    self.refuse(node, EMULATED_BY, message, "the variable belongs to the whole lab: set it under all")
        return made_by

    def _unknown(self, kind: type[Any], node: str, variable: str) -> None:
        elsewhere = any(variable in names for names in NAMES.values())
        what = {HostSettings: "host", LinuxRouterSettings: "Linux router"}.get(kind, "router")
        found = f"found {variable} on a {what}" if elsewhere else f"found the variable {variable}"
        hint = "" if elsewhere else did_you_mean(variable, (*NAMES[kind], EMULATED_BY))
        self.refuse(node, variable, f"{found}, expected {format_alternatives(NAMES[kind])}", hint)

    def refuse(self, node: str, variable: str, message: str, hint: str = "") -> None:
        """Add an error of a variable to the findings."""
        found = self.places.finding(node, variable, message, hint)
        # A group variable has one finding, not one for each node.
        if not any((each.line, each.message) == (found.line, message) and found.line for each in self.findings):
            self.findings.append(found)


def _read_text(value: Any) -> str:
    return "" if isinstance(value, str) and value else "the path of a file"


def _read_names(value: Any) -> str:
    holds = isinstance(value, dict) and all(isinstance(each, str) and each for pair in value.items() for each in pair)
    return "" if holds else "a mapping of the experiment's interfaces to those of the host, such as {eth0: enp3s0}"


def _read_isolation(value: Any) -> str:
    return "" if value in ISOLATIONS else format_alternatives(ISOLATIONS)


def _read_reach(value: Any) -> str:
    return "" if value in REACHES else format_alternatives(REACHES)


def _read_old_ssh(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _read_jump_host(value: Any) -> str:
    holds = isinstance(value, str) and re.fullmatch(r"(?:[^@\s]+@)?[^@:\s]+(?::[0-9]{1,5})?", value)
    return "" if holds else "user@host or user@host:port"


def _read_console(value: Any) -> str:
    _, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    holds = isinstance(value, str) and re.fullmatch(r"[^@\s]+:[0-9]{1,5}", value) and 0 < int(port) < 65536
    return "" if holds else "host:port of a terminal server, such as 192.0.2.250:2003"


def _read_rollback(value: Any) -> str:
    return "" if value in ROLLBACK_METHODS else format_alternatives(ROLLBACK_METHODS)


def _read_duration(value: Any) -> str:
    try:
        Duration.parse(value)
    except (TypeError, ValueError):
        return "a duration such as 10 s; 0 s is before the traffic and after it only"
    return ""


def _read_model(value: Any) -> str:
    # YAML reads 2901 as a number.
    holds = isinstance(value, str | int) and not isinstance(value, bool) and str(value)
    return "" if holds else "the router's model in `show version`, such as IOSv"


def _read_long_duration(value: Any) -> str:
    return "a duration above zero, such as 30 min" if _read_duration(value) or not Duration.parse(value) else ""


_CONVERSIONS: Mapping[str, Callable[[Any], object]] = {
    "model": str,
    "show_every": Duration.parse,
    "rollback_margin": Duration.parse,
}
"""Conversions of values beyond those of YAML."""
_EXPECTED = {
    "known_hosts": _read_text,
    "interfaces": _read_names,
    "isolate": _read_isolation,
    "reach": _read_reach,
    "old_ssh": _read_old_ssh,
    "jump": _read_jump_host,
    "console": _read_console,
    "model": _read_model,
    "rollback": _read_rollback,
    "rollback_margin": _read_long_duration,
    "show_every": _read_duration,
}
"""Check of each variable: returns the expected value; empty if the value is valid."""


def inventory_obstacles(experiment: Experiment, nodes: Nodes, file: Path) -> list[Finding]:
    """Return the obstacles to running an experiment on the nodes of this inventory."""
    return list(_obstacles(experiment, nodes, VariablePlaces(file)))


def _obstacles(experiment: Experiment, nodes: Nodes, places: VariablePlaces) -> Iterator[Finding]:
    topology = experiment.topology
    used: dict[str, Mapping[str, object]] = dict.fromkeys(host_names(topology), nodes.hosts)
    used |= dict.fromkeys(router_names(topology), nodes.routers)
    used |= dict.fromkeys(tc_command_nodes(topology), nodes.linux_routers)
    for name, known in used.items():
        if name not in known:
            group = inventory_group(topology.nodes[name])
            message = f"found no {name} in the group {group}, expected every node of {experiment.name} in the inventory"
            yield places.finding_in(group, message, did_you_mean(name, known))
    for link in topology.links:
        if link.emulated_keys and link.name not in nodes.emulated_by:
            found = " and ".join(link.emulated_keys)
            message = f"found {found} on the link {link.name}, expected {EMULATED_BY} to name its source"
            hint = f"under all: vars: {EMULATED_BY}: {{{link.name}: {LINE}}}, or a node's name; it is measured"
            yield places.finding_in(ALL, message, hint)
    for name in used:
        yield from _check_distinct_interfaces(experiment, nodes, name, places)
    seen: dict[str, str] = {}
    for name in used:
        way = nodes.addresses.get(name)
        if way is None:
            continue
        other = seen.setdefault(way, name)
        if other != name and not _may_share_machine(nodes, experiment, name, other):
            message = f"found {way} for {other} and for {name}, expected a device for each"
            hint = "two hosts may be one machine if each has its own interfaces in a namespace"
            yield places.finding(name, "", message, hint)


def _check_distinct_interfaces(
    experiment: Experiment, nodes: Nodes, name: str, places: VariablePlaces
) -> Iterator[Finding]:
    """Check that the interfaces of the experiment are different interfaces of the node."""
    settings = nodes.hosts.get(name) or nodes.routers.get(name) or nodes.linux_routers.get(name)
    known: dict[str, str] = {}
    if settings is None:
        return
    for _, near, _ in experiment.topology.node_links(name):
        device = settings.device(near.interface)
        other = known.setdefault(device, near.interface)
        if other != near.interface:
            message = f"found {device} for {other} and for {near.interface}, expected one interface for each"
            hint = "name both of them in it"
            yield places.finding(name, PREFIX + "interfaces", message, hint)


def _may_share_machine(nodes: Nodes, experiment: Experiment, *names: str) -> bool:
    """Return whether nodes may share one machine: each with its own interfaces in its own namespace."""
    hosts = [nodes.hosts.get(name) for name in names]
    if any(each is None or each.isolate != "namespace" for each in hosts):
        return False
    devices = [
        settings.device(near.interface)
        for name, settings in zip(names, hosts, strict=True)
        if settings is not None
        for _, near, _ in experiment.topology.node_links(name)
    ]
    return len(devices) == len(set(devices))
