"""`qoslab policy` for IOS-XE: the tables that follow from Cisco's rules, row by row.

Each test fails if a rule of HQF is used instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.policy.answer import answer_policy
from qoslab.policy.class_values import ClassValues
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.policy.render import answer_text
from qoslab.trial.edge import find_edge

VERSION = "version 17.9\n"
CLASSES = "".join(f"class-map C{number}\n match dscp {number}\n" for number in range(1, 11))


def classes(text: str, rate_bps: int | None = None) -> dict[str, ClassValues]:
    [policy] = answer_policy(VERSION + CLASSES + text, rate_bps=rate_bps).policies
    return {"/".join(each.path): each for each in policy.classes}


def child_classes(rate_bps: int, *lines: str) -> dict[str, ClassValues]:
    """Return the classes of a child below a shaper."""
    child = "policy-map CHILD\n" + "".join(f" {line}\n" for line in lines)
    parent = f"policy-map PARENT\n class class-default\n  shape average {rate_bps}\n  service-policy CHILD\n"
    port = "interface GigabitEthernet0/0/0\n service-policy output PARENT\n"
    found = classes(child + parent + port)
    return {name.removeprefix("class-default/"): each for name, each in found.items() if "/" in name}


@pytest.mark.parametrize(
    ("rate_bps", "packets", "bc_bits", "police_bytes", "priority_bytes", "full_ms"),
    [
        (128_000, 64, 512, 4_000, 3_200, 6056),
        (512_000, 64, 2_048, 16_000, 12_800, 1514),
        (1_000_000, 64, 4_000, 31_250, 25_000, 775),
        (2_000_000, 64, 8_000, 62_500, 50_000, 388),
        (5_000_000, 64, 20_000, 156_250, 125_000, 155),
        (8_000_000, 64, 32_000, 250_000, 200_000, 96.9),
        (10_000_000, 64, 40_000, 312_500, 250_000, 77.5),
        (15_360_000, 64, 61_440, 480_000, 384_000, 50.5),
        (20_000_000, 83, 80_000, 625_000, 500_000, 50.3),
        (42_500_000, 177, 170_000, 1_328_125, 1_062_400, 50.4),
        (50_000_000, 208, 200_000, 1_562_500, 1_250_000, 50.4),
        (100_000_000, 416, 400_000, 3_125_000, 2_500_000, 50.4),
        (200_000_000, 833, 800_000, 6_250_000, 5_000_000, 50.4),
        (500_000_000, 2_083, 2_000_000, 15_625_000, 12_500_000, 50.5),
        (1_000_000_000, 4_166, 4_000_000, 31_250_000, 25_000_000, 50.5),
        (2_000_000_000, 8_333, 8_000_000, 62_500_000, 50_000_000, 50.5),
        (10_000_000_000, 41_666, 40_000_000, 312_500_000, 250_000_000, 50.5),
    ],
)
def test_ios_xe_defaults_depend_on_the_rate(
    rate_bps: int, packets: int, bc_bits: int, police_bytes: int, priority_bytes: int, full_ms: float
) -> None:
    policy = (
        f"policy-map P\n class C1\n  police {rate_bps}\n class C2\n  shape average {rate_bps}\n"
        f" class C3\n  priority {rate_bps // 1000}\n"
        "interface TenGigabitEthernet0/0/0\n service-policy output P\n"
    )
    found = classes(policy)
    police, shape, queue = found["C1"].police, found["C2"].shape, found["C2"].queue
    assert police is not None and shape is not None and queue is not None
    assert (queue.packets, queue.default) == (packets, True)
    assert (shape.bc_bits, shape.be_bits, police.bc_bytes) == (bc_bits, bc_bits, police_bytes)
    assert packets * 1514 * 8000 / rate_bps == pytest.approx(full_ms, rel=0.005)
    assert rate_bps // 1000 // 8 * 200 == pytest.approx(priority_bytes, rel=0.002)
    assert found["C3"].queue is not None
    assert found["C3"].queue.packets == 512


@pytest.mark.parametrize(
    ("limit", "greatest", "least", "assured", "expedited"),
    [
        (64, 32, (16, 18, 20, 22, 24, 26, 28, 30), (28, 24, 20), 30),
        (208, 104, (52, 58, 65, 71, 78, 84, 91, 97), (91, 78, 65), 97),
        (416, 208, (104, 117, 130, 143, 156, 169, 182, 195), (182, 156, 130), 195),
        (4166, 2083, (1041, 1171, 1301, 1432, 1562, 1692, 1822, 1952), (1822, 1562, 1301), 1952),
    ],
)
def test_early_detection_follows_the_queue_limit(
    limit: int, greatest: int, least: tuple[int, ...], assured: tuple[int, ...], expedited: int
) -> None:
    def rows(basis: str) -> dict[str, tuple[int, int]]:
        text = f"policy-map P\n class class-default\n  queue-limit {limit}\n  random-detect{basis}\n"
        red = classes(text, 1_000_000_000)["class-default"].red
        assert red is not None and red.unit == "packets"
        return {each.value: (each.minimum, each.maximum) for each in red.rows}

    assert list(rows("").values()) == [(minimum, greatest) for minimum in least]
    by_code = rows(" dscp-based")
    assert tuple(by_code[name][0] for name in ("af21", "af22", "af23")) == assured
    assert by_code["ef"] == (expedited, greatest)


def test_percentage_thresholds_refer_to_the_limit() -> None:
    text = (
        "policy-map P\n class class-default\n  queue-limit 312500 bytes\n  random-detect dscp-based\n"
        "  random-detect dscp af31 percent 43 50\n"
    )
    red = classes(text, 100_000_000)["class-default"].red
    assert red is not None
    row = next(each for each in red.rows if each.value == "af31")
    assert (red.unit, row.minimum, row.maximum, row.typed) == ("bytes", 134_375, 156_250, True)


@pytest.mark.parametrize(
    ("rate_bps", "lines", "expected_kbps"),
    [
        (
            2_000_000,
            ["class C1", " bandwidth percent 20", "class C2", " bandwidth percent 30"],
            {"C1": 733.3, "C2": 933.3, "class-default": 333.3},
        ),
        (
            2_000_000,
            ["class C1", " bandwidth remaining percent 20", "class C2", " bandwidth remaining percent 30"],
            {"C1": 400, "C2": 600, "class-default": 1000},
        ),
        (
            2_000_000,
            ["class C1", " bandwidth remaining ratio 2", "class C2", " bandwidth remaining ratio 3"],
            {"C1": 666.7, "C2": 1000, "class-default": 333.3},
        ),
        (
            100_000_000,
            ["class C1", " priority", " police 25000000", "class C2", " bandwidth percent 20"],
            {"C1": 25000, "C2": 47500, "class-default": 27500},
        ),
        (
            10_000_000,
            ["class C1", " priority 1000", "class C2", " bandwidth 2000", " shape average 3000000"],
            {"C1": 1000, "C2": 3000, "class-default": 6000},
        ),
    ],
)
def test_class_rates_under_full_load_are_computed(
    rate_bps: int, lines: list[str], expected_kbps: dict[str, float]
) -> None:
    found = child_classes(rate_bps, *lines)
    kbps = {name: each.busy.bps / 1000 for name, each in found.items() if each.busy}
    assert kbps == pytest.approx(expected_kbps, rel=0.001)
    assert not any(each.estimate for each in found.values())


def test_minimum_rates_share_the_bandwidth_left_by_priority() -> None:
    lines = ["class C1", " priority", " police 6000000", "class C2", " bandwidth 6000", "class C3", " bandwidth 2000"]
    found = child_classes(10_000_000, *lines)
    assert {name: each.busy and each.busy.bps for name, each in found.items()} == pytest.approx(
        {"C1": 6_000_000, "C2": 3_000_000, "C3": 1_000_000, "class-default": 0}
    )


def test_long_queue_of_a_small_class_is_a_finding() -> None:
    lines = ["class C1", " bandwidth remaining percent 5", " queue-limit 4096", "class class-default"]
    queue = child_classes(29_750_000, *lines)["C1"].queue
    assert queue is not None and queue.ms is not None
    assert queue.ms * 1500 / 1514 == pytest.approx(33_000, rel=0.01)
    assert queue.ms * 900 / 1514 == pytest.approx(19_800, rel=0.01)


@pytest.mark.parametrize(
    ("lines", "packets", "size", "given_ms"),
    [
        (["bandwidth 300000"], 1250, None, None),
        (["bandwidth 300000", "shape average 50000000"], 1250, None, None),
        (["shape average 50000000"], 208, None, None),
        (["bandwidth remaining percent 8"], 4166, None, None),
        (["bandwidth 300000", "queue-limit 10 ms"], None, 375_000, 10),
        (["bandwidth 100000", "queue-limit 3932 us"], None, 49_150, 3.932),
        (["bandwidth 100000", "queue-limit 500000 bytes"], None, 500_000, None),
        (["bandwidth 100000", "queue-limit 100000"], 100_000, None, None),
    ],
)
def test_limits_refer_to_the_rate_of_the_class(
    lines: list[str], packets: int | None, size: int | None, given_ms: float | None
) -> None:
    text = "policy-map P\n class C1\n" + "".join(f"  {line}\n" for line in lines)
    queue = classes(text + "interface GigabitEthernet0/0/0\n service-policy output P\n")["C1"].queue
    assert queue is not None
    assert queue.packets == packets
    assert queue.given_ms == given_ms
    assert size is None or queue.bytes == size


def test_default_limit_without_a_rate_is_a_time() -> None:
    queue = classes("policy-map P\n class C1\n  bandwidth remaining percent 8\n")["C1"].queue
    assert queue is not None
    assert (queue.packets, queue.given_ms) == (None, 50)


def test_flow_queues_share_the_limit_of_their_class() -> None:
    text = "policy-map P\n class class-default\n  queue-limit 512\n  random-detect\n  fair-queue\n"
    queue = classes(text, 1_000_000_000)["class-default"].queue
    assert queue is not None
    assert (queue.flows, queue.per_flow_packets) == (16, 128)


@pytest.mark.parametrize("line", ["version 16.12", "platform qfp utilization monitor load 80", "license boot level x"])
def test_release_is_named_by_the_configuration(line: str) -> None:
    text = f"{line}\npolicy-map P\n class class-default\n  shape average 50000000\n"
    answered = answer_policy(text)
    assert answered.generation == "ios-xe"
    assert answer_text(answered).startswith("Rules: IOS-XE 16 and 17 on routers")


def test_lines_specific_to_ios_xe_select_its_rules() -> None:
    text = "policy-map P\n class class-default\n  shape average 50000000\n  queue-limit 500 us\n"
    assert answer_policy(text).generation == "ios-xe"
    assert answer_policy(text.replace("500 us", "500 packets")).generation == "hqf"


@pytest.mark.parametrize("model", ["ISR4451", "c8000v", "ios-xe"])
def test_model_option_selects_the_rules(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wan.txt"
    file.write_text("policy-map P\n class class-default\n  shape average 50000000\n")
    assert main(["policy", str(file), "--model", model]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Rules: IOS-XE") and "208 packets" in shown


SERVICE_INSTANCES = """\
version 17.3
policy-map EVC
 class class-default
  police cir 1000000
policy-map PORT
 class class-default
  shape average 50000000
interface GigabitEthernet0/0/1
 service-policy output PORT
 service instance 10 ethernet
  encapsulation dot1q 10
  service-policy input EVC
 service instance 20 ethernet
  service-policy input EVC
"""


def test_policies_of_service_instances_are_not_those_of_the_port() -> None:
    found = answer_policy(SERVICE_INSTANCES).policies
    assert [each.interface for each in found if each.policy == "EVC"] == [
        "GigabitEthernet0/0/1 service instance 10",
        "GigabitEthernet0/0/1 service instance 20",
    ]


@pytest.mark.parametrize(
    ("version", "line", "refused"),
    [
        ("17.3", "police cir 100000000000", ""),
        ("17.3", "shape average 100g", ""),
        ("17.3", "police 1000000 100", ""),
        ("17.3", "police 1000000 99", "the command does not accept the value 99, expected 100 to 512000000"),
        (
            "17.3",
            "police cir 1000000 bc 999",
            "the command does not accept the value 999, expected 1000 to 512000000",
        ),
        ("15.2", "police 1000000 100", "the command does not accept the value 100, expected 1000 to 512000000"),
        (
            "17.3",
            "police cir 100000000001",
            "the command does not accept the value 100000000001, expected 8000 to 100000000000",
        ),
        (
            "17.3",
            "police cir 1000000 pir 64000000001",
            "the command does not accept the value 64000000001, expected 8000 to 64000000000",
        ),
        ("17.3", "police every 5", "the command does not accept `every`"),
        ("17.3", "polise 5", "the model has no such command"),
    ],
)
def test_rates_and_bursts_are_accepted_in_the_ranges_of_the_release(version: str, line: str, refused: str) -> None:
    text = f"version {version}\npolicy-map P\n class class-default\n  {line}\n"
    assert [each.reason for each in answer_policy(text).ignored] == ([refused] if refused else [])


def test_classes_of_a_priority_level_wait_for_each_other_and_for_higher_levels() -> None:
    found = child_classes(
        100_000_000,
        "class C1\n  police cir 8000000 bc 100000\n  priority level 1",
        "class C2\n  police cir 12000000 bc 200000\n  priority level 1",
        "class C3\n  police cir 20000000 bc 400000\n  priority level 2",
    )
    frame = 1514
    first = (100_000 + 200_000 + frame) * 8_000 / 100e6 + frame * 8_000 / 100e6
    assert found["C1"].wait_ms == found["C2"].wait_ms == pytest.approx(first)
    # While the bursts of level 1 leave, level 1 sends 20 Mb/s more.
    second = (700_000 + frame) * 8_000 / 80e6 + frame * 8_000 / 100e6
    assert found["C3"].wait_ms == pytest.approx(second)


def test_bursts_wait_at_most_for_the_shared_priority_queue() -> None:
    lines = [f"class C{number}\n  police cir 10000000\n  priority" for number in (1, 2, 3)]
    found = child_classes(100_000_000, *lines)
    assert found["C1"].wait_ms == pytest.approx((512 * 1514 + 2 * 1514) * 8_000 / 100e6)


def test_a_level_below_unlimited_priority_has_no_longest_wait() -> None:
    found = child_classes(100_000_000, "class C1\n  priority level 1", "class C2\n  priority level 2 1000")
    assert found["C1"].wait_ms is not None
    assert found["C2"].wait_ms is None


def test_thresholds_in_time_are_bytes_at_the_rate_of_the_class() -> None:
    found = child_classes(
        100_000_000,
        "class C1\n  bandwidth 10000\n  queue-limit 30 ms\n  random-detect dscp-based\n"
        "  random-detect dscp af11 10 ms 20 ms",
    )["C1"]
    assert found.red is not None and found.queue is not None
    rows = {row.value: (row.minimum, row.maximum, row.unit) for row in found.red.rows}
    assert (found.red.unit, found.queue.bytes) == ("bytes", 37_500)
    assert rows["af11"] == (12_500, 25_000, "")
    assert rows["af12"] == (14_062, 18_750, "")


def test_thresholds_without_a_rate_are_parts_of_the_limit() -> None:
    text = (
        "policy-map P\n class C1\n  bandwidth remaining percent 8\n  random-detect dscp-based\n"
        "  random-detect dscp af11 20 40\n"
    )
    red = classes(text)["C1"].red
    assert red is not None
    rows = {row.value: (row.minimum, row.maximum, row.unit) for row in red.rows}
    assert red.unit == "percent of the limit"
    assert (rows["af11"], rows["af12"]) == ((20, 40, "packets"), (37, 50, ""))


@pytest.mark.parametrize(("account", "added"), [("", 0), (" account user-defined 24", 24)])
def test_a_queue_lasts_longer_if_the_shaper_counts_more_bytes(account: str, added: int) -> None:
    lines = f"policy-map P\n class C1\n  shape average 10000000{account}\n  queue-limit 100 packets\n"
    queue = classes(lines + "interface GigabitEthernet0/0/0\n service-policy output P\n")["C1"].queue
    assert queue is not None
    assert queue.bytes == 100 * 1514
    assert queue.ms == pytest.approx(100 * (1514 + added) * 8_000 / 10e6)


@pytest.mark.parametrize(("mtu", "unconfirmed"), [("", False), (" mtu 1500\n", False), (" mtu 9000\n", True)])
def test_default_queue_limit_of_a_port_with_a_larger_mtu_is_unconfirmed(mtu: str, unconfirmed: bool) -> None:
    text = (
        "version 17.3\npolicy-map P\n class A\n  bandwidth percent 10\n"
        " class class-default\n  queue-limit 500 packets\n"
        f"interface GigabitEthernet0/0/1\n{mtu} service-policy output P\n"
    )
    (found,) = answer_policy(text).policies
    queues = {each.name: each.queue for each in found.classes}
    assert {name: None if each is None else each.unconfirmed for name, each in queues.items()} == {
        "A": unconfirmed,
        "class-default": False,
    }


CIRCUIT = """\
version 15.1
class-map match-any VOICE
 match dscp ef
policy-map WAN
 class VOICE
  priority percent 25
map-class frame-relay FRTS
{lines} service-policy output WAN
interface Serial0/0/0
 encapsulation frame-relay
{shaping}interface Serial0/0/0.100 point-to-point
 frame-relay interface-dlci 100
  class FRTS
"""
SHAPING = " frame-relay traffic-shaping\n"


@pytest.mark.parametrize(
    ("lines", "shaping", "line", "base"),
    [
        (" frame-relay cir 512000\n frame-relay mincir 384000\n", SHAPING, "512 kb/s", "384 kb/s"),
        (" frame-relay cir 512000\n", SHAPING, "512 kb/s", "256 kb/s"),
        (" frame-relay cir in 128000\n frame-relay cir out 96000\n", SHAPING, "96 kb/s", "48 kb/s"),
        ("", SHAPING, "56 kb/s", "28 kb/s"),
        (" frame-relay cir 512000\n", "", "line", "line"),
    ],
)
def test_frame_relay_cir_is_the_line_rate_of_a_shaped_circuit(lines: str, shaping: str, line: str, base: str) -> None:
    (found,) = answer_policy(CIRCUIT.format(lines=lines, shaping=shaping)).policies
    assert (str(found.line), str(found.base)) == (line, base)
    assert str(found.classes[0].guaranteed) == str(found.base.multiplied_by(0.25))


def test_circuit_is_tried_at_its_cir() -> None:
    lines = " frame-relay cir 512000\n"
    edge = find_edge(read_configuration(CIRCUIT.format(lines=lines, shaping=SHAPING)), None, None)
    assert any("refer to the CIR of 512 kb/s here, but to 256 kb/s" in each for each in edge.notes)
    with pytest.raises(UserError, match="found no line rate"):
        find_edge(read_configuration(CIRCUIT.format(lines=lines, shaping="")), None, None)


def test_ports_of_an_interface_range_have_the_line_of_their_policy() -> None:
    ports = "GigabitEthernet0/0/0 - 2"
    text = f"version 17.3\npolicy-map P\n class class-default\n  police 1000000\ninterface range {ports}\n"
    found = answer_policy(f"{text} service-policy output P\n").policies
    assert [each.number for each in found] == [6, 6, 6]


def test_interface_of_a_kind_that_is_not_modelled_refuses_the_same_policies() -> None:
    policy = "policy-map P\n class class-default\n  shape average 1000000 account user-defined 24\n"
    text = f"version 17.3\n{policy}  bandwidth remaining ratio 5\n"
    ports = ("GigabitEthernet0/0/0", "Port-channel1", "Tunnel1")
    for port in ports:
        text += f"interface {port}\n service-policy output P\n"
    found = answer_policy(text).policies
    assert {each.interface for each in found} == set(ports)
    assert all("Overhead accounting has to be the same" in each.refused for each in found)


def test_vlan_of_a_bundle_with_a_primary_port_has_its_rate() -> None:
    text = (
        "version 17.3\npolicy-map P\n class class-default\n  shape average 10000000\n"
        "interface Port-channel1.100\n encapsulation dot1Q 100 primary TenGigabitEthernet0/0/0 secondary Te0/0/1\n"
        " service-policy output P\ninterface Port-channel1.200\n encapsulation dot1Q 200\n service-policy output P\n"
        + "".join(f"interface TenGigabitEthernet0/0/{n}\n channel-group 1 mode active\n" for n in range(2))
    )
    found = {each.interface: each for each in answer_policy(text).policies}
    assert str(found["Port-channel1.100"].line) == "10 Gb/s"
    assert found["Port-channel1.100"].line_source == "primary port TenGigabitEthernet0/0/0"
    assert str(found["Port-channel1.200"].line) == "20 Gb/s"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bandwidth 200000001", "the command does not accept the value 200000001, expected 1 to 200000000"),
        ("mtu 9100", "all lines accept packets of up to 1500 bytes"),
        ("mtu 9999", "the command does not accept the value 9999"),
    ],
)
def test_refused_values_of_an_interface_are_listed(line: str, reason: str) -> None:
    text = "version 17.3\npolicy-map P\n class class-default\n  police 1000000\ninterface TenGigabitEthernet0/0/0\n"
    (found,) = answer_policy(f"{text} {line}\n service-policy output P\n").ignored
    assert (found.text, found.reason) == (line, reason)


def test_word_that_a_command_does_not_accept_is_named() -> None:
    text = "version 17.3\npolicy-map P\n class class-default\n  shape average 4500000 account dot1q pppoe\n"
    (found,) = answer_policy(text).ignored
    assert found.reason == "the command does not accept `pppoe`"


def test_audio_that_is_matched_by_its_port_alone_is_listed() -> None:
    text = "version 17.3\nclass-map V\n match protocol rtp audio\npolicy-map P\n class V\n  bandwidth 100\n"
    (found,) = answer_policy(text).ignored
    assert found.reason == "decided by the UDP port alone, 16384 to 32767, and not by the payload"
