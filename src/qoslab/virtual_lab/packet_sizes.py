"""MTU of a virtual router's interfaces in its kernel.

For IPv4, it is an attribute of the kernel's routes, for IPv6, a setting of the interface. The interface itself keeps
its frame size, so that longer packets from the other end are still received.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.mtu import DEFAULT_MTU, ip_mtu, ipv6_mtu
from qoslab.ios.model.routes import IpAddress

RT_SCOPE_LINK = 253
RTPROT_KERNEL = 2
RT_TABLE_MAIN = 254
IPV6_SETTINGS = Path("/proc/sys/net/ipv6/conf")


def route_mtu(device: Device, gateway: IpAddress | None, interface: str | None) -> int | None:
    """Return the MTU of a static IPv4 route, by its gateway or its interface; None: that of the interface."""
    if gateway is not None and not isinstance(gateway, IPv4Address):
        return None
    for each in device.interfaces.values():
        addresses = () if each.address is None else (each.address, *each.secondary_addresses)
        if each.name == interface or (gateway is not None and any(gateway in one.network for one in addresses)):
            return _mtu_limit(device, each)
    return None


def _mtu_limit(device: Device, interface: Interface) -> int | None:
    most = ip_mtu(device, interface)
    return None if most == DEFAULT_MTU else most


def apply(netlink: IPRoute, device: Device, names: Mapping[int, str]) -> None:
    """Set the MTU of connected networks as in `device`; `names` are the full names by kernel number.

    Call it after addresses and states of interfaces are set, since changing either removes these settings.
    """
    for route in netlink.get_routes(family=socket.AF_INET, table=RT_TABLE_MAIN):
        interface = device.interfaces.get(names.get(route.get_attr("RTA_OIF"), ""))
        if route["proto"] != RTPROT_KERNEL or interface is None:
            continue
        wanted = _mtu_limit(device, interface)
        if kernel_mtu(route) == wanted:
            continue
        keys: dict[str, Any] = {} if wanted is None else {"metrics": {"mtu": wanted}}
        netlink.route(
            "replace",
            dst=f"{route.get_attr('RTA_DST')}/{route['dst_len']}",
            oif=route.get_attr("RTA_OIF"),
            prefsrc=route.get_attr("RTA_PREFSRC"),
            scope=RT_SCOPE_LINK,
            proto=RTPROT_KERNEL,
            **keys,
        )


def apply_ipv6(device: Device, linux: Mapping[str, str]) -> None:
    """Set the MTU for IPv6 as in `device`; `linux` are the kernel's names by full name."""
    for name, interface in device.interfaces.items():
        setting = IPV6_SETTINGS / linux.get(name, "") / "mtu"
        wanted = str(ipv6_mtu(device, interface))
        if interface.runs_ipv6 and name in linux and setting.exists() and setting.read_text().strip() != wanted:
            setting.write_text(wanted)


def kernel_mtu(route: Any) -> int | None:
    """Return the MTU of a kernel route; None: that of its interface."""
    metrics = route.get_attr("RTA_METRICS")
    found = None if metrics is None else metrics.get_attr("RTAX_MTU")
    return None if found is None else int(found)
