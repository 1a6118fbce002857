"""Hypothesis strategies for a switch's device model."""

from __future__ import annotations

from ipaddress import IPv4Interface

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ios_strategies import access_lists, distinct_lists, dscps, optional
from qoslab.ios.model.catalyst import (
    DEFAULT_COS_OUTPUT,
    DEFAULT_DSCP_COS,
    DEFAULT_DSCP_INPUT,
    DEFAULT_DSCP_OUTPUT,
    IDENTITY,
    AggregatePolicer,
    AutoQos,
    InputQueues,
    QueueSet,
    QueueThresholds,
    SwitchPort,
    SwitchQos,
)
from qoslab.ios.model.device import Device, Hardware, HostInterface, Interface
from qoslab.ios.model.policy import (
    CLASS_DEFAULT,
    Amount,
    ClassMap,
    Criterion,
    Mark,
    Police,
    PoliceAction,
    PolicyClass,
    PolicyMap,
)

PORTS = tuple(f"GigabitEthernet1/0/{number}" for number in (1, 2, 15))
CLASSES = ("Voice", "Bulk", "Web")
POLICIES = ("In", "Mark")
VLANS = (10, 30)
VLAN_CLASSES = ("Voice", "Bulk")
PORT_CLASSES = ("First", "Both")

codes = st.integers(0, 7)
trust_states = st.sampled_from([None, "cos", "dscp", "ip-precedence"])
exceeds = st.sampled_from(["drop", "policed-dscp-transmit"])


def switch_hardware() -> Hardware:
    return Hardware("3750G", PORTS, version="12.2", family="switch")


def changed_switches(default: tuple[int, ...], top: int) -> SearchStrategy[tuple[int, ...]]:
    """Return a map in which some codes differ from the default."""
    changes = st.dictionaries(st.integers(0, len(default) - 1), st.integers(0, top), max_size=12)
    return changes.map(lambda some: tuple(some.get(code, value) for code, value in enumerate(default)))


def moved_places(default: tuple[tuple[int, int], ...], queues: int) -> SearchStrategy[tuple[tuple[int, int], ...]]:
    """Return a map of queues and thresholds in which some codes differ from the default."""
    place = st.tuples(st.integers(1, queues), st.integers(1, 3))
    changes = st.dictionaries(st.integers(0, len(default) - 1), place, max_size=12)
    return changes.map(lambda some: tuple(some.get(code, value) for code, value in enumerate(default)))


percents = st.integers(1, 100)
thresholds = st.builds(QueueThresholds, st.integers(1, 3200), st.integers(1, 3200), percents, st.integers(1, 3200))


@st.composite
def buffers(draw: DrawFn) -> tuple[int, ...]:
    first, third, fourth = (draw(st.integers(0, 33)) for _ in range(3))
    return (first, 100 - first - third - fourth, third, fourth)


queue_sets = st.builds(QueueSet, buffers(), st.tuples(*[thresholds] * 4)) | st.just(QueueSet())
two_percents = st.tuples(percents, percents)
input_queues = st.just(InputQueues()) | st.builds(
    InputQueues,
    st.integers(0, 100).map(lambda first: (first, 100 - first)),
    two_percents,
    st.tuples(two_percents, two_percents),
    st.integers(1, 2),
    st.integers(0, 40),
)
aggregates = st.builds(AggregatePolicer, st.integers(8000, 10**10), st.integers(8000, 10**6), exceeds)


@st.composite
def qos(draw: DrawFn) -> SwitchQos:
    mutations = draw(st.dictionaries(st.sampled_from(["M1", "M2"]), changed_switches(IDENTITY, 63)))
    return SwitchQos(
        enabled=draw(st.booleans()),
        rewrite_ip_dscp=draw(st.booleans()),
        cos_dscp=draw(st.tuples(*[dscps] * 8)),
        ip_prec_dscp=draw(st.just(SwitchQos().ip_prec_dscp) | st.tuples(*[dscps] * 8)),
        dscp_cos=draw(changed_switches(DEFAULT_DSCP_COS, 7)),
        policed_dscp=draw(changed_switches(IDENTITY, 63)),
        mutations=tuple(sorted((name, values) for name, values in mutations.items() if values != IDENTITY)),
        cos_output=draw(moved_places(DEFAULT_COS_OUTPUT, 4)),
        dscp_output=draw(moved_places(DEFAULT_DSCP_OUTPUT, 4)),
        dscp_input=draw(moved_places(DEFAULT_DSCP_INPUT, 2)),
        queue_sets=(draw(queue_sets), draw(queue_sets)),
        input=draw(input_queues),
        aggregate_policers=tuple(sorted(draw(st.dictionaries(st.sampled_from(["A1", "A2"]), aggregates)).items())),
        vlans=tuple((number, draw(optional(st.just(f"V{number}")))) for number in VLANS),
    )


@st.composite
def ports(draw: DrawFn, *, policy: bool, auto_qos: AutoQos | None = None) -> SwitchPort:
    """Return one port; with a policy of its own it is not VLAN-based."""
    weights = st.tuples(*[st.integers(1, 255)] * 4)
    return SwitchPort(
        switched=draw(st.booleans()),
        mode=draw(st.sampled_from([None, "access", "trunk"])),
        access_vlan=draw(st.sampled_from([1, *VLANS])),
        dot1q=draw(st.booleans()),
        native_vlan=draw(st.sampled_from([1, 99])),
        trust=None if policy else draw(trust_states),
        trust_device=draw(st.booleans()),
        default_cos=draw(codes),
        cos_override=draw(st.booleans()),
        dscp_mutation=draw(st.sampled_from([None, "M1", "Elsewhere"])),
        vlan_based=not policy and draw(st.booleans()),
        share=draw(st.just((25, 25, 25, 25)) | weights),
        shape=draw(st.just((25, 0, 0, 0)) | st.tuples(*[st.integers(0, 65535)] * 4)),
        limit=draw(st.just(100) | st.integers(10, 90)),
        priority_queue=draw(st.booleans()),
        queue_set=draw(st.integers(1, 2)),
        auto_qos=auto_qos,
    )


@st.composite
def switch_class_maps(draw: DrawFn) -> dict[str, ClassMap]:
    maps = {}
    for name in draw(st.lists(st.sampled_from(CLASSES), unique=True)):
        criteria = [
            draw(
                st.builds(Criterion, st.just("dscp"), values=distinct_lists(dscps, 8), ip_only=st.just(True))
                | st.builds(Criterion, st.just("precedence"), values=distinct_lists(codes, 4), ip_only=st.just(True))
                | st.builds(Criterion, st.just("access_group"), name=st.sampled_from(["7", "101", "P5001"]))
            )
        ]
        maps[name] = ClassMap(name, draw(st.sampled_from(("all", "any"))), tuple(criteria))
    return maps


port_ranges = st.sampled_from([(PORTS[0], PORTS[0]), (PORTS[0], PORTS[1]), (PORTS[2], PORTS[2])])


@st.composite
def hierarchies(draw: DrawFn, classes: dict[str, ClassMap]) -> dict[str, PolicyMap]:
    """Return a policy-map for VLAN interfaces and one for ports below it; the class-maps of both are added to
    `classes`.
    """
    below = draw(st.lists(st.sampled_from(PORT_CLASSES), unique=True, min_size=1))
    for name in below:
        ranges = tuple(draw(st.lists(port_ranges, unique=True, min_size=1)))
        classes[name] = ClassMap(name, "all", (Criterion("input_interface", interfaces=ranges),))
    police = Police("bps", Amount(1_000_000, "bps"), Amount(8000, "bytes"))
    ports_map = PolicyMap("Ports", tuple(PolicyClass(name, police=draw(optional(st.just(police)))) for name in below))
    above = []
    for name in draw(st.lists(st.sampled_from(VLAN_CLASSES), unique=True, min_size=1)):
        classes.setdefault(name, ClassMap(name, "all", (Criterion("dscp", values=(46,), ip_only=True),)))
        child = draw(st.sampled_from([None, "Ports"]))
        above.append(PolicyClass(name, trust="dscp", service_policy=child))
    return {"Ports": ports_map, "Vlan": PolicyMap("Vlan", tuple(above))}


@st.composite
def switch_class(draw: DrawFn, name: str, aggregate_names: list[str]) -> PolicyClass:
    kind = draw(st.sampled_from(["trust", "set", "neither"]))
    trust, marks = None, ()
    if kind == "trust":
        trust = draw(st.sampled_from(["cos", "dscp", "ip-precedence"]))
    elif kind == "set":
        field = draw(st.sampled_from(["dscp", "ip_dscp", "ip_precedence"]))
        marks = (Mark(field, draw(codes if field.endswith("precedence") else dscps)),)  # type: ignore[assignment]
    police, aggregate = None, None
    if aggregate_names and draw(st.booleans()):
        aggregate = draw(st.sampled_from(aggregate_names))
    elif draw(st.booleans()):
        rate, burst = draw(st.integers(8000, 10**10)), draw(st.integers(8000, 10**6))
        exceed = draw(optional(exceeds))
        police = Police(
            "bps",
            Amount(rate, "bps"),
            Amount(burst, "bytes"),
            exceed=None if exceed is None else (PoliceAction(exceed),),
        )
    return PolicyClass(name, police=police, marks=marks, trust=trust, aggregate=aggregate)


@st.composite
def switches(draw: DrawFn, *, macros: bool = False) -> Device:
    whole = draw(qos())
    classes = draw(switch_class_maps())
    policies = {}
    free = [name for name, _ in whole.aggregate_policers]
    for name in draw(st.lists(st.sampled_from(POLICIES), unique=True)):
        chosen = draw(st.lists(st.sampled_from([*classes, CLASS_DEFAULT]), unique=True))
        chosen.sort(key=lambda each: each == CLASS_DEFAULT)
        # An aggregate policer belongs to one policy-map.
        own, free = free[:1], free[1:]
        policies[name] = PolicyMap(name, tuple(draw(switch_class(each, own)) for each in chosen))
    own = list(policies)
    host_interfaces = {}
    if draw(st.booleans()):
        policies |= draw(hierarchies(classes))
        for vlan in draw(st.lists(st.sampled_from([1, *VLANS]), unique=True)):
            policy = draw(st.sampled_from([None, "Vlan"]))
            name = f"Vlan{vlan}"
            host_interfaces[name] = HostInterface(name, shutdown=draw(st.booleans()), service_policy_input=policy)
    interfaces = {}
    for number, name in enumerate(PORTS):
        policy = draw(st.sampled_from([None, *own]))
        kinds: list[AutoQos | None] = [None, *(("cisco-phone", "trust") if macros else ())]
        port = draw(ports(policy=policy is not None, auto_qos=draw(st.sampled_from(kinds))))
        address = None if port.switched else draw(optional(st.integers(1, 254)))
        interfaces[name] = Interface(
            name,
            address=None if address is None else IPv4Interface(f"10.{number}.0.{address}/24"),
            shutdown=draw(st.booleans()),
            duplex=draw(st.sampled_from(("auto", "full"))),
            speed=draw(st.sampled_from(("auto", "10", "100", "1000"))),
            service_policy_input=policy,
            port=port,
        )
    return Device(
        switch_hardware(),
        switch=whole,
        class_maps=classes,
        policy_maps=policies,
        interfaces=interfaces,
        host_interfaces=host_interfaces,
        access_lists=draw(access_lists()),
    )
