"""Connections to devices: SSH or telnet, both also through a jump host."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Protocol

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from qoslab.run.devices.login_failures import FailureKind
from qoslab.run.devices.old_ssh import OLD, OLD_CIPHERS, OLD_KEY_EXCHANGES, OLD_MACS
from qoslab.run.real.access.methods import SSH_PORT, TELNET_PORT, AccessError, AccessMethod, Hop
from qoslab.system.telnet import TelnetConnection

READ = 65536
DISCONNECT_ERRORS = (OSError, asyncssh.Error, asyncio.IncompleteReadError)
"""Errors of a broken connection."""

_REACH_HINT = "Check its address, port and access method."
_EXTENSION_MARKERS = ("ext-info-s", "kex-strict-s-v00@openssh.com")
"""Entries in the list of key exchanges that only announce an extension of the server."""
_USERS_FILE = Path("~/.ssh/known_hosts")


class DeviceLine(Protocol):
    """Connection to a device's command line."""

    async def read(self) -> bytes:
        """Return the next data of the device; empty when it has hung up."""

    async def write(self, data: bytes) -> None:
        """Send data; do nothing if the device has hung up, which `read` reports."""

    def close(self) -> None:
        """Hang up."""

    @property
    def is_closed(self) -> bool:
        """True if the device has already hung up."""


async def connect_device(way: AccessMethod) -> DeviceLine:
    """Connect, up to a command line or a question for a user. Raise `AccessError` if that fails."""
    try:
        async with asyncio.timeout(way.answer_s):
            jump = None if way.jump is None else await _connect_hop(way.jump)
            try:
                return await (_connect_by_ssh(way, jump) if way.protocol == "ssh" else _connect_by_telnet(way, jump))
            except BaseException:
                if jump is not None:
                    jump.close()
                raise
    except TimeoutError as error:
        message = f"{way.address_text} did not answer within {way.answer_s:g} s"
        raise AccessError(FailureKind.NO_ANSWER, message, "Check whether the device is up, or busy.") from error
    except asyncssh.HostKeyNotVerifiable as error:
        raise _key_failure(way) from error
    except (asyncssh.KeyExchangeFailed, asyncssh.ConnectionLost) as error:
        # Either end may detect it first, and a device just hangs up then.
        old_only = await _only_old_algorithms(way)
        if isinstance(error, asyncssh.ConnectionLost) and not old_only:
            raise AccessError(FailureKind.OUT_OF_REACH, f"{way.address_text}: {error}", _REACH_HINT) from error
        raise _algorithm_failure(way, old_only, str(error)) from error
    except asyncssh.PermissionDenied as error:
        message = f"{way.address_text} refused user {way.user!r}"
        raise AccessError(FailureKind.LOGIN_REFUSED, message, "Check user and password in the inventory.") from error
    except asyncssh.ChannelOpenError as error:
        hint = "Check whether the jump host may connect to it." if way.jump else "Check whether it has a free vty line."
        raise AccessError(FailureKind.OUT_OF_REACH, f"{way.address_text}: {error.reason}", hint) from error
    except (asyncssh.Error, OSError) as error:
        raise AccessError(
            FailureKind.OUT_OF_REACH, f"{way.address_text}: {error or type(error).__name__}", _REACH_HINT
        ) from error


# SSH


class _SshLine:
    def __init__(self, process: asyncssh.SSHClientProcess[bytes], connections: list[asyncssh.SSHClientConnection]):
        self._process = process
        self._connections = connections

    async def read(self) -> bytes:
        try:
            return await self._process.stdout.read(READ)
        except DISCONNECT_ERRORS:
            return b""

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(*DISCONNECT_ERRORS):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    def close(self) -> None:
        self._process.close()
        for connection in self._connections:
            connection.close()

    @property
    def is_closed(self) -> bool:
        return self._process.stdout.at_eof() or self._process.is_closing()


async def _connect_by_ssh(way: AccessMethod, jump: asyncssh.SSHClientConnection | None) -> DeviceLine:
    port = way.port or SSH_PORT
    keys = _load_keys(way)
    connection = await asyncssh.connect(
        way.host,
        port,
        tunnel=jump or (),
        config=None,
        username=way.user or (),
        password=way.password,
        known_hosts=_known_hosts(way) if way.check_host_key else None,
        kex_algs=_algorithm_choice(way, OLD_KEY_EXCHANGES, "diffie-hellman-group14-sha1,gss-group14-sha1"),
        encryption_algs=_algorithm_choice(way, OLD_CIPHERS, ""),
        mac_algs=_algorithm_choice(way, OLD_MACS, "hmac-sha1-etm@openssh.com"),
        server_host_key_algs=_host_key_algorithms(way, port),
        login_timeout=None,
        **keys,
    )
    process = await connection.create_process(term_type="vt100", encoding=None)
    return _SshLine(process, [connection, *([jump] if jump else [])])


def _load_keys(way: AccessMethod) -> dict[str, Any]:
    """Return the keys for asyncssh. Raise `AccessError` if the named key cannot be used."""
    if way.key is not None:
        try:
            return {"client_keys": [asyncssh.read_private_key(way.key)], "agent_path": None}
        except (OSError, ValueError) as error:
            hint = "Name one without a passphrase, or leave ansible_ssh_private_key_file out and give it to the agent."
            raise AccessError(
                FailureKind.LOGIN_REFUSED, f"{way.address_text}: the key {way.key} cannot be used: {error}", hint
            ) from error
    # With a password, only the password is tried: a device counts each unknown key as a failed login.
    return {} if way.password is None else {"client_keys": None, "agent_path": None}


async def _connect_hop(hop: Hop) -> asyncssh.SSHClientConnection:
    keys: dict[str, Any] = {} if hop.password is None else {"client_keys": None, "agent_path": None}
    try:
        return await asyncssh.connect(hop.host, hop.port, username=hop.user or (), password=hop.password, **keys)
    except asyncssh.PermissionDenied as error:
        message = f"the jump host {hop.host} refused user {hop.user!r}"
        raise AccessError(FailureKind.LOGIN_REFUSED, message, "Log in by hand with ssh to check the access.") from error
    except asyncssh.HostKeyNotVerifiable as error:
        message = f"the host key of the jump host {hop.host} is not in known_hosts, or differs"
        raise AccessError(FailureKind.KEY_UNKNOWN, message, "Log in once with ssh, and accept its key.") from error
    except (asyncssh.Error, OSError) as error:
        message = f"the jump host {hop.host} port {hop.port}: {error}"
        raise AccessError(FailureKind.OUT_OF_REACH, message, "Check its address and port.") from error


def _algorithm_choice(way: AccessMethod, old: tuple[str, ...], never: str) -> str | tuple[()]:
    """Return asyncssh's own choice of algorithms, with or without old ones."""
    if way.old_ssh:
        return "+" + ",".join(old)
    return f"-{never}" if never else ()


def _known_hosts(way: AccessMethod) -> asyncssh.SSHKnownHosts:
    if way.known_hosts is not None:
        return asyncssh.import_known_hosts(way.known_hosts)
    file = _USERS_FILE.expanduser()
    return asyncssh.import_known_hosts(file.read_text(encoding="utf-8", errors="replace") if file.exists() else "")


def _known_keys(way: AccessMethod, port: int) -> list[asyncssh.SSHKey]:
    # Without an address: it is a separate entry, and the name has not been resolved yet.
    found = _known_hosts(way).match(way.host, "", port)
    return list(found[0])


def _host_key_algorithms(way: AccessMethod, port: int) -> list[str]:
    """Return host key algorithms, those of known keys first, so that the device shows a key that can be compared."""
    known = [name for key in _known_keys(way, port) for name in key.sig_algorithms]
    names = [name.decode() for name in dict.fromkeys((*known, *get_default_public_key_algs()))]
    return [name for name in names if way.old_ssh or name not in OLD]


def _key_failure(way: AccessMethod) -> AccessError:
    port = way.port or SSH_PORT
    file = "the known_hosts file" if way.known_hosts is None else "its known host keys"
    if _known_keys(way, port):
        message = f"{way.address_text} presented a host key that differs from the one in {file}"
        hint = "If the device was replaced or has a new key, remove the old key (ssh-keygen -R) and log in once."
        return AccessError(FailureKind.KEY_CHANGED, message, hint)
    option = " -oHostKeyAlgorithms=+ssh-rsa -oKexAlgorithms=+diffie-hellman-group1-sha1" if way.old_ssh else ""
    hint = f"Log in once with ssh{option}, compare its key, and accept it."
    return AccessError(FailureKind.KEY_UNKNOWN, f"{way.address_text}: its host key is not in {file}", hint)


def _algorithm_failure(way: AccessMethod, old_only: list[str], message: str) -> AccessError:
    hint = "Telnet or the console remain: set qoslab_reach: telnet for it in the inventory."
    if not way.old_ssh:
        found = ": these are SHA-1 and CBC." if old_only else f" (SHA-1 and CBC as well). Otherwise: {hint}"
        hint = f"Set qoslab_old_ssh: true for it in the inventory{found}"
    what = f"it offers only {', '.join(old_only)}" if old_only else message
    return AccessError(FailureKind.NO_ALGORITHM, f"{way.address_text}: {what}", hint)


async def _only_old_algorithms(way: AccessMethod) -> list[str]:
    """Return the old algorithms if a device offers no others of a kind; empty if it does or if unknown."""
    try:
        async with asyncio.timeout(way.answer_s):
            offered = await _offered_algorithms(way)
    except (*DISCONNECT_ERRORS, AccessError, TimeoutError, ValueError):
        return []
    return [name for names in offered if names and OLD.issuperset(names) for name in names]


async def _offered_algorithms(way: AccessMethod) -> list[list[str]]:
    """Return key exchanges, host keys, ciphers and MACs in a server's first message (RFC 4253, 4.2 and 7.1)."""
    jump = None if way.jump is None else await _connect_hop(way.jump)
    try:
        reader, writer = await _open(way, way.port or SSH_PORT, jump)
        try:
            writer.write(b"SSH-2.0-qoslab\r\n")
            while (line := await reader.readline()) and not line.startswith(b"SSH-"):
                pass
            length = int.from_bytes(await reader.readexactly(4))
            packet = await reader.readexactly(min(length, READ))
        finally:
            writer.close()
    finally:
        if jump is not None:
            jump.close()
    # Padding length, message number, cookie; then lists of names, each with its length.
    at, lists = 1 + 1 + 16, []
    for _ in range(6):
        size = int.from_bytes(packet[at : at + 4])
        lists.append(packet[at + 4 : at + 4 + size].decode("ascii").split(","))
        at += 4 + size
    kinds = (lists[0], lists[1], lists[2], lists[4])
    return [[name for name in names if name not in _EXTENSION_MARKERS] for names in kinds]


# Telnet


class _TelnetLine:
    def __init__(self, reader: Any, writer: Any, jump: asyncssh.SSHClientConnection | None) -> None:
        self._reader = reader
        self._writer = writer
        self._jump = jump
        self._protocol = TelnetConnection.client()

    async def read(self) -> bytes:
        text = b""
        while not text:
            try:
                data = await self._reader.read(READ)
            except DISCONNECT_ERRORS:
                return b""
            if not data:
                return b""
            text, answer = self._protocol.receive(data)
            if answer:
                await self._send(answer)
        return text

    async def write(self, data: bytes) -> None:
        await self._send(self._protocol.send(data))

    async def _send(self, data: bytes) -> None:
        with contextlib.suppress(*DISCONNECT_ERRORS):
            self._writer.write(data)
            await self._writer.drain()

    def close(self) -> None:
        self._writer.close()
        if self._jump is not None:
            self._jump.close()

    @property
    def is_closed(self) -> bool:
        return bool(self._reader.at_eof())


async def _connect_by_telnet(way: AccessMethod, jump: asyncssh.SSHClientConnection | None) -> DeviceLine:
    return _TelnetLine(*await _open(way, way.port or TELNET_PORT, jump), jump)


async def _open(way: AccessMethod, port: int, jump: asyncssh.SSHClientConnection | None) -> tuple[Any, Any]:
    """Connect to the device, from the jump host if there is one; return reader and writer."""
    if jump is None:
        return await asyncio.open_connection(way.host, port)
    return await jump.open_connection(way.host, port, encoding=None)
