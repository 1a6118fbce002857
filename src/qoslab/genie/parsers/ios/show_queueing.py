"""`show queueing`, `show queue` and `show controllers serial`, for which Genie has no parser."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey
from genie.metaparser.util.schemaengine import Optional

from qoslab.genie.queueing import parse_controllers_serial, parse_queue, parse_queueing_fair, parse_queueing_interface

_QUEUES = {
    Optional("strategy"): str,
    Optional("total_output_drops"): int,
    Optional("available_bandwidth_kbps"): int,
    **{
        Optional(name): {AnyKey(): int}
        for name in ("input_queue", "output_queue", "conversations", "reserved_conversations")
    },
}


_CONVERSATION = {
    **dict.fromkeys(("depth", "weight", "total_drops", "no_buffer_drops", "interleaves", "length"), int),
    "linktype": str,
    **dict.fromkeys((Optional("source"), Optional("destination"), Optional("id")), str),
    **{Optional(name): int for name in ("ttl", "tos", "protocol", "source_port", "destination_port")},
}


class ShowQueueingInterface(MetaParser):  # type: ignore[misc]
    """Parser for `show queueing interface X`."""

    schema: ClassVar[dict[Any, Any]] = {AnyKey(): {"queueing_strategy": str, **_QUEUES}}
    cli_command: ClassVar[list[str]] = ["show queueing interface {interface}"]

    def cli(self, interface: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_queueing_interface(
            self.device.execute(f"show queueing interface {interface}") if output is None else output
        )


class ShowQueue(MetaParser):  # type: ignore[misc]
    """Parser for `show queue X`."""

    schema: ClassVar[dict[Any, Any]] = {AnyKey(): {**_QUEUES, Optional("conversation"): {AnyKey(): _CONVERSATION}}}
    cli_command: ClassVar[list[str]] = ["show queue {interface}"]

    def cli(self, interface: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_queue(self.device.execute(f"show queue {interface}") if output is None else output, interface)


class ShowQueueingFair(MetaParser):  # type: ignore[misc]
    """Parser for `show queueing fair`."""

    schema: ClassVar[dict[Any, Any]] = {AnyKey(): {AnyKey(): int}}
    cli_command: ClassVar[list[str]] = ["show queueing fair"]

    def cli(self, output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_queueing_fair(self.device.execute(self.cli_command[0]) if output is None else output)


class ShowControllersSerial(MetaParser):  # type: ignore[misc]
    """Parser for `show controllers serial X`."""

    schema: ClassVar[dict[Any, Any]] = {
        AnyKey(): {
            Optional("hardware"): str,
            Optional("clock"): str,
            Optional("clock_rate_bps"): int,
            Optional("tx_limited"): bool,
            Optional("tx_ring_limit"): int,
        }
    }
    cli_command: ClassVar[list[str]] = ["show controllers {interface}"]

    def cli(self, interface: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_controllers_serial(
            self.device.execute(f"show controllers {interface}") if output is None else output
        )
