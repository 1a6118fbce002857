"""Templates of tc commands: accepted lines, refusals without a kernel, and required kinds of a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoslab.errors import ExperimentError, MachineError
from qoslab.schema import load_experiment
from qoslab.tc import place
from qoslab.tc.commands.command_words import TcError
from qoslab.tc.commands.kernel_commands import parse_commands, unsupported_lines
from qoslab.tc.kernel_kinds import KernelKinds

INTERFACES = ("eth0", "eth1")
HTB = r"""
# A shaped gateway.
tc qdisc add dev eth1 root handle 1: htb default 20
tc class add dev eth1 parent 1: classid 1:10 htb rate 1mbit \
    ceil 4mbit
tc qdisc add dev eth1 parent 1:10 handle 10: fq_codel
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc \
    police rate 1mbit burst 10k drop flowid 1:10
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: matchall action pedit munge offset 0 u8 set 0 action drop
"""


def test_commands_have_lines_interfaces_and_kinds() -> None:
    found = parse_commands(HTB, INTERFACES)
    assert [(each.number, each.what, each.interface, each.kind) for each in found] == [
        (3, "qdisc", "eth1", "htb"),
        (4, "class", "eth1", "htb"),
        (6, "qdisc", "eth1", "fq_codel"),
        (7, "filter", "eth1", "u32"),
        (9, "qdisc", "eth0", "ingress"),
        (10, "filter", "eth0", "matchall"),
    ]
    assert found[1].words[-2:] == ("ceil", "4mbit")
    assert [each.actions for each in found if each.actions] == [("police",), ("pedit", "gact")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cake bandwidth 20mbit", 'found "cake", expected a command of tc: tc'),
        ("tc qdisc del dev eth1 root", "expected a command for a qdisc: one of add, replace"),
        ("ip link set eth1 down", 'found "ip", expected a command of tc'),
        ("tc qdisc add dev eth9 root cake", "found the interface eth9, expected dev with an interface .*eth0, eth1"),
        ("tc qdisc add root cake", "found no dev, expected dev with an interface"),
        ("tc qdisc add dev eth1 root caek", "found the qdisc caek, expected one of .*cake"),
        ("tc qdisc add dev eth1 root", "expected a kind of qdisc"),
        ("tc filter add dev eth1 matchall", "found a filter without a parent, expected parent HANDLE: or ingress"),
        ("tc filter add dev eth1 parent 1: matchall action explode", "found the action explode"),
    ],
)
def test_lines_are_refused_with_their_number(line: str, message: str) -> None:
    with pytest.raises(TcError, match=message) as refused:
        parse_commands(f"# comment\n{line}\n", INTERFACES)
    assert refused.value.number == 2


def test_quotation_marks_join_tc_words() -> None:
    (command,) = parse_commands("tc filter add dev eth1 ingress basic match 'meta(nf_mark eq 1)' action ok", INTERFACES)
    assert command.words[-4:] == ("match", "meta(nf_mark eq 1)", "action", "ok")
    assert (command.kind, command.actions, command.place["hook"]) == ("basic", ("gact",), "ingress")


def test_kinds_that_a_kernel_lacks_are_reported_with_their_lines() -> None:
    has = KernelKinds("6.18", frozenset({"htb", "ingress"}), frozenset({"u32"}), frozenset({"gact"}))
    assert list(unsupported_lines(parse_commands(HTB, INTERFACES), has)) == [
        (6, "qdisc fq_codel (module sch_fq_codel)"),
        (7, "action police (module act_police)"),
        (10, "filter matchall (module cls_matchall)"),
        (10, "action pedit (module act_pedit)"),
    ]


def test_routers_without_commands_run_in_this_kernel() -> None:
    assert place.guest_routers({"R1": []}) == frozenset()


def test_missing_kind_without_a_user_mode_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    here = KernelKinds("6.18", frozenset({"htb"}), frozenset(), frozenset())
    monkeypatch.setattr(place, "probe_machine", lambda: here)
    commands = parse_commands("tc qdisc add dev eth1 root handle 1: cake\n", INTERFACES)
    monkeypatch.setattr(place, "find", lambda: None)
    with pytest.raises(MachineError, match=r"6\.18 lacks qdisc cake \(module sch_cake\) of R1 \(line 1\)") as refused:
        place.guest_routers({"R1": commands})
    assert "user-mode-linux" in refused.value.hint

    class Image:
        release = "6.1"

        def kinds(self) -> KernelKinds:
            return here

    monkeypatch.setattr(place, "find", Image)
    with pytest.raises(ExperimentError, match=r"user-mode Linux 6\.1 lack qdisc cake"):
        place.guest_routers({"R1": commands})


GATEWAY = """\
name: gateway
title: A gateway
description: A gateway.
topology:
  nodes: {client: {platform: host}, R1: {platform: tc}, server: {platform: host}}
  links:
    - name: near
      rate: 100 Mb/s
      ends:
        - {node: client, interface: eth0, address: 10.1.0.10/24}
        - {node: R1, interface: eth0, address: 10.1.0.1/24}
    - name: line
      rate: 10 Mb/s
      ends:
        - {node: R1, interface: eth1, address: 10.2.0.1/24}
        - {node: server, interface: eth0, address: 10.2.0.10/24}
duration: 5 s
traffic:
  - {name: bulk, tool: iperf3, from: client, to: server, protocol: tcp, port: 5001}
arms:
  - {name: one, title: One, configure: {R1: {template: one.tc.j2, variables: {qdisc: fq_codel}}}}
"""


def test_experiment_with_a_gateway_is_checked_at_its_template(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yml"
    file.write_text(GATEWAY, encoding="utf-8")
    template = tmp_path / "one.tc.j2"
    template.write_text("# shaped\ntc qdisc add dev eth1 root {{ qdisc }}\n", encoding="utf-8")
    assert load_experiment(file).topology.nodes["R1"].platform == "tc"
    template.write_text("# shaped\ntc qdisc add dev eth9 root {{ qdisc }}\n", encoding="utf-8")
    with pytest.raises(ExperimentError) as refused:
        load_experiment(file)
    (finding,) = refused.value.findings
    assert (Path(finding.file).name, finding.line) == ("one.tc.j2", 2)
    assert "found the interface eth9" in finding.message


def test_probes_and_show_commands_at_a_gateway_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yml"
    (tmp_path / "one.tc.j2").write_text("tc qdisc add dev eth1 root {{ qdisc }}\n", encoding="utf-8")
    asked = """\
probes:
  - {name: own, type: icmp-echo, from: R1, to: server, frequency: 1 s, timeout: 900 ms}
  - {name: udp, type: udp-echo, from: client, to: R1, port: 7000, frequency: 1 s, timeout: 900 ms}
  - {name: ping, type: icmp-echo, from: client, to: R1, frequency: 1 s, timeout: 900 ms}
observe: [{node: R1, command: show version, when: [after]}]
"""
    file.write_text(GATEWAY + asked, encoding="utf-8")
    with pytest.raises(ExperimentError) as refused:
        load_experiment(file)
    assert [each.path for each in refused.value.findings] == ["probes.own.from", "probes.udp.to", "observe[0].node"]
