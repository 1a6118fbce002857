"""Drivers of the routers of a lab: input of their Ansible role, configuration from before, and lines that undo it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.device_config.interface_names import InterfaceNames
from qoslab.ios.device_config.restore import find_collisions, plan_restoration, unrestored_lines
from qoslab.ios.model.device import Hardware
from qoslab.model.experiment import Topology
from qoslab.platforms.startup import router_hardware
from qoslab.results import Cell
from qoslab.results.redaction import KNOWN
from qoslab.run.devices.state import RestoreState

SHOW = "show running-config"


@dataclass(frozen=True)
class RouterUndo:
    """Lines that restore a router."""

    needed: bool
    """True if its role has something to do."""
    left: tuple[str, ...] = ()
    """Changes by other users that are left in place, one sentence each."""


class RouterDriver(Protocol):
    """Actions of a run on one router, by the access method of its platform."""

    def write_intent(self, cell: Cell, folder: Path, text: str | None) -> None:
        """Write the configuration for its role to `folder`, and a copy to the cell.

        `text` is its IOS configuration for the cell; None if it has none.
        """

    @property
    def is_saved(self) -> bool:
        """True if its configuration from before the run has been read."""

    def collisions(self) -> Sequence[str]:
        """Return the parts of the router's configuration that the intended one would overwrite, one sentence each."""

    def record_push(self) -> None:
        """Record that the intended configuration is about to be pushed; the record survives a power failure."""

    def record_pushed(self, cell: Cell, answers: Mapping[str, str], *, restored: bool) -> None:
        """Record the active configuration and the answers to these show commands.

        `restored`: the previous configuration was undone first.
        """

    def record_restored(self, answers: Mapping[str, str]) -> bool:
        """Record the answers of the router; return whether the lines that undo the configuration can be derived."""

    def write_undo(self, folder: Path) -> RouterUndo:
        """Write the input of its role for undoing the configuration to `folder`."""


def hardware_with_own_names(topology: Topology, router: str, names: InterfaceNames) -> Hardware:
    """Return the hardware of a router, with its own interface names in addition to the experiment's."""
    model = router_hardware(topology, router)
    there = [*map(names.to_device, model.interfaces), *model.interfaces]
    return replace(model, interfaces=tuple(dict.fromkeys(there)))


class CommandLineRouter:
    """Router with an IOS command line: only the pushed lines are undone, one by one."""

    def __init__(self, router: str, topology: Topology, names: InterfaceNames, state: RestoreState) -> None:
        self._name = router
        self._names = names
        self._hardware = hardware_with_own_names(topology, router, names)
        self._state = state
        self._intended = ""
        self._running = ""
        """Latest running configuration; empty before the first reading."""

    @property
    def configuration_before(self) -> str:
        """The running configuration from before the run."""
        return self._state.configuration_before(self._name)

    def write_intent(self, cell: Cell, folder: Path, text: str | None) -> None:
        """See `RouterDriver`."""
        self._intended = self._names.to_device(text or "")
        if text is not None:
            (folder / f"{self._name}.ios").write_text(self._intended, encoding="utf-8")

    @property
    def is_saved(self) -> bool:
        """See `RouterDriver`."""
        return self._state.has_configuration_before(self._name)

    def collisions(self) -> Sequence[str]:
        """See `RouterDriver`."""
        return find_collisions(self.configuration_before, self._intended, self._hardware)

    def record_push(self) -> None:
        """See `RouterDriver`."""
        self._state.push(self._name, self._intended)

    def record_pushed(self, cell: Cell, answers: Mapping[str, str], *, restored: bool) -> None:
        """See `RouterDriver`."""
        if restored:
            self._state.forget_earlier_pushes(self._name)
        self.record_restored(answers)
        cell.write(cell.configuration(f"{self._name}.running.ios"), KNOWN.mask(self._running))
        cell.write(cell.configuration(f"{self._name}.before.ios"), KNOWN.mask(self.configuration_before))

    def record_restored(self, answers: Mapping[str, str]) -> bool:
        """See `RouterDriver`."""
        self._running = answers.get(SHOW, "")
        return bool(self._running)

    def write_undo(self, folder: Path) -> RouterUndo:
        """See `RouterDriver`."""
        pushed = self._state.pushed_configurations(self._name)
        found = plan_restoration(self.configuration_before, self._running, pushed, self._hardware)
        if found.lines:
            (folder / f"{self._name}.pushed.ios").write_text("".join(pushed), encoding="utf-8")
            (folder / f"{self._name}.restore.ios").write_text("\n".join(found.lines) + "\n", encoding="utf-8")
        return RouterUndo(bool(found.lines), tuple(found.left))

    def foreign_changes(self, shown: str) -> list[str]:
        """Return the changes by other users since the push, one sentence each, without secrets.

        `shown` is its current running configuration.
        """
        was = self._running
        found = unrestored_lines(was, shown, [], self._hardware) if was and shown else []
        return [KNOWN.mask(sentence) for sentence in found]

    def lost_configuration(self, shown: str) -> list[str]:
        """Return the lost parts of the pushed configuration, one sentence each.

        `shown` is its current running configuration, from which the lines to undo are derived.
        """
        self._running = shown
        asked = self._state.pushed_configurations(self._name)[-1]
        found = configuration_differences(asked, shown, before=self.configuration_before, family=self._hardware.family)
        return [KNOWN.mask(sentence) for sentence in found]


class ControlSocketRouter:
    """Router with a control socket: its data plane gets a complete configuration, later the one from before."""

    file = "engine.json"
    """Name of the configuration in the folder of the cell, after the router's."""

    def __init__(self, router: str, compile: Callable[[str], Mapping[str, Any]], state: RestoreState) -> None:
        """`compile` converts the experiment's configuration for the data plane."""
        self._name = router
        self._compile = compile
        self._state = state

    def write_intent(self, cell: Cell, folder: Path, text: str | None) -> None:
        """See `RouterDriver`."""
        engine = json.dumps(self._compile(text or ""), indent=1) + "\n"
        cell.write(cell.configuration(f"{self._name}.{self.file}"), engine)
        (folder / f"{self._name}.engine.json").write_text(engine, encoding="utf-8")

    @property
    def is_saved(self) -> bool:
        """See `RouterDriver`."""
        return (self._state.folder / f"{self._name}.before.json").exists()

    def collisions(self) -> Sequence[str]:
        """See `RouterDriver`: none, since the configuration is replaced as a whole."""
        return ()

    def record_push(self) -> None:
        """See `RouterDriver`: nothing, since restoring does not depend on it."""

    def record_pushed(self, cell: Cell, answers: Mapping[str, str], *, restored: bool) -> None:
        """See `RouterDriver`."""

    def record_restored(self, answers: Mapping[str, str]) -> bool:
        """See `RouterDriver`."""
        return True

    def write_undo(self, folder: Path) -> RouterUndo:
        """See `RouterDriver`: the Ansible role stores the complete previous configuration."""
        return RouterUndo(needed=True)


class TcRouter(ControlSocketRouter):
    """Linux router: its kernel goes from one configuration to the next by their difference, then starts again."""

    file = "tc.json"

    def write_undo(self, folder: Path) -> RouterUndo:
        """See `RouterDriver`: nothing between two cells, since the next configuration replaces the last one."""
        return RouterUndo(needed=False)
