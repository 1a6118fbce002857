"""Inactive parts of a valid run: idle classes and policies, silent traffic, unparsed output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from qoslab.analysis.class_lines import CLASS
from qoslab.errors import UserError
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.lab_kinds import LabKind
from qoslab.model.experiment import Arm, Experiment
from qoslab.platforms import is_switch, router_names
from qoslab.results import CellFiles
from qoslab.results.cell_files import observation_file
from qoslab.schema.devices import configured_devices
from qoslab.schema.idle import Attachment, IdlePart, has_explicit_class, idle_parts

SHOWN_ARMS = 4
"""Maximum number of arms that a warning names."""


def idle_warnings(
    experiment: Experiment, cells: Sequence[CellFiles], found: Mapping[str, pd.DataFrame], lab: LabKind
) -> list[str]:
    """Return a warning for each inactive part of a run, with its arms; `found` are the tables of the cells."""
    arms: dict[str, list[str]] = {}
    of_arm: dict[str, list[CellFiles]] = {}
    for cell in cells:
        of_arm.setdefault(cell.arm, []).append(cell)
    for arm, own in of_arm.items():
        for message in dict.fromkeys(_arm_warnings(own, found, lab)):
            arms.setdefault(message, []).append(arm)
    warnings = [_append_arms(message, names, len(of_arm)) for message, names in arms.items()]
    return warnings + list(_unparsed_commands(experiment, cells))


def _append_arms(message: str, arms: Sequence[str], count: int) -> str:
    """Add the arms to a warning, unless it is about all of them."""
    if len(arms) == count:
        return message
    named = ", ".join(arms[:SHOWN_ARMS]) + (f" and {len(arms) - SHOWN_ARMS} more" if len(arms) > SHOWN_ARMS else "")
    return f"arm{'s' if len(arms) > 1 else ''} {named}: {message}"


def _arm_warnings(cells: Sequence[CellFiles], found: Mapping[str, pd.DataFrame], lab: LabKind) -> Iterator[str]:
    first = cells[0]
    experiment = first.experiment()
    arm = experiment.arm(first.arm)
    devices = configured_devices(experiment, first.configurations(router_names(experiment.topology)))
    static = idle_parts(experiment, arm, devices)
    covered: set[tuple[str, str]] = set()
    own = found["classes"][found["classes"]["arm"] == first.arm]
    if lab.has_place:
        # Real switches count nothing for the classes of a policy.
        switches = [name for name, node in experiment.topology.nodes.items() if is_switch(node)]
        own = own[~own["device"].isin(switches)]
    for idle in _idle_classes(own, devices):
        why = next((each.message for each in static if _is_explained_by_configuration(each, idle)), "")
        covered.add((idle.router, idle.name))
        if not idle.is_allowed(frozenset(experiment.allow_idle)):
            yield f"{idle.message} ({why.partition(': ')[2]})" if why else idle.message
    yield from (each.message for each in static if (each.router, each.name) not in covered)
    yield from _traffic_without_arrivals(experiment, arm, found["flows"])


def _is_explained_by_configuration(static: IdlePart, idle: IdlePart) -> bool:
    """Return whether the configuration explains why a class or policy matched no packets."""
    if (static.router, static.name) != (idle.router, idle.name):
        return False
    return (
        static.attachment is None
        or static.attachment == idle.attachment
        or bool(static.path and static.path == idle.path)
    )


def _idle_classes(own: pd.DataFrame, devices: Mapping[str, Device]) -> Iterator[IdlePart]:
    """Yield the policies and classes of an arm that counted no packets in any of its cells."""
    # The tins of CAKE are not configured.
    own = own[~((own["queue_discipline"] == "cake") & own["class"].str.contains("/[^/:]+$"))]
    last = own.sort_values("time_s").groupby(["cell", *CLASS], as_index=False, sort=False).tail(1)
    for (router, interface, direction, policy), table in last.groupby(CLASS[:-1], sort=False):
        packets: dict[str, int] = {
            str(name): int(rows.astype("Int64").sum(skipna=True))
            for name, rows in table.groupby("class", sort=False)["packets"]
            if not rows.isna().any()
        }
        yield from _idle_policy_parts(
            str(router), Attachment(str(interface), str(direction), str(policy)), packets, devices
        )


def _idle_policy_parts(
    router: str, at: Attachment, packets: Mapping[str, int], devices: Mapping[str, Device]
) -> Iterator[IdlePart]:
    where = f"{router} {at.interface} {at.direction}"
    total = sum(count for path, count in packets.items() if "/" not in path)
    if packets and not total:
        yield IdlePart(router, at.policy, f"{where}: policy-map {at.policy} received no packets", attachment=at)
        return
    for path, count in packets.items():
        parent, _, name = path.rpartition("/")
        of = packets.get(parent, 0) if parent else total
        # An idle parent is reported itself, and the implicit class-default of every policy is not configured.
        explicit = (
            name != CLASS_DEFAULT or router not in devices or has_explicit_class(devices[router], at.policy, path)
        )
        if count or not of or not explicit:
            continue
        yield IdlePart(router, name, f"{where}: class {path} matched 0 of {of:,} packets", path, at)


def _traffic_without_arrivals(experiment: Experiment, arm: Arm, flows: pd.DataFrame) -> Iterator[str]:
    """Yield the traffic without any arrivals."""
    own = flows[flows["arm"] == arm.name]
    for flow in experiment.arm_flows(arm):
        arrived = own[own["traffic"] == flow.name]["bytes"]
        if len(arrived) and not flow.may_fail and not arrived.fillna(0).sum():
            yield f'traffic "{flow.name}": nothing arrived'


def _unparsed_commands(experiment: Experiment, cells: Sequence[CellFiles]) -> Iterator[str]:
    """Yield the show commands with output that was not parsed in any cell."""
    for each in experiment.observe:
        moments = {str(moment) for moment in each.moments}
        outputs = [
            (cell, taken.moment)
            for cell in cells
            if not each.arms or cell.arm in each.arms
            for taken in cell.record().observed
            if (taken.device, taken.command) == (each.node, each.command) and taken.moment in moments
        ]
        reasons = []
        for cell, moment in outputs:
            reason = _unparsed_reason(cell, each.node, moment, each.command)
            if not reason:
                break
            reasons.append(reason)
        else:
            if reasons:
                count = "its output" if len(reasons) == 1 else f"any of {len(reasons)} outputs"
                yield f'{each.node} "{each.command}": nothing was parsed from {count}: {reasons[0]}'


def _unparsed_reason(cell: CellFiles, device: str, moment: str, command: str) -> str:
    """Return the reason why a router's output was not parsed; empty if a part of it was."""
    name = f"{observation_file(device, moment, command)}.json"
    try:
        content = json.loads(cell.text(name)) if cell.has(name) else {"unparsed": "its file is missing"}
    except (UserError, ValueError, RecursionError):
        return "its file is damaged"
    if not isinstance(content, dict):
        return "its file is damaged"
    return str(content["unparsed"]) if "unparsed" in content else ("" if content else "the output has no values")
