"""Plans of IOS policies for the Linux kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ios_strategies import devices
from levels import example_count
from qoslab.cli import command_group
from qoslab.errors import UserError
from qoslab.ios.compile import compile_device, engine_config
from qoslab.ios.model.device import Device
from qoslab.policy.effective import effective_policies
from qoslab.policy.kernel_plan import plan_pasted
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.tc.decision_lists import (
    DecisionList,
    NotExpressibleError,
    PacketFields,
    access_list_decision,
    class_decision,
)
from qoslab.tc.leaves import red_burst
from qoslab.tc.objects import Control, Filter, HtbClass, Police
from qoslab.tc.plan_lines import line_finder
from qoslab.tc.plan_text import plan_script
from qoslab.tc.port_plan import PlannedPort
from qoslab.tc.router_plan import RouterPlan, plan

GOLDENS = Path(__file__).parents[1] / "goldens" / "tc"
POLICIES = sorted(GOLDENS.glob("*.ios"))


def plan_device(device: Device) -> RouterPlan:
    """Plan all interfaces of a device on lines with the rate of their bandwidth."""
    config = engine_config(compile_device(device))
    ports = [
        PlannedPort(name, f"eth{number}", each["bandwidth_kbps"] * 1000, each["bandwidth_kbps"] * 1000)
        for number, (name, each) in enumerate(config["interfaces"].items())
    ]
    return plan(config, ports)


def plan_policy(text: str, rate_bps: int | None = None) -> RouterPlan:
    return plan_pasted(read_configuration(text), rate_bps, {})


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_script_of_a_policy_equals_the_golden(path: Path, golden: Callable[[Path, str], None]) -> None:
    configuration = read_configuration(path.read_text(encoding="utf-8"))
    golden(
        path.with_suffix(".sh"), plan_script(plan_pasted(configuration, None, {}), line_finder(configuration.reading))
    )


def commands(text: str, rate_bps: int | None = None) -> list[str]:
    made = plan_policy(text, rate_bps)
    made.check()
    return list(made.commands())


@pytest.mark.parametrize("name", ["hqf-parent-shaper", "hqf-line-classes", "marking-qos-group", "wred-ecn"])
def test_class_rates_equal_those_of_the_engine_under_full_load(name: str) -> None:
    configuration = read_configuration((GOLDENS / f"{name}.ios").read_text(encoding="utf-8"))
    busy = {
        (policy.interface, each.path): each.busy
        for policy in effective_policies(configuration)
        for each in policy.classes
        if policy.direction == "output" and each.priority is None and not each.joins_default
    }
    compared = 0
    for interface in plan_pasted(configuration, None, {}).interfaces:
        for each in interface.objects:
            rate = busy.get((interface.port.interface, each.origin.path))
            if isinstance(each, HtbClass) and rate is not None:
                assert each.rate_bps == pytest.approx(rate.bps, abs=8)
                compared += 1
    assert compared >= 3


def test_refusal_names_the_action_and_the_class() -> None:
    made = plan_policy((GOLDENS / "refused.ios").read_text(encoding="utf-8"))
    with pytest.raises(UserError) as caught:
        made.check()
    assert "FastEthernet0/1: tx-ring-limit: " in caught.value.message
    assert "policy-map IN, class GOLD: police violate-action: single rate, three colours" in caught.value.message


def test_single_rate_policer_with_one_action_is_one_bucket() -> None:
    text = (
        "policy-map P\n class class-default\n  police 1000000 31250 62500 conform-action transmit exceed-action drop\n"
    )
    assert any(
        "police rate 1mbit burst 31250 overhead 14 conform-exceed drop/pipe" in each for each in commands(text, 10**7)
    )


def test_unattached_policy_needs_a_rate() -> None:
    with pytest.raises(UserError, match="expected the rate of the line for --kernel"):
        plan_policy("policy-map P\n class class-default\n  shape average 1000000\n")


def test_kernel_plan_of_a_switch_is_refused() -> None:
    text = "mls qos\ninterface GigabitEthernet1/0/1\n mls qos trust dscp\n srr-queue bandwidth share 1 2 3 4\n"
    assert [each.action for each in plan_policy(text).refused_actions] == ["mls qos"]


def test_port_without_policy_has_line_and_default_queue() -> None:
    config: dict[str, Any] = {"router": "R1", "generation": "hqf", "interfaces": {}, "policy_maps": {}}
    made = plan(config, [PlannedPort("FastEthernet0/0", "eth0", 100_000_000, 10_000_000)])
    assert [each.split(" dev ")[0] for each in made.commands()] == ["qdisc add", "class add", "class add", "qdisc add"]
    assert list(made.commands())[-1] == "qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 40"


def test_serial_overhead_is_adjusted_on_an_ethernet_device() -> None:
    text = (
        "policy-map P\n class class-default\n  shape average 1000000\ninterface Serial0/0\n service-policy output P\n"
    )
    configuration = read_configuration(text)
    config = compile_device(configuration.device)
    made = plan(config, [PlannedPort("Serial0/0", "eth0", 1_544_000, 2_000_000, framing="ppp")])
    assert next(made.commands()) == "qdisc add dev eth0 root handle 1: stab overhead -10 htb default 0x10"
    assert "overhead 3" in list(made.commands())[1]


def criteria() -> st.SearchStrategy[dict[str, Any]]:
    values = st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("precedence"), "values": values, "negate": st.booleans()}),
        st.fixed_dictionaries({"type": st.just("protocol"), "name": st.sampled_from(("tcp", "udp", "http", "ipv6"))}),
        st.fixed_dictionaries({"type": st.just("access_group"), "name": st.just("L"), "negate": st.booleans()}),
        st.fixed_dictionaries({"type": st.just("any"), "negate": st.booleans()}),
        st.fixed_dictionaries({"type": st.just("class_map"), "name": st.just("INNER"), "negate": st.booleans()}),
    )


def class_maps() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"match": st.sampled_from(("any", "all")), "criteria": st.lists(criteria(), max_size=3)}
    )


INNER = {"match": "all", "criteria": [{"type": "precedence", "values": [1, 2]}, {"type": "protocol", "name": "udp"}]}
ANY = {"address": "0.0.0.0", "wildcard": "255.255.255.255"}
HOST = {"address": "10.0.0.1", "wildcard": "0.0.0.0"}
LIST = [
    {
        "action": "deny",
        "protocol": 6,
        "source": ANY,
        "destination": HOST,
        "destination_port": {"op": "eq", "ports": [80]},
    },
    {
        "action": "permit",
        "protocol": 6,
        "source": ANY,
        "destination": ANY,
        "destination_port": {"op": "lt", "ports": [100]},
    },
    {"action": "deny", "source": ANY, "destination": HOST},
    {"action": "permit", "protocol": 17, "source": ANY, "destination": ANY, "precedence": 2},
]
Packet = dict[str, Any]
PACKETS: list[Packet] = [
    {"network": network, "precedence": precedence, "protocol": protocol, "host": host, "port": port}
    for network in ("ip", "ipv6")
    for precedence in range(4)
    for protocol in (6, 17)
    for host in (True, False)
    for port in (80, 99, 100)
]


def permits(packet: Packet) -> bool:
    """Return the decision of the access list LIST, like a router."""
    if packet["network"] != "ip":
        return False
    if packet["protocol"] == 6 and packet["host"] and packet["port"] == 80:
        return False
    if packet["protocol"] == 6 and packet["port"] < 100:
        return True
    return not packet["host"] and packet["protocol"] == 17 and packet["precedence"] == 2


def matches(maps: dict[str, Any], name: str, packet: Packet) -> bool:
    """Return the decision of a class-map, like a router."""
    found = []
    for each in maps[name]["criteria"]:
        match each["type"]:
            case "any":
                result = True
            case "precedence":
                result = packet["precedence"] in each["values"]
            case "access_group":
                result = permits(packet)
            case "class_map":
                result = matches(maps, each["name"], packet)
            case _:
                http = packet["protocol"] == 6 and packet["port"] == 80
                by_name = {"tcp": packet["protocol"] == 6, "udp": packet["protocol"] == 17, "http": http}
                result = by_name.get(each["name"], packet["network"] == each["name"])
        found.append(result != each.get("negate", False))
    return bool(found) and (any(found) if maps[name]["match"] == "any" else all(found))


def has_field(packets: PacketFields, packet: Packet) -> bool:
    """Return whether a set contains a packet; its destination is 10.0.0.1 or 10.0.0.2, its source port 1024."""
    address = 0x0A000001 if packet["host"] else 0x0A000002
    return all(
        (
            packets.network in (None, packet["network"]),
            packets.protocol in (None, packet["protocol"]),
            packets.dsfield is None or (packet["precedence"] << 5 ^ packets.dsfield[0]) & packets.dsfield[1] == 0,
            packets.destination is None or (address ^ packets.destination[0]) & packets.destination[1] == 0,
            packets.source is None,
            packets.source_port is None or packets.source_port[0] <= 1024 <= packets.source_port[1],
            packets.destination_port is None
            or packets.destination_port[0] <= packet["port"] <= packets.destination_port[1],
        )
    )


def decided_packets(decision: DecisionList, packet: Packet) -> bool:
    return next((row.member for row in decision.rows if has_field(row.packets, packet)), decision.default)


@given(class_maps())
@settings(max_examples=example_count(200))
def test_decision_list_agrees_with_the_class_map(class_map: dict[str, Any]) -> None:
    maps = {"C": class_map, "INNER": INNER}
    decision = class_decision({"class_maps": maps, "access_lists": {"L": LIST}}, "C")
    for packet in PACKETS:
        assert decided_packets(decision, packet) == matches(maps, "C", packet), packet


@pytest.mark.long
@given(devices())
@settings(max_examples=example_count(200), suppress_health_check=[HealthCheck.too_slow])
def test_any_configuration_has_a_plan_or_a_refusal_with_a_reason(device: Device) -> None:
    made = plan_device(device)
    assert all(note.text and note.action for note in made.notes)
    assert all(each.port.device in each.commands()[0] for each in made.interfaces if each.objects)
    for interface in made.interfaces:
        filters = [each for each in interface.objects if isinstance(each, Filter)]
        chains = {(each.hook, each.chain) for each in filters}
        for each in filters:
            ends = [action for action in each.actions if isinstance(action, Control)]
            ends += [action.exceed for action in each.actions if isinstance(action, Police) and action.exceed]
            assert all(end.chain is None or (each.hook, end.chain) in chains for end in ends)


def test_access_list_without_entries_permits_nothing() -> None:
    assert access_list_decision([]) == DecisionList((), default=False)


def test_port_neq_becomes_two_ranges() -> None:
    entry = {"action": "permit", "protocol": 6, "source": ANY, "destination": ANY}
    rows = access_list_decision([{**entry, "source_port": {"op": "neq", "ports": [80]}}]).rows
    assert [row.packets.source_port for row in rows] == [(0, 79), (81, 65_535)]


def test_class_map_with_too_many_filters_is_refused() -> None:
    ports = {"op": "eq", "ports": list(range(1, 41))}
    entry = {"action": "permit", "protocol": 6, "source": ANY, "destination": ANY}
    entries = [{**entry, "source_port": ports, "destination_port": ports}]
    with pytest.raises(NotExpressibleError, match="more than 1024 filters"):
        access_list_decision(entries)


def test_red_burst_determines_the_weight() -> None:
    # tc-red(8), tc_red_eval_ewma: the least burst with that weight.
    assert red_burst(30_280, 1514, 9) == 106
    assert red_burst(30_280, 1514, 16) is not None


def run(*arguments: str, text: str) -> Any:
    return CliRunner().invoke(command_group, ["policy", *arguments], input=text)


def test_kernel_and_json_print_commands_and_notes() -> None:
    text = (GOLDENS / "policer-input.ios").read_text(encoding="utf-8")
    result = run("--kernel", "--json", "--device", "Fa0/0=wan0", text=text)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["interfaces"][0]["device"] == "wan0"
    assert found["interfaces"][0]["commands"][0] == "tc qdisc add dev wan0 clsact"
    assert {each["degree"] for each in found["notes"]} == {"exact"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "Fa0/0=wan0"], "found --device without --kernel"),
        (["--kernel", "--rtt", "10"], "expected --kernel alone"),
        (["--kernel", "--device", "wan0"], "expected INTERFACE=NAME"),
        (["--kernel", "--device", "Fa0/9=wan0"], "expected one with a policy: FastEthernet0/0"),
        (["--kernel", "--device", "Fa0/0=a b"], "expected the name of a network device"),
    ],
)
def test_wrong_options_of_kernel_are_refused(arguments: list[str], message: str) -> None:
    text = (GOLDENS / "policer-input.ios").read_text(encoding="utf-8")
    result = run(*arguments, text=text)
    assert isinstance(result.exception, UserError), result.output
    assert message in result.exception.message
