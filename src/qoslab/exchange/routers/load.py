"""Background load: one flow for each class with packets, at the rates that the routers counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from qoslab.exchange.routers.class_packets import Classifier
from qoslab.exchange.routers.input_router import AttachedInterface, InputRouter
from qoslab.exchange.routers.network import Host, ImportedNetwork
from qoslab.exchange.routers.policy_template import PolicyTemplate
from qoslab.exchange.routers.show_values import ClassCounters
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.model.framing import COUNTED_HEADER
from qoslab.model.metrics import format_prefixed

DEFAULT_LOAD_SHARE = 0.5
"""Load of a line without counters, as a share of its rate or of the shaper's, divided equally among the classes."""
MAX_DEFAULT_BPS = 100_000_000
"""Maximum of this load on a line."""
DEFAULT_TEXT = f"{DEFAULT_LOAD_SHARE:.0%} of the rate, at most {MAX_DEFAULT_BPS // 10**6} Mb/s, in equal parts"
DEFAULT_PACKET = 500
"""Default bytes of IP packets if the counters have no mean size."""
MIN_PACKET_BYTES, MAX_PACKET_BYTES = 64, 1500
MIN_FLOW_BPS = 1000
"""Minimum bits per second of IP; smaller flows are omitted."""
MIN_REMAINING_SHARE = 0.01
"""Share of an interface's rate; a smaller remaining rate gets no additional flow."""
NO_PACKET_FOUND = "no UDP or TCP packet between the hosts of the topology is known to match this class"
MAX_TRIES = 12
"""Maximum number of pairs of hosts that are tried for the packets of a class."""


@dataclass(frozen=True)
class ClassLoad:
    """A flow of the background load."""

    name: str
    source: Host
    destination: Host
    protocol: str
    bps: int
    """Bits of IP packets per second."""
    size: int
    """Bytes of an IP packet."""
    dscp: int
    port: int | None
    reason: str
    """Source of the rate."""


@dataclass
class OfferedLoad:
    """The load of an experiment."""

    flows: list[ClassLoad] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    idle: set[str] = field(default_factory=set)
    """Classes with a counted rate but without packets in the topology."""
    loaded: set[str] = field(default_factory=set)
    """Classes with a flow."""
    classifiers: dict[str, Classifier] = field(default_factory=dict)
    crossing: dict[tuple[str, str], float] = field(default_factory=dict)
    """Rates of the flows in b/s by router and output interface."""

    def add(self, network: ImportedNetwork, flow: ClassLoad) -> None:
        """Add a flow, unless it is too small."""
        if flow.bps < MIN_FLOW_BPS:
            return
        taken = {each.name for each in self.flows}
        names = (flow.name, *(f"{flow.name[:36]}-{number}" for number in range(2, 999)))
        name = next(each for each in names if each not in taken)
        made = ClassLoad(name, *(getattr(flow, each) for each in list(flow.__dataclass_fields__)[1:]))
        self.flows.append(made)
        for _, out in network.path(flow.source, flow.destination):
            key = (out.router, out.carrier)
            self.crossing[key] = self.crossing.get(key, 0) + flow.bps


def offered_load(network: ImportedNetwork, templates: dict[str, PolicyTemplate]) -> OfferedLoad:
    """Return the load: by class, else by interface, else the default load."""
    found = OfferedLoad()
    for name, router in network.routers.items():
        policies = templates[name].policies
        by_class = [each for each in policies if each[1] == "output" and _counted_classes(router, each[0], "output")]
        by_class = by_class or [each for each in policies if _counted_classes(router, each[0], each[1])]
        for attached, direction, policy in by_class:
            _load_by_class(network, router, attached, (direction, policy), found)
    for router in network.routers.values():
        for attached in router.attached:
            _load_by_interface(network, router, attached, found)
    if not found.flows:
        _add_default_load(network, templates, found)
    return found


def _counted_classes(router: InputRouter, attached: AttachedInterface, direction: str) -> list[ClassCounters]:
    """Return the counters of the innermost classes of a policy."""
    own = [
        each
        for each in router.classes
        if each.direction == direction and each.interface in (attached.port, attached.carrier)
    ]
    return [each for each in own if not any(other.path[: len(each.path)] == each.path != other.path for other in own)]


def _load_by_class(
    network: ImportedNetwork,
    router: InputRouter,
    attached: AttachedInterface,
    policy: tuple[str, str],
    found: OfferedLoad,
) -> None:
    direction, name = policy
    header = COUNTED_HEADER[attached.framing]
    for each in _counted_classes(router, attached, direction):
        if each.offered_bps <= 0:
            found.idle.add(each.path[-1])
            continue
        mean = each.bytes // each.packets - header if each.packets else DEFAULT_PACKET
        size = min(max(mean, MIN_PACKET_BYTES), MAX_PACKET_BYTES)
        bps = each.offered_bps * size // (size + header)
        rate, path = format_prefixed(each.offered_bps, "b/s"), "/".join(each.path)
        about = f"show policy-map interface: {rate} of {path} on {attached.port} {direction}"
        flow = _class_flow(network, router, attached, (direction, name, each.path), (bps, size, about), found)
        if flow is None:
            found.idle.add(each.path[-1])
            found.notes.append(
                f"{router.name} {attached.port} {direction}: {rate} of class {path} are left out: {NO_PACKET_FOUND}"
            )
        else:
            found.add(network, flow)
            found.loaded.add(each.path[-1])


def _load_by_interface(
    network: ImportedNetwork, router: InputRouter, attached: AttachedInterface, found: OfferedLoad
) -> None:
    counters = router.interfaces.get(attached.port) or router.interfaces.get(attached.carrier)
    bps = 0 if counters is None else counters.rates_bps.get("output", 0)
    if counters is None or not bps or _counted_classes(router, attached, "output"):
        return
    packets = counters.packet_rates.get("output", 0)
    header = COUNTED_HEADER[attached.framing]
    size = min(max(bps // 8 // packets - header if packets else DEFAULT_PACKET, MIN_PACKET_BYTES), MAX_PACKET_BYTES)
    rest = bps * size / (size + header) - found.crossing.get((router.name, attached.carrier), 0)
    if rest < bps * MIN_REMAINING_SHARE:
        return
    about = f"show interfaces: {counters.period} output rate {format_prefixed(bps, 'b/s')} of {attached.port}"
    pair = next(_host_pairs(network, attached, "output"), None)
    if pair is None:
        found.notes.append(
            f"{router.name} {attached.port}: {format_prefixed(bps, 'b/s')} are left out: no host sends to it"
        )
        return
    found.add(network, ClassLoad(_flow_name(attached, ()), *pair, "udp", int(rest), size, 0, None, about))


def _add_default_load(network: ImportedNetwork, templates: dict[str, PolicyTemplate], found: OfferedLoad) -> None:
    """Add half of the rate of each line with a policy, or of the first line, divided equally among its classes."""
    policies = [each for template in templates.values() for each in template.policies if each[1] == "output"]
    policies = policies or [each for template in templates.values() for each in template.policies]
    about = "default, no counters in the input"
    for attached, direction, name in policies:
        router = network.routers[attached.router]
        leaves = list(_innermost_classes(router.configuration.device, name))
        port = router.layout.ports.get(attached.port)
        kbps = port.last_match(r"bandwidth (\d+)$") if port is not None else None
        rate = min(
            _default_shaper_rate(router.configuration.device, name), attached.rate.bps, int(kbps or 10**9) * 1000
        )
        share = int(min(rate * DEFAULT_LOAD_SHARE, MAX_DEFAULT_BPS)) // max(len(leaves), 1)
        for path in leaves:
            flow = _class_flow(
                network, router, attached, (direction, name, path), (share, DEFAULT_PACKET, about), found
            )
            if flow is not None:
                found.add(network, flow)
                found.loaded.add(path[-1])
            else:
                found.idle.add(path[-1])
                found.notes.append(f"{router.name}: class {'/'.join(path)} of {name} has no load: {NO_PACKET_FOUND}")
    if not found.flows:
        slowest = sorted(network.hosts, key=lambda each: (each.at.rate, not _has_default_route_to_host(network, each)))
        pairs = (pair for each in slowest for pair in _host_pairs(network, each.at, "output"))
        source, destination = next(pairs)
        bps = int(min(source.at.rate.bps, destination.at.rate.bps) * DEFAULT_LOAD_SHARE)
        at = destination.at
        name = _flow_name(at, ())
        bps = min(max(bps, MIN_FLOW_BPS), MAX_DEFAULT_BPS)
        found.add(network, ClassLoad(name, source, destination, "udp", bps, DEFAULT_PACKET, 0, None, about))
    found.notes.append(f"no counters in the input: the load is {DEFAULT_TEXT} for the classes")


def _has_default_route_to_host(network: ImportedNetwork, host: Host) -> bool:
    """Return whether the default route of a router leads to a host."""
    routes = network.routers[host.at.router].layout.routes
    own = [each for each in routes if each.prefix.prefixlen == 0]
    return any(each.via in host.at.address.network if each.via else each.port == host.at.port for each in own)


def _default_shaper_rate(device: Device, policy: str) -> float:
    """Return the rate of the shaper of class-default; infinite without a shaper."""
    each = device.policy_maps[policy].find(CLASS_DEFAULT) if policy in device.policy_maps else None
    shape = None if each is None else each.shape
    return shape.rate.number if shape is not None and shape.rate.unit == "bps" else float("inf")


def _innermost_classes(device: Device, name: str, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    policy = device.policy_maps.get(name)
    for each in () if policy is None or len(above) > 3 else policy.classes:
        if each.service_policy in device.policy_maps and each.service_policy is not None:
            yield from _innermost_classes(device, each.service_policy, (*above, each.name))
        else:
            yield (*above, each.name)
    if policy is not None and policy.find(CLASS_DEFAULT) is None and not above:
        yield (CLASS_DEFAULT,)


def _class_flow(
    network: ImportedNetwork,
    router: InputRouter,
    attached: AttachedInterface,
    place: tuple[str, str, tuple[str, ...]],
    rate: tuple[int, int, str],
    offered: OfferedLoad,
) -> ClassLoad | None:
    """Return a flow of packets of a class; None if no packet between two hosts belongs to it.

    `place` is direction, policy-map and classes; `rate` is b/s, bytes of a packet and the source of both.
    """
    direction, policy, path = place
    bps, size, reason = rate
    classifier = offered.classifiers.setdefault(router.name, Classifier(router.configuration.device))
    for source, destination in islice(_host_pairs(network, attached, direction), MAX_TRIES):
        taken = {each.port for each in offered.flows if each.destination is destination}
        entered = next((into for into, out in network.path(source, destination) if attached in (into, out)), source.at)
        port = router.layout.ports.get(entered.port)
        marking = port.policies.get("input", "") if port is not None and direction == "output" else ""
        ends = (source.address.ip, destination.address.ip)
        packet = classifier.find_packet((policy, path), ends, size, taken, (entered.carrier, marking))
        if packet is not None:
            name = _flow_name(attached, path)
            return ClassLoad(name, source, destination, packet.protocol, bps, size, packet.dscp, packet.port, reason)
    return None


def _host_pairs(network: ImportedNetwork, attached: AttachedInterface, direction: str) -> Iterator[tuple[Host, Host]]:
    """Yield sources and destinations whose packets leave or enter by an interface, nearest hosts first."""
    near = sorted(network.hosts, key=lambda each: each.at.router != attached.router)
    here = [each for each in near if each.at == attached]
    for one in here or near:
        for other in near:
            source, destination = (other, one) if direction == "output" else (one, other)
            if source is destination:
                continue
            path = network.path(source, destination)
            if any(attached == (out if direction == "output" else entered) for entered, out in path):
                yield source, destination


def _flow_name(attached: AttachedInterface, path: tuple[str, ...]) -> str:
    parts = [path[-1] if path else "load", attached.carrier if not path else ""]
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", "-".join(each for each in parts if each))[:36]
    return name if name[:1].isalpha() else f"class-{name}"[:36]
