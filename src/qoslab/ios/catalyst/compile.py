"""Compiler from a switch's part of the device model to the data plane's configuration.

The format is that of docs/internals/control-protocol.md.
"""

from __future__ import annotations

from qoslab.ios.model.catalyst import QueuePlace, QueueSet, SwitchPort, SwitchQos
from qoslab.ios.model.device import Speed
from qoslab.ios.model.policy import PolicyClass
from qoslab.system import program_formats


def compile_qos(qos: SwitchQos) -> program_formats.SwitchConfig:
    """Compile the settings of the whole switch: every map and queue-set in full."""
    return {
        "qos": qos.enabled,
        "rewrite_ip_dscp": qos.rewrite_ip_dscp,
        "maps": {
            "cos_dscp": list(qos.cos_dscp),
            "ip_prec_dscp": list(qos.ip_prec_dscp),
            "dscp_cos": list(qos.dscp_cos),
            "policed_dscp": list(qos.policed_dscp),
            "dscp_mutation": {name: list(values) for name, values in qos.mutations},
            "cos_output_q": _place_config(qos.cos_output),
            "dscp_output_q": _place_config(qos.dscp_output),
            "cos_input_q": _place_config(qos.cos_input),
            "dscp_input_q": _place_config(qos.dscp_input),
        },
        "queue_sets": [_queue_set(each) for each in qos.queue_sets],
        "input": {
            "buffers": list(qos.input.buffers),
            "bandwidth": list(qos.input.bandwidth),
            "thresholds": [list(each) for each in qos.input.thresholds],
            "priority": {"queue": qos.input.priority_queue, "bandwidth": qos.input.priority_bandwidth},
        },
        "aggregate_policers": {
            name: {"rate_bps": each.rate_bps, "burst_bytes": each.burst_bytes, "exceed": each.exceed}
            for name, each in qos.aggregate_policers
        },
    }


def _place_config(places: tuple[QueuePlace, ...]) -> list[list[int]]:
    return [list(place) for place in places]


def _queue_set(queue_set: QueueSet) -> program_formats.QueueSetConfig:
    return {
        "buffers": list(queue_set.buffers),
        "thresholds": [
            {"t1": each.first, "t2": each.second, "reserved": each.reserved, "maximum": each.maximum}
            for each in queue_set.thresholds
        ],
    }


def compile_port(port: SwitchPort, qos: SwitchQos, speed: Speed) -> program_formats.SwitchPortConfig:
    """Compile the settings of one port."""
    switchport: program_formats.SwitchportConfig | None = None
    if port.switched:
        switchport = {"mode": "trunk" if port.mode == "trunk" else "access", "vlan": port.vlan}
    # A name without a map changes nothing.
    mutation = port.dscp_mutation if port.dscp_mutation in dict(qos.mutations) else None
    return {
        "trust": port.effective_trust,
        "default_cos": port.default_cos,
        "cos_override": port.cos_override,
        "dscp_mutation": mutation,
        "shape": list(port.shape),
        "share": list(port.share),
        "limit": port.limit,
        "priority_queue": port.priority_queue,
        "queue_set": port.queue_set,
        "vlan_based": port.vlan_based,
        "switchport": switchport,
        "speed_bps": None if speed == "auto" else 1_000_000 * int(speed),
    }


def compile_class(policy_class: PolicyClass) -> program_formats.PolicyClassPart:
    """Compile the part of a policy-map's class that only switches have."""
    return {"trust": policy_class.trust, "police_aggregate": policy_class.aggregate}
