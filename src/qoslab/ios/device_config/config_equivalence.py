"""Comparison, by meaning, of a router's running configuration with a requested configuration.

The requested configuration is entered in a model of the running router, from which the requested policies, classes,
access lists and operations are first removed, since their presence is to be verified. If the result equals the running
configuration, the request is active, regardless of spelling and of the router's other configuration. Lines that the
model does not know are compared as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from qoslab.ios.device_config.diff import ConfigurationBlock, configuration_tree
from qoslab.ios.device_config.normalise import fill_in_defaults
from qoslab.ios.device_config.running_config_parser import (
    Chain,
    ConfigurationReading,
    UnreadLine,
    block_name,
    described_hardware,
    enter_lines,
    normalise_blanks,
    possible_generations,
    read_running,
)
from qoslab.ios.model.device import Device
from qoslab.ios.model.ip_sla import IpSla
from qoslab.ios.running_config import render
from qoslab.model.generation import Generation

Key = TypeVar("Key")
Value = TypeVar("Value")


def configuration_differences(
    asked: str, running: str, *, before: str | None = None, family: str = "router"
) -> list[str]:
    """Return the parts of the configuration `asked` that are not active on a router that prints `running`.

    Each part is one sentence. `before` is the running configuration from before `asked` was entered, if known: without
    it, policies, classes, access lists and operations in `asked` are expected to have no other content. The
    generation of the router's software is that of its version; for a 12.4, the one with fewer unknown lines, then with
    fewer differences.
    """
    generations = possible_generations(running)
    if family == "switch":
        generations = generations[:1]
    found = []
    for each in generations:
        comparison = _ConfigurationComparison.from_configurations(asked, running, before, family, each)
        found.append((comparison.unread_lines, list(comparison.find_differences())))
    return min(found, key=lambda each: (each[0], len(each[1])))[1]


@dataclass(frozen=True)
class _ConfigurationComparison:
    wanted: ConfigurationReading
    """The router with the requested configuration."""
    present: ConfigurationReading
    """The running router."""
    asked: frozenset[str]
    """The requested lines, with one blank between words."""

    @classmethod
    def from_configurations(
        cls, asked: str, running: str, before: str | None, family: str, generation: Generation
    ) -> _ConfigurationComparison:
        hardware = described_hardware(running, family, generation)
        present = read_running(running, hardware)
        earlier = Device(hardware) if before is None else read_running(before, hardware).device
        trial = _apply_on_trial(asked, present.device)
        wanted = ConfigurationReading(_without_objects(_object_names(trial), present.device, earlier))
        enter_lines(wanted, asked)
        _reattach_policies(wanted.device, present.device, trial.device)
        return cls(wanted, present, frozenset(map(normalise_blanks, asked.splitlines())))

    @property
    def unread_lines(self) -> int:
        return len(self.wanted.unread) + len(self.present.unread)

    def find_differences(self) -> Iterator[str]:
        for line in self.wanted.unread:
            yield from self._text_difference(line)
        wanted, present = fill_in_defaults(self.wanted.device), fill_in_defaults(self.present.device)
        if wanted == present:
            return
        found = [
            *self._differences_below(
                (),
                _BlockPair.from_lines(wanted, self.wanted.device),
                _BlockPair.from_lines(present, self.present.device),
            )
        ]
        if not found and (wanted.banner_motd, wanted.banners) != (present.banner_motd, present.banners):
            found = ["asked for another `banner`"]
        if not found and _comparable_device(wanted) != _comparable_device(present):
            found = list(_line_differences(render(wanted), render(present)))
        yield from found

    def _text_difference(self, line: UnreadLine) -> Iterator[str]:
        """Yield the difference of a requested line that the model does not accept."""
        taken_back = line.text.startswith("no ")
        text = line.text.removeprefix("no ")
        others = [each.text for each in self.present.unread if _is_same_block(each.place, line.place)]
        if taken_back:
            left = next((each for each in others if f"{each} ".startswith(f"{text} ")), None)
            if left is not None:
                yield _difference_sentence(line.place, line.text, left)
            elif self._is_refused_by_state(line):
                yield _difference_sentence(line.place, line.text, "", f" ({line.reason})")
        elif text not in others:
            yield _difference_sentence(
                line.place, line.text, self._similar_device_line(line.place, text), f" ({line.reason})"
            )

    @staticmethod
    def _is_refused_by_state(line: UnreadLine) -> bool:
        """Return whether a line was refused because of the router's state, not because of an unknown word."""
        return not line.reason.startswith("% Invalid input")

    def _differences_below(self, place: Chain, wanted: _BlockPair, present: _BlockPair) -> Iterator[str]:
        """Yield the differences below one line."""
        for key, block in wanted.plain.children.items():
            has = present.plain.children.get(key)
            asked_line = wanted.line(key)
            if has is None:
                if not self._is_printed_differently(place, block, wanted.typed.children.get(key)):
                    yield _difference_sentence(place, asked_line, self._similar_device_line(place, asked_line))
                continue
            if has.line != block.line:
                yield _difference_sentence(place, asked_line, present.line(key))
            yield from self._differences_below(
                (*place, block_name(key)), wanted.block_below(key), present.block_below(key)
            )
        for key, block in present.plain.children.items():
            if key not in wanted.plain.children:
                yield _difference_sentence(place, "", present.line(key) or block.line)
        yield from _order(place, list(wanted.plain.children), list(present.plain.children))

    def _is_printed_differently(
        self, place: Chain, block: ConfigurationBlock, typed: ConfigurationBlock | None
    ) -> bool:
        """Return whether the router prints a line and its child lines as requested, although unlike the model."""
        others = {each.text for each in self.present.unread if _is_same_block(each.place, place)}
        candidates = {block.line, *([] if typed is None else [typed.line])} | _similar_lines(self.asked, block.line)
        if not candidates & others:
            return False
        deeper = {each.text for each in self.present.unread if each.place[: len(place)] == place}
        return all(
            normalise_blanks(line) in deeper or normalise_blanks(line) in others for line in [*block.lines()][1:]
        )

    def _similar_device_line(self, place: Chain, line: str) -> str:
        """Return the router's line on the same subject that the model does not accept; empty if there is none."""
        # The first word of global lines, such as `ip` or `interface`, is not specific enough.
        words = line.split()[: 1 if place else 2]
        texts = (each.text for each in self.present.unread if _is_same_block(each.place, place))
        return next((text for text in texts if text.split()[: len(words)] == words), "")


@dataclass(frozen=True)
class _BlockPair:
    """A block with its defaults spelled out, and the same block as typed."""

    plain: ConfigurationBlock
    typed: ConfigurationBlock

    @classmethod
    def from_lines(cls, spelled: Device, device: Device) -> _BlockPair:
        return cls(configuration_tree(spelled), configuration_tree(device))

    def line(self, key: str) -> str:
        """Return a line below this block, as typed if possible."""
        return self.typed.children.get(key, self.plain.children[key]).line

    def block_below(self, key: str) -> _BlockPair:
        return _BlockPair(self.plain.children[key], self.typed.children.get(key, self.plain.children[key]))


def _similar_lines(lines: Iterable[str], line: str) -> set[str]:
    """Return the lines with the same first word."""
    return {each for each in lines if each and each.split()[0] == line.split()[0]}


def _is_same_block(one: Chain, other: Chain) -> bool:
    """Return whether lines at these places are in the same block; lines below an action of a class belong to it."""
    if one and one[0].startswith("policy-map "):
        return one[:2] == other[:2]
    return one == other


def _difference_sentence(place: Chain, asked: str, found: str, why: str = "") -> str:
    where = ", ".join(place) + ": " if place else ""
    if not asked:
        return f"{where}`{found}` is active, but was not configured"
    state = f"but `{found}` is active" if found else "but no such line is active"
    return f"{where}configured `{asked}`, {state}{why}"


def _order(place: Chain, wanted: list[str], present: list[str]) -> Iterator[str]:
    """Yield a difference in order if order matters: classes of a policy-map, entries of an access list."""
    if (
        not place
        or not place[0].startswith(("policy-map ", "ip access-list ", "ipv6 access-list ", "access-list "))
        or len(place) > 1
    ):
        return
    if wanted != present and set(wanted) == set(present):
        yield (
            f"{place[0]}: configured in the order {_format_lines(wanted)}, active in the order {_format_lines(present)}"
        )


def _format_lines(lines: Iterable[str]) -> str:
    return ", ".join(f"`{line}`" for line in lines)


def _comparable_device(device: Device) -> list[str]:
    return sorted(render(device).splitlines())


def _line_differences(wanted: str, present: str) -> Iterator[str]:
    have, want = present.splitlines(), wanted.splitlines()
    yield from (f"configured `{line.strip()}`, but no such line is active" for line in want if line not in have)
    yield from (f"`{line.strip()}` is active, but was not configured" for line in have if line not in want)


# Removal of the requested configuration from the running router.


def _apply_on_trial(asked: str, present: Device) -> ConfigurationReading:
    """Enter the requested configuration on the running router, without its access lists and IP SLA operations."""
    trial = present.copy()
    trial.access_lists, trial.ip_sla = {}, IpSla()
    reading = ConfigurationReading(trial)
    enter_lines(reading, asked)
    return reading


def _object_names(trial: ConfigurationReading) -> set[tuple[str, str]]:
    """Return the kinds and names of the objects that were entered or changed."""
    named = {("access-list", name) for name in trial.device.access_lists}
    sla = trial.device.ip_sla
    named |= {("ip sla", str(number)) for number in (*sla.operations, *sla.schedules)}
    for position in trial.entered:
        if position.names and position.mode in ("policy-map", "policy-class", "police"):
            named.add(("policy-map", position.names[0]))
        elif position.names and position.mode == "class-map":
            named.add(("class-map", position.names[0]))
    return named


def _without_objects(named: set[tuple[str, str]], present: Device, before: Device) -> Device:
    """Return the running router with each named object as it was before."""
    made = present.copy()
    for kind, name in named:
        match kind:
            case "class-map":
                _restore_object(made.class_maps, before.class_maps, name)
            case "policy-map":
                _restore_object(made.policy_maps, before.policy_maps, name)
                for interface in made.interfaces.values():
                    if interface.service_policy_input == name:
                        interface.service_policy_input = None
                    if interface.service_policy_output == name:
                        interface.service_policy_output = None
                for vlan, own in made.host_interfaces.items():
                    if own.service_policy_input == name:
                        made.host_interfaces[vlan] = replace(own, service_policy_input=None)
            case "access-list":
                _restore_object(made.access_lists, before.access_lists, name)
            case "ip sla":
                _restore_object(made.ip_sla.operations, before.ip_sla.operations, int(name))
                _restore_object(made.ip_sla.schedules, before.ip_sla.schedules, int(name))
    return made


def _restore_object(made: dict[Key, Value], before: dict[Key, Value], name: Key) -> None:
    made.pop(name, None)
    if name in before:
        made[name] = before[name]


def _reattach_policies(wanted: Device, present: Device, trial: Device) -> None:
    """Keep attached policies attached, unless they were detached in `trial`."""
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
