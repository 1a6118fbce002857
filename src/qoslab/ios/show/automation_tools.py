"""Show commands of inventory and automation tools, in addition to `show version`.

Genie's parsers of these commands can read the layouts. Parts that a virtual router lacks are printed
as empty, in the words of a router.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from qoslab.ios.environment import MemoryUse, PortState
from qoslab.ios.model.device import Device
from qoslab.ios.model.hardware import Chassis
from qoslab.ios.model.ios_names import short_name
from qoslab.ios.model.message_log import MessageLog
from qoslab.ios.show import join_lines
from qoslab.ios.show.interfaces import interface_states

CAPABILITIES = (
    "Capability Codes: R - Router, T - Trans Bridge, B - Source Route Bridge",
    "                  S - Switch, H - Host, I - IGMP, r - Repeater",
    "",
    "Device ID        Local Intrfce     Holdtme    Capability  Platform  Port ID",
)
LLDP_CAPABILITIES = (
    "Capability codes:",
    "    (R) Router, (B) Bridge, (T) Telephone, (C) DOCSIS Cable Device",
    "    (W) WLAN Access Point, (P) Repeater, (S) Station, (O) Other",
    "",
    "Device ID           Local Intf     Hold-time  Capability      Port ID",
    "",
    "Total entries displayed: 0",
)
PHYSICAL = "V01"
"""Hardware version [I]."""


def show_inventory(device: Device, chassis: Chassis) -> str:
    """Return the product and serial number of the chassis."""
    if device.hardware.family == "switch":
        model = re.search(r"WS-\S+", chassis.chassis)
        name, described = "1", chassis.name if model is None else model[0]
        product = described
    else:
        name = described = f"{chassis.name} chassis"
        product = f"CISCO{chassis.name}"
    return join_lines(
        [f'NAME: "{name}", DESCR: "{described}"', f"PID: {product:<18}, VID: {PHYSICAL} , SN: {chassis.board_id}", ""]
    )


def show_interfaces_description(device: Device, ports: Mapping[str, PortState]) -> str:
    """Return a line for each interface with its description."""
    lines = ["Interface                      Status         Protocol Description"]
    for name, interface in device.interfaces.items():
        status, protocol = interface_states(interface, ports.get(name))
        status = "admin down" if interface.shutdown else status
        lines.append(f"{short_name(name):<31}{status:<15}{protocol:<9}{interface.description or ''}".rstrip())
    return join_lines(lines)


def show_interfaces_status(device: Device, ports: Mapping[str, PortState]) -> str:
    """Return a line for each port of a switch."""
    lines = ["", "Port      Name               Status       Vlan       Duplex  Speed Type"]
    for name, interface in device.interfaces.items():
        up = interface_states(interface, ports.get(name))[1] == "up"
        status = "disabled" if interface.shutdown else "connected" if up else "notconnect"
        port = interface.port
        vlan = "routed" if port is not None and not port.switched else "1" if port is None else str(port.access_vlan)
        if port is not None and port.switched and port.mode == "trunk":
            vlan = "trunk"
        speed = interface.speed if interface.speed != "auto" else "a-1000" if up else "auto"
        duplex = interface.duplex if interface.duplex != "auto" else "a-full" if up else "auto"
        described = (interface.description or "")[:18]
        lines.append(
            f"{short_name(name):<10}{described:<19}{status:<13}{vlan:<10} {duplex:>6} {speed:>6} 10/100/1000BaseTX"
        )
    return join_lines(lines)


def show_vlan(device: Device) -> str:
    """Return the VLANs of a switch with their access ports."""
    names = {1: "default"} | {
        number: name or f"VLAN{number:04}" for number, name in device.mls_qos.vlans if number != 1
    }
    rows = [
        "",
        "VLAN Name                             Status    Ports",
        "---- -------------------------------- --------- -------------------------------",
    ]
    for number, name in sorted(names.items()):
        ports = [
            short_name(each.name)
            for each in device.interfaces.values()
            if each.port is not None
            and each.port.switched
            and each.port.mode != "trunk"
            and each.port.access_vlan == number
        ]
        parts = [", ".join(ports[start : start + 4]) for start in range(0, len(ports), 4)] or [""]
        rows.append(f"{number:<4} {name:<32} active    {parts[0]}".rstrip())
        rows += [f"{'':<48}{part}" for part in parts[1:]]
    return join_lines(rows)


def show_cdp_neighbors(device: Device) -> str:
    """Return an empty list: no node of a lab uses CDP."""
    if device.inert.find("cdp run") is not None:
        return "% CDP is not enabled\n"
    return join_lines([*CAPABILITIES])


def show_lldp_neighbors(device: Device) -> str:
    """Return an empty list: no node of a lab uses LLDP, which is off by default."""
    if device.inert.find("lldp run") is None:
        return "% LLDP is not enabled\n"
    return join_lines([*LLDP_CAPABILITIES])


def show_users() -> str:
    """Return the current login only: other logins are not visible."""
    return join_lines(
        [
            "    Line       User       Host(s)              Idle       Location",
            "*  2 vty 0                idle                 00:00:00 ",
            "",
            "  Interface    User               Mode         Idle     Peer Address",
            "",
        ]
    )


def show_boot(device: Device, chassis: Chassis) -> str:
    """Return the settings for the router's next boot."""
    images = [line.text.removeprefix("boot system ") for line in device.inert if line.text.startswith("boot system ")]
    listed = ";".join(f"{image.removeprefix('flash ')},1" for image in images)
    return join_lines(
        [
            f"BOOT variable = {listed + ';' if listed else ''}",
            "CONFIG_FILE variable = ",
            "BOOTLDR variable = ",
            f"Configuration register is {chassis.register}",
        ]
    )


def directory_listing(files: Mapping[str, int], where: str, total: int, now: datetime, free: int | None = None) -> str:
    """Return the files of a file system with sizes in bytes; without `free`, these files are all of its content."""
    lines = [f"Directory of {where}", ""]
    lines += [
        f"{number:5}  -rw-{size:12}  {now:%b} {now.day:2} {now.year} {now:%H:%M:%S} +00:00  {name}"
        for number, (name, size) in enumerate(files.items(), 1)
    ]
    if not files:
        lines.append("No files in directory")
    free = total - sum(files.values()) if free is None else free
    return join_lines([*lines, "", f"{total} bytes total ({free} bytes free)"])


def show_memory(chassis: Chassis, used: MemoryUse) -> str:
    """Return the memory of the chassis; used processor memory is that of the data plane."""
    sizes = re.search(r"with (\d+)K(?:/(\d+)K)? bytes of memory", chassis.chassis)
    processor, packets = (0, 0) if sizes is None else (1024 * int(sizes[1]), 1024 * int(sizes[2] or 0))
    lines = ["                Head    Total(b)     Used(b)     Free(b)   Lowest(b)  Largest(b)"]
    for name, total, taken in (("Processor", processor, used.resident_bytes), ("I/O", packets, 0)):
        if total:
            free = max(total - taken, 0)
            lines.append(f"{name:>9}   00000000{total:12}{min(taken, total):12}{free:12}{free:12}{free:12}")
    return join_lines(lines)


def show_logging(device: Device, log: MessageLog) -> str:
    """Return the state of logging and the buffered messages."""
    size = device.logging_buffered or 4096
    buffered = device.logging_buffered_level or "debugging"
    console = f"level {device.logging_console_level or 'debugging'}, {log.count} messages logged, xml disabled,"
    lines = [
        "Syslog logging: enabled (0 messages dropped, 0 messages rate-limited, 0 flushes, 0 overruns,"
        " xml disabled, filtering disabled)",
        "",
        "No Active Message Discriminator.",
        "",
        "",
        "",
        "No Inactive Message Discriminator.",
        "",
        "",
    ]
    if device.logging_console:
        lines += [f"    Console logging: {console}", "                     filtering disabled"]
    else:
        lines.append("    Console logging: disabled")
    lines += [
        "    Monitor logging: level debugging, 0 messages logged, xml disabled,",
        "                     filtering disabled",
        f"    Buffer logging:  level {buffered}, {log.count} messages logged, xml disabled,",
        "                    filtering disabled",
        f"    Exception Logging: size ({size} bytes)",
        "    Count and timestamp logging messages: disabled",
        "    Persistent logging: disabled",
        "",
        "No active filter modules.",
        "",
        f"    Trap logging: level informational, {log.count} message lines logged",
        "",
        f"Log Buffer ({size} bytes):",
        "",
    ]
    lines += [
        f"*{at:%b} {at.day:2} {at:%H:%M:%S}.{at.microsecond // 1000:03}: {each.text}"
        for each in log.messages
        for at in (each.moment,)
    ]
    return join_lines(lines)
