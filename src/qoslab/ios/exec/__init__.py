"""Exec commands: `ExecSession` is one login, `EXEC` the table of its commands.

The modules here register their commands with `EXEC` when they are imported.
"""

from qoslab.ios.exec import configuration, ip_sla, ping, policy, show, switch, system
from qoslab.ios.exec.session import EXEC, ExecSession

__all__ = ["EXEC", "ExecSession", "configuration", "ip_sla", "ping", "policy", "show", "switch", "system"]
