"""Marking by another field, table-maps, the discard class, early detection of interfaces, accounting of policers."""

from __future__ import annotations

import pytest

from qoslab.errors import IosError
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.model.policy import MarkFromField
from qoslab.ios.model.table_maps import TableMap, mapped_values
from qoslab.ios.parse import parse_config
from qoslab.ios.running_config import render
from qoslab.model.generation import Generation

GENERATIONS: tuple[Generation, ...] = ("classic", "hqf", "ios-xe")


def hardware(generation: Generation) -> Hardware:
    return Hardware("X", ("GigabitEthernet0/0/0", "GigabitEthernet0/0/1"), generation)


MARKING = """\
table-map T
 map from 5 to 46
 map from 6 to 48
 default 0
policy-map P
 class class-default
  set dscp cos table T
  set cos precedence
  set discard-class 2
"""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_table_map_decides_the_new_value(generation: Generation) -> None:
    device = parse_config(MARKING, hardware(generation))
    [each] = compile_device(device)["policy_maps"]["P"]["classes"]
    assert each["map"] == [
        {"field": "dscp", "source": "cos", "table": "T", "values": [0, 0, 0, 0, 0, 46, 48, 0]},
        {"field": "cos", "source": "precedence", "table": None, "values": list(range(8))},
    ]
    assert each["set"] == [{"field": "discard_class", "value": 2}]
    printed = render(device)
    assert all(line in printed for line in MARKING.splitlines())
    assert parse_config(printed, hardware(generation)) == device


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (MarkFromField("cos", "dscp"), {0: 0, 26: 3, 46: 5, 63: 7}),
        (MarkFromField("dscp", "qos_group"), {46: 46, 63: 63, 64: None, 99: None}),
        (MarkFromField("dscp", "dscp", "ignoring"), {1: 8, 2: None}),
        (MarkFromField("dscp", "dscp", "copying"), {1: 8, 2: 2}),
        (MarkFromField("cos", "dscp", "to a great value"), {1: None, 8: 1}),
        (MarkFromField("dscp", "cos", "missing"), {5: 5}),
    ],
)
def test_table_map_maps_copies_or_keeps_a_value(mark: MarkFromField, expected: dict[int, int | None]) -> None:
    tables = [
        TableMap("ignoring", ((1, 8),), "ignore"),
        TableMap("copying", ((1, 8),), "copy"),
        TableMap("to a great value", ((1, 8),)),
    ]
    found = mapped_values(mark, {each.name: each for each in tables})
    assert {value: found[value] for value in expected} == expected


def test_later_mark_of_the_field_replaces_the_earlier() -> None:
    session = ConfigSession(Device(hardware("ios-xe")))
    typed = ["policy-map P", "class class-default", "set dscp ef", "set dscp cos", "set ip dscp cos table T"]
    for line in typed:
        session.execute(line)
    assert [line.strip() for line in render(session.device).splitlines() if " set " in line] == [
        "set ip dscp cos table T"
    ]
    session.execute("set dscp af41")
    assert [line.strip() for line in render(session.device).splitlines() if " set " in line] == ["set dscp af41"]


DETECTION = """\
interface GigabitEthernet0/0/0
 random-detect dscp-based
 random-detect exponential-weighting-constant 5
 random-detect dscp af11 20 40 10
"""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_interface_has_early_detection(generation: Generation) -> None:
    device = parse_config(DETECTION, hardware(generation))
    assert compile_device(device)["interfaces"]["GigabitEthernet0/0/0"]["random_detect"] == {
        "basis": "dscp",
        "exponential_weight": 5,
        "ecn": False,
        "unit": "packets",
        "thresholds": [{"value": 10, "min": 20, "max": 40, "denominator": 10}],
    }
    assert DETECTION.split("\n", 1)[1] in render(device)
    session = ConfigSession(device)
    for line in ("policy-map P", "class class-default", "shape average 1000000"):
        session.execute(line)
    session.execute("interface GigabitEthernet0/0/0")
    with pytest.raises(CliError, match="Must remove random-detect configuration first"):
        session.execute("service-policy output P")
    session.execute("no random-detect")
    session.execute("service-policy output P")


def test_thresholds_of_several_values_are_entered_at_once() -> None:
    lines = [
        "random-detect dscp-based aggregate minimum-thresh 10 maximum-thresh 20",
        "random-detect dscp values af11 af12 minimum-thresh 30 maximum-thresh 40 mark-prob 5",
    ]
    text = "policy-map P\n class class-default\n" + "".join(f"  {line}\n" for line in lines)
    device = parse_config(text, hardware("ios-xe"))
    [each] = compile_device(device)["policy_maps"]["P"]["classes"]
    assert each["random_detect"] is not None
    rows = {row["value"]: (row["min"], row["max"], row["denominator"]) for row in each["random_detect"]["thresholds"]}
    assert len(rows) == 64
    assert (rows[0], rows[10], rows[12], rows[14]) == ((10, 20, None), (30, 40, 5), (30, 40, 5), (10, 20, None))
    assert parse_config(render(device), hardware("ios-xe")) == device


def test_one_line_policer_accepts_overhead_accounting() -> None:
    text = (
        "policy-map P\n class class-default\n  police cir 1000000 conform-action transmit exceed-action drop\n"
        "   account user-defined 24\n"
    )
    device = parse_config(text, hardware("ios-xe"))
    [each] = compile_device(device)["policy_maps"]["P"]["classes"]
    assert each["police"] is not None
    assert each["police"]["account"] == {"user_defined": {"offset": 24, "atm": False}}
    assert parse_config(render(device), hardware("ios-xe")) == device
    with pytest.raises(IosError, match="Invalid input"):
        parse_config("policy-map P\n class class-default\n  account user-defined 24\n", hardware("ios-xe"))


def test_policer_accepts_overhead_accounting() -> None:
    text = "policy-map P\n class class-default\n  police cir 1000000\n   account user-defined 24\n"
    device = parse_config(text, hardware("ios-xe"))
    [each] = compile_device(device)["policy_maps"]["P"]["classes"]
    assert each["police"] is not None
    assert each["police"]["account"] == {"user_defined": {"offset": 24, "atm": False}}
    assert parse_config(render(device), hardware("ios-xe")) == device
    session = ConfigSession(device)
    for line in ("policy-map P", "class class-default", "police cir 1000000", "no account user-defined 24"):
        session.execute(line)
    assert "account" not in render(session.device)
    with pytest.raises(IosError, match="introduced with HQF"):
        parse_config(text, hardware("classic"))
