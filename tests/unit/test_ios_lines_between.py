"""Exact lines between two configurations: no unnecessary line, each in its place."""

from __future__ import annotations

import pytest

from ios_strategies import hardware
from qoslab.errors import QoslabError
from qoslab.ios.device_config.diff import Rewrite, configuration_lines_between, configuration_tree
from qoslab.ios.device_config.normalise import fill_in_defaults
from qoslab.ios.model.device import Generation, Hardware
from qoslab.ios.parse import apply_config, parse_config
from switch_strategies import switch_hardware

ATM = Hardware("7206VXR", ("FastEthernet0/0", "ATM1/0"), "classic", "12.4")


def lines(before: str, after: str, chassis: Hardware | None = None, rewrite: Rewrite = "all") -> list[str]:
    """Return the lines from `after` to `before`, after a check that they lead there."""
    wanted, device = (parse_config(text, chassis or hardware()) for text in (before, after))
    found = configuration_lines_between(wanted, device, rewrite=rewrite)
    apply_config(device, "\n".join(found))
    assert device == wanted
    return found


# Depth of the change.

SHARED = (
    "class-map One\n match dscp ef\nclass-map Two\n match dscp af41\n"
    "policy-map P\n class One\n  bandwidth percent {}\n class Two\n  bandwidth percent {}\n"
    "policy-map Other\n class class-default\n  set cos 5\n"
    "interface Fa0/0\n service-policy output P\ninterface Fa0/1\n service-policy output Other\n"
)


def test_only_a_policy_that_cannot_change_in_place_is_rewritten() -> None:
    """Exchange two shares: the first one to be entered would exceed the total with the other that is still there."""
    before, after = SHARED.format(60, 10), SHARED.format(10, 60)
    for rewrite in ("differing", "all"):
        assert lines(before, after, rewrite=rewrite) == [
            "interface FastEthernet0/0",
            " no service-policy output P",
            "no policy-map P",
            "policy-map P",
            " class One",
            "  bandwidth percent 60",
            " class Two",
            "  bandwidth percent 10",
            "interface FastEthernet0/0",
            " service-policy output P",
        ]


def test_addresses_are_removed_once_during_a_rewrite() -> None:
    """Remove and keep addresses: a removed one is removed once, and a remaining one is unchanged."""
    first, second = "interface Fa0/0\n ip address 10.0.{}.1 255.255.255.0\n", "interface Fa0/1\n ip address {}\n"
    serial = "interface Serial0/0\n ip address 10.0.5.1 255.255.255.0\n"
    before = SHARED.format(60, 10) + first.format(0) + serial
    after = SHARED.format(10, 60) + first.format(1) + second.format("10.0.2.1 255.255.255.0") + serial
    assert lines(before, after) == [
        "interface FastEthernet0/0",
        " no service-policy output P",
        " no ip address",
        "interface FastEthernet0/1",
        " no ip address",
        "no policy-map P",
        "policy-map P",
        " class One",
        "  bandwidth percent 60",
        " class Two",
        "  bandwidth percent 10",
        "interface FastEthernet0/0",
        " ip address 10.0.0.1 255.255.255.0",
        " service-policy output P",
    ]


ROUTED_PORTS = (
    "mls qos\nclass-map One\n match ip dscp {0}\npolicy-map Own\n class One\n  police 1000000 8000 exceed-action drop\n"
    "interface gi1/0/1\n no switchport\n ip address 10.0.{1}.1 255.255.255.0\n"
    "interface gi1/0/2\n no switchport\n ip address 10.0.{2}.1 255.255.255.0\n"
)


def test_lines_of_a_macro_are_entered_after_a_second_comparison() -> None:
    """Enter a macro: the first comparison rewrites everything, since addresses were exchanged and a class gets the
    settings of another policy.
    """
    port = "interface gi1/0/15\n queue-set 2\n"
    before, after = (
        ROUTED_PORTS.format("ef", 1, 2) + port,
        ROUTED_PORTS.format("cs1", 2, 1) + port + " auto qos voip trust\n",
    )
    found = lines(before, after, switch_hardware())
    assert found.count("policy-map Own") == 1
    assert found[-7:] == [
        "interface GigabitEthernet1/0/15",
        " no auto qos voip",
        " no mls qos trust",
        " no priority-queue out",
        " no srr-queue bandwidth share",
        "interface GigabitEthernet1/0/15",
        " queue-set 2",
    ]


def test_configuration_that_no_lines_restore_is_reported() -> None:
    with pytest.raises(QoslabError) as raised:
        lines(SHARED.format(60, 10), SHARED.format(10, 60), rewrite="nothing")
    assert (raised.value.message, raised.value.hint) == (
        "found no configuration lines that restore the previous running configuration",
        "Compare the two by hand; both are in the run folder.",
    )


def test_changes_in_place_follow_the_order_of_the_running_configuration() -> None:
    before = "ip route 10.9.0.0 255.255.0.0 10.0.1.1\ninterface Fa0/0\n description d\n"
    assert lines(before, "") == [
        "interface FastEthernet0/0",
        " description d",
        "ip route 10.9.0.0 255.255.0.0 10.0.1.1",
    ]


# Lines that belong together.


def test_unchanged_banner_is_not_sent() -> None:
    banner = "banner motd @\nhello\n@\nbanner login @\n{}\n@\n"
    assert lines(f"hostname A\n{banner.format('x')}", f"hostname B\n{banner.format('x')}") == ["hostname A"]
    assert lines(banner.format("x"), banner.format("y")) == ["banner login ^C", "x", "^C"]


def test_unchanged_list_is_not_sent() -> None:
    lists = "access-list 101 permit ip any any\naccess-list 102 {} ip any any\n"
    assert lines(lists.format("permit"), lists.format("deny")) == [
        "no access-list 102",
        "access-list 102 permit ip any any",
    ]


def test_removed_operation_removes_its_schedule() -> None:
    operation = "ip sla 7\n icmp-echo 10.0.0.1\n frequency {}\n"
    schedule = "ip sla schedule {} life forever start-time now\n"
    other = operation.format(5).replace("sla 7", "sla 8") + schedule.format(8)
    before, after = (operation.format(seconds) + schedule.format(7) + other for seconds in (5, 9))
    assert lines(before, after) == [
        "no ip sla 7",
        "ip sla 7",
        " icmp-echo 10.0.0.1",
        " frequency 5",
        "ip sla schedule 7 life forever start-time now",
    ]


def test_schedule_of_a_removed_operation_is_not_removed_separately() -> None:
    operation, schedule = "ip sla 7\n icmp-echo 10.0.0.1\n", "ip sla schedule 7 life 60 start-time now\n"
    assert lines("", operation + schedule) == ["no ip sla 7"]
    assert lines(operation + schedule, f"{operation} timeout 500\n{schedule.replace('60', '90')}") == [
        "no ip sla 7",
        *operation.splitlines(),
        schedule.strip(),
    ]


RED = "policy-map P\n class class-default\n  fair-queue\n"
DETAIL = "  random-detect dscp ef {} 40 10\n"


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("", "  random-detect dscp-based\n" + DETAIL.format(20), []),
        (
            "  random-detect dscp-based\n",
            "  random-detect dscp-based\n" + DETAIL.format(20),
            ["  random-detect dscp-based"],
        ),
        (
            "  random-detect dscp-based\n" + DETAIL.format(20),
            "  random-detect dscp-based\n" + DETAIL.format(22),
            ["  random-detect dscp-based", "   random-detect dscp ef 20 40 10"],
        ),
    ],
)
def test_thresholds_are_removed_with_random_detect(before: str, after: str, sent: list[str]) -> None:
    """Remove random-detect: without it thresholds have no effect, so it is removed alone, and its other lines are
    entered again.
    """
    assert lines(RED + before, RED + after) == ["policy-map P", " class class-default", "  no random-detect", *sent]


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("password 7 0822455D0A16", "privilege 15", ["no username u", "username u password 7 0822455D0A16"]),
        ("privilege 15", "password 7 0822455D0A16", ["no username u", "username u privilege 15"]),
        ("password 7 0822455D0A16", "password 7 094F471A1A0A", ["username u password 7 0822455D0A16"]),
    ],
)
def test_user_is_removed_first_if_a_part_would_remain(before: str, after: str, sent: list[str]) -> None:
    """Replace a user: a password replaces another one; in addition to a level it would stay."""
    assert lines(f"username u {before}\n", f"username u {after}\n") == sent


def test_lines_stored_below_a_line_are_its_text() -> None:
    text = "archive\n path flash:\nkey chain K\n key 1\n  key-string a\nntp server 10.0.0.1\n"
    found = configuration_tree(parse_config(text, hardware())).children
    assert {key: block.text for key, block in found.items() if block.text} == {
        "archive": [" path flash:"],
        "key chain K": [" key 1", "  key-string a"],
    }
    assert list(found)[-1] == "ntp server 10.0.0.1"


def test_missing_terminal_line_is_entered() -> None:
    assert lines("line vty 0 7\n login local\n", "") == ["line vty 0 7", " login local"]


# Object groups, which may not become empty while they are used.


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("1", "2", [" host 10.0.0.1", " no host 10.0.0.2"]),
        ("1", "23", [" no host 10.0.0.3", " host 10.0.0.1", " no host 10.0.0.2"]),
        ("14", "123", [" no host 10.0.0.3", " no host 10.0.0.2", " host 10.0.0.4"]),
        ("1", "12", [" no host 10.0.0.2"]),
    ],
)
def test_group_in_use_is_never_empty_between_lines(before: str, after: str, sent: list[str]) -> None:
    old, new = (
        "object-group network N\n" + "".join(f" host 10.0.0.{number}\n" for number in each) for each in (before, after)
    )
    used = "ip access-list extended L\n permit ip object-group N any\n"
    assert lines(old + used, new + used, hardware("hqf")) == ["object-group network N", *sent]


def test_group_of_the_other_kind_is_removed_first() -> None:
    service, network = "object-group service N\n tcp eq 80\n", "object-group network N\n host 10.0.0.1\n"
    assert lines(network, service, hardware("hqf")) == ["no object-group service N", *network.splitlines()]


# Circuits

PVC = (
    "policy-map P\n class class-default\n  police cir 500000\n"
    "interface ATM1/0\n pvc 0/33\n  vbr-nrt 2000 1000 100\n  service-policy output P\n"
)
SUBINTERFACE = PVC.replace("interface ATM1/0\n", "interface ATM1/0.1 point-to-point\n")
DETACHED = ["interface ATM1/0", " pvc 0/33", "  no service-policy output P"]
CIRCUIT = [" pvc 0/33", "  vbr-nrt 2000 1000 100", "  service-policy output P"]


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        # It is removed from its old place before it is entered elsewhere, and its policy before that.
        (
            PVC,
            SUBINTERFACE,
            [
                "interface ATM1/0.1 point-to-point",
                *DETACHED[1:],
                "interface ATM1/0.1 point-to-point",
                " no pvc 0/33",
                "no interface ATM1/0.1",
                "interface ATM1/0",
                *CIRCUIT,
            ],
        ),
        (
            SUBINTERFACE,
            PVC,
            [
                *DETACHED,
                "interface ATM1/0",
                " no pvc 0/33",
                "interface ATM1/0.1 point-to-point",
                " no ip address",
                *CIRCUIT,
            ],
        ),
        # Nothing prevents another contract, or another name of the router.
        (PVC.replace("2000 1000", "3000 1000"), PVC, [*DETACHED[:2], "  vbr-nrt 3000 1000 100"]),
        (f"hostname A\n{PVC}", PVC, ["hostname A"]),
        # A policy is removed from a circuit before another one replaces it.
        (
            PVC.replace("map P", "map Q").replace("output P", "output Q"),
            PVC,
            [
                *DETACHED,
                "policy-map Q",
                " class class-default",
                "  police cir 500000",
                *DETACHED[:2],
                "  service-policy output Q",
                "no policy-map P",
            ],
        ),
    ],
)
def test_changed_circuits_are_rewritten(before: str, after: str, sent: list[str]) -> None:
    assert lines(before, after, ATM) == sent


# Values that stand for omitted ones


@pytest.mark.parametrize(
    ("generation", "action", "spelled"),
    [
        # A burst below the device's minimum, and one above its maximum.
        ("hqf", "shape average 10000", "shape average 10000 40 40"),
        ("classic", "priority 2000000", "priority 2000000 50000000"),
    ],
)
def test_values_beyond_the_typable_range_are_parsed(generation: Generation, action: str, spelled: str) -> None:
    device = parse_config(
        f"class-map C\n match dscp ef\npolicy-map P\n class C\n  {action}\n  set dscp ef\n"
        "interface Fa0/0\n description d\n",
        hardware(generation),
    )
    found = configuration_tree(fill_in_defaults(device)).children
    assert list(found["policy-map P"].lines()) == ["policy-map P", " class C", f"  {spelled}", "  set dscp ef"]
    assert found["interface FastEthernet0/0"].children["description"].line == "description d"
    undone = next(each for each in found["policy-map P"].children["class C"].children.values() if each.line == spelled)
    assert undone.removal_line == f"no {action.split()[0]}"
