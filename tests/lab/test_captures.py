"""Captures at hosts of a lab: they have every packet, including the last."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from qoslab.capture.packet_tables import read_packets
from qoslab.model.experiment import CapturePoint
from qoslab.run.cell.captures import start_capture
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.virtual_lab import Lab

pytestmark = pytest.mark.lab

PACKETS = 5
SEND = f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for _ in range({PACKETS}):
        s.sendto(bytes(100), ("10.1.0.2", 9))
"""


def test_capture_includes_packets_sent_just_before_it_stops(lab: Lab, tmp_path: Path) -> None:
    point = CapturePoint(name="server", node="server", interface="eth0", filter="udp port 9")
    file = tmp_path / "server.pcapng"
    capture = start_capture(VirtualLab(lab), point, file, "")
    try:
        capture.wait_running()
        lab.run("client", ["python3", "-c", SEND], check=True)
        found = capture.stop(time.monotonic())
    finally:
        capture.kill()
    assert (sum(map(len, read_packets(file))), found.received, found.dropped) == (PACKETS, PACKETS, 0)
