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
    QueuePlace,
    QueueSet,
    SwitchPort,
    SwitchQos,
    TrustState,
)
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.ios_names import join_with_blanks
from qoslab.ios.show import join_lines

OPERATIONAL_PERCENT = {70: "70.38", FULL_LIMIT: "100.0"}
"""Bandwidth limits as the hardware applies and prints them. No rule is known: other limits are printed unchanged."""
NOT_TRUSTED = "not trusted"


def operational_text(limit: int) -> str:
    """Return the printed operational bandwidth of a port with that limit in percent."""
    return OPERATIONAL_PERCENT.get(limit, f"{limit}.0")


def show_mls_qos(qos: SwitchQos) -> str:
    """Return `show mls qos`."""
    return join_lines(
        (
            f"QoS is {'enabled' if qos.enabled else 'disabled'}",
            f"QoS ip packet dscp rewrite is {'enabled' if qos.rewrite_ip_dscp else 'disabled'}",
        )
    )


def _all_port_lines(device: Device, name: str | None, lines: Callable[[Interface, SwitchPort], Iterable[str]]) -> str:
    """Return the output of all ports, or of one."""
    return join_lines(
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
        yield f"trust state: {_trust_text(port.effective_trust)}"
        yield f"trust mode: {_trust_text(port.trust)}"
        # Without a phone the trust does not apply.
        yield f"trust enabled flag: {'dis' if port.trust_device else 'ena'}"
        yield f"COS override: {'ena' if port.cos_override else 'dis'}"
        yield f"default COS: {port.default_cos}"
        yield f"DSCP Mutation Map: {port.dscp_mutation or DEFAULT_MUTATION}"
        yield f"Trust device: {'cisco-phone' if port.trust_device else 'none'}"
        yield f"qos mode: {'vlan-based' if port.vlan_based else 'port-based'}"

    return _all_port_lines(device, name, lines)


def show_vlan(device: Device, vlan: int) -> str:
    """Return `show mls qos vlan N`. The layout is from memory, not from an output [R]."""
    interface = device.host_interfaces.get(f"Vlan{vlan}")
    lines = [f"Vlan{vlan}"]
    if interface is not None and interface.service_policy_input is not None:
        lines.append(f"Attached policy-map for Ingress:{interface.service_policy_input}")
    return join_lines(lines)


def _trust_text(state: TrustState | None) -> str:
    return NOT_TRUSTED if state is None else f"trust {state}"


def show_queueing(device: Device, name: str | None = None) -> str:
    """Return `show mls qos interface [X] queueing`."""

    def lines(interface: Interface, port: SwitchPort) -> Iterator[str]:
        yield f"Egress Priority Queue : {'enabled' if port.priority_queue else 'disabled'}"
        yield f"Shaped queue weights (absolute) :  {join_with_blanks(port.shape)}"
        yield f"Shared queue weights  :  {join_with_blanks(port.share)}"
        yield f"The port bandwidth limit : {port.limit}  (Operational Bandwidth:{operational_text(port.limit)})"
        yield f"The port is mapped to qset : {port.queue_set}"

    return _all_port_lines(device, name, lines)


def show_buffers(device: Device, name: str | None = None) -> str:
    """Return `show mls qos interface [X] buffers`."""

    def lines(interface: Interface, port: SwitchPort) -> Iterator[str]:
        yield f"The port is mapped to qset : {port.queue_set}"
        if device.switch is not None:
            buffers = device.switch.queue_sets[port.queue_set - 1].buffers
            yield f"The allocations between the queues are : {join_with_blanks(buffers)}"

    return _all_port_lines(device, name, lines)


def _queue_table(rows: Iterable[tuple[str, Sequence[int]]]) -> Iterator[str]:
    """Yield the rows of a table by queue below its heading."""
    for position, (label, values) in enumerate(rows):
        yield f"{label:<10}:" + "".join(f"{value:8}" for value in values)
        if position == 0:
            yield "-" * 46


def show_queue_set(qos: SwitchQos, number: int | None = None) -> str:
    """Return `show mls qos queue-set [S]`."""
    return join_lines(
        line
        for each, queue_set in enumerate(qos.queue_sets, 1)
        if number in (None, each)
        for line in (f"Queueset: {each}", *_queue_table(_queue_set_rows(queue_set)))
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
    return join_lines(_queue_table(rows))


# Maps.


def _digit_table(values: Sequence[int]) -> Iterator[str]:
    """Yield a map by code point: a row for each tens digit."""
    yield "     d1 :  d2 0  1  2  3  4  5  6  7  8  9 "
    yield "     " + "-" * 39
    yield from _table_rows([f"{value:02}" for value in values])


def _table_rows(cells: Sequence[str]) -> Iterator[str]:
    for tens in range(0, len(cells), 10):
        yield f"      {tens // 10} :    " + "".join(f"{cell} " for cell in cells[tens : tens + 10])


def _place_table(title: str, places: Sequence[QueuePlace]) -> Iterator[str]:
    """Yield the queues and thresholds by code point."""
    yield f"   {title}-threshold map:"
    yield "     d1 :d2    0     1     2     3     4     5     6     7     8     9 "
    yield "     " + "-" * 60
    yield from _table_rows([f"{queue:02}-{threshold:02}" for queue, threshold in places])


def _place_table_by_cos(title: str, places: Sequence[QueuePlace]) -> Iterator[str]:
    yield f"   {title}-threshold map:"
    yield "              cos:  0   1   2   3   4   5   6   7  "
    yield "              " + "-" * 36
    yield "  queue-threshold: " + "".join(f"{queue}-{threshold} " for queue, threshold in places)


def _dscp_table(title: str, label: str, values: Sequence[int]) -> Iterator[str]:
    yield f"   {title}-dscp map:"
    yield f"{label + ':':>12}   0  1  2  3  4  5  6  7 "
    yield "     " + "-" * 32
    yield f"{'dscp:':>12}  " + "".join(f"{value:2} " for value in values)


def _mutation_tables(qos: SwitchQos, wanted: str | None) -> Iterator[str]:
    yield "   Dscp-dscp mutation map:"
    for name, values in ((DEFAULT_MUTATION, IDENTITY), *qos.mutations):
        if wanted in (None, name):
            yield f"   {name}:"
            yield from _digit_table(values)


MAPS: dict[str, Callable[[SwitchQos], Iterable[str]]] = {
    "policed-dscp": lambda qos: ("   Policed-dscp map:", *_digit_table(qos.policed_dscp)),
    "dscp-cos": lambda qos: ("   Dscp-cos map:", *_digit_table(qos.dscp_cos)),
    "cos-dscp": lambda qos: _dscp_table("Cos", "cos", qos.cos_dscp),
    "ip-prec-dscp": lambda qos: _dscp_table("IpPrecedence", "ipprec", qos.ip_prec_dscp),
    "dscp-output-q": lambda qos: _place_table("Dscp-outputq", qos.dscp_output),
    "dscp-input-q": lambda qos: _place_table("Dscp-inputq", qos.dscp_input),
    "cos-output-q": lambda qos: _place_table_by_cos("Cos-outputq", qos.cos_output),
    "cos-input-q": lambda qos: _place_table_by_cos("Cos-inputq", qos.cos_input),
    "dscp-mutation": lambda qos: _mutation_tables(qos, None),
}
"""Maps by the name in the command, in the printed order."""


def show_maps(qos: SwitchQos, name: str | None = None, mutation: str | None = None) -> str:
    """Return `show mls qos maps [NAME]`; `mutation` is the name of a mutation map."""
    if mutation is not None:
        return join_lines(_mutation_tables(qos, mutation))
    return join_lines(line for each, lines in MAPS.items() if name in (None, each) for line in lines(qos))


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
        lines.append(f"Used by policy map {join_with_blanks(users)}" if users else "Not used by any policy map")
    return join_lines(lines)
