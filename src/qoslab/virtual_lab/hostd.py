"""SSH server for all hosts of an exposed lab: `python -m qoslab.virtual_lab.hostd SPEC`.

SPEC is a JSON file:

    {"format": 1,
     "listen": "127.0.0.1",                       address of the SSH ports
     "authorized": "ssh-ed25519 AAAA…",           public key that is accepted, for any user
     "ready": "/run/qoslab/hostd/ready.json",     written once all hosts listen
     "hosts": {"client": "/proc/1/fd/7"}}         the network namespace of each host

The ready file: `{"format": 1, "hosts": {"client": {"port": 40022, "host_key": "ssh-ed25519 AAAA…"}}}`; each host has
its own key. The process ends on SIGTERM and SIGINT.

A command runs in the host's namespace as the lab's root, without a terminal, in its own session. Its exit status or
signal is returned, and signals of the client reach it. As with OpenSSH's sshd, it continues when the connection is
lost: its input ends then, and its output is discarded. SSH_CONNECTION has the address of the client. Only the user of
this process can use the ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import asyncssh

from qoslab.errors import ExitStatus, UserError
from qoslab.system.peer import is_own_peer, open_own_listener

SPEC_FORMAT = 1
LOGIN_S = 30
"""Time limit of a login in seconds (LoginGraceTime of sshd_config(5))."""
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class HostSpec:
    """Specification of the process."""

    listen: str
    authorized: str
    ready: Path
    hosts: Mapping[str, str]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file. Raise `UserError` if it is not in the documented form."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != SPEC_FORMAT:
                raise UserError(f"{path}: format {data['format']!r}, expected {SPEC_FORMAT}")
            return cls(data["listen"], data["authorized"], Path(data["ready"]), dict(data["hosts"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}: not a specification of hosts: {type(error).__name__}: {error}") from error


class _CommandSession(asyncssh.SSHServerSession[bytes]):
    """Command, or shell, on a host."""

    def __init__(self, namespace: str, connection: str) -> None:
        """`connection` is the value of SSH_CONNECTION for the command."""
        self._namespace = namespace
        self._connection = connection
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._argv = ["/bin/sh"]
        self._process: Process | None = None
        self._input: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._argv = ["/bin/sh", "-c", command]
        return True

    def session_started(self) -> None:
        self._task = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        assert self._channel is not None
        self._process = process = await asyncio.create_subprocess_exec(
            *("nsenter", f"--net={self._namespace}", "--", *self._argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "SSH_CONNECTION": self._connection},
        )
        feeding = asyncio.create_task(self._feed(process))
        assert process.stdout is not None and process.stderr is not None
        await asyncio.gather(self._forward_output(process.stdout, None), self._forward_output(process.stderr, 1))
        status = await process.wait()
        feeding.cancel()
        with contextlib.suppress(OSError):
            if status < 0:
                self._channel.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
            else:
                self._channel.exit(status)

    async def _feed(self, process: Process) -> None:
        """Forward input of the client to the command, as fast as it reads."""
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            while (data := await self._input.get()) is not None:
                process.stdin.write(data)
                await process.stdin.drain()
        process.stdin.close()

    async def _forward_output(self, stream: asyncio.StreamReader, kind: int | None) -> None:
        assert self._channel is not None
        while data := await stream.read(CHUNK):
            await self._room.wait()
            # The client may be gone while the command still writes output.
            with contextlib.suppress(OSError):
                self._channel.write(data, kind)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._input.put_nowait(data)

    def eof_received(self) -> bool:
        self._input.put_nowait(None)
        return True  # The command may have more output.

    def signal_received(self, signal: str) -> None:
        number = getattr(_signals, "SIG" + signal, None)
        if self._process is not None and number is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._input.put_nowait(None)
        self._room.set()


_signals = signal
"""Module `signal`, for methods with an argument of that name."""


class _SshConnection(asyncssh.SSHServer):
    """One SSH connection."""

    def __init__(self, namespace: str, authorized: asyncssh.SSHKey) -> None:
        self._namespace = namespace
        self._authorized = authorized
        self._connection = ""

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        # An address of the loopback interface has no owner, but the connection has one.
        if not is_own_peer(conn.get_extra_info("socket")):
            conn.abort()
        ends = (conn.get_extra_info("peername"), conn.get_extra_info("sockname"))
        self._connection = " ".join(f"{address} {port}" for address, port, *_ in ends)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key == self._authorized

    def session_requested(self) -> _CommandSession:
        return _CommandSession(self._namespace, self._connection)


async def _listen(spec: HostSpec, namespace: str) -> tuple[asyncssh.SSHAcceptor, str]:
    """Listen for logins to a host; return its public key."""
    authorized = asyncssh.import_public_key(spec.authorized)
    key = asyncssh.generate_private_key("ssh-ed25519", comment="qoslab")
    acceptor = await asyncssh.create_server(
        lambda: _SshConnection(namespace, authorized),
        sock=open_own_listener(spec.listen, 0),
        server_host_keys=[key],
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_host=None,
        login_timeout=LOGIN_S,
        encoding=None,
    )
    return acceptor, key.export_public_key().decode().strip()


async def serve(spec: HostSpec) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    acceptors, hosts = [], {}
    for name, namespace in spec.hosts.items():
        acceptor, public_key = await _listen(spec, namespace)
        acceptors.append(acceptor)
        hosts[name] = {"port": acceptor.get_port(), "host_key": public_key}
    fresh = spec.ready.with_name(spec.ready.name + ".new")
    fresh.write_text(json.dumps({"format": SPEC_FORMAT, "hosts": hosts}) + "\n", encoding="utf-8")
    fresh.replace(spec.ready)
    await stop.wait()
    for acceptor in acceptors:
        acceptor.close()


def main(arguments: list[str]) -> int:
    """Run the daemon."""
    if len(arguments) != 1:
        print("usage: python -m qoslab.virtual_lab.hostd SPEC", file=sys.stderr)
        return ExitStatus.USER_MISTAKE
    # Error messages of commands on hosts must not be in the language of this machine's user, since programs read them.
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    try:
        asyncio.run(serve(HostSpec.load(Path(arguments[0]))))
    except UserError as error:
        print(f"hostd: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
