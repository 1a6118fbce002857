"""Answers of a simulated router to show commands, from the virtual routers' renderers and the simulator's counters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NoReturn, cast

from qoslab.errors import QoslabError
from qoslab.ios.environment import (
    Activity,
    CpuUse,
    MemoryUse,
    Neighbour,
    PingOptions,
    PingOutcome,
    PortState,
    RouteEntry,
)
from qoslab.ios.login import PRIVILEGED_LEVEL
from qoslab.ios.model.device import Device
from qoslab.ios.model.hardware import Chassis, Software
from qoslab.ios.model.message_log import MessageLog
from qoslab.ios.shell import Shell
from qoslab.ios.show.interfaces import unwired_counters
from qoslab.model.experiment import SECOND_NS, Node
from qoslab.platforms import MODELS
from qoslab.simulation.history import SampleHistory
from qoslab.simulation.routers import SimulatedRouter
from qoslab.simulation.scenario import EPOCH, EPOCH_NS
from qoslab.system import program_formats

MTU = 1500
"""Bytes of the largest IP packet on every interface."""


class NotSimulatedError(QoslabError):
    """Error for a command that needs something that is not simulated."""

    def __init__(self, what: str) -> None:
        super().__init__(f"a simulated router has no {what}")
        self.what = what


def empty_history(node: Node, router: SimulatedRouter) -> SampleHistory:
    """Return a history of ports without any traffic or policies, and of IP SLA without any measurement."""
    chassis = _node_chassis(node)
    ports = {
        name: unwired_counters(router.device.interfaces[name], chassis, router.device.subinterfaces(name))
        for name in router.config["interfaces"]
    }
    sample: program_formats.Counters = {
        "time_ns": EPOCH_NS,
        "uptime_ns": 0,
        "interfaces": ports,
        "access_lists": {},
        "switch": None,
    }
    return SampleHistory((sample,))


def answer_show(node: Node, router: SimulatedRouter, command: str, history: SampleHistory) -> str:
    """Return the output at the time of the last sample of `history`, without echo and prompt.

    Raise `NotSimulatedError` if the command needs something that is not simulated.
    """
    output: list[str] = []
    shell = Shell(_SimulatedEnvironment(node, router, history), output.append, privilege=PRIVILEGED_LEVEL)
    # The environment answers at once, so that no event loop is needed.
    work = shell.run_once(command)
    try:
        work.send(None)
    except StopIteration:
        return "".join(output).replace("\r", "").strip("\n") + "\n"
    work.close()
    raise NotSimulatedError("the time that it takes")


def _node_chassis(node: Node) -> Any:
    assert node.model is not None  # routers with a command line have one
    return MODELS[node.model]


def _wall_time(time_ns: int) -> datetime:
    return EPOCH + timedelta(microseconds=(time_ns - EPOCH_NS) / 1000)


class _SimulatedEnvironment:
    """Read-only implementation of `qoslab.ios.environment.RouterEnvironment` on samples of counters."""

    def __init__(self, node: Node, router: SimulatedRouter, history: SampleHistory) -> None:
        self._node = node
        self._router = router
        self._history = history
        self._samples = history.samples

    @property
    def device(self) -> Device:
        return self._router.device

    @property
    def boot_device(self) -> Device:
        return self._router.device

    @property
    def boot_time(self) -> datetime:
        return EPOCH

    @property
    def was_reloaded(self) -> bool:
        return False

    @property
    def chassis(self) -> Chassis:
        return cast(Chassis, _node_chassis(self._node))

    @property
    def software(self) -> Software:
        return cast(Software, _node_chassis(self._node).software(self.device.hardware.generation))

    def current_time(self) -> datetime:
        return _wall_time(self._samples[-1]["time_ns"])

    def data_plane_config(self) -> program_formats.DataPlaneConfig:
        return self._router.config

    async def counters(self, interface: str | None = None) -> program_formats.Counters:
        return self._samples[-1]

    async def memory(self) -> MemoryUse:
        raise NotSimulatedError("the memory of the data plane")

    @property
    def log(self) -> MessageLog:
        return MessageLog()

    def counters_cleared_at(self, interface: str) -> datetime | None:
        return None

    async def activity(self) -> Mapping[str, Activity]:
        """Return the activity, with the resolution of the sampling interval."""
        found = dict.fromkeys(self.device.interfaces, Activity())
        counted: dict[str, tuple[int, int]] = {}
        for sample in self._samples:
            moment = _wall_time(sample["time_ns"])
            for name, each in sample["interfaces"].items():
                now = each["input"]["packets"], each["output"]["packets"]
                before, last = counted.get(name, (0, 0)), found[name]
                found[name] = Activity(
                    moment if now[0] > before[0] else last.last_input,
                    moment if now[1] > before[1] else last.last_output,
                )
                counted[name] = now
        return found

    async def ports(self) -> Mapping[str, PortState]:
        """Return the ports; frames have no hardware addresses."""
        return {name: PortState(None, True, MTU) for name in self._router.config["interfaces"]}

    async def routes(self) -> list[RouteEntry]:
        return self._router.routes

    async def ip_sla(self) -> program_formats.IpSlaReport:
        if self._history.ip_sla:
            return self._history.ip_sla[-1]
        return {"time_ns": self._samples[-1]["time_ns"], "operations": {}, "responder": None}

    async def qos_statistics(self) -> Mapping[str, program_formats.SwitchPortCounters]:
        ports = self._samples[-1]["interfaces"].items()
        return {name: counted for name, port in ports if (counted := port.get("switch")) is not None}

    async def cpu(self) -> CpuUse:
        """Return the load of process level; forwarding takes no time in a simulated router."""
        return CpuUse(
            five_seconds=self._process_level(5),
            five_seconds_kernel=0.0,
            one_minute=self._process_level(60),
            five_minutes=self._process_level(300),
        )

    def _process_level(self, seconds: int) -> float:
        """Return the share of process level in the last seconds, in percent; since the start, if that is less."""
        busy, now_ns = self._history.process_busy_ns, self._samples[-1]["time_ns"]
        earlier = [
            (sample["time_ns"], worked)
            for sample, worked in zip(self._samples, busy, strict=False)
            if 0 < now_ns - sample["time_ns"] <= seconds * SECOND_NS
        ]
        if not earlier:
            return 0.0
        since_ns, worked = earlier[0]
        return 100 * (busy[-1] - worked) / (now_ns - since_ns)

    def startup_config(self) -> str | None:
        return None

    # Members that are not simulated

    async def resolve(self) -> dict[str, Any]:
        raise NotSimulatedError("policy-maps with defaults filled in, if they are not attached")

    async def neighbours(self) -> list[Neighbour]:
        raise NotSimulatedError("an ARP table")

    def ping(self, options: PingOptions) -> AsyncIterator[PingOutcome]:
        raise NotSimulatedError("probes")

    async def edit(self, change: Callable[[Device], None]) -> None:
        self._refuse_change()

    async def clear(self, interface: str | None = None) -> None:
        self._refuse_change()

    async def clear_qos_statistics(self, interface: str | None = None) -> None:
        self._refuse_change()

    def save_startup_config(self, text: str | None) -> None:
        self._refuse_change()

    @property
    def flash(self) -> dict[str, str]:
        return {}

    async def replace(self, text: str) -> list[str]:
        self._refuse_change()

    @property
    def rollback_time(self) -> datetime | None:
        return None

    def revert_after(self, seconds: float | None, text: str | None = None) -> None:
        self._refuse_change()

    async def revert(self) -> None:
        self._refuse_change()

    @property
    def applet_registrations(self) -> dict[str, datetime]:
        return {}

    @property
    def reload_time(self) -> datetime | None:
        return None

    def reload_after(self, seconds: float | None) -> None:
        self._refuse_change()

    async def reload(self) -> None:
        self._refuse_change()

    def opens_privileged_mode(self, password: str) -> bool:
        return False

    def user_privilege(self, name: str, password: str) -> int | None:
        return None

    @staticmethod
    def _refuse_change() -> NoReturn:
        raise NotSimulatedError("configuration that is changed while it runs")
