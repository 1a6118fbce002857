"""Qdiscs of this kernel: checked before they are applied, read back, counted, and removed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from qoslab.errors import DeviceError
from qoslab.tc.daemon import namespace_runner
from qoslab.tc.interface_qdiscs import InterfaceQdiscs, RefusedCommandError
from qoslab.tc.lab_line import Line, line_commands, move_below_line

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces"),
]

HTB = [
    line.split()
    for line in (
        "qdisc add dev eth1 root handle 1: htb default 20",
        "class add dev eth1 parent 1: classid 1:10 htb rate 1mbit ceil 4mbit",
        "qdisc add dev eth1 parent 1:10 handle 10: pfifo limit 50",
        "filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10",
        "qdisc add dev eth0 ingress",
    )
]
WRONG = "class add dev eth1 parent 1: classid 1:30 htb rate 1mbit burst many"


def shell(text: str) -> str:
    return subprocess.run(["sh", "-ec", text], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def network_namespace() -> Iterator[str]:
    """Yield a network namespace with the interfaces eth0 and eth1, without offloads."""
    name = f"tc{os.getpid()}"
    shell(f"ip netns add {name}")
    try:
        for number in (0, 1):
            shell(
                f"ip -n {name} link add eth{number} type veth peer name p{number};"
                f"ip -n {name} link set eth{number} up;"
                f"ip -n {name} link set p{number} up;"
                f"ip netns exec {name} ethtool -K eth{number} tso off gso off gro off >/dev/null"
            )
        yield name
    finally:
        shell(f"ip netns delete {name}")


def qdiscs(network_namespace: str) -> InterfaceQdiscs:
    return InterfaceQdiscs(namespace_runner(f"/run/netns/{network_namespace}"), ["eth0", "eth1"])


LINES = {name: Line(20_000_000, 24, 84, 12_500) for name in ("eth0", "eth1")}


def below_lines(commands: list[list[str]]) -> list[list[str]]:
    return [*line_commands(LINES), *(move_below_line(each, LINES) for each in commands)]


def test_commands_are_applied_below_the_line_and_counted(network_namespace: str) -> None:
    found = qdiscs(network_namespace)
    found.refuse_foreign()
    commands = below_lines(HTB)
    assert found.configure(commands) == commands
    shown = found.listing(commands)
    assert "class htb 7fff:1 root leaf 1: prio 0 rate 20Mbit overhead 24 ceil 20Mbit" in shown
    assert "qdisc htb 1: parent 7fff:1" in shown
    assert "00b80000/00fc0000 at 0" in shown
    counted = found.counters([("eth0", "ingress")])["interfaces"]
    assert sorted(each["kind"] for each in counted["eth1"]["qdiscs"]) == ["htb", "htb", "pfifo"]
    assert {each["handle"] for each in counted["eth1"]["classes"]} == {"7fff:1", "1:10"}
    found.restore()
    assert "htb" not in shell(f"ip netns exec {network_namespace} tc qdisc show")


def test_only_the_difference_is_sent(network_namespace: str) -> None:
    found = qdiscs(network_namespace)
    found.configure(HTB)
    assert found.configure(HTB) == []
    faster = [[each.replace("1mbit", "2mbit") for each in words] for words in HTB]
    changed = [
        "class",
        "change",
        "dev",
        "eth1",
        "parent",
        "1:",
        "classid",
        "1:10",
        "htb",
        "rate",
        "2mbit",
        "ceil",
        "4mbit",
    ]
    assert found.configure(faster) == [changed]
    bytes_instead = [["bfifo" if each == "pfifo" else each for each in words] for words in faster]
    (gone, added) = found.configure(bytes_instead)
    assert gone == ["qdisc", "del", "dev", "eth1", "parent", "1:10"]
    assert added == ["qdisc", "add", "dev", "eth1", "parent", "1:10", "handle", "10:", "bfifo", "limit", "50"]
    without_filter = [words for words in bytes_instead if words[0] != "filter"]
    assert found.configure(without_filter) == [
        ["filter", "del", "dev", "eth1", "parent", "1:", "chain", "0", "pref", "1"]
    ]
    assert found.is_as_configured()
    shell(
        f"ip netns exec {network_namespace} tc class change dev eth1 parent 1: classid 1:10 htb rate 3mbit ceil 4mbit"
    )
    assert not found.is_as_configured()
    # A change by somebody else is no base for a difference.
    assert found.configure(without_filter) == without_filter
    assert found.is_as_configured()


def test_unchangeable_parameter_replaces_the_whole_tree(network_namespace: str) -> None:
    found = qdiscs(network_namespace)
    found.configure(HTB)
    other = [["10" if each == "20" else each for each in words] for words in HTB]
    assert found.configure(other) == other
    assert "default 0x10" in found.listing(other)


def test_removed_qdisc_removes_its_tree(network_namespace: str) -> None:
    found = qdiscs(network_namespace)
    found.configure(HTB)
    assert found.configure(HTB[-1:]) == HTB[-1:]
    assert "htb" not in shell(f"ip netns exec {network_namespace} tc qdisc show")


def test_rejected_parameter_changes_nothing(network_namespace: str) -> None:
    found = qdiscs(network_namespace)
    found.configure(below_lines([]))
    before = shell(f"ip netns exec {network_namespace} tc qdisc show")
    wrong = [*HTB, WRONG.split()]
    with pytest.raises(RefusedCommandError, match='burst many": Illegal "burst"') as refused:
        found.configure(wrong)
    assert refused.value.index == 5
    assert shell(f"ip netns exec {network_namespace} tc qdisc show") == before


def test_foreign_qdiscs_and_offloads_are_refused(network_namespace: str) -> None:
    found = qdiscs(network_namespace)
    shell(f"ip netns exec {network_namespace} tc qdisc add dev eth1 root handle 5: pfifo limit 10")
    with pytest.raises(DeviceError, match="eth1 has the qdisc pfifo 5:, expected only the default"):
        found.refuse_foreign()
    shell(
        f"ip netns exec {network_namespace} tc qdisc del dev eth1 root; ip netns exec {network_namespace} "
        "ethtool -K eth0 gro on"
    )
    with pytest.raises(DeviceError, match="eth0 has generic-receive-offload on"):
        found.refuse_foreign()
