"""Parsers of `show policy-map` and its variants; Genie only has parsers for IOS XE."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.libs.parser.iosxe import show_policy_map as iosxe
from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey
from genie.metaparser.util.schemaengine import ListOf, Optional, Or

from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.genie.policy_parsers import parse_policy_map

LEVELS = 3
"""Maximum nesting depth of policy-maps (Cisco, MQC Three-Level Hierarchical Policer)."""

_COLOUR = {
    **{Optional(name): int for name in ("packets", "bytes", "bps")},
    Optional("actions"): {AnyKey(): Or(bool, str)},
}
_TEXTS = ("queue_limit_packets", "shape_type", "output_queue", "overhead_accounting")
_FLAGS = ("drop", "queueing", "flow_based_fair_queueing")
_NUMBERS = (
    "packets",
    "bytes",
    "queue_limit_bytes",
    "queue_limit_ms",
    "queue_limit_us",
    "queue_depth",
    "total_drops",
    "no_buffer_drops",
    "flow_drops",
    "bytes_drops",
    "pkts_output",
    "bytes_output",
    "pkts_matched",
    "bytes_matched",
    "pkts_queued",
    "bytes_queued",
    "shape_cir_bps",
    "shape_bc_bps",
    "shape_be_bps",
    "target_shape_rate",
    "bandwidth_percent",
    "bandwidth_kbps",
    "bandwidth_remaining_ratio",
    "bandwidth_remaining_percent",
    "bandwidth_max_threshold_packets",
    "fair_queue_limit_per_flow",
    "maximum_hashed_queues",
    "priority_level",
)
_POLICE_NUMBERS = (
    "cir_bps",
    "cir_percent",
    "cir_bc_bytes",
    "cir_be_bytes",
    "pir_bps",
    "pir_percent",
    "pir_be_bytes",
    "rate_bps",
    "burst_bytes",
)
_SHAPING_NUMBERS = (
    "target_rate_bps",
    "average_rate_bps",
    "byte_limit",
    "sustain_bits_per_interval",
    "excess_bits_per_interval",
    "interval_ms",
    "increment_bytes",
    "queue_depth",
    "packets",
    "bytes",
    "packets_delayed",
    "bytes_delayed",
)


def _class_schema(levels: int) -> dict[Any, Any]:
    """Return the schema of a class with policy-maps nested `levels` deep."""
    schema: dict[Any, Any] = {"match_evaluation": str, **_queue_schema()}
    if levels:
        schema[Optional("child_policy_name")] = {AnyKey(): _policy_schema(levels - 1)}
    return schema


def _queue_schema() -> dict[Any, Any]:
    """Return the schema of the values of a class, or of the queue that all priority classes share."""
    return {
        Optional("match"): ListOf(str),
        Optional("match_stats"): {
            AnyKey(): {
                Optional("packets"): int,
                Optional("bytes"): int,
                Optional("rate"): {"interval": int, "offered_rate_bps": int},
            }
        },
        Optional("rate"): {"interval": int, "offered_rate_bps": int, Optional("drop_rate_bps"): int},
        Optional("police"): {
            **{Optional(name): int for name in _POLICE_NUMBERS},
            **{Optional(colour): _COLOUR for colour in ("conformed", "exceeded", "violated")},
            Optional("dynamic_bucket"): {AnyKey(): int},
        },
        Optional("qos_set"): {AnyKey(): {AnyKey(): {Optional("packets_marked"): int}}},
        Optional("priority"): {
            Optional("type"): str,
            **{Optional(name): int for name in ("percent", "kbps", "burst_bytes", "exceed_drops")},
        },
        Optional("traffic_shaping"): {
            **{Optional(name): int for name in _SHAPING_NUMBERS},
            Optional("adapt_active"): str,
            Optional("shaping_active"): bool,
        },
        Optional("random_detect"): {
            Optional("exp_weight_constant"): str,
            Optional("exponential_weight"): str,
            Optional("mean_queue_depth"): int,
            Optional("explicit_congestion_notification"): bool,
            Optional("class"): {AnyKey(): {AnyKey(): str}},
        },
        Optional("queue_thresholds"): {AnyKey(): {AnyKey(): str}},
        Optional("unrecognised"): ListOf(str),
        **{Optional(name): int for name in _NUMBERS},
        **{Optional(name): str for name in _TEXTS},
        **{Optional(name): bool for name in _FLAGS},
    }


def _policy_schema(levels: int) -> dict[Any, Any]:
    return {
        Optional("class_map"): {AnyKey(): _class_schema(levels)},
        Optional("queue_stats_for_all_priority_classes"): {Optional("priority_level"): {AnyKey(): _queue_schema()}},
        Optional("unrecognised"): ListOf(str),
    }


class ShowPolicyMapInterfaceSchema(MetaParser):  # type: ignore[misc]
    """Schema of the commands below."""

    schema: ClassVar[dict[Any, Any]] = {
        AnyKey(): {"service_policy": {AnyKey(): {"policy_name": {AnyKey(): _policy_schema(LEVELS - 1)}}}}
    }


class ShowPolicyMapInterface(ShowPolicyMapInterfaceSchema):
    """Parser for `show policy-map interface [INTERFACE [input|output]]`."""

    cli_command: ClassVar[list[str]] = [
        "show policy-map interface {interface} {direction}",
        "show policy-map interface {interface}",
        "show policy-map interface",
    ]

    def cli(self, interface: str = "", direction: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        if output is None:
            words = ["show policy-map interface", interface, direction]
            output = self.device.execute(" ".join(word for word in words if word))
        return parse_policy_map_interface(output, interface)


class ShowPolicyMapControlPlane(ShowPolicyMapInterfaceSchema):
    """Parser for `show policy-map control-plane`; the result has an interface called `Control Plane`."""

    cli_command: ClassVar[str] = "show policy-map control-plane"

    def cli(self, output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_policy_map_interface(self.device.execute(self.cli_command) if output is None else output)


class ShowPolicyMap(MetaParser):  # type: ignore[misc]
    """Parser for `show policy-map [NAME]`."""

    schema: ClassVar[dict[Any, Any]] = {
        "policy_map": {AnyKey(): {Optional("class"): {AnyKey(): {AnyKey(): Or(bool, int, str, list, dict)}}}}
    }
    cli_command: ClassVar[list[str]] = ["show policy-map {name}", "show policy-map"]

    def cli(self, name: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        if output is None:
            output = self.device.execute(f"show policy-map {name}".strip())
        return parse_policy_map(output)


class ShowPolicyMapClass(iosxe.ShowPolicyMapClass):  # type: ignore[misc]
    """Parser for `show policy-map NAME class CLASS`, as for IOS XE."""
