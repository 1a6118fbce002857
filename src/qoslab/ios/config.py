"""Configuration commands: `ConfigSession` carries them out, `CONFIG` is their table.

The modules of `commands` and `catalyst.commands` register their commands with `CONFIG` on import. This module imports
them.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from qoslab.ios import commands
from qoslab.ios.catalyst import commands as catalyst_commands
from qoslab.ios.cli.session import CAPABILITIES, CONFIG, MODES, ConfigSession, device_capabilities


def load() -> None:
    """Import every module of commands, which completes the table and the lists of `registry`."""
    for package in (commands, catalyst_commands):
        for module in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")


load()

__all__ = ["CAPABILITIES", "CONFIG", "MODES", "ConfigSession", "device_capabilities", "load"]
