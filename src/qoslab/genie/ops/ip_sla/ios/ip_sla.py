"""The feature `ip_sla` of IOS."""

from __future__ import annotations

from typing import Any

from qoslab.genie.ops.ip_sla.ip_sla import IpSla as AnyIpSla
from qoslab.genie.ops.learning import learn_parsed

OPERATION_COMMANDS = {"latest": "show ip sla statistics", "aggregated": "show ip sla statistics aggregated"}
"""Command for each part of an operation."""


class IpSla(AnyIpSla):
    """Operations in `info`: `operation` by number, each with `type`, the `latest` group, and the `aggregated`
    groups.
    """

    def learn(self) -> None:
        """Learn the operations from the device."""
        operations: dict[str, dict[str, Any]] = {}
        for part, command in OPERATION_COMMANDS.items():
            for number, shown in learn_parsed(self.device, command).get("operations", {}).items():
                groups = shown["groups"]
                operation = operations.setdefault(number, {})
                if groups and "type" in groups[-1]:
                    operation["type"] = groups[-1]["type"]
                operation[part] = groups[-1:] if part == "latest" else groups
        self.info = {"operation": operations} if operations else {}
