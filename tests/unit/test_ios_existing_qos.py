"""Existing lines of an interface that limit or queue packets in addition to the experiment's configuration."""

from __future__ import annotations

import pytest

from qoslab.ios.device_config.existing_qos import existing_queueing
from qoslab.ios.model.device import Hardware

HARDWARE = Hardware("2811", ("FastEthernet0/0", "Serial0/1/0"))
PLACE = "interface Serial0/1/0\n"
LIST = "queue-list 3 protocol ip 1\n"
RATE = "rate-limit output 64000 8000 8000 conform-action transmit exceed-action drop"
SHAPE = "traffic-shape rate 64000 8000 8000"


@pytest.mark.parametrize(
    ("own", "asked", "found"),
    [
        (f" {RATE}\n", "", [RATE]),
        (f" {RATE}\n", f"{PLACE} {RATE}\n", []),
        (f" {RATE}\n", f"{PLACE} no {RATE}\n", []),
        (" custom-queue-list 3\n", "", ["custom-queue-list 3"]),
        (" custom-queue-list 3\n", f"{PLACE} no custom-queue-list\n", []),
        (" priority-group 2\n", "", ["priority-group 2"]),
        (" random-detect\n", "", ["random-detect"]),
        (" fair-queue 64 256 0\n", f"{PLACE} tx-ring-limit 3\n", ["fair-queue 64 256 0"]),
        (" fair-queue 64 256 0\n", f"{PLACE} fair-queue 128 256 0\n", []),
        (" rate-limit output nobody reads\n", "", ["rate-limit output nobody reads"]),
        (" rate-limit output nobody reads\n", f"{PLACE} rate-limit output nobody reads\n", []),
        (" service-policy type performance-monitor input Some\n", "", []),
        (" description fair-queue\n ip address 10.0.0.1 255.255.255.0\n tx-ring-limit 3\n", "", []),
    ],
)
def test_existing_active_qos_is_reported(own: str, asked: str, found: list[str]) -> None:
    before = f"{LIST}priority-list 2 protocol ip high\ninterface FastEthernet0/0\n {RATE}\n{PLACE}{own}"
    assert existing_queueing(before, asked, "Serial0/1/0", HARDWARE) == found


def test_existing_shaping_and_policies_are_reported() -> None:
    (found,) = existing_queueing(f"{PLACE} {SHAPE}\n", "", "Serial0/1/0", HARDWARE)
    assert found.startswith(SHAPE)
    policy = "policy-map Own\n class class-default\n  fair-queue\n"
    before = f"{policy}{PLACE} service-policy output Own\n"
    assert existing_queueing(before, "", "Serial0/1/0", HARDWARE) == ["service-policy output Own"]
    assert existing_queueing(before, f"{PLACE} no service-policy output Own\n", "Serial0/1/0", HARDWARE) == []
