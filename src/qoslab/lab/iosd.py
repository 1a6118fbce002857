"""The SSH server in front of all virtual IOS routers of a lab: `python -m qoslab.lab.iosd SPEC`.

SPEC is a JSON file:

    {"format": 1,
     "listen": "127.0.0.1",                       address of the SSH ports
     "host_key": "/run/qoslab/iosd/host_key",     kept there; made when there is none
     "ready": "/run/qoslab/iosd/ready.json",      written once all routers listen
     "routers": {"R1": {
         "model": "3725",                         a key of qoslab.platforms.ios.MODELS
         "generation": null,                      classic, hqf, or null for the model's own
         "netns": "/proc/1/fd/7",                 the namespace of the router's IP stack
         "plane_netns": "/proc/1/fd/8",           the namespace of its data plane, where subinterfaces need one end
         "control": "/run/qoslab/R1/control.sock",
         "startup_config": "/run/qoslab/R1/startup-config",   a file; read at boot when there, written by `write memory`
         "ssh_port": 0,                           0: any free port
         "users": [{"name": "lab", "password": "…", "privilege": 1}],
         "enable_secret": "…"}}}

The ready file: `{"format": 1, "host_key": "ssh-ed25519 AAAA…", "routers": {"R1": {"port": 40022}}}`. It appears when
every router has its configuration in force and its port accepts logins. When something fails before that, the reason
is on standard error and the exit status is 1. The process ends on SIGTERM and SIGINT.

A line of the startup configuration that the router refuses is a failure, except at a `reload`. Users of the running
configuration (`username X privilege N secret P`) may log in too.

The ports are for the user of this process alone: a connection of anyone else of the machine is closed before a word is
said. A login has 30 s and three tries; of connections that have not logged in, the latest hundred stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Any, Literal, Self

import asyncssh

from qoslab.errors import ExitStatus, QoslabError, UserError
from qoslab.ios.cli.shell import Shell
from qoslab.ios.environment import DataPlaneDownError
from qoslab.ios.model.device import Device
from qoslab.lab.control import ControlClient
from qoslab.lab.stack import IpStack, NamespaceThread
from qoslab.lab.virtual_router import Bound, Make, VirtualRouter
from qoslab.peer import is_own
from qoslab.platforms.ios import MODELS

SPEC_FORMAT = 1
DATA_PLANE_PATIENCE_S = 10.0
"""How long a data plane may take to open its control socket."""
HELLO_RETRY_S = 0.02

# What current clients agree on; the SHA-1 set of routers of the time locks them out.
KEY_EXCHANGES = (
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
)
CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)
MACS = ("hmac-sha2-256", "hmac-sha2-512", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com")
IDENTIFICATION = "Cisco-1.25"
LOGIN_S = 30
"""Until a client must have logged in (LoginGraceTime of sshd_config(5))."""
TRIES = 3
"""Passwords that a client may try, as IOS (`ip ssh authentication-retries`)."""
MOST_STARTING = 100
"""Connections that have not logged in (as MaxStartups of sshd_config(5)); beyond, the oldest is ended."""


@dataclass(frozen=True, slots=True)
class User:
    """Who may log in; `privilege` 15 starts at `#`."""

    name: str
    password: str
    privilege: int


@dataclass(frozen=True, slots=True)
class RouterSpec:
    """One router of the specification."""

    name: str
    model: str
    generation: Literal["classic", "hqf"] | None
    netns: Path
    plane_netns: Path
    control: Path
    startup_config: Path
    ssh_port: int
    users: tuple[User, ...]
    enable_secret: str

    @classmethod
    def from_json(cls, name: str, data: Mapping[str, Any]) -> Self:
        """Read one entry of `routers`."""
        return cls(
            name=name,
            model=data["model"],
            generation=data["generation"],
            netns=Path(data["netns"]),
            plane_netns=Path(data["plane_netns"]),
            control=Path(data["control"]),
            startup_config=Path(data["startup_config"]),
            ssh_port=data["ssh_port"],
            users=tuple(User(each["name"], each["password"], each["privilege"]) for each in data["users"]),
            enable_secret=data["enable_secret"],
        )


@dataclass(frozen=True, slots=True)
class Spec:
    """The specification of the whole process."""

    listen: str
    host_key: Path
    ready: Path
    routers: tuple[RouterSpec, ...]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file; raise `UserError` when it is not of the documented form."""
        try:
            data = json.loads(path.read_text())
            if data["format"] != SPEC_FORMAT:
                raise UserError(f"{path}: format {data['format']!r}, expected {SPEC_FORMAT}")
            return cls(
                listen=data["listen"],
                host_key=Path(data["host_key"]),
                ready=Path(data["ready"]),
                routers=tuple(RouterSpec.from_json(name, router) for name, router in data["routers"].items()),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}: not a specification of routers: {type(error).__name__}: {error}") from error


class _Login(asyncssh.SSHServerSession[str]):
    """One SSH session channel."""

    def __init__(self, router: VirtualRouter, privilege: int, logins: set[_Login]) -> None:
        self._router = router
        self._privilege = privilege
        self._logins = logins
        self._channel: asyncssh.SSHServerChannel[str] | None = None
        self._shell: Shell | None = None
        self._command: str | None = None
        self._task: asyncio.Task[None] | None = None

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
        # The client may be gone while a command still has something to say.
        with contextlib.suppress(OSError):
            self._channel.write(text)

    async def _serve(self, shell: Shell, channel: asyncssh.SSHServerChannel[str]) -> None:
        try:
            await (shell.run() if self._command is None else shell.run_once(self._command))
        except Exception:
            # A defect of ours: the login ends, the router and the other logins go on.
            _log(f"{self._router.name}: a login ended by an internal error\n{traceback.format_exc()}")
            self._write("\r\n% Internal error; the router's log has the details\r\n")
        finally:
            self._logins.discard(self)
            with contextlib.suppress(OSError):
                channel.exit(0)

    def data_received(self, data: str, datatype: asyncssh.DataType) -> None:
        if self._shell is not None:
            self._shell.feed(data)

    def break_received(self, msec: int) -> bool:
        return True

    def eof_received(self) -> bool:
        if self._shell is not None:
            self._shell.end_input()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._logins.discard(self)
        if self._shell is not None:
            self._shell.hang_up()

    def end(self) -> None:
        """Hang up."""
        if self._shell is not None:
            self._shell.hang_up()


class _Door(asyncssh.SSHServer):
    """One SSH connection: checks the password and opens logins."""

    def __init__(
        self,
        router: VirtualRouter,
        users: Mapping[str, User],
        logins: set[_Login],
        starting: dict[_Door, asyncssh.SSHServerConnection],
    ) -> None:
        self._router = router
        self._users = users
        self._logins = logins
        self._starting = starting
        self._privilege: int | None = None
        self._tries = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        # An address of the loopback interface has no owner; the connection has.
        if not is_own(conn.get_extra_info("socket")):
            conn.abort()
            return
        self._starting[self] = conn
        if len(self._starting) > MOST_STARTING:
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
        self._privilege = self._router.privilege_of(username, password)
        user = self._users.get(username)
        if self._privilege is None and user is not None and compare_digest(user.password.encode(), password.encode()):
            self._privilege = user.privilege
        self._tries += 1
        if self._privilege is None and self._tries >= TRIES:
            raise asyncssh.PermissionDenied("too many tries")
        return self._privilege is not None

    def session_requested(self) -> _Login:
        assert self._privilege is not None
        return _Login(self._router, self._privilege, self._logins)


class Daemon:
    """All routers of a lab."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._namespaces = NamespaceThread()
        self._routers: dict[str, VirtualRouter] = {}
        self._servers: list[asyncssh.SSHAcceptor] = []
        self._starting: dict[_Door, asyncssh.SSHServerConnection] = {}

    async def start(self) -> None:
        """Boot every router, listen, and write the ready file."""
        key = _host_key(self.spec.host_key)
        await asyncio.gather(*(self._boot(router) for router in self.spec.routers))
        ports: dict[str, Any] = {}
        for router in self.spec.routers:
            ports[router.name] = {"port": await self._listen(router, key)}
        public_key = key.export_public_key().decode().strip()
        ready = {"format": SPEC_FORMAT, "host_key": public_key, "routers": ports}
        fresh = self.spec.ready.with_name(self.spec.ready.name + ".new")
        fresh.write_text(json.dumps(ready) + "\n")
        fresh.replace(self.spec.ready)

    async def _boot(self, spec: RouterSpec) -> None:
        model = MODELS.get(spec.model)
        if model is None:
            raise UserError(f"{spec.name}: no router model {spec.model!r}; there are {', '.join(MODELS)}")
        hardware = model.hardware(spec.generation)
        control = ControlClient(spec.control)
        stack = IpStack(self._namespaces, spec.netns, hardware.interfaces, spec.plane_netns)
        router = VirtualRouter(
            Make(model, model.software(hardware.generation), Device(hardware, hostname=spec.name)),
            Bound(control, stack, spec.startup_config),
            enable_secret=spec.enable_secret,
            log=_log,
        )
        self._routers[spec.name] = router
        await _await_data_plane(control)
        refused = await router.start()
        if refused:
            raise UserError(f"{spec.name}: the startup configuration is refused: " + "; ".join(refused))

    async def _listen(self, spec: RouterSpec, key: asyncssh.SSHKey) -> int:
        router = self._routers[spec.name]
        users = {user.name: user for user in spec.users}
        logins: set[_Login] = set()

        def end_logins() -> None:
            for login in list(logins):
                login.end()

        router.on_reload = end_logins
        server = await asyncssh.create_server(
            lambda: _Door(router, users, logins, self._starting),
            self.spec.listen,
            spec.ssh_port,
            server_host_keys=[key],
            server_version=IDENTIFICATION,
            kex_algs=KEY_EXCHANGES,
            encryption_algs=CIPHERS,
            mac_algs=MACS,
            public_key_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            login_timeout=LOGIN_S,
            line_editor=False,
            errors="replace",
            reuse_address=True,
        )
        self._servers.append(server)
        return server.get_port()

    async def close(self) -> None:
        """Hang up and let go of everything."""
        for server in self._servers:
            server.close()
        await asyncio.gather(*(router.close() for router in self._routers.values()), return_exceptions=True)
        self._namespaces.close()


async def _await_data_plane(control: ControlClient) -> None:
    """Wait until the data plane answers."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DATA_PLANE_PATIENCE_S
    while True:
        try:
            await control.hello()
            return
        except DataPlaneDownError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(HELLO_RETRY_S)


def _host_key(path: Path) -> asyncssh.SSHKey:
    """The lab's host key; made on first use, so that it is the same after a restart."""
    if path.exists():
        return asyncssh.read_private_key(path)
    key = asyncssh.generate_private_key("ssh-ed25519", comment="qoslab")
    path.touch(mode=0o600)
    path.write_bytes(key.export_private_key())
    return key


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def serve(spec: Spec) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    daemon = Daemon(spec)
    try:
        await daemon.start()
        await stop.wait()
    finally:
        await daemon.close()


def main(arguments: list[str]) -> int:
    """Run the daemon."""
    if len(arguments) != 1:
        _log("usage: python -m qoslab.lab.iosd SPEC")
        return ExitStatus.USER_MISTAKE
    try:
        asyncio.run(serve(Spec.load(Path(arguments[0]))))
    except QoslabError as error:
        _log(f"iosd: {error.message}" + (f" {error.hint}" if error.hint else ""))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
