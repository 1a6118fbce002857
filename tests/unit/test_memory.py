"""Sizes of queues and links are counted before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hostile_files import BASE
from qoslab.cli import main
from qoslab.errors import ExperimentError
from qoslab.ios.parse import parse_config
from qoslab.platforms import MODELS
from qoslab.schema import load_experiment
from qoslab.schema.memory import FRAME, MAX_BYTES, bytes_in_flight, queued_bytes

CLASSES = """\
policy-map Child
 class class-default
  fair-queue 64
  queue-limit 400
policy-map Parent
 class class-default
  shape average 1000000
  service-policy Child
interface FastEthernet0/1
 hold-queue 200 out
 service-policy output Parent
"""


def held_bytes(text: str) -> int:
    return queued_bytes(parse_config(text, MODELS["3725"].hardware("hqf"), source="R1.ios")) // FRAME


def test_queues_count_waiting_packets() -> None:
    before = held_bytes("")
    # 64 queues of a fourth of 400 in the child; the parent passes packets on, and the interface holds 200 instead of
    # 1000.
    assert held_bytes(CLASSES) - before == 64 * 100 + 200 - 1000
    assert held_bytes(CLASSES.replace("  fair-queue 64\n", "  bandwidth 500\n")) - before == 400 + 200 - 1000
    assert held_bytes(CLASSES.replace(" service-policy output Parent\n", "")) - before == 200 - 1000


@pytest.mark.parametrize(
    ("limit", "packets"),
    # A frame of 24 bytes is held in as much memory as the largest one. The shaper above has 1 Mb/s.
    [("24000 bytes", 1000 + 1), ("300 ms", 37_500 // 24 + 1), ("9 packets", 9), ("dscp ef 9", 64)],
)
def test_queues_in_bytes_are_counted_by_the_shortest_packets(limit: str, packets: int) -> None:
    text = CLASSES.replace("  fair-queue 64\n", "").replace("queue-limit 400", f"queue-limit {limit}")
    assert held_bytes(text) - held_bytes("") == packets + 200 - 1000


def test_limits_in_microseconds_depend_on_the_rate() -> None:
    def memory_with(limit: str) -> int:
        text = f"policy-map P\n class class-default\n  bandwidth 1000\n  queue-limit {limit}\n"
        text += "interface GigabitEthernet0/0/0\n service-policy output P\n"
        return queued_bytes(parse_config(text, MODELS["ISR4451"].hardware("ios-xe"), source="R1.ios"))

    assert memory_with("3000 us") == memory_with("3 ms")


@pytest.mark.parametrize(
    ("lines", "limit_bytes"),
    [
        ("bandwidth 400000", 1_000_000),
        ("bandwidth percent 20", 500_000),
        ("shape average percent 40", 1_000_000),
        ("shape average 600000000", 1_500_000),
        ("bandwidth remaining ratio 3", 2_500_000),
    ],
)
def test_limits_in_milliseconds_refer_to_the_rate_of_the_class(lines: str, limit_bytes: int) -> None:
    text = (
        f"class-map A\n match dscp 1\npolicy-map C\n class A\n  {lines}\n  queue-limit 20 ms\npolicy-map P\n"
        " class class-default\n  shape average 1000000000\n  service-policy C\n"
    )

    def memory_with(attached: str) -> int:
        port = f"interface GigabitEthernet0/0/0\n{attached}"
        return queued_bytes(parse_config(text + port, MODELS["ISR4451"].hardware("ios-xe"), source="R1.ios")) // FRAME

    assert memory_with(" service-policy output P\n") - memory_with("") == limit_bytes // 24 + 1


def experiment(folder: Path, text: str, template: str = "") -> Path:
    (folder / "t.j2").write_text(template)
    (folder / "e.yml").write_text(text)
    return folder / "e.yml"


def test_unbounded_queues_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BASE.replace('model: "3725"', 'model: "3725", generation: hqf').replace(
        "- name: one", "- {name: one, configure: {R1: {template: t.j2}}}"
    )
    assert main(["validate", str(experiment(tmp_path, text, CLASSES))]) == 0
    large = CLASSES.replace("fair-queue 64", "fair-queue 4096").replace("queue-limit 400", "queue-limit 4096")
    assert main(["validate", str(experiment(tmp_path, text, large))]) == 2
    output = capsys.readouterr().err
    assert re.search(
        r"e\.yml:6:\d+: topology\.nodes\.R1: found 63\d{8} bytes in all output queues of R1 in arm", output
    )
    assert f"bytes, expected at most {MAX_BYTES}" in output and "lower queue-limit" in output


def test_links_with_too_many_packets_in_flight_are_refused(tmp_path: Path) -> None:
    text = BASE.replace("rate: 100 Mb/s", "rate: 10 Gb/s\n      delay: 200 ms", 1)
    (lan, wan) = load_experiment(experiment(tmp_path, text)).topology.links
    assert (bytes_in_flight(lan), bytes_in_flight(wan)) == (2 * 250_000_000, 0)
    text = text.replace("rate: 10 Mb/s", "rate: 10 Gb/s\n      delay: 300 ms")
    with pytest.raises(ExperimentError) as caught:
        load_experiment(experiment(tmp_path, text))
    (finding,) = caught.value.findings
    assert finding.path == "topology.links.wan.delay"
    assert "found 750000000 bytes in transit on this link" in finding.message
    assert f"1250000000 with the links above, expected at most {MAX_BYTES}" in finding.message
