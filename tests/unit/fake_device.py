"""Device for tests of clients: the SSH and telnet ports of virtual routers, in front of a model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import asyncssh
from fake_router import FakeRouter

from qoslab.virtual_lab.sshd import ALGORITHMS, SshPort, lab_host_key
from qoslab.virtual_lab.telnetd import TelnetPort

USER, PASSWORD, ENABLE = "lab", "zebra-crossing-47", "opensesame"
JUMP_USER, JUMP_PASSWORD = "hopper", "grass-hopper-11"


class _Jump(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (JUMP_USER, JUMP_PASSWORD)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return True


class FakeDevice:
    """Device as a context manager. Logins have privilege level 1; the enable secret is `ENABLE`."""

    def __init__(self, folder: Path, age: str = "modern") -> None:
        self.router = FakeRouter()
        self.asked = 0
        """Tried passwords."""
        self._folder = folder
        self._age = age
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[Any] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Callable[[], Awaitable[None]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(10)  # type: ignore[arg-type]

    def judge(self, name: str, password: str) -> int | None:
        self.asked += 1
        return 1 if (name, password) == (USER, PASSWORD) else None

    async def _listen(self) -> None:
        key = lab_host_key(self._folder / "host_key", self._age)
        self._ssh_port = SshPort(self.router, self.judge, {}, print)
        self._telnet_port = TelnetPort(self.router, self.judge)
        ssh = await self._ssh_port.listen("127.0.0.1", 0, ALGORITHMS[self._age], key)
        telnet = await self._telnet_port.listen("127.0.0.1", 0)
        jump_key = asyncssh.generate_private_key("ssh-ed25519")
        jump = await asyncssh.create_server(_Jump, "127.0.0.1", 0, server_host_keys=[jump_key])
        self.telnet_listener = telnet.sockets[0]
        self.ssh, self.telnet, self.jump = ssh.get_port(), self.telnet_listener.getsockname()[1], jump.get_port()
        self.host_key = key.export_public_key().decode().strip()
        self.jump_key = jump_key.export_public_key().decode().strip()
        self._servers = [ssh, telnet, jump]

    async def _close(self) -> None:
        self._ssh_port.end()
        self._telnet_port.end()
        for server in self._servers:
            server.close()
        await asyncio.sleep(0.05)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
