"""Inert lines, and lines refused with a reason."""

from __future__ import annotations

import pytest
from fake_router import FakeRouter, type_lines

from qoslab.errors import IosError
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from rollback_lines import undo_lines

HARDWARE = Hardware("2811", ("FastEthernet0/0", "FastEthernet0/1"))
BARE = render(Device(HARDWARE))


def lines(text: str) -> list[str]:
    """Return the lines that a configuration adds to the empty one."""
    return [line for line in render(parse_config(text, HARDWARE)).splitlines() if line not in BARE.splitlines()]


def test_later_value_replaces_the_earlier_one() -> None:
    assert lines("snmp-server location A\nsnmp-server location B") == ["snmp-server location B"]
    assert lines("ntp server 10.0.0.1\nntp server 10.0.0.2 prefer") == [
        "ntp server 10.0.0.1",
        "ntp server 10.0.0.2 prefer",
    ]


def test_disabled_default_is_printed() -> None:
    assert lines("no service pad") == ["no service pad"]
    assert lines("no service pad\nservice pad") == []
    assert lines("no ip http server") == ["no ip http server"]
    assert lines("no ip http server\nip http server") == ["ip http server"]
    assert lines("interface fa0/0\n no ip redirects\n ip redirects") == []


def test_abbreviations_are_printed_in_full() -> None:
    assert lines("snmp-s comm public ro") == ["snmp-server community public ro"]
    assert lines("line vty 0 4\nsession-t 5") == [" session-timeout 5"]


def test_no_form_removes_a_line() -> None:
    assert lines("logging host 10.0.0.1\nno logging host 10.0.0.1") == []
    assert lines("snmp-server community public RO\nno snmp-server community public") == []
    assert lines("archive\n log config\n  hidekeys\nno archive") == []
    assert lines("archive\n path flash:a\n maximum 5\n no maximum") == ["archive", " path flash:a"]


def test_inert_block_is_stored_with_its_indentation() -> None:
    block = ["key chain K", " key 1", "  key-string a", " key 2", "  key-string a"]
    assert lines("\n".join(block)) == block
    assert lines("\n".join(block + block)) == block


def test_block_ends_at_the_next_command() -> None:
    """Type a block without indentation: a line belongs to the block unless a command begins like it."""
    device = parse_config("ip dhcp pool P\nnetwork 10.0.0.0 255.0.0.0\nhostname R9\n", HARDWARE)
    assert device.hostname == "R9"
    assert "ip dhcp pool P\n network 10.0.0.0 255.0.0.0\n" in render(device)
    with pytest.raises(IosError, match="Invalid input"):
        parse_config("archive\nhostname\tR1 R2\n", HARDWARE)


def test_inert_lines_are_reported_once_each() -> None:
    remarks = apply_config(Device(HARDWARE), "hostname R1\nno ip http server\narchive\n log config\n  hidekeys\n")
    assert [(remark.number, remark.line.text, remark.line.subject) for remark in remarks] == [
        (2, "no ip http server", "web server and flow export"),
        (3, "archive", "the chassis and its management"),
    ]


SHAPED = "policy-map P\n class class-default\n  shape average 128000\n"


def test_shapers_accept_frame_relay_adaptation() -> None:
    text = f"{SHAPED}  shape adaptive 64000\n  shape fecn-adapt\n  shape adaptive 56000"
    printed = ["  shape average 128000", "  shape adaptive 56000", "  shape fecn-adapt"]
    assert [line for line in lines(text) if "shape" in line] == printed
    assert lines("\n".join(lines(text))) == lines(text)
    assert lines(f"{text}\n  no shape adaptive\n  no shape fecn-adapt") == lines(SHAPED)
    remarks = apply_config(Device(HARDWARE), text)
    about = "Frame Relay congestion bits, which no frame here carries"
    assert [(each.number, each.line.subject) for each in remarks] == [(4, about), (5, about), (6, about)]
    plain, shaped = (parse_config(each, HARDWARE) for each in (SHAPED, text))
    assert compile_device(shaped) == compile_device(plain)
    assert undo_lines(render(plain), render(shaped), HARDWARE) == [
        "policy-map P",
        " class class-default",
        "  no shape fecn-adapt",
        "  no shape adaptive",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("shape adaptive 7999", "Invalid input"),
        ("shape adaptive", "Incomplete command"),
    ],
)
def test_commands_that_classes_lack_are_refused(line: str, message: str) -> None:
    with pytest.raises(IosError, match=message):
        parse_config(f"{SHAPED}  {line}", HARDWARE)
    # Neighbouring values are accepted.
    parse_config(f"{SHAPED}  police rate 8000 bps burst 1500\n  random-detect\n  fair-queue", HARDWARE)


def test_effective_commands_are_refused_with_the_reason() -> None:
    with pytest.raises(IosError, match="% Not supported: addresses are not translated"):
        parse_config("ip nat inside source list 1 interface FastEthernet0/0 overload", HARDWARE)


def test_lines_below_a_refused_line_configure_nothing_else() -> None:
    session = ConfigSession(Device(HARDWARE))
    refused = []
    pasted = """interface FastEthernet0/0
 description lan
controller T1 0/0
 description tunnel
 ip address 10.0.0.1 255.255.255.0
interface FastEthernet0/7
 shutdown
router ospf 1
 network 10.0.0.0 0.255.255.255 area 0
hostname R1"""
    for line in pasted.splitlines():
        try:
            session.execute(line)
        except IosError as error:
            refused.append((line.strip(), error.message))
    below = "% Not supported: it is below a line that was refused"
    assert refused == [
        ("controller T1 0/0", "% Not supported: no interface of this kind is modelled"),
        ("description tunnel", below),
        ("ip address 10.0.0.1 255.255.255.0", below),
        ("interface FastEthernet0/7", "% Invalid input detected at '^' marker."),
        ("shutdown", below),
        ("router ospf 1", "% Not supported: only static routes are supported: no routing protocol runs"),
        ("network 10.0.0.0 0.255.255.255 area 0", below),
    ]
    expected = parse_config("interface FastEthernet0/0\n description lan\nhostname R1", HARDWARE)
    assert session.device == expected


def test_indented_line_belongs_only_to_its_block() -> None:
    with pytest.raises(IosError, match="Invalid input"):
        parse_config("interface fa0/0\n snmp-server location A\n", HARDWARE)
    assert lines("interface fa0/0\nsnmp-server location A\n") == ["snmp-server location A"]


def test_user_has_one_password() -> None:
    assert lines("username a secret 0 x\nusername a password 7 0822455D0A16") == ["username a password 7 0822455D0A16"]
    assert len(lines("username a password 7 0822455D0A16\nusername a privilege 1 secret 0 x")) == 1
    assert lines("username a password 7 0822455D0A16\nno username a") == []


def test_inert_lines_are_removed_and_restored() -> None:
    after = render(parse_config("no service pad\narchive\n path flash:\n maximum 3\nntp server 10.0.0.1\n", HARDWARE))
    before = render(parse_config("archive\n path tftp:\ninterface fa0/0\n no ip redirects\n", HARDWARE))
    assert undo_lines(before, after, HARDWARE) == [
        "default service pad",
        "no ntp server 10.0.0.1",
        "no archive",
        "archive",
        " path tftp:",
        "interface FastEthernet0/0",
        " no ip redirects",
    ]
    device = parse_config(after, HARDWARE)
    apply_config(device, "\n".join(undo_lines(before, after, HARDWARE)))
    assert render(device) == before


def test_certificate_is_typed_at_the_terminal() -> None:
    router = FakeRouter()
    certificate = "crypto pki certificate chain TP\r certificate self-signed 01\r  3082023E 308201A7\r  \tquit\rend\r"
    text = type_lines(router, "conf t\r" + certificate)
    assert "%" not in text
    assert render(router.device).count("certificate") == 2


@pytest.mark.parametrize("subject", ["enable", "username carol"])
def test_refused_secret_leaves_the_saved_one(subject: str) -> None:
    device = parse_config(f"{subject} secret 9 $9$abc", HARDWARE)
    before = device.copy()
    with pytest.raises(IosError, match="secret"):
        apply_config(device, f"{subject} secret 5 plain")
    assert device == before
