"""One router of a lab in a run: what is written for its role of Ansible, what it had, and what takes that back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.device_config.interface_names import InterfaceNames
from qoslab.ios.device_config.restore import collisions, restoration, unrestored
from qoslab.ios.model.device import Hardware
from qoslab.model.experiment import Topology
from qoslab.platforms.startup import hardware
from qoslab.results import Cell
from qoslab.results.redaction import KNOWN
from qoslab.run.devices.state import RestoreState

SHOW = "show running-config"


@dataclass(frozen=True)
class Undo:
    """Lines that restore a router."""

    needed: bool
    """True if its role has something to do."""
    left: tuple[str, ...] = ()
    """Changes by other users that are left in place, one sentence each."""


class RouterDriver(Protocol):
    """Part of a run for one router, by the access method of its platform."""

    def intend(self, cell: Cell, folder: Path, text: str | None) -> None:
        """Write to `folder` what its role is to put in force, and to the cell what is kept of that.

        `text` is its IOS configuration for the cell; None if it has none.
        """

    @property
    def is_saved(self) -> bool:
        """True if its configuration from before the run has been read."""

    def collisions(self) -> Sequence[str]:
        """Return the parts of the router's configuration that the intended one would overwrite, one sentence each."""

    def pushing(self) -> None:
        """Record that the intended configuration is about to be pushed; the record survives a power failure."""

    def pushed(self, cell: Cell, answers: Mapping[str, str], *, restored: bool) -> None:
        """Record the active configuration and the answers to these show commands; `restored` if it was rolled back
        first.
        """

    def showed(self, answers: Mapping[str, str]) -> bool:
        """The router has answered; whether what takes it back can be known."""

    def write_undo(self, folder: Path) -> Undo:
        """Write to `folder` what its role needs to take it back."""


def own_hardware(topology: Topology, router: str, names: InterfaceNames) -> Hardware:
    """The chassis of a router, with its own names of interfaces besides the experiment's."""
    model = hardware(topology, router)
    there = [*map(names.to_device, model.interfaces), *model.interfaces]
    return replace(model, interfaces=tuple(dict.fromkeys(there)))


class CommandLineRouter:
    """A router with an IOS command line: what was pushed is undone line by line, and only that."""

    def __init__(self, router: str, topology: Topology, names: InterfaceNames, state: RestoreState) -> None:
        self._name = router
        self._names = names
        self._hardware = own_hardware(topology, router, names)
        self._state = state
        self._intended = ""
        self._running = ""
        """Running configuration as last read; empty before that."""

    @property
    def before(self) -> str:
        """The running configuration from before the run."""
        return self._state.before(self._name)

    def intend(self, cell: Cell, folder: Path, text: str | None) -> None:
        """See `RouterDriver`."""
        self._intended = self._names.to_device(text or "")
        if text is not None:
            (folder / f"{self._name}.ios").write_text(self._intended, encoding="utf-8")

    @property
    def is_saved(self) -> bool:
        """See `RouterDriver`."""
        return self._state.has_before(self._name)

    def collisions(self) -> Sequence[str]:
        """See `RouterDriver`."""
        return collisions(self.before, self._intended, self._hardware)

    def pushing(self) -> None:
        """See `RouterDriver`."""
        self._state.push(self._name, self._intended)

    def pushed(self, cell: Cell, answers: Mapping[str, str], *, restored: bool) -> None:
        """See `RouterDriver`."""
        if restored:
            self._state.forget_but_last(self._name)
        self.showed(answers)
        cell.write(cell.configuration(f"{self._name}.running.ios"), KNOWN.masked(self._running))
        cell.write(cell.configuration(f"{self._name}.before.ios"), KNOWN.masked(self.before))

    def showed(self, answers: Mapping[str, str]) -> bool:
        """See `RouterDriver`."""
        self._running = answers.get(SHOW, "")
        return bool(self._running)

    def write_undo(self, folder: Path) -> Undo:
        """See `RouterDriver`."""
        pushed = self._state.pushed(self._name)
        found = restoration(self.before, self._running, pushed, self._hardware)
        if found.lines:
            (folder / f"{self._name}.pushed.ios").write_text("".join(pushed), encoding="utf-8")
            (folder / f"{self._name}.restore.ios").write_text("\n".join(found.lines) + "\n", encoding="utf-8")
        return Undo(bool(found.lines), tuple(found.left))

    def changed(self, shown: str) -> list[str]:
        """Return the changes by other users since the configuration, one sentence each, without secrets.

        `shown` is its running configuration now.
        """
        was = self._running
        found = unrestored(was, shown, [], self._hardware) if was and shown else []
        return [KNOWN.masked(sentence) for sentence in found]

    def lost(self, shown: str) -> list[str]:
        """Return the lost parts of the pushed configuration, one sentence each.

        `shown` is its running configuration now: what is to be undone is known from it.
        """
        self._running = shown
        asked = self._state.pushed(self._name)[-1]
        found = configuration_differences(asked, shown, before=self.before, family=self._hardware.family)
        return [KNOWN.masked(sentence) for sentence in found]


class ControlSocketRouter:
    """A router whose data plane gets a whole configuration, and afterwards the one from before the run."""

    def __init__(
        self, router: str, compile: Callable[[str], Mapping[str, Any]], state: RestoreState, file: str = "engine.json"
    ) -> None:
        """`compile` makes the data plane's configuration of the experiment's; the cell has it as ROUTER.`kept`."""
        self._name = router
        self._compile = compile
        self._state = state
        self._file = file

    def intend(self, cell: Cell, folder: Path, text: str | None) -> None:
        """See `RouterDriver`."""
        engine = json.dumps(self._compile(text or ""), indent=1) + "\n"
        cell.write(cell.configuration(f"{self._name}.{self._file}"), engine)
        (folder / f"{self._name}.engine.json").write_text(engine, encoding="utf-8")

    @property
    def is_saved(self) -> bool:
        """See `RouterDriver`."""
        return (self._state.folder / f"{self._name}.before.json").exists()

    def collisions(self) -> Sequence[str]:
        """See `RouterDriver`: what it has of its own is left out of a configuration that takes its place whole."""
        return ()

    def pushing(self) -> None:
        """See `RouterDriver`: what takes it back does not depend on that."""

    def pushed(self, cell: Cell, answers: Mapping[str, str], *, restored: bool) -> None:
        """See `RouterDriver`."""

    def showed(self, answers: Mapping[str, str]) -> bool:
        """See `RouterDriver`."""
        return True

    def write_undo(self, folder: Path) -> Undo:
        """See `RouterDriver`: its role has the whole configuration from before."""
        return Undo(needed=True)
