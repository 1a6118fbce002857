"""Connection to all routers and hosts in parallel, with one error for all devices that refuse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from qoslab.errors import QoslabError, UserError
from qoslab.model.experiment import Experiment
from qoslab.model.inventory import HostSettings
from qoslab.platforms import hosts_of, with_command_line, with_tc_commands
from qoslab.run.devices.ansible_inventory import LabInventory
from qoslab.run.faults import PassingFault
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.channel import Channel
from qoslab.run.real.external_lab import ExternalLab
from qoslab.run.real.linux_router import LinuxRouter
from qoslab.run.real.nodes import ExternalHost, Place
from qoslab.run.real.preflight import look, refusal
from qoslab.run.real.preflight.facts import Facts, Found
from qoslab.run.real.preflight.gather import Gathering
from qoslab.run.real.preflight.locks import held
from qoslab.run.threads import in_thread, result_of, side_by_side, unwatched


def together(errors: Sequence[QoslabError]) -> QoslabError:
    """Return one error for all; a passing fault if all of them are."""
    if len(errors) == 1:
        return errors[0]
    hint = " ".join(dict.fromkeys(error.hint for error in errors if error.hint))
    kind = PassingFault if all(isinstance(error, PassingFault) for error in errors) else UserError
    return kind("\n".join(error.message for error in errors), hint=hint)


def reach_hosts(
    inventory: LabInventory,
    experiment: Experiment,
    who: str,
    proxies: AccessProxies | None = None,
    check: Callable[[], None] = unwatched,
) -> ExternalLab:
    """Start an agent on each host and Linux router of the experiment and log in to other routers, without changes.

    If one cannot be reached, all are disconnected. `check` ends the wait by raising.
    """
    topology, nodes = experiment.topology, inventory.nodes
    names, linux = hosts_of(topology), with_tc_commands(topology)
    settings = {name: nodes.hosts[name] for name in names}
    # Addresses and routes of a Linux router are compared, like those of a host that stays as it is.
    settings |= {name: HostSettings(**asdict(nodes.linux_routers[name])) for name in linux}
    access = {**inventory.hosts, **inventory.linux_routers}

    def begin(name: str) -> ExternalHost:
        kind = LinuxRouter if name in linux else ExternalHost
        return kind(Channel(name, access[name], who), Place(topology, name, settings[name]))

    def open_proxies() -> None:
        if proxies is not None:
            proxies.open()

    opening = in_thread(functools.partial(side_by_side, {"routers": open_proxies}))
    machines, errors = side_by_side({name: functools.partial(begin, name) for name in (*names, *linux)}, check)
    errors = [*result_of(opening, check)[1], *errors]
    show_every = {name: nodes.routers[name].show_every for name in with_command_line(topology)}
    linux_routers = {name: each for name, each in machines.items() if isinstance(each, LinuxRouter)}
    hosts = {name: each for name, each in machines.items() if name not in linux_routers}
    lab = ExternalLab(hosts, settings, show_every, linux_routers)
    if errors:
        lab.close()
        raise together(errors)
    if proxies is not None:
        # Otherwise hosts would wait for the current work, up to a minute of Ansible or Genie.
        proxies.when_gone(lab.give_up)
    return lab


def taken(lab: ExternalLab, marks: Mapping[str, str]) -> list[Found]:
    """Return the nodes in use by other runs, from these hosts and from the routers' run locks."""
    interfaces, errors = side_by_side({name: each.held for name, each in lab.machines.items()})
    if errors:
        raise together(errors)
    return list(held(interfaces, marks))


def isolate(lab: ExternalLab, note: Callable[[str], None]) -> None:
    """Prepare the interfaces of all hosts and Linux routers."""
    left, errors = side_by_side({name: each.isolate for name, each in lab.machines.items()})
    for name, each in ((name, each) for name, failed in left.items() for each in failed):
        note(f"{name}: a setting left by an earlier run could not be restored: {each}")
    if errors:
        raise together(errors)


@contextmanager
def left_on_failure(lab: ExternalLab) -> Iterator[None]:
    """Disconnect all hosts if the block fails."""
    try:
        yield
    except BaseException:
        lab.close()
        raise


def look_around(gathering: Gathering, note: Callable[[str], None]) -> Facts:
    """Return the facts. Raise `UserError` with all findings that prevent a run; other findings are noted."""
    facts = gathering.facts()
    found = look(facts)
    if refused := refusal(found):
        raise refused
    for each in found:
        note(str(each))
    return facts
