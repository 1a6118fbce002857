"""Worker of cells in the lab of an inventory, one after another."""

from __future__ import annotations

import getpass
import platform
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from qoslab.errors import DeviceError, QoslabError, UserError
from qoslab.ios.device_config.interface_names import InterfaceNames
from qoslab.ios.device_config.restore import VOLATILE
from qoslab.model.experiment import Experiment, Topology
from qoslab.model.inventory import HostSettings, LinuxRouterSettings
from qoslab.platforms import command_line_nodes, host_names, tc_command_nodes
from qoslab.results.changes import RouterChanges, write_changes
from qoslab.results.redaction import KNOWN
from qoslab.run.cell.journal import CellJournal
from qoslab.run.devices.ansible_inventory import EngineAccess, LabInventory, read_lab, write_inventory
from qoslab.run.devices.drivers import SHOW
from qoslab.run.devices.state import RestoreState
from qoslab.run.faults import LabDiedFault
from qoslab.run.provenance import TOOLS
from qoslab.run.real.access.inventory_proxies import access_methods
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.access.rollback_timer import RollbackTimers
from qoslab.run.real.access.run_lock import RunLocks, refuse_locked_routers
from qoslab.run.real.channel import AgentChannel
from qoslab.run.real.connect import (
    collect_facts,
    combined_error,
    disconnect_on_failure,
    isolate_hosts,
    nodes_in_use,
    reach_hosts,
)
from qoslab.run.real.external_lab import ExternalLab
from qoslab.run.real.preflight import refusal_error
from qoslab.run.real.preflight.cabling import has_unchecked_cables
from qoslab.run.real.preflight.check_results import changed_devices, device_identities, link_results
from qoslab.run.real.preflight.facts import PreflightFacts
from qoslab.run.real.preflight.gather import FactCollector
from qoslab.run.task import CellTask
from qoslab.run.threads import run_parallel
from qoslab.run.workers.base import WorkerSlot
from qoslab.run.workers.measured import MeasuredWorker
from qoslab.schema.inventory import inventory_obstacles
from qoslab.system.programs import find_own_program


class ExternalWorker(MeasuredWorker):
    """See `MeasuredWorker`. The lab is kept while consecutive cells have the same topology."""

    makes_lines = False

    def __init__(self, slot: WorkerSlot) -> None:
        super().__init__(slot)
        self._file = Path(slot.place)
        self._demands = slot.demands
        self._began_in = slot.initial_lab
        self._lab: ExternalLab | None = None
        self._topology: Topology | None = None
        self._proxies: AccessProxies | None = None
        self._times = 0
        """Number of times that the worker connected to the lab."""
        self._left_behind: RestoreState | None = None
        """Data to restore the routers if this process cannot."""
        self._during: dict[str, dict[str, str]] = {}
        """Running configuration of each router in the first cell of each arm, by router and arm."""

    @property
    def lab(self) -> ExternalLab | None:
        """See `MeasuredWorker`."""
        return self._lab

    def can_run(self, experiment: Experiment) -> bool:
        """See `MeasuredWorker`."""
        return self._lab is not None and self._topology == experiment.topology and not self._lab.describe_death()

    def start(self, experiment: Experiment) -> None:
        """Connect to all nodes of the experiment; the nodes of an earlier lab are restored first."""
        self._leave()
        inventory = read_lab(self._file)
        findings = inventory_obstacles(experiment, inventory.nodes, self._file)
        if findings:
            raise UserError("\n".join(map(str, findings)))
        # State left by another run must be restored first, and no other run can start in between.
        state = RestoreState.for_inventory(self._file)
        state.begin(inventory=self._file, run=self._restored.parent, topology=experiment.topology)
        self._left_behind = state
        self._times += 1
        try:
            self._tell(self._label, "reach the lab")
            self._shared.get()  # The collector parses router output and takes seconds to start.
            # Closed last: the routers are restored through their access proxies.
            proxies = self._open_proxies(inventory, experiment)
            self._enter(experiment, state.folder)
            who = run_owner(experiment)
            lab = reach_hosts(inventory, experiment, who, proxies, self._check_user)
            with disconnect_on_failure(lab):
                if proxies is not None:
                    refuse_locked_routers(proxies.ask, command_line_nodes(experiment.topology))
                if refused := refusal_error(nodes_in_use(lab, {})):
                    raise refused
                collector = self._shared.get()
                gathering = FactCollector(
                    experiment, inventory, lab, proxies, collector, self._demands, self._check_user
                )
                facts = self._make_ready(gathering)
                self._reach_routers(inventory, lab, experiment, proxies, who)
            self._lab = lab
            self._topology = experiment.topology
        except BaseException:
            self._leave()
            raise
        self.lab_description = self.lab_description or {
            "inventory": str(self._file),
            "hosts": lab.lab_description,
            "devices": device_identities(facts),
            "links": link_results(facts),
        }
        self._tell(self._label, "")

    def _make_ready(self, gathering: FactCollector) -> PreflightFacts:
        """Check before any change; then prepare the interfaces, and examine those that were down."""
        self._tell(self._label, "preflight checks")
        facts = collect_facts(gathering, self._note)
        if another := changed_devices(self._began_in.get("devices", {}), device_identities(facts)):
            hint = "Results of two labs cannot be mixed: start a new run, without --resume."
            raise UserError("\n".join(another), hint=hint)
        isolate_hosts(gathering.lab, self._note)
        return collect_facts(gathering, lambda _: None) if has_unchecked_cables(facts) else facts

    def _open_proxies(self, inventory: LabInventory, experiment: Experiment) -> AccessProxies | None:
        """Open proxies to the routers with a command line; None if there are none."""
        routers = {name: inventory.routers[name] for name in command_line_nodes(experiment.topology)}
        ways = access_methods(inventory.file, routers, inventory.nodes.routers)
        if not ways:
            return None
        transcripts = self._restored.parent / "transcripts" / f"{self._number}-{self._times}"
        self._proxies = self._exit.enter_context(
            AccessProxies(ways, transcripts=transcripts, note=self._note, check=self._check_user)
        )
        return self._proxies

    def _reach_routers(
        self, inventory: LabInventory, lab: ExternalLab, experiment: Experiment, proxies: AccessProxies | None, who: str
    ) -> None:
        """Connect Ansible and the observer to the routers: through access proxies for those with a command line, by
        control sockets of this process for Linux routers.
        """
        sockets = lab.serve(self._scratch)
        program = str(find_own_program("qos-router")) if sockets else ""
        served = {name: EngineAccess(str(socket), program) for name, socket in sockets.items()}
        if proxies is None:
            write_inventory(self._scratch / "inventory.json", served, lab=False)
            self._set_routers(experiment)
            return
        routers = command_line_nodes(experiment.topology)
        proxied = proxies.access({name: inventory.routers[name].group for name in routers})
        self._session.raise_time_limit(proxied.values())
        write_inventory(self._scratch / "inventory.json", {**served, **proxied}, lab=False)
        self._shared.connect(proxied, known_hosts=proxies.known_hosts(), lab=str(self._number))
        settings = {name: inventory.nodes.routers[name] for name in proxied}
        rollback = RollbackTimers(proxies.ask, settings, self._demands.longest, self._state.save_countdowns)
        self._names = {name: InterfaceNames(each.interfaces) for name, each in settings.items()}
        self._set_routers(experiment, RunLocks(rollback, proxies.ask, proxied, who, self._state.save_run_locks))

    def _check(self) -> None:
        """See `MeasuredWorker`. Ansible would wait half a minute for an answer, also while it restores."""
        super()._check()
        if self._proxies is not None and self._proxies.gone:
            raise LabDiedFault(self._proxies.gone)

    def _record_lab_notes(self, task: CellTask, journal: CellJournal) -> None:
        """Record changes of routers by other users; a cell is invalid if a router lost its configuration."""
        for router in () if self._lab is None else self._lab.changed_routers():
            journal.record_invalid(f"another user changed the qdiscs of {router} during this cell")
        for router, driver in self._routers.command_lines.items():
            shown = self._show(router, SHOW).raw
            self._during.setdefault(router, {}).setdefault(task.identity.arm, shown)
            found = driver.foreign_changes(shown)
            if found:
                listed = "; ".join(found)
                journal.warn(f"another user changed the configuration of {router} during this cell: {listed}")
            if lost := driver.lost_configuration(shown):
                journal.record_invalid(f"{router} has lost its configuration during this cell: {'; '.join(lost)}")

    def _leave(self) -> None:
        super()._leave()
        self._proxies = None
        self._forget_state()

    def _end_lab(self) -> None:
        """Restore the routers in any case; then release the hosts."""
        lab, self._lab = self._lab, None
        self._topology = None
        if lab is None:
            return
        folder = self._restored / f"{self._number}-{self._times}"
        try:
            self._tell(self._label, "restore the routers")
            self._routers.restore(None, folder)
        except BaseException as error:
            # The state for restoring them is kept, also for other processes.
            state, self._left_behind = self._left_behind, None
            if state is not None:
                state.release()
                again = shlex.join(["qoslab", "lab", "rescue", str(self._file)])
                self._note(f"routers may not be restored; try again: {again}")
            self._compare(folder, why=str(error) or type(error).__name__)
            raise
        else:
            self._compare(folder)
        finally:
            self._tell(self._label, "restore the hosts")
            for each in lab.close():
                self._note(f"could not be restored on {each}")
            self._tell(self._label, "")

    def _compare(self, folder: Path, why: str = "") -> None:
        """Record the changes on the routers; with a reason `why`, they are not restored."""
        during, self._during = self._during, {}
        try:
            changes = {router: self._record_changes(router, arms, why) for router, arms in during.items()}
            if changes:
                write_changes(folder, changes)
        except QoslabError as error:
            # That does not affect the restoration.
            self._note(f"the changes on routers are not in the report: {error.message}")

    def _record_changes(self, router: str, arms: Mapping[str, str], why: str) -> RouterChanges:
        before = self._routers.command_lines[router].configuration_before
        # `lab rescue` will report on routers that are not restored.
        left = None if why else self._state_difference(before, self._show(router, SHOW).raw)
        listed = {arm: self._state_difference(before, text) for arm, text in arms.items()}
        return RouterChanges(arms=listed, left=left, why=KNOWN.mask(why))

    def _state_difference(self, before: str, after: str) -> tuple[str, ...]:
        found = self._shared.get().difference(before, after, VOLATILE)
        return tuple(KNOWN.mask("\n".join(found)).splitlines())

    def _forget_state(self) -> None:
        """Remove the state, because everything is restored."""
        state, self._left_behind = self._left_behind, None
        if state is not None:
            state.remove()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        self._forget_state()


def run_owner(experiment: Experiment, since: str = "") -> str:
    """Return the owner of a run, for other users of the same interfaces; `since` is the current time if empty."""
    since = since or datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"the run of {experiment.name} by {getpass.getuser()} on {platform.node()}, since {since}"


def host_versions(place: str, experiment: Experiment) -> Mapping[str, str]:
    """Return the versions of the measuring programs on the experiment's hosts.

    Raise `UserError` if a host is missing, or another run is in progress: a run calls this first.
    """
    RestoreState.for_inventory(Path(place)).refuse_in_use(Path(place))
    inventory = read_lab(Path(place))
    findings = inventory_obstacles(experiment, inventory.nodes, inventory.file)
    if findings:
        raise UserError("\n".join(map(str, findings)))

    topology, nodes = experiment.topology, inventory.nodes
    access = {**inventory.hosts, **inventory.linux_routers}
    settings: Mapping[str, HostSettings | LinuxRouterSettings] = {**nodes.hosts, **nodes.linux_routers}

    def ask(name: str) -> Mapping[str, str | None]:
        channel = AgentChannel(name, access[name], run_owner(experiment))
        try:
            devices = [settings[name].device(near.interface) for _, near, _ in topology.node_links(name)]
            for device, who in channel.ask("held", devices=devices)["held"].items():
                raise UserError(f"{name}: {device} is locked by {who}", hint="Wait until it ends, or stop it.")
            found: Mapping[str, str | None] = channel.ask("versions", names=list(TOOLS))["versions"]
            return found
        finally:
            channel.close()

    machines = (*host_names(topology), *tc_command_nodes(topology))
    found, errors = run_parallel({name: partial(ask, name) for name in machines})
    if errors:
        # If another run has the nodes, the logins need not be waited for.
        away = any(isinstance(each, DeviceError) for each in errors)
        shut_out = _login_errors(inventory, experiment) if away else []
        raise combined_error([*shut_out, *errors])
    return {tool: _combined_version({name: found[name][tool] for name in host_names(topology)}) for tool in TOOLS}


def _login_errors(inventory: LabInventory, experiment: Experiment) -> list[QoslabError]:
    """Return the errors of all routers that refused the login."""
    routers = {name: inventory.routers[name] for name in command_line_nodes(experiment.topology)}
    ways = access_methods(inventory.file, routers, inventory.nodes.routers)
    if not ways:
        return []
    with AccessProxies(ways) as proxies:
        return run_parallel({"routers": proxies.open})[1]


def _combined_version(versions: Mapping[str, str | None]) -> str:
    """Return one version if all hosts have it, else the version of each host."""
    different = {version or "not there" for version in versions.values()}
    if len(different) == 1:
        return different.pop()
    return "; ".join(f"{name}: {version or 'not there'}" for name, version in versions.items())
