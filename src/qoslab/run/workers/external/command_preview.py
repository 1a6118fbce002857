"""Preview of the lines and commands that a run sends to each router, in order, and of the rollback, without access.

The lines that undo a configuration depend on the router's own one. The preview assumes a router with the required
addresses and routes of the experiment, and with nothing that conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from qoslab.errors import UserError
from qoslab.ios import running_config
from qoslab.ios.device_config.interface_names import InterfaceNames
from qoslab.ios.device_config.restore import plan_restoration
from qoslab.ios.parse import apply_config, parse_config
from qoslab.model.experiment import Experiment, Topology, probe_number
from qoslab.model.instants import traffic_time
from qoslab.model.inventory import LinuxRouterSettings, RollbackMethod, RouterSettings
from qoslab.plan import Plan
from qoslab.platforms import command_line_nodes, tc_command_nodes
from qoslab.platforms.kernel_router import kernel_config
from qoslab.platforms.startup import startup_config
from qoslab.run.cell.periodic_show import reading_commands
from qoslab.run.cell.probes.ios_router import schedule_line, stop_line
from qoslab.run.devices.ansible_inventory import read_lab
from qoslab.run.devices.drivers import hardware_with_own_names
from qoslab.run.real.access.rollback_methods import ROLLBACK_METHODS
from qoslab.run.real.access.rollback_timer import methods_to_try, timer_limit_problem, timer_minutes
from qoslab.run.real.access.run_lock import UNLOCK_LINES, lock_lines
from qoslab.run.task import CellTask, make_task
from qoslab.run.workers.external.worker import run_owner
from qoslab.run.workers.measured import VERIFY_COMMANDS
from qoslab.schema.inventory import inventory_obstacles
from qoslab.tc.command_difference import command_difference
from qoslab.tc.commands.kernel_commands import replace_interfaces

LOGIN = {"user": "lab", "password": "unused", "enable": "unused"}
"""Placeholder login in the assumed configuration of the router; it is never sent."""
CONFIGURE, END = "configure terminal", "end"


def preview_commands(place: str, plan: Plan) -> Iterator[str]:
    """See `Machinery.sent`."""
    inventory = read_lab(Path(place))
    if missing := inventory_obstacles(plan.experiment, inventory.nodes, inventory.file):
        raise UserError("\n".join(map(str, missing)))
    yield from sent_lines(plan, inventory.nodes.routers)
    yield from sent_commands(plan, inventory.nodes.linux_routers)


def _plan_tasks(plan: Plan) -> list[tuple[str, CellTask]]:
    return [(f"cell {index}: {cell.name}", make_task(cell, {})) for index, cell in enumerate(plan.cells, 1)]


def sent_lines(plan: Plan, settings: Mapping[str, RouterSettings]) -> Iterator[str]:
    """Yield the lines, using the inventory's settings of each router; one block of lines per router."""
    routers = command_line_nodes(plan.experiment.topology)
    tasks = _plan_tasks(plan) if routers else []
    for router in routers:
        yield ""
        yield from _RouterPreview(router, settings[router]).preview_lines(tasks)


def sent_commands(plan: Plan, settings: Mapping[str, LinuxRouterSettings]) -> Iterator[str]:
    """Yield the commands for each Linux router in the same way, as differences of the cells' configurations."""
    routers = tc_command_nodes(plan.experiment.topology)
    tasks = _plan_tasks(plan) if routers else []
    for router in routers:
        yield from ("", f"commands of tc on {router}, in order, tried in a separate network namespace first")
        before: list[list[str]] = []
        for title, task in tasks:
            topology = task.experiment.topology
            devices = {
                near.interface: settings[router].device(near.interface) for _, near, _ in topology.node_links(router)
            }
            made = kernel_config(topology, router, task.configurations.get(router, ""), lab=False)
            wanted = [replace_interfaces(each.words, devices) for each in made.commands]
            steps = command_difference(before, wanted)
            yield f"  {title}" + ("" if steps is not None else ", after the removal of all qdiscs")
            yield from (f"    {' '.join(each)}" for each in (wanted if steps is None else steps))
            before = wanted
        yield from ("  at the end, also if the connection ends", "    qdisc del, for existing qdiscs only")


class _RouterPreview:
    """Preview of one router."""

    def __init__(self, name: str, settings: RouterSettings) -> None:
        self._name = name
        self._settings = settings
        self._names = InterfaceNames(settings.interfaces)
        self._ways: list[RollbackMethod] = []
        """Rollback methods with a time limit that covers the longest cell."""

    def preview_lines(self, tasks: Sequence[tuple[str, CellTask]]) -> Iterator[str]:
        longest = max(self._task_minutes(task) for _, task in tasks)
        against = {
            way: timer_limit_problem(way, longest) for way in methods_to_try(self._settings.rollback) if way != "none"
        }
        self._ways = [way for way, reason in against.items() if not reason]
        yield f"lines sent to {self._name}, in order, without show commands"
        yield from (f"  rollback timer: {way} is not used: {reason}" for way, reason in against.items() if reason)
        # A cell with other links is another lab: the earlier configuration is restored first.
        for _, group in groupby(tasks, lambda each: each[1].experiment.topology.model_dump_json()):
            yield from self._lab_tasks(list(group))
        yield "  show commands (they change nothing)"
        yield from (f"    {line}" for line in self._cell_show_commands([task.experiment for _, task in tasks]))

    def _lab_tasks(self, tasks: Sequence[tuple[str, CellTask]]) -> Iterator[str]:
        first = tasks[0][1].experiment
        yield from self._rollback(self._task_minutes(tasks[0][1]))
        yield "  the run lock, until the end of the run"
        yield from self._indent_lines(lock_lines(run_owner(first, since="…")))
        before = ""
        for number, (title, task) in enumerate(tasks):
            yield f"  {title}"
            if number:
                minutes = self._task_minutes(task)
                yield from self._add_rollback_lines(
                    {way: ROLLBACK_METHODS[way].restart_lines(minutes, number) for way in self._ways}
                )
                yield from self._indent_lines(self._undo(first.topology, before))
            text = self._names.to_device(task.configurations.get(self._name, ""))
            yield from self._indent_lines(_typed_lines(text.splitlines()))
            yield from self._probe_lines(task.experiment)
            before = text
        yield "  at the end"
        yield from self._indent_lines(self._undo(first.topology, before))
        yield from self._add_rollback_lines({way: ROLLBACK_METHODS[way].stop() for way in self._ways})
        yield from self._indent_lines(UNLOCK_LINES)

    def _task_minutes(self, task: CellTask) -> int:
        return timer_minutes(self._settings, traffic_time(task.experiment, task.arm))

    def _rollback(self, minutes: int) -> Iterator[str]:
        if not self._ways and self._settings.rollback != "none":
            yield "  rollback timer: no method allows enough time, so a run is refused"
            return
        if not self._ways:
            yield "  rollback timer: none (inventory); if the run is killed, restore with `qoslab lab rescue`"
            return
        first = ", the first that the router supports" if len(self._ways) > 1 else ""
        yield f"  rollback timer: {minutes} min after contact with this machine is lost{first}"
        for way in self._ways:
            yield f"    {way}: {ROLLBACK_METHODS[way].effect}"
        yield from self._add_rollback_lines({way: ROLLBACK_METHODS[way].start(minutes) for way in self._ways})

    def _add_rollback_lines(self, lines: Mapping[RollbackMethod, Sequence[str]]) -> Iterator[str]:
        mark = len(lines) > 1
        for way, each in lines.items():
            yield from (f"    {f'[{way}] ' if mark else ''}{line}" for line in each)

    def _undo(self, topology: Topology, pushed: str) -> Sequence[str]:
        """Return the lines that roll a configuration back."""
        hardware = hardware_with_own_names(topology, self._name, self._names)
        device = parse_config(
            self._names.to_device(startup_config(topology, self._name, LOGIN)), hardware, source=f"{self._name}: base"
        )
        was = running_config.render(device)
        apply_config(device, pushed, source=f"{self._name}.ios")
        return _typed_lines(plan_restoration(was, running_config.render(device), [pushed], hardware).lines)

    def _probe_lines(self, experiment: Experiment) -> Iterator[str]:
        numbers = [probe_number(experiment, probe) for probe in experiment.probes if probe.source == self._name]
        for line in (*map(schedule_line, numbers), *map(stop_line, numbers)):
            yield from self._indent_lines((CONFIGURE, line, END))

    def _cell_show_commands(self, experiments: Sequence[Experiment]) -> list[str]:
        """Return the show commands of a cell; the preflight checks use others."""
        found = ["show running-config", *VERIFY_COMMANDS]
        for experiment in experiments:
            found += reading_commands(experiment.topology, self._name)
            found += [each.command for each in experiment.observe if each.node == self._name]
        return list(dict.fromkeys(map(self._names.to_device, found)))

    @staticmethod
    def _indent_lines(lines: Iterable[str]) -> Iterator[str]:
        yield from (f"    {line}" for line in lines)


def _typed_lines(lines: Sequence[str]) -> list[str]:
    """Return configuration lines as they are typed, without comments."""
    typed = [line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("!")]
    return [CONFIGURE, *typed, END] if typed else []
