"""`shape adaptive` and `shape fecn-adapt` in a class of a policy-map: stored without effect.

They react to the congestion bits of Frame Relay (BECN, FECN), which no interface here has: without such bits a router
shapes at the rate of `shape` alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.inert_lines import InertLine
from qoslab.ios.model.policy import PolicyClass
from qoslab.ios.registry import CLASS_LINES, Layout

ABOUT = "Frame Relay congestion bits, which no frame here carries"


@router_command(
    "policy-class",
    # The range is that of `shape` in the earlier generation [I].
    "shape adaptive <rate:8000-154400000>",
    no="shape adaptive [<rate:8000-154400000>]",
    undo=Undo(key="shape adaptive"),
    help={"shape": "Traffic Shaping", "adaptive": "Enable Traffic Shaping adaptation to BECN", "rate": "Lower bound"},
)
@router_command(
    "policy-class",
    "shape fecn-adapt",
    no="shape fecn-adapt",
    undo=Undo(key="shape fecn-adapt"),
    help={"shape": "Traffic Shaping", "fecn-adapt": "Enable Traffic Shaping reflection of FECN as BECN"},
)
def _configure_shape_adaptive(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    key = "shape adaptive" if "adaptive" in args else "shape fecn-adapt"
    if args.unset:
        change_class(session, replace(present, inert=present.inert.remove_line(key)))
        return
    rate = args.optional("rate", int)
    line = InertLine(key, key if rate is None else f"{key} {rate}", ABOUT, 0)
    change_class(session, replace(present, inert=present.inert.add_line(line)))
    session.remarks.append(line)


@CLASS_LINES.register_family(45, family="router")
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    yield from (layout.queueing + line.text for line in sorted(each.inert, key=lambda line: line.key))
