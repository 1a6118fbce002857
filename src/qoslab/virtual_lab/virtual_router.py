"""Virtual IOS router: a running configuration, bound to a network namespace and a data plane."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hmac import compare_digest
from pathlib import Path

from qoslab.ios.cli.grammar import CliError
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.device_config.running_config_parser import read_into, unread_as_inert_lines
from qoslab.ios.environment import (
    Activity,
    CommandFailedError,
    CpuUse,
    DataPlaneDownError,
    MemoryUse,
    Neighbour,
    PingOptions,
    PingOutcome,
    PortState,
    ProcessCpu,
    RouteEntry,
    StorageError,
)
from qoslab.ios.login import PRIVILEGED_LEVEL, USER_LEVEL
from qoslab.ios.model.applets import countdown_applets
from qoslab.ios.model.device import Device
from qoslab.ios.model.hardware import Chassis, Software
from qoslab.ios.model.message_log import MessageLog
from qoslab.ios.model.password_hash import verify
from qoslab.ios.shell import Shell
from qoslab.ios.show.catalyst.counters import subtract_counters
from qoslab.system import program_formats
from qoslab.virtual_lab.applet_timers import AppletTimers
from qoslab.virtual_lab.control import ControlClient
from qoslab.virtual_lab.countdown import ScheduledCall
from qoslab.virtual_lab.stack import IpStack

SAMPLE_INTERVAL_S = 5.0
"""Sampling interval of processor time and interface activity, in seconds."""
SAMPLES = 61
"""Number of kept samples, for five minutes."""
PROCESS_NAME = "QoS Data Plane"
"""Name of the only process in `show processes cpu`."""


@dataclass(frozen=True, slots=True)
class _CpuSample:
    user_s: float
    kernel_s: float
    switches: int


@dataclass(frozen=True)
class Make:
    """Model of a virtual router."""

    chassis: Chassis
    software: Software
    blank: Device
    """Device without any configuration; its hostname is the router's name."""


@dataclass(frozen=True)
class Bound:
    """Backends of a virtual router's configuration: execution and storage."""

    control: ControlClient
    stack: IpStack
    startup_path: Path
    """Path of the startup configuration."""


class VirtualRouter:
    """Implementation of `qoslab.ios.environment.RouterEnvironment` for a running router."""

    def __init__(self, make: Make, bound: Bound, *, enable_secret: str, log: Callable[[str], None]) -> None:
        self.name = make.blank.hostname
        self._make = make
        self._control = bound.control
        # On a separate connection, so that a command never waits behind a sample.
        self._sampling = ControlClient(bound.control.path)
        self._stack = bound.stack
        self._startup_path = bound.startup_path
        self._enable_secret = enable_secret
        self._report = log
        blank = make.blank
        self._device = blank.copy()
        self._boot_device = self._device
        self._booted = self.current_time()
        self._reloaded = False
        self._wired: frozenset[str] = frozenset()
        self._in_force: program_formats.DataPlaneConfig | None = None
        self._editing = asyncio.Lock()
        self._cleared: dict[str, datetime] = {}
        self._statistics_cleared: dict[str, program_formats.SwitchPortCounters] = {}
        self._activity: dict[str, Activity] = {name: Activity() for name in blank.interfaces}
        self._seen: dict[str, tuple[int, int]] = {}
        self._cpu: deque[_CpuSample] = deque(maxlen=SAMPLES)
        self._sampler: asyncio.Task[None] | None = None
        self.log = MessageLog()
        """Logged messages."""
        self.on_reload: Callable[[], None] = lambda: None
        """Callback at a reload, which ends the logins."""
        self.flash: dict[str, str] = {}
        """Text files in flash memory."""
        self._reload = ScheduledCall(self.reload)
        self._revert = ScheduledCall(self.revert)
        self._reverted_to = ""
        self._applets = AppletTimers(self._run_applet)

    # Start and end

    async def start(self) -> list[str]:
        """Boot from the startup configuration; return the refused lines, each with its reason."""
        await self._stack.open()
        self._wired = frozenset(name for name in await self._stack.ports() if "." not in name)
        refused = await self._boot()
        self._sampler = asyncio.create_task(self._sample_forever())
        return refused

    async def close(self) -> None:
        """Disconnect from the data plane and the namespace; both stay unchanged."""
        if self._sampler is not None:
            self._sampler.cancel()
            await asyncio.gather(self._sampler, return_exceptions=True)
        self._reload.stop()
        self._revert.stop()
        self._applets.follow({})
        await self._control.close()
        await self._sampling.close()
        await self._stack.close()

    async def _boot(self) -> list[str]:
        device, refused = load_configuration(self._make.blank, self.startup_config() or "")
        async with self._editing:
            await self._activate(device)
        self._boot_device = self._device
        self._booted = self.current_time()
        return refused

    async def reload(self) -> None:
        """Boot from the startup configuration; ends all logins."""
        self._reload.stop()
        self._revert.stop()
        self._applets.follow({})
        self.on_reload()
        for line in await self._boot():
            self._report(f"{self.name}: startup configuration: {line}")
        await self.clear()
        self._cleared.clear()
        self._reloaded = True

    # Configuration

    @property
    def device(self) -> Device:
        """Running configuration."""
        return self._device

    @property
    def boot_device(self) -> Device:
        """Configuration with which the router started."""
        return self._boot_device

    async def edit(self, change: Callable[[Device], None]) -> None:
        """Let `change` edit a copy of the running configuration and activate it; on an error, change nothing."""
        async with self._editing:
            device = self._device.copy()
            change(device)
            if device == self._device:
                # Equal devices may still differ in parts without effect, such as sequence numbers.
                self._device = device
            else:
                had_qos = self._device.switch is not None and self._device.switch.enabled
                await self._activate(device)
                if had_qos and device.switch is not None and not device.switch.enabled:
                    # `no mls qos` clears the statistics.
                    await self.clear_qos_statistics()

    async def _activate(self, device: Device) -> None:
        config = compile_device(device)
        # The data plane uses the name of the node, since the hostname may change.
        config["router"] = self.name
        # The data plane has only ports with a cable.
        config["interfaces"] = {name: port for name, port in config["interfaces"].items() if name in self._wired}
        previous = self._in_force
        try:
            inside = await self._stack.make_subinterfaces(device, self._wired)
            for port in config["interfaces"].values():
                for name, subinterface in port.get("subinterfaces", {}).items():
                    subinterface["inside"] = inside[name]
            await self._change(device, config, previous)
        finally:
            await self._stack.remove_subinterfaces(self._device, self._wired)

    async def _change(
        self, device: Device, config: program_formats.DataPlaneConfig, previous: program_formats.DataPlaneConfig | None
    ) -> None:
        if config != previous:
            await self._control.configure(config)
        try:
            if previous is None or _network_part(device) != _network_part(self._device):
                await self._stack.apply(device)
        except CommandFailedError:
            await self._stack.apply(self._device)
            if previous is not None and config != previous:
                await self._control.configure(previous)
            raise
        self._in_force = config
        self._device = device
        self._applets.follow(countdown_applets(device))

    async def replace(self, text: str) -> list[str]:
        """Activate a complete configuration; return the refused lines, because of which nothing is changed."""
        device, refused = load_configuration(self._make.blank, text)
        if not refused:
            async with self._editing:
                await self._activate(device)
        return refused

    @property
    def rollback_time(self) -> datetime | None:
        """Time of the scheduled return to an earlier configuration; None if not scheduled."""
        return self._revert.at

    def revert_after(self, seconds: float | None, text: str | None = None) -> None:
        """Schedule the activation of `text`, or of the text given before, after this time; None cancels it."""
        self._reverted_to = self._reverted_to if text is None else text
        if seconds is None:
            self._revert.stop()
        else:
            self._revert.start(seconds)

    async def revert(self) -> None:
        """Activate the earlier configuration now."""
        self._revert.stop()
        for line in await self.replace(self._reverted_to):
            self._report(f"{self.name}: reverting: {line}")

    @property
    def applet_registrations(self) -> Mapping[str, datetime]:
        """Registration times of the waiting applets."""
        return self._applets.registration_times

    async def _run_applet(self, commands: Sequence[str]) -> None:
        """Execute the commands of an applet, on a separate terminal, without asking for secrets."""
        shell = Shell(self, lambda _: None, privilege=PRIVILEGED_LEVEL)
        shell.feed("".join(f"{command}\r" for command in commands))
        shell.end_input()
        await shell.run()

    @property
    def reload_time(self) -> datetime | None:
        """Time of the scheduled reload; None if not scheduled."""
        return self._reload.at

    def reload_after(self, seconds: float | None) -> None:
        """Schedule a reload after this time; None cancels it."""
        if seconds is None:
            self._reload.stop()
        else:
            self._reload.start(seconds)

    def data_plane_config(self) -> program_formats.DataPlaneConfig:
        """Return the active configuration of the data plane."""
        if self._in_force is None:
            raise DataPlaneDownError(f"{self.name} has not been started")
        return self._in_force

    def startup_config(self) -> str | None:
        """Saved configuration."""
        try:
            return self._startup_path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"startup-config cannot be read: {error}") from error

    def save_startup_config(self, text: str | None) -> None:
        """Save a configuration, or erase it."""
        try:
            if text is None:
                self._startup_path.unlink(missing_ok=True)
                return
            # Written to a temporary file and renamed, so that a crash leaves the old or the new one.
            fresh = self._startup_path.with_name(self._startup_path.name + ".new")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self._startup_path)
        except OSError as error:
            raise StorageError(f"startup-config cannot be written: {error}") from error

    def opens_privileged_mode(self, password: str) -> bool:
        """Return whether the password is the enable secret: the configured one, else the lab's."""
        secret = self._device.enable_secret
        if secret is not None:
            return verify(secret, password)
        return compare_digest(password.encode(), self._enable_secret.encode())

    def user_privilege(self, name: str, password: str) -> int | None:
        """Return the privilege of a user of the running configuration; None without such a user or password."""
        user = self._device.users.get(name)
        if user is None or user.secret is None or not verify(user.secret, password):
            return None
        return USER_LEVEL if user.privilege is None else user.privilege

    # State

    @property
    def chassis(self) -> Chassis:
        """Hardware of the router."""
        return self._make.chassis

    @property
    def software(self) -> Software:
        """Software image."""
        return self._make.software

    @property
    def boot_time(self) -> datetime:
        """Time of the start or the last reload."""
        return self._booted

    @property
    def was_reloaded(self) -> bool:
        """True if the last start was a reload."""
        return self._reloaded

    def current_time(self) -> datetime:
        """Return the time of the machine's clock."""
        return datetime.now(UTC)

    async def ports(self) -> Mapping[str, PortState]:
        """Return the wired interfaces."""
        return await self._stack.ports()

    async def routes(self) -> list[RouteEntry]:
        """Return the kernel's routing table."""
        loopbacks = (each for each in self._device.host_interfaces.values() if not each.shutdown)
        own = [RouteEntry(each.address.network, "connected", None, each.name) for each in loopbacks if each.address]
        return [*await self._stack.routes(), *own]

    async def neighbours(self) -> list[Neighbour]:
        """Return the kernel's ARP table."""
        return await self._stack.neighbours()

    def ping(self, options: PingOptions) -> AsyncIterator[PingOutcome]:
        """Send echo requests from the router's namespace."""
        return self._stack.ping(options)

    # formats.Counters

    async def counters(self, interface: str | None = None) -> program_formats.Counters:
        """Return the counters of the data plane."""
        counters = await self._control.counters(interface)
        self._observe(counters)
        return counters

    async def resolve(self) -> dict[str, program_formats.ResolvedPolicy]:
        """Return the active policy-maps with defaults filled in."""
        return await self._control.resolve()

    async def ip_sla(self) -> program_formats.IpSlaReport:
        """Return the results of IP SLA."""
        return await self._control.ip_sla()

    async def clear(self, interface: str | None = None) -> None:
        """Zero the counters."""
        await self._control.clear(interface)
        moment = self.current_time()
        for name in self._device.interfaces if interface is None else (interface,):
            self._cleared[name] = moment
            self._seen[name] = (0, 0)
            self._statistics_cleared.pop(name, None)

    async def qos_statistics(self) -> Mapping[str, program_formats.SwitchPortCounters]:
        """Return the statistics of the data plane since `clear mls qos interface statistics`."""
        counted: dict[str, program_formats.SwitchPortCounters] = {}
        for name, interface in (await self.counters())["interfaces"].items():
            now = interface.get("switch")
            if now is not None:
                before = self._statistics_cleared.get(name)
                if before is not None and sum(map(sum, now["enqueued"])) < sum(map(sum, before["enqueued"])):
                    # All counters were cleared since, over the socket of the data plane.
                    before = None
                    del self._statistics_cleared[name]
                counted[name] = now if before is None else subtract_counters(now, before)
        return counted

    async def clear_qos_statistics(self, interface: str | None = None) -> None:
        """Save the current counters as the new zero."""
        for name, each in (await self.counters(interface))["interfaces"].items():
            now = each.get("switch")
            if now is not None and interface in (None, name):
                self._statistics_cleared[name] = now

    def counters_cleared_at(self, interface: str) -> datetime | None:
        """Return the time at which the interface's counters were cleared."""
        return self._cleared.get(interface)

    async def activity(self) -> Mapping[str, Activity]:
        """Return the times at which the interfaces last carried packets, to the precision of the sampling interval."""
        return self._activity

    def _observe(self, counters: program_formats.Counters) -> None:
        moment = self.current_time()
        for name, interface in counters["interfaces"].items():
            now = (interface["input"]["packets"], interface["output"]["packets"])
            before = self._seen.get(name, (0, 0))
            last = self._activity.get(name, Activity())
            self._activity[name] = Activity(
                moment if now[0] > before[0] else last.last_input, moment if now[1] > before[1] else last.last_output
            )
            self._seen[name] = now

    # Processor

    async def cpu(self) -> CpuUse:
        """Return the processor use of the data plane over the last five seconds, minute and five minutes."""
        pid = await self._control.peer_pid()
        if not self._cpu:
            self._cpu.append(_read_cpu(pid))
        newest = self._cpu[-1]
        five, minute, five_minutes = (self._cpu_percent(seconds) for seconds in (5, 60, 300))
        total = newest.user_s + newest.kernel_s
        process = ProcessCpu(
            pid=pid,
            runtime_ms=int(1000 * total),
            invoked=newest.switches,
            five_seconds=sum(five),
            one_minute=sum(minute),
            five_minutes=sum(five_minutes),
            name=PROCESS_NAME,
        )
        return CpuUse(
            five_seconds=sum(five),
            five_seconds_kernel=five[1],
            one_minute=sum(minute),
            five_minutes=sum(five_minutes),
            processes=(process,),
        )

    async def memory(self) -> MemoryUse:
        """Return the resident memory of the data plane (proc(5), /proc/PID/statm)."""
        pages = int(Path(f"/proc/{await self._control.peer_pid()}/statm").read_text(encoding="utf-8").split()[1])
        return MemoryUse(pages * os.sysconf("SC_PAGE_SIZE"))

    def _cpu_percent(self, seconds: int) -> tuple[float, float]:
        """Return user and kernel time in percent over the last `seconds`, or over the sampled part of them."""
        steps = min(round(seconds / SAMPLE_INTERVAL_S), len(self._cpu) - 1)
        if steps <= 0:
            return 0.0, 0.0
        newest, oldest = self._cpu[-1], self._cpu[-1 - steps]
        span = steps * SAMPLE_INTERVAL_S
        return 100 * (newest.user_s - oldest.user_s) / span, 100 * (newest.kernel_s - oldest.kernel_s) / span

    async def _sample_forever(self) -> None:
        while True:
            try:
                self._observe(await self._sampling.counters())
                self._cpu.append(_read_cpu(await self._sampling.peer_pid()))
            except (DataPlaneDownError, OSError):
                self._cpu.clear()
            await asyncio.sleep(SAMPLE_INTERVAL_S)


def _network_part(device: Device) -> tuple[object, ...]:
    """Return the part of a configuration that concerns the IP stack."""
    interfaces = device.interfaces.values()
    return (
        [
            (
                *(each.name, device.is_shut_down(each), each.vlan, each.address, each.secondary_addresses),
                *(each.ipv6_addresses, each.ipv6_link_local, each.ipv6_enable, each.circuit is not None),
                *(each.mtu, each.ip_mtu, each.ipv6_mtu),
            )
            for each in interfaces
        ],
        device.host_interfaces,
        device.routes,
        device.ipv6_unicast_routing,
    )


def _read_cpu(pid: int) -> _CpuSample:
    """Return processor time (proc(5), /proc/PID/stat) and number of context switches of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    switches = sum(
        int(line.split()[1])
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        if line.startswith(("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"))
    )
    return _CpuSample(int(fields[11]) / ticks, int(fields[12]) / ticks, switches)


def load_configuration(blank: Device, text: str) -> tuple[Device, list[str]]:
    """Read a configuration text; return the device and the refused lines, each with its reason.

    Lines that `blank` has as clutter are accepted in their place, without effect.
    """
    if blank.clutter:
        return _load_inert_lines(blank, text)
    device = blank.copy()
    session = ConfigSession(device)
    refused: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            session.execute(line)
        except CliError as error:
            refused.append(f"line {number}: {line.strip()!r}: {error.message}")
        if session.finished:
            break
    return device, refused


def _load_inert_lines(blank: Device, text: str) -> tuple[Device, list[str]]:
    reading = read_into(blank.copy(), text)
    found = unread_as_inert_lines(reading)
    known = frozenset(blank.clutter)
    reading.device.clutter = tuple(each for each in found if each in known)
    unknown = (line for line, each in zip(reading.unread, found, strict=True) if each not in known)
    return reading.device, [f"{line.text!r}: {line.reason}" for line in unknown]
