"""SSH server for all virtual IOS routers of a lab: `python -m qoslab.virtual_lab.iosd SPEC`.

SPEC is a JSON file:

    {"format": 1,
     "listen": "127.0.0.1",                       address of the SSH ports
     "host_key": "/run/qoslab/iosd/host_key",     file of the host key; created if missing
     "ready": "/run/qoslab/iosd/ready.json",      written once all routers listen
     "routers": {"R1": {
         "model": "3725",                         a key of qoslab.platforms.MODELS
         "generation": null,                      classic, hqf, or null for the model's own
         "netns": "/proc/1/fd/7",                 the namespace of the router's IP stack
         "plane_netns": "/proc/1/fd/8",           the namespace of its data plane, for one end of each subinterface
         "control": "/run/qoslab/R1/control.sock",
         "startup_config": "/run/qoslab/R1/startup-config",   a file; read at boot if present, written by `write memory`
         "ssh_port": 0,                           0: any free port
         "ssh": "modern",                         or "old": SHA-1 and CBC only, as IOS of the articles' age
         "telnet_port": null,                     a port as well, if the router accepts logins by telnet
         "clutter": false,                        true: keep lines of startup_config that the model lacks
         "users": [{"name": "lab", "password": "…", "privilege": 1}],
         "enable_secret": "…"}}}

The ready file: `{"format": 1, "host_key": "ssh-ed25519 AAAA…", "routers": {"R1": {"port": 40022, "telnet_port": null,
"host_key": "ssh-ed25519 AAAA…"}}}`. It appears when every router has activated its configuration and its port accepts
logins. Routers with the same `ssh` share a host key. If something fails before that, the reason is on standard error
and the exit status is 1. The process ends on SIGTERM and SIGINT.

A line of the startup configuration that the router refuses is a failure, except at a `reload`. With `clutter`, lines
that the model lacks are shown in their place in the configuration, without effect; they cannot be entered on the
command line. Users of the running configuration (`username X privilege N secret P`) may log in too.

Only the user of this process can use the ports: connections of other users of the machine are closed without any
output. A login has 30 s and three attempts; of the connections without a login, the latest hundred are kept.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Any, Self

import asyncssh

from qoslab.errors import ExitStatus, QoslabError, UserError
from qoslab.ios.device_config.running_config_parser import read_into, unread_as_inert_lines
from qoslab.ios.environment import DataPlaneDownError
from qoslab.ios.model.device import Device
from qoslab.model.generation import Generation
from qoslab.platforms import MODELS
from qoslab.system.priority import lower_priority
from qoslab.virtual_lab.control import ControlClient
from qoslab.virtual_lab.rights import LOGIN_RIGHTS, keep
from qoslab.virtual_lab.sshd import ALGORITHMS, Judge, PendingConnections, SshPort, lab_host_key
from qoslab.virtual_lab.stack import IpStack, NamespaceThread
from qoslab.virtual_lab.telnetd import TelnetPort
from qoslab.virtual_lab.virtual_router import Bound, Make, VirtualRouter

SPEC_FORMAT = 1
DATA_PLANE_PATIENCE_S = 10.0
"""Time limit for a data plane to open its control socket, in seconds."""
HELLO_RETRY_S = 0.02


@dataclass(frozen=True, slots=True)
class User:
    """User of the routers; `privilege` 15 starts at `#`."""

    name: str
    password: str
    privilege: int


@dataclass(frozen=True, slots=True)
class RouterSpec:
    """Router in the specification."""

    name: str
    model: str
    generation: Generation | None
    netns: Path
    plane_netns: Path
    control: Path
    startup_config: Path
    ssh_port: int
    ssh: str
    telnet_port: int | None
    clutter: bool
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
            ssh=data["ssh"],
            telnet_port=data["telnet_port"],
            clutter=data["clutter"],
            users=tuple(User(each["name"], each["password"], each["privilege"]) for each in data["users"]),
            enable_secret=data["enable_secret"],
        )


@dataclass(frozen=True, slots=True)
class Spec:
    """Specification of the process."""

    listen: str
    host_key: Path
    ready: Path
    routers: tuple[RouterSpec, ...]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file. Raise `UserError` if it is not in the documented form."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
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


class IosDaemon:
    """All routers of a lab."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._namespaces = NamespaceThread()
        keep(LOGIN_RIGHTS)
        self._routers: dict[str, VirtualRouter] = {}
        self._servers: list[asyncssh.SSHAcceptor | asyncio.Server] = []
        self._starting: PendingConnections = {}

    async def start(self) -> None:
        """Boot every router, listen, and write the ready file."""
        keys = {router.ssh: lab_host_key(self.spec.host_key, router.ssh) for router in self.spec.routers}
        public = {age: key.export_public_key().decode().strip() for age, key in keys.items()}
        await asyncio.gather(*(self._boot(router) for router in self.spec.routers))
        ports: dict[str, Any] = {}
        for router in self.spec.routers:
            ssh, telnet = await self._listen(router, keys[router.ssh])
            ports[router.name] = {"port": ssh, "telnet_port": telnet, "host_key": public[router.ssh]}
        ready = {"format": SPEC_FORMAT, "host_key": next(iter(public.values()), None), "routers": ports}
        fresh = self.spec.ready.with_name(self.spec.ready.name + ".new")
        fresh.write_text(json.dumps(ready) + "\n", encoding="utf-8")
        fresh.replace(self.spec.ready)

    async def _boot(self, spec: RouterSpec) -> None:
        model = MODELS.get(spec.model)
        if model is None:
            raise UserError(f"{spec.name}: unknown router model {spec.model!r}, expected one of {', '.join(MODELS)}")
        hardware = model.hardware(spec.generation)
        control = ControlClient(spec.control)
        stack = IpStack(self._namespaces, spec.netns, hardware.interfaces, spec.plane_netns)
        blank = Device(hardware, hostname=spec.name)
        if spec.clutter:
            blank.clutter = unread_as_inert_lines(
                read_into(blank.copy(), spec.startup_config.read_text(encoding="utf-8"))
            )
        router = VirtualRouter(
            Make(model, model.software(hardware.generation), blank),
            Bound(control, stack, spec.startup_config),
            enable_secret=spec.enable_secret,
            log=_log,
        )
        self._routers[spec.name] = router
        await _await_data_plane(control)
        refused = await router.start()
        if refused:
            raise UserError(f"{spec.name}: the startup configuration is refused: " + "; ".join(refused))

    async def _listen(self, spec: RouterSpec, key: asyncssh.SSHKey) -> tuple[int, int | None]:
        """Listen for logins to a router; return its ports for SSH and for telnet."""
        router = self._routers[spec.name]
        judge = _login_check(router, spec.users)
        ssh = SshPort(router, judge, self._starting, _log)
        telnet = TelnetPort(router, judge)

        def end_logins() -> None:
            ssh.end()
            telnet.end()

        router.on_reload = end_logins
        server = await ssh.listen(self.spec.listen, spec.ssh_port, ALGORITHMS[spec.ssh], key)
        self._servers.append(server)
        if spec.telnet_port is None:
            return server.get_port(), None
        listener = await telnet.listen(self.spec.listen, spec.telnet_port)
        self._servers.append(listener)
        return server.get_port(), listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close all connections and release all resources."""
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


def _login_check(router: VirtualRouter, users: Iterable[User]) -> Judge:
    """Return the login check of a router: users of its running configuration, and those of the specification."""
    known = {user.name: user for user in users}

    def judge(name: str, password: str) -> int | None:
        privilege = router.user_privilege(name, password)
        user = known.get(name)
        if privilege is None and user is not None and compare_digest(user.password.encode(), password.encode()):
            return user.privilege
        return privilege

    return judge


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def serve(spec: Spec) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    daemon = IosDaemon(spec)
    try:
        await daemon.start()
        await stop.wait()
    finally:
        await daemon.close()


def main(arguments: list[str]) -> int:
    """Run the daemon."""
    if len(arguments) != 1:
        _log("usage: python -m qoslab.virtual_lab.iosd SPEC")
        return ExitStatus.USER_MISTAKE
    lower_priority()
    try:
        asyncio.run(serve(Spec.load(Path(arguments[0]))))
    except QoslabError as error:
        _log(f"iosd: {error.message}" + (f" {error.hint}" if error.hint else ""))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
