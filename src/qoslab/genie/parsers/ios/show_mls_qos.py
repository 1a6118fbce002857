"""Parsers of `show mls qos …` and `show platform port-asic stats drop` of a Catalyst 3750; Genie has none."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.libs.parser.utils.common import Common
from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey
from genie.metaparser.util.schemaengine import ListOf, Optional, Or

from qoslab.genie import mls_qos

Values = dict[str, Any]

_UNRECOGNISED = {Optional("unrecognised"): ListOf(str)}


class _MlsQosParser(MetaParser):  # type: ignore[misc]
    """Base class of the parsers; queries the device unless the output is given."""

    schema: ClassVar[dict[Any, Any]] = {}

    def text(self, output: str | None, interface: str, command: str, plain: str) -> tuple[str, str]:
        """Return the output and the full name of the requested interface, or an empty name."""
        if output is None:
            output = self.device.execute(command.format(interface=interface) if interface else plain)
        return output, Common.convert_intf_name(interface) if interface else ""


class ShowMlsQos(_MlsQosParser):
    """Parser for `show mls qos`."""

    schema: ClassVar[dict[Any, Any]] = {"enabled": bool, Optional("rewrite_ip_dscp"): bool}
    cli_command: ClassVar[list[str]] = ["show mls qos"]

    def cli(self, output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_mls_qos(self.text(output, "", "", self.cli_command[0])[0])


class ShowMlsQosVlan(_MlsQosParser):
    """Parser for `show mls qos vlan N`."""

    schema: ClassVar[dict[Any, Any]] = {"vlan": {AnyKey(): {Optional("policy_map"): str, **_UNRECOGNISED}}}
    cli_command: ClassVar[list[str]] = ["show mls qos vlan {vlan}"]

    def cli(self, vlan: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_vlan(self.device.execute(f"show mls qos vlan {vlan}") if output is None else output)


class ShowMlsQosInterface(_MlsQosParser):
    """Parser for `show mls qos interface [INTERFACE]`."""

    schema: ClassVar[dict[Any, Any]] = {
        "interface": {
            AnyKey(): {
                Optional("policy_map"): str,
                Optional("enabled"): bool,
                "trust_state": str,
                Optional("trust_mode"): str,
                Optional("trust_enabled"): bool,
                Optional("cos_override"): bool,
                Optional("default_cos"): int,
                Optional("dscp_mutation_map"): str,
                Optional("trust_device"): str,
                Optional("qos_mode"): str,
                **_UNRECOGNISED,
            }
        }
    }
    cli_command: ClassVar[list[str]] = ["show mls qos interface {interface}", "show mls qos interface"]

    def cli(self, interface: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_interface(*self.text(output, interface, *self.cli_command))


class ShowMlsQosInterfaceQueueing(_MlsQosParser):
    """Parser for `show mls qos interface [INTERFACE] queueing`."""

    schema: ClassVar[dict[Any, Any]] = {
        "interface": {
            AnyKey(): {
                "priority_queue": bool,
                "shape": ListOf(int),
                "share": ListOf(int),
                "limit_percent": int,
                "operational_percent": float,
                "queue_set": int,
                **_UNRECOGNISED,
            }
        }
    }
    cli_command: ClassVar[list[str]] = [
        "show mls qos interface {interface} queueing",
        "show mls qos interface queueing",
    ]

    def cli(self, interface: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_queueing(*self.text(output, interface, *self.cli_command))


class ShowMlsQosInterfaceBuffers(_MlsQosParser):
    """Parser for `show mls qos interface [INTERFACE] buffers`."""

    schema: ClassVar[dict[Any, Any]] = {
        "interface": {AnyKey(): {"queue_set": int, "buffers_percent": ListOf(int), **_UNRECOGNISED}}
    }
    cli_command: ClassVar[list[str]] = ["show mls qos interface {interface} buffers", "show mls qos interface buffers"]

    def cli(self, interface: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_queueing(*self.text(output, interface, *self.cli_command))


class ShowMlsQosInterfaceStatistics(_MlsQosParser):
    """Parser for `show mls qos interface [INTERFACE] statistics`."""

    schema: ClassVar[dict[Any, Any]] = {
        "interface": {
            AnyKey(): {
                Optional("dscp"): {AnyKey(): {AnyKey(): int}},
                Optional("cos"): {AnyKey(): {AnyKey(): int}},
                Optional("output_queues"): {AnyKey(): {"queue": {AnyKey(): {"threshold": {AnyKey(): int}}}}},
                Optional("policer"): {"in_profile": int, "out_of_profile": int},
                **_UNRECOGNISED,
            }
        }
    }
    cli_command: ClassVar[list[str]] = [
        "show mls qos interface {interface} statistics",
        "show mls qos interface statistics",
    ]

    def cli(self, interface: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_statistics(self.text(output, interface, *self.cli_command)[0])


_QUEUES = {"queue": {AnyKey(): {AnyKey(): int}}}


class ShowMlsQosQueueSet(_MlsQosParser):
    """Parser for `show mls qos queue-set [SET]`."""

    schema: ClassVar[dict[Any, Any]] = {"queue_set": {AnyKey(): _QUEUES}}
    cli_command: ClassVar[list[str]] = ["show mls qos queue-set {number}", "show mls qos queue-set"]

    def cli(self, number: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        text = self.device.execute(f"show mls qos queue-set {number}".strip()) if output is None else output
        return mls_qos.parse_queue_set(text)


class ShowMlsQosInputQueue(_MlsQosParser):
    """Parser for `show mls qos input-queue`."""

    schema: ClassVar[dict[Any, Any]] = _QUEUES
    cli_command: ClassVar[list[str]] = ["show mls qos input-queue"]

    def cli(self, output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_input_queue(self.text(output, "", "", self.cli_command[0])[0])


_VALUE = Or(int, {"queue": int, "threshold": int}, {AnyKey(): int})


class ShowMlsQosMaps(_MlsQosParser):
    """Parser for `show mls qos maps [NAME]`."""

    schema: ClassVar[dict[Any, Any]] = {"map": {AnyKey(): {AnyKey(): _VALUE}}}
    cli_command: ClassVar[list[str]] = [
        "show mls qos maps {name} {mutation}",
        "show mls qos maps {name}",
        "show mls qos maps",
    ]

    def cli(self, name: str = "", mutation: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        if output is None:
            output = self.device.execute(" ".join(["show mls qos maps", name, mutation]).strip())
        return mls_qos.parse_maps(output)


class ShowMlsQosAggregatePolicer(_MlsQosParser):
    """Parser for `show mls qos aggregate-policer [NAME]`."""

    schema: ClassVar[dict[Any, Any]] = {
        "aggregate_policer": {
            AnyKey(): {"rate_bps": int, "burst_bytes": int, "exceed_action": str, "policy_maps": ListOf(str)}
        }
    }
    cli_command: ClassVar[list[str]] = ["show mls qos aggregate-policer {name}", "show mls qos aggregate-policer"]

    def cli(self, name: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        text = self.device.execute(f"show mls qos aggregate-policer {name}".strip()) if output is None else output
        return mls_qos.parse_aggregate_policer(text)


class ShowPlatformPortAsicStatsDrop(_MlsQosParser):
    """Parser for `show platform port-asic stats drop [INTERFACE]`."""

    schema: ClassVar[dict[Any, Any]] = {"interface": {AnyKey(): {"queue": {AnyKey(): {"weight": {AnyKey(): int}}}}}}
    cli_command: ClassVar[list[str]] = [
        "show platform port-asic stats drop {interface}",
        "show platform port-asic stats drop",
    ]

    def cli(self, interface: str = "", output: str | None = None) -> Values:
        """Ask the device unless `output` is given."""
        return mls_qos.parse_port_asic_drops(self.text(output, interface, *self.cli_command)[0])
