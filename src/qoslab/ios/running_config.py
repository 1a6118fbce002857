"""Running configuration as IOS prints it: canonical text in IOS order, for both generations.

One blank for each level, full interface names, `!` only between blocks; the order of entry does not matter. Each
command prints its own lines; this module orders them.
"""

from __future__ import annotations

from qoslab.ios.commands.interface import interface_block
from qoslab.ios.config import load
from qoslab.ios.model.device import Clutter, Device
from qoslab.ios.registry import BLOCKS


def render(device: Device) -> str:
    """Return the configuration that `show running-config` prints below its heading, from `version` to `end`."""
    blocks = (block for blocks in BLOCKS.family_functions(device.hardware.family) for block in blocks(device))
    text = "!\n" + "".join("\n".join(block) + "\n!\n" for block in blocks if block) + "end\n"
    return add_inert_lines(text, device.clutter)


def render_interface(device: Device, name: str) -> str:
    """Return the block of one interface, as `show running-config interface X` prints it between `!` and `end`."""
    text = "\n".join(interface_block(device.interfaces[name])) + "\n"
    return add_inert_lines(text, tuple(each for each in device.clutter if each[0]))


def add_inert_lines(text: str, clutter: Clutter) -> str:
    """Return a configuration with added lines that the model does not have, each after its parent line.

    Lines without a parent come first; lines of missing blocks are left out.
    """
    if not clutter:
        return text
    below: dict[tuple[str, ...], list[str]] = {}
    for head, line in clutter:
        below.setdefault(head, []).append(line)
    own = below.pop((), None)
    lines = [] if own is None else ["!", *own]
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        above = [*(each for each in above if each[0] < depth), (depth, " ".join(line.split()))]
        # If a block occurs twice, such as in a banner, the first one is used.
        lines += [line, *below.pop(tuple(each for _, each in above), ())]
    return "\n".join(lines) + "\n"


load()
