"""Interface from the command line to its router; `virtual_lab.iosd` implements it for a live router."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Literal, Protocol

from qoslab.errors import QoslabError
from qoslab.ios.model.device import Device
from qoslab.ios.model.hardware import Chassis, Software
from qoslab.ios.model.message_log import MessageLog
from qoslab.system import program_formats


class CommandFailedError(QoslabError):
    """The router could not execute a command."""


class DataPlaneError(CommandFailedError):
    """A request to the data plane failed."""


class DataPlaneDownError(DataPlaneError):
    """The data plane cannot be reached, hung up or did not answer in time."""


class DataPlaneRefusedError(DataPlaneError):
    """The data plane refused a request; `code` is that of the control protocol (`bad_config`, …)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class KernelRefusedError(CommandFailedError):
    """The router's IP stack refused an address, a route or an interface's state."""


class StorageError(CommandFailedError):
    """The startup configuration cannot be read or written."""


@dataclass(frozen=True, slots=True)
class PortState:
    """An interface as the router's IP stack sees it."""

    mac: str | None
    """MAC address, such as `02:00:00:00:00:01`; None on serial lines."""
    carrier: bool
    """True if the link is up at both ends."""
    mtu: int
    """Bytes of the longest IP packet."""
    link_local: IPv6Address | None = None
    """IPv6 link-local address; None without IPv6."""


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """One entry of the IP stack's routing table, of either family."""

    prefix: IPv4Network | IPv6Network
    source: Literal["connected", "local", "static"]
    next_hop: IPv4Address | IPv6Address | None
    interface: str | None
    """Full IOS name."""
    distance: int = 1


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entry of the ARP table or an IPv6 neighbour."""

    address: IPv4Address | IPv6Address
    mac: str
    interface: str
    age_minutes: int
    state: str = "REACH"
    """Neighbour state of IPv6: REACH, STALE, DELAY or PROBE."""


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Processor time of the data plane, in percent of one processor."""

    five_seconds: float
    five_seconds_kernel: float
    one_minute: float
    five_minutes: float
    processes: tuple[ProcessCpu, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of the data plane."""

    resident_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessCpu:
    """One process of the router."""

    pid: int
    runtime_ms: int
    invoked: int
    """Number of times that it ran."""
    five_seconds: float
    one_minute: float
    five_minutes: float
    name: str


@dataclass(frozen=True, slots=True)
class PingOptions:
    """Options of `ping`; both addresses are of one family."""

    address: IPv4Address | IPv6Address
    count: int = 5
    size: int = 100
    """Bytes of the IP packet."""
    timeout_s: float = 2.0
    source: IPv4Address | IPv6Address | None = None
    dont_fragment: bool = False
    tos: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    """Times of an interface's last received and sent packet, to a few seconds; None for never."""

    last_input: datetime | None = None
    last_output: datetime | None = None


PingOutcome = float | Literal["timeout", "unreachable"]
"""The round-trip time in seconds, or the reason for a missing reply."""


class RouterEnvironment(Protocol):
    """One router, shared by all logins."""

    @property
    def device(self) -> Device:
        """The running configuration; replaced by `edit`, never changed in place."""

    @property
    def boot_time(self) -> datetime:
        """Time of the router's start or last reload."""

    @property
    def was_reloaded(self) -> bool:
        """True if the last start was a `reload`."""

    @property
    def chassis(self) -> Chassis:
        """The hardware."""

    @property
    def software(self) -> Software:
        """The software image."""

    @property
    def boot_device(self) -> Device:
        """The device as configured at the router's start."""

    def current_time(self) -> datetime:
        """Return the time of the router's clock, UTC."""

    async def edit(self, change: Callable[[Device], None]) -> None:
        """Edit a copy of the running configuration with `change`, then apply it.

        Edits of several logins are serialised. If `change` raises an error, or the data plane or the IP stack refuses
        the result (`CommandFailedError`), the current configuration stays.
        """

    def data_plane_config(self) -> program_formats.DataPlaneConfig:
        """Return the active configuration of the data plane."""

    async def counters(self, interface: str | None = None) -> program_formats.Counters:
        """Return the data plane's counters."""

    async def resolve(self) -> dict[str, program_formats.ResolvedPolicy]:
        """Return the active policy-maps with defaults filled in."""

    async def ip_sla(self) -> program_formats.IpSlaReport:
        """Return the results of IP SLA in the form of the data plane (docs/internals/control-protocol.md)."""

    async def clear(self, interface: str | None = None) -> None:
        """Zero the counters of all interfaces, or of one."""

    async def qos_statistics(self) -> Mapping[str, program_formats.SwitchPortCounters]:
        """Return a switch's QoS statistics by port since they were last cleared by either command."""

    async def clear_qos_statistics(self, interface: str | None = None) -> None:
        """Zero only the QoS statistics of all ports of a switch, or of one."""

    def counters_cleared_at(self, interface: str) -> datetime | None:
        """Return the time at which the interface's counters were last cleared by command; None for never."""

    async def activity(self) -> Mapping[str, Activity]:
        """Return the times of the last packets of the interfaces, by full name."""

    async def ports(self) -> Mapping[str, PortState]:
        """Return the interfaces of the IP stack by full IOS name."""

    async def routes(self) -> list[RouteEntry]:
        """Return the routing tables of both families, without link-local prefixes."""

    async def neighbours(self) -> list[Neighbour]:
        """Return the ARP table and the IPv6 neighbours, without the router's own addresses."""

    async def cpu(self) -> CpuUse:
        """Return the processor use of the data plane."""

    async def memory(self) -> MemoryUse:
        """Return the memory use of the data plane."""

    @property
    def log(self) -> MessageLog:
        """The logged messages."""

    def ping(self, options: PingOptions) -> AsyncIterator[PingOutcome]:
        """Send ICMP echo requests from inside the router, one after the other."""

    def startup_config(self) -> str | None:
        """Return the saved configuration; None if there is none."""

    def save_startup_config(self, text: str | None) -> None:
        """Save a configuration; None erases it."""

    @property
    def flash(self) -> MutableMapping[str, str]:
        """Text files on flash memory by name; they survive a reload."""

    async def replace(self, text: str) -> list[str]:
        """Replace the whole configuration. Return the refused lines; if there are any, nothing changes."""

    @property
    def rollback_time(self) -> datetime | None:
        """Time at which the configuration is rolled back; None if no rollback is pending."""

    def revert_after(self, seconds: float | None, text: str | None = None) -> None:
        """Schedule a rollback to `text`, by default to the text already scheduled; None for `seconds` cancels it."""

    async def revert(self) -> None:
        """Roll back now to the scheduled configuration."""

    @property
    def applet_registrations(self) -> Mapping[str, datetime]:
        """Registration times of the applets with a pending countdown, by name."""

    @property
    def reload_time(self) -> datetime | None:
        """Time of the scheduled reload; None if none is scheduled."""

    def reload_after(self, seconds: float | None) -> None:
        """Schedule a reload after a time; None cancels it."""

    async def reload(self) -> None:
        """Boot from the saved configuration, which ends all logins."""

    def opens_privileged_mode(self, password: str) -> bool:
        """Return whether the password is the enable secret."""
