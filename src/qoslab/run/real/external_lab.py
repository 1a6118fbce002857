"""Lab of an inventory for a run: its hosts and Linux routers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from qoslab.errors import UserError
from qoslab.model.inventory import HostSettings
from qoslab.model.units import Duration
from qoslab.run.protocols import Load, Tap
from qoslab.run.real.linux_router import LinuxRouter
from qoslab.run.real.nodes import ExternalHost
from qoslab.run.threads import run_parallel
from qoslab.virtual_lab.control import ControlClient

CONTROL_S = 30.0
"""Time limit for a request to a Linux router, in seconds: it runs commands over SSH."""


class _UsedInterfaces(Load):
    def __init__(self) -> None:
        self.taken = 0.0

    @property
    def seconds(self) -> float:
        """See `run.protocols.Load`."""
        return self.taken


class ExternalLab:
    """See `run.protocols.RunningLab`."""

    def __init__(
        self,
        hosts: Mapping[str, ExternalHost],
        settings: Mapping[str, HostSettings],
        show_every: Mapping[str, Duration | None],
        linux_routers: Mapping[str, LinuxRouter] = MappingProxyType({}),
    ) -> None:
        self._hosts = hosts
        self.linux_routers = linux_routers
        self.machines: Mapping[str, ExternalHost] = {**hosts, **linux_routers}
        """Everything with an agent: hosts and Linux routers."""
        self._sockets: dict[str, Path] = {}
        """Control sockets of the Linux routers that are served."""
        self._settings = settings
        self._show_every = show_every
        self._given_up = ""
        """Reason for giving up; empty otherwise."""

    @property
    def hosts(self) -> Mapping[str, ExternalHost]:
        """Return the hosts by name."""
        return self._hosts

    @property
    def lab_description(self) -> dict[str, Any]:
        """Return the description for the manifest."""
        return {name: host.described for name, host in self.machines.items()}

    def host(self, name: str) -> ExternalHost:
        """See `run.protocols.RunningLab`."""
        return self._hosts[name]

    def capture_point(self, node: str, interface: str) -> Tap:
        """See `run.protocols.RunningLab`."""
        if node not in self._hosts:
            raise UserError(f"found a capture at {interface} of {node}, expected one at a host")
        return Tap(self._hosts[node], self._settings[node].device(interface))

    @property
    def data_planes(self) -> Collection[str]:
        """See `run.protocols.RunningLab`: none."""
        return ()

    @property
    def show_every(self) -> Mapping[str, Duration | None]:
        """See `run.protocols.RunningLab`."""
        return self._show_every

    @property
    def notice_s(self) -> float:
        """See `run.protocols.RunningLab`: the value of the most distant host."""
        return max(host.notice_s for host in self._hosts.values())

    @property
    def lines(self) -> Collection[str]:
        """See `run.protocols.RunningLab`: none."""
        return ()

    def serve(self, folder: Path) -> Mapping[str, Path]:
        """Serve the control protocol of each Linux router in this folder; return the sockets."""
        for name, router in self.linux_routers.items():
            router.serve(folder / f"{name}.sock")
            self._sockets[name] = folder / f"{name}.sock"
        return self._sockets

    def changed_routers(self) -> list[str]:
        """Return the Linux routers whose qdiscs another user has changed since their configuration."""
        return [name for name in self._sockets if not self.linux_routers[name].is_as_configured()]

    def control(self, data_plane: str) -> ControlClient:
        """See `run.protocols.RunningLab`: Linux routers have one."""
        if data_plane not in self._sockets:
            raise UserError(f"{data_plane} has no reachable data plane")
        return ControlClient(self._sockets[data_plane], timeout=CONTROL_S)

    def describe_death(self) -> str:
        """See `run.protocols.RunningLab`."""
        lost = {
            name: each.lost_reason
            for name, each in self.machines.items()
            if each.lost_reason not in ("", self._given_up)
        }
        kinds = {name: "Linux router" if name in self.linux_routers else "host" for name in lost}
        why = [f"the {kinds[name]} {name} is out of reach: {reason}" for name, reason in lost.items()]
        return "; ".join([*why, self._given_up] if self._given_up else why)

    def give_up(self, reason: str) -> None:
        """Disconnect all machines at once, regardless of the current work, which has become useless."""
        self._given_up = reason
        for each in self.machines.values():
            each.give_up(reason)

    def load(self) -> AbstractContextManager[Load]:
        """See `run.protocols.RunningLab`: the processor time of its programs on the hosts."""
        return self._load()

    @contextmanager
    def _load(self) -> Iterator[_UsedInterfaces]:
        used = _UsedInterfaces()
        before = {name: host.cpu_s() for name, host in self._hosts.items()}
        yield used
        used.taken = sum(host.cpu_s() - before[name] for name, host in self._hosts.items())

    def close(self) -> list[str]:
        """Restore all machines and return the failures; Ctrl-C waits for none of them."""
        found, errors = run_parallel({name: each.close for name, each in self.machines.items()})
        return [*(each for failed in found.values() for each in failed), *(error.message for error in errors)]
