"""The running configuration as IOS prints it: canonical text in IOS order, for both generations.

One blank for each level, full interface names, `!` only between blocks; the order of entry does not matter. Each
command prints its own lines; here they are put in order.
"""

from __future__ import annotations

from qoslab.ios.commands.interface import interface_block
from qoslab.ios.config import load
from qoslab.ios.model.device import Device
from qoslab.ios.registry import BLOCKS


def render(device: Device) -> str:
    """Return the configuration that `show running-config` prints below its heading, from `version` to `end`."""
    blocks = (block for blocks in BLOCKS.of(device.hardware.family) for block in blocks(device))
    return "!\n" + "".join("\n".join(block) + "\n!\n" for block in blocks if block) + "end\n"


def render_interface(device: Device, name: str) -> str:
    """Return the block of one interface, as `show running-config interface X` prints it between `!` and `end`."""
    return "\n".join(interface_block(device.interfaces[name])) + "\n"


load()
