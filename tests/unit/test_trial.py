"""Command `try`: traffic in words, changes, and results that arithmetic confirms."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from qoslab.cli import command_group, main
from qoslab.errors import ExitStatus, UserError
from qoslab.ios.model.ios_names import dscp_text
from qoslab.model.traffic_kinds import CATALOGUE
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.trial.answer import PolicyTrial, try_policy
from qoslab.trial.change import apply_changes
from qoslab.trial.demand import parse_traffic
from qoslab.trial.edge import find_edge
from qoslab.trial.outcome import ClassResult, KindResult
from qoslab.trial.render import trial_text
from qoslab.trial.simulate import simulate

TOP = Path(__file__).parents[2]
EDGE = (TOP / "tests" / "goldens" / "trial" / "wan-edge.ios").read_text(encoding="utf-8")
PROPAGATION_MS = 10
LAN_MS = 1540 * 8 / 10**6 * 2
"""Time of two full frames on a line of 1 Gb/s in front of the router, the maximum."""

SHAPED = """\
version {version}
class-map match-any VOICE
 match dscp ef
policy-map CHILD
 class VOICE
  priority
  police cir 600000
 class class-default
  fair-queue
policy-map SHAPE
 class class-default
  shape average 2000000
  service-policy CHILD
interface GigabitEthernet0/0/1
 service-policy output SHAPE
"""
POLICED = """\
version 15.1
class-map match-any STREAM
 match dscp af31
policy-map IN
 class STREAM
  police 2000000 50000 conform-action transmit exceed-action drop
interface GigabitEthernet0/0
 service-policy {direction} IN
"""
TWO = """\
policy-map A
 class class-default
  shape average 2000000
policy-map B
 class class-default
  shape average 3000000
interface GigabitEthernet0/0
 service-policy output A
interface GigabitEthernet0/1
 service-policy output B
"""


@cache
def try_policy_text(
    text: str,
    traffic: str,
    *changes: str,
    interface: str | None = None,
    rate_bps: int | None = None,
    seconds: float = 10,
) -> PolicyTrial:
    demands = parse_traffic(traffic)
    two_way = any(each.way for each in demands)
    edge = find_edge(read_configuration(text), interface, rate_bps, two_way=two_way)
    return try_policy(edge, demands, changes, simulate, seconds=seconds, rtt_s=0.02)


def trial_class(trial: PolicyTrial, *path: str, variant: int = 0) -> ClassResult:
    return next(each for each in trial.variants[variant].classes if each.path == path)


def trial_kind(trial: PolicyTrial, name: str, variant: int = 0) -> KindResult:
    return next(each for each in trial.variants[variant].kinds if each.name == name)


# Physics


@pytest.mark.parametrize("version", ["15.1", "17.6"])
def test_priority_voice_waits_for_one_packet_and_a_shaper_interval(version: str) -> None:
    trial = try_policy_text(SHAPED.format(version=version), "voice 5 calls, backup 3")
    voice, queued = trial_kind(trial, "voice"), trial_kind(trial, "backup")
    assert voice.loss == 0
    assert voice.delay is not None
    assert queued.delay is not None
    # A packet of 1514 bytes takes this long at 2 Mb/s; HQF sends in intervals of 4 ms.
    assert PROPAGATION_MS < voice.delay.max_ms < PROPAGATION_MS + 1514 * 8 / 2000 + 4 + LAN_MS
    assert queued.delay.p50_ms > PROPAGATION_MS + 50
    assert voice.voice is not None
    assert voice.voice.mos > 4.3


@pytest.mark.parametrize("version", ["15.1", "17.6"])
def test_shaper_passes_exactly_its_rate(version: str) -> None:
    trial = try_policy_text(SHAPED.format(version=version), "voice 5 calls, backup 3")
    total = trial_class(trial, "class-default")
    # Bc and Be may pass in addition to the rate.
    assert 0.97 * 2_000_000 < total.sent_bps < 2_000_000 + 2 * 8000 * 2 / 10
    assert trial.variants[0].line_bps <= total.sent_bps + 1514 * 8 / 10
    voice = trial_class(trial, "class-default", "VOICE")
    # 5 calls with 50 packets per second of 200 bytes and 14 of layer 2.
    assert voice.offered_bps == pytest.approx(5 * 50 * 214 * 8, rel=0.01)
    assert total.offered_bps == pytest.approx(
        voice.offered_bps + trial_class(trial, "class-default", "class-default").offered_bps, rel=0.001
    )


@pytest.mark.parametrize("direction", ["input", "output"])
def test_policer_passes_cir_and_its_burst(direction: str) -> None:
    trial = try_policy_text(POLICED.format(direction=direction), "streaming 2 streams")
    policed = trial_class(trial, "STREAM")
    bits = policed.sent_bps * 10
    assert policed.offered_bps > 8_000_000
    # The 50000-byte bucket is full at the start, and at least one packet short at the end.
    assert 2_000_000 * 9.4 + 50_000 * 8 - 1514 * 8 < bits <= 2_000_000 * 10 + 50_000 * 8
    assert policed.drops == {"police": policed.dropped_packets}
    streaming = trial_kind(trial, "streaming")
    assert streaming.loss == pytest.approx(policed.loss, abs=0.001)
    assert streaming.delay is not None
    # A policer drops at once and adds no delay.
    assert streaming.delay.max_ms < PROPAGATION_MS + 2 + LAN_MS


def test_calls_beyond_the_policer_of_the_priority_class_are_worthless() -> None:
    trial = try_policy_text(SHAPED.format(version="17.6"), "voice 20 calls, backup 3")
    voice = trial_kind(trial, "voice")
    # 20 calls offer 1.712 Mb/s, and the policer passes 600 kb/s.
    assert voice.loss == pytest.approx(1 - 600 / 1712, abs=0.05)
    assert voice.voice is not None
    assert voice.voice.mos < 1.5


def test_video_frames_are_sent_as_bursts() -> None:
    text = "version 17.6\npolicy-map P\n class class-default\n  shape average 6000000\n"
    video = trial_kind(
        try_policy_text(text + "interface GigabitEthernet0/0\n service-policy output P\n", "video"), "video"
    )
    assert video.delay is not None
    # An I picture of 31 kB, more than twice a P picture, takes 42 ms in the shaper; on average the line is free.
    assert video.received_bps < 1_700_000
    assert PROPAGATION_MS + 5 < video.delay.max_ms < PROPAGATION_MS + 60


def test_change_affects_only_its_class() -> None:
    trial = try_policy_text(EDGE, "voice 20 calls, video 2, backup 2", "class BULK; queue-limit 20 ms")
    before, after = (trial_class(trial, "class-default", "BULK", variant=index) for index in (0, 1))
    assert before.delay is not None
    assert after.delay is not None
    assert after.delay.max_ms < before.delay.max_ms / 2
    calls = [trial_kind(trial, "voice", index).voice for index in (0, 1)]
    assert all(call is not None and call.mos > 4.3 for call in calls)
    assert all(variant.line_bps < 50_500_000 for variant in trial.variants)


def test_same_trial_gives_the_same_results() -> None:
    first = try_policy_text(EDGE, "voice 3, web 5", seconds=4)
    try_policy_text.cache_clear()
    assert try_policy_text(EDGE, "voice 3, web 5", seconds=4) == first


# Classes


def test_each_kind_matches_the_class_of_its_code_point() -> None:
    trial = try_policy_text(EDGE, "voice 2, video, transactions 2, backup, web 2, gaming", seconds=2)
    met = {each.name: each.path for each in trial.variants[0].kinds}
    assert met == {
        "voice": ("class-default", "VOICE"),
        "video": ("class-default", "VIDEO"),
        "transactions": ("class-default", "BUSINESS"),
        "backup": ("class-default", "BULK"),
        "web": ("class-default", "class-default"),
        "gaming": ("class-default", "class-default"),
    }
    assert any("gaming (cs4)" in each for each in trial.findings)


def test_idle_classes_are_reported_and_a_code_point_changes_the_class() -> None:
    assert any("VIDEO" in each for each in try_policy_text(EDGE, "voice 2", seconds=2).findings)
    trial = try_policy_text(EDGE, "web 2 dscp af42", seconds=2)
    assert trial.variants[0].kinds[0].path == ("class-default", "VIDEO")


def test_ports_are_classified_by_access_lists() -> None:
    text = """\
version 15.1
ip access-list extended BACKUP
 permit tcp any any eq 873
class-map match-any BACKUP
 match access-group name BACKUP
policy-map P
 class BACKUP
  bandwidth percent 10
interface GigabitEthernet0/1
 service-policy output P
"""
    trial = try_policy_text(text, "backup, backup port 8730", seconds=2)
    assert [each.path for each in trial.variants[0].kinds] == [("BACKUP",), ("class-default",)]


def test_marking_of_an_input_policy_decides_the_output_class() -> None:
    text = """\
version 17.6
class-map match-any VOICE
 match dscp ef
policy-map MARK
 class VOICE
  set dscp default
policy-map OUT
 class VOICE
  priority percent 20
interface GigabitEthernet0/0/0
 service-policy output OUT
interface GigabitEthernet0/0/1
 service-policy input MARK
"""
    voice = try_policy_text(text, "voice", seconds=2).variants[0].kinds[0]
    assert (voice.input_path, voice.path) == (("VOICE",), ("class-default",))


# Two directions

TWO_WAY = """\
version 17.6
class-map match-any VOICE
 match dscp ef
policy-map UP
 class class-default
  shape average 2000000
policy-map POLICE
 class class-default
  police 6000000
policy-map USERS
 class VOICE
  priority percent 20
 class class-default
  shape average 4000000
interface GigabitEthernet0/0/0
 service-policy output UP
 service-policy input POLICE
interface GigabitEthernet0/0/1
 service-policy output USERS
"""


def test_each_direction_uses_its_own_policies() -> None:
    trial = try_policy_text(TWO_WAY, "backup; in: bulk 3, voice 5; both: dns", interface="gi0/0/0")
    names = [(each.name, each.reverse, each.path, each.input_path) for each in trial.variants[0].kinds]
    default = ("class-default",)
    assert names == [
        ("backup", False, default, ()),
        ("bulk-in", True, default, default),
        ("voice-in", True, ("VOICE",), default),
        ("dns-out", False, default, ()),
        ("dns-in", True, default, default),
    ]
    police, users = trial.variants[0].others
    assert [(each.interface, each.direction, each.policy) for each in (police, users)] == [
        ("GigabitEthernet0/0/0", "input", "POLICE"),
        ("GigabitEthernet0/0/1", "output", "USERS"),
    ]
    up, down = trial_class(trial, "class-default"), users.classes[1]
    # Connections begin within the first second.
    assert 0.85 * 2_000_000 < up.sent_bps < 1.01 * 2_000_000
    assert 0.85 * 4_000_000 < down.sent_bps < 1.01 * 4_000_000
    # Acknowledgements of the uploads belong to the class too; the policer counts more than the class of the users.
    assert police.classes[0].sent_bps > down.sent_bps
    text = trial_text(trial)
    assert "GigabitEthernet0/0/1 output: policy-map USERS" in text
    assert "in: 5 voice ef " in text
    assert max(map(len, text.splitlines())) <= 80


def test_acknowledgements_of_the_other_direction_wait_in_the_queue() -> None:
    alone, both = (
        trial_kind(try_policy_text(TWO_WAY, traffic, interface="gi0/0/0"), "bulk-in").received_bps
        for traffic in ("in: bulk", "in: bulk; out: backup 4")
    )
    assert alone > 0.85 * 4_000_000
    assert both < 0.97 * alone


def test_change_of_two_directions_reaches_the_policy_of_the_other_interface() -> None:
    with pytest.raises(UserError, match="policy-map UP / class class-default, policy-map USERS / class class-default"):
        try_policy_text(TWO_WAY, "in: bulk 3", "shape average 3000000", interface="gi0/0/0", seconds=1)
    change = "policy-map USERS; class class-default; shape average 3000000"
    after = try_policy_text(TWO_WAY, "in: bulk 3", change, interface="gi0/0/0").variants[1].others
    assert 0.85 * 3_000_000 < after[1].classes[1].sent_bps < 1.01 * 3_000_000


def test_addresses_of_hosts_are_those_of_the_sender_in_both_directions() -> None:
    text = TWO_WAY.replace(" match dscp ef", " match access-group 101") + (
        "access-list 101 permit ip host 203.0.113.7 host 10.1.1.9\n"
    )
    traffic = "in: voice from 203.0.113.7 to 10.1.1.9, gaming from 203.0.113.7, out: voice from 10.1.1.9"
    trial = try_policy_text(text, traffic, interface="gi0/0/0", seconds=2)
    assert [each.path for each in trial.variants[0].kinds] == [("VOICE",), ("class-default",), ("class-default",)]


def test_addresses_of_both_directions_are_swapped() -> None:
    there, back = parse_traffic("both: voice from 10.1.1.9 to 203.0.113.7")
    assert (str(there.source), str(there.destination)) == ("10.1.1.9", "203.0.113.7")
    assert (back.source, back.destination) == (there.destination, there.source)
    assert all(
        each.loss == 0
        for each in try_policy_text(TWO_WAY, "both: voice from 10.1.1.9 to 203.0.113.7", interface="gi0/0/0", seconds=1)
        .variants[0]
        .kinds
    )
    with pytest.raises(UserError, match=r"found address 10\.1\.1\.9 on both sides of the router"):
        try_policy_text(TWO_WAY, "out: voice from 10.1.1.9, in: gaming from 10.1.1.9", interface="gi0/0/0", seconds=1)


# Interfaces


def test_serial_lines_and_subinterfaces_count_their_headers() -> None:
    text = SHAPED.format(version="17.6").replace(
        "interface GigabitEthernet0/0/1\n", "interface GigabitEthernet0/0/1.30\n encapsulation dot1Q 30\n"
    )
    tagged = trial_class(try_policy_text(text, "voice 5", seconds=4), "class-default", "VOICE")
    assert tagged.offered_bps == pytest.approx(5 * 50 * 218 * 8, rel=0.02)
    text = "version 15.1\npolicy-map P\n class class-default\n  fair-queue\ninterface Serial0/0\n bandwidth 512\n"
    trial = try_policy_text(text + " encapsulation ppp\n service-policy output P\n", "voice 2, backup", seconds=8)
    assert trial.line_bps == 512_000
    assert 480_000 < trial.variants[0].line_bps <= 512_000


def test_unattached_policy_map_needs_a_rate() -> None:
    text = "policy-map P\n class class-default\n  fair-queue\n"
    with pytest.raises(UserError, match="expected --rate"):
        try_policy_text(text, "backup")
    trial = try_policy_text(text, "backup", rate_bps=4_000_000, seconds=5)
    assert 3_500_000 < trial.variants[0].line_bps < 4_000_000
    assert any("attached to no interface" in note for note in trial.notes)


def test_one_of_several_interfaces_is_the_slowest_or_chosen_by_name() -> None:
    slower = try_policy_text(TWO.replace("2000000", "4000000"), "backup", seconds=2)
    assert slower.policy == "B"
    assert "Tried GigabitEthernet0/1 (B), the slowest interface with an output policy" in slower.notes[0]
    assert try_policy_text(TWO, "backup", interface="gi0/1", seconds=2).policy == "B"
    with pytest.raises(UserError, match="found no policy on GigabitEthernet0/7"):
        try_policy_text(TWO, "backup", interface="Gi0/7")


def test_refused_policy_has_the_message_of_the_router() -> None:
    refused = (
        "policy-map P\n class class-default\n  fair-queue\ninterface GigabitEthernet0/0\n service-policy input P\n"
    )
    with pytest.raises(UserError, match=r"GigabitEthernet0/0 refuses `service-policy input P` \(line 6\)"):
        try_policy_text("version 15.1\n" + refused, "voice")


def test_refused_lines_are_reported_and_omitted() -> None:
    trial = try_policy_text(EDGE.replace("queue-limit 200 ms", "queue-limit 0 packets"), "voice", seconds=1)
    assert any("line 24: `queue-limit 0 packets`" in note for note in trial.notes)
    assert not any("is not read" in note for note in try_policy_text(EDGE, "voice", seconds=1).notes)


# Changes


def scenario_scope(text: str = EDGE) -> tuple[Any, Any]:
    edge = find_edge(read_configuration(text), None, None)
    return edge.device, edge.scope


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ("police cir 20000000", ["policy-map QUEUES", "class VOICE", "police cir 20000000"]),
        ("shape average 20000000", ["policy-map SHAPE", "class class-default", "shape average 20000000"]),
        ("class BULK; queue-limit 64 ms", ["policy-map QUEUES", "class BULK", "queue-limit 64 ms"]),
        ("policy-map QUEUES; class VIDEO; no queue-limit", ["policy-map QUEUES", "class VIDEO", "no queue-limit"]),
        ("service-policy output QUEUES", ["interface GigabitEthernet0/0/0", "service-policy output QUEUES"]),
    ],
)
def test_line_of_the_change_is_typed_in_the_matching_mode(change: str, lines: list[str]) -> None:
    device, scope = scenario_scope()
    assert list(apply_changes(device, [change], scope).lines) == lines


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("bandwidth remaining percent 10", "4 places: policy-map QUEUES / class VIDEO, "),
        (
            "queue-limit 100 ms",
            "2 places: policy-map QUEUES / class VIDEO, policy-map QUEUES / class BULK",
        ),
        ("bandwith 20", 'the router refuses "bandwith 20": % Invalid input'),
        ("class NONE; drop", 'found "class NONE" in 0 policy-maps, expected it in one'),
        ("policy-map QUEUE; class VOICE", 'found "policy-map QUEUE", expected a policy-map of the configuration'),
        ("policy-map QUEUES; class VOCIE; drop", 'found "class VOCIE", expected a class of policy-map QUEUES: VOICE'),
        (" ; ", "found no line"),
        (
            "class VIDEO; bandwidth remaining percent 60",
            'the router refuses "bandwidth remaining percent 60": Sum total of class bandwidths exceeds 100 percent',
        ),
    ],
)
def test_conflicting_change_names_its_line(change: str, message: str) -> None:
    device, scope = scenario_scope()
    with pytest.raises(UserError) as error:
        apply_changes(device, [change], scope)
    assert message in error.value.message


# Traffic in words


def test_traffic_is_described_in_words() -> None:
    found = parse_traffic(
        "20 voice calls, g711 5, video 4 rate 2.5m, web 50 users dscp 10, backup rate 1.5 Mb/s port 22"
    )
    assert [(each.name, each.count, each.dscp, each.port, each.rate_bps) for each in found] == [
        ("voice", 20, 46, 16384, None),
        ("voice-2", 5, 46, 16386, None),
        ("video", 4, 34, 16388, 2_500_000),
        ("web", 50, 10, 443, None),
        ("backup", 1, 10, 22, 1_500_000),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no kind of traffic"),
        ("voise 20", 'found "voise" in "voise 20", expected one of voice, g729'),
        ("voice -1", 'found "-1" in "voice -1", expected KIND'),
        ("voice 0", "expected at least 1"),
        ("voice 20 users", 'found "users"'),
        ("video dscp af99", 'found DSCP "af99", expected 0 to 63'),
        ("video port 70000", "expected 1 to 65535"),
        ("video port 5, web port 5", "found port 5"),
        ("voice 2 rate 5m", "the codec sets the rate"),
        ("video rate fast", '"fast"'),
        ("web 3000", "expected at most 2000"),
        ("upload: web 3", 'found "upload:" in "upload: web 3", expected out:, in: or both:'),
    ],
)
def test_invalid_traffic_description_is_reported(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse_traffic(text)
    assert message in error.value.message


# The command


def test_tables_fit_80_columns() -> None:
    traffic = "voice 20, g729 3, opus 4, video 2, streaming, web 5, transactions 1000, backup, imix, dns 9, gaming 3"
    trial = try_policy_text(EDGE, traffic, "shape average 9000000", seconds=3)
    text = trial_text(trial)
    assert max(map(len, text.splitlines())) <= 80
    assert "Change: policy-map SHAPE; class class-default; shape average 9000000" in text
    assert len(re.findall(r"(?m)^ *after  ", text)) == len(trial.variants[0].classes) + len(trial.variants[0].kinds) + 1


def test_command_prints_json_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "a.svg"
    arguments = ["try", "--traffic", "voice 2, backup", "--seconds", "2", "--json", "--picture", str(picture)]
    arguments += ["--change", "class BULK; queue-limit 20 ms"]
    done = CliRunner().invoke(command_group, arguments, input=EDGE, standalone_mode=False)
    document = json.loads(done.stdout)
    assert [each["label"] for each in document["variants"]] == ["before", "after"]
    voice = document["variants"][0]["kinds"][0]
    assert (voice["name"], voice["path"], voice["loss"]) == ("voice", ["class-default", "VOICE"], 0)
    assert voice["voice"]["mos"] > 4.3
    drawn = ElementTree.parse(picture).getroot()
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}polyline")) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("--traffic", "voice 2", "--seconds", "0"),
        ("--traffic", "voice 2", "--rate", "fast"),
        ("--traffic", "voice 2", "--rtt", "fast"),
        ("--traffic", "voice 2", "--model", "9300"),
        ("--traffic", "voice 2", "--picture", "/nonexistent/a.svg", "--seconds", "1"),
        ("--traffic", "voice 2", "--change", "foo"),
    ],
)
def test_invalid_arguments_exit_with_status_2(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "edge.ios"
    file.write_text(EDGE, encoding="utf-8")
    assert main(["try", str(file), *arguments]) == ExitStatus.USER_MISTAKE
    assert arguments[-2].removeprefix("--") in capsys.readouterr().err or "--seconds" in arguments


def test_switch_is_refused() -> None:
    text = "mls qos\npolicy-map P\n class class-default\n  police 1000000 8000 exceed-action drop\n"
    text += "interface GigabitEthernet1/0/1\n switchport mode access\n service-policy input P\n"
    with pytest.raises(UserError, match="Catalyst switch"):
        try_policy_text(text, "voice")


def test_page_shows_the_answer_to_its_command() -> None:
    page = (TOP / "docs" / "policies.md").read_text(encoding="utf-8")
    configuration = re.search(r"```ios\n(! configs/wan.txt\n.*?)```", page, re.DOTALL)
    section = page.partition("## Try a policy under traffic")[2]
    shown = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert configuration
    assert shown
    words = shlex.split(next(line for line in section.splitlines() if line.startswith("$ qoslab try")))
    options = dict(itertools.pairwise(words))
    trial = try_policy_text(
        configuration[1], options["--traffic"], options["--change"], interface=options["--interface"], seconds=30
    )
    assert trial_text(trial) == shown[1]


def test_page_lists_the_catalogue() -> None:
    page = (TOP / "docs" / "policies.md").read_text(encoding="utf-8")
    for each in CATALOGUE:
        ways = "both" if each.is_bidirectional else "one"
        row = (
            f"| `{each.name}` | {each.summary} | {ways} | {dscp_text(each.dscp)} | {each.protocol.upper()} {each.port} "
        )
        assert f"{row}| {each.source} |" in page


def test_class_has_the_packets_of_its_children() -> None:
    trial = try_policy_text(EDGE, "voice 40, video 4, backup 3, web 5", "shape average 9000000")
    for variant in (0, 1):
        whole = trial_class(trial, "class-default", variant=variant)
        parts = [each for each in trial.variants[variant].classes if len(each.path) == 2]
        assert whole.dropped_packets == sum(each.dropped_packets for each in parts)
        assert whole.offered_packets == sum(each.offered_packets for each in parts)
        assert whole.sent_bps == pytest.approx(sum(each.sent_bps for each in parts))
    assert trial_class(trial, "class-default", variant=1).dropped_packets > 100


def test_traffic_enters_at_the_matched_interface() -> None:
    text = """\
version 15.1
class-map match-all FROM-LAN
 match input-interface {name}
policy-map P
 class FROM-LAN
  bandwidth percent 50
interface GigabitEthernet0/0
 service-policy output P
interface GigabitEthernet0/1
 ip address 10.0.0.1 255.255.255.0
"""
    assert try_policy_text(text.format(name="GigabitEthernet0/1"), "web", seconds=1).variants[0].kinds[0].path == (
        "FROM-LAN",
    )
    other = try_policy_text(text.format(name="Tunnel7"), "web", seconds=1)
    assert other.variants[0].kinds[0].path == ("class-default",)


@pytest.mark.parametrize("interface", ["GigabitEthernet0/0", "Serial0/0\n bandwidth 2000"])
def test_addresses_are_classified_by_access_lists(interface: str) -> None:
    text = f"""\
version 15.1
access-list 101 permit ip host 10.1.2.3 10.9.0.0 0.0.255.255
class-map match-any BACKUP
 match access-group 101
policy-map P
 class BACKUP
  bandwidth percent 10
interface {interface}
 service-policy output P
"""
    traffic = "backup from 10.1.2.3 to 10.9.0.10, bulk from 10.1.2.3, web to 10.9.0.10, voice from 10.1.9.9"
    trial = try_policy_text(text, traffic, seconds=3)
    met = [each.path for each in trial.variants[0].kinds]
    assert met == [("BACKUP",), ("class-default",), ("class-default",), ("class-default",)]
    assert all(each.received_bps > 10_000 for each in trial.variants[0].kinds if each.name != "web")


@pytest.mark.parametrize("address", ["10.1.2", "224.0.0.5", "198.18.7.1", "0.0.0.1"])
def test_address_without_a_host_is_refused(address: str) -> None:
    with pytest.raises(UserError, match=f'found address "{address}"'):
        parse_traffic(f"web from {address}")


def test_adjacent_addresses_are_refused() -> None:
    with pytest.raises(UserError, match=r"found 10\.0\.0\.5 and the other address of its"):
        try_policy_text(EDGE, "web from 10.0.0.4, voice from 10.0.0.5", seconds=1)


def test_reasons_of_drops_are_reported() -> None:
    policed = try_policy_text(POLICED.format(direction="output"), "streaming 2 streams")
    assert any(each.startswith("class STREAM drops 7") and each.endswith("% (policer)") for each in policed.findings)
    queued = try_policy_text(EDGE, "voice 2, backup 9", "class BULK; queue-limit 20 ms")
    assert any(each.startswith("after the change: class BULK drops ") for each in queued.findings)
    assert any("queue full)" in each for each in queued.findings)


def test_tunnel_is_tried_on_a_line_of_its_bandwidth() -> None:
    text = "version 17.6\npolicy-map P\n class class-default\n  fair-queue\ninterface Tunnel10\n bandwidth 5000\n"
    trial = try_policy_text(text + " service-policy output P\n", "backup 3", seconds=5)
    assert trial.line_bps == 5_000_000
    assert trial.notes[0] == "policy-map P on Tunnel10: simulated on an Ethernet line of 5 Mb/s."
    assert 4_500_000 < trial.variants[0].line_bps < 5_000_000


def test_bandwidth_of_a_tunnel_is_not_a_second_queue_behind_its_shaper() -> None:
    text = SHAPED.format(version="17.6").replace("GigabitEthernet0/0/1", "Tunnel10\n bandwidth 2000")
    trial = try_policy_text(text, "voice 5, backup 3", seconds=5)
    assert trial.line_bps == 1_000_000_000
    voice = trial_kind(trial, "voice")
    assert voice.delay is not None
    assert voice.delay.max_ms < PROPAGATION_MS + 1514 * 8 / 2000 + 4 + LAN_MS


def test_policy_of_an_atm_circuit_is_tried_at_the_rate_of_the_circuit() -> None:
    text = (
        "version 15.4\npolicy-map P\n class class-default\n  shape average 900000\n"
        "policy-map COPP\n class class-default\n  police rate 100 pps\n   conform-action transmit\n"
        "interface ATM0.1 point-to-point\n pvc 8/35\n  vbr-nrt 1024 1024\n  service-policy out P\n"
        "control-plane\n service-policy input COPP\n"
    )
    trial = try_policy_text(text, "voice 1, backup", seconds=2)
    assert trial.line_bps == 1_024_000
    assert trial.notes == (
        "ATM0.1: the cells of ATM are not counted.",
        "policy-map P on ATM0.1: simulated on an Ethernet line of 1.024 Mb/s.",
    )
