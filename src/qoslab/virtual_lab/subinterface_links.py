"""Kernel interfaces of a virtual router's IEEE 802.1Q subinterfaces, created and removed with them.

The kernel does not handle tags: each subinterface is a separate pair of interfaces between the namespaces of the router
and of its data plane, like each port, and `qos-router` adds and removes the tags on the link of the port. Both ends of
the pair of GigabitEthernet0/0.100 are called `Gi0-0.100`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from qoslab.errors import UserError
from qoslab.ios.environment import KernelRefusedError
from qoslab.ios.model.device import Device, Interface
from qoslab.virtual_lab.linux_names import linux_interface
from qoslab.virtual_lab.netlink import Offloads
from qoslab.virtual_lab.wiring import ARP_REACHABLE_MS, MTU, TXQUEUELEN

NEIGHBOUR_SETTINGS = Path("/proc/sys/net/ipv4/neigh")


def active_subinterfaces(device: Device, wired: Collection[str]) -> list[Interface]:
    """Return the subinterfaces that carry frames: those with a VLAN, on ports with a cable."""
    return [each for each in device.interfaces.values() if each.vlan is not None and each.parent in wired]


def linux_name(interface: str) -> str:
    """Return the Linux name of a subinterface. Raise `KernelRefusedError` if it is too long for Linux."""
    try:
        return linux_interface(interface)
    except UserError as error:
        raise KernelRefusedError(error.message) from error


def make(device: Device, wired: Collection[str], plane: Path) -> None:
    """Create the missing pairs. Call it in the router's namespace; `plane` is that of its data plane."""
    with closing(IPRoute()) as netlink:
        links = {link.get_attr("IFLA_IFNAME"): link for link in netlink.get_links()}
        missing = [each for each in active_subinterfaces(device, wired) if linux_name(each.name) not in links]
        if not missing:
            return
        descriptor = os.open(plane, os.O_RDONLY)
        try:
            for each in missing:
                name, port = linux_name(each.name), links[linux_interface(each.parent or "")]
                # Subinterfaces of a router have their port's hardware address.
                netlink.link(
                    "add",
                    ifname=name,
                    kind="veth",
                    address=port.get_attr("IFLA_ADDRESS"),
                    mtu=MTU,
                    txqlen=TXQUEUELEN,
                    peer={"ifname": name, "net_ns_fd": descriptor, "mtu": MTU, "txqlen": TXQUEUELEN},
                )
                (NEIGHBOUR_SETTINGS / name / "base_reachable_time_ms").write_text(str(ARP_REACHABLE_MS))
                _disable_offloads(name)
        except (NetlinkError, OSError) as error:
            raise KernelRefusedError(f"cannot create an interface for {each.name}: {error}") from error
        finally:
            os.close(descriptor)


def bring_up_data_plane_ends(device: Device, wired: Collection[str]) -> None:
    """Bring the data plane's ends up. Call it in the namespace of the data plane."""
    with closing(IPRoute()) as netlink:
        index = {link.get_attr("IFLA_IFNAME"): link["index"] for link in netlink.get_links()}
        for each in active_subinterfaces(device, wired):
            name = linux_name(each.name)
            _disable_offloads(name)
            netlink.link("set", index=index[name], state="up")


def remove(device: Device, wired: Collection[str]) -> None:
    """Remove the pairs without a subinterface. Call it in the router's namespace."""
    kept = {linux_name(each.name) for each in active_subinterfaces(device, wired)}
    with closing(IPRoute()) as netlink:
        for link in netlink.get_links():
            name = link.get_attr("IFLA_IFNAME")
            # No other interface of a router has a dot in its name.
            if "." in name and name not in kept:
                netlink.link("del", index=link["index"])


def _disable_offloads(name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        stubborn = Offloads(control, name).disable(control, name)
    if stubborn:
        raise KernelRefusedError(f"{name}: the kernel keeps these offloads on: {', '.join(sorted(stubborn))}")
