"""Looks before the first packet: whether the nodes of an inventory are what the experiment says.

A look is a function from `Facts` to what it has found, and a line in `LOOKS`. It asks nobody: what it needs to know
that no other does is a field of `facts`, which `gather` fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qoslab.errors import UserError
from qoslab.run.labs.external.looks.addresses import addresses
from qoslab.run.labs.external.looks.cabling import cabling
from qoslab.run.labs.external.looks.configuration import configuration
from qoslab.run.labs.external.looks.dead_man import dead_man
from qoslab.run.labs.external.looks.devices import devices, interfaces
from qoslab.run.labs.external.looks.facts import Facts, Found
from qoslab.run.labs.external.looks.hosts import clocks, disk, programs, rights
from qoslab.run.labs.external.looks.management import management
from qoslab.run.labs.external.looks.ports import damage, ports
from qoslab.run.labs.external.looks.rest import at_rest
from qoslab.run.labs.external.looks.tcp import tcp
from qoslab.run.labs.external.looks.twice import twice

Look = Callable[[Facts], Iterable[Found]]

LOOKS: tuple[Look, ...] = (
    twice,
    rights,
    devices,
    interfaces,
    addresses,
    configuration,
    dead_man,
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
    """All that stands against a run, and what is to be noted."""
    return [found for each in LOOKS for found in each(facts)]


def refusal(found: Iterable[Found]) -> UserError | None:
    """Return the error that refuses a run; None without a grave finding."""
    grave = [str(each) for each in found if each.grave]
    return UserError("\n".join(grave)) if grave else None
