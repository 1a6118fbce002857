"""Preflight checks, before the first packet: whether the nodes of an inventory match the experiment.

A check is a function from `Facts` to its findings, and a line in `LOOKS`. It sends no requests: any additional data for
it becomes a field of `facts`, which `gather` fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qoslab.errors import UserError
from qoslab.run.real.preflight.addresses import addresses
from qoslab.run.real.preflight.cabling import cabling
from qoslab.run.real.preflight.duplicate_devices import twice
from qoslab.run.real.preflight.existing_configuration import configuration
from qoslab.run.real.preflight.facts import Facts, Found
from qoslab.run.real.preflight.host_needs import clocks, disk, programs, rights
from qoslab.run.real.preflight.idle_links import at_rest
from qoslab.run.real.preflight.link_state import damage, ports
from qoslab.run.real.preflight.linux_routers import linux_routers
from qoslab.run.real.preflight.management import management
from qoslab.run.real.preflight.rollback_timer import rollback
from qoslab.run.real.preflight.router_models import devices, interfaces
from qoslab.run.real.preflight.tcp_settings import tcp

Look = Callable[[Facts], Iterable[Found]]

LOOKS: tuple[Look, ...] = (
    twice,
    rights,
    linux_routers,
    devices,
    interfaces,
    addresses,
    configuration,
    rollback,
    ports,
    cabling,
    management,
    at_rest,
    damage,
    tcp,
    programs,
    disk,
    clocks,
)


def look(facts: Facts) -> list[Found]:
    """Return the findings of all checks: reasons against a run, and notes."""
    return [found for each in LOOKS for found in each(facts)]


def refusal(found: Iterable[Found]) -> UserError | None:
    """Return the error that refuses a run; None without a grave finding."""
    grave = [str(each) for each in found if each.grave]
    return UserError("\n".join(grave)) if grave else None
