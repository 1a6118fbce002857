"""`qoslab lab check`: all preflight checks of a run, without a run."""

from __future__ import annotations

import getpass
import platform
import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from qoslab.errors import UserError
from qoslab.plan import Plan
from qoslab.platforms import command_line_nodes
from qoslab.run.devices.ansible_inventory import read_lab
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.devices.state import RestoreState
from qoslab.run.real.access.inventory_proxies import access_methods
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.access.run_lock import lock_owner
from qoslab.run.real.connect import nodes_in_use, reach_hosts
from qoslab.run.real.preflight import refusal_error, run_checks
from qoslab.run.real.preflight.cabling import link_proofs
from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding
from qoslab.run.real.preflight.gather import FactCollector
from qoslab.run.real.preflight.idle_links import round_trips
from qoslab.run.task import cell_demands
from qoslab.run.workers.base import LabCheck
from qoslab.schema.inventory import inventory_obstacles


@dataclass(frozen=True)
class CheckResult:
    """Facts and findings of the preflight checks."""

    facts: PreflightFacts | None
    """Facts; None if another run uses some of the nodes, since the rest is not examined then."""
    found: tuple[PreflightFinding, ...]

    @property
    def description(self) -> list[str]:
        """Return the facts in lines: routers, hosts, links."""
        if self.facts is None:
            return []
        lines = [
            f"{name}: {each.model or 'a router'}, release {each.release}" for name, each in self.facts.routers.items()
        ]
        lines += [
            f"{name}: Linux {each.kernel.release}, qdiscs {', '.join(each.kernel.qdiscs)}"
            for name, each in self.facts.hosts.items()
            if each.kernel is not None
        ]
        lines += [
            f"{name}: clock {each.clock_ahead_ms:+.1f} ms (±{each.clock_error_ms:.1f} ms), {each.free >> 20} MiB free"
            for name, each in self.facts.hosts.items()
        ]
        proven = link_proofs(self.facts)
        for link in self.facts.experiment.topology.links:
            trips = round_trips(self.facts, link)
            took = ""
            if trips is not None and trips.took_ms:
                took = f", round trip {trips.median_ms:.1f} ms, {trips.lost_count} of {trips.sent_count} lost"
            lines.append(f"link {link.name}: {proven[link.name]}{took}")
        return lines


def check(place: str, plan: Plan) -> LabCheck:
    """See `Machinery.check`."""
    with CollectorProcess() as collector:  # Takes seconds to start.
        looked = check_lab(Path(place), plan, collector)
    notes = [str(each) for each in looked.found if not each.is_error]
    return LabCheck(looked.description, notes, refusal_error(looked.found))


def check_lab(file: Path, plan: Plan, collector: CollectorProcess) -> CheckResult:
    """Examine all nodes of an inventory for a plan. Raise `UserError` if one cannot be examined.

    `collector` parses output; if it has just been started, it is ready when there is output to parse.
    """
    inventory, experiment = read_lab(file), plan.experiment
    if missing := inventory_obstacles(experiment, inventory.nodes, file):
        raise UserError("\n".join(map(str, missing)))
    routers = {name: inventory.routers[name] for name in command_line_nodes(experiment.topology)}
    ways = access_methods(inventory.file, routers, inventory.nodes.routers)
    with ExitStack() as stack:
        proxies = stack.enter_context(AccessProxies(ways)) if ways else None
        lab = reach_hosts(inventory, experiment, f"a check by {getpass.getuser()} on {platform.node()}", proxies)
        stack.callback(lab.close)
        marks = {} if proxies is None else {name: lock_owner(proxies.ask, name) for name in routers}
        if found := nodes_in_use(lab, marks):
            return CheckResult(None, (*_unrestored_state(file), *found))
        facts = FactCollector(experiment, inventory, lab, proxies, collector, cell_demands(plan.cells)).collect()
    return CheckResult(facts, (*_unrestored_state(file), *run_checks(facts)))


def _unrestored_state(file: Path) -> list[PreflightFinding]:
    state = RestoreState.for_inventory(file)
    about = state.unrestored_owner()
    if about is None:
        return []
    message = f"found the configuration of the run {about.run}, since {about.since}, expected it restored"
    return [
        PreflightFinding(
            "routers", message, f"qoslab lab rescue {shlex.quote(str(file))}, unless the run is in progress"
        )
    ]
