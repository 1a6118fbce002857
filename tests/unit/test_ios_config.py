"""Configuration commands and their effects."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from ios_configured import configured_device, running_lines

from ios_strategies import hardware
from qoslab.errors import IosError
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.cli.session import Position
from qoslab.ios.commands.access_list import add_line
from qoslab.ios.config import CONFIG, ConfigSession
from qoslab.ios.model.device import AccessList, Generation, Remark
from qoslab.ios.model.password_hash import hash_password, md5_crypt, verify
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.system.shipped import shipped_path


def test_three_levels_can_queue() -> None:
    text = (
        "policy-map Leaf\n class Voice\n  priority percent 20\n class Data\n  bandwidth percent 79\n  fair-queue\n"
        "policy-map Middle\n class Data\n  bandwidth 500\n  service-policy Leaf\n"
        "policy-map Outer\n class class-default\n  shape average 1000000\n  service-policy Middle\n"
        "interface s0/0\n service-policy output Outer\n"
    )
    device = configured_device(text, "hqf")
    assert device.interfaces["Serial0/0"].service_policy_output == "Outer"
    assert parse_config(render(device), device.hardware) == device


def test_numbered_list_without_entries_stays() -> None:
    device = configured_device("access-list 101 permit ip any any\nip access-list extended 101\nno permit ip any any")
    assert "ip access-list extended 101" in running_lines(device)
    assert parse_config(render(device), device.hardware) == device


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("police 1000000", ["police 1000000"]),
        ("police 8000 2000 3000", ["police 8000 2000 3000"]),
        ("police cir 8000 bc 1500 be 2000", ["police cir 8000 bc 1500 be 2000"]),
        ("police cir 8000 bc 1500 pir 9000 be 2000", ["police cir 8000 bc 1500 pir 9000 be 2000"]),
        ("police cir percent 10 bc 20 ms pir percent 30", ["police cir percent 10 bc 20 ms pir percent 30"]),
        ("police rate 9000 bps burst 2000 peak-rate 10000", ["police rate 9000 burst 2000 peak-rate 10000"]),
        ("police rate percent 50", ["police rate percent 50"]),
        (
            "police cir 8000 conf set-dscp-t af11 exc set-prec-t 1 viol drop",
            [
                "police cir 8000",
                "conform-action set-dscp-transmit af11",
                "exceed-action set-prec-transmit 1",
                "violate-action drop",
            ],
        ),
        (
            "police cir 8000\nconform-action set-cos-transmit 3\nconform-action set-qos-transmit 7",
            ["police cir 8000", "conform-action set-qos-transmit 7", "conform-action set-cos-transmit 3"],
        ),
        (
            "police cir 8000\nconform-action set-cos-transmit 3\nconform-action transmit",
            ["police cir 8000", "conform-action transmit"],
        ),
        ("police cir 8000\nexceed-action drop\nno exceed-action drop", ["police cir 8000"]),
        (
            "police cir 8000\nexceed-action transmit\nexit\npolice cir 8000",
            ["police cir 8000", "exceed-action transmit"],
        ),
        ("police cir 8000\nexceed-action transmit\nexit\npolice cir 9000", ["police cir 9000"]),
        ("shape peak 64000 8000 8000", ["shape peak 64000 8000 8000"]),
        ("shape average percent 20 10 ms 20 ms", ["shape average percent 20 10 ms 20 ms"]),
        ("set ip dscp af41\nset dscp 46", ["set dscp ef"]),
        ("set qos 3\nset ip precedence network", ["set ip precedence 7", "set qos-group 3"]),
        ("bandwidth remaining percent 30", ["bandwidth remaining percent 30"]),
        ("priority 100 2000", ["priority 100 2000"]),
        ("priority percent 10 3000", ["priority percent 10 3000"]),
        ("priority", ["priority"]),
        ("priority 64\nno priority 64", []),
        ("bandwidth percent 20\nno bandwidth percent 20", []),
        (
            "bandwidth 64\nrandom-detect exponential-weighting-constant 5\nrandom-detect precedence 1 10 30",
            [
                "bandwidth 64",
                "random-detect",
                "random-detect exponential-weighting-constant 5",
                "random-detect precedence 1 10 30",
            ],
        ),
        (
            "bandwidth 64\nrandom-detect precedence 1 10 30\nrandom-detect ecn",
            ["bandwidth 64", "random-detect", "random-detect ecn", "random-detect precedence 1 10 30"],
        ),
        ("bandwidth 64\nrandom-detect ecn\nno random-detect ecn", ["bandwidth 64", "random-detect"]),
        ("bandwidth 64\nrandom-detect dscp-based\nrandom-detect prec-based", ["bandwidth 64", "random-detect"]),
        (
            "shape average 9000\nrandom-detect dscp-based\nrandom-detect dscp ef 20 40 5",
            ["shape average 9000", "random-detect dscp-based", "random-detect dscp ef 20 40 5"],
        ),
        ("shape average 9000\nno shape average 9000", []),
        ("shape max-buffers 50\nshape average 9000", ["shape average 9000", "shape max-buffers 50"]),
        ("shape average 9000\nshape max-buffers 50\nno shape max-buffers", ["shape average 9000"]),
        ("police cir 8000\nexit\nno police cir 8000", []),
        ("queue-limit 20", ["queue-limit 20"]),
    ],
)
def test_actions_are_printed_like_ios(typed: str, printed: list[str]) -> None:
    device = configured_device(f"policy-map P\nclass Data\n{typed}", base="class-map Data\nmatch any")
    lines = running_lines(device)
    start = lines.index("class Data") + 1
    assert lines[start : lines.index("!", start)] == printed
    apply_config(device, f"policy-map P\nclass Data\n{typed}")
    assert running_lines(device)[start : start + len(printed)] == printed


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("queue-limit 20", ["queue-limit 20 packets"]),
        ("queue-limit 62500 bytes", ["queue-limit 62500 bytes"]),
        ("queue-limit 20 bytes\nno queue-limit\nqueue-limit 30 ms", ["queue-limit 30 ms"]),
        (
            "queue-limit dscp af12 40\nqueue-limit dscp 10 30 packets\nqueue-limit 64",
            ["queue-limit 64 packets", "queue-limit dscp af11 30 packets", "queue-limit dscp af12 40 packets"],
        ),
        ("queue-limit precedence 3 9\nqueue-limit cos 3 9\nno queue-limit cos 3\nno queue-limit precedence 3", []),
        (
            "shape average 9000\nrandom-detect\nrandom-detect precedence 2 100 bytes 200 bytes 10",
            ["shape average 9000", "random-detect", "random-detect precedence 2 100 bytes 200 bytes 10"],
        ),
        (
            "shape average 9000\nrandom-detect\nrandom-detect precedence 2 1 ms 2 ms\n"
            "no random-detect precedence 2\nrandom-detect precedence 2 5 9",
            ["shape average 9000", "random-detect", "random-detect precedence 2 5 9"],
        ),
    ],
)
def test_limits_are_printed_like_ios(typed: str, printed: list[str]) -> None:
    typed = f"class-map Data\nmatch any\npolicy-map P\nclass Data\n{typed}"
    device = parse_config("", hardware("hqf"))
    for _ in range(2):
        # A refused command changes nothing: `queue-limit cos` next to `queue-limit precedence` is refused.
        session = ConfigSession(device)
        for line in typed.splitlines():
            with suppress(CliError):
                session.execute(line)
        lines = running_lines(device)
        start = lines.index("class Data") + 1
        assert lines[start : lines.index("!", start)] == printed


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("access-list 1 permit 10.0.0.7", "access-list 1 permit 10.0.0.7"),
        ("access-list 1 permit host 10.0.0.7", "access-list 1 permit 10.0.0.7"),
        ("access-list 1 deny 10.0.0.7 0.0.0.255 log", "access-list 1 deny 10.0.0.0 0.0.0.255 log"),
        ("access-list 1 permit 10.0.0.7 255.255.255.255", "access-list 1 permit any"),
        ("access-list 101 permit tcp any any eq 80", "access-list 101 permit tcp any any eq www"),
        ("access-list 101 permit 47 any any", "access-list 101 permit gre any any"),
        ("access-list 101 permit udp any range 6000 5000 any", "access-list 101 permit udp any range 5000 6000 any"),
        ("access-list 101 permit udp any any eq 514", "access-list 101 permit udp any any eq syslog"),
        ("access-list 101 permit icmp any any 3 3", "access-list 101 permit icmp any any port-unreachable"),
        (
            "access-list 101 permit tcp host 1.1.1.1 neq telnet www any estab log dscp 46",
            "access-list 101 permit tcp host 1.1.1.1 neq telnet www any established dscp ef log",
        ),
        ("access-list 2000 deny ip any any prec flash", "access-list 2000 deny ip any any precedence flash"),
        ("access-list 101 remark two  blanks", "access-list 101 remark two  blanks"),
    ],
)
def test_access_list_entries_are_printed_like_ios(typed: str, printed: str) -> None:
    assert printed in running_lines(configured_device(typed))


def test_access_list_entries_are_ordered_by_sequence() -> None:
    device = configured_device(
        "ip access-list extended List\n5 deny tcp any any\nremark last\npermit udp any any\nno 10"
    )
    assert device.access_lists["List"].numbers == (5, 10, 20)
    block = running_lines(device)[running_lines(device).index("ip access-list extended List") :]
    assert block[1:4] == ["deny tcp any any", "remark last", "permit udp any any"]


def test_removing_a_numbered_entry_removes_the_list() -> None:
    device = configured_device("access-list 7 permit any\naccess-list 7 deny any\nno access-list 7 permit any")
    assert "7" not in device.access_lists


def test_classes_stay_before_class_default() -> None:
    device = configured_device(
        "policy-map Edge\nclass Voice\nset cos 1\nno class Voice\nclass Voice insert-before Data"
    )
    assert [each.name for each in device.policy_maps["Edge"].classes] == ["Voice", "Data", "class-default"]


def test_class_map_of_another_match_keeps_its_criteria() -> None:
    device = configured_device("class-map match-all Voice")
    assert device.class_maps["Voice"].match == "all"
    assert len(device.class_maps["Voice"].criteria) == 1


def test_lines_typed_by_unicon_are_accepted() -> None:
    device = configured_device("no logging console\nline console 0\nexec-timeout 0\nline vty 0 4\nexec-timeout 0\nend")
    lines = running_lines(device)
    assert "no logging console" in lines
    assert lines[lines.index("line con 0") + 1] == "exec-timeout 0 0"
    assert lines[lines.index("line vty 0 4") + 1] == "exec-timeout 0 0"


def test_vty_lines_with_different_settings_are_printed_separately() -> None:
    device = configured_device("line vty 0 15\nlogin local\nline vty 2\ntransport input ssh telnet\n")
    lines = running_lines(device)
    assert [line for line in lines if line.startswith("line vty")] == ["line vty 0 1", "line vty 2", "line vty 3 15"]
    assert "transport input telnet ssh" in lines
    apply_config(device, "no line vty 5")
    assert "line vty 3 4" in running_lines(device)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("banner motd @\nhello\n there\n@", "\nhello\n there\n"),
        ("banner motd #one line#", "one line"),
        ("banner motd ^C\n! x\nend\n^C", "\n! x\nend\n"),
        ("banner motd \x03a\x03", "a"),
    ],
)
def test_banner_is_stored_and_removed(typed: str, kept: str) -> None:
    assert configured_device(typed).banner_motd == kept


def test_ipv4_routes_are_added_and_removed() -> None:
    device = configured_device(
        "ip route 10.9.0.0 255.255.0.0 10.0.0.2 1\nip route 10.9.0.0 255.255.0.0 10.0.0.2 20\n"
        "ip route 0.0.0.0 0.0.0.0 serial 0/0\nip route 10.8.0.0 255.255.0.0 s0/0 10.0.0.2\n"
        "no ip route 10.8.0.0 255.255.0.0"
    )
    assert [line for line in running_lines(device) if line.startswith("ip route")] == [
        "ip route 0.0.0.0 0.0.0.0 Serial0/0",
        "ip route 10.9.0.0 255.255.0.0 10.0.0.2 20",
    ]


def test_passwords_are_hashed_and_verified() -> None:
    # Reference: openssl passwd -1 -salt abcd cisco
    assert md5_crypt("cisco", "abcd") == "$1$abcd$2hDGYdE0UrwK2pqoiF6BB1"
    secret = hash_password("a longer password, more than sixteen")
    assert verify(secret, "a longer password, more than sixteen")
    assert not verify(secret, "a longer password")


def test_secret_typed_again_keeps_its_salt() -> None:
    device = configured_device(f"enable secret 5 {md5_crypt('cisco', 'abcd')}\nusername u privilege 15 secret lab")
    before = device.copy()
    apply_config(device, "enable secret cisco\nusername u secret 0 lab")
    assert device == before


def test_command_of_an_outer_mode_leaves_the_mode() -> None:
    session = ConfigSession(configured_device(""))
    for line, prompt in [
        ("policy-map Edge", "(config-pmap)"),
        ("class Data", "(config-pmap-c)"),
        ("police cir 100000", "(config-pmap-c-police)"),
        ("shape average 8000", "(config-pmap-c)"),
        ("class Voice", "(config-pmap-c)"),
        ("int f0/1", "(config-if)"),
        ("ip access-list standard S", "(config-std-nacl)"),
        ("ip access-list extended E", "(config-ext-nacl)"),
        ("class-map Voice", "(config-cmap)"),
        ("line con 0", "(config-line)"),
        ("exit", "(config)"),
    ]:
        session.execute(line)
        assert session.prompt == prompt
    session.execute("end")
    assert session.finished


def test_policy_removed_by_another_session_ends_its_mode() -> None:
    device = configured_device("")
    session = ConfigSession(device)
    for line in ("policy-map Inner", "class class-default"):
        session.execute(line)
    apply_config(device, "no policy-map Inner")
    with pytest.raises(CliError, match="has been removed"):
        session.execute("shape average 8000")


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_documented_policy_commands_exist(generation: Generation) -> None:
    guide = (shipped_path("playbooks").parent / "docs" / "reference" / "router.md").read_text()
    block, *_ = re.findall(r"```ios\n(.*?)```", guide, re.DOTALL)
    session = ConfigSession(parse_config("policy-map WAN", hardware(generation)))
    for line in block.splitlines():
        command, _, remark = line.partition("   ")
        words = command.strip()
        mode = "interface" if words.startswith("interface ") or session.position.mode == "interface" else None
        if words.startswith(("policy-map", "class ", "interface ")):
            session.position = Position(
                {"policy-map": "policy-map", "class": "policy-class", "interface": "interface"}[words.split()[0]]
            )
            continue
        where = mode or "policy-class"
        if generation in remark or "(" not in remark or "three" in remark:
            assert not CONFIG.parse(where, words, capabilities=session.capabilities).command.fallback
        elif "figures" not in remark and "class-default" not in remark:
            with pytest.raises(CliError):
                session.execute_match(CONFIG.parse(where, words, capabilities=session.capabilities))


@pytest.mark.parametrize(
    ("typed", "taken_back"),
    [
        ("username lab privilege 15 secret 5 $1$abcd$2hDGYdE0UrwK2pqoiF6BB1", "no username lab privilege 15"),
        ("enable secret cisco", "no enable secret 5 $1$abcd$2hDGYdE0UrwK2pqoiF6BB1"),
        ("line con 0\npassword x y", "line con 0\nno password x y"),
        ("line con 0\ntransport input ssh", "line con 0\nno transport input ssh"),
        ("line con 0\nexec-timeout 5 30", "line con 0\ndefault exec-timeout"),
        ("interface s0/0\nfair-queue", "interface s0/0\ndefault fair-queue"),
        ("access-list 7 permit any", "no access-list 7"),
        ("access-list 107 permit ip any any", "no access-list 107 permit ip any any"),
        ("service timestamps log datetime msec", "no service timestamps log datetime msec"),
        ("ip domain name lab.example", "no ip domain name lab.example"),
        ("banner motd #x#", "no banner motd"),
    ],
)
def test_printed_configuration_can_be_removed(typed: str, taken_back: str) -> None:
    device = configured_device(typed)
    assert device != configured_device("")
    apply_config(device, taken_back)
    assert device == configured_device("")


@pytest.mark.parametrize("line", ["no access-list", "no username", "no ip route", "no line vty", "no class-map"])
def test_no_without_a_command_is_incomplete(line: str) -> None:
    with pytest.raises(IosError, match="% Incomplete command"):
        configured_device(line)


def test_lines_added_to_an_earlier_state_of_a_list_do_not_count_in_it() -> None:
    first = add_line(AccessList("101", "extended"), Remark("a"))
    second = add_line(first, Remark("b"))
    assert add_line(first, Remark("c")).lines == (Remark("a"), Remark("c"))
    assert add_line(first, Remark("b")).lines == second.lines
    assert add_line(second, Remark("b")) is second
