"""Configuration commands: `ConfigSession` carries them out, `CONFIG` is their table.

The modules here register their commands with `CONFIG` when they are imported.
"""

from qoslab.ios.config import (
    access_list,
    auto_qos,
    class_map,
    extension,
    interface,
    ip_sla,
    police,
    policy_map,
    switch_policy,
    switch_port,
    switch_qos,
    system,
)
from qoslab.ios.config.session import CONFIG, MODES, ConfigSession, commands_of

__all__ = [
    "CONFIG",
    "MODES",
    "ConfigSession",
    "access_list",
    "auto_qos",
    "class_map",
    "commands_of",
    "extension",
    "interface",
    "ip_sla",
    "police",
    "policy_map",
    "switch_policy",
    "switch_port",
    "switch_qos",
    "system",
]
