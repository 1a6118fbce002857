"""`show mls qos`: configured QoS of a Catalyst 3750.

The layout of queueing, queue-set, input-queue and the maps of queues and thresholds is that of printed outputs [C]; the
other layouts are from memory [R].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from qoslab.ios.model.catalyst import (
    DEFAULT_MUTATION,
    FULL_LIMIT,
    IDENTITY,
    InputQueues,
    Place,
    QueueSet,
    SwitchPort,
    SwitchQos,
    TrustState,
)
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.ios_names import spaced

OPERATIONAL_PERCENT = {70: "70.38", FULL_LIMIT: "100.0"}
"""Bandwidth limits as the hardware applies and prints them. No rule is known: other limits are printed unchanged."""
NOT_TRUSTED = "not trusted"


def operational_text(limit: int) -> str:
    """Return the printed operational bandwidth of a port with that limit in percent."""
    return OPERATIONAL_PERCENT.get(limit, f"{limit}.0")


def _text(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)


def show_mls_qos(qos: SwitchQos) -> str:
    """Return `show mls qos`."""
    return _text(
        (
            f"QoS is {'enabled' if qos.enabled else 'disabled'}",
            f"QoS ip packet dscp rewrite is {'enabled' if qos.rewrite_ip_dscp else 'disabled'}",
        )
    )


def _of_ports(device: Device, name: str | None, lines: Callable[[Interface, SwitchPort], Iterable[str]]) -> str:
    """Return the output of all ports, or of one."""
    return _text(
        line
        for interface in device.interfaces.values()
        if interface.port is not None and name in (None, interface.name)
        for line in (interface.name, *lines(interface, interface.port))
    )


def show_interface(device: Device, name: str | None = None) -> str:
    """Return `show mls qos interface [X]`."""
    off = device.switch is not None and not device.switch.enabled

    def lines(interface: Interface, port: SwitchPort) -> Iterator[str]:
        if interface.service_policy_input is not None:
            yield f"Attached policy-map for Ingress: {interface.service_policy_input}"
        if off:
            yield "QoS is disabled. When QoS is enabled, following settings will be applied"
        yield f"trust state: {_trust(port.trusted)}"
        yield f"trust mode: {_trust(port.trust)}"
        # Without a phone the trust does not apply.
        yield f"trust enabled flag: {'dis' if port.trust_device else 'ena'}"
        yield f"COS override: {'ena' if port.cos_override else 'dis'}"
        yield f"default COS: {port.default_cos}"
        yield f"DSCP Mutation Map: {port.dscp_mutation or DEFAULT_MUTATION}"
        yield f"Trust device: {'cisco-phone' if port.trust_device else 'none'}"
        yield f"qos mode: {'vlan-based' if port.vlan_based else 'port-based'}"

    return _of_ports(device, name, lines)


def show_vlan(device: Device, vlan: int) -> str:
    """Return `show mls qos vlan N`. The layout is from memory, not from an output [R]."""
    interface = device.host_interfaces.get(f"Vlan{vlan}")
    lines = [f"Vlan{vlan}"]
    if interface is not None and interface.service_policy_input is not None:
        lines.append(f"Attached policy-map for Ingress:{interface.service_policy_input}")
    return _text(lines)


def _trust(state: TrustState | None) -> str:
    return NOT_TRUSTED if state is None else f"trust {state}"


def show_queueing(device: Device, name: str | None = None) -> str:
    """Return `show mls qos interface [X] queueing`."""

    def lines(interface: Interface, port: SwitchPort) -> Iterator[str]:
        yield f"Egress Priority Queue : {'enabled' if port.priority_queue else 'disabled'}"
        yield f"Shaped queue weights (absolute) :  {spaced(port.shape)}"
        yield f"Shared queue weights  :  {spaced(port.share)}"
        yield f"The port bandwidth limit : {port.limit}  (Operational Bandwidth:{operational_text(port.limit)})"
        yield f"The port is mapped to qset : {port.queue_set}"

    return _of_ports(device, name, lines)


def show_buffers(device: Device, name: str | None = None) -> str:
    """Return `show mls qos interface [X] buffers`."""

    def lines(interface: Interface, port: SwitchPort) -> Iterator[str]:
        yield f"The port is mapped to qset : {port.queue_set}"
        if device.switch is not None:
            buffers = device.switch.queue_sets[port.queue_set - 1].buffers
            yield f"The allocations between the queues are : {spaced(buffers)}"

    return _of_ports(device, name, lines)


def _table(rows: Iterable[tuple[str, Sequence[int]]]) -> Iterator[str]:
    """Yield the rows of a table by queue below its heading."""
    for position, (label, values) in enumerate(rows):
        yield f"{label:<10}:" + "".join(f"{value:8}" for value in values)
        if position == 0:
            yield "-" * 46


def show_queue_set(qos: SwitchQos, number: int | None = None) -> str:
    """Return `show mls qos queue-set [S]`."""
    return _text(
        line
        for each, queue_set in enumerate(qos.queue_sets, 1)
        if number in (None, each)
        for line in (f"Queueset: {each}", *_table(_queue_set_rows(queue_set)))
    )


def _queue_set_rows(queue_set: QueueSet) -> Iterator[tuple[str, Sequence[int]]]:
    yield "Queue", range(1, len(queue_set.buffers) + 1)
    yield "buffers", queue_set.buffers
    yield "threshold1", [each.first for each in queue_set.thresholds]
    yield "threshold2", [each.second for each in queue_set.thresholds]
    yield "reserved", [each.reserved for each in queue_set.thresholds]
    yield "maximum", [each.maximum for each in queue_set.thresholds]


def show_input_queue(queues: InputQueues) -> str:
    """Return `show mls qos input-queue`."""
    numbers = range(1, len(queues.buffers) + 1)
    rows: list[tuple[str, Sequence[int]]] = [
        ("Queue", numbers),
        ("buffers", queues.buffers),
        ("bandwidth", queues.bandwidth),
        ("priority", [queues.priority_bandwidth if queue == queues.priority_queue else 0 for queue in numbers]),
        ("threshold1", [first for first, _ in queues.thresholds]),
        ("threshold2", [second for _, second in queues.thresholds]),
    ]
    return _text(_table(rows))


# Maps.


def _digits(values: Sequence[int]) -> Iterator[str]:
    """Yield a map by code point: a row for each tens digit."""
    yield "     d1 :  d2 0  1  2  3  4  5  6  7  8  9 "
    yield "     " + "-" * 39
    yield from _rows([f"{value:02}" for value in values])


def _rows(cells: Sequence[str]) -> Iterator[str]:
    for tens in range(0, len(cells), 10):
        yield f"      {tens // 10} :    " + "".join(f"{cell} " for cell in cells[tens : tens + 10])


def _places(title: str, places: Sequence[Place]) -> Iterator[str]:
    """Yield the queues and thresholds by code point."""
    yield f"   {title}-threshold map:"
    yield "     d1 :d2    0     1     2     3     4     5     6     7     8     9 "
    yield "     " + "-" * 60
    yield from _rows([f"{queue:02}-{threshold:02}" for queue, threshold in places])


def _places_by_cos(title: str, places: Sequence[Place]) -> Iterator[str]:
    yield f"   {title}-threshold map:"
    yield "              cos:  0   1   2   3   4   5   6   7  "
    yield "              " + "-" * 36
    yield "  queue-threshold: " + "".join(f"{queue}-{threshold} " for queue, threshold in places)


def _dscp_by(title: str, label: str, values: Sequence[int]) -> Iterator[str]:
    yield f"   {title}-dscp map:"
    yield f"{label + ':':>12}   0  1  2  3  4  5  6  7 "
    yield "     " + "-" * 32
    yield f"{'dscp:':>12}  " + "".join(f"{value:2} " for value in values)


def _mutations(qos: SwitchQos, wanted: str | None) -> Iterator[str]:
    yield "   Dscp-dscp mutation map:"
    for name, values in ((DEFAULT_MUTATION, IDENTITY), *qos.mutations):
        if wanted in (None, name):
            yield f"   {name}:"
            yield from _digits(values)


MAPS: dict[str, Callable[[SwitchQos], Iterable[str]]] = {
    "policed-dscp": lambda qos: ("   Policed-dscp map:", *_digits(qos.policed_dscp)),
    "dscp-cos": lambda qos: ("   Dscp-cos map:", *_digits(qos.dscp_cos)),
    "cos-dscp": lambda qos: _dscp_by("Cos", "cos", qos.cos_dscp),
    "ip-prec-dscp": lambda qos: _dscp_by("IpPrecedence", "ipprec", qos.ip_prec_dscp),
    "dscp-output-q": lambda qos: _places("Dscp-outputq", qos.dscp_output),
    "dscp-input-q": lambda qos: _places("Dscp-inputq", qos.dscp_input),
    "cos-output-q": lambda qos: _places_by_cos("Cos-outputq", qos.cos_output),
    "cos-input-q": lambda qos: _places_by_cos("Cos-inputq", qos.cos_input),
    "dscp-mutation": lambda qos: _mutations(qos, None),
}
"""Maps by the name in the command, in the printed order."""


def show_maps(qos: SwitchQos, name: str | None = None, mutation: str | None = None) -> str:
    """Return `show mls qos maps [NAME]`; `mutation` is the name of a mutation map."""
    if mutation is not None:
        return _text(_mutations(qos, mutation))
    return _text(line for each, lines in MAPS.items() if name in (None, each) for line in lines(qos))


# Policies.


def show_aggregate_policers(device: Device, qos: SwitchQos, name: str | None = None) -> str:
    """Return `show mls qos aggregate-policer [NAME]`."""
    lines: list[str] = []
    for each, policer in qos.aggregate_policers:
        if name not in (None, each):
            continue
        lines.append(
            f"aggregate-policer {each} {policer.rate_bps} {policer.burst_bytes} exceed-action {policer.exceed}"
        )
        users = [p.name for p in device.policy_maps.values() if any(c.aggregate == each for c in p.classes)]
        lines.append(f"Used by policy map {spaced(users)}" if users else "Not used by any policy map")
    return _text(lines)
