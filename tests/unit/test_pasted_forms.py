"""Forms in which configurations are pasted, and input that is no configuration of a router with Cisco IOS."""

from __future__ import annotations

import html
import itertools
import re
from pathlib import Path

import pytest

from qoslab.cli import main
from qoslab.errors import ExitStatus, UserError
from qoslab.exchange.routers import ImportChoices, import_routers
from qoslab.policy.answer import answer_policy
from qoslab.policy.render import answer_text

EDGE = """\
version 17.6
hostname R1
class-map match-any VOICE
 match dscp ef
policy-map CHILD
 class VOICE
  priority
  police cir 2000000
 class class-default
  bandwidth remaining percent 40
policy-map WAN
 class class-default
  shape average 20000000
  service-policy CHILD
interface GigabitEthernet0/0/0
 ip address 192.0.2.2 255.255.255.252
 service-policy output WAN
interface GigabitEthernet0/0/1
 ip address 10.0.0.1 255.255.255.0
ip route 0.0.0.0 0.0.0.0 192.0.2.1
end
"""
LINES = EDGE.splitlines()
FORMS = {
    "numbers and bars": "\n".join(f"{number:>4} | {line}" for number, line in enumerate(LINES, 1)),
    "numbers and tabs": "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(LINES, 1)),
    "mail quoted twice": "\n".join(f"> > {line}" for line in LINES),
    "times": "\n".join(f"[2024-05-02 10:11:{number:02}] {line}" for number, line in enumerate(LINES)),
    "times of day": "\n".join(f"10:11:{number:02}.125 {line}" for number, line in enumerate(LINES)),
    "no-break spaces": EDGE.replace(" ", "\xa0"),
    "dashes of a word processor": EDGE.replace("-", "\u2013"),
    "web page": html.escape(EDGE).replace(" ", "&nbsp;"),
    "prompts of configuration mode": "\n".join(
        f"R1(config)#{line.strip()}\nR1(config)#" + ("exit\nR1(config)#" if line.startswith(" ip address 10") else "")
        for line in LINES
    ),
    "comments after commands": "\n".join(
        f"{line}   {mark} a note"
        if line.strip().startswith(("class", "match", "police", "shape", "ip address"))
        else line
        for line, mark in zip(LINES, itertools.cycle(("!", "//", "#", "<--")))
    ),
    "carriage returns alone": EDGE.replace("\n", "\r"),
    "mail with an answer": "Hi,\n\nyou wrote:\n" + "\n".join(f"> {line}" for line in LINES) + "\n\nAny idea?\n",
    "table and difference": "\n".join(f"| + {line}" for line in LINES),
    "indented below a sentence": "My router:\n\n" + "\n".join(f"    {line}" for line in LINES) + "\n\nThanks\n",
    "capital letters of a word processor": "\n".join(
        re.sub(r"^( *)([a-z])", lambda found: found[1] + found[2].upper(), line) for line in LINES
    ),
    "show tech-support": (
        "------------------ show clock ------------------\n\n10:00:00.000 UTC Mon Mar 1 2021\n\n"
        f"------------------ show running-config ------------------\n\n\nBuilding configuration...\n\n{EDGE}\n"
        "------------------ show stacks ------------------\n\nMinimum process stacks:\n interface Tunnel7\n"
    ),
    "banner of another system": EDGE.replace("hostname R1", "hostname R1\nbanner motd ^C\nfeature x\nsystem {\n^C"),
}
OTHERS = {
    "Junos": "system {\n    host-name srx;\n}\ninterfaces {\n    ge-0/0/0 {\n    }\n}\n",
    "VyOS": "set qos policy shaper WAN bandwidth 10mbit\nset interfaces ethernet eth0 address 10.0.0.1/24\n",
    "Arista EOS": "! device: leaf1 (vEOS, EOS-4.20.1F)\nhostname leaf1\npolicy-map type qos Q\ninterface Ethernet1\n",
    "Arista EOS configuration": "hostname leaf1\ninterface Ethernet1\n   no switchport\n   ip address 10.0.0.1/31\n",
    "NX-OS configuration": "hostname leaf1\ninterface Ethernet1/1\n  ip address 10.0.0.1/31\n",
    "A10 ACOS": "!64-bit Advanced Core OS (ACOS) version 5.2.0, build 155\nhostname a10\ninterface ethernet 1\n",
    "Nokia SR OS": '# TiMOS-C-21.2.R1\nconfigure {\n    router "Base" {\n        interface "system" {\n',
    "Nokia SR OS configuration": "/configure card 1 card-type iom-1\n/configure port 1/1/c1 admin-state enable\n",
    "Linux or FRR": "frr version 8.1\nfrr defaults traditional\nhostname r1\ninterface eth0\n ip address 10.0.0.1/24\n",
    "MikroTik": "# 2024-01-01 by RouterOS 7.13\n/ip address\nadd address=192.168.88.1/24 interface=bridge1\n",
    "FortiOS": '#config-version=FGT60F-7.2.5\nconfig system global\n    set hostname "FGT"\nend\n',
    "PAN-OS": '<config version="10.1.0" urldb="paloaltonetworks">\n  <mgt-config>\n',
    "ASA": "hostname asa\npolicy-map QOS\n class VOICE\n  priority\nservice-policy QOS interface outside\n",
    "NX-OS": "version 9.3(5) Bios:version 05.40\nhostname N9K\ninterface Ethernet1/1\n",
    "IOS XR": EDGE.replace("policy-map WAN", " end-policy-map\n!\npolicy-map WAN"),
    "Catalyst switch (c9300-24p)": "switch 1 provision c9300-24p\n" + EDGE,
    "Catalyst switch (C9300-24P)": "license udi pid C9300-24P sn X\n" + EDGE,
    "Catalyst switch": EDGE.replace("  police", "  queue-buffers ratio 5\n  police"),
}
SWITCHES = {
    "2960": "version 15.0\nhostname S\nspanning-tree mode pvst\ninterface FastEthernet0/1\n switchport mode access\n",
    "3750": "version 12.2\nhostname S\nmls qos\ninterface GigabitEthernet1/0/1\n srr-queue bandwidth share 1 2 3 4\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_pasted_form_has_the_answer_of_the_plain_text(form: str, tmp_path: Path) -> None:
    assert answer_text(answer_policy(FORMS[form])) == answer_text(answer_policy(EDGE))
    (tmp_path / "r1.txt").write_text(FORMS[form])
    assert main(["import", str(tmp_path / "r1.txt"), "--to", str(tmp_path / "to")]) == ExitStatus.WITHIN
    assert "service-policy output WAN" in (tmp_path / "to/templates/R1.ios.j2").read_text()


@pytest.mark.parametrize("system", OTHERS)
@pytest.mark.parametrize("command", ["policy", "import"])
def test_configuration_of_another_system_is_identified(
    command: str, system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text(OTHERS[system])
    assert main([command, str(tmp_path / "in.txt")]) == ExitStatus.USER_MISTAKE
    message = capsys.readouterr().err.splitlines()[0]
    assert system in message and "expected" in message


def test_lines_typed_at_the_prompt_before_the_configuration_are_no_router(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"enable\nPassword: \nR1#terminal length 0\nR1#show run\n{EDGE}\nR1#exit\n")
    found = import_routers([tmp_path / "in.txt"], tmp_path / "to", ImportChoices())
    assert list(found.network.routers) == ["R1"]


def test_policy_map_indented_below_another_one_is_read() -> None:
    text = EDGE.replace("policy-map WAN", " policy-map WAN").replace(
        "\n class class-default\n  shape", "\n  class class-default\n  shape"
    )
    found = answer_policy(text)
    assert not found.ignored and not found.findings
    assert [each.path for each in found.policies[0].classes][1:2] == [("class-default", "VOICE")]


def test_interfaces_without_indentation_are_imported_next_to_an_indented_line(tmp_path: Path) -> None:
    plain = "\n".join(line.strip() for line in LINES[:-1]) + "\n!\nline vty 0 4\n login local\nend\n"
    (tmp_path / "in.txt").write_text(plain)
    found = import_routers([tmp_path / "in.txt"], tmp_path / "to", ImportChoices())
    assert {each.port for each in found.network.routers["R1"].attached} == {
        "GigabitEthernet0/0/0",
        "GigabitEthernet0/0/1",
    }
    assert not [each for each in found.left if each.could_change.startswith("unknown")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_byte_order_mark_is_read(
    tmp_path: Path, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_bytes(EDGE.encode(encoding))
    assert main(["policy", str(tmp_path / "in.txt")]) == ExitStatus.WITHIN
    assert "policy-map WAN" in capsys.readouterr().out


def test_global_command_without_indentation_ends_a_class() -> None:
    plain = "\n".join(line.strip() for line in LINES).replace(
        "interface GigabitEthernet0/0/0\n",
        "crypto keyring KEYS\npre-shared-key address 0.0.0.0 key x\ninterface GigabitEthernet0/0/0\n",
    )
    assert not answer_policy(plain).ignored


@pytest.mark.parametrize("model", SWITCHES)
def test_switch_is_not_imported_as_a_router(model: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(SWITCHES[model])
    with pytest.raises(UserError, match="found the configuration of a Catalyst"):
        import_routers([tmp_path / "in.txt"], tmp_path / "to", ImportChoices())


def test_second_device_is_not_mixed_with_the_first() -> None:
    with pytest.raises(UserError, match=r"found the configurations of 2 devices \(R1, R2\), expected one"):
        answer_policy(EDGE + EDGE.replace("hostname R1", "hostname R2"))


def test_policy_map_that_is_only_attached_is_reported() -> None:
    with pytest.raises(UserError, match="found policy-map WAN attached but not defined"):
        answer_policy("interface GigabitEthernet0/0/0\n service-policy output WAN\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("policy-map type inspect FW\n class class-default\n  drop\n", "found only policy-maps of type inspect"),
        ("interface Serial0/0\n fair-queue 64 256 0\n", "found no policy-map, but `fair-queue` on an interface"),
    ],
)
def test_configuration_without_a_policy_map_is_described(text: str, found: str) -> None:
    with pytest.raises(UserError, match=found):
        answer_policy(text)


@pytest.mark.parametrize(
    ("line", "generation"),
    [
        ("version 15.7\nboot system flash:c2900-universalk9-mz.SPA.157-3.M5.bin\n", "hqf"),
        ("boot system flash bootflash:isr4400-universalk9.16.12.04.SPA.bin\n", "ios-xe"),
        ("sdwan\n interface GigabitEthernet1\n", "ios-xe"),
        ("interface GigabitEthernet0/0/0\n ip address 192.0.2.1 255.255.255.252\n", "ios-xe"),
        ("interface GigabitEthernet0/0\n ip address 192.0.2.1 255.255.255.252\n", "hqf"),
    ],
)
def test_image_and_ports_identify_the_operating_system(line: str, generation: str) -> None:
    assert (
        answer_policy(f"{line}policy-map P\n class class-default\n  shape average 8000000\n").generation == generation
    )


def test_lines_below_an_interface_range_of_a_switch_apply_to_its_ports() -> None:
    found = answer_policy(
        "version 12.2\nmls qos\ninterface range GigabitEthernet1/0/1 - 3 , gi1/0/9\n mls qos trust dscp\n"
        "interface GigabitEthernet1/0/4\n mls qos trust cos\n"
    )
    assert not found.ignored
    cos, dscp = found.ports
    assert dscp.startswith("GigabitEthernet1/0/1, GigabitEthernet1/0/2, GigabitEthernet1/0/3 and 1 more: trust dscp")
    assert cos.startswith("GigabitEthernet1/0/4: trust cos")


def test_name_of_a_circuit_changes_no_value() -> None:
    text = EDGE.replace(
        "interface GigabitEthernet0/0/0\n ip address 192.0.2.2 255.255.255.252\n",
        "interface ATM0/1/0.1 point-to-point\n pvc ISP 8/35\n  cbr 4000\n ",
    )
    named, plain = (answer_policy(each) for each in (text, text.replace("ISP ", "")))
    assert named.policies == plain.policies
    assert [each.line_source for each in named.policies] == ["circuit"]


def test_policies_of_the_control_plane_are_shown_next_to_those_of_interfaces() -> None:
    text = EDGE.replace("interface", "policy-map COPP\n class VOICE\n  police cir 64000\ninterface", 1)
    copp = "control-plane\n service-policy input COPP\nend\n"
    found = answer_policy(text.replace("end\n", copp)).policies
    assert [(each.policy, each.interface, each.place) for each in found] == [
        ("WAN", "GigabitEthernet0/0/0", ""),
        ("COPP", "", "control-plane"),
    ]
    assert [each.policy for each in answer_policy(text).policies] == ["WAN"]


def test_sessions_that_end_are_read_to_the_last_one() -> None:
    head, tail = EDGE.split("policy-map WAN", 1)
    pasted = f"configure terminal\n{head}end\nwrite memory\nconfigure terminal\npolicy-map WAN{tail}"
    assert [each.interface for each in answer_policy(pasted).policies] == [
        each.interface for each in answer_policy(EDGE).policies
    ]
    fair = EDGE.replace("bandwidth remaining percent 40", "fair-queue")
    assert answer_policy(fair.replace("fair-queue", "fair-queue   ! the rest")).policies == answer_policy(fair).policies


def test_priority_classes_share_a_line_below_their_rates() -> None:
    text = (
        "class-map A\n match dscp ef\nclass-map B\n match dscp af41\n"
        "policy-map CHILD\n class A\n  priority percent 20\n"
        " class B\n  priority percent 20\npolicy-map P\n class class-default\n  shape average 8000000\n"
        "  service-policy CHILD\ninterface Serial0/0\n bandwidth 2000\n service-policy output P\n"
    )
    busy = {each.name: each.busy.bps for each in answer_policy(text).policies[0].classes if each.busy}
    assert (busy["A"], busy["B"]) == (1_000_000, 1_000_000)
