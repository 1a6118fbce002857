"""Lines of a Catalyst 3750's running configuration that a router does not have: settings that differ from defaults.

Order and blanks follow printed configurations; settings that were entered over several lines have one canonical form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qoslab.ios.model.catalyst import (
    DEFAULT_PORT,
    DEFAULT_QOS,
    FULL_LIMIT,
    IDENTITY,
    QueuePlace,
    QueueSet,
    SwitchPort,
    SwitchQos,
)
from qoslab.ios.model.ios_names import join_with_blanks
from qoslab.ios.model.policy import PolicyClass

VALUES_A_LINE = 8


def qos_lines(qos: SwitchQos) -> Iterator[str]:
    """Yield the global lines about QoS."""
    yield from _map_lines(qos)
    yield from _input_lines(qos)
    for direction, what, places, default in (
        ("output", "cos-map", qos.cos_output, DEFAULT_QOS.cos_output),
        ("output", "dscp-map", qos.dscp_output, DEFAULT_QOS.dscp_output),
    ):
        yield from _place_lines(direction, what, places, default)
    for number, queue_set in enumerate(qos.queue_sets, 1):
        yield from _queue_set_lines(number, queue_set)
    for name, policer in qos.aggregate_policers:
        yield (
            f"mls qos aggregate-policer {name} {policer.rate_bps} {policer.burst_bytes} exceed-action {policer.exceed}"
        )
    if not qos.rewrite_ip_dscp:
        yield "no mls qos rewrite ip dscp"
    if qos.enabled:
        yield "mls qos"


def _map_lines(qos: SwitchQos) -> Iterator[str]:
    yield from _group_by_value("policed-dscp", qos.policed_dscp, IDENTITY)
    for name, values in qos.mutations:
        yield from _group_by_value(f"dscp-mutation {name}", values, IDENTITY)
    yield from _group_by_value("dscp-cos", qos.dscp_cos, DEFAULT_QOS.dscp_cos)
    if qos.cos_dscp != DEFAULT_QOS.cos_dscp:
        yield f"mls qos map cos-dscp {join_with_blanks(qos.cos_dscp)}"
    if qos.ip_prec_dscp != DEFAULT_QOS.ip_prec_dscp:
        yield f"mls qos map ip-prec-dscp {join_with_blanks(qos.ip_prec_dscp)}"


def _group_by_value(name: str, values: Sequence[int], default: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a map by DSCP: the changed code points, grouped by their value."""
    changed = [dscp for dscp, value in enumerate(values) if value != default[dscp]]
    for target in sorted({values[dscp] for dscp in changed}):
        for some in _groups_of_eight([dscp for dscp in changed if values[dscp] == target]):
            yield f"mls qos map {name} {join_with_blanks(some)} to {target}"


def _groups_of_eight(values: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), VALUES_A_LINE):
        yield values[start : start + VALUES_A_LINE]


def _place_lines(
    direction: str, what: str, places: Sequence[QueuePlace], default: Sequence[QueuePlace]
) -> Iterator[str]:
    changed = [code for code, place in enumerate(places) if place != default[code]]
    for queue, threshold in sorted({places[code] for code in changed}):
        for some in _groups_of_eight([code for code in changed if places[code] == (queue, threshold)]):
            yield f"mls qos srr-queue {direction} {what} queue {queue} threshold {threshold} {join_with_blanks(some)}"


def _input_lines(qos: SwitchQos) -> Iterator[str]:
    head, own, default = "mls qos srr-queue input", qos.input, DEFAULT_QOS.input
    if own.bandwidth != default.bandwidth:
        yield f"{head} bandwidth {join_with_blanks(own.bandwidth)}"
    for queue, (thresholds, usual) in enumerate(zip(own.thresholds, default.thresholds, strict=True), 1):
        if thresholds != usual:
            yield f"{head} threshold {queue} {join_with_blanks(thresholds)}"
    if own.buffers != default.buffers:
        yield f"{head} buffers {join_with_blanks(own.buffers)}"
    if (own.priority_queue, own.priority_bandwidth) != (default.priority_queue, default.priority_bandwidth):
        yield f"{head} priority-queue {own.priority_queue} bandwidth {own.priority_bandwidth}"
    yield from _place_lines("input", "cos-map", qos.cos_input, DEFAULT_QOS.cos_input)
    yield from _place_lines("input", "dscp-map", qos.dscp_input, DEFAULT_QOS.dscp_input)


def _queue_set_lines(number: int, queue_set: QueueSet) -> Iterator[str]:
    default = QueueSet()
    for queue, (own, usual) in enumerate(zip(queue_set.thresholds, default.thresholds, strict=True), 1):
        if own != usual:
            values = (own.first, own.second, own.reserved, own.maximum)
            yield f"mls qos queue-set output {number} threshold {queue} {join_with_blanks(values)}"
    if queue_set.buffers != default.buffers:
        yield f"mls qos queue-set output {number} buffers {join_with_blanks(queue_set.buffers)}"


def vlan_blocks(qos: SwitchQos) -> Iterator[list[str]]:
    """Yield the blocks of the VLANs other than the first."""
    for number, name in qos.vlans:
        yield [f"vlan {number}", *([] if name is None else [f" name {name}"])]


def switching_lines(port: SwitchPort) -> Iterator[str]:
    """Yield an interface's lines about switching, which precede its addresses."""
    if not port.switched:
        yield "no switchport"
    if port.access_vlan != DEFAULT_PORT.access_vlan:
        yield f"switchport access vlan {port.access_vlan}"
    if port.dot1q:
        yield "switchport trunk encapsulation dot1q"
    if port.native_vlan != DEFAULT_PORT.native_vlan:
        yield f"switchport trunk native vlan {port.native_vlan}"
    if port.mode is not None:
        yield f"switchport mode {port.mode}"


def queueing_lines(port: SwitchPort) -> Iterator[str]:
    """Yield an interface's lines about its egress queues and its trust."""
    if port.share != DEFAULT_PORT.share:
        yield f"srr-queue bandwidth share {join_with_blanks(port.share)}"
    if port.shape != DEFAULT_PORT.shape:
        # [R] Real images print these with doubled blanks.
        yield "srr-queue bandwidth shape" + "".join(f"  {weight}" for weight in port.shape)
    if port.limit != FULL_LIMIT:
        yield f"srr-queue bandwidth limit {port.limit}"
    if port.queue_set != DEFAULT_PORT.queue_set:
        yield f"queue-set {port.queue_set}"
    if port.priority_queue:
        yield "priority-queue out"
    if port.vlan_based:
        yield "mls qos vlan-based"
    if port.default_cos != DEFAULT_PORT.default_cos:
        yield f"mls qos cos {port.default_cos}"
    if port.cos_override:
        yield "mls qos cos override"
    if port.trust_device:
        yield "mls qos trust device cisco-phone"
    if port.trust is not None:
        yield f"mls qos trust {port.trust}"
    if port.dscp_mutation is not None:
        yield f"mls qos dscp-mutation {port.dscp_mutation}"
    if port.auto_qos is not None:
        yield f"auto qos voip {port.auto_qos}"


def policing_lines(each: PolicyClass) -> Iterator[str]:
    """Yield the switch-only lines of a class, without indentation."""
    if each.trust is not None:
        yield f"trust {each.trust}"
    if each.police is not None:
        burst = "" if each.police.bc is None else f" {each.police.bc.number}"
        actions = "".join(f" exceed-action {action.action}" for action in each.police.exceed or ())
        yield f"police {each.police.cir.number}{burst}{actions}"
    if each.aggregate is not None:
        yield f"police aggregate {each.aggregate}"
