"""The process of the access proxies: `python -m qoslab.run.real.access.proxy_process`.

It reads requests from standard input, one JSON object a line:

    {"access_methods": {"R1": {…}}, "passwords": {"R1": "…"}, "transcripts": "…"}    first; `ProxySettings`
    -> {"host_key": "ssh-ed25519 AAAA…", "ports": {"R1": 40123}}           once all proxies listen
    {"id": 1, "op": "open", "device": "R1"} -> {"id": 1, "ok": true, "round_trip_s": 0.002}
                                               logged in, for the next client; how long the way there and back is
                                            -> {"id": 1, "ok": false, "trouble": {"kind", "message", "hint"}}
    {"id": 2, "op": "ask", "device": "R1", "lines": ["show clock"]} -> {"id": 2, "ok": true, "answers": ["…"]}
    -> {"device": "R1", "trouble": {…}}                                    unasked: a client could not be let in

It ends when its input does. Secrets are in its memory only: not on its command line, not in its environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from hmac import compare_digest
from pathlib import Path
from typing import Any

import asyncssh
from pydantic import TypeAdapter

from qoslab.results.redaction import Redaction
from qoslab.run.devices.login_failures import FailureKind
from qoslab.run.real.access.client_session import ClientSession
from qoslab.run.real.access.device_logins import LoginDevice
from qoslab.run.real.access.methods import USER, AccessError, AccessFailure, ProxySettings
from qoslab.system.peer import is_own_peer, open_own_listener

LISTEN = "127.0.0.1"
LOGIN_S = 30
"""Time limit of a login."""


class _ProxyClient(asyncssh.SSHServer):
    """Client of a device's proxy."""

    def __init__(self, password: str) -> None:
        self._password = password

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        # An address of the loopback interface has no owner; the connection has.
        if not is_own_peer(conn.get_extra_info("socket")):
            conn.abort()

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return username == USER and compare_digest(password.encode(), self._password.encode())


class ProxyServer:
    """Server of all proxies."""

    def __init__(self, settings: ProxySettings, replies: Any) -> None:
        self._settings = settings
        self._replies = replies
        self._redaction = Redaction(secret for way in settings.access_methods.values() for secret in way.secrets)
        self._redaction.know(*settings.passwords.values())
        folder = None if settings.transcripts is None else Path(settings.transcripts)
        self._devices = {
            name: LoginDevice(name, way, folder, self._redaction) for name, way in settings.access_methods.items()
        }
        self._tasks: set[asyncio.Task[None]] = set()
        self._acceptors: list[asyncssh.SSHAcceptor] = []

    async def serve(self) -> None:
        """Serve until the input ends."""
        key = asyncssh.generate_private_key("ssh-ed25519", comment="qoslab proxy")
        ports = {}
        for device in self._devices.values():
            acceptor = await self._listen(device, key)
            self._acceptors.append(acceptor)
            ports[device.name] = acceptor.get_port()
        self._send_message({"host_key": key.export_public_key().decode().strip(), "ports": ports})
        reader = asyncio.StreamReader(limit=2**20)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self._start(self._handle_request(json.loads(line)))
        for acceptor in self._acceptors:
            acceptor.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(device.close() for device in self._devices.values()), return_exceptions=True)

    async def _listen(self, device: LoginDevice, key: asyncssh.SSHKey) -> asyncssh.SSHAcceptor:
        password = self._settings.passwords[device.name]

        async def visit(process: asyncssh.SSHServerProcess[bytes]) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._visit(device, process)
            finally:
                self._tasks.discard(task)

        return await asyncssh.create_server(
            lambda: _ProxyClient(password),
            sock=open_own_listener(LISTEN, 0),
            server_host_keys=[key],
            process_factory=visit,
            public_key_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            login_timeout=LOGIN_S,
            line_editor=False,
            encoding=None,
        )

    async def _visit(self, device: LoginDevice, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Connect a client: after the prompt, it communicates with the device directly."""

        def tell(trouble: AccessFailure) -> None:
            self._send_message({"device": device.name, "trouble": self._failure_entry(trouble)})

        await ClientSession(device, process, tell).run()

    async def _handle_request(self, request: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"id": request["id"], "ok": True}
        try:
            device = self._devices[request["device"]]
            if request["op"] == "ask":
                reply["answers"] = await device.ask(request["lines"])
            else:
                held = await device.lend()
                reply["round_trip_s"] = held.login.round_trip_s
        except AccessError as error:
            reply |= {"ok": False, "trouble": self._failure_entry(error.trouble)}
        except Exception as error:
            # The requester needs a reply, also after an error.
            trouble = AccessFailure(FailureKind.DEFECT, f"{type(error).__name__}: {error}")
            reply |= {"ok": False, "trouble": self._failure_entry(trouble)}
        self._send_message(reply)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _failure_entry(self, trouble: AccessFailure) -> dict[str, Any]:
        return asdict(trouble) | {"message": self._redaction.mask(trouble.message)}

    def _send_message(self, message: dict[str, Any]) -> None:
        self._replies.write(json.dumps(message) + "\n")
        self._replies.flush()


def main() -> None:
    """Serve standard input; other output of libraries goes to standard error."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Read byte by byte: data after the first line is for the event loop.
    first = b""
    while not first.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return
        first += byte
    asyncio.run(ProxyServer(TypeAdapter(ProxySettings).validate_json(first), replies).serve())


if __name__ == "__main__":
    main()
