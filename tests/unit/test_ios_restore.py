"""Removal of a run's configuration from a device with a long configuration."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from ios_running import change_by_others, running_config

from ios_strategies import devices
from levels import value_by_level
from qoslab.errors import QoslabError
from qoslab.ios.device_config.config_equivalence import configuration_differences
from qoslab.ios.device_config.diff import configuration_lines_between, configuration_tree, line_subject, line_table
from qoslab.ios.device_config.restore import RestorationPlan, find_collisions, plan_restoration, unrestored_lines
from qoslab.ios.device_config.running_config_parser import likely_hardware, read_running, unread_as_inert_lines
from qoslab.ios.model.device import Device, Generation, Hardware
from qoslab.ios.parse import apply_config
from qoslab.ios.running_config import render
from switch_strategies import switch_hardware, switches

HARDWARE = Hardware("2811", ("FastEthernet0/0", "FastEthernet0/1"))
BEFORE = """
Building configuration...

Current configuration : 1803 bytes
!
! Last configuration change at 10:02:11 UTC Mon Mar 1 2010 by admin
version 12.4
hostname R9
!
card type e1 0 1
crypto pki certificate chain TP-self-signed
 certificate self-signed 01
  30820250 308201B9 A0030201 02020101 300D0609
        quit
!
class-map match-any Mine
 match dscp ef
policy-map Own
 class Mine
  bandwidth 100
!
interface FastEthernet0/0
 description lan
 ip address 10.0.0.1 255.255.255.0
 ip nat inside
 crypto map TUNNELS
!
interface FastEthernet0/1
 ip address 10.0.1.1 255.255.255.0
 service-policy output Own
!
interface Multilink7
 ppp multilink
router eigrp 5
 network 10.0.0.0
!
ntp clock-period 17180234
end
"""
PUSHED = """policy-map Police
 class class-default
  police 1000000 31250 conform-action transmit exceed-action drop
interface FastEthernet0/0
 service-policy input Police
interface FastEthernet0/1
 tx-ring-limit 3
"""
UNDONE = (
    "interface FastEthernet0/0",
    " no service-policy input Police",
    "interface FastEthernet0/1",
    " no tx-ring-limit",
    "no policy-map Police",
)


AFTER = change_by_others(
    BEFORE,
    ("10:02:11", "11:40:00"),
    ("1803 bytes", "1999 bytes"),
    ("17180234", "17180311"),
    ("policy-map Own\n", "".join(PUSHED.splitlines(keepends=True)[:3]) + "policy-map Own\n"),
    (" crypto map TUNNELS\n", " crypto map TUNNELS\n service-policy input Police\n"),
    (" service-policy output Own\n", " tx-ring-limit 3\n service-policy output Own\n"),
)


def test_only_pushed_lines_are_rolled_back() -> None:
    found = plan_restoration(BEFORE, AFTER, [PUSHED], HARDWARE)
    assert (found.lines, found.left) == (UNDONE, ())


def test_restored_device_receives_no_commands() -> None:
    later = change_by_others(BEFORE, ("17180234", "17180999"), ("10:02:11", "12:00:00"))
    found = plan_restoration(BEFORE, later, [PUSHED], HARDWARE)
    assert (found.lines, found.left) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "description lan",
            "description LAN of Bob",
            "interface FastEthernet0/0: `description lan` became `description LAN of Bob`",
        ),
        (" network 10.0.0.0", " network 10.0.0.0\n network 10.2.0.0", "router eigrp 5: `network 10.2.0.0` is new"),
        (" ip nat inside\n", "", "interface FastEthernet0/0: `ip nat inside` is gone"),
        ("hostname R9", "hostname R9\nip host a 10.9.9.9", "`ip host a 10.9.9.9` is new"),
        (
            "  bandwidth 100\n",
            "  bandwidth 200\n",
            "policy-map Own, class Mine: `bandwidth 100` became `bandwidth 200`",
        ),
        ("hostname R9", "hostname R8", "`hostname R9` became `hostname R8`"),
        (
            "policy-map Own\n",
            "class-map match-any Other\n match dscp af11\npolicy-map Own\n",
            "`class-map match-any Other` is new",
        ),
    ],
)
def test_changes_by_others_stay_and_are_reported_by_restore(old: str, new: str, message: str) -> None:
    found = plan_restoration(BEFORE, change_by_others(AFTER, (old, new)), [PUSHED], HARDWARE)
    assert (found.lines, found.left) == (UNDONE, (message,))


def test_lines_added_to_an_object_of_the_run_are_removed_with_it() -> None:
    others = change_by_others(AFTER, ("police 1000000", "set dscp af11\n  police 1000000"))
    found = plan_restoration(BEFORE, others, [PUSHED], HARDWARE)
    assert (found.lines, found.left) == (UNDONE, ())


def test_line_of_the_run_that_no_longer_parses_is_removed() -> None:
    """Put a shaper into the policy of the run, which the model does not accept for input then."""
    others = change_by_others(AFTER, ("police 1000000", "shape average 500000\n  police 1000000"))
    found = plan_restoration(BEFORE, others, [PUSHED], HARDWARE)
    assert (found.lines, found.left) == (UNDONE, ())


def test_policy_of_the_run_in_use_by_others_is_reported() -> None:
    """Attach the policy of the run elsewhere: the router would refuse to remove it; the user who attached it has to
    decide.
    """
    others = change_by_others(AFTER, ("  bandwidth 100\n", "  bandwidth 100\n  service-policy Police\n"))
    with pytest.raises(QoslabError, match="found no configuration lines"):
        plan_restoration(BEFORE, others, [PUSHED], HARDWARE)


def test_object_still_in_use_is_removed_in_a_second_pass() -> None:
    first = "policy-map A\n class class-default\n  shape average 64000\ninterface fa0/0\n service-policy output A\n"
    after = change_by_others(
        AFTER,
        ("policy-map Police\n", "policy-map A\n class class-default\n  shape average 64000\npolicy-map Police\n"),
    )
    found = plan_restoration(BEFORE, after, [first, PUSHED], HARDWARE)
    assert sorted(found.lines) == sorted((*UNDONE, "no policy-map A"))
    assert found.left == ()


def test_lines_that_could_not_be_restored_are_reported() -> None:
    assert unrestored_lines(BEFORE, BEFORE, [PUSHED], HARDWARE) == []
    assert set(unrestored_lines(BEFORE, AFTER, [PUSHED], HARDWARE)) == {
        "interface FastEthernet0/0: `service-policy input Police` is new",
        "interface FastEthernet0/1: `tx-ring-limit 3` is new",
        "`policy-map Police` is new",
    }
    bob = change_by_others(BEFORE, ("hostname R9", "hostname R8"), (" ip nat inside\n", ""))
    assert unrestored_lines(BEFORE, bob, [PUSHED], HARDWARE) == [], "others did that"
    assert unrestored_lines(BEFORE, bob, [], HARDWARE) == [
        "`hostname R9` became `hostname R8`",
        "interface FastEthernet0/0: `ip nat inside` is gone",
    ], "it is not known what was pushed"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (PUSHED, []),
        ("policy-map Own\n class Mine\n  bandwidth 50\n", ["it has its own `policy-map Own`, with different content"]),
        (
            "class-map match-any Mine\n match dscp af41\n",
            ["it has its own `class-map match-any Mine`, with different content"],
        ),
        ("class-map match-any Mine\n match dscp ef\n", []),
        (
            f"{PUSHED}interface fa0/1\n service-policy output Police\n",
            ["`service-policy output Own` is already active under `interface FastEthernet0/1`"],
        ),
        ("interface fa0/1\n service-policy input Police\n", []),
    ],
)
def test_existing_objects_of_the_device_are_not_overwritten(asked: str, found: list[str]) -> None:
    assert find_collisions(BEFORE, asked, HARDWARE) == found


WORK = "permit tcp any host 10.9.9.9 eq 22 time-range work"
"""Line of an access list that the model does not accept, not even in part."""
CONTENT = {
    "access-list 102": ("access-list 102 permit udp any any eq 5001\n", f"access-list 102 {WORK}\n"),
    "access-list Mine": ("ip access-list extended Mine\n permit udp any any eq 5001\n", f" {WORK}\n"),
    "priority-list 1": ("priority-list 1 protocol ip high\n", "priority-list 1 protocol decnet low\n"),
    "queue-list 1": ("queue-list 1 protocol ip 1\n", "queue-list 1 protocol decnet 2\n"),
    "class-map Video": ("class-map match-any Video\n match dscp af41\n", " match ip tos 4\n"),
    "policy-map Mark": ("policy-map Mark\n class class-default\n  set dscp ef\n", "  police aggregate A\n"),
}
"""Configuration of the experiment, and one additional line of the device that the model does not accept."""


@pytest.mark.parametrize("name", CONTENT)
def test_unmodelled_lines_are_preserved(name: str) -> None:
    asked, strange = CONTENT[name]
    its_own = f"{asked}{strange}"
    assert [line.text for line in read_running(its_own, HARDWARE).unread] == [strange.strip()]
    (reported,) = find_collisions(its_own, asked, HARDWARE)
    assert reported == f"it has its own `{strange.strip()}` in `{name}`; the experiment would remove it too"
    (reported,) = find_collisions(asked, its_own, HARDWARE)
    assert reported == f"it has its own `{name}`, without `{strange.strip()}`"
    assert find_collisions(its_own, its_own, HARDWARE) == []
    assert find_collisions(its_own, PUSHED, HARDWARE) == [], "the experiment has none of that name"
    assert len(find_collisions(its_own, f"no {asked.splitlines()[0]}\n", HARDWARE)) == 1
    if not strange.startswith(" "):
        assert len(find_collisions(strange, asked, HARDWARE)) == 1, "there is no other line"
    # Its removal is reported nonetheless.
    assert (
        f"`{strange.strip()}` is gone"
        in unrestored_lines(its_own, asked, [f"no {asked.splitlines()[0]}\n"], HARDWARE)[-1]
    )


def test_unmodelled_line_of_the_run_is_reported_if_it_stays() -> None:
    pushed = "interface fa0/0\n ip nat outside\n"
    after = change_by_others(BEFORE, (" ip nat inside\n", " ip nat outside\n"))
    assert unrestored_lines(BEFORE, after, [pushed], HARDWARE) == ["interface FastEthernet0/0: `ip nat outside` is new"]


def test_banner_that_looks_like_configuration_is_preserved() -> None:
    text = "banner motd ^C\n! not a comment\nend\n  interface x\n^C\n"
    device = Device(HARDWARE)
    apply_config(device, text)
    found = plan_restoration(BEFORE, BEFORE.replace("ntp", f"{text}ntp"), [text], HARDWARE)
    assert (found.lines, found.left) == (("no banner motd",), ())


PUSHED_ON = {
    "R2901": """class-map match-all TEST
 match dscp af41
policy-map LIMIT
 class TEST
  police 1000000 31250 conform-action transmit exceed-action drop
 class class-default
  shape average 2000000
interface GigabitEthernet0/1
 service-policy output LIMIT
""",
    "R2811": """policy-map LIMIT
 class class-default
  police 1000000 31250 conform-action transmit exceed-action drop
interface FastEthernet0/0
 service-policy input LIMIT
 load-interval 30
interface Serial0/1/0
 tx-ring-limit 3
""",
    "R881": """policy-map LIMIT
 class VOICE
  set dscp cs5
 class class-default
  police 1000000 31250 conform-action transmit exceed-action drop
interface FastEthernet4
 service-policy output LIMIT
 load-interval 30
interface Vlan1
 ip access-group 150 out
access-list 150 permit ip any any
""",
    "S2960": """mls qos srr-queue output cos-map queue 2 threshold 1 5
interface FastEthernet0/1
 srr-queue bandwidth share 25 25 25 25
 no priority-queue out
interface GigabitEthernet0/1
 srr-queue bandwidth limit 50
""",
    "S3750": """class-map match-all TEST
 match ip dscp af11
policy-map LIMIT
 class TEST
  police 1000000 8000 exceed-action drop
mls qos queue-set output 2 threshold 1 50 60 70 80
interface GigabitEthernet1/0/1
 service-policy input LIMIT
 srr-queue bandwidth shape 0 0 0 0
 queue-set 2
""",
    "S3560CX": """class-map match-all TEST
 match ip dscp af11
policy-map LIMIT
 class TEST
  police 1000000 8000 exceed-action drop
mls qos srr-queue output dscp-map queue 2 threshold 1 10
interface GigabitEthernet1/0/2
 service-policy input LIMIT
 srr-queue bandwidth limit 50
interface TenGigabitEthernet1/0/1
 no mls qos trust
""",
}
OTHER_SPELLINGS = {
    "ip subnet-zero",
    "ip classless",
    "ip source-route",
    "no ipv6 cef",
    "no service password-encryption",
    "no ip route-cache",
    "no ip domain-lookup",
}
"""Defaults of some releases, which the model leaves out or words like its release."""


def lines_of(text: str) -> set[tuple[str, ...]]:
    """Return each line with its parents.

    Terminal lines, which are printed in ranges, are one block, and so is a class.
    """
    found, above = set(), list[tuple[int, str]]()
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(("!", "Building", "Current")):
            continue
        depth = len(line) - len(line.lstrip())
        words = "line" if line.startswith("line ") else " ".join(line.split())
        if above and above[0][1].startswith("policy-map "):
            depth = min(depth, 2)
        above = [*(each for each in above if each[0] < depth), (depth, words)]
        found.add(tuple(each for _, each in above))
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PUSHED_ON)
def test_printed_configurations_survive_a_round_trip(name: str) -> None:
    text, pushed = running_config(name), PUSHED_ON[name]
    family = "switch" if name.startswith("S") else "router"
    reading = read_running(text, likely_hardware(text, family))
    reading.device.clutter = unread_as_inert_lines(reading)
    hardware, before = reading.device.hardware, render(reading.device)
    # Every line was read, or is saved with its position.
    assert len(reading.unread) >= 5
    assert {each for each in lines_of(text) - lines_of(before) if each[-1] not in OTHER_SPELLINGS} == set()
    assert find_collisions(text, pushed, hardware) == []
    after = reading.device.copy()
    apply_config(after, pushed)
    printed = render(after)
    assert lines_of(printed) - lines_of(before), "nothing was pushed"
    assert configuration_differences(pushed, printed, before=text, family=family) == []
    assert configuration_differences(pushed, text, before=text, family=family) != []
    # The device prints the lines that the run left unchanged exactly as before.
    found = plan_restoration(text, printed, [pushed], hardware)
    assert found.left == ()
    unread = {each.text for each in reading.unread}
    assert not [line for line in found.lines if line.strip().removeprefix("no ") in unread]
    apply_config(after, "\n".join(found.lines))
    assert render(after) == before
    assert unrestored_lines(text, before, [pushed], hardware) == []
    # Nothing is done if the target equals the current state.
    assert plan_restoration(text, text, [pushed], hardware) == RestorationPlan((), ())


@dataclass(frozen=True)
class UnmodelledLines:
    """Lines of running configurations that the model lacks."""

    blocks: tuple[str, ...]
    """Blocks of the whole device, each with its children."""
    lines: tuple[str, ...]
    """Lines of interface blocks."""

    @staticmethod
    @cache
    def of(family: str) -> UnmodelledLines:
        """Return the unmodelled lines of a device of that family in the test configurations."""
        blocks: list[str] = []
        lines: list[str] = []
        for name in PUSHED_ON:
            text = running_config(name)
            # A router also gets a switch's lines, and a switch a router's.
            for each in read_running(text, likely_hardware(text, family)).unread:
                if not each.place:
                    blocks.append(each.text)
                elif not each.head:
                    blocks[-1] += "\n" + " " * each.depth + each.text
                elif len(each.place) == 1 and each.place[0].startswith("interface "):
                    lines.append(f" {each.text}")
        return UnmodelledLines(
            *(tuple(each for each in dict.fromkeys(some) if _is_unmodelled(each, family)) for some in (blocks, lines))
        )

    def among(self, sent: Sequence[str]) -> list[tuple[str, ...]]:
        """Return those of these lines that are sent or removed, each with its parent lines."""
        blocks, lines = lines_of("\n".join(self.blocks)), {each.strip() for each in self.lines}
        plain = [(*above, text.removeprefix("no ")) for *above, text in lines_of("\n".join(sent))]
        return [
            each
            for each in plain
            if each in blocks or (len(each) == 2 and each[0].startswith("interface ") and each[1] in lines)
        ]


def _is_unmodelled(text: str, family: str) -> bool:
    """Return whether no other device of that family accepts any of these lines in any mode of the port."""
    hardware = switch_hardware() if family == "switch" else Hardware("3725", ("FastEthernet0/0", "Serial0/0"))
    ports = [f"interface {name}\n" for name in hardware.interfaces[: 1 if family == "switch" else 2]]
    ports += [f"{ports[0]} no switchport\n"] if family == "switch" else []
    above = ports if text.startswith(" ") else [""]
    return all(
        len(read_running(f"{head}{text}\n", replace(hardware, generation=generation)).unread) == len(text.splitlines())
        for generation in GENERATIONS
        for head in above
    )


GENERATIONS: tuple[Generation, ...] = ("classic", "hqf")


def test_generated_configurations_have_many_unmodelled_lines() -> None:
    assert all(
        len(each.blocks) > 30 and len(each.lines) > 20
        for each in (UnmodelledLines.of("router"), UnmodelledLines.of("switch"))
    )


def interfaces_of(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("interface ")}


def with_unmodelled_lines(text: str, seed: int, family: str, interfaces: set[str]) -> str:
    """Return a running configuration with unmodelled lines, the same ones each time for a seed.

    `interfaces` adds lines to interfaces, too: with a removed one they would be lost for good.
    """
    clutter, lines = UnmodelledLines.of(family), []
    for line in text.splitlines():
        lines.append(line)
        if line in interfaces:
            random = Random(f"{seed} {line}")
            lines += random.sample(clutter.lines, random.randint(0, 3))
    random = Random(seed)
    head = random.sample(clutter.blocks, random.randint(0, 10))
    return "\n".join([*head, *lines]) + "\n"


@st.composite
def random_pushes(draw: DrawFn) -> tuple[Device, str]:
    """Return a device and a configuration that changes its policies."""
    generation: Generation = draw(st.sampled_from(("classic", "hqf")))  # type: ignore[assignment]
    before, other = draw(devices(generation)), draw(devices(generation))
    return before, "\n".join(configuration_lines_between(other, before))


def touched_block_heads(before: Device, after: Device) -> Iterator[str]:
    """Return the first lines of blocks that differ between both devices, and the lines that remove such blocks."""
    was, now = configuration_tree(before).children, configuration_tree(after).children
    for key in {*was, *now}:
        mine, theirs = was.get(key), now.get(key)
        if mine is not None and not mine.differs(theirs):
            continue
        for each in filter(None, (mine, theirs)):
            # A table has one line below the other, a banner has lines of its own.
            entries = each.children.values() if each.undo.table else [each]
            yield from (line for entry in entries for line in (entry.line, entry.removal_line, *entry.text))


def each_line(head: str) -> list[str]:
    """Yield the configuration lines; several terminal lines may stand in one."""
    match = re.fullmatch(r"line (\w+) (\d+) (\d+)", head)
    return [f"line {match[1]} {number}" for number in range(int(match[2]), int(match[3]) + 1)] if match else [head]


def filled_device(text: str, names: Collection[str]) -> str:
    """Return a running configuration with unmodelled lines in these blocks and tables."""
    lines, name = [], ""
    for line in text.splitlines():
        lines.append(line)
        if not line.startswith(" "):
            table = line_table(line)
            if table is not None and table in names and table != name:
                lines.append(f"{table} {UNMODELLED.get(table.split()[0], 'strange')}")
            name = table or line_subject(line)
        if name in names and (line.startswith(" class ") or (not line.startswith(" ") and table is None)):
            lines.append(" " * (line.startswith(" ") + 1) + UNMODELLED.get(name.split()[0], "strange"))
    return "\n".join(lines) + "\n"


UNMODELLED = {"access-list": WORK, "class-map": "match ip tos 4", "policy-map": "compression header ip"}
"""Unmodelled line by kind of block or table; the others have another line."""


def randomly_filled_device(before: Device, after: Device, text: str, seed: int) -> set[str]:
    """Check the named blocks and tables with unmodelled lines, which no run may touch.

    A run that would touch one must be refused.
    """
    was, now = configuration_tree(before).children, configuration_tree(after).children
    names = sorted(name for name, block in was.items() if block.undo.referred is not None or block.undo.table)
    chosen = set(Random(seed).sample(names, Random(seed).randint(0, len(names))))
    touched = {name for name in chosen if was[name].differs(now.get(name))}
    reported = find_collisions(filled_device(render(before), chosen), text, before.hardware)
    for name in touched:
        assert [each for each in reported if each.endswith(f" in `{name}`; the experiment would remove it too")]
    return chosen - touched


def undo_lines_of(before: Device, text: str, seed: int, family: str) -> None:
    """Check that no line of a removed configuration remains, and that nothing else is sent."""
    after = before.copy()
    apply_config(after, text)
    both = interfaces_of(render(before)) & interfaces_of(render(after))
    full = randomly_filled_device(before, after, text, seed)
    printed = [
        with_unmodelled_lines(filled_device(render(device), full), seed, family, both) for device in (before, after)
    ]
    try:
        found = plan_restoration(printed[0], printed[1], [text], before.hardware)
    except QoslabError:
        # A switch cannot change a class of ports in place; a run does not touch a device with a class of that name.
        own = find_collisions(printed[0], text, before.hardware)
        assume(family == "router" or not any("class-map" in each for each in own))
        raise
    touched = set(touched_block_heads(before, after))
    apply_config(after, "\n".join(found.lines))
    assert after == before
    assert found.left == ()
    again = with_unmodelled_lines(filled_device(render(after), full), seed, family, both)
    assert unrestored_lines(printed[0], again, [text], before.hardware) == []
    # Lines outside the touched parts are never sent.
    assert UnmodelledLines.of(family).among(found.lines) == []
    heads = {each for line in found.lines if not line.startswith(" ") for each in each_line(line)}
    # But a changed policy of a switch is temporarily detached from a VLAN's interface.
    changes = {head for head, *below in lines_of("\n".join(found.lines)) if below and "service-policy" in below[0]}
    assert heads <= touched | {head for head in changes if head.startswith("interface Vlan")}, heads - touched


@given(random_pushes(), st.integers(0, 2**16))
@settings(
    max_examples=value_by_level(short=2, long=20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_rollback_of_a_configuration_restores_the_device(push: tuple[Device, str], seed: int) -> None:
    undo_lines_of(*push, seed, "router")


@given(switches(), switches(), st.integers(0, 2**16))
@settings(
    max_examples=value_by_level(short=2, long=20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_rollback_of_a_configuration_restores_the_switch(before: Device, other: Device, seed: int) -> None:
    undo_lines_of(before, "\n".join(configuration_lines_between(other, before)), seed, "switch")


@given(
    random_pushes(),
    st.sampled_from(("snmp-server location Lab", "class-map match-any Theirs\n match dscp 7", "load-interval 90")),
)
@settings(
    max_examples=value_by_level(short=2, long=20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_changes_by_others_remain(push: tuple[Device, str], theirs: str) -> None:
    before, text = push
    assume(theirs.split()[0] not in text or not theirs.startswith("load"))
    if theirs.startswith("load"):
        theirs = f"interface FastEthernet0/0\n {theirs}"
    after, wanted = before.copy(), before.copy()
    apply_config(after, text)
    apply_config(after, theirs)
    apply_config(wanted, theirs)
    found = plan_restoration(render(before), render(after), [text], before.hardware)
    apply_config(after, "\n".join(found.lines))
    assert after == wanted
    assert bool(found.left) == (wanted != before)
    heads = {line.removeprefix("no ") for line in found.lines if not line.startswith(" ")}
    assert not any(theirs.splitlines()[0] == head for head in heads - {"interface FastEthernet0/0"})
