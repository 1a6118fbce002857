"""`drop` in a class of a policy-map: every packet of the class is discarded.

The data plane has no action for this; a policer that drops conforming and exceeding packets is used instead. It is
recognised by its burst: no command accepts a burst in milliseconds with a rate in bits per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import PolicyClass
from qoslab.ios.registry import CLASS_LINES, CLASS_RULES, ENGINE_CLASS, Layout
from qoslab.system import program_formats

# The configuration guide says that it cannot be combined with another action; the wording is modelled on IOS [I].
ALONE = "drop can not be configured in a class with other actions"

BURST: program_formats.PoliceBurst = {"ms": 1000}
DISCARD: program_formats.PoliceConfig = {
    "form": "cir",
    "cir": {"bps": 8000},
    "bc": BURST,
    "conform": [{"action": "drop"}],
    "exceed": [{"action": "drop"}],
}
"""The policer that drops all packets."""


@router_command("policy-class", "drop", no=True, help={"drop": "Drop all packets"})
def _configure_drop(session: ConfigSession, args: Args) -> None:
    change_class(session, replace(session.policy_class, drop=not args.unset))


@CLASS_LINES.register_family(25, family="router")
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.drop:
        yield "  drop"


@CLASS_RULES.register_family(60, family="router")
def _check(device: Device, each: PolicyClass) -> None:
    if each.drop and replace(each, drop=False) != PolicyClass(each.name):
        raise RejectedError(ALONE)


@ENGINE_CLASS.register_family(25, family="router")
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    return {"police": DISCARD} if each.drop else {}


def represents_drop(police: program_formats.PoliceConfig | None) -> bool:
    """Return whether a policer of the data plane represents `drop`."""
    return police is not None and police.get("bc") == BURST
