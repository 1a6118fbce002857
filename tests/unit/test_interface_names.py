"""Different interface names of a device: in commands sent, and in parsed output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoslab.ios.device_config.interface_names import IDENTITY_NAMES, InterfaceNames
from qoslab.model.interface_selection import select_experiment_interfaces

NAMES = InterfaceNames({"FastEthernet0/0": "FastEthernet0/1", "FastEthernet0/1": "GigabitEthernet0/1/0"})


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("interface FastEthernet0/0", "interface FastEthernet0/1"),
        ("interface fa0/1", "interface GigabitEthernet0/1/0"),
        ("int FastEthernet 0/1.20", "int GigabitEthernet0/1/0.20"),
        ("ip route 10.0.0.0 255.0.0.0 f0/1", "ip route 10.0.0.0 255.0.0.0 GigabitEthernet0/1/0"),
        ("show policy-map interface Fa0/1 output", "show policy-map interface GigabitEthernet0/1/0 output"),
        ("interface FastEthernet0/10", "interface FastEthernet0/10"),
        ("interface Ethernet0/0", "interface Ethernet0/0"),
        ("policy-map to-Fa0/0", "policy-map to-Fa0/0"),
        ("  police 8000 1500", "  police 8000 1500"),
        (" bandwidth percent 0", " bandwidth percent 0"),
    ],
)
def test_sent_line_has_the_device_names(line: str, sent: str) -> None:
    assert NAMES.to_device(line) == sent
    assert IDENTITY_NAMES.to_device(line) == line


def test_parsed_answer_has_the_experiment_names() -> None:
    text = {
        "FastEthernet0/1": {"input": "GigabitEthernet0/1/0.5", "rate": 8000},
        "Se0": [None, "FastEthernet0/1"],
    }
    assert NAMES.from_device(text) == {
        "FastEthernet0/0": {"input": "FastEthernet0/1.5", "rate": 8000},
        "Se0": [None, "FastEthernet0/0"],
    }
    assert NAMES.from_device(None) is None


def test_port_outside_the_experiment_is_not_renamed() -> None:
    names = InterfaceNames({"FastEthernet0/0": "FastEthernet1/0", "FastEthernet0/1": "FastEthernet0/1"})
    text = {"FastEthernet0/0": "management", "FastEthernet1/0": "test", "FastEthernet0/0.7": "own", "Vlan1": "made"}
    read = names.from_device(text)
    assert read == {
        "own-FastEthernet0/0": "management",
        "FastEthernet0/0": "test",
        "own-FastEthernet0/0.7": "own",
        "Vlan1": "made",
    }
    assert select_experiment_interfaces(read, ["FastEthernet0/0.20"]) == {"FastEthernet0/0": "test", "Vlan1": "made"}
    # The order of a device's list does not matter, nor does a unique name.
    assert names.from_device(dict(reversed(text.items()))) == read
    assert names.from_device({"FastEthernet0/1": 1}) == {"FastEthernet0/1": 1}


@given(st.permutations([f"FastEthernet0/{number}" for number in range(4)]), st.integers(0, 3))
def test_renaming_is_reversible(order: list[str], number: int) -> None:
    names = InterfaceNames({f"FastEthernet0/{at}": device for at, device in enumerate(order)})
    here = f"interface FastEthernet0/{number}.7"
    assert names.to_device(here) == f"interface {order[number]}.7"
    assert names.from_device(names.to_device(here)) == here
