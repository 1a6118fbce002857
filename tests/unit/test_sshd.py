"""SSH port of a virtual router, for clients that do not log in."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import asyncssh
import pytest
from fake_device import USER, FakeDevice

from qoslab.virtual_lab import sshd

SOON_S = 20
"""Time until a silent client is disconnected, also on a busy machine; the port waits for one second only."""


def test_login_allows_three_attempts(tmp_path: Path) -> None:
    class Guesser(asyncssh.SSHClient):
        def password_auth_requested(self) -> str:
            return "a guess"

    async def guess(port: int) -> None:
        with pytest.raises(asyncssh.PermissionDenied):
            await asyncssh.connect(
                *("127.0.0.1", port), username=USER, known_hosts=None, client_keys=(), client_factory=Guesser
            )

    with FakeDevice(tmp_path) as device:
        asyncio.run(asyncio.wait_for(guess(device.ssh), SOON_S))
        assert device.asked == 3 == sshd.TRIES


def test_client_without_login_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshd, "LOGIN_S", 1)
    with FakeDevice(tmp_path) as device, socket.create_connection(("127.0.0.1", device.ssh), SOON_S) as client:
        text = b""
        while data := client.recv(4096):
            text += data
        assert text.startswith(b"SSH-2.0-")
