"""Comparison of a switch's QoS output with the requested configuration: `verify` of the role `ios_switch`.

The requested configuration is only a part of the whole, so only its settings are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from qoslab.genie import mls_qos
from qoslab.ios.model.catalyst import DEFAULT_MUTATION, DEFAULT_PORT, DEFAULT_QOS, QueuePlace, SwitchPort, SwitchQos
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.parse import apply_config
from qoslab.platforms import MODELS

PARSERS: dict[str, Callable[[str], mls_qos.Values]] = {
    "show mls qos": mls_qos.parse_mls_qos,
    "show mls qos interface": mls_qos.parse_interface,
    "show mls qos interface queueing": mls_qos.parse_queueing,
    "show mls qos queue-set": mls_qos.parse_queue_set,
    "show mls qos input-queue": mls_qos.parse_input_queue,
    "show mls qos maps": mls_qos.parse_maps,
}
"""Parsers by show command."""


def switch_differences(text: str, answers: Mapping[str, str], model: str) -> list[str]:
    """Return a sentence for each setting of the configuration `text` with a different value in the output.

    `answers` are the outputs by command in `PARSERS`; settings of other commands are not compared.
    """
    device = Device(MODELS[model].hardware())
    apply_config(device, text, source="intended configuration")
    shown = {command: PARSERS[command](answer) for command, answer in answers.items()}
    return [
        f"{where}: found {'nothing' if found is None else found}, expected {wanted}"
        for where, found, wanted in _value_differences(device, shown)
        if found != wanted
    ]


Figure = tuple[str, Any, Any]
"""Place, found value, expected value."""


def _value_differences(device: Device, shown: Mapping[str, Mapping[str, Any]]) -> Iterator[Figure]:
    qos = device.switch
    assert qos is not None  # The model is a switch.
    if (whole := shown.get("show mls qos")) is not None:
        if qos.enabled:
            yield "mls qos", whole.get("enabled"), True
        if not qos.rewrite_ip_dscp:
            yield "mls qos rewrite ip dscp", whole.get("rewrite_ip_dscp"), False
    if (sets := shown.get("show mls qos queue-set")) is not None:
        yield from _queue_sets(qos, sets.get("queue_set", {}))
    if (queues := shown.get("show mls qos input-queue")) is not None:
        yield from _input_queue_differences(qos, queues.get("queue", {}))
    if (maps := shown.get("show mls qos maps")) is not None:
        yield from _map_differences(qos, maps.get("map", {}))
    for screen, values in (("interface", _port_differences), ("interface queueing", _queueing_differences)):
        found = shown.get(f"show mls qos {screen}")
        if found is None:
            continue
        for name, interface in device.interfaces.items():
            if interface.port is not None:
                for what, has, wanted in values(interface, interface.port, found.get("interface", {}).get(name, {})):
                    yield f"{name} {what}", has, wanted


def _set(port: SwitchPort, *names: str) -> bool:
    """Return whether one of these settings differs from its default."""
    return any(getattr(port, name) != getattr(DEFAULT_PORT, name) for name in names)


def _port_differences(interface: Interface, port: SwitchPort, shown: Mapping[str, Any]) -> Iterator[Figure]:
    if _set(port, "trust", "trust_device"):
        yield "trust mode", shown.get("trust_mode"), "not trusted" if port.trust is None else f"trust {port.trust}"
        yield "trust device", shown.get("trust_device"), "cisco-phone" if port.trust_device else "none"
    if _set(port, "cos_override"):
        yield "COS override", shown.get("cos_override"), port.cos_override
    if _set(port, "default_cos"):
        yield "default COS", shown.get("default_cos"), port.default_cos
    if _set(port, "dscp_mutation"):
        yield "DSCP mutation map", shown.get("dscp_mutation_map"), port.dscp_mutation or DEFAULT_MUTATION
    if _set(port, "vlan_based"):
        yield "qos mode", shown.get("qos_mode"), "vlan-based"
    if interface.service_policy_input is not None:
        yield "policy-map", shown.get("policy_map"), interface.service_policy_input


def _queueing_differences(interface: Interface, port: SwitchPort, shown: Mapping[str, Any]) -> Iterator[Figure]:
    for name, key, wanted in (
        ("shape", "shape", list(port.shape)),
        ("share", "share", list(port.share)),
        ("limit", "limit_percent", port.limit),
        ("priority_queue", "priority_queue", port.priority_queue),
        ("queue_set", "queue_set", port.queue_set),
    ):
        if _set(port, name):
            yield name.replace("_", "-"), shown.get(key), wanted


def _queue_sets(qos: SwitchQos, shown: Mapping[int, Any]) -> Iterator[Figure]:
    for number, (own, usual) in enumerate(zip(qos.queue_sets, DEFAULT_QOS.queue_sets, strict=True), 1):
        for queue, thresholds in enumerate(own.thresholds, 1):
            has = shown.get(number, {}).get("queue", {}).get(queue, {})
            where = f"queue-set {number} queue {queue}"
            if own.buffers != usual.buffers:
                yield f"{where} buffers", has.get("buffers"), own.buffers[queue - 1]
            if thresholds != usual.thresholds[queue - 1]:
                for field, key in zip(
                    fields(thresholds), ("threshold1", "threshold2", "reserved", "maximum"), strict=True
                ):
                    yield f"{where} {key}", has.get(key), getattr(thresholds, field.name)


def _input_queue_differences(qos: SwitchQos, shown: Mapping[int, Any]) -> Iterator[Figure]:
    own, usual = qos.input, DEFAULT_QOS.input
    for index in range(len(own.buffers)):
        has, where = shown.get(index + 1, {}), f"input queue {index + 1}"
        if own.buffers != usual.buffers:
            yield f"{where} buffers", has.get("buffers"), own.buffers[index]
        if own.bandwidth != usual.bandwidth:
            yield f"{where} bandwidth", has.get("bandwidth"), own.bandwidth[index]
        if own.thresholds[index] != usual.thresholds[index]:
            yield f"{where} thresholds", (has.get("threshold1"), has.get("threshold2")), own.thresholds[index]
        if own.priority_queue == index + 1 and own.priority_bandwidth != usual.priority_bandwidth:
            yield f"{where} priority", has.get("priority"), own.priority_bandwidth


def _map_differences(qos: SwitchQos, shown: Mapping[str, Any]) -> Iterator[Figure]:
    for name, own, usual in (
        ("cos-dscp", qos.cos_dscp, DEFAULT_QOS.cos_dscp),
        ("ip-prec-dscp", qos.ip_prec_dscp, DEFAULT_QOS.ip_prec_dscp),
        ("dscp-cos", qos.dscp_cos, DEFAULT_QOS.dscp_cos),
        ("policed-dscp", qos.policed_dscp, DEFAULT_QOS.policed_dscp),
        ("cos-output-q", _format_places(qos.cos_output), _format_places(DEFAULT_QOS.cos_output)),
        ("dscp-output-q", _format_places(qos.dscp_output), _format_places(DEFAULT_QOS.dscp_output)),
        ("cos-input-q", _format_places(qos.cos_input), _format_places(DEFAULT_QOS.cos_input)),
        ("dscp-input-q", _format_places(qos.dscp_input), _format_places(DEFAULT_QOS.dscp_input)),
    ):
        has = shown.get(name, {})
        for code, (value, default) in enumerate(zip(own, usual, strict=True)):
            if value != default:
                yield f"map {name}, {code}", has.get(code), value
    for name, values in qos.mutations:
        has = shown.get("dscp-mutation", {}).get(name, {})
        for code, value in enumerate(values):
            if value != code:
                yield f"map dscp-mutation {name}, {code}", has.get(code), value


def _format_places(places: tuple[QueuePlace, ...]) -> list[dict[str, int]]:
    return [{"queue": queue, "threshold": threshold} for queue, threshold in places]
