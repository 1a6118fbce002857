"""`show interfaces rate-limit` and `show traffic-shape statistics`, for which Genie has no parser."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey
from genie.metaparser.util.schemaengine import ListOf, Optional

from qoslab.genie.interface_meters import parse_rate_limit, parse_traffic_shape_statistics

_COUNTER_KEYS = {"packets": int, "bytes": int, "action": str}
_LIMITS = ListOf(
    {
        "matches": str,
        "rate_bps": int,
        "normal_burst": int,
        "extended_burst": int,
        "conformed": _COUNTER_KEYS,
        "exceeded": _COUNTER_KEYS,
        "last_packet_ms": int,
        "current_burst": int,
    }
)


class ShowInterfacesRateLimit(MetaParser):  # type: ignore[misc]
    """Parser for `show interfaces [X] rate-limit`."""

    schema: ClassVar[dict[Any, Any]] = {AnyKey(): {Optional("input"): _LIMITS, Optional("output"): _LIMITS}}
    cli_command: ClassVar[list[str]] = ["show interfaces rate-limit", "show interfaces {interface} rate-limit"]

    def cli(self, interface: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        command = f"show interfaces {interface} rate-limit" if interface else self.cli_command[0]
        return parse_rate_limit(self.device.execute(command) if output is None else output)


class ShowTrafficShapeStatistics(MetaParser):  # type: ignore[misc]
    """Parser for `show traffic-shape statistics [X]`."""

    schema: ClassVar[dict[Any, Any]] = {
        AnyKey(): ListOf(
            {
                Optional("access_list"): str,
                "depth": int,
                "packets": int,
                "bytes": int,
                "packets_delayed": int,
                "bytes_delayed": int,
                "active": bool,
            }
        )
    }
    cli_command: ClassVar[list[str]] = ["show traffic-shape statistics", "show traffic-shape statistics {interface}"]

    def cli(self, interface: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        command = f"show traffic-shape statistics {interface}".strip()
        return parse_traffic_shape_statistics(self.device.execute(command) if output is None else output)
