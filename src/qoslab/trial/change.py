"""Changes to a configuration: lines with their position, or a single line that fits only one place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qoslab.errors import UserError
from qoslab.ios.cli.grammar import CliError, InvalidInputError
from qoslab.ios.cli.session import Position
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.running_config import render
from qoslab.policy.rate import format_list

_HEADS = ("policy-map", "class-map", "interface", "ip access-list", "access-list", "ipv6 access-list")
"""First words of lines in global configuration mode."""


@dataclass(frozen=True)
class ChangedDevice:
    """A device after a change."""

    device: Device
    lines: tuple[str, ...]
    """The lines, each with the lines above it that determine its position."""


@dataclass(frozen=True)
class Scope:
    """The parts of a configuration that have an effect on the trial."""

    interfaces: tuple[str, ...]
    policies: tuple[str, ...]


def apply_changes(device: Device, changes: Sequence[str], scope: Scope) -> ChangedDevice:
    """Return the device after the lines, and their positions. Raise UserError with the refused line.

    Lines are separated by `;` or line ends. Without a line such as `policy-map` above it, a line is entered in the only
    place of the scope where it fits, or in the only class that already has this command.
    """
    made = device.copy()
    typed: list[str] = []
    position: Position | None = None
    for change in changes:
        position = None
        for line in filter(None, (" ".join(each.split()) for each in re.split(r"[;\n]", change))):
            position = _enter_line(made, line, position, (typed, scope))
    if not typed:
        raise UserError("--change: found no line, expected a line of configuration, such as: police cir 20000000")
    return ChangedDevice(made, tuple(typed))


def _enter_line(device: Device, line: str, position: Position | None, into: tuple[list[str], Scope]) -> Position:
    """Enter a line at a position or where it fits, and return the position after it."""
    typed, scope = into
    if position is None and not line.removeprefix("no ").startswith(_HEADS):
        position = _find_class_position(device, line, scope) or _headless_line_position(device, line, scope)
        typed.extend(_position_lines(position))
    outside = Position("config")
    session = ConfigSession(device)
    session.position = position or outside
    _check_names(device, session, line)
    try:
        _execute(session, line)
    except CliError as error:
        raise _refusal_error(line, error) from None
    typed.append(line)
    return session.position


def _execute(session: ConfigSession, line: str) -> None:
    """Enter a line. It replaces an attached policy. Raise CliError if the device refuses it."""
    words = line.split()
    if session.position.mode in ("interface", "subinterface") and len(words) == 3 and words[0] == "service-policy":
        attribute = f"service_policy_{words[1]}"
        if getattr(session.interface, attribute, None) is not None:
            setattr(session.interface, attribute, None)
    session.execute(line)


def _find_class_position(device: Device, line: str, scope: Scope) -> Position | None:
    """Return the only policy-map with the class of a line `class NAME`; None for other lines."""
    words = line.removeprefix("no ").split()
    if len(words) != 2 or words[0] != "class":
        return None
    owners = [name for name in scope.policies if device.policy_maps[name].find(words[1]) is not None]
    if len(owners) == 1:
        return Position("policy-map", (owners[0],))
    names = format_list(owners or scope.policies, 8)
    raise UserError(
        f'--change: found "{line}" in {len(owners)} policy-maps, expected it in one',
        hint=f"give the policy-map first, such as `policy-map NAME; {line}`, with one of: {names}",
    )


def _check_names(device: Device, session: ConfigSession, line: str) -> None:
    """Refuse a line that names a missing policy-map or class: it is a typing error."""
    words = line.split()
    if len(words) != 2:
        return
    if words[0] == "policy-map" and words[1] not in device.policy_maps:
        known = ", ".join(device.policy_maps)
        raise UserError(f'--change: found "{line}", expected a policy-map of the configuration: {known}')
    if words[0] == "class" and session.position.mode.startswith("policy") and words[1] != CLASS_DEFAULT:
        policy = device.policy_maps[session.position.names[0]]
        known_classes = [each.name for each in policy.classes]
        if words[1] not in known_classes and words[1] not in device.class_maps:
            known = ", ".join(known_classes)
            raise UserError(f'--change: found "{line}", expected a class of policy-map {policy.name}: {known}')


def _refusal_error(line: str, error: CliError) -> UserError:
    message = "; ".join(each.strip() for each in error.render() if each.strip(" ^"))
    return UserError(f'--change: the router refuses "{line}": {message}')


def _candidate_positions(device: Device, scope: Scope) -> Iterator[Position]:
    """Yield the positions at which a line may be entered, innermost first."""
    policies = [device.policy_maps[name] for name in scope.policies]
    for policy in policies:
        for each in policy.classes:
            yield Position("policy-class", (policy.name, each.name))
    for name in scope.interfaces:
        yield Position("subinterface" if device.interfaces[name].parent else "interface", (name,))
    for name in dict.fromkeys(each.name for policy in policies for each in policy.classes):
        if name in device.class_maps:
            yield Position("class-map", (name,))
    for policy in policies:
        yield Position("policy-map", (policy.name,))


def _headless_line_position(device: Device, line: str, scope: Scope) -> Position:
    """Return the position for a line without a head. Raise UserError if there is none, or more than one."""
    before = render(device)
    accepted: list[Position] = []
    first: CliError | None = None
    for position in _candidate_positions(device, scope):
        trial = device.copy()
        session = ConfigSession(trial)
        session.position = position
        try:
            if session.parse(line).mode != position.mode:
                continue
            _execute(session, line)
        except CliError as error:
            # The best reason is from a mode that has the command; else the first one, from a class.
            if first is None or (isinstance(first, InvalidInputError) and not isinstance(error, InvalidInputError)):
                first = error
            continue
        if position.mode == "policy-class" or render(trial) != before:
            accepted.append(position)
    accepted = [each for each in accepted if _has_command(device, each, line)] or accepted
    if len(accepted) == 1:
        return accepted[0]
    if not accepted:
        if first is None:
            raise UserError(f'--change: found "{line}", expected a line that is valid in the policy')
        raise _refusal_error(line, first)
    places = [" / ".join(_position_lines(each)) for each in accepted]
    head = "; ".join(_position_lines(accepted[0]))
    raise UserError(
        f'--change: found "{line}", valid in {len(accepted)} places: {format_list(places, 8)}; expected one place',
        hint=f'give the place: --change "{head}; {line}"',
    )


_COMMANDS = {
    "police": "police",
    "shape": "shape",
    "bandwidth": "bandwidth",
    "priority": "priority",
    "queue-limit": "queue_limit",
    "random-detect": "random_detect",
    "fair-queue": "fair_queue",
    "service-policy": "service_policy",
    "set": "marks",
}
"""Attribute of a class for the first word of a command."""


def _has_command(device: Device, position: Position, line: str) -> bool:
    """Return whether a class already has the command of a line."""
    attribute = _COMMANDS.get(line.removeprefix("no ").split()[0])
    if position.mode != "policy-class" or attribute is None:
        return False
    each = device.policy_maps[position.names[0]].find(position.names[1])
    return bool(each is not None and getattr(each, attribute))


def _position_lines(position: Position) -> tuple[str, ...]:
    """Return the lines that lead to a position."""
    names = position.names
    if position.mode == "policy-class":
        return (f"policy-map {names[0]}", f"class {names[1]}")
    return (f"{'interface' if position.mode == 'subinterface' else position.mode} {names[0]}",)
