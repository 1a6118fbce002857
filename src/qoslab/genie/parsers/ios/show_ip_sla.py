"""Parsers of `show ip sla statistics`; Genie's parser ignores all jitter values."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey

from qoslab.genie.ip_sla import parse_statistics


class _Statistics(MetaParser):  # type: ignore[misc]
    schema: ClassVar[dict[Any, Any]] = {"operations": {AnyKey(): {"groups": list}}}


class ShowIpSlaStatistics(_Statistics):
    """Parser for `show ip sla statistics [N] [details]`."""

    cli_command: ClassVar[list[str]] = [
        "show ip sla statistics",
        "show ip sla statistics details",
        "show ip sla statistics {probe_id}",
        "show ip sla statistics {probe_id} details",
    ]

    def cli(self, probe_id: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        command = f"show ip sla statistics {probe_id}".strip()
        return parse_statistics(self.device.execute(command) if output is None else output)


class ShowIpSlaStatisticsAggregated(_Statistics):
    """Parser for `show ip sla statistics aggregated [N]`."""

    cli_command: ClassVar[list[str]] = [
        "show ip sla statistics aggregated",
        "show ip sla statistics aggregated {probe_id}",
    ]

    def cli(self, probe_id: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        command = f"show ip sla statistics aggregated {probe_id}".strip()
        return parse_statistics(self.device.execute(command) if output is None else output)
