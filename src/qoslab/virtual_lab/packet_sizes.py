"""The longest packets of a virtual router's interfaces, in its kernel.

Of IPv4 the kernel goes by its routes here, of IPv6 by a setting of the interface; the interface itself keeps the size
of its frames, so that longer packets of the other end still come in.
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
    """The longest packets of a static route of IPv4, by its gateway or its interface; None: those of the interface."""
    if gateway is not None and not isinstance(gateway, IPv4Address):
        return None
    for each in device.interfaces.values():
        addresses = () if each.address is None else (each.address, *each.secondary_addresses)
        if each.name == interface or (gateway is not None and any(gateway in one.network for one in addresses)):
            return _limit(device, each)
    return None


def _limit(device: Device, interface: Interface) -> int | None:
    most = ip_mtu(device, interface)
    return None if most == DEFAULT_MTU else most


def apply(netlink: IPRoute, device: Device, names: Mapping[int, str]) -> None:
    """Bring the sizes of connected networks to what `device` says; `names` are the full names by kernel number.

    To be called when addresses and states of interfaces are as they should be: either removes what this has set.
    """
    for route in netlink.get_routes(family=socket.AF_INET, table=RT_TABLE_MAIN):
        interface = device.interfaces.get(names.get(route.get_attr("RTA_OIF"), ""))
        if route["proto"] != RTPROT_KERNEL or interface is None:
            continue
        wanted = _limit(device, interface)
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
    """Bring the sizes of IPv6 to what `device` says; `linux` are the kernel's names by full name."""
    for name, interface in device.interfaces.items():
        setting = IPV6_SETTINGS / linux.get(name, "") / "mtu"
        wanted = str(ipv6_mtu(device, interface))
        if interface.runs_ipv6 and name in linux and setting.exists() and setting.read_text().strip() != wanted:
            setting.write_text(wanted)


def kernel_mtu(route: Any) -> int | None:
    """The longest packets of a route as the kernel has it; None: those of its interface."""
    metrics = route.get_attr("RTA_METRICS")
    found = None if metrics is None else metrics.get_attr("RTAX_MTU")
    return None if found is None else int(found)
