"""Lines that change one running configuration back to another."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from ansible_collections.ansible.netcommon.plugins.module_utils.network.common.config import NetworkConfig, dumps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ios_commands import lines_of_each_command
from ios_strategies import devices, hardware
from levels import run_all_cases, value_by_level
from qoslab.errors import IosError
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.cli.session import INERT
from qoslab.ios.config import CONFIG, ConfigSession
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from rollback_lines import undo_lines
from switch_strategies import switch_hardware


@st.composite
def pairs(draw: DrawFn) -> tuple[Device, Device]:
    generation: Generation = draw(st.sampled_from(("classic", "hqf")))  # type: ignore[assignment]
    return draw(devices(generation)), draw(devices(generation))


@given(pairs())
@settings(
    max_examples=value_by_level(short=3, long=60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_rollback_lines_restore_the_configuration(pair: tuple[Device, Device]) -> None:
    before, after = pair
    lines = undo_lines(render(before), render(after), before.hardware)
    device = after.copy()
    apply_config(device, "\n".join(lines))
    assert device == before
    assert bool(lines) == (before != after)


@given(pairs())
@settings(
    max_examples=value_by_level(short=3, long=25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_ansible_sends_every_line(pair: tuple[Device, Device]) -> None:
    before, after = (replace(device, banner_motd=None) for device in pair)
    lines = undo_lines(render(before), render(after), before.hardware)
    sent = dumps(NetworkConfig(indent=1, contents="\n".join(lines)).items, "commands")
    assert sent.split("\n") == [line.strip() for line in lines] or (sent, lines) == ("", [])


FAMILIES = {
    **{each: replace(hardware(each), interfaces=(*hardware(each).interfaces, "ATM1/0")) for each in ("classic", "hqf")},
    "switch": switch_hardware(),
}


RARE = (
    "[<sequence:1-2147483647>] (permit|deny) object-group",
    "ip sla [monitor] schedule",
    "traffic-class",
    "service-policy <policy",
    "priority [",
    "qoslab-extension",
    "police aggregate",
    "police cir <",
    "police rate <",
)
"""Lines that a random line rarely hits; they have separate tests."""

UNPRINTED = {"ip sla monitor <number:1-2147483647>"}
"""Older spellings of commands, which are printed as the newer ones."""


def type_lines(random: Random, device: Device) -> Device:
    """Return the device after lines of all its commands, some of which it refuses."""
    session = ConfigSession(device)
    for line in lines_of_each_command(random, session.capabilities, device.hardware.interfaces):
        with suppress(CliError):
            session.execute(line)
        if session.is_collecting_banner:
            session.execute("@")
    return device


@pytest.mark.parametrize(("family", "seeds"), [(family, range(value_by_level(short=1, long=8))) for family in FAMILIES])
def test_rollback_lines_undo_all_typed_lines(family: str, seeds: range) -> None:
    chassis = FAMILIES[family]
    for seed in seeds:
        random = Random(seed)
        before = type_lines(random, Device(chassis))
        after = type_lines(random, before.copy() if seed % 2 else Device(chassis))
        lines = undo_lines(render(before), render(after), chassis)
        device = after.copy()
        apply_config(device, "\n".join(lines))
        assert device == before, seed


LEAST_DRAWS, MOST_DRAWS = value_by_level(short=1, long=20), value_by_level(short=2, long=200)
"""Bounds of the number of drawn devices until each line was printed once; the short level ends with a few of the
lines.
"""


@pytest.mark.parametrize("family", FAMILIES)
def test_each_printed_line_has_its_own_key(family: str) -> None:
    """Compare keys of lines: two lines in one place with one key would be two values of one setting, and one would be
    lost.
    """
    chassis = FAMILIES[family]
    found: set[str] = set()
    modes = {"config"}
    missing: set[str] = set()
    for seed in range(MOST_DRAWS):
        session = ConfigSession(Device(chassis))
        keys: set[tuple[str, ...]] = set()
        for text in render(type_lines(Random(seed), Device(chassis))).splitlines():
            line = text.strip()
            below_kept = session.position.mode == INERT and text.startswith(" ")
            if session.is_collecting_banner or below_kept or line in ("", "!"):
                session.execute(text)
                continue
            match = session.parse(line)
            while session.position.mode != match.mode:
                session.leave()
            place = (match.mode, *session.position.names)
            session.execute_match(match)
            modes.add(session.position.mode)
            found.add(match.command.syntax)
            if match.command.undo.table or match.command.undo.split is not None:
                continue
            key = (*place, match.key(line))
            assert key not in keys, f"{line}: {key}"
            keys.add(key)
        printable = {
            each.command.syntax
            for mode in modes - {INERT}
            for each in CONFIG._modes[mode]
            if each.form == "set" and each.command.no is not False and each.command.requires <= session.capabilities
        }
        missing = {syntax for syntax in printable - found - UNPRINTED if not syntax.startswith(RARE)}
        if seed >= LEAST_DRAWS and not missing:
            break
    assert found and (missing == set() or not run_all_cases())
    assert not found & UNPRINTED


def undo_configuration(before: str, after: str, base: str = "", generation: Generation = "classic") -> list[str]:
    """Return the lines from the configuration `base` + `after` to `base` + `before`."""
    chassis = hardware(generation)
    one, other = (render(parse_config(base + text, chassis)) for text in (before, after))
    lines = undo_lines(one, other, chassis)
    device = parse_config(other, chassis)
    apply_config(device, "\n".join(lines))
    assert render(device) == one
    return lines


BASE = (
    "class-map Web\n match dscp ef\nclass-map Bulk\n match cos 1\ninterface Fa0/1\n ip address 10.0.1.1 255.255.255.0\n"
)
POLICED = "policy-map P\n class class-default\n  police cir 1000000\ninterface Fa0/1\n service-policy output P\n"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("", "", []),
        # The configuration pushed by a run is detached and removed.
        ("", POLICED, ["interface FastEthernet0/1", " no service-policy output P", "no policy-map P"]),
        # A policy stays attached while its policer is replaced.
        (
            POLICED,
            POLICED.replace("1000000", "2000000\n   exceed-action transmit"),
            ["policy-map P", " class class-default", "  no police", "  police cir 1000000"],
        ),
        ("hostname A\n", "hostname B\n", ["hostname A"]),
        (
            "interface Fa0/0\n description old\n load-interval 30\n",
            "interface Fa0/0\n description new\n shutdown\n",
            ["interface FastEthernet0/0", " no shutdown", " description old", " load-interval 30"],
        ),
        ("interface s0/0\n no fair-queue\n", "", ["interface Serial0/0", " no fair-queue"]),
        ("", "interface s0/0\n no fair-queue\n", ["interface Serial0/0", " default fair-queue"]),
        ("", "interface s0/0\n fair-queue\n", ["interface Serial0/0", " default fair-queue"]),
        ("", "no ip cef\nno logging console\n", ["default logging console", "ip cef"]),
        ("", "username u privilege 15\n", ["no username u"]),
        # Terminal lines are merged again, and removing the first removes those after it.
        (
            "line vty 0 4\n login local\n",
            "line vty 0 7\n no login\n",
            ["no line vty 5", "line vty 0 4", " login local"],
        ),
        ("", "line vty 2\n exec-timeout 5 0\n", ["line vty 2", " default exec-timeout"]),
        # The type of a class-map is overwritten; its criteria keep their order.
        ("", "class-map match-any Web\n", ["class-map match-all Web"]),
        (
            "",
            "class-map Web\n no match dscp ef\n match cos 2\n match dscp ef\n",
            ["class-map match-all Web", " no match cos 2"],
        ),
        # A class that belongs further up is entered again.
        (
            "policy-map P\n class Web\n  set cos 1\n class Bulk\n  set cos 2\n",
            "policy-map P\n class Bulk\n  set cos 2\n class Web\n  set cos 1\n",
            [
                "policy-map P",
                " no class Web",
                " no class Bulk",
                " class Web",
                "  set cos 1",
                " class Bulk",
                "  set cos 2",
            ],
        ),
        # A shaper that is typed again stays before the interface's other shapers.
        (
            "interface Fa0/0\n traffic-shape group 1 8000 256 0 1\n traffic-shape group 101 8000 256 0 1\n",
            "interface Fa0/0\n traffic-shape group 101 8000 256 0 1\n traffic-shape group 1 9000 256 0 1\n",
            ["interface FastEthernet0/0", " traffic-shape group 1 8000 256 0 1"],
        ),
        # The order of entries matters.
        (
            "access-list 101 permit tcp any any\naccess-list 101 deny ip any any\n",
            "access-list 101 deny ip any any\naccess-list 101 permit tcp any any\n",
            ["no access-list 101", "access-list 101 permit tcp any any", "access-list 101 deny ip any any"],
        ),
        (
            "ip access-list standard L\n permit any\n",
            "ip access-list extended L\n permit ip any any\n",
            ["no ip access-list extended L", "ip access-list standard L", " permit any"],
        ),
        ("banner motd @\nhello\n@\n", "", ["banner motd ^C", "hello", "^C"]),
        ("", "banner motd @\nhello\n@\n", ["no banner motd"]),
    ],
)
def test_rollback_lines_are_exact(before: str, after: str, lines: list[str]) -> None:
    assert undo_configuration(before, after, BASE) == lines


def test_exchanged_addresses_are_restored() -> None:
    text = (
        "interface Fa0/0\n ip address 10.0.{}.1 255.255.255.0\ninterface Fa0/1\n ip address 10.0.{}.1 255.255.255.0\n"
    )
    lines = undo_configuration(text.format(0, 1), text.replace("ip address", "no ip address\n ip address").format(1, 0))
    assert lines[:4] == ["interface FastEthernet0/0", " no ip address", "interface FastEthernet0/1", " no ip address"]


def test_rollback_exchanges_child_and_parent_policy() -> None:
    text = (
        "policy-map {}\n class class-default\n  set cos 1\npolicy-map {}\n class class-default\n  service-policy {}\n"
    )
    undo_configuration(text.format("A", "B", "A"), text.format("B", "A", "B"))


def test_printed_configurations_are_parsed() -> None:
    text = f"Building configuration...\n\nCurrent configuration : 17 bytes\n{render(Device(hardware()))}"
    assert undo_lines(text, text, hardware()) == []


@pytest.mark.parametrize(
    ("before", "after"), [("hostname R1\nrouter ospf 1\n", ""), ("", "hostname R1\nrouter ospf 1\n")]
)
def test_unreadable_lines_are_reported(before: str, after: str) -> None:
    which = "before" if before else "after"
    with pytest.raises(IosError, match=f"the configuration {which}:2: the device refuses this line\n *router ospf 1"):
        undo_lines(before, after, hardware())


ROUTED = "ip route 10.9.0.0 255.255.0.0 10.0.1.1\ninterface Fa0/1\n ip address 10.0.1.1 255.255.255.0\n"


def test_route_to_a_later_address_of_the_router_is_removed() -> None:
    """Enter both in this order: the router accepts them, so its output is parsed, and both are written again in this
    order.
    """
    assert undo_configuration(ROUTED, "") == [
        "ip route 10.9.0.0 255.255.0.0 10.0.1.1",
        "interface FastEthernet0/1",
        " ip address 10.0.1.1 255.255.255.0",
    ]
    assert undo_configuration("", ROUTED)[0] == "no ip route 10.9.0.0 255.255.0.0 10.0.1.1"


def test_timeout_above_the_default_frequency_is_restored_in_order() -> None:
    text = "ip sla 1\n icmp-echo 10.0.0.1\n frequency 200\n timeout 100000\n"
    assert undo_configuration(text, "") == text.splitlines()
    short = "ip sla 1\n icmp-echo 10.0.0.1\n timeout 500\n frequency 2\n"
    assert undo_configuration(short, text) == ["no ip sla 1", *short.splitlines()]


@pytest.mark.parametrize("kind", ["trust", "cisco-phone", "cisco-softphone"])
def test_macro_is_rolled_back_with_all_its_changes(kind: str) -> None:
    """Remove a macro: the removal also takes `queue-set 2`; entered again it replaces restored values by the
    default.
    """
    own, macro = "interface gi1/0/15\n queue-set 2\n", f"interface gi1/0/15\n auto qos voip {kind}\n"
    reduced = macro + "no mls qos map cos-dscp\ninterface gi1/0/15\n no priority-queue out\n"
    instead = "policy-map P\n" + macro + " no service-policy input\n service-policy input P\n"
    chassis = switch_hardware()
    for before, after in ((own, own + macro), (reduced, ""), (reduced, own), (instead, ""), (instead, own)):
        one, other = (render(parse_config(text, chassis)) for text in (before, after))
        lines = undo_lines(one, other, chassis)
        device = parse_config(other, chassis)
        sent = dumps(NetworkConfig(indent=1, contents="\n".join(lines)).items, "commands").split("\n")
        apply_config(device, "\n".join(sent))
        assert render(device) == one
