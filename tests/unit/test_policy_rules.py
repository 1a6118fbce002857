"""IOS command line and engine: they refuse the same policies, by the rules of the engine."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ios_strategies import composite_strategy, optional, shapes
from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.cli.session import CONFIG
from qoslab.ios.commands.queue_limit import MIXED_LIMIT_UNITS
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Device, Hardware, Interface
from qoslab.ios.model.engine_rules import IMPOSSIBLE, ONE_UNIT, QUEUEING, RANGES
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.policy import (
    CLASS_DEFAULT,
    Amount,
    Bandwidth,
    ClassMap,
    Criterion,
    DynamicBucket,
    FairQueue,
    Police,
    PolicyClass,
    PolicyMap,
    Priority,
    QueueLimit,
    QueueThreshold,
    RandomDetect,
    RedThresholds,
    Shape,
)
from qoslab.ios.refusals import find_refusal
from qoslab.ios.rules import check_attachment, check_children, check_policy
from qoslab.system import program_formats
from qoslab.trial.simulate import call_simulator

if TYPE_CHECKING:
    from qoslab.model.generation import Generation

PORT = "FastEthernet0/1"
NAMES = ("C1", "C2", CLASS_DEFAULT)
LIMITS = st.builds(QueueLimit, st.integers(1, 4096)) | st.builds(
    QueueLimit, st.integers(1, 3400), st.sampled_from(("bytes", "ms"))
)
THRESHOLDS = st.builds(QueueThreshold, st.just("dscp"), st.integers(0, 63), LIMITS).map(lambda one: (one,))
ROWS = RedThresholds(20, 40)
EARLY = st.sampled_from(
    (
        RandomDetect(),
        RandomDetect("dscp", thresholds=((10, ROWS),)),
        RandomDetect("dscp", unit="bytes", thresholds=((10, ROWS),)),
        RandomDetect("dscp", unit="percent", thresholds=((10, ROWS),)),
        RandomDetect("dscp", aggregate=ROWS),
    )
)


UNITS = st.sampled_from(("kbps", "percent", "remaining_percent", "remaining_ratio"))


@composite_strategy
def bandwidths(draw: st.DrawFn, unit: str) -> Bandwidth:
    kbps, percent = st.sampled_from((8, 100, 250, 330, 400, 750)), st.sampled_from((1, 24, 25, 33, 34, 50, 75))
    return Bandwidth(unit, draw(kbps if unit == "kbps" else percent))  # type: ignore[arg-type]


@composite_strategy
def priorities(draw: st.DrawFn, unit: str) -> Priority:
    if unit not in ("kbps", "percent") or draw(st.booleans()):
        return Priority(level=draw(st.sampled_from((None, None, 1, 2))))
    return Priority(unit, draw(bandwidths(unit)).number)  # type: ignore[arg-type]


@composite_strategy
def classes(draw: st.DrawFn, name: str, unit: str, child: str | None) -> PolicyClass:
    """Return a class with one action of queueing, and sometimes another one that may conflict with it."""
    actions: dict[str, st.SearchStrategy[object]] = {
        "bandwidth": bandwidths(unit),
        "priority": priorities(unit),
        # A percentage of a slow parent may be a rate that the engine cannot have.
        "shape": shapes().filter(lambda shape: shape.rate.unit == "bps"),
        "fair_queue": st.builds(FairQueue, optional(st.sampled_from((16, 256)))),
        "queue_limit": LIMITS,
        "queue_thresholds": THRESHOLDS,
        "random_detect": EARLY,
        "shape_buffers": st.integers(1, 4096),
    }
    chosen = {draw(st.sampled_from(("bandwidth", "bandwidth", "priority", "shape", "fair_queue")))}
    if draw(st.booleans()):
        chosen.add(draw(st.sampled_from(tuple(actions))))
    if draw(st.sampled_from((False, False, False, True))):
        actions["bandwidth"] = UNITS.flatmap(bandwidths)
    below = child if child is not None and draw(st.booleans()) else None
    return PolicyClass(name, service_policy=below, **{each: draw(actions[each]) for each in sorted(chosen)})  # type: ignore[arg-type]


@composite_strategy
def policy_maps(draw: st.DrawFn) -> dict[str, PolicyMap]:
    """Return a policy-map, and one below it."""
    found = {}
    for name, child in (("CHILD", None), ("PARENT", "CHILD")):
        unit = draw(st.sampled_from(("kbps", "kbps", "percent", "percent", "remaining_percent", "remaining_ratio")))
        chosen = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
        content = tuple(draw(classes(each, unit, child)) for each in sorted(chosen))
        found[name] = PolicyMap(name, content)
    return found


@composite_strategy
def reserving(draw: st.DrawFn) -> dict[str, PolicyMap]:
    """Return a policy-map that only reserves bandwidth, below a shaper or a class with bandwidth."""
    found = {}
    for name, child in (("CHILD", None), ("PARENT", "CHILD")):
        unit = draw(st.sampled_from(("kbps", "percent", "remaining_percent")))
        numbers = st.integers(8, 700) if unit == "kbps" else st.integers(1, 60)
        content = []
        for each in NAMES:
            priority = each != CLASS_DEFAULT and unit != "remaining_percent" and draw(st.booleans())
            amount = draw(numbers)
            reserved: dict[str, Any] = {"priority": Priority(unit, amount)} if priority else {}  # type: ignore[arg-type]
            reserved = reserved or {"bandwidth": Bandwidth(unit, amount)}  # type: ignore[arg-type]
            if child is not None and not priority and draw(st.booleans()):
                rate = draw(
                    st.builds(Amount, st.integers(8_000, 1_600_000), st.just("bps"))
                    | st.builds(Amount, st.integers(10, 100), st.just("percent"))
                )
                reserved |= {"shape": Shape("average", rate), "service_policy": child}
            content.append(PolicyClass(each, **reserved))
        found[name] = PolicyMap(name, tuple(content))
    return found


def device_with(maps: dict[str, PolicyMap], generation: Generation, kbps: int) -> Device:
    device = Device(Hardware("2811", (PORT,), generation))
    device.class_maps |= {
        name: ClassMap(name, criteria=(Criterion("dscp", values=(number,)),))
        for number, name in enumerate(("C1", "C2"))
    }
    device.policy_maps |= maps
    device.interfaces[PORT].bandwidth_kbps = kbps
    device.interfaces[PORT].service_policy_output = "PARENT"
    return device


def refused_by_ios(device: Device, port: str = PORT) -> str:
    """Return the message of the command line for the output policy of a port; empty without one."""
    try:
        for policy in device.policy_maps.values():
            check_policy(device, policy)
        check_children(device, device.policy_maps["PARENT"])
        check_attachment(device, device.policy_maps["PARENT"], device.interfaces[port], "output")
    except RejectedError as error:
        return error.message
    return ""


def refused_by_engine(device: Device) -> str:
    """Return the message of the engine; empty without one: the simulation then ends for lack of traffic."""
    configuration = cast("program_formats.RouterConfig", dict(compile_device(device)))
    ends = [
        {"node": "R1", "interface": PORT, "address": "10.0.0.1/24"},
        {"node": "H1", "interface": "eth0", "address": "10.0.0.2/24"},
    ]
    scenario = {
        "format": 1,
        "nodes": {"R1": {"kind": "router", "configuration": configuration}, "H1": {"kind": "host"}},
        "links": [{"name": "L", "rate_bps": 100_000_000, "framing": "ethernet", "ends": ends}],
        "flows": [],
    }
    done = call_simulator(("run",), cast("program_formats.Scenario", scenario))
    configured, _, message = done.stderr.partition("nodes.R1.configuration.")
    assert done.returncode == 1 and (message or "found no flow" in configured), done.stderr
    return message


def compare(device: Device) -> None:
    ios = refused_by_ios(device)
    if ios == MIXED_LIMIT_UNITS:
        return  # IOS requires one unit in a policy-map, the engine one in each class.
    engine = refused_by_engine(device)
    assert bool(ios) == bool(engine), (ios, engine)
    assert not ios or find_refusal(ios) or "not allowed" in ios or "not supported" in ios, ios


SHAPE = Shape("average", Amount(500_000, "bps"))
HAVING: dict[str, dict[str, Any]] = {
    "class_default": {"name": CLASS_DEFAULT},
    "queueing_child": {"service_policy": "CHILD"},
    "priority": {"priority": Priority()},
    "priority_level": {"priority": Priority(level=1)},
    "bandwidth": {"bandwidth": Bandwidth("remaining_percent", 10)},
    "minimum": {"bandwidth": Bandwidth("percent", 10)},
    "remaining_ratio": {"bandwidth": Bandwidth("remaining_ratio", 10)},
    "fair_queue": {"fair_queue": FairQueue()},
    "shape": {"shape": SHAPE},
    "shape_buffers": {"shape": SHAPE, "shape_buffers": 100},
    "random_detect": {"random_detect": RandomDetect()},
    "random_detect_unit": {"shape": SHAPE, "random_detect": RandomDetect("dscp", unit="ms", thresholds=((10, ROWS),))},
    "queue_limit": {"queue_limit": QueueLimit(100)},
    "queue_limit_unit": {"shape": SHAPE, "queue_limit": QueueLimit(100, "ms")},
    "queue_thresholds": {"shape": SHAPE, "queue_thresholds": (QueueThreshold("dscp", 1, QueueLimit(10)),)},
}
"""Class with a property, and the requirements of that property."""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_router_and_engine_refuse_the_same_pairs_of_actions(generation: Generation) -> None:
    child = PolicyMap("CHILD", (PolicyClass("C2", bandwidth=Bandwidth("remaining_percent", 10)),))
    for one, other in combinations_with_replacement(HAVING, 2):
        parent = PolicyMap("PARENT", (PolicyClass(**{"name": "C1", **HAVING[one], **HAVING[other]}),))
        compare(device_with({"CHILD": child, "PARENT": parent}, generation, 10_000))


def test_each_combination_has_known_properties() -> None:
    named = {fact for row in IMPOSSIBLE for fact in (row.of, row.with_, *row.without)}
    assert named - {None} == HAVING.keys()
    allowing = {row.unless for row in IMPOSSIBLE} - {None}
    assert allowing == frozenset().union(*(each.allowed for each in GENERATIONS.values()))


def test_facts_about_queues_are_actions_of_a_class() -> None:
    assert {*QUEUEING, ONE_UNIT} <= {each.name for each in fields(PolicyClass)}


RANGES_OF_COMMANDS = {
    ("bandwidth", "kbps"): "bandwidth.kbps",
    ("priority", "kbps"): "bandwidth.kbps",
    ("priority", "burst"): "priority.burst_bytes",
    ("fair-queue", "packets"): "fair_queue.queue_limit",
    ("police", "committed"): "police.rate_bps",
    ("police", "peak"): "police.rate_bps",
    ("queue-limit", "share"): "queue_limit.percent",
    ("shape", "rate"): "shape.rate_bps",
    ("shape", "bits"): "shape.burst_bits",
    ("shape", "bc"): "shape.burst_bits",
    ("shape", "bc-ms"): "shape.burst_ms",
    ("shape", "be-ms"): "shape.burst_ms",
    ("shape", "packets"): "shape_buffers",
}
"""Key of the engine's range by command of a class and argument."""


def test_ranges_of_the_command_line_lie_within_those_of_the_engine() -> None:
    found = set()
    for form in CONFIG.forms("policy-class"):
        for argument, least, most in re.findall(r"<([\w-]+):(\d+)-(\d+)>", form.command.syntax):
            command = form.command.syntax.split()[0]
            if (key := RANGES_OF_COMMANDS.get((command, argument))) is not None:
                found.add((command, argument))
                assert RANGES[key][0] <= int(least) <= int(most) <= RANGES[key][1], form.command.syntax
    assert found == RANGES_OF_COMMANDS.keys()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_router_and_engine_refuse_the_same_classes_on_subinterfaces(generation: Generation) -> None:
    child = PolicyMap("CHILD", (PolicyClass("C2", bandwidth=Bandwidth("remaining_percent", 10)),))
    sub = f"{PORT}.1"
    for name, having in HAVING.items():
        parent = PolicyMap("PARENT", (PolicyClass(**{"name": "C1", **having}),))
        device = device_with({"CHILD": child, "PARENT": parent}, generation, 10_000)
        device.interfaces[PORT].service_policy_output = None
        device.interfaces[sub] = Interface(sub, vlan=10, service_policy_output="PARENT")
        engine = refused_by_engine(device)
        assert bool(refused_by_ios(device, sub)) == bool(engine), (name, engine)


@pytest.mark.parametrize(
    ("police", "ordered"),
    [
        (Police("cir", Amount(8_000, "bps"), pir=Amount(9_000, "bps")), True),
        (Police("cir", Amount(9_000, "bps"), pir=Amount(8_000, "bps")), False),
        (Police("cir", Amount(8_000, "bps"), dynamic=DynamicBucket(initial_bytes=2_999)), False),
        (Police("cir", Amount(8_000, "bps"), dynamic=DynamicBucket(minimum_bytes=15_001)), False),
        (Police("cir", Amount(8_000, "bps"), dynamic=DynamicBucket(maximum_bytes=14_999)), False),
        (Police("cir", Amount(8_000, "bps"), dynamic=DynamicBucket(maximum_bytes=15_000)), True),
    ],
)
def test_router_and_engine_compare_the_same_values_of_a_policer(police: Police, ordered: bool) -> None:
    device = device_with({"PARENT": PolicyMap("PARENT", (PolicyClass("C1", police=police),))}, "hqf", 10_000)
    assert (refused_by_ios(device) == "", refused_by_engine(device) == "") == (ordered, ordered)


@pytest.mark.parametrize("generation", GENERATIONS)
@given(maps=policy_maps(), kbps=st.sampled_from((1_000, 1_544, 100_000)))
def test_router_and_engine_refuse_the_same_policies(
    generation: Generation, maps: dict[str, PolicyMap], kbps: int
) -> None:
    compare(device_with(maps, generation, kbps))


@pytest.mark.parametrize("generation", GENERATIONS)
@given(maps=reserving(), kbps=st.integers(500, 2_000))
def test_router_and_engine_add_up_bandwidth_equally(
    generation: Generation, maps: dict[str, PolicyMap], kbps: int
) -> None:
    compare(device_with(maps, generation, kbps))
