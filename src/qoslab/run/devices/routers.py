"""The routers of one lab: what was pushed to them by Ansible, and how they get back to where they were."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from qoslab.errors import DeviceError, UserError
from qoslab.ios.in_force import configuration_differences
from qoslab.ios.interface_names import AS_THEY_ARE, InterfaceNames
from qoslab.ios.model.device import Hardware
from qoslab.ios.parse import apply, parse_config
from qoslab.ios.restore import collisions, restoration, unrestored
from qoslab.model.experiment import Topology
from qoslab.platforms import reached_by
from qoslab.platforms.startup import data_plane, hardware
from qoslab.redaction import KNOWN
from qoslab.results import Cell
from qoslab.results.files import writing
from qoslab.run.devices.ansible.session import AnsibleSession, Intent, Outcome, RouterError
from qoslab.run.devices.state import RestoreState
from qoslab.run.faults import LabDied, PassingFault
from qoslab.units import Duration

if TYPE_CHECKING:
    from qoslab import formats


class Base(Protocol):
    """The configuration that a router has before the experiment's own."""

    def __call__(self, router: str) -> str:
        """Its text."""


class Guard(Protocol):
    """What takes the routers' configurations back where this run is cut off."""

    def arm(self, traffic: Duration) -> None:
        """Before lines are sent, for each cell, whose traffic takes so long: its time begins anew."""

    def disarm(self) -> None:
        """The routers are as they were."""


def own_hardware(topology: Topology, router: str, names: InterfaceNames) -> Hardware:
    """The chassis of a router, with its own names of interfaces besides the experiment's."""
    model = hardware(topology, router)
    there = [*map(names.to_device, model.interfaces), *model.interfaces]
    return replace(model, interfaces=tuple(dict.fromkeys(there)))


class Routers:
    """All routers of a lab that Ansible reaches.

    `configure` restores what an earlier cell left, pushes and verifies, in one order to Ansible; `restore` brings every
    router back to its configuration from before the run.
    """

    def __init__(
        self,
        topology: Topology,
        session: AnsibleSession,
        state: RestoreState,
        base: Base,
        note: Callable[[str], None],
        guard: Guard | None = None,
        names: Mapping[str, InterfaceNames] = MappingProxyType({}),
    ) -> None:
        """`state` is the session's folder of configurations from before.

        `base` gives a Linux router's configuration without the experiment's; `note` is told what others changed on a
        router meanwhile, which stays as it is. `names` is what routers call the experiment's interfaces: all that is
        sent to them, read back and undone has their names, what is kept of the experiment has its own.
        """
        self._topology = topology
        self._session = session
        self._guard = guard
        self._names = names
        self._state = state
        self._before = state.folder
        self._base = base
        self._ios = reached_by(topology, "command line")
        self._linux = reached_by(topology, "control socket")
        self._prepared = False
        self._touched = False
        """Whether something may have been pushed that is not restored yet."""
        self._note = note
        self._noted: set[str] = set()
        self._running: dict[str, str] | None = {}
        """Running configuration of each IOS router that was touched, as last read; None: unknown."""

    def configure(self, cell: Cell, texts: Mapping[str, str], commands: Sequence[str], *, traffic: Duration) -> Outcome:
        """Put the configuration of a cell in force and verify it. `texts` are IOS configurations by router.

        `commands` are show commands that verify brings along, `traffic` is how long the cell's traffic will take.
        Raises `RouterError` with the device's own message; the caller then restores.
        """
        sent = {router: self._names.get(router, AS_THEY_ARE).to_device(text) for router, text in texts.items()}
        intended = self._before / "intended"
        with writing(intended):
            shutil.rmtree(intended, ignore_errors=True)
            intended.mkdir(parents=True)
            for router, text in sent.items():
                (intended / f"{router}.ios").write_text(text, encoding="utf-8")
        for router, text in texts.items():
            cell.write(cell.configuration(f"{router}.ios"), text)
        for router in self._linux:
            config = self.compiled(router, texts.get(router, ""), source=f"{router}.ios")
            engine = json.dumps(config, indent=1) + "\n"
            cell.write(cell.configuration(f"{router}.engine.json"), engine)
            (intended / f"{router}.engine.json").write_text(engine, encoding="utf-8")
        if not self._prepared:
            self._session.carry_out(["prepare"], keep=cell.path / "ansible")
            self._prepared = True
        self._refuse_collisions(sent)
        intents: list[Intent] = []
        restore = None
        if self._touched:
            restore = self._write_undo(cell.path / "restore")
            if any(restore.glob("*.restore.ios")) or self._linux:
                intents.append("restore")
        intents += ["apply", "verify"]
        if self._guard is not None:
            self._guard.arm(traffic)
        self._state.push({router: sent.get(router, "") for router in self._ios})
        self._touched, self._running = True, None
        outcome = self._session.carry_out(
            intents, intended=intended, restore=restore, commands=commands, keep=cell.path / "ansible"
        )
        self._running = {}
        if restore is not None:
            for router in self._ios:
                self._state.forget_but_last(router)
        for router in self._ios:
            self._running[router] = outcome.answers(router).get("show running-config", "")
            cell.write(cell.configuration(f"{router}.running.ios"), KNOWN.masked(self._running[router]))
            cell.write(cell.configuration(f"{router}.before.ios"), KNOWN.masked(self.before(router)))
        return outcome

    def _refuse_collisions(self, texts: Mapping[str, str]) -> None:
        """Refuse, before the first line is sent, what would overwrite something of the routers' own."""
        for router in self._ios:
            found = collisions(self.before(router), texts.get(router, ""), self._hardware(router))
            if found:
                raise UserError(
                    f"{router} is left as it is, since the experiment would overwrite what it has:\n"
                    + "\n".join(f"  {sentence}" for sentence in found),
                    hint="Give it another name in the experiment's template, or take it off the router.",
                )

    def _hardware(self, router: str) -> Hardware:
        return own_hardware(self._topology, router, self._names.get(router, AS_THEY_ARE))

    def before(self, router: str) -> str:
        """The running configuration from before the run."""
        return self._state.before(router)

    def compiled(self, router: str, text: str, *, source: str) -> formats.RouterConfig:
        """The data plane's configuration for a router with this configuration on top of its own."""
        device = parse_config(self._base(router), hardware(self._topology, router), source=f"{router}: base")
        apply(device, text, source=source)
        return data_plane(self._topology, router, device)

    def changed(self, router: str, shown: str) -> list[str]:
        """What somebody else changed on a router since it was configured, a sentence each, without secrets.

        `shown` is its running configuration now.
        """
        was = (self._running or {}).get(router, "")
        found = unrestored(was, shown, [], self._hardware(router)) if was and shown else []
        return [KNOWN.masked(sentence) for sentence in found]

    def lost(self, router: str, shown: str) -> list[str]:
        """What a router does not have in force any more of what it was configured with, a sentence each.

        `shown` is its running configuration now: what is to be undone is known from it.
        """
        *_, asked = self._state.pushed(router)
        if self._running is not None:
            self._running[router] = shown
        family = self._hardware(router).family
        found = configuration_differences(asked, shown, before=self.before(router), family=family)
        return [KNOWN.masked(sentence) for sentence in found]

    def resume(self) -> None:
        """Take over from a run that ended without having restored: what it pushed is in the state."""
        self._prepared = self._touched = True
        self._running = None

    def restore(self, lines: Path | None, keep: Path | None) -> None:
        """Bring every router back to its configuration from before the run; nothing where nothing was pushed.

        The lines for that are also written to the folder `lines`, without secrets; Ansible's output goes to `keep`.
        Raises `RouterError` when a router is not back.
        """
        known = [*(f"{name}.before.ios" for name in self._ios), *(f"{name}.before.json" for name in self._linux)]
        if not self._touched or not all((self._before / name).exists() for name in known):
            # Nothing was pushed: `prepare` comes before `apply`.
            if self._guard is not None:
                self._guard.disarm()
            return
        folder = self._write_undo(lines)
        try:
            self._session.carry_out(["restore"], restore=folder, keep=keep)
        except LabDied:
            raise
        except PassingFault as error:
            self._restore_again(lines, keep, error)
        if self._guard is not None:
            self._guard.disarm()
        self._state.forget_pushed()
        self._touched, self._running = False, {}

    def _restore_again(self, lines: Path | None, keep: Path | None, why: PassingFault) -> None:
        """Once more, by new connections: what died may have been the process that had the old ones.

        What arrived the first time is not known. `why` is raised where nobody answers.
        """
        self._session.hang_up()
        self._running = None
        try:
            folder = self._write_undo(lines)
        except DeviceError:
            raise why from None
        self._session.carry_out(["restore"], restore=folder, keep=keep)

    def _write_undo(self, shown: Path | None) -> Path:
        """Write the lines that undo what was pushed, and return their folder; without secrets they go to `shown`.

        They are not on the run folder's disk, since that may be full.
        """
        if self._running is None:
            self._running = self._read_back()
        folder = self._before / "restore"
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for router in self._ios:
                pushed = self._state.pushed(router)
                found = restoration(self.before(router), self._running[router], pushed, self._hardware(router))
                if found.lines:
                    (folder / f"{router}.pushed.ios").write_text("".join(pushed), encoding="utf-8")
                    (folder / f"{router}.restore.ios").write_text("\n".join(found.lines) + "\n", encoding="utf-8")
                self._tell_of_others(router, found.left)
        if shown is not None:
            with writing(shown):
                shown.mkdir(parents=True, exist_ok=True)
                for file in folder.iterdir():
                    (shown / file.name).write_text(KNOWN.masked(file.read_text(encoding="utf-8")), encoding="utf-8")
        return folder

    def _tell_of_others(self, router: str, left: Sequence[str]) -> None:
        new = [sentence for sentence in left if f"{router} {sentence}" not in self._noted]
        self._noted.update(f"{router} {sentence}" for sentence in new)
        if new:
            told = KNOWN.masked("\n".join(f"  {sentence}" for sentence in new))
            self._note(f"{router}: somebody changed its configuration during the run; this is left as it is:\n{told}")

    def _read_back(self) -> dict[str, str]:
        """The running configurations now, whatever they are."""
        try:
            outcome = self._session.carry_out(["verify"], intended=self._before)
        except RouterError as error:
            outcome = error.outcome
        running = {router: outcome.answers(router).get("show running-config", "") for router in self._ios}
        silent = [router for router, text in running.items() if not text]
        if silent:
            raise DeviceError(
                f"{', '.join(silent)}: the running configuration could not be read, so nothing was restored",
                hint=f"The configuration from before the run is in {self._before}.",
            )
        return running
