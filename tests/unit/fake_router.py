"""Router for tests of the command line: the device model is real, the test supplies the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Interface
from typing import Any

from qoslab.ios.environment import (
    Activity,
    CpuUse,
    DataPlaneRefusedError,
    MemoryUse,
    Neighbour,
    PingOptions,
    PingOutcome,
    PortState,
    ProcessCpu,
    RouteEntry,
)
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.message_log import MessageLog
from qoslab.ios.shell import Shell
from qoslab.ios.show.interfaces import unwired_counters
from qoslab.platforms import MODELS
from qoslab.system import program_formats
from qoslab.virtual_lab.virtual_router import load_configuration


def interface_counters(**replace: Any) -> program_formats.InterfaceCounters:
    """Return the counters of an idle interface."""
    idle = unwired_counters(Interface("FastEthernet0/0"), MODELS["3725"])
    return {**idle, "tx_ring": {"limit": 64, "depth": 0}, **replace}  # type: ignore[typeddict-item]


def class_counters(name: str = "class-default", **replace: Any) -> dict[str, Any]:
    """Return the counters of a class without packets."""
    none = {"packets": 0, "bytes": 0}
    return {
        "name": name,
        "match": "any",
        "criteria": [{"packets": 0, "bytes": 0, "rate_bps": 0.0}],
        "packets": 0,
        "bytes": 0,
        "offered_rate_bps": 0.0,
        "drop_rate_bps": 0.0,
        "drops": {"police": none, "tail": none, "flow": none, "purged": none}
        | {"priority": none, "random": none, "random_tail": none, "aqm": none},
        "set": [],
        "map": [],
        "police": None,
        "shape": None,
        "queue": None,
        "bandwidth": None,
        "priority": None,
        "random_detect": None,
        "child": None,
        **replace,
    }


class FakeRouter:
    """Environment with fixed answers; `refuse` makes the data plane refuse the next configuration."""

    def __init__(self, model: str = "3725") -> None:
        self.model = MODELS[model]
        hardware = self.model.hardware()
        self.device = Device(hardware, hostname="R1")
        for interface, subnet in zip(list(self.device.interfaces.values())[:2], (10, 20), strict=True):
            interface.address = IPv4Interface(f"192.168.{subnet}.1/24")
            if interface.port is not None:
                interface.port = replace(interface.port, switched=False)
        self.boot_device = self.device.copy()
        self.chassis = self.model
        self.software = self.model.software(hardware.generation)
        self.was_reloaded = False
        self.moment = datetime(2026, 3, 2, 10, 20, 30, 123_000, tzinfo=UTC)
        self.boot_time = self.moment - timedelta(days=1, hours=2, minutes=33)
        self.startup: str | None = None
        self.refuse: str | None = None
        self.cleared_interfaces: list[str | None] = []
        self.cleared_statistics: list[str | None] = []
        self.config: dict[str, Any] = {
            "generation": hardware.generation,
            "class_maps": {},
            "policy_maps": {},
            "access_lists": {},
        }
        self.resolved: dict[str, Any] = {}
        self.interfaces = {name: interface_counters() for name in self.device.interfaces}
        self.outcomes: list[PingOutcome] = [0.001] * 5
        self.pinged: list[PingOptions] = []
        self.reloads = 0
        self.flash: dict[str, str] = {}
        self.rollback_time: datetime | None = None
        self.reverted_to = ""
        self.reload_time: datetime | None = None
        self.applet_registrations: dict[str, datetime] = {}
        self.log = MessageLog()

    def current_time(self) -> datetime:
        return self.moment

    async def edit(self, change: Callable[[Device], None]) -> None:
        device = self.device.copy()
        change(device)
        if device != self.device and self.refuse is not None:
            raise DataPlaneRefusedError("bad_config", self.refuse)
        self.device = device

    def data_plane_config(self) -> Mapping[str, Any]:
        return self.config

    async def counters(self, interface: str | None = None) -> program_formats.Counters:
        return {
            "ok": True,
            "time_ns": 0,
            "uptime_ns": 0,
            "interfaces": self.interfaces,
            "access_lists": {},
            "health": {},
        }

    async def resolve(self) -> dict[str, Any]:
        return self.resolved

    async def qos_statistics(self) -> Mapping[str, program_formats.SwitchPortCounters]:
        counted = {name: each.get("switch") for name, each in self.interfaces.items()}
        return {name: each for name, each in counted.items() if each is not None}

    async def clear_qos_statistics(self, interface: str | None = None) -> None:
        self.cleared_statistics.append(interface)

    async def ip_sla(self) -> dict[str, Any]:
        return {"operations": {}, "responder": None}

    async def clear(self, interface: str | None = None) -> None:
        self.cleared_interfaces.append(interface)

    def counters_cleared_at(self, interface: str) -> datetime | None:
        return None

    async def activity(self) -> Mapping[str, Activity]:
        return {name: Activity(self.moment - timedelta(seconds=2)) for name in self.device.interfaces}

    async def ports(self) -> Mapping[str, PortState]:
        return {
            name: PortState(f"02:00:00:00:00:{number:02x}", True, 1500)
            for number, name in enumerate(self.device.interfaces)
        }

    async def routes(self) -> list[RouteEntry]:
        return [
            RouteEntry(interface.address.network, "connected", None, name)
            for name, interface in self.device.interfaces.items()
            if interface.address is not None
        ]

    async def neighbours(self) -> list[Neighbour]:
        return []

    async def cpu(self) -> CpuUse:
        return CpuUse(8.2, 5.8, 7.6, 5.1, (ProcessCpu(321, 4120, 12034, 8.2, 7.6, 5.1, "QoS Data Plane"),))

    async def memory(self) -> MemoryUse:
        return MemoryUse(20_000_000)

    async def ping(self, options: PingOptions) -> AsyncIterator[PingOutcome]:
        self.pinged.append(options)
        for outcome in self.outcomes[: options.count]:
            await asyncio.sleep(0)
            yield outcome
        if not self.outcomes:
            await asyncio.sleep(3600)

    def startup_config(self) -> str | None:
        return self.startup

    def save_startup_config(self, text: str | None) -> None:
        self.startup = text

    async def reload(self) -> None:
        self.reloads += 1

    async def replace(self, text: str) -> list[str]:
        device, refused = load_configuration(Device(self.device.hardware, hostname="R1"), text)
        if not refused:
            self.device = device
        return refused

    def revert_after(self, seconds: float | None, text: str | None = None) -> None:
        self.reverted_to = self.reverted_to if text is None else text
        self.rollback_time = None if seconds is None else self.moment + timedelta(seconds=seconds)

    async def revert(self) -> None:
        self.rollback_time = None
        assert not await self.replace(self.reverted_to)

    def reload_after(self, seconds: float | None) -> None:
        self.reload_time = None if seconds is None else self.moment + timedelta(seconds=seconds)

    def opens_privileged_mode(self, password: str) -> bool:
        return password == "opensesame"


def erase_on_copy_router(router: FakeRouter) -> None:
    """Make the router one that offers to erase its flash before a file is copied there."""
    line = "32768K bytes of processor board System flash (Read/Write)"
    router.chassis = replace(router.chassis, memory_lines=(line,))


def type_lines(router: FakeRouter, text: str, *, privilege: int = 15) -> str:
    """Return the whole output of a login in which the client sends `text` and disconnects; line ends as `\\n`."""

    async def run() -> str:
        printed: list[str] = []
        shell = Shell(router, printed.append, privilege=privilege)
        shell.feed(text)
        shell.end_input()
        await asyncio.wait_for(shell.run(), 5)
        return "".join(printed).replace("\r\n", "\n")

    return asyncio.run(run())
