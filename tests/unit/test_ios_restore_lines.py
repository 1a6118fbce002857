"""Exact lines and messages of the removal of a run's configuration while others work on the device."""

from __future__ import annotations

import pytest
from ios_running import change_by_others

from qoslab.errors import QoslabError
from qoslab.ios.device_config.diff import configuration_lines_between
from qoslab.ios.device_config.restore import RestorationPlan, find_collisions, plan_restoration, unrestored_lines
from qoslab.ios.model.device import Hardware
from qoslab.ios.parse import parse_config

HARDWARE = Hardware("2811", ("FastEthernet0/0", "FastEthernet0/1"))
BEFORE = """\
hostname R9
class-map match-any Mine
 match dscp ef
policy-map Own
 class Mine
  bandwidth 100
interface FastEthernet0/0
 description lan
interface FastEthernet0/1
 service-policy output Own
banner motd ^C
hello
^C
"""
STRANGE = "police aggregate A"
"""Unmodelled line of a policy class."""


def restore_device(before: str, after: str, *pushed: str) -> RestorationPlan:
    return plan_restoration(before, after, pushed, HARDWARE)


def test_value_of_the_run_is_restored_and_others_are_reported() -> None:
    ours, theirs = ("hostname R9", "hostname Lab"), (" description lan\n", "")
    found = restore_device(BEFORE, change_by_others(BEFORE, ours, theirs), "hostname Lab\n")
    assert found == RestorationPlan(("hostname R9",), ("interface FastEthernet0/0: `description lan` is gone",))


def test_banner_of_the_run_is_restored_and_others_are_reported() -> None:
    after = change_by_others(BEFORE, ("hello", "bye"), ("hostname R9", "hostname R8"))
    assert restore_device(BEFORE, after, "banner motd ^C\nbye\n^C\n") == RestorationPlan(
        ("banner motd ^C", "hello", "^C"), ("`hostname R9` became `hostname R8`",)
    )


def test_new_and_changed_lines_of_the_run_are_removed() -> None:
    pushed = "hostname Lab\nclass-map match-any New\n match dscp cs1\n"
    new = "class-map match-any New\n match dscp cs1\n"
    after = change_by_others(
        BEFORE, ("hostname R9", "hostname Lab"), ("policy-map", f"{new}policy-map"), ("lan", "LAN")
    )
    assert restore_device(BEFORE, after, pushed) == RestorationPlan(
        ("hostname R9", "no class-map match-any New"),
        ("interface FastEthernet0/0: `description lan` became `description LAN`",),
    )


def test_failed_second_configuration_is_ignored_in_restore() -> None:
    first = "interface fa0/0\n load-interval 30\n"
    second = "interface fa0/0\n no load-interval\n tx-ring-limit 3\n"
    after = change_by_others(BEFORE, (" description lan\n", " description LAN\n load-interval 30\n"))
    assert restore_device(BEFORE, after, first, second) == RestorationPlan(
        ("interface FastEthernet0/0", " no load-interval"),
        ("interface FastEthernet0/0: `description lan` became `description LAN`",),
    )


def test_unmodelled_line_is_removed_in_its_place() -> None:
    pushed = f"policy-map Own\n class Mine\n  {STRANGE}\n"
    after = change_by_others(BEFORE, ("  bandwidth 100\n", f"  bandwidth 100\n  {STRANGE}\n"))
    assert restore_device(BEFORE, after, pushed) == RestorationPlan(
        ("policy-map Own", " class Mine", f"  no {STRANGE}"), ()
    )


POLICY = "policy-map Police\n class class-default\n  police 1000000 31250 conform-action transmit exceed-action drop\n"


def test_unmodelled_lines_are_reported_except_in_removed_blocks() -> None:
    after = change_by_others(
        BEFORE,
        ("policy-map Own\n", f"{POLICY}  {STRANGE}\npolicy-map Own\n"),
        ("  bandwidth 100\n", f"  bandwidth 50\n  {STRANGE}\n"),
    )
    own = "policy-map Own\n class Mine\n  bandwidth 50\n"
    assert restore_device(BEFORE, after, POLICY + own) == RestorationPlan(
        ("policy-map Own", " class Mine", "  bandwidth 100", "no policy-map Police"),
        (f"policy-map Own, class Mine: `{STRANGE}` is new",),
    )
    gone = change_by_others(BEFORE, ("  bandwidth 100\n", f"  bandwidth 100\n  {STRANGE}\n"))
    assert unrestored_lines(gone, BEFORE, [own], HARDWARE) == [f"policy-map Own, class Mine: `{STRANGE}` is gone"]
    assert unrestored_lines(gone, BEFORE, [POLICY], HARDWARE) == [], "others did that"


def test_attachments_are_parsed_after_their_targets() -> None:
    theirs = "policy-map Theirs\n class class-default\n  set dscp cs1\n"
    after = change_by_others(
        BEFORE,
        ("hostname R9", "hostname Lab"),
        ("policy-map Own\n", f"{theirs}policy-map Own\n"),
        (" description lan\n", " description lan\n service-policy input Theirs\n"),
    )
    assert restore_device(BEFORE, after, "hostname Lab\n") == RestorationPlan(
        ("hostname R9",),
        ("interface FastEthernet0/0: `service-policy input Theirs` is new", "`policy-map Theirs` is new"),
    )


def test_line_that_cannot_be_removed_alone_has_a_reason() -> None:
    """Attach a policy of the run elsewhere."""
    attached = (" description lan\n", " description lan\n service-policy input Police\n")
    after = change_by_others(BEFORE, ("policy-map Own\n", f"{POLICY}policy-map Own\n"), attached)
    with pytest.raises(QoslabError) as raised:
        restore_device(BEFORE, after, POLICY)
    assert (raised.value.message, raised.value.hint) == (
        "found no configuration lines that remove the run's configuration and keep the later changes of others: "
        "`service-policy input Police`: % policy map Police not configured",
        "Compare the configurations by hand; both are in the run folder.",
    )


SHARES = """\
class-map match-all One
 match dscp ef
class-map match-all Two
 match dscp af41
policy-map Others
 class One
  set cos 5
policy-map P
 class One
  bandwidth percent 60
 class Two
  bandwidth percent 10
interface FastEthernet0/0
 service-policy output P
interface FastEthernet0/1
 service-policy input Others
"""


def test_policy_unchanged_by_the_run_is_not_rewritten() -> None:
    """Leave a policy unchanged: shares cannot change in place, and a class used by another, unchanged policy cannot be
    removed.
    """
    after = change_by_others(SHARES, ("dscp ef", "dscp cs5"), ("60", "70"), ("percent 10", "percent 60"), ("70", "10"))
    was, now = (parse_config(text, HARDWARE) for text in (SHARES, after))
    assert "no policy-map Others" in configuration_lines_between(was, now)
    with pytest.raises(QoslabError, match="lines that restore the previous running"):
        restore_device(SHARES, after, after.partition("interface")[0])


def test_list_of_the_device_is_reported() -> None:
    had = "access-list 101 permit ip any any\n"
    assert find_collisions(had, had.replace("permit", "deny"), HARDWARE) == [
        "it has its own `access-list 101`, with different content"
    ]
