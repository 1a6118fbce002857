"""SSH port of a virtual IOS router."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from qoslab.ios.environment import RouterEnvironment
from qoslab.ios.shell import Shell
from qoslab.system.peer import is_own_peer, open_own_listener

IDENTIFICATION = "Cisco-1.25"
LOGIN_S = 30
"""Time limit of a login in seconds (LoginGraceTime of sshd_config(5))."""
LAST_WORDS_S = 30
"""Time limit for a client to read the last output, in seconds."""
TRIES = 3
"""Number of password attempts, as in IOS (`ip ssh authentication-retries`)."""
MAX_STARTUPS = 100
"""Limit of connections without a login (like MaxStartups of sshd_config(5)); above it, the oldest is closed."""

Judge = Callable[[str, str], int | None]
"""Function that returns the privilege of a user with this password; None if invalid."""
Log = Callable[[str], None]
PendingConnections = MutableMapping[Any, asyncssh.SSHServerConnection]
"""Connections without a login, the oldest first."""


@dataclass(frozen=True, slots=True)
class Algorithms:
    """Algorithms that an SSH server offers."""

    key_exchanges: tuple[str, ...]
    ciphers: tuple[str, ...]
    macs: tuple[str, ...]
    host_key: str
    signatures: tuple[str, ...] = ()
    """Signatures of the host key; empty: all that the key supports."""


ALGORITHMS = {
    # Algorithms of current clients.
    "modern": Algorithms(
        key_exchanges=(
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "ecdh-sha2-nistp256",
            "diffie-hellman-group14-sha256",
            "diffie-hellman-group16-sha512",
        ),
        ciphers=("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr"),
        macs=("hmac-sha2-256", "hmac-sha2-512", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"),
        host_key="ssh-ed25519",
    ),
    # Algorithms of IOS 12.4 and 12.2SE [R], which current clients refuse by default.
    "old": Algorithms(
        key_exchanges=("diffie-hellman-group14-sha1", "diffie-hellman-group1-sha1"),
        ciphers=("aes128-cbc", "3des-cbc", "aes192-cbc", "aes256-cbc"),
        macs=("hmac-sha1", "hmac-md5"),
        host_key="ssh-rsa",
        signatures=("ssh-rsa",),
    ),
}


class SshPort:
    """SSH port of one router."""

    def __init__(self, router: RouterEnvironment, judge: Judge, starting: PendingConnections, log: Log) -> None:
        """`starting` may be shared by several routers; `log` receives defects."""
        self._router = router
        self._judge = judge
        self._starting = starting
        self._log = log
        self._logins: set[_LoginSession] = set()

    async def listen(self, address: str, port: int, offered: Algorithms, key: asyncssh.SSHKey) -> asyncssh.SSHAcceptor:
        """Listen for logins; port 0 is any free port."""
        return await asyncssh.create_server(
            lambda: _SshConnection(self._router, self._judge, self._logins, self._starting, self._log),
            sock=open_own_listener(address, port),
            server_host_keys=[key],
            server_version=IDENTIFICATION,
            kex_algs=offered.key_exchanges,
            encryption_algs=offered.ciphers,
            mac_algs=offered.macs,
            public_key_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            login_timeout=LOGIN_S,
            line_editor=False,
            errors="replace",
        )

    def end(self) -> None:
        """Close all connections."""
        for login in list(self._logins):
            login.end()


def lab_host_key(path: Path, age: str) -> asyncssh.SSHKey:
    """Return the lab's host key for routers of that age; created on first use, and kept over a restart."""
    offered = ALGORITHMS[age]
    if age != "modern":
        path = path.with_name(f"{path.name}_{age}")
    if path.exists():
        key = asyncssh.read_private_key(path)
    else:
        key = asyncssh.generate_private_key(offered.host_key, comment="qoslab")
        path.touch(mode=0o600)
        path.write_bytes(key.export_private_key())
    if offered.signatures:
        key.sig_algorithms = tuple(name.encode() for name in offered.signatures)
    return key


class _LoginSession(asyncssh.SSHServerSession[str]):
    """SSH session channel."""

    def __init__(self, router: RouterEnvironment, privilege: int, logins: set[_LoginSession], log: Log) -> None:
        self._router = router
        self._log = log
        self._privilege = privilege
        self._logins = logins
        self._channel: asyncssh.SSHServerChannel[str] | None = None
        self._shell: Shell | None = None
        self._command: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading_on: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, chan: asyncssh.SSHServerChannel[str]) -> None:
        self._channel = chan

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Any) -> bool:
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def session_started(self) -> None:
        assert self._channel is not None
        self._shell = Shell(self._router, self._write, privilege=self._privilege)
        self._logins.add(self)
        self._task = asyncio.create_task(self._serve(self._shell, self._channel))

    def _write(self, text: str) -> None:
        assert self._channel is not None
        # The client may be gone while a command still writes output.
        with contextlib.suppress(OSError):
            self._channel.write(text)

    async def _serve(self, shell: Shell, channel: asyncssh.SSHServerChannel[str]) -> None:
        try:
            await (shell.run() if self._command is None else shell.run_once(self._command))
        except Exception:
            # A defect of qoslab: the login ends, the router and the other logins continue.
            self._log(f"{self._router.device.hostname}: a login ended by an internal error\n{traceback.format_exc()}")
            self._write("\r\n% Internal error; the router's log has the details\r\n")
        finally:
            self._logins.discard(self)
            read = await self._is_read()
            with contextlib.suppress(OSError):
                channel.exit(0)
            if not read:
                channel.abort()

    async def _is_read(self) -> bool:
        """Return whether the client reads the remaining output."""
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self._room.wait()
        except TimeoutError:
            return False
        return True

    def data_received(self, data: str, datatype: asyncssh.DataType) -> None:
        if self._shell is not None:
            self._shell.feed(data)
            if self._shell.terminal.is_input_full and self._reading_on is None:
                assert self._channel is not None
                self._channel.pause_reading()
                self._reading_on = asyncio.create_task(self._resume_reading(self._shell, self._channel))

    async def _resume_reading(self, shell: Shell, channel: asyncssh.SSHServerChannel[str]) -> None:
        await shell.terminal.wait_until_read()
        self._reading_on = None
        channel.resume_reading()

    def pause_writing(self) -> None:
        self._room.clear()
        if self._shell is not None:
            self._shell.terminal.pause_reading()

    def resume_writing(self) -> None:
        self._room.set()
        if self._shell is not None:
            self._shell.terminal.resume_output()

    def break_received(self, msec: int) -> bool:
        return True

    def eof_received(self) -> bool:
        if self._shell is not None:
            self._shell.end_input()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.set()
        self._logins.discard(self)
        if self._shell is not None:
            self._shell.hang_up()

    def end(self) -> None:
        """Close the session."""
        if self._shell is not None:
            self._shell.hang_up()


class _SshConnection(asyncssh.SSHServer):
    """SSH connection: checks the password and opens logins."""

    def __init__(
        self,
        router: RouterEnvironment,
        judge: Judge,
        logins: set[_LoginSession],
        starting: PendingConnections,
        log: Log,
    ) -> None:
        self._router = router
        self._judge = judge
        self._logins = logins
        self._starting = starting
        self._log = log
        self._privilege: int | None = None
        self._tries = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        # An address of the loopback interface has no owner, but the connection has one.
        if not is_own_peer(conn.get_extra_info("socket")):
            conn.abort()
            return
        self._starting[self] = conn
        if len(self._starting) > MAX_STARTUPS:
            self._starting.pop(next(iter(self._starting))).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._starting.pop(self, None)

    def auth_completed(self) -> None:
        self._starting.pop(self, None)

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self._privilege = self._judge(username, password)
        self._tries += 1
        if self._privilege is None and self._tries >= TRIES:
            raise asyncssh.PermissionDenied("too many tries")
        return self._privilege is not None

    def session_requested(self) -> _LoginSession:
        assert self._privilege is not None
        return _LoginSession(self._router, self._privilege, self._logins, self._log)
