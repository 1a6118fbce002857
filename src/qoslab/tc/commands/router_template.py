"""Templates of routers: IOS lines, or tc commands on a router without a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.ios.parse import ConfigRemark, apply_config
from qoslab.tc.commands.command_parser import is_tc, parse
from qoslab.tc.commands.tree_compiler import compile_commands

if TYPE_CHECKING:
    from qoslab.ios.model.device import Device


def apply_template(device: Device, text: str, *, tc: bool, source: str = "configuration") -> list[ConfigRemark]:
    """Apply a rendered template to `device`; return the inert lines.

    Text that begins with `tc` is parsed as tc commands if the argument `tc` is true. Raise `IosError` naming `source`
    and line.
    """
    if not (tc and is_tc(text)):
        return apply_config(device, text, source=source)
    compiled = compile_commands(parse(text, source=source), tuple(device.interfaces), source=source)
    for name, tree in compiled.queueing.items():
        device.interfaces[name].tree = tree
    device.tree_access_lists = dict(compiled.access_lists)
    return []
