"""Interface of a virtual lab for the rest of qoslab."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from qoslab.errors import ExperimentError, MachineError, UserError
from qoslab.model.experiment import TCP_PROFILES, Link, Node, TcpProfile, Topology
from qoslab.platforms import command_line_nodes, has_engine, has_kernel, host_names, node_platform, router_names, tcp
from qoslab.platforms.emulation import link_configuration
from qoslab.platforms.startup import startup_config
from qoslab.system.programs import describe_exit, find_own_program, program_variable, python_module_command
from qoslab.system.waiting import answers_hello, wait_until
from qoslab.virtual_lab import data_planes, ios_routers, kernels, namespaces, netlink
from qoslab.virtual_lab.control import ControlClient
from qoslab.virtual_lab.ios_routers import MODERN_SSH, RouterLogins
from qoslab.virtual_lab.lab_processes import LabProcess, enter_argv
from qoslab.virtual_lab.linux_names import linux_interface
from qoslab.virtual_lab.rights import DAEMONS
from qoslab.virtual_lab.supervision import LabError, LabMachineError, SupervisorClient
from qoslab.virtual_lab.supervisor import PROCESS_NAME
from qoslab.virtual_lab.wiring import (
    DATA_PLANE_SUFFIX,
    HOST_SYSCTLS,
    LINE_SUFFIX,
    MTU,
    ROUTER_SYSCTLS,
    TXQUEUELEN,
    Wiring,
    wire,
)

RUNTIME = Path("/run/qoslab")
"""Runtime folder inside the lab."""
STATE_FILE = "lab.json"
IOSD = "iosd"
"""Name of the daemon of all virtual IOS routers, and of its folder under the runtime folder."""
HOSTD = "hostd"
"""Name of the SSH server for the hosts of an exposed lab, and of its folder under the runtime folder."""
RESERVED_NAMES = frozenset({data_planes.FOLDER, HOSTD, IOSD, STATE_FILE, "supervisor.sock"})
"""Names in the runtime folder that routers cannot have."""
_LOGIN = ("user", "password", "enable")
DAEMON_TIMEOUT = 60.0
"""Seconds for a daemon to answer after its start. A daemon that fails ends, which is detected at once."""
END_TIMEOUT_S = 1.0
"""Seconds for a data plane to end before it is killed with the lab."""
LOG_TAIL = 4000
"""Number of characters reported from the end of a dead daemon's log."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True)
class Ssh:
    """Login data of a virtual IOS router."""

    host: str
    port: int
    user: str
    password: str
    enable: str
    telnet: int | None = None
    """Port for telnet; None if the lab has none."""
    host_key: str | None = None
    """Host key as in known_hosts."""


@dataclass(frozen=True)
class DaemonFailure:
    """Daemon of the lab that ended unexpectedly."""

    daemon: str
    """Name of the daemon: the routers' names for a `qos-router`, or `iosd`."""
    exit: int | None
    """Exit status; negative: the signal that killed it. None: its process still runs, for other routers."""
    log: str
    """End of its log; for a router without its own process, what happened to it."""

    def __str__(self) -> str:
        return self.describe(1)

    @property
    def was_killed(self) -> bool:
        """True if it was killed by another process, or by the kernel for lack of memory."""
        return -(self.exit or 0) in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def describe(self, lines: int) -> str:
        """Return how it ended, and the last lines of its output."""
        if self.exit is None:
            return f"{self.daemon}: {self.log.strip()}"
        tail = self.log.strip().splitlines()[-lines:]
        return f"{self.daemon}: its daemon {describe_exit(self.exit)}" + (
            f"; its last output: {' / '.join(tail)}" if tail else ""
        )


ENVIRONMENT = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"}
)
ENVIRONMENT_BEGINS = ("ASAN_", "COVERAGE_", "LC_", "LD_", "LLVM_", "PYTHON", "QOSLAB_", "RUST_", "SSL_", "XDG_")
"""Prefixes of variables for a daemon of the lab: the whole environment may exceed the size of a message."""


def daemon_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of this process's environment for the daemons of a lab."""
    return {
        name: value for name, value in environment.items() if name in ENVIRONMENT or name.startswith(ENVIRONMENT_BEGINS)
    }


@dataclass(frozen=True)
class LabNode:
    """Node of a running lab."""

    name: str
    node: Node
    addresses: dict[str, tuple[str, ...]]
    """Addresses by interface, for interfaces with addresses in the topology, that of IPv4 first."""

    @property
    def address(self) -> str:
        """First of its addresses. Raise `ExperimentError` if the topology gives it none."""
        for addresses in self.addresses.values():
            return addresses[0]
        raise ExperimentError(f"node {self.name} has no address in the topology", hint="Give a link end an address.")


class Lab:
    """Running lab, from `Lab.up`, `Lab.find` or `Lab.running_labs`; as a context manager it ends with the block."""

    def __init__(self, supervisor: SupervisorClient, state: dict[str, Any]) -> None:
        self._supervisor = supervisor
        self._state = state
        self.name: str = state["name"]
        self.topology = Topology.model_validate_json(json.dumps(state["topology"]))
        self.seed: int = state["seed"]
        self._wiring = wire(self.topology, self.seed, state.get("guests", ()))
        self.nodes = {
            name: LabNode(
                name,
                node,
                {
                    near.interface: tuple(str(address.ip) for address in near.addresses)
                    for _, near, _ in self.topology.node_links(name)
                    if near.addresses
                },
            )
            for name, node in self.topology.nodes.items()
        }

    # Start and end

    @classmethod
    def up(
        cls,
        topology: Topology,
        *,
        name: str,
        owned: bool = True,
        tcp_profile: TcpProfile | None = None,
        seed: int = 1,
        ssh: Mapping[str, Ssh] | None = None,
        ways: RouterLogins = MODERN_SSH,
        guests: Collection[str] = (),
    ) -> Lab:
        """Bring a lab up; with `owned` it ends with this process, however this process ends.

        `seed` decides jitter and loss of its links. `ssh` are ports and logins of an earlier lab that is down, so that
        its routers are reached in the same way; `ways` has the allowed logins. Hosts start with `tcp_profile` (`modern`
        if absent). `guests` are routers whose kernel is user-mode Linux. Raise `ExperimentError` for a topology that
        the virtual lab does not support, `MachineError` if the machine lacks something, `UserError` if this user has a
        lab of that name.
        """
        if _NAME.fullmatch(name) is None:
            raise UserError(f"{name!r} is not a valid lab name: use at most 40 letters, digits and . _ -")
        wiring = wire(topology, seed, guests)
        routers = router_names(topology)
        for router in routers:
            if router in RESERVED_NAMES:
                raise ExperimentError(f"a router cannot be called {router} in the virtual lab", hint="Rename it.")
        program = find_own_program("qos-router") if wiring.ports else None
        supervisor = SupervisorClient.start(name, owned=owned)
        try:
            state: dict[str, Any] = {
                "name": name,
                "owned": owned,
                "seed": seed,
                "guests": sorted(guests),
                "started": time.time(),
                "topology": topology.model_dump(mode="json", by_alias=True),
                "ssh": {router: asdict(way) for router, way in (ssh or {}).items()},
                "host_key": None,
            }
            profile = tcp_profile or TCP_PROFILES["modern"]
            state["handles"] = _make_namespaces(supervisor, wiring, topology, profile)
            lab = cls(supervisor, state)
            lab._build(program, profile)
            lab._start_kernels()
            if program is not None:
                lab._start_routers(routers, ways)
            lab._wait_for_kernels()
            lab._save()
            supervisor.request("ready")
            return lab
        except BaseException:
            supervisor.stop()
            raise

    @classmethod
    def running_labs(cls) -> list[Lab]:
        """Return this user's running labs, by name."""
        labs = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                if (process / "comm").read_bytes().rstrip(
                    b"\n"
                ) != PROCESS_NAME or process.stat().st_uid != os.geteuid():
                    continue
                state = json.loads((process / "root/run/qoslab" / STATE_FILE).read_text(encoding="utf-8"))
                labs.append(cls(SupervisorClient.connect(int(process.name)), state))
            except (OSError, LabError, ValidationError):
                continue  # It has just ended, is still starting, is out of reach, or has another version.
        return sorted(labs, key=lambda lab: lab.name)

    @classmethod
    def find(cls, name: str | None = None) -> Lab:
        """Return this user's lab of that name, or the only one. Raise `UserError` if there is none."""
        labs = cls.running_labs()
        chosen = [lab for lab in labs if name is None or lab.name == name]
        for lab in labs:
            if lab not in chosen or len(chosen) > 1:
                lab.close()
        if len(chosen) == 1:
            return chosen[0]
        names = ", ".join(lab.name for lab in labs)
        if not labs:
            raise UserError("you have no running lab", hint="Bring one up: qoslab lab up EXPERIMENT")
        if name is None:
            raise UserError(
                f"you have {len(labs)} labs: {names}",
                hint="Name one: `lab down NAME`; `lab shell`, `lab exec` and `testbed` take --lab NAME.",
            )
        raise UserError(f"you have no lab called {name}; your labs: {names}")

    def down(self) -> None:
        """End the lab; on return, all of its processes have ended."""
        if self._wiring.ports:
            # The data plane closes its rings in parallel; those of a killed process are closed one by one.
            name = data_planes.process_name(list(self._wiring.ports))
            with contextlib.suppress(LabError):
                self._supervisor.request("end", name=name, within_s=END_TIMEOUT_S)
        self._supervisor.stop()

    def close(self) -> None:
        """Close the connection to the lab without ending it."""
        self._supervisor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    # Processes

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        return self._supervisor.pid

    def argv(self, node: str | None, argv: Sequence[str], *, directory: Path | None = None) -> list[str]:
        """Return the command line that runs a command in a node; None is the lab with the machine's network."""
        return enter_argv(
            self.pid,
            None if node is None else self.handle(node),
            user_namespace=self._supervisor.user_namespace,
            directory=directory or Path.cwd(),
            argv=argv,
        )

    def popen(self, node: str | None, argv: Sequence[str], **options: Any) -> LabProcess:
        """Start a command in a node; options are those of `subprocess.Popen`. It dies with the lab.

        It leads its own session: Linux divides processors among sessions first, so busy programs in the user's session
        do not delay it. Signals of a terminal do not reach it.
        """
        options.setdefault("start_new_session", True)
        directory = options.pop("cwd", None)
        command = self.argv(node, argv, directory=None if directory is None else Path(directory).absolute())
        return LabProcess(command, **options)

    def run(
        self,
        node: str | None,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        check: bool = False,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a node and return its output as text."""
        for stream in ("stdout", "stderr"):
            options.setdefault(stream, subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        with self.popen(node, argv, text=True, **options) as process:
            try:
                output, errors = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        result = subprocess.CompletedProcess(list(argv), process.returncode, output, errors)
        if check:
            result.check_returncode()
        return result

    def handle(self, namespace: str) -> int:
        """Return the supervisor's descriptor of a node's namespace, as `/proc/1/fd/N` inside the lab."""
        handles: dict[str, int] = self._state["handles"]
        if namespace not in handles:
            raise UserError(f"the lab {self.name} has no node {namespace}; it has {', '.join(self.nodes)}")
        return handles[namespace]

    @contextlib.contextmanager
    def namespace(self, node: str) -> Iterator[int]:
        """Provide a descriptor of a node's namespace for a program (`pass_fds`), which cannot access process 1."""
        opened = self._supervisor.namespaces([node])[node]
        with contextlib.closing(opened):
            yield opened.descriptor

    def spawn(self, name: str, argv: Sequence[str], log: Path, rights: Sequence[str]) -> None:
        """Start a daemon of the lab with these capabilities, in the machine's network; `log` is a path in the lab."""
        environment = daemon_environment(os.environ)
        keys = {"argv": list(argv), "capabilities": list(rights), "environment": environment, "log": str(log)}
        self._supervisor.request("spawn", name=name, **keys)

    # Nodes

    def interface(self, node: str, interface: str) -> tuple[str, str]:
        """Return the place to capture an interface's link: namespace (for `popen`) and Linux name."""
        if has_engine(self.nodes[node].node):
            return node + DATA_PLANE_SUFFIX, linux_interface(interface)
        return node, interface

    def runtime(self, node: str) -> Path:
        """Return the node's folder of sockets and logs, as a path for this process."""
        return self._supervisor.runtime / node

    def control(self, node: str) -> ControlClient:
        """Return a client of the router's data plane."""
        return ControlClient(self.runtime(node) / data_planes.CONTROL)

    def ssh(self, node: str) -> Ssh:
        """Return the login data of a virtual IOS router."""
        if node not in self._state["ssh"]:
            raise UserError(f"{node} is not an IOS router of the lab {self.name}")
        return Ssh(**self._state["ssh"][node])

    @property
    def host_key(self) -> str | None:
        """SSH host key of all virtual IOS routers of the lab, as in known_hosts; None without such routers."""
        key: str | None = self._state["host_key"]
        return key

    def known_hosts(self) -> Path:
        """Return a known_hosts file for all virtual IOS routers, which exists as long as the lab."""
        if self.host_key is None:
            raise UserError(f"the lab {self.name} has no IOS router")
        path = self.runtime(IOSD) / "known_hosts"
        if not path.exists():
            logins = self._state["ssh"].values()
            path.write_text(
                "".join(f"[{login['host']}]:{login['port']} {self.host_key}\n" for login in logins), encoding="utf-8"
            )
        return path

    def askpass(self, router: str) -> Path:
        """Return a program that prints the router's password, for SSH_ASKPASS of ssh(1), as long as the lab exists."""
        path = self.runtime(IOSD) / f"askpass-{router}"
        if not path.exists():
            path.touch(mode=0o700)
            path.write_text(f"#!/bin/sh\necho {shlex.quote(self.ssh(router).password)}\n", encoding="utf-8")
        return path

    def apply_tcp_profile(self, node: str, profile: TcpProfile, *, answers: bool = True) -> dict[str, Any]:
        """Apply these TCP settings to a host and return the resulting values of the kernel.

        New connections use them. Without `answers`, closed ports are not reported. Raise `MachineError` if the kernel
        has other values afterwards.
        """
        wanted = tcp.tcp_sysctls(profile) | tcp.answer_sysctls(answers)
        values = self._set_sysctls(node, write=wanted, read=list(wanted))
        metrics = tcp.route_metrics(profile)
        spaces = self._supervisor.namespaces([node])
        try:
            space = spaces[node]
            try:
                space.transact(namespaces.host_route_messages(self._wiring, node, metrics))
            except MachineError as error:
                raise MachineError(
                    f"{error.message}, with the TCP settings {profile.model_dump(mode='json')}",
                    hint=f"Is the congestion control available? As root: modprobe tcp_{profile.congestion_control}",
                ) from error
            routes = space.routes()
        finally:
            for opened in spaces.values():
                opened.close()
        for key, value in wanted.items():
            if values[key] != str(value):
                raise MachineError(f"{node}: {key} is {values[key]} after {value} was written")
        for found in routes:
            if found["metrics"] != dict(metrics):
                raise MachineError(f"{node}: route {found['prefix']} has {found['metrics']}, expected {dict(metrics)}")
        return {"sysctls": values, "routes": routes}

    # State

    def failures(self) -> list[DaemonFailure]:
        """Return the daemons that have ended; empty if all run. Raise `LabError` if the supervisor is gone."""
        failures = []
        for name, daemon in self._supervisor.request("status")["daemons"].items():
            if daemon["exit"] is not None:
                log = self._supervisor.runtime / Path(daemon["log"]).relative_to(RUNTIME)
                text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
                failures.append(DaemonFailure(name, daemon["exit"], text[-LOG_TAIL:]))
        for name in self._wiring.ports:
            with contextlib.suppress(FileNotFoundError):
                ended = self.runtime(name) / data_planes.FINAL_STATE_FILE
                failures.append(DaemonFailure(name, None, ended.read_text(encoding="utf-8", errors="replace")))
        return failures

    def is_alive(self) -> bool:
        """Return whether the supervisor and every daemon run."""
        try:
            return not self.failures()
        except LabError:
            return False

    @property
    def guests(self) -> Sequence[str]:
        """Routers whose kernel is user-mode Linux."""
        return tuple(self._state.get("guests", ()))

    @property
    def lines(self) -> tuple[str, ...]:
        """Data planes that add delay, jitter and loss to a link between two hosts: `LINK.line`."""
        return self._wiring.lines

    def describe(self) -> dict[str, Any]:
        """Return the lab's data for a manifest: kernel, settings as read back, offloads, links."""
        sysctls = {}
        for name, node in self.topology.nodes.items():
            keys = ROUTER_SYSCTLS if node_platform(node).is_router else HOST_SYSCTLS | tcp.tcp_sysctls(TcpProfile())
            neighbours = [
                f"net.ipv{version}.neigh.{interface.name.replace('.', '/')}.base_reachable_time_ms"
                for interface in self._wiring.interfaces()
                for version in (4, 6)
                if interface.namespace == name and interface.arp and (version == 4 or interface.ipv6)
            ]
            read = [*keys, *neighbours, *self._wiring.ipv6_settings(name), *RECORDED_SYSCTLS]
            sysctls[name] = self._set_sysctls(name, write={}, read=read)
        return {
            "name": self.name,
            "kernel": " ".join(platform.uname()[i] for i in (0, 2, 3, 4)),
            "user_namespace": self._supervisor.user_namespace,
            "mtu": MTU,
            "txqueuelen": TXQUEUELEN,
            "sysctls": sysctls,
            "offloads_on": self._state["offloads_on"],
            "links": [
                {"name": link.name, "ends": [f"{end.node} {end.interface}" for end in link.ends]}
                | self._link_emulation(link)
                for link in self.topology.links
            ],
            "shapers": {
                f"{interface.namespace} {interface.name}": {
                    "discipline": "tbf",
                    "rate_bps": interface.shaper.rate_bps,
                    "burst_bytes": interface.shaper.burst_bytes,
                    "limit_bytes": interface.shaper.limit_bytes,
                    "overhead_bytes": interface.shaper.overhead_bytes,
                }
                for interface in self._wiring.interfaces()
                if interface.shaper is not None
            },
        }

    def _link_emulation(self, link: Link) -> dict[str, Any]:
        """Return rate, framing, delay, jitter and loss of a link, and the seed of each of its ports."""
        configured = {end.node: link_configuration(link, end.node, self.seed) for end in link.ends}
        made = link.name + LINE_SUFFIX in self.lines
        seeds = {node: each["seed"] for node, each in configured.items() if made or node in self._wiring.ports}
        return {**configured[link.ends[0].node], "seed": seeds}

    def _set_sysctls(self, node: str, *, write: Mapping[str, str | int], read: Sequence[str]) -> dict[str, str | None]:
        values: dict[str, str | None] = self._supervisor.request(
            "sysctl", namespace=node, write=write, read=list(read)
        )["values"]
        return values

    def _save(self) -> None:
        """Save the state by which `Lab.running_labs` finds the lab."""
        path = self._supervisor.runtime / STATE_FILE
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(self._state), encoding="utf-8")
        partial.rename(path)

    # Routers

    def _build(self, program: Path | None, profile: TcpProfile) -> None:
        """Create everything in the namespaces, and start the data planes as soon as they have their interfaces."""
        hosts, wiring = host_names(self.topology), self._wiring
        planes = [name if name in wiring.lines else name + DATA_PLANE_SUFFIX for name in wiring.ports]
        spaces = self._supervisor.namespaces(list(wiring.namespaces))

        def settle(name: str) -> None:
            if settings := wiring.ipv6_settings(name):
                self._supervisor.request("sysctl", namespace=name, write=settings, read=[])
            spaces[name].transact(
                namespaces.settings_messages(wiring, name, tcp.route_metrics(profile) if name in hosts else [])
            )

        try:
            some = next(iter(spaces.values()), None)
            if some is not None:
                some.transact(
                    [
                        netlink.veth_message(a, spaces[a.namespace].descriptor, b, spaces[b.namespace].descriptor)
                        for a, b in wiring.pairs
                    ]
                )
            for name in planes:
                settle(name)
            if program is not None:
                self._start_data_planes(program)
            # While the kernel creates their rings.
            self._state["offloads_on"] = namespaces.disable_offloads(spaces, wiring)
            for name in wiring.namespaces:
                if name not in planes:
                    settle(name)
        finally:
            for space in spaces.values():
                space.close()

    def _start_routers(self, routers: Sequence[str], ways: RouterLogins) -> None:
        """Start the routers' command lines, and wait for these and the data planes."""
        ios = command_line_nodes(self.topology)
        if ios:
            self._start_iosd(ios, ways)
        for name in self._wiring.ports:
            self._wait_for(name, self.runtime(name) / data_planes.CONTROL)
        if ios:
            self._wait_for_iosd()
            for router, space in self._supervisor.namespaces(ios).items():
                with contextlib.closing(space):
                    space.transact(namespaces.neighbour_messages(self._wiring, router, booted=True))

    def _kernel_routers(self) -> list[str]:
        """Routers with a kernel as data plane."""
        return [name for name, node in self.topology.nodes.items() if has_kernel(node)]

    def _start_kernels(self) -> None:
        for router in self._kernel_routers():
            folder = self.runtime(router)
            folder.mkdir()
            spec = kernels.kernel_specification(self.topology, self._wiring, router, self._state["handles"], RUNTIME)
            (folder / kernels.SPEC).write_text(json.dumps(spec), encoding="utf-8")
            inside = RUNTIME / router
            argv = python_module_command("qoslab.tc.daemon", str(inside / kernels.SPEC))
            self.spawn(f"{router} tc", argv, inside / kernels.LOG, DAEMONS["kernel"])

    def _wait_for_kernels(self) -> None:
        for router in self._kernel_routers():
            self._wait_for(f"{router} tc", self.runtime(router) / data_planes.CONTROL)

    def _start_data_planes(self, program: Path) -> None:
        for name in self._wiring.ports:
            self.runtime(name).mkdir()
        folder = self.runtime(data_planes.FOLDER)
        folder.mkdir()
        config = data_planes.lab_config(self._wiring, self._state["handles"], RUNTIME)
        (folder / "lab.json").write_text(json.dumps(config), encoding="utf-8")
        inside = RUNTIME / data_planes.FOLDER
        name = data_planes.process_name(list(self._wiring.ports))
        self.spawn(name, [str(program), "--lab", str(inside / "lab.json")], inside / "log", DAEMONS["data plane"])

    def _start_iosd(self, routers: Sequence[str], ways: RouterLogins) -> None:
        before: dict[str, dict[str, Any]] = {router: self._state["ssh"].get(router, {}) for router in routers}
        known = next(filter(None, before.values()), None)
        login = ios_routers.lab_credentials() if known is None else {name: known[name] for name in _LOGIN}
        for router in routers:
            config = ios_routers.startup_with_inert_lines(
                startup_config(self.topology, router, login), self.topology, router, ways
            )
            (self.runtime(router) / "startup-config").write_text(config, encoding="utf-8")
        folder = self.runtime(IOSD)
        folder.mkdir()
        ports = {router: way["port"] for router, way in before.items() if way}
        spec = ios_routers.iosd_specification(
            self.topology, routers, self._state["handles"], login, RUNTIME, ports, ways
        )
        (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        argv = python_module_command("qoslab.virtual_lab.iosd", str(RUNTIME / IOSD / "spec.json"))
        self.spawn(IOSD, argv, RUNTIME / IOSD / "log", DAEMONS["command lines"])
        self._state["ssh"] = {router: {"host": ios_routers.LISTEN, **login} for router in routers}

    def _wait_for_iosd(self) -> None:
        """Wait until every virtual IOS router accepts logins, and store their ports."""
        ready = self.runtime(IOSD) / "ready.json"
        wait_until(ready.exists, DAEMON_TIMEOUT, lambda late: self._check_start(IOSD, "has no router ready", late))
        ready_state = json.loads(ready.read_text(encoding="utf-8"))
        for router, entry in ready_state["routers"].items():
            way = self._state["ssh"][router]
            way |= {"port": entry["port"], "telnet": entry["telnet_port"], "host_key": entry["host_key"]}
        self._state["host_key"] = ready_state["host_key"]

    def _wait_for(self, daemon: str, control: Path) -> None:
        """Wait until a data plane answers `hello`."""
        how = f"does not answer on {control}"
        wait_until(
            lambda: answers_hello(control, DAEMON_TIMEOUT),
            DAEMON_TIMEOUT,
            lambda late: self._check_start(daemon, how, late),
        )

    def _check_start(self, daemon: str, how: str, late: bool) -> None:
        """Raise `LabError` if a daemon has ended or is late."""
        for failure in self.failures():
            variable = program_variable("qos-router")
            named = os.environ.get(variable)
            # A program that replaced qoslab's own is not a defect of qoslab.
            kind = LabMachineError if failure.was_killed or named else LabError
            hint = f"{variable} names {named}, expected a qos-router of this version" if named else failure.log.strip()
            raise kind(f"the lab did not come up: {failure}", hint=hint)
        if late:
            raise LabError(f"the lab did not come up: {daemon} {how} after {DAEMON_TIMEOUT:g} s")


RECORDED_SYSCTLS = (
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.core.rmem_max",
    "net.core.wmem_max",
)
"""Settings in a run's manifest that the lab leaves at the kernel's defaults."""


def _make_namespaces(
    supervisor: SupervisorClient, wiring: Wiring, topology: Topology, profile: TcpProfile
) -> dict[str, int]:
    """Create the namespaces; return the supervisor's descriptors of them."""
    hosts = host_names(topology)
    handles: dict[str, int] = supervisor.request(
        "create",
        namespaces=[
            {"name": name, "sysctls": settings | (tcp.tcp_sysctls(profile) if name in hosts else {})}
            for name, settings in wiring.namespaces.items()
        ],
    )["handles"]
    return handles
