"""Routers of one lab: the configurations that Ansible pushed to them, and their restoration."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from qoslab.errors import DeviceError, ExperimentError, UserError
from qoslab.ios.device_config.interface_names import IDENTITY_NAMES, InterfaceNames
from qoslab.ios.parse import parse_config
from qoslab.model.experiment import Topology
from qoslab.model.units import Duration
from qoslab.platforms import has_kernel, node_platform, router_names, tc_command_nodes
from qoslab.platforms.base import COMMAND_LINE, CONTROL_SOCKET, TC_COMMANDS
from qoslab.platforms.kernel_router import kernel_config
from qoslab.platforms.startup import accepts_tc_commands, data_plane_config, router_hardware
from qoslab.results import Cell
from qoslab.results.file_access import convert_write_errors
from qoslab.results.redaction import KNOWN
from qoslab.run.devices.ansible.intents import Intent
from qoslab.run.devices.ansible.playbooks import AnsibleSession, PlaybookOutcome, RouterError
from qoslab.run.devices.drivers import CommandLineRouter, ControlSocketRouter, RouterDriver, TcRouter
from qoslab.run.devices.state import RestoreState
from qoslab.run.faults import LabDiedFault, TransientFault
from qoslab.system import program_formats
from qoslab.tc.commands import is_tc
from qoslab.tc.commands.router_template import apply_template


class Base(Protocol):
    """Function that returns the configuration of a router without the experiment's."""

    def __call__(self, router: str) -> str:
        """Return its text."""


class RollbackGuard(Protocol):
    """Rollback of the routers' configurations if this run is interrupted."""

    def arm(self, traffic: Duration) -> None:
        """Start or restart the timer of a cell before lines are sent; `traffic` is the traffic time."""

    def disarm(self) -> None:
        """Stop the timer, because the routers are restored."""


class PushedRouters:
    """All routers of a lab under the control of Ansible.

    `configure` undoes the configuration of an earlier cell, pushes and verifies, in one order to Ansible; `restore`
    restores every router's configuration from before the run.
    """

    def __init__(
        self,
        topology: Topology,
        session: AnsibleSession,
        state: RestoreState,
        base: Base,
        note: Callable[[str], None],
        guard: RollbackGuard | None = None,
        names: Mapping[str, InterfaceNames] = MappingProxyType({}),
        *,
        makes_lines: bool = True,
    ) -> None:
        """`state` is the session's folder for the configurations from before the run.

        `base` returns an engine router's configuration without the experiment's; `note` receives changes by other users
        on a router, which are left in place. `names` are the routers' own names for the experiment's interfaces:
        everything sent to, read from and undone on a router uses them; the stored data of the experiment uses the
        experiment's names. `makes_lines` is true for a lab that gives interfaces of Linux routers their line rate.
        """
        self._topology = topology
        self._makes_lines = makes_lines
        self._session = session
        self._guard = guard
        self._before = state.folder
        self._state = state
        self._base = base
        self.command_lines = {
            router: CommandLineRouter(router, topology, names.get(router, IDENTITY_NAMES), state)
            for router in router_names(topology)
            if node_platform(topology.nodes[router]).access == COMMAND_LINE
        }
        """Routers with a command line."""
        sockets = {
            router: self._control_socket_driver(router)
            for router in router_names(topology)
            if node_platform(topology.nodes[router]).access in (CONTROL_SOCKET, TC_COMMANDS)
        }
        self._drivers: dict[str, RouterDriver] = {**self.command_lines, **sockets}
        for router in router_names(topology):
            if router not in self._drivers:
                platform = node_platform(topology.nodes[router])
                raise ExperimentError(
                    f"{router}: no method configures a router of platform {platform.name}, "
                    f"which is reached by {platform.access.name}",
                    hint=f"Its access method must be {COMMAND_LINE.name}, {CONTROL_SOCKET.name} or {TC_COMMANDS.name}.",
                )
        self._prepared = False
        self._touched = False
        """True if lines may have been pushed that are not undone yet."""
        self._known = True
        """True if the active part of the pushed configuration is known."""
        self._note = note
        self._noted: set[str] = set()

    def _control_socket_driver(self, router: str) -> ControlSocketRouter:
        """Return the driver of a router with a control socket, with the compiler of its language."""
        if router in tc_command_nodes(self._topology):
            return TcRouter(router, partial(self.kernel_configuration, router), self._state)
        return ControlSocketRouter(
            router, partial(self.compile_configuration, router, source=f"{router}.ios"), self._state
        )

    def kernel_configuration(self, router: str, text: str) -> Mapping[str, Any]:
        """Return the configuration of `qoslab.tc.daemon` for a router with this template."""
        made = kernel_config(self._topology, router, text, lab=self._makes_lines)
        if made.refused_actions:
            lines = "\n".join(
                f"  {router}.ios line {each.line}: {each.note.action}: {each.note.text}"
                for each in made.refused_actions
            )
            raise UserError(
                f"{router}: found actions that the Linux kernel cannot carry out\n{lines}",
                hint="Remove these actions, or use the platform engine.",
            )
        return made.as_config()

    def configure(
        self, cell: Cell, texts: Mapping[str, str], commands: Sequence[str], *, traffic: Duration
    ) -> PlaybookOutcome:
        """Activate the configuration of a cell and verify it. `texts` are IOS configurations by router.

        `commands` are show commands with answers that verify returns, `traffic` is the traffic time of the cell. Raise
        `RouterError` with the device's own message; the caller then restores.
        """
        intended = self._before / "intended"
        with convert_write_errors(intended):
            shutil.rmtree(intended, ignore_errors=True)
            intended.mkdir(parents=True)
            for router, driver in self._drivers.items():
                driver.write_intent(cell, intended, texts.get(router))
        for router, text in texts.items():
            node = self._topology.nodes[router]
            in_tc = has_kernel(node) and (node_platform(node).translation is not None or is_tc(text))
            suffix = "tc" if in_tc else "ios"
            cell.write(cell.configuration(f"{router}.{suffix}"), text)
        if not self._prepared:
            self._session.execute(["prepare"], keep=cell.path / "ansible")
            self._prepared = True
        self._refuse_collisions()
        intents: list[Intent] = []
        restore = None
        if self._touched:
            restore, needed = self._write_undo(cell.path / "restore")
            if needed:
                intents.append("restore")
        intents += ["apply", "verify"]
        if self._guard is not None:
            self._guard.arm(traffic)
        for driver in self._drivers.values():
            driver.record_push()
        self._touched, self._known = True, False
        outcome = self._session.execute(
            intents, intended=intended, restore=restore, commands=commands, keep=cell.path / "ansible"
        )
        self._known = True
        for router, driver in self._drivers.items():
            driver.record_pushed(cell, outcome.answers(router), restored=restore is not None)
        return outcome

    def _refuse_collisions(self) -> None:
        """Refuse, before the first line is sent, a configuration that would overwrite parts of the routers' own."""
        for router, driver in self._drivers.items():
            found = driver.collisions()
            if found:
                raise UserError(
                    f"{router} was not changed, because the experiment would overwrite part of its configuration:\n"
                    + "\n".join(f"  {sentence}" for sentence in found),
                    hint="Rename it in the experiment's template, or remove it from the router.",
                )

    def compile_configuration(self, router: str, text: str, *, source: str) -> program_formats.RouterConfig:
        """Return the data plane's configuration for a router with this configuration on top of its own."""
        device = parse_config(self._base(router), router_hardware(self._topology, router), source=f"{router}: base")
        apply_template(device, text, source=source, tc=accepts_tc_commands(self._topology, router))
        return data_plane_config(self._topology, router, device)

    def resume(self) -> None:
        """Take over from a run that ended without restoring; its pushed configurations are in the state."""
        self._prepared = self._touched = True
        self._known = False

    def restore(self, lines: Path | None, keep: Path | None) -> None:
        """Restore every router's configuration from before the run; do nothing if nothing was pushed.

        The lines for that are also written to the folder `lines`, without secrets; Ansible's output goes to `keep`.
        Raise `RouterError` if a router is not restored.
        """
        if not self._touched or not all(driver.is_saved for driver in self._drivers.values()):
            # Nothing was pushed: `prepare` precedes `apply`.
            if self._guard is not None:
                self._guard.disarm()
            return
        folder, _ = self._write_undo(lines)
        try:
            self._session.execute(["restore"], restore=folder, keep=keep)
        except LabDiedFault:
            raise
        except TransientFault as error:
            self._restore_again(lines, keep, error)
        if self._guard is not None:
            self._guard.disarm()
        self._state.forget_pushes()
        self._touched, self._known = False, True

    def _restore_again(self, lines: Path | None, keep: Path | None, why: TransientFault) -> None:
        """Restore again over new connections, since the process with the old ones may have died.

        It is not known which lines of the first attempt arrived. Raise `why` if no router answers.
        """
        self._session.close_connections()
        self._known = False
        try:
            folder, _ = self._write_undo(lines)
        except DeviceError:
            raise why from None
        self._session.execute(["restore"], restore=folder, keep=keep)

    def _write_undo(self, shown: Path | None) -> tuple[Path, bool]:
        """Write the lines that undo the pushed configuration; return their folder, and whether a router needs them.

        Without secrets, they also go to `shown`. The folder is not on the disk of the run folder, which may be full.
        """
        if not self._known:
            self._read_back()
        folder = self._before / "restore"
        needed = False
        with convert_write_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for router, driver in self._drivers.items():
                undo = driver.write_undo(folder)
                needed |= undo.needed
                self._warn_of_foreign_changes(router, undo.left)
        if shown is not None:
            with convert_write_errors(shown):
                shown.mkdir(parents=True, exist_ok=True)
                for file in folder.iterdir():
                    (shown / file.name).write_text(KNOWN.mask(file.read_text(encoding="utf-8")), encoding="utf-8")
        return folder, needed

    def _warn_of_foreign_changes(self, router: str, left: Sequence[str]) -> None:
        new = [sentence for sentence in left if f"{router} {sentence}" not in self._noted]
        self._noted.update(f"{router} {sentence}" for sentence in new)
        if new:
            changed = KNOWN.mask("\n".join(f"  {sentence}" for sentence in new))
            self._note(f"{router}: another user changed its configuration during the run; left unchanged:\n{changed}")

    def _read_back(self) -> None:
        """Read the active configuration of the routers."""
        try:
            outcome = self._session.execute(["verify"], intended=self._before)
        except RouterError as error:
            outcome = error.outcome
        silent = [name for name, driver in self._drivers.items() if not driver.record_restored(outcome.answers(name))]
        if silent:
            raise DeviceError(
                f"{', '.join(silent)}: the running configuration could not be read, so nothing was restored",
                hint=f"The configuration from before the run is in {self._before}.",
            )
        self._known = True
