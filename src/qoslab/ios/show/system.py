"""`show version`, `show clock`, `show processes cpu`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from qoslab.ios.environment import CpuUse
from qoslab.ios.model.device import Device
from qoslab.ios.model.hardware import Chassis, Software
from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.show.times import clock_text, uptime_text

_SPELT = {"GigabitEthernet": "Gigabit Ethernet", "TenGigabitEthernet": "Ten Gigabit Ethernet"}
"""Kinds of interfaces with different names in counters and configuration."""


def show_version(
    device: Device, chassis: Chassis, software: Software, *, now: datetime, booted: datetime, reloaded: bool
) -> str:
    """Return `show version`: image, uptime and hardware. `reloaded` is true if the last start was a `reload`."""
    image_file = chassis.image_file(device.generation)
    kinds = Counter(interface_kind(name) for name in device.hardware.interfaces)
    xe = software.xe_version
    train = "" if xe is None else f" [{software.train_name}]"
    uptime = uptime_text(now - booted)
    lines = [
        *(() if xe is None else (f"Cisco IOS XE Software, Version {xe}",)),
        f"Cisco IOS Software{train}, {chassis.software_family} Software ({chassis.image}), Version {software.version},"
        f" RELEASE SOFTWARE ({software.build})",
        "Technical Support: http://www.cisco.com/techsupport",
        f"Copyright (c) 1986-{software.copyright_year} by Cisco Systems, Inc.",
        f"Compiled {software.compilation_note}",
        "",
        *(() if xe is None else (*_xe_copyright(software.copyright_year), "")),
        f"ROM: {chassis.bootstrap}",
        *chassis.rom_lines,
        "",
        f"{device.hostname} uptime is {uptime}",
        *(() if xe is None else (f"Uptime for this control processor is {uptime}",)),
        f"System returned to ROM by {'reload' if reloaded else 'power-on'}",
        f'System image file is "{"flash" if xe is None else "bootflash"}:{image_file}"',
        *(() if xe is None else (f"Last reload reason: {'Reload Command' if reloaded else 'PowerOn'}",)),
        "",
        chassis.chassis,
        f"Processor board ID {chassis.board_id}",
        *chassis.processor_lines,
        *(f"{count} {_SPELT.get(kind, kind)} interface{'' if count == 1 else 's'}" for kind, count in kinds.items()),
        *chassis.memory_lines,
        "",
        f"Configuration register is {chassis.register}",
        "",
    ]
    return "".join(line + "\n" for line in lines)


def _xe_copyright(year: int) -> tuple[str, ...]:
    return (
        "",
        f"Cisco IOS-XE software, Copyright (c) 2005-{year} by cisco Systems, Inc.",
        "All rights reserved.  Certain components of Cisco IOS-XE software are",
        'licensed under the GNU General Public License ("GPL") Version 2.0.',
        "",
    )


def show_clock(now: datetime) -> str:
    """Return `show clock`."""
    return clock_text(now) + "\n"


def show_processes_cpu(cpu: CpuUse) -> str:
    """Return `show processes cpu`: the processor use of the data plane.

    The first value is its total processor time in percent of one processor, the second the time in the kernel's packet
    input and output: the closest equivalent of a router's interrupt-level forwarding.
    """
    lines = [
        f"CPU utilization for five seconds: {cpu.five_seconds:.0f}%/{cpu.five_seconds_kernel:.0f}%;"
        f" one minute: {cpu.one_minute:.0f}%; five minutes: {cpu.five_minutes:.0f}%",
        " PID Runtime(ms)   Invoked      uSecs   5Sec   1Min   5Min TTY Process ",
    ]
    for process in cpu.processes:
        each = process.runtime_ms * 1000 // process.invoked if process.invoked else 0
        lines.append(
            f"{process.pid:4}{process.runtime_ms:12}{process.invoked:11}{each:11}"
            f" {process.five_seconds:5.2f}% {process.one_minute:5.2f}% {process.five_minutes:5.2f}%   0"
            f" {process.name:<17}"
        )
    return "".join(line + "\n" for line in lines)
