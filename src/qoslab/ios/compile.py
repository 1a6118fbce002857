"""The device model to the data plane's configuration (docs/control-protocol.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from qoslab.ios.catalyst.compile import compile_class, compile_port, compile_qos
from qoslab.ios.model.device import AccessEntry, AccessList, AddressMatch, Device, Interface, PortMatch
from qoslab.ios.model.ip_sla import compile_ip_sla
from qoslab.ios.model.policy import Amount, ClassMap, Criterion, Police, PoliceAction, PolicyClass, PolicyMap, Shape
from qoslab.ios.rules import interface_bandwidth_kbps

FORMAT = 1
DEFAULT_LOAD_INTERVAL_S = 300

DEFAULT_CONFORM = (PoliceAction("transmit"),)
DEFAULT_EXCEED = (PoliceAction("drop"),)


NO_ENTRIES: list[dict[str, Any]] = []
"""An access list that a class-map names and nobody has configured: it matches nothing (assumed, not documented)."""


def compile_device(device: Device) -> dict[str, Any]:
    """The configuration of the data plane that does what the device says; plain values, ready for JSON."""
    switch = {} if device.switch is None else {"switch": compile_qos(device.switch)}
    addresses = {name: each.address.ip for name, each in device.interfaces.items() if each.address is not None}
    ip_sla = compile_ip_sla(device.ip_sla, addresses)
    return {
        "format": FORMAT,
        "router": device.hostname,
        "generation": device.generation,
        **switch,
        **({} if device.hardware.process_ns is None else {"process_ns": device.hardware.process_ns}),
        **({} if ip_sla is None else {"ip_sla": ip_sla}),
        "access_lists": {
            **dict.fromkeys(_named_lists(device), NO_ENTRIES),
            **{name: _access_list(each) for name, each in device.access_lists.items()},
        },
        "class_maps": {name: _class_map(each) for name, each in device.class_maps.items()},
        "policy_maps": {name: _policy_map(device, each) for name, each in device.policy_maps.items()},
        "interfaces": {name: _interface(device, each) for name, each in device.interfaces.items()},
    }


def _named_lists(device: Device) -> set[str]:
    """The names of access lists that class-maps refer to."""
    criteria = [criterion for each in device.class_maps.values() for criterion in each.criteria]
    return {each.name for each in criteria if each.type == "access_group" and each.name is not None}


def _access_list(access_list: AccessList) -> list[dict[str, Any]]:
    return [_entry(entry) for entry in access_list.entries]


def _entry(entry: AccessEntry) -> dict[str, Any]:
    return {
        "action": entry.action,
        "protocol": entry.protocol,
        "source": _address(entry.source),
        "destination": _address(entry.destination),
        "source_port": _ports(entry.source_port),
        "destination_port": _ports(entry.destination_port),
        "dscp": entry.dscp,
        "precedence": entry.precedence,
        "established": entry.established,
        "icmp_type": entry.icmp_type,
        "icmp_code": entry.icmp_code,
        "fragments": entry.fragments,
    }


def _address(match: AddressMatch) -> dict[str, str]:
    return {"address": str(match.address), "wildcard": str(match.wildcard)}


def _ports(match: PortMatch | None) -> dict[str, Any] | None:
    return None if match is None else {"op": match.op, "ports": list(match.ports)}


def _class_map(class_map: ClassMap) -> dict[str, Any]:
    return {"match": class_map.match, "criteria": [_criterion(each) for each in class_map.criteria]}


def _criterion(criterion: Criterion) -> dict[str, Any]:
    result: dict[str, Any] = {"type": criterion.type, "negate": criterion.negate}
    match criterion.type:
        case "dscp" | "precedence":
            result |= {"values": list(criterion.values), "ip_only": criterion.ip_only}
        case "cos":
            result["values"] = list(criterion.values)
        case "qos_group":
            result["value"] = criterion.values[0]
        case "packet_length":
            result |= {"min": criterion.minimum, "max": criterion.maximum}
        case "access_group" | "protocol" | "input_interface" | "class_map":
            result["name"] = criterion.name
        case "any":
            pass
    return result


def _policy_map(device: Device, policy_map: PolicyMap) -> dict[str, Any]:
    return {
        "classes": [
            _class(each) | ({} if device.switch is None else compile_class(each)) for each in policy_map.classes
        ]
    }


def _class(policy_class: PolicyClass) -> dict[str, Any]:
    fair_queue = policy_class.fair_queue
    return {
        "name": policy_class.name,
        "set": [{"field": mark.field, "value": mark.value} for mark in policy_class.marks],
        "police": None if policy_class.police is None else _police(policy_class.police),
        "shape": None if policy_class.shape is None else _shape(policy_class.shape),
        "queue_limit": None if policy_class.queue_limit is None else {"packets": policy_class.queue_limit},
        "fair_queue": None if fair_queue is None else {"queues": fair_queue.queues},
        "bandwidth": None
        if policy_class.bandwidth is None
        else {policy_class.bandwidth.unit: policy_class.bandwidth.number},
        "priority": None
        if policy_class.priority is None
        else {
            "unit": policy_class.priority.unit,
            "number": policy_class.priority.number,
            "burst_bytes": policy_class.priority.burst_bytes,
            "level": policy_class.priority.level,
        },
        "random_detect": None
        if policy_class.random_detect is None
        else {
            "basis": policy_class.random_detect.basis,
            "exponential_weight": policy_class.random_detect.exponential_weight,
            "thresholds": [
                {"value": value, "min": each.minimum, "max": each.maximum, "denominator": each.denominator}
                for value, each in policy_class.random_detect.thresholds
            ],
        },
        "service_policy": policy_class.service_policy,
    }


def _amount(amount: Amount | None) -> dict[str, int] | None:
    return None if amount is None else {amount.unit: amount.number}


def _police(police: Police) -> dict[str, Any]:
    return {
        "form": "rate" if police.form == "rate" else "cir",
        "cir": _amount(police.cir),
        "bc": _amount(police.bc),
        "pir": _amount(police.pir),
        "be": _amount(police.be),
        "conform": _actions(DEFAULT_CONFORM if police.conform is None else police.conform),
        "exceed": _actions(DEFAULT_EXCEED if police.exceed is None else police.exceed),
        "violate": None if police.violate is None else _actions(police.violate),
        "dynamic": None if police.dynamic is None else asdict(police.dynamic),
    }


def _actions(actions: tuple[PoliceAction, ...]) -> list[dict[str, Any]]:
    return [
        {"action": each.action} if each.value is None else {"action": each.action, "value": each.value}
        for each in actions
    ]


def _shape(shape: Shape) -> dict[str, Any]:
    return {"mode": shape.mode, "rate": _amount(shape.rate), "bc": _amount(shape.bc), "be": _amount(shape.be)}


def _interface(device: Device, interface: Interface) -> dict[str, Any]:
    serial = interface.serial
    switch = {}
    if interface.port is not None and device.switch is not None:
        switch = {"switch": compile_port(interface.port, device.switch, interface.speed)}
    return {
        "enabled": not interface.shutdown,
        "bandwidth_kbps": interface_bandwidth_kbps(interface),
        "clock_rate_bps": interface.clock_rate_bps,
        "encapsulation": (interface.encapsulation or "hdlc") if serial else "ethernet",
        "load_interval_s": DEFAULT_LOAD_INTERVAL_S if interface.load_interval_s is None else interface.load_interval_s,
        "tx_ring_limit": interface.tx_ring_limit,
        "hold_queue_out": interface.hold_queue_out,
        "fair_queue": None if interface.fair_queue is None else asdict(interface.fair_queue),
        "max_reserved_percent": interface.max_reserved_bandwidth,
        "service_policy_input": interface.service_policy_input,
        "service_policy_output": interface.service_policy_output,
        **switch,
    }
