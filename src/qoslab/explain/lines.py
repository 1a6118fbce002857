"""Lines of a configuration by the part of the device model that they define."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from qoslab.ios.cli.grammar import CliError
from qoslab.ios.cli.session import Position
from qoslab.ios.config import ConfigSession
from qoslab.ios.device_config.running_config_parser import ConfigurationReading, ExecutedLine
from qoslab.ios.device_config.secret_lines import remove_secrets
from qoslab.ios.model.device import AccessEntry, Device
from qoslab.ios.model.policy import Criterion

_Object = TypeVar("_Object")
IN_CLASS = ("policy-class", "police")
ACCESS_LIST_MODES = ("standard-acl", "extended-acl", "ipv6-acl")


@dataclass(frozen=True)
class ConfigurationLine:
    """One line of a configuration."""

    number: int
    """Line number from 1; 0 for a line that is not in the file."""
    text: str
    file: str = ""
    """File name; empty for the configuration of the traced router."""

    def __str__(self) -> str:
        place = f"{self.file} " if self.file else ""
        return f"{place}line {self.number}: {self.text}" if self.number else f"default: {self.text}"


class ConfigurationLines:
    """The lines of one device, from one or more files."""

    def __init__(self, device: Device, readings: Iterable[tuple[str, ConfigurationReading]]) -> None:
        self._device = device
        self._readings = tuple(readings)
        self._criteria: dict[str, dict[Criterion, ConfigurationLine]] = {}
        self._entries: dict[str, dict[AccessEntry, ConfigurationLine]] = {}

    def _all_lines(self) -> Iterator[tuple[str, ExecutedLine]]:
        for file, reading in self._readings:
            for carried in reading.executed:
                yield file, carried

    def first(self, modes: Sequence[str], names: tuple[str, ...], *commands: str) -> ConfigurationLine | None:
        """Return the first line at a position that begins with one of `commands`."""
        return next(self._find_lines(modes, names, commands), None)

    def last(self, modes: Sequence[str], names: tuple[str, ...], *commands: str) -> ConfigurationLine | None:
        """Return the last line as for `first`: it has effect if a command replaces an earlier one."""
        found = list(self._find_lines(modes, names, commands))
        return found[-1] if found else None

    def _find_lines(
        self, modes: Sequence[str], names: tuple[str, ...], commands: tuple[str, ...]
    ) -> Iterator[ConfigurationLine]:
        for file, carried in self._all_lines():
            same = carried.position.mode in modes and carried.position.names[: len(names)] == names
            if same and any(_begins_with(carried.text, command) for command in commands):
                yield _to_line(file, carried)

    def class_line(self, policy: str, name: str, *commands: str) -> ConfigurationLine | None:
        """Return the line of a command in a class of a policy-map."""
        return self.last(IN_CLASS, (policy, name), *commands)

    def class_header(self, policy: str, name: str) -> ConfigurationLine | None:
        """Return the line that begins a class of a policy-map."""
        return self.first(IN_CLASS, (policy, name), "class")

    def interface_line(self, interface: str, *commands: str) -> ConfigurationLine | None:
        """Return the line of a command of an interface."""
        return self.last(("interface", "subinterface", "atm-vc", "subif-atm-vc"), (interface,), *commands)

    def interface_lines(self, interface: str, command: str) -> list[ConfigurationLine]:
        """Return all lines of a command of an interface, in order."""
        return list(self._find_lines(("interface", "subinterface"), (interface,), (command,)))

    def global_lines(self, command: str) -> list[ConfigurationLine]:
        """Return all global lines that begin with a command."""
        return list(self._find_lines(("config",), (), (command,)))

    def criterion_line(self, name: str, criterion: Criterion) -> ConfigurationLine | None:
        """Return the `match` line of a class-map that defines a criterion."""
        if name not in self._criteria:
            self._criteria[name] = self._matches_object(
                name,
                lambda carried: carried.position == Position("class-map", (name,)),
                lambda device: device.class_maps[name].criteria if name in device.class_maps else (),
            )
        return self._criteria[name].get(criterion)

    def entry_line(self, name: str, entry: AccessEntry) -> ConfigurationLine | None:
        """Return the line of an access list that defines an entry."""
        if name not in self._entries:
            self._entries[name] = self._matches_object(
                name,
                lambda carried: _is_in_list(carried, name),
                lambda device: device.access_lists[name].entries if name in device.access_lists else (),
            )
        return self._entries[name].get(entry)

    def _matches_object(
        self, name: str, wanted: Callable[[ExecutedLine], bool], parts: Callable[[Device], tuple[_Object, ...]]
    ) -> dict[_Object, ConfigurationLine]:
        """Execute the lines of a class-map or access list on a device without it, and record the part that each line
        adds.
        """
        device = Device(self._device.hardware, object_groups=self._device.object_groups)
        device.class_maps = {other: each for other, each in self._device.class_maps.items() if other != name}
        session = ConfigSession(device)
        made: dict[_Object, ConfigurationLine] = {}
        for file, carried in self._all_lines():
            if not wanted(carried):
                continue
            session.position = Position("config") if carried.text.split()[0] in _HEADS else carried.position
            before = parts(device)
            try:
                session.execute(carried.text)
            except CliError:
                continue
            made |= {each: _to_line(file, carried) for each in parts(device) if each not in before}
        return made


_HEADS = ("class-map", "ip", "ipv6", "access-list")


def _is_in_list(carried: ExecutedLine, name: str) -> bool:
    if carried.position.mode in ACCESS_LIST_MODES:
        return carried.position.names == (name,)
    words = carried.text.split()
    return carried.position.mode == "config" and words[0].startswith("access") and words[1:2] == [name]


def _begins_with(text: str, command: str) -> bool:
    """Return whether a line begins with a command, each word of which may be abbreviated."""
    typed, wanted = text.split(), command.split()
    if len(typed) < len(wanted):
        return False
    return all(
        word == full or (len(word) > 2 and full.startswith(word)) for word, full in zip(typed, wanted, strict=False)
    )


def _to_line(file: str, carried: ExecutedLine) -> ConfigurationLine:
    return ConfigurationLine(carried.number, remove_secrets(carried.text), file)
