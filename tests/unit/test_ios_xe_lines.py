"""QoS lines of IOS-XE: each is accepted, or refused by name with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qoslab.ios.cli.grammar import CliError
from qoslab.ios.cli.session import Position
from qoslab.ios.config import ConfigSession
from qoslab.ios.device_config.running_config_parser import described_hardware, read_running
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.parse import parse_config
from qoslab.ios.running_config import render

LINES = Path(__file__).parent.parent / "ios_xe" / "lines.txt"
INTERFACES = (
    *(f"GigabitEthernet0/0/{number}" for number in range(2)),
    "TenGigabitEthernet0/1/0",
    "TwoGigabitEthernet0/0/0",
)
HARDWARE = Hardware("ISR4451", INTERFACES, "ios-xe", "17.9")
BEFORE = """\
ip access-list extended VOICE-ACL
 permit udp any any range 16384 32767
access-list 101 permit ip any any
class-map match-any OTHER
 match dscp af41
class-map match-any VOICE
policy-map CHILD
 class class-default
  set dscp default
policy-map PARENT
 class class-default
  shape average 50000000
policy-map MARKING
 class class-default
  set dscp 0
policy-map X
 class VOICE
"""
BLOCKS = {
    "config": [],
    "config blocks": [],
    "class-map VOICE": ["class-map match-any VOICE"],
    "policy-class output": ["policy-map X", "class VOICE"],
    "police": ["policy-map X", "class VOICE", "police cir 1000000"],
    "interface GigabitEthernet0/0/0": ["interface GigabitEthernet0/0/0"],
}
BASES = ("dscp", "cos", "discard-class")
NOT_ALONE = ("queue-limit", "random-detect", "fair-queue")


def lines() -> Iterator[tuple[str, str, bool]]:
    """Yield each line with its block, and whether it is refused by name."""
    block = ""
    for line in LINES.read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            block = line.removeprefix("=== ")
        elif not line.startswith("!"):
            yield block, line.removeprefix("- "), line.startswith("- ")


REFUSED = {(block, line) for block, line, refused in lines() if refused}
ALL = [(block, line) for block, line, _ in lines()]


def session(block: str, line: str) -> ConfigSession:
    """Return a session with the block of a line entered, and the other lines that it needs."""
    made = ConfigSession(parse_config(BEFORE, HARDWARE))
    made.position = Position("config")
    words = line.split()
    for each in BLOCKS[block]:
        made.execute(each)
    if block.startswith("policy-class") and words[0] in NOT_ALONE:
        made.execute("bandwidth remaining percent 10")
        if words[0] == "random-detect" and len(words) > 1:
            made.execute(f"random-detect {words[1]}-based" if words[1] in BASES else "random-detect")
    return made


def refusal(block: str, line: str) -> str:
    made = session(block, line)
    try:
        made.execute(line)
    except CliError as error:
        return error.message
    return ""


@pytest.mark.parametrize(("block", "line"), ALL, ids=[line for _, line in ALL])
def test_line_is_accepted_or_refused_by_name(block: str, line: str) -> None:
    found = refusal(block, line)
    expected = "% Not supported: " if (block, line) in REFUSED else ""
    assert found[: len("% Not supported: ")] == expected, found


@pytest.mark.parametrize(("block", "line"), [each for each in ALL if each[0] == "policy-class output"])
def test_line_is_printed_parsed_and_removed(block: str, line: str) -> None:
    made = session(block, line)
    before = render(made.device)
    try:
        made.execute(line)
    except CliError:
        pytest.skip("it is refused, which the first test has")
    printed = render(made.device)
    again = read_running(printed, described_hardware(printed, "router", "ios-xe"))
    assert again.unread == []
    assert render(again.device) == printed
    made.position = Position("config")
    for each in BLOCKS[block]:
        made.execute(each)
    if line.split()[0] != "random-detect" and line != "description voice":
        made.execute(f"no {line}")
        assert render(made.device) == before


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        (["class OTHER", "priority", "bandwidth 1000"], "Bandwidth not allowed with priority"),
        (["class OTHER", "queue-limit 100"], "queue-limit not allowed without bandwidth shape or priority command"),
        (["class OTHER", "bandwidth percent 30", "class VOICE", "bandwidth 100"], "Mixed bandwidth types are not"),
        (["class OTHER", "bandwidth percent 60", "class VOICE", "bandwidth percent 41"], "exceeds 100 percent"),
        (["class OTHER", "bandwidth percent 30", "service-policy PARENT"], "queueing child policy"),
    ],
)
def test_unsupported_ios_xe_lines_are_refused(typed: list[str], reason: str) -> None:
    made = ConfigSession(parse_config(BEFORE, HARDWARE))
    for line in ("policy-map Y", *typed[:-1]):
        made.execute(line)
    before = render(made.device)
    with pytest.raises(CliError, match=reason):
        made.execute(typed[-1])
    assert render(made.device) == before


def test_ios_xe_reserves_up_to_the_whole_bandwidth() -> None:
    made = ConfigSession(parse_config(BEFORE, HARDWARE))
    for line in ("policy-map Y", "class OTHER", "bandwidth percent 60", "class VOICE", "bandwidth percent 40"):
        made.execute(line)
    assert "bandwidth percent 40" in render(made.device)


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("gi0/0/0", "GigabitEthernet0/0/0"),
        ("te0/1/0", "TenGigabitEthernet0/1/0"),
        ("two0/0/0", "TwoGigabitEthernet0/0/0"),
    ],
)
def test_interfaces_have_short_names(short: str, name: str) -> None:
    made = ConfigSession(Device(HARDWARE))
    made.execute(f"interface {short}")
    assert made.position.names == (name,)
