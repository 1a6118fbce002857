"""Connection to all routers and hosts in parallel, with one error for all devices that refuse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from qoslab.errors import QoslabError, UserError
from qoslab.model.experiment import Experiment
from qoslab.model.inventory import HostSettings
from qoslab.platforms import command_line_nodes, host_names, tc_command_nodes
from qoslab.run.devices.ansible_inventory import LabInventory
from qoslab.run.faults import TransientFault
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.channel import AgentChannel
from qoslab.run.real.external_lab import ExternalLab
from qoslab.run.real.linux_router import LinuxRouter
from qoslab.run.real.nodes import ExternalHost, HostPlace
from qoslab.run.real.preflight import refusal_error, run_checks
from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding
from qoslab.run.real.preflight.gather import FactCollector
from qoslab.run.real.preflight.locks import check_locks
from qoslab.run.threads import ignore_check, run_parallel, start_thread, wait_for_result


def combined_error(errors: Sequence[QoslabError]) -> QoslabError:
    """Return one error for all; a passing fault if all of them are."""
    if len(errors) == 1:
        return errors[0]
    hint = " ".join(dict.fromkeys(error.hint for error in errors if error.hint))
    kind = TransientFault if all(isinstance(error, TransientFault) for error in errors) else UserError
    return kind("\n".join(error.message for error in errors), hint=hint)


def reach_hosts(
    inventory: LabInventory,
    experiment: Experiment,
    who: str,
    proxies: AccessProxies | None = None,
    check: Callable[[], None] = ignore_check,
) -> ExternalLab:
    """Start an agent on each host and Linux router of the experiment and log in to other routers, without changes.

    If one cannot be reached, all are disconnected. `check` ends the wait by raising.
    """
    topology, nodes = experiment.topology, inventory.nodes
    names, linux = host_names(topology), tc_command_nodes(topology)
    settings = {name: nodes.hosts[name] for name in names}
    # Addresses and routes of a Linux router are compared, like those of a host that stays as it is.
    settings |= {name: HostSettings(**asdict(nodes.linux_routers[name])) for name in linux}
    access = {**inventory.hosts, **inventory.linux_routers}
    fixed_ports = any(flow.client_port for arm in experiment.arms for flow in experiment.arm_flows(arm))

    def begin(name: str) -> ExternalHost:
        kind = LinuxRouter if name in linux else ExternalHost
        return kind(AgentChannel(name, access[name], who), HostPlace(topology, name, settings[name], fixed_ports))

    def open_proxies() -> None:
        if proxies is not None:
            proxies.open()

    opening = start_thread(functools.partial(run_parallel, {"routers": open_proxies}))
    machines, errors = run_parallel({name: functools.partial(begin, name) for name in (*names, *linux)}, check)
    errors = [*wait_for_result(opening, check)[1], *errors]
    show_every = {name: nodes.routers[name].show_every for name in command_line_nodes(topology)}
    linux_routers = {name: each for name, each in machines.items() if isinstance(each, LinuxRouter)}
    hosts = {name: each for name, each in machines.items() if name not in linux_routers}
    lab = ExternalLab(hosts, settings, show_every, linux_routers)
    if errors:
        lab.close()
        raise combined_error(errors)
    if proxies is not None:
        # Otherwise hosts would wait for the current work, up to a minute of Ansible or Genie.
        proxies.on_exit(lab.give_up)
    return lab


def nodes_in_use(lab: ExternalLab, marks: Mapping[str, str]) -> list[PreflightFinding]:
    """Return the nodes in use by other runs, from these hosts and from the routers' run locks."""
    interfaces, errors = run_parallel({name: each.locked_interfaces for name, each in lab.machines.items()})
    if errors:
        raise combined_error(errors)
    return list(check_locks(interfaces, marks))


def isolate_hosts(lab: ExternalLab, note: Callable[[str], None]) -> None:
    """Prepare the interfaces of all hosts and Linux routers."""
    left, errors = run_parallel({name: each.isolate for name, each in lab.machines.items()})
    for name, each in ((name, each) for name, failed in left.items() for each in failed):
        note(f"{name}: a setting left by an earlier run could not be restored: {each}")
    if errors:
        raise combined_error(errors)


@contextmanager
def disconnect_on_failure(lab: ExternalLab) -> Iterator[None]:
    """Disconnect all hosts if the block fails."""
    try:
        yield
    except BaseException:
        lab.close()
        raise


def collect_facts(gathering: FactCollector, note: Callable[[str], None]) -> PreflightFacts:
    """Return the facts. Raise `UserError` with all findings that prevent a run; other findings are noted."""
    facts = gathering.collect()
    found = run_checks(facts)
    if refused := refusal_error(found):
        raise refused
    for each in found:
        note(str(each))
    return facts
