"""Hypothesis strategies for the device model.

Frequently used strategies are cached: Hypothesis stores the properties of a strategy (whether it is empty, its draws)
with the object, and recognises equal strategies only by hashable arguments, hence tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.commands.class_map import PROTOCOLS
from qoslab.ios.commands.routing import route_order
from qoslab.ios.model.device import (
    AccessEntry,
    AccessGroups,
    AccessList,
    Device,
    Generation,
    Hardware,
    Interface,
    InterfaceFairQueue,
    Line,
    Remark,
    StaticRoute,
    User,
)
from qoslab.ios.model.engine_defaults import DYNAMIC_INITIAL_BYTES, DYNAMIC_MINIMUM_BYTES
from qoslab.ios.model.interface_queueing import CustomList, CustomQueue, PriorityList, QueueRule, Shaper
from qoslab.ios.model.matches import AddressMatch, PortMatch
from qoslab.ios.model.object_groups import NetworkObject, ObjectGroup, ServiceObject
from qoslab.ios.model.password_hash import hash_password
from qoslab.ios.model.policy import (
    CLASS_DEFAULT,
    Amount,
    Bandwidth,
    ClassMap,
    Criterion,
    DynamicBucket,
    FairQueue,
    Mark,
    Police,
    PoliceAction,
    PolicyClass,
    PolicyMap,
    Priority,
    QueueLimit,
    RandomDetect,
    RedThresholds,
    Shape,
)
from qoslab.ios.model.rate_limit import LimitAction, RateLimit, RateLimitList
from qoslab.ios.rules import check_attachment, check_children, check_policy

T = TypeVar("T")

PORTS = ("FastEthernet0/0", "FastEthernet0/1", "Serial0/0", "Serial0/1")
CLASSES = ("Alpha", "bulk", "Voice", "WEB-1")
POLICIES = ("Child", "Edge", "police", "WAN")
SECRETS = tuple(hash_password(password) for password in ("cisco", "lab"))


def hardware(generation: Generation = "classic") -> Hardware:
    return Hardware("3725", PORTS, generation, "12.4" if generation == "classic" else "15.1")


def composite_strategy(function: Callable[..., T]) -> Callable[..., SearchStrategy[T]]:
    """Return a decorator like `st.composite` that caches the strategy of the same arguments, including the properties
    that Hypothesis has computed.
    """
    make = st.composite(function)
    made_before = lru_cache(256)(make)

    def made(*arguments: Any) -> SearchStrategy[T]:
        try:
            return made_before(*arguments)
        except TypeError:  # a list or dictionary, which may be another one soon
            return make(*arguments)

    return made


@lru_cache(1024)
def optional(strategy: SearchStrategy[T]) -> SearchStrategy[T | None]:
    return st.none() | strategy


texts = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 .,;:/#-]{0,20}[A-Za-z0-9]", fullmatch=True)
dscps = st.integers(0, 63)
precedences = st.integers(0, 7)


@lru_cache(64)
def distinct_lists(values: SearchStrategy[int], most: int) -> SearchStrategy[tuple[int, ...]]:
    return st.lists(values, min_size=1, max_size=most, unique=True).map(tuple)


@composite_strategy
def address_matches(draw: DrawFn) -> AddressMatch:
    wildcard = draw(st.sampled_from((0, 0xFF, 0xFFFF, 0x1, 0xFFFFFFFF)))
    address = draw(st.integers(0, 0xFFFFFFFF)) & ~wildcard & 0xFFFFFFFF
    return AddressMatch(IPv4Address(address), IPv4Address(wildcard))


@composite_strategy
def ipv6_matches(draw: DrawFn) -> AddressMatch:
    network = IPv6Network((draw(st.integers(0, (1 << 128) - 1)), draw(st.integers(0, 128))), strict=False)
    return AddressMatch(network.network_address, network.hostmask)


ports = st.integers(0, 65535) | st.sampled_from((80, 53, 23, 514, 5001))


@composite_strategy
def port_matches(draw: DrawFn) -> PortMatch:
    op = draw(st.sampled_from(("eq", "neq", "gt", "lt", "range")))
    if op in ("eq", "neq"):
        return PortMatch(op, draw(distinct_lists(ports, 4)))  # type: ignore[arg-type]
    if op == "range":
        return PortMatch("range", tuple(sorted((draw(ports), draw(ports)))))
    return PortMatch(op, (draw(ports),))  # type: ignore[arg-type]


@composite_strategy
def extended_entries(draw: DrawFn) -> AccessEntry:
    protocol = draw(st.sampled_from((None, 6, 17, 1, 47, 89, 200)))
    has_ports, icmp = protocol in (6, 17), draw(st.sampled_from(((None, None), (8, None), (3, 1), (3, None), (200, 7))))
    source, destination = (draw(optional(port_matches())) if has_ports else None for _ in range(2))
    return AccessEntry(
        action=draw(st.sampled_from(("permit", "deny"))),
        protocol=protocol,
        source=draw(address_matches()),
        destination=draw(address_matches()),
        source_port=source,
        destination_port=destination,
        icmp_type=icmp[0] if protocol == 1 else None,
        icmp_code=icmp[1] if protocol == 1 else None,
        established=protocol == 6 and draw(st.booleans()),
        dscp=draw(optional(dscps)),
        precedence=draw(optional(precedences)),
        fragments=not (source or destination) and draw(st.booleans()),
        log=draw(st.booleans()),
    )


@composite_strategy
def ipv6_entries(draw: DrawFn) -> AccessEntry:
    protocol = draw(st.sampled_from((None, 6, 17, 58, 132, 89)))
    has_ports = protocol in (6, 17)
    icmp = draw(st.sampled_from(((None, None), (128, None), (1, 4), (4, None), (200, 7))))
    source, destination = (draw(optional(port_matches())) if has_ports else None for _ in range(2))
    return AccessEntry(
        action=draw(st.sampled_from(("permit", "deny"))),
        protocol=protocol,
        source=draw(ipv6_matches()),
        destination=draw(ipv6_matches()),
        source_port=source,
        destination_port=destination,
        icmp_type=icmp[0] if protocol == 58 else None,
        icmp_code=icmp[1] if protocol == 58 else None,
        established=protocol == 6 and draw(st.booleans()),
        dscp=draw(optional(dscps)),
        fragments=not (source or destination) and draw(st.booleans()),
        log=draw(st.booleans()),
    )


standard_entries = st.builds(
    AccessEntry, action=st.sampled_from(("permit", "deny")), source=address_matches(), log=st.booleans()
)
remarks = st.builds(Remark, texts)
standard_lines, extended_lines, ipv6_lines = (
    remarks | entries for entries in (standard_entries, extended_entries(), ipv6_entries())
)


@composite_strategy
def access_lists(draw: DrawFn) -> dict[str, AccessList]:
    names = draw(st.lists(st.sampled_from(("1", "1399", "101", "2001", "Hosts", "P5001")), unique=True))
    lists = {}
    for name in names:
        standard = name in ("1", "1399", "Hosts")
        lines = standard_lines if standard else extended_lines
        # A numbered list exists only while it has lines.
        least = 1 if name.isdigit() else 0
        content = draw(st.lists(lines, min_size=least, max_size=4, unique=True))
        lists[name] = AccessList(name, "standard" if standard else "extended", tuple(content))
    return lists


@composite_strategy
def ipv6_access_lists(draw: DrawFn) -> dict[str, AccessList]:
    lists = {}
    for name in draw(st.lists(st.sampled_from(("V6", "Voice6")), unique=True)):
        lists[name] = AccessList(name, "ipv6", tuple(draw(st.lists(ipv6_lines, max_size=4, unique=True))))
    return lists


@lru_cache(64)
def criteria(known: tuple[str, ...]) -> SearchStrategy[Criterion]:
    negate = st.booleans()
    kinds: list[SearchStrategy[Criterion]] = [
        st.builds(Criterion, st.just("any"), negate),
        st.builds(Criterion, st.just("access_group"), negate, name=st.sampled_from(("7", "101", "P5001", "V6"))),
        st.builds(Criterion, st.just("dscp"), negate, values=distinct_lists(dscps, 8), ip_only=st.booleans()),
        st.builds(
            Criterion, st.just("precedence"), negate, values=distinct_lists(precedences, 4), ip_only=st.booleans()
        ),
        st.builds(Criterion, st.just("cos"), negate, values=distinct_lists(precedences, 4)),
        st.builds(Criterion, st.just("protocol"), negate, name=st.sampled_from(PROTOCOLS)),
        st.builds(Criterion, st.just("packet_length"), negate, minimum=st.integers(1, 100)),
        st.builds(
            Criterion, st.just("packet_length"), negate, minimum=optional(st.just(64)), maximum=st.integers(64, 2000)
        ),
        st.builds(Criterion, st.just("input_interface"), negate, name=st.sampled_from(PORTS)),
        st.builds(Criterion, st.just("qos_group"), negate, values=distinct_lists(st.integers(0, 99), 1)),
    ]
    if known:
        kinds.append(st.builds(Criterion, st.just("class_map"), negate, name=st.sampled_from(known)))
    return st.one_of(kinds)


@composite_strategy
def class_maps(draw: DrawFn) -> dict[str, ClassMap]:
    maps: dict[str, ClassMap] = {}
    for name in draw(st.lists(st.sampled_from(CLASSES), unique=True)):
        matches = tuple(draw(st.lists(criteria(tuple(maps)), max_size=3, unique=True)))
        maps[name] = ClassMap(name, draw(st.sampled_from(("all", "any"))), matches, draw(optional(texts)))
    return maps


_MARKED = {
    "set-dscp-transmit": dscps,
    "set-prec-transmit": precedences,
    "set-qos-transmit": st.integers(0, 99),
    "set-cos-transmit": precedences,
}


@composite_strategy
def actions(draw: DrawFn) -> tuple[PoliceAction, ...]:
    if draw(st.booleans()):
        return (PoliceAction(draw(st.sampled_from(("transmit", "drop")))),)
    chosen = draw(st.sets(st.sampled_from(tuple(_MARKED)), min_size=1))
    return tuple(PoliceAction(name, draw(_MARKED[name])) for name in _MARKED if name in chosen)  # type: ignore[arg-type]


@composite_strategy
def polices(draw: DrawFn) -> Police:
    form = draw(st.sampled_from(("bps", "cir", "rate")))
    percent = form != "bps" and draw(st.booleans())
    cir, more = (draw(st.integers(1, 50)), 50) if percent else (draw(st.integers(8000, 10**9)), 10**9)
    unit, burst_unit = ("percent", "ms") if percent else ("bps", "bytes")
    bursts = st.integers(1, 2000) if percent else st.integers(1000, 512_000_000)
    bc = draw(optional(bursts))
    pir = None if form == "bps" else draw(optional(st.integers(cir, cir + more)))
    needs = {"bps": bc is not None, "cir": True, "rate": pir is not None}[form]
    be = draw(optional(bursts)) if needs else None
    violate = draw(optional(actions()))
    # A dynamic bucket is the only bucket of its policer.
    alone = (bc, pir, be, violate) == (None, None, None, None)
    return Police(
        form,  # type: ignore[arg-type]
        Amount(cir, unit),  # type: ignore[arg-type]
        None if bc is None else Amount(bc, burst_unit),  # type: ignore[arg-type]
        None if pir is None else Amount(pir, unit),  # type: ignore[arg-type]
        None if be is None else Amount(be, burst_unit),  # type: ignore[arg-type]
        draw(optional(actions())),
        draw(optional(actions())),
        violate,
        draw(optional(dynamic_buckets())) if alone else None,
    )


@cache
def dynamic_buckets() -> st.SearchStrategy[DynamicBucket]:
    sizes, times, shares = st.integers(1518, 512_000_000), st.integers(1, 60_000), st.integers(1, 99)
    kinds = (sizes, sizes, sizes, times, times, shares, shares, shares, shares, shares)
    buckets = st.builds(DynamicBucket, *(optional(kind) for kind in kinds))
    return buckets.filter(_is_ordered)


def _is_ordered(bucket: DynamicBucket) -> bool:
    """Return whether the initial size is between the minimum and the maximum, with the defaults."""
    initial = DYNAMIC_INITIAL_BYTES if bucket.initial_bytes is None else bucket.initial_bytes
    minimum = DYNAMIC_MINIMUM_BYTES if bucket.minimum_bytes is None else bucket.minimum_bytes
    return minimum <= initial <= (initial if bucket.maximum_bytes is None else bucket.maximum_bytes)


@composite_strategy
def shapes(draw: DrawFn) -> Shape:
    percent = draw(st.booleans())
    rate = draw(st.integers(1, 100) if percent else st.integers(8000, 154_400_000))
    burst = st.integers(10, 2000) if percent else st.integers(256, 154_400_000)
    bc, be = draw(optional(burst)), draw(optional(burst))
    unit = "ms" if percent else "bits"
    return Shape(
        draw(st.sampled_from(("average", "peak"))),
        Amount(rate, "percent" if percent else "bps"),
        None if bc is None else Amount(bc, unit),  # type: ignore[arg-type]
        None if bc is None or be is None else Amount(be, unit),  # type: ignore[arg-type]
    )


@composite_strategy
def marks(draw: DrawFn) -> tuple[Mark, ...]:
    found = []
    field = draw(st.sampled_from((None, "dscp", "ip_dscp", "precedence", "ip_precedence")))
    if field is not None:
        value = draw(dscps if field.endswith("dscp") else precedences)
        found.append(Mark(field, value))  # type: ignore[arg-type]
    if draw(st.booleans()):
        found.append(Mark("cos", draw(precedences)))
    if draw(st.booleans()):
        found.append(Mark("qos_group", draw(st.integers(0, 99))))
    return tuple(found)


@composite_strategy
def bandwidths(draw: DrawFn, unit: str) -> Bandwidth:
    # Small shares, so that most policies can be attached; the others are distinguished below.
    most = {"kbps": 200, "percent": 20, "remaining_percent": 30, "remaining_ratio": 1000}[unit]
    return Bandwidth(unit, draw(st.integers(8 if unit == "kbps" else 1, most)))  # type: ignore[arg-type]


@composite_strategy
def priorities(draw: DrawFn, generation: Generation) -> Priority:
    unit = draw(st.sampled_from(("strict", "kbps", "percent")))
    if unit == "strict":
        return Priority(level=draw(optional(st.integers(1, 2))) if generation == "hqf" else None)
    number = draw(st.integers(8, 100) if unit == "kbps" else st.integers(1, 20))
    return Priority(unit, number, draw(optional(st.integers(32, 2_000_000))))  # type: ignore[arg-type]


@composite_strategy
def random_detects(draw: DrawFn) -> RandomDetect:
    basis = draw(st.sampled_from(("precedence", "dscp")))
    values = draw(st.sets(dscps if basis == "dscp" else precedences, max_size=3))
    thresholds = []
    for value in sorted(values):
        low, high = sorted(draw(st.tuples(st.integers(1, 4096), st.integers(1, 4096))))
        thresholds.append((value, RedThresholds(low, high, draw(optional(st.integers(1, 65535))))))
    return RandomDetect(basis, draw(optional(st.integers(1, 16))), draw(st.booleans()), thresholds=tuple(thresholds))  # type: ignore[arg-type]


@composite_strategy
def policy_classes(
    draw: DrawFn, name: str, generation: Generation, children: tuple[str, ...], unit: str, queues: bool
) -> PolicyClass:
    default = name == CLASS_DEFAULT
    kind = draw(st.sampled_from((None, "bandwidth", "priority"))) if queues else None
    bandwidth = draw(bandwidths(unit)) if kind == "bandwidth" else None
    priority = draw(priorities(generation)) if kind == "priority" and not default else None
    fair = ((default and bandwidth is None) or generation == "hqf") and priority is None
    shape = draw(optional(shapes())) if queues and priority is None else None
    early = queues and (default or bandwidth is not None or shape is not None)
    return PolicyClass(
        name,
        bandwidth=bandwidth,
        priority=priority,
        shape=shape,
        shape_buffers=draw(optional(st.integers(1, 4096))) if shape is not None and generation == "classic" else None,
        police=draw(optional(polices())),
        fair_queue=draw(optional(st.builds(FairQueue, optional(st.sampled_from((16, 256, 4096))))))
        if fair and queues
        else None,
        queue_limit=draw(optional(st.builds(QueueLimit, st.integers(1, 4096)))) if queues else None,
        random_detect=draw(optional(random_detects())) if early else None,
        marks=draw(marks()),
        service_policy=draw(optional(st.sampled_from(children))) if children else None,
    )


@composite_strategy
def policy_maps(draw: DrawFn, generation: Generation, classes: tuple[str, ...]) -> dict[str, PolicyMap]:
    maps: dict[str, PolicyMap] = {}
    depth: dict[str, int] = {}
    units = ("kbps", "percent", "remaining_percent", *(("remaining_ratio",) if generation == "hqf" else ()))
    for name in draw(st.lists(st.sampled_from(POLICIES), unique=True)):
        chosen = draw(st.lists(st.sampled_from(classes), unique=True, max_size=3)) if classes else []
        if draw(st.booleans()):
            chosen.append(CLASS_DEFAULT)
        unit, queues = draw(st.sampled_from(units)), draw(st.booleans())
        below = tuple(each for each in maps if depth[each] < 3)
        content = tuple(draw(policy_classes(each, generation, below, unit, queues)) for each in chosen)
        policy = PolicyMap(name, content, draw(optional(texts)))
        device = Device(hardware(generation), policy_maps=maps)
        check_policy(device, policy)
        try:
            check_children(device, policy)
        except RejectedError:
            policy = replace(policy, classes=tuple(replace(each, service_policy=None) for each in content))
            content = policy.classes
        maps[name] = policy
        depth[name] = 1 + max((depth[each.service_policy] for each in content if each.service_policy), default=0)
    return maps


def _carried_interfaces(
    generation: Generation, interface: Interface, maps: dict[str, PolicyMap], direction: str
) -> list[str]:
    """Return the policy-maps that the interface can carry."""
    device, found = Device(hardware(generation), policy_maps=maps), []
    for policy in maps.values():
        try:
            check_attachment(device, policy, interface, direction)
        except RejectedError:
            continue
        found.append(policy.name)
    return found


@composite_strategy
def fair_queues(draw: DrawFn, generation: Generation, serial: bool) -> InterfaceFairQueue:
    if serial and draw(st.booleans()):
        return InterfaceFairQueue(enabled=False)
    if generation == "hqf":
        return InterfaceFairQueue()
    powers = st.sampled_from((16, 64, 4096))
    values = draw(st.lists(powers, max_size=2))
    if len(values) == 2 and draw(st.booleans()):
        values.append(draw(st.integers(0, 1000)))
    return InterfaceFairQueue(True, *values)


limit_actions = st.builds(LimitAction, st.sampled_from(("transmit", "drop", "continue"))) | st.builds(
    LimitAction, st.sampled_from(("transmit", "continue")), st.sampled_from(("dscp", "prec", "qos")), precedences
)


@composite_strategy
def rate_limits(draw: DrawFn) -> tuple[RateLimit, ...]:
    kinds = (("all", 0), ("access-group", 101), ("rate-limit", 5), ("dscp", 46), ("qos-group", 9))
    made: list[RateLimit] = []
    for match, number in draw(st.lists(st.sampled_from(kinds), max_size=3)):
        rate, normal = draw(st.integers(8_000, 2_000_000)), draw(st.integers(1_000, 512_000_000))
        direction = draw(st.sampled_from(("input", "output")))
        extended = draw(st.integers(2_000, 1_024_000_000))
        conform, exceed = draw(limit_actions), draw(limit_actions)
        line = RateLimit(direction, match, number, rate, normal, extended, conform, exceed)  # type: ignore[arg-type]
        if line not in made:
            made.append(line)
    return tuple(sorted(made, key=lambda each: each.direction))


@composite_strategy
def rate_limit_lists(draw: DrawFn) -> dict[int, RateLimitList]:
    numbers = draw(st.lists(st.integers(0, 99), max_size=2, unique=True))
    return {number: RateLimitList(number, *draw(_one_or_mask)) for number in numbers}


_one_or_mask = st.tuples(precedences, st.none()) | st.tuples(st.none(), st.integers(0, 255))


@composite_strategy
def queue_rules(draw: DrawFn, queues: int) -> tuple[QueueRule, ...]:
    kinds = ((None, 0), ("fragments", 0), ("gt", 700), ("list", 101), ("tcp", 80), ("udp", 9))
    rules: list[QueueRule] = []
    for kind, value in draw(st.lists(st.sampled_from(kinds), max_size=3, unique=True)):
        protocol = draw(st.sampled_from(("ip", "ipv6", "arp", "cdp")))
        rules.append(QueueRule(draw(st.integers(0, queues - 1)), protocol, kind=kind, value=value))  # type: ignore[arg-type]
    if draw(st.booleans()):
        rules.append(QueueRule(draw(st.integers(0, queues - 1)), None, "Serial0/1"))
    return tuple(rules)


@composite_strategy
def priority_lists(draw: DrawFn) -> dict[int, PriorityList]:
    lists = {}
    for number in draw(st.lists(st.integers(1, 16), max_size=2, unique=True)):
        limits = draw(optional(st.tuples(*[st.integers(0, 32767)] * 4)))
        made = PriorityList(number, draw(queue_rules(4)), draw(optional(st.integers(0, 3))), limits)
        if made != PriorityList(number):
            lists[number] = made
    return lists


_queue_values = st.tuples(optional(st.integers(0, 32767)), optional(st.integers(1, 16_777_215))).filter(any)


@composite_strategy
def queue_lists(draw: DrawFn) -> dict[int, CustomList]:
    lists = {}
    for number in draw(st.lists(st.integers(1, 16), max_size=2, unique=True)):
        drawn = draw(st.dictionaries(st.integers(0, 16), _queue_values, max_size=3))
        queues = tuple(CustomQueue(queue, *drawn[queue]) for queue in sorted(drawn))
        default, lowest = draw(optional(st.integers(0, 16))), draw(optional(st.integers(1, 16)))
        made = CustomList(number, draw(queue_rules(17)), default, lowest, queues)
        if made != CustomList(number):
            lists[number] = made
    return lists


_bits = st.integers(256, 100_000_000)
_bits_or_none = st.just(0) | _bits


@composite_strategy
def shapers(draw: DrawFn) -> tuple[Shaper, ...]:
    lists = sorted(draw(st.sets(st.sampled_from((1, 101, 150)), max_size=2)))
    found: list[int | None] = [*lists, *draw(st.sampled_from(((), (None,))))]
    rates, buffers = st.integers(8_000, 100_000_000), st.integers(1, 4096)
    return tuple(Shaper(each, draw(rates), draw(_bits), draw(_bits_or_none), draw(buffers)) for each in found)


@composite_strategy
def interfaces(draw: DrawFn, name: str, number: int, maps: dict[str, PolicyMap], generation: Generation) -> Interface:
    bare = draw(_bare_interfaces(name, number, generation))
    for direction in ("input", "output"):
        carried = tuple(_carried_interfaces(generation, bare, maps, direction))
        queues = bare.shapers or bare.priority_group or bare.custom_queue_list
        if carried and not (queues and direction == "output"):
            setattr(bare, f"service_policy_{direction}", draw(optional(st.sampled_from(carried))))
    return bare


@composite_strategy
def access_groups(draw: DrawFn, names: tuple[str, ...]) -> AccessGroups:
    return AccessGroups(draw(optional(st.sampled_from(names))), draw(optional(st.sampled_from(names))))


@composite_strategy
def packet_sizes(draw: DrawFn) -> dict[str, int | None]:
    mtu = draw(optional(st.integers(1300, 1499)))
    line = mtu or 1500
    return {
        "mtu": mtu,
        "ip_mtu": draw(optional(st.integers(68, line - 1))),
        "ipv6_mtu": draw(optional(st.integers(1280, line - 1))),
        "tcp_adjust_mss": draw(optional(st.integers(500, 1460))),
    }


_group_ports = st.builds(PortMatch, st.sampled_from(("eq", "gt", "lt")), st.tuples(st.integers(0, 65535))) | st.builds(
    PortMatch, st.just("range"), st.just((2000, 2005))
)
_addresses = st.integers(1, 0xFFFFFF00).map(IPv4Address)
_networks = st.one_of(
    st.just(NetworkObject("any")),
    _addresses.map(lambda each: NetworkObject("host", each)),
    _addresses.map(lambda each: NetworkObject("range", each, each + 5)),
    _addresses.map(lambda each: NetworkObject("subnet", each, IPv4Address("255.255.255.0"))),
)
_services = st.one_of(
    st.just(ServiceObject()),
    st.builds(ServiceObject, st.sampled_from(((6,), (17,), (6, 17))), st.none(), st.none() | _group_ports),
    st.builds(ServiceObject, st.just((6,)), _group_ports, _group_ports),
    st.sampled_from((ServiceObject((1,)), ServiceObject((1,), icmp_type=8), ServiceObject((47,)))),
)


@composite_strategy
def object_groups(draw: DrawFn) -> dict[str, ObjectGroup]:
    found: dict[str, ObjectGroup] = {}
    for name in draw(st.lists(st.sampled_from(("NetA", "NetB", "NetC")), unique=True)):
        nested = [NetworkObject("group", group=other) for other in found if draw(st.booleans())]
        own = draw(st.lists(_networks, min_size=1, max_size=3, unique=True))
        found[name] = ObjectGroup(name, "network", draw(optional(texts)), (*own, *nested))
    for name in draw(st.lists(st.sampled_from(("SvcA", "SvcB")), unique=True)):
        own_services = draw(st.lists(_services, min_size=1, max_size=3, unique=True))
        found[name] = ObjectGroup(name, "service", draw(optional(texts)), services=tuple(own_services))
    return found


@composite_strategy
def grouped_lists(draw: DrawFn, groups: dict[str, ObjectGroup]) -> dict[str, AccessList]:
    networks = (None, *(name for name, each in groups.items() if each.kind == "network"))
    services = (None, *(name for name, each in groups.items() if each.kind == "service"))
    entries = st.builds(
        AccessEntry,
        action=st.sampled_from(("permit", "deny")),
        source_group=st.sampled_from(networks),
        destination_group=st.sampled_from(networks),
        service_group=st.sampled_from(services),
    )
    lines = draw(st.lists(entries, max_size=3, unique=True))
    return {"Grouped": AccessList("Grouped", "extended", tuple(lines))} if lines else {}


@composite_strategy
def _bare_interfaces(draw: DrawFn, name: str, number: int, generation: Generation) -> Interface:
    serial = name.startswith("Serial")
    fair_queue = draw(optional(fair_queues(generation, serial)))
    fair = fair_queue is not None and fair_queue.enabled
    kind = draw(st.sampled_from((None, "shapers") if fair else (None, "shapers", "priority", "custom")))
    which = draw(st.integers(1, 16))
    address = draw(optional(st.integers(1, 254)))
    second = draw(st.integers(0, 2)) if address is not None else 0
    return Interface(
        name,
        description=draw(optional(texts)),
        bandwidth_kbps=draw(optional(st.integers(1, 10_000_000))),
        address=None if address is None else IPv4Interface(f"10.{number}.0.{address}/24"),
        secondary_addresses=tuple(IPv4Interface(f"10.{number}.{each + 1}.1/24") for each in range(second)),
        ipv6_addresses=tuple(
            IPv6Interface(f"2001:db8:{number}:{each}::1/64") for each in sorted(draw(st.sets(st.integers(0, 2))))
        ),
        ipv6_link_local=draw(optional(st.sampled_from((IPv6Address("fe80::1"), IPv6Address("fe80::2"))))),
        ipv6_enable=draw(st.booleans()),
        filters=draw(access_groups(("1", "101", "P5001", "Absent"))),
        ipv6_filters=draw(access_groups(("V6", "Absent"))),
        **draw(packet_sizes()),
        encapsulation=draw(optional(st.just("ppp"))) if serial else None,
        load_interval_s=draw(optional(st.sampled_from((30, 60, 600)))),
        shutdown=draw(st.booleans()),
        duplex="auto" if serial else draw(st.sampled_from(("auto", "full"))),
        speed="auto" if serial else draw(st.sampled_from(("auto", "100"))),
        tx_ring_limit=draw(optional(st.integers(1, 32767))),
        fair_queue=fair_queue,
        shapers=draw(shapers()) if kind == "shapers" else (),
        priority_group=which if kind == "priority" else None,
        custom_queue_list=which if kind == "custom" else None,
        max_reserved_bandwidth=draw(optional(st.integers(1, 100))) if generation == "classic" else None,
        rate_limits=draw(rate_limits()),
        clock_rate_bps=draw(optional(st.integers(300, 8_000_000))) if serial else None,
        hold_queue_in=draw(optional(st.integers(0, 4096))),
        hold_queue_out=draw(optional(st.integers(1, 4096))),
        keepalive=draw(st.booleans()),
    )


@composite_strategy
def routes(draw: DrawFn) -> list[StaticRoute]:
    found: dict[tuple[object, ...], StaticRoute] = {}
    for _ in range(draw(st.integers(0, 3))):
        length = draw(st.integers(0, 32))
        prefix = IPv4Network((draw(st.integers(0, 0xFFFFFFFF)), length), strict=False)
        out = draw(optional(st.sampled_from(PORTS)))
        hop = draw(st.just(IPv4Address("172.16.0.9")) if out is None else optional(st.just(IPv4Address("172.16.0.9"))))
        found[prefix, out, hop] = StaticRoute(prefix, hop, out, draw(optional(st.integers(2, 255))))
    for _ in range(draw(st.integers(0, 2))):
        prefix6 = IPv6Network((draw(st.integers(0, (1 << 128) - 1)), draw(st.integers(0, 128))), strict=False)
        out = draw(optional(st.sampled_from(PORTS)))
        hops = (IPv6Address("2001:db8:9::9"), *(() if out is None else (IPv6Address("fe80::9"), None)))
        hop6 = draw(st.sampled_from(hops))
        found[prefix6, out, hop6] = StaticRoute(prefix6, hop6, out, draw(optional(st.integers(2, 254))))
    return sorted(found.values(), key=route_order)


@composite_strategy
def terminal_lines(draw: DrawFn) -> dict[str, Line]:
    last = draw(st.integers(4, 7))
    lines = [Line("con", 0), Line("aux", 0), *(Line("vty", number) for number in range(last + 1))]
    for line in lines:
        line.exec_timeout = draw(st.sampled_from((None, (0, 0), (5, 30))))
        line.logging_synchronous = draw(st.booleans())
        line.login = draw(st.sampled_from((None, "local", "none" if line.kind == "vty" else "password")))
        line.password = draw(st.sampled_from((None, "lab")))
        line.transport_input = draw(st.sampled_from((None, ("all",), ("none",), ("telnet", "ssh"))))
        line.privilege = draw(st.sampled_from((None, 15)))
    return {line.name: line for line in lines}


@composite_strategy
def devices(draw: DrawFn, generation: Generation | None = None) -> Device:
    chosen: Generation = generation or draw(st.sampled_from(("classic", "hqf")))  # type: ignore[assignment]
    classes = draw(class_maps())
    maps = draw(policy_maps(chosen, tuple(classes)))
    users = draw(st.lists(st.sampled_from(("admin", "lab")), unique=True))
    groups = draw(object_groups()) if chosen == "hqf" else {}
    return Device(
        hardware(chosen),
        hostname=draw(st.sampled_from(("Router", "R1", "edge-2.lab_x"))),
        timestamps=draw(
            st.dictionaries(st.sampled_from(("debug", "log")), st.sampled_from(("uptime", "datetime msec localtime")))
        ),
        logging_console=draw(st.booleans()),
        logging_buffered=draw(optional(st.integers(4096, 100_000))),
        enable_secret=draw(optional(st.sampled_from(SECRETS))),
        users={
            name: User(name, draw(optional(st.integers(0, 15))), draw(optional(st.sampled_from(SECRETS))))
            for name in users
        },
        ip_cef=draw(st.booleans()),
        ipv6_unicast_routing=draw(st.booleans()),
        ipv6_cef=draw(st.booleans()),
        ip_classless=draw(st.booleans()),
        ip_subnet_zero=draw(st.booleans()),
        domain_lookup=draw(st.booleans()),
        domain_name=draw(optional(st.just("lab.example"))),
        class_maps=classes,
        policy_maps=maps,
        interfaces={name: draw(interfaces(name, number, maps, chosen)) for number, name in enumerate(PORTS)},
        routes=draw(routes()),
        object_groups=groups,
        access_lists=draw(access_lists()) | draw(ipv6_access_lists()) | draw(grouped_lists(groups)),
        rate_limit_lists=draw(rate_limit_lists()),
        priority_lists=draw(priority_lists()),
        queue_lists=draw(queue_lists()),
        banner_motd=draw(
            optional(st.sampled_from(("\nhello\n", "one line", "\n! not a comment\nend\n  interface x\n")))
        ),
        lines=draw(terminal_lines()),
    )
