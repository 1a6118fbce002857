"""Exec commands: `ExecSession` is one login, `EXEC` the table of its commands.

The modules here and `catalyst.exec` register their commands with `EXEC` when they are imported.
"""

from qoslab.ios.exec import (
    applets,
    automation_tools,
    catalyst,
    configuration,
    flash_files,
    ip_sla,
    ping,
    policy,
    reload,
    rollback,
    services,
    show,
    system,
    tcl,
)
from qoslab.ios.login import EXEC, ExecSession

__all__ = [
    "EXEC",
    "ExecSession",
    "applets",
    "automation_tools",
    "catalyst",
    "configuration",
    "flash_files",
    "ip_sla",
    "ping",
    "policy",
    "reload",
    "rollback",
    "services",
    "show",
    "system",
    "tcl",
]
