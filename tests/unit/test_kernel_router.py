"""Templates of routers of platform tc: IOS policies and tc commands become one list of commands."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from qoslab.analysis.kernel_counters import kernel_rows
from qoslab.ios.model.device import Device, Interface
from qoslab.model.experiment import Topology
from qoslab.platforms import PLATFORMS
from qoslab.platforms.kernel_router import DEVICE_COMMANDS, PLAN_COMMANDS, PLANNED_SETTINGS, KernelConfig, kernel_config
from qoslab.platforms.tc import TcPlatform
from qoslab.schema import load_experiment
from qoslab.schema.devices import fidelity_notes
from qoslab.tc.command_difference import command_difference

LINKS = """\
  nodes: {client: {platform: host}, R1: {platform: tc}, server: {platform: host}}
  links:
    - name: near
      rate: 100 Mb/s
      ends:
        - {node: client, interface: eth0, address: 10.0.0.10/24}
        - {node: R1, interface: eth0, address: 10.0.0.1/24}
    - name: line
      rate: 10 Mb/s
      ends:
        - {node: R1, interface: eth1, address: 10.1.0.1/24}
        - {node: server, interface: eth0, address: 10.1.0.10/24}
"""
TOPOLOGY = Topology.model_validate_json(json.dumps(yaml.safe_load(LINKS)))
POLICY = """\
class-map match-any VOICE
 match dscp ef
policy-map CHILD
 class VOICE
  priority 100
  police 200000 4000 conform-action transmit exceed-action drop
 class class-default
  queue-limit 64
policy-map PARENT
 class class-default
  shape average 2000000
  service-policy CHILD
interface eth1
 service-policy output PARENT
"""


def command_texts(config: KernelConfig) -> list[str]:
    return [" ".join(each.words) for each in config.commands]


def test_ios_policy_becomes_commands_with_the_lines_of_its_template() -> None:
    found = kernel_config(TOPOLOGY, "R1", POLICY)
    assert not found.refused_actions
    assert found.shapes_lines
    shaper = next(each for each in found.commands if " ".join(each.words).startswith("class add dev eth1 parent 1:1 "))
    assert "rate 2mbit" in " ".join(shaper.words)
    assert POLICY.splitlines()[shaper.number - 1].strip() in ("class class-default", "service-policy CHILD")
    assert {each.interface for each in found.commands} == {"eth0", "eth1"}
    chains = [each.place["chain"] for each in found.commands if each.what == "filter"]
    assert chains and chains[-1] == "0"
    voice = next(each for each in (found.classes or {})["eth1"] if each["path"][-1] == "VOICE")
    assert voice["buckets"] == ("police", "priority")
    degrees = {each.note.action: each.note.degree for each in found.notes}
    assert degrees["shape average"] == degrees["priority"] == "approximate"
    assert degrees["police"] == "exact"


def test_platform_translates_its_language_to_tc_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    def translated_plan(text: str, router: str) -> str:
        return "".join(f"tc qdisc add dev eth1 root {kind}\n" for kind in text.split()[1:])

    monkeypatch.setitem(PLATFORMS.own, "tc", TcPlatform(translation=translated_plan))  # type: ignore[arg-type]
    found = kernel_config(TOPOLOGY, "R1", "queue fq_codel")
    assert command_texts(found) == ["qdisc add dev eth1 root fq_codel"] and found.as_config()["counters"] == "qdiscs"


def test_tc_commands_are_unchanged() -> None:
    found = kernel_config(TOPOLOGY, "R1", "tc qdisc add dev eth1 root cake bandwidth 20mbit\n")
    assert command_texts(found) == ["qdisc add dev eth1 root cake bandwidth 20mbit"]
    assert (found.classes, found.notes, found.shapes_lines) == (None, (), False)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("interface eth1\n ip mtu 1400", "ip mtu"),
        ("interface eth1\n shutdown", "shutdown"),
        ("ip route 10.9.0.0 255.255.0.0 10.1.0.2", "ip route"),
        ("interface eth1\n tx-ring-limit 4", "tx-ring-limit"),
        (
            "interface eth1\n rate-limit output 8000 1500 2000 conform-action transmit exceed-action drop",
            "rate-limit output",
        ),
    ],
)
def test_action_without_equivalent_is_refused_by_name_and_leaves_no_command(line: str, action: str) -> None:
    found = kernel_config(TOPOLOGY, "R1", f"{POLICY}{line}\n")
    assert [each.note.action for each in found.refused_actions] == [action]
    assert found.refused_actions[0].line == len(POLICY.splitlines()) + len(line.splitlines())
    assert found.commands == ()


def test_interface_lines_without_effect_become_comments() -> None:
    found = kernel_config(TOPOLOGY, "R1", f"{POLICY}interface eth1\n no cdp enable\n")
    assert not found.refused_actions and command_texts(found) == command_texts(kernel_config(TOPOLOGY, "R1", POLICY))
    assert [each.line.text for each in found.remarks] == ["no cdp enable"]


def test_settings_of_the_plan_are_fields_of_the_model() -> None:
    assert PLANNED_SETTINGS | PLAN_COMMANDS.keys() <= {each.name for each in fields(Interface)}
    assert DEVICE_COMMANDS.keys() <= {each.name for each in fields(Device)}


def test_on_other_machines_only_ports_with_queues_get_a_rate() -> None:
    found = kernel_config(TOPOLOGY, "R1", POLICY, lab=False)
    assert {each.interface for each in found.commands} == {"eth1"}


def test_difference_names_the_changed_objects_only() -> None:
    before = [each.words for each in kernel_config(TOPOLOGY, "R1", POLICY).commands]
    after = [each.words for each in kernel_config(TOPOLOGY, "R1", POLICY.replace("2000000", "3000000")).commands]
    changed = command_difference(before, after)
    assert changed is not None
    assert {each[:2] for each in changed} == {("class", "change")}
    assert command_difference(before, before) == []
    assert command_difference(before, before[:1]) is None


def reply(config: KernelConfig) -> dict[str, Any]:
    """Return counters of 100 packets of VOICE, of which 30 exceed the policer, and 50 others, of which 5 meet a full
    queue.
    """
    classes = json.loads(json.dumps((config.classes or {})["eth1"]))
    voice, rest = (next(each for each in classes if each["path"][-1] == name) for name in ("VOICE", "class-default"))
    stats = {"packets": 0, "bytes": 0, "drops": 0, "overlimits": 0}

    def action(kind: str, **numbers: int) -> dict[str, Any]:
        return {"kind": kind, **stats, **numbers}

    others = next(each for each in classes if each["path"] == ["class-default", "class-default"])
    filters = [
        {
            "hook": "egress",
            "chain": voice["chain"],
            "pref": 1,
            "actions": [
                action("skbedit", packets=100, bytes=20_000),
                action("police", packets=100, bytes=20_000, drops=30, overlimits=30),
                action("police", packets=70, bytes=14_000),
            ],
        },
        {
            "hook": "egress",
            "chain": others["chain"],
            "pref": 1,
            "actions": [action("skbedit", packets=50, bytes=50_000)],
        },
    ]
    qdiscs = [
        {
            "kind": "htb",
            "handle": "1:",
            "root": True,
            "packets": 115,
            "bytes": 59_000,
            "drops": 0,
            "qlen": 0,
            "backlog": 0,
        },
        *(
            {
                "kind": "pfifo",
                "handle": f"{each['leaf'].partition(':')[2]}:",
                "parent": each["leaf"],
                "options": {"limit": 64},
                "packets": sent,
                "bytes": size,
                "drops": drops,
                "qlen": 0,
                "backlog": 0,
            }
            for each, sent, size, drops in ((voice, 70, 14_000, 0), (others, 45, 45_000, 5))
        ),
    ]
    assert rest["path"] == ["class-default"]
    return {"time_ns": 10**9, "tc": {"eth1": {"qdiscs": qdiscs, "classes": [], "filters": filters, "policy": classes}}}


def test_classes_of_a_policy_have_the_rows_of_other_routers() -> None:
    found = kernel_rows("R1", [reply(kernel_config(TOPOLOGY, "R1", POLICY))], 0)
    rows = {row["class"]: row for table, row in found if table == "classes"}
    assert set(rows) == {"class-default", "class-default/VOICE", "class-default/class-default"}
    assert {(row["policy"], row["direction"]) for row in rows.values()} == {("PARENT", "output")}
    voice, rest, outer = (rows[f"class-default{name}"] for name in ("/VOICE", "/class-default", ""))
    assert (voice["packets"], voice["bytes"], voice["drops_police_packets"]) == (100, 20_000, 30)
    assert (voice["police_conformed_packets"], voice["police_exceeded_packets"]) == (70, 30)
    assert (voice["drops_priority_packets"], voice["queue_output_packets"]) == (0, 70)
    assert (rest["drops_tail_packets"], rest["queue_discipline"], rest["queue_limit_packets"]) == (5, "pfifo", 64)
    assert (outer["packets"], outer["drops_police_packets"], outer["drops_tail_packets"]) == (150, 30, 5)


EXPERIMENT = """\
name: gateway
title: A gateway
description: A gateway.
topology:
{topology}duration: 5 s
traffic:
  - {{name: bulk, tool: iperf3, from: client, to: server, protocol: tcp, port: 5001}}
arms:
  - {{name: one, title: One, configure: {{R1: {{template: one.ios.j2}}}}}}
"""


def test_fidelity_is_noted_at_the_lines_of_the_template(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yml"
    file.write_text(EXPERIMENT.format(topology=LINKS), encoding="utf-8")
    (tmp_path / "one.ios.j2").write_text(POLICY, encoding="utf-8")
    found = fidelity_notes(load_experiment(file), file)
    lines = {each.message.split(": ")[2]: POLICY.splitlines()[each.line - 1].strip() for each in found}
    assert lines["shape average"] == "shape average 2000000"
    assert lines["priority"] == "priority 100"
