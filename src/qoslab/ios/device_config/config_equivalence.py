"""Compares a router's running configuration with what was asked of it, by meaning.

What was asked is entered in a model of the router as it runs, without the policies, classes, access lists and
operations that were asked for: that it has them already is what is to be shown. If both then say the same, it is in
force, however it was spelled and regardless of the other configuration of the router. Lines that the model does not
know are compared as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from qoslab.ios.device_config.diff import Block, tree
from qoslab.ios.device_config.normalise import spelled_out
from qoslab.ios.device_config.running_config_parser import (
    Chain,
    Reading,
    Unread,
    block_name,
    enter_lines,
    generations_of,
    hardware_of,
    normalised,
    read_running,
)
from qoslab.ios.model.device import Device
from qoslab.ios.model.ip_sla import IpSla
from qoslab.ios.running_config import render
from qoslab.model.generation import Generation

Key = TypeVar("Key")
Value = TypeVar("Value")


def configuration_differences(
    asked: str, running: str, *, before: str | None = None, family: str = "router", generation: Generation | None = None
) -> list[str]:
    """Return the parts of the configuration `asked` that are not active on a router that prints `running`; a sentence
    each.

    `before` is the running configuration from before `asked` was entered, if it is known: without it, policies,
    classes, access lists and operations that `asked` names are expected to hold nothing else. `generation` is that of
    the router's software; None: what its version shows, or, of a 12.4, whichever leaves fewer lines that are not
    understood, and then fewer differences.
    """
    generations = generations_of(running) if generation is None else (generation,)
    if family == "switch":
        generations = generations[:1]
    found = []
    for each in generations:
        comparison = _Comparison.of(asked, running, before, family, each)
        found.append((comparison.not_understood, list(comparison.differences())))
    return min(found, key=lambda each: (each[0], len(each[1])))[1]


@dataclass(frozen=True)
class _Comparison:
    wanted: Reading
    """The router as it would be."""
    present: Reading
    """The router as it is."""
    asked: frozenset[str]
    """The lines that were asked for, with one blank between words."""

    @classmethod
    def of(cls, asked: str, running: str, before: str | None, family: str, generation: Generation) -> _Comparison:
        hardware = hardware_of(running, family, generation)
        present = read_running(running, hardware)
        earlier = Device(hardware) if before is None else read_running(before, hardware).device
        trial = _tried_out(asked, present.device)
        wanted = Reading(_without(_named(trial), present.device, earlier))
        enter_lines(wanted, asked)
        _attach_again(wanted.device, present.device, trial.device)
        return cls(wanted, present, frozenset(map(normalised, asked.splitlines())))

    @property
    def not_understood(self) -> int:
        return len(self.wanted.unread) + len(self.present.unread)

    def differences(self) -> Iterator[str]:
        for line in self.wanted.unread:
            yield from self._as_text(line)
        wanted, present = spelled_out(self.wanted.device), spelled_out(self.present.device)
        if wanted == present:
            return
        found = [*self._below((), _Pair.of(wanted, self.wanted.device), _Pair.of(present, self.present.device))]
        if not found and (wanted.banner_motd, wanted.banners) != (present.banner_motd, present.banners):
            found = ["asked for another `banner`"]
        if not found and _comparable(wanted) != _comparable(present):
            found = list(_any_difference(render(wanted), render(present)))
        yield from found

    def _as_text(self, line: Unread) -> Iterator[str]:
        """A line that was asked for and that the model does not take."""
        taken_back = line.text.startswith("no ")
        text = line.text.removeprefix("no ")
        others = [each.text for each in self.present.unread if _same_place(each.place, line.place)]
        if taken_back:
            left = next((each for each in others if f"{each} ".startswith(f"{text} ")), None)
            if left is not None:
                yield _sentence(line.place, line.text, left)
            elif self._would_be_read(line):
                yield _sentence(line.place, line.text, "", f" ({line.reason})")
        elif text not in others:
            yield _sentence(line.place, line.text, self._like(line.place, text), f" ({line.reason})")

    @staticmethod
    def _would_be_read(line: Unread) -> bool:
        """Return whether the router's state, and not an unknown word, is why a line was refused."""
        return not line.reason.startswith("% Invalid input")

    def _below(self, place: Chain, wanted: _Pair, present: _Pair) -> Iterator[str]:
        """Yield the differences below one line."""
        for key, block in wanted.plain.children.items():
            has = present.plain.children.get(key)
            asked_line = wanted.line(key)
            if has is None:
                if not self._printed_otherwise(place, block, wanted.typed.children.get(key)):
                    yield _sentence(place, asked_line, self._like(place, asked_line))
                continue
            if has.line != block.line:
                yield _sentence(place, asked_line, present.line(key))
            yield from self._below((*place, block_name(key)), wanted.below(key), present.below(key))
        for key, block in present.plain.children.items():
            if key not in wanted.plain.children:
                yield _sentence(place, "", present.line(key) or block.line)
        yield from _order(place, list(wanted.plain.children), list(present.plain.children))

    def _printed_otherwise(self, place: Chain, block: Block, typed: Block | None) -> bool:
        """Return whether the router prints a line, and those below it, as they were asked for but unlike the model."""
        others = {each.text for each in self.present.unread if _same_place(each.place, place)}
        candidates = {block.line, *([] if typed is None else [typed.line])} | _like(self.asked, block.line)
        if not candidates & others:
            return False
        deeper = {each.text for each in self.present.unread if each.place[: len(place)] == place}
        return all(normalised(line) in deeper or normalised(line) in others for line in [*block.lines()][1:])

    def _like(self, place: Chain, line: str) -> str:
        """The line of the router about the same thing that the model does not take."""
        # Of lines for the whole router the first word shows too little: `ip`, `interface`.
        words = line.split()[: 1 if place else 2]
        texts = (each.text for each in self.present.unread if _same_place(each.place, place))
        return next((text for text in texts if text.split()[: len(words)] == words), "")


@dataclass(frozen=True)
class _Pair:
    """A block with its defaults spelled out, and the same as it was typed."""

    plain: Block
    typed: Block

    @classmethod
    def of(cls, spelled: Device, device: Device) -> _Pair:
        return cls(tree(spelled), tree(device))

    def line(self, key: str) -> str:
        """A line below this one, if possible as it was typed."""
        return self.typed.children.get(key, self.plain.children[key]).line

    def below(self, key: str) -> _Pair:
        return _Pair(self.plain.children[key], self.typed.children.get(key, self.plain.children[key]))


def _like(lines: Iterable[str], line: str) -> set[str]:
    """The lines that begin with the same word."""
    return {each for each in lines if each and each.split()[0] == line.split()[0]}


def _same_place(one: Chain, other: Chain) -> bool:
    """Return whether lines at these places are in the same block; a line below an action of a class counts as one of
    the class.
    """
    if one and one[0].startswith("policy-map "):
        return one[:2] == other[:2]
    return one == other


def _sentence(place: Chain, asked: str, found: str, why: str = "") -> str:
    where = ", ".join(place) + ": " if place else ""
    if not asked:
        return f"{where}`{found}` is active, but was not configured"
    state = f"but `{found}` is active" if found else "but no such line is active"
    return f"{where}configured `{asked}`, {state}{why}"


def _order(place: Chain, wanted: list[str], present: list[str]) -> Iterator[str]:
    """The same lines in another order, where order matters: classes of a policy-map, entries of an access list."""
    if (
        not place
        or not place[0].startswith(("policy-map ", "ip access-list ", "ipv6 access-list ", "access-list "))
        or len(place) > 1
    ):
        return
    if wanted != present and set(wanted) == set(present):
        yield f"{place[0]}: configured in the order {_listed(wanted)}, active in the order {_listed(present)}"


def _listed(lines: Iterable[str]) -> str:
    return ", ".join(f"`{line}`" for line in lines)


def _comparable(device: Device) -> list[str]:
    return sorted(render(device).splitlines())


def _any_difference(wanted: str, present: str) -> Iterator[str]:
    have, want = present.splitlines(), wanted.splitlines()
    yield from (f"configured `{line.strip()}`, but no such line is active" for line in want if line not in have)
    yield from (f"`{line.strip()}` is active, but was not configured" for line in have if line not in want)


# What was asked for, taken away from the router as it is.


def _tried_out(asked: str, present: Device) -> Reading:
    """Enter what was asked for on the router as it is, except for parts that only the result shows."""
    trial = present.copy()
    trial.access_lists, trial.ip_sla = {}, IpSla()
    reading = Reading(trial)
    enter_lines(reading, asked)
    return reading


def _named(trial: Reading) -> set[tuple[str, str]]:
    """The kinds and names of what was entered or changed."""
    named = {("access-list", name) for name in trial.device.access_lists}
    sla = trial.device.ip_sla
    named |= {("ip sla", str(number)) for number in (*sla.operations, *sla.schedules)}
    for position in trial.entered:
        if position.names and position.mode in ("policy-map", "policy-class", "police"):
            named.add(("policy-map", position.names[0]))
        elif position.names and position.mode == "class-map":
            named.add(("class-map", position.names[0]))
    return named


def _without(named: set[tuple[str, str]], present: Device, before: Device) -> Device:
    """Return the router as it is, with each thing that is named as it was before."""
    made = present.copy()
    for kind, name in named:
        match kind:
            case "class-map":
                _as_before(made.class_maps, before.class_maps, name)
            case "policy-map":
                _as_before(made.policy_maps, before.policy_maps, name)
                for interface in made.interfaces.values():
                    if interface.service_policy_input == name:
                        interface.service_policy_input = None
                    if interface.service_policy_output == name:
                        interface.service_policy_output = None
                for vlan, own in made.host_interfaces.items():
                    if own.service_policy_input == name:
                        made.host_interfaces[vlan] = replace(own, service_policy_input=None)
            case "access-list":
                _as_before(made.access_lists, before.access_lists, name)
            case "ip sla":
                _as_before(made.ip_sla.operations, before.ip_sla.operations, int(name))
                _as_before(made.ip_sla.schedules, before.ip_sla.schedules, int(name))
    return made


def _as_before(made: dict[Key, Value], before: dict[Key, Value], name: Key) -> None:
    made.pop(name, None)
    if name in before:
        made[name] = before[name]


def _attach_again(wanted: Device, present: Device, trial: Device) -> None:
    """Leave policies that are attached where they are, unless `trial` says that they were taken off."""
    for name, interface in wanted.interfaces.items():
        has, kept = present.interfaces.get(name), trial.interfaces.get(name)
        if has is None or kept is None:
            continue
        if interface.service_policy_input is None and kept.service_policy_input is not None:
            interface.service_policy_input = has.service_policy_input
        if interface.service_policy_output is None and kept.service_policy_output is not None:
            interface.service_policy_output = has.service_policy_output
    for name, own in wanted.host_interfaces.items():
        there, tried = present.host_interfaces.get(name), trial.host_interfaces.get(name)
        if there is None or tried is None or own.service_policy_input is not None:
            continue
        if tried.service_policy_input is not None:
            wanted.host_interfaces[name] = replace(own, service_policy_input=there.service_policy_input)
