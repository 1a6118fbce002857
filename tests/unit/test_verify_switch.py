"""Output of a switch against the requested configuration."""

from __future__ import annotations

import pytest
from fake_router import FakeRouter, type_lines

from qoslab.ios.parse import apply_config
from qoslab.verification.switch import PARSERS, switch_differences

ASKED = """\
mls qos map policed-dscp 46 to 0
mls qos map dscp-mutation Campus 46 to 40
mls qos srr-queue input bandwidth 3 5
mls qos srr-queue output dscp-map queue 2 threshold 3 48 49
mls qos queue-set output 2 threshold 1 400 400 100 400
mls qos queue-set output 2 buffers 30 50 10 10
no mls qos rewrite ip dscp
mls qos
policy-map Marked
 class class-default
  set dscp af11
interface GigabitEthernet1/0/1
 mls qos trust dscp
 mls qos dscp-mutation Campus
interface GigabitEthernet1/0/2
 service-policy input Marked
interface GigabitEthernet1/0/15
 srr-queue bandwidth share 30 70 1 1
 srr-queue bandwidth shape  0  0  0  0
 srr-queue bandwidth limit 70
 queue-set 2
 priority-queue out
"""
ELSEWHERE = "interface GigabitEthernet1/0/9\n mls qos trust cos\n srr-queue bandwidth limit 50\n"


def answers(configuration: str) -> dict[str, str]:
    router = FakeRouter("3750G")
    apply_config(router.device, configuration)
    printed = {each: type_lines(router, f"terminal length 0\n{each}\n") for each in PARSERS}
    return {each: text.partition(f"{each}\n")[2].rpartition("R1#")[0] for each, text in printed.items()}


def test_switch_output_as_requested_verifies() -> None:
    assert switch_differences(ASKED, answers(ASKED + ELSEWHERE), "3750G") == []
    assert switch_differences("", answers(ASKED), "3750G") == []


@pytest.mark.parametrize(
    ("undone", "found"),
    [
        ("no mls qos", "mls qos: found False, expected True"),
        ("mls qos rewrite ip dscp", "mls qos rewrite ip dscp: found True, expected False"),
        ("no mls qos map policed-dscp", "map policed-dscp, 46: found 46, expected 0"),
        ("no mls qos map dscp-mutation Campus", "map dscp-mutation Campus, 46: found nothing, expected 40"),
        ("no mls qos srr-queue input bandwidth", "input queue 1 bandwidth: found 4, expected 3"),
        (
            "no mls qos srr-queue output dscp-map",
            "map dscp-output-q, 48: found {'queue': 4, 'threshold': 1}, expected {'queue': 2, 'threshold': 3}",
        ),
        ("no mls qos queue-set output 2 buffers", "queue-set 2 queue 1 buffers: found 25, expected 30"),
        ("no mls qos queue-set output 2 threshold 1", "queue-set 2 queue 1 threshold1: found 100, expected 400"),
        (
            "interface gi1/0/1\nno mls qos trust",
            "GigabitEthernet1/0/1 trust mode: found not trusted, expected trust dscp",
        ),
        (
            "interface gi1/0/1\nno mls qos dscp-mutation",
            "GigabitEthernet1/0/1 DSCP mutation map: found Default DSCP Mutation Map, expected Campus",
        ),
        (
            "interface gi1/0/2\nno service-policy input Marked",
            "GigabitEthernet1/0/2 policy-map: found nothing, expected Marked",
        ),
        (
            "interface gi1/0/15\nsrr-queue bandwidth share 1 1 1 1",
            "GigabitEthernet1/0/15 share: found [1, 1, 1, 1], expected [30, 70, 1, 1]",
        ),
        ("interface gi1/0/15\nsrr-queue bandwidth limit 80", "GigabitEthernet1/0/15 limit: found 80, expected 70"),
        ("interface gi1/0/15\nqueue-set 1", "GigabitEthernet1/0/15 queue-set: found 1, expected 2"),
        (
            "interface gi1/0/15\nno priority-queue out",
            "GigabitEthernet1/0/15 priority-queue: found False, expected True",
        ),
    ],
)
def test_differences_of_the_switch_are_reported(undone: str, found: str) -> None:
    assert switch_differences(ASKED, answers(ASKED + undone), "3750G")[0] == found
