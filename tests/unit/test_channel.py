"""Messages of hosts that no agent has sent."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest

from qoslab.errors import DeviceError
from qoslab.run.devices.ansible_inventory import HostAccess
from qoslab.run.real import channel as channel_module
from qoslab.run.real.channel import MAX_BODY_BYTES, AgentChannel, HostLostFault

READY = {"ready": True}


def message(head: object, body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return struct.pack("!II", len(text), len(body)) + text + body


def says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: bytes) -> None:
    """Make each host send `data` and stay connected until it is killed."""
    (tmp_path / "data").write_bytes(data)
    program = (
        "import sys, time\nsys.stdout.buffer.write(open(sys.argv[1], 'rb').read()); sys.stdout.flush()\ntime.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "data")]
    monkeypatch.setattr(channel_module, "ssh_command", lambda access: command)


@pytest.mark.parametrize(
    "data",
    [
        message([]),
        message("ready"),
        message(7),
        message({}),
        message({"id": []}),
        message({"file": 3}, b"x"),
        message({"output": [], "stream": "stdout"}),
        message({"output": 1}),
        message({"output": 1, "stream": "stdlog"}),
        message({"ended": 1}),
        message({"ended": 1, "status": "well"}),
        message({"began": 1, "at_ns": None}),
        message(READY) + message(READY),
        struct.pack("!II", 2**32 - 1, 0),
        struct.pack("!II", 2, MAX_BODY_BYTES + 1) + b"{}",
        struct.pack("!II", 100_000, 0) + b"[" * 100_000,
        b"Welcome to host1\n" * 3,
        b"".join(message({"output": 9, "stream": "stdout"}, bytes(1 << 20)) for _ in range(17)),
    ],
    ids=lambda data: repr(data[8:40]),
)
def test_host_with_a_malformed_message_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: bytes
) -> None:
    says(monkeypatch, tmp_path, data)
    with pytest.raises((DeviceError, HostLostFault)) as raised:
        channel = AgentChannel("host1", HostAccess(host="host1"), "somebody")
        try:
            channel.ask("clock")
        finally:
            channel.close()
    assert "its output is not the agent's output" in str(raised.value)


def test_host_that_does_not_read_is_abandoned_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    says(monkeypatch, tmp_path, b"")
    monkeypatch.setattr(channel_module, "START_S", 0.5)
    with pytest.raises(DeviceError, match="no answer within"):
        AgentChannel("host1", HostAccess(host="host1"), "somebody")
