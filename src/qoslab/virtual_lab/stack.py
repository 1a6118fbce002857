"""IP stack of a virtual router: the kernel in its network namespace, controlled by netlink and ICMP.

A netlink socket belongs to the namespace of the thread that opened it. One thread, which may change between namespaces,
therefore serves all routers.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import random
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import (
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from pathlib import Path
from typing import Any, TypeVar

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from qoslab.ios.environment import KernelRefusedError, Neighbour, PingOptions, PingOutcome, PortState, RouteEntry
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.model.routes import NULL, IpAddress, installable_routes
from qoslab.virtual_lab import packet_sizes, subinterface_links
from qoslab.virtual_lab.linux_names import linux_interface
from qoslab.virtual_lab.rights import NAMESPACE_RIGHTS, keep

CLONE_NEWNET = 0x40000000
RTPROT_KERNEL, RTPROT_STATIC = 2, 4
RT_TABLE_MAIN = 254
RTN_BLACKHOLE = 6
NOWHERE = -1
"""Placeholder for an interface's number: packets routed there are silently dropped."""
IFF_UP, IFF_LOWER_UP = 0x1, 0x10000
NUD_VALID = 0x02 | 0x04 | 0x08 | 0x10  # Reachable, stale, delay, probe.
_NUD_NAMES = {0x04: "STALE", 0x08: "DELAY", 0x10: "PROBE"}
FAMILIES = (socket.AF_INET, socket.AF_INET6)
ANYWHERE = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}
IPV6_LINK_LOCAL = IPv6Network("fe80::/10")
LINK_LOCAL_LENGTH = 64
HZ = 100
"""Clock ticks per second of the kernel in user space."""

ADDR_GEN_MODE_NONE = "1"
ICMP_ECHO_REPLY, ICMP_UNREACHABLE, ICMP_ECHO = 0, 3, 8
ICMPV6_UNREACHABLE, ICMPV6_ECHO, ICMPV6_ECHO_REPLY = 1, 128, 129
IPV6_HEADER = 40
IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_PMTUDISC_DONT = 10, 2, 0
IP_HEADER, ICMP_HEADER = 20, 8

T = TypeVar("T")

_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceThread:
    """Thread for all requests to all namespaces."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(
            1, thread_name_prefix="netns", initializer=keep, initargs=(NAMESPACE_RIGHTS,)
        )
        # A thread has the capabilities of its starting thread, which may then drop them.
        self._executor.submit(lambda: None).result()

    async def run(self, netns: Path, work: Callable[[], T]) -> T:
        """Call `work` in a network namespace."""

        def body() -> T:
            descriptor = os.open(netns, os.O_RDONLY)
            try:
                if _libc.setns(descriptor, CLONE_NEWNET) == -1:
                    number = ctypes.get_errno()
                    raise KernelRefusedError(f"cannot enter the network namespace {netns}: {os.strerror(number)}")
            finally:
                os.close(descriptor)
            return work()

        return await asyncio.get_running_loop().run_in_executor(self._executor, body)

    def close(self) -> None:
        """Stop the thread."""
        self._executor.shutdown(wait=False)


class IpStack:
    """Addresses, routes and ports of one router; `interfaces` are the full names of the chassis."""

    def __init__(
        self, thread: NamespaceThread, netns: Path, interfaces: tuple[str, ...], plane: Path | None = None
    ) -> None:
        """`plane` is the namespace of the data plane; without it, there are no subinterfaces."""
        self._thread = thread
        self._netns = netns
        self._plane = plane
        self._linux = {name: linux_interface(name) for name in interfaces}
        self._ios = {linux: name for name, linux in self._linux.items()}
        self._owners: dict[str, str] = {}
        """Interface with the addresses of each port, by port name; on ATM, it may be a subinterface."""
        self._netlink: IPRoute | None = None

    async def open(self) -> None:
        """Open the netlink socket and make the namespace a router."""

        def work() -> IPRoute:
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="utf-8")
            for linux in self._linux.values():
                # An automatic link-local address would be the same at both ends of a serial line.
                mode = Path(f"/proc/sys/net/ipv6/conf/{linux}/addr_gen_mode")
                if mode.exists():
                    mode.write_text(ADDR_GEN_MODE_NONE, encoding="utf-8")
            return IPRoute()

        self._netlink = await self._thread.run(self._netns, work)

    async def close(self) -> None:
        """Close the netlink socket."""
        if self._netlink is not None:
            netlink, self._netlink = self._netlink, None
            await self._thread.run(self._netns, netlink.close)

    async def _request(self, work: Callable[[IPRoute], T]) -> T:
        netlink = self._netlink
        if netlink is None:
            raise KernelRefusedError("the router's IP stack is not open")
        try:
            return await self._thread.run(self._netns, lambda: work(netlink))
        except NetlinkError as error:
            raise KernelRefusedError(f"the kernel answered {errno.errorcode.get(error.code, error.code)}") from error

    async def make_subinterfaces(self, device: Device, wired: Collection[str]) -> dict[str, str]:
        """Create the missing interfaces of subinterfaces; return the Linux names of all, by IOS name."""
        names = {
            each.name: subinterface_links.linux_name(each.name)
            for each in subinterface_links.active_subinterfaces(device, wired)
        }
        if not names.items() <= self._linux.items():
            plane = self._plane
            if plane is None:
                raise KernelRefusedError("no data plane for VLAN tags")
            await self._thread.run(self._netns, lambda: subinterface_links.make(device, wired, plane))
            await self._thread.run(plane, lambda: subinterface_links.bring_up_data_plane_ends(device, wired))
            self._name(names)
        return names

    async def remove_subinterfaces(self, device: Device, wired: Collection[str]) -> None:
        """Remove the interfaces of subinterfaces that `device` lacks."""
        names = {
            each.name: subinterface_links.linux_name(each.name)
            for each in subinterface_links.active_subinterfaces(device, wired)
        }
        if any("." in name and name not in names for name in self._linux):
            await self._thread.run(self._netns, lambda: subinterface_links.remove(device, wired))
            self._name(names)

    def _name(self, names: dict[str, str]) -> None:
        """Set the names of the current subinterfaces."""
        self._linux = {name: linux for name, linux in self._linux.items() if "." not in name} | names
        self._ios = {linux: name for name, linux in self._linux.items()}

    async def apply(self, device: Device) -> None:
        """Set addresses, interface states and static routes as in `device`."""
        await self._request(lambda netlink: self._apply(netlink, device))

    def _apply(self, netlink: IPRoute, device: Device) -> None:
        links = {link.get_attr("IFLA_IFNAME"): link for link in netlink.get_links()}
        forwarding = Path("/proc/sys/net/ipv6/conf/all/forwarding")
        forwarding.write_text(str(int(device.ipv6_unicast_routing)), encoding="utf-8")
        self._owners = {name: interface.name for name, interface in device.carriers()}
        for name, interface in device.carriers():
            linux = self._linux.get(name, "")
            if linux in links:
                # An interface that is off loses its addresses automatically.
                switch = Path(f"/proc/sys/net/ipv6/conf/{linux}/disable_ipv6")
                switch.write_text(str(int(not interface.runs_ipv6)), encoding="utf-8")
        present: dict[int, set[IPv4Interface | IPv6Interface]] = {}
        for family in FAMILIES:
            for entry in netlink.get_addr(family=family):
                # The kernel has one attribute for the own address of IPv4, and another for that of IPv6.
                own = entry.get_attr("IFA_LOCAL") or entry.get_attr("IFA_ADDRESS")
                present.setdefault(entry["index"], set()).add(ip_interface(f"{own}/{entry['prefixlen']}"))
        macs = {name: links[linux].get_attr("IFLA_ADDRESS") for name, linux in self._linux.items() if linux in links}
        for name, interface in device.carriers():
            link = links.get(self._linux.get(name, ""))
            if link is None:
                continue
            index = link["index"]
            wanted = _interface_addresses(interface, macs[name], macs)
            have = present.get(index, set())
            for address in have - wanted:
                netlink.addr("del", index=index, address=str(address.ip), prefixlen=address.network.prefixlen)
            for address in wanted - have:
                keys: dict[str, Any] = {"index": index, "address": str(address.ip)}
                if isinstance(address, IPv4Interface):
                    keys["broadcast"] = str(address.network.broadcast_address)
                netlink.addr("add", prefixlen=address.network.prefixlen, **keys)
            up = bool(link["flags"] & IFF_UP)
            if up == (shutdown := device.is_shut_down(interface)):
                netlink.link("set", index=index, state="down" if shutdown else "up")
        self._apply_own(netlink, links["lo"]["index"], present, device)
        packet_sizes.apply(netlink, device, {link["index"]: self._ios.get(name, "") for name, link in links.items()})
        packet_sizes.apply_ipv6(device, {name: linux for name, linux in self._linux.items() if linux in links})
        self._apply_routes(netlink, device, {name: link["index"] for name, link in links.items()})

    @staticmethod
    def _apply_own(
        netlink: IPRoute, index: int, present: Mapping[int, set[IPv4Interface | IPv6Interface]], device: Device
    ) -> None:
        """Give the namespace's own interface the addresses of Loopback interfaces, without their subnets."""
        loopbacks = device.host_interfaces.values()
        wanted = {each.address.ip for each in loopbacks if each.address is not None and not each.shutdown}
        present_here = present.get(index, set())
        have = {each.ip for each in present_here if isinstance(each, IPv4Interface) and not each.ip.is_loopback}
        for command, addresses in (("del", have - wanted), ("add", wanted - have)):
            for address in addresses:
                netlink.addr(command, index=index, address=str(address), prefixlen=32)
        if wanted:
            netlink.link("set", index=index, state="up")

    def _apply_routes(self, netlink: IPRoute, device: Device, indices: dict[str, int]) -> None:
        wanted = {
            (prefix, gateway, self._index(interface, indices), distance, _route_mtu(device, prefix, gateway, interface))
            for prefix, gateway, interface, distance in installable_routes(device)
        }
        have = set()
        for (prefix, gateway, index, metric), mtu in self._static_routes(netlink):
            by_interface = gateway is None or gateway in IPV6_LINK_LOCAL
            have.add((prefix, gateway, index if by_interface else None, metric, mtu))
        for command, routes in (("del", have - wanted), ("add", wanted - have)):
            for prefix, gateway, index, distance, mtu in routes:
                keys: dict[str, Any] = {"dst": str(prefix), "proto": RTPROT_STATIC, "priority": distance}
                if gateway is None and index is None:
                    continue
                if gateway is not None:
                    keys["gateway"] = str(gateway)
                if mtu is not None and command == "add":
                    keys["metrics"] = {"mtu": mtu}
                if index == NOWHERE:
                    keys["type"] = "blackhole"
                elif index is not None:
                    keys["oif"] = index
                try:
                    netlink.route(command, **keys)
                except NetlinkError as error:
                    # The next hop's interface is down: the route is configured, but not in the table until it is up.
                    if error.code not in (errno.ENETUNREACH, errno.ENETDOWN, errno.ESRCH):
                        raise

    def _index(self, interface: str | None, indices: dict[str, int]) -> int | None:
        """Return the kernel's number of an interface; None without an interface, or without a cable."""
        if interface is None or interface == NULL:
            return None if interface is None else NOWHERE
        port = next((port for port, owner in self._owners.items() if owner == interface), interface)
        return indices.get(self._linux.get(port, ""))

    @staticmethod
    def _static_routes(netlink: IPRoute) -> Iterator[tuple[_KernelRoute, int | None]]:
        for family in FAMILIES:
            for route in netlink.get_routes(family=family, table=RT_TABLE_MAIN):
                if route["proto"] == RTPROT_STATIC:
                    yield _kernel_route(family, route), packet_sizes.kernel_mtu(route)

    async def ports(self) -> dict[str, PortState]:
        """Return the wired interfaces of the router."""

        def work(netlink: IPRoute) -> dict[str, PortState]:
            link_local = {
                entry["index"]: IPv6Address(entry.get_attr("IFA_ADDRESS"))
                for entry in netlink.get_addr(family=socket.AF_INET6)
                if IPv6Address(entry.get_attr("IFA_ADDRESS")) in IPV6_LINK_LOCAL
            }
            return {
                self._ios[link.get_attr("IFLA_IFNAME")]: PortState(
                    mac=link.get_attr("IFLA_ADDRESS"),
                    carrier=bool(link["flags"] & IFF_LOWER_UP),
                    mtu=link.get_attr("IFLA_MTU"),
                    link_local=link_local.get(link["index"]),
                )
                for link in netlink.get_links()
                if link.get_attr("IFLA_IFNAME") in self._ios
            }

        return await self._request(work)

    async def routes(self) -> list[RouteEntry]:
        """Return the kernel's routing tables of both families."""

        def work(netlink: IPRoute) -> list[RouteEntry]:
            ports = {link["index"]: self._ios.get(link.get_attr("IFLA_IFNAME")) for link in netlink.get_links()}
            names = {index: port and self._owners.get(port, port) for index, port in ports.items()}
            found = []
            for family in FAMILIES:
                for route in netlink.get_routes(family=family, table=RT_TABLE_MAIN):
                    prefix, gateway, index, metric = _kernel_route(family, route)
                    own = route["proto"] == RTPROT_KERNEL
                    # Every interface has the link-local prefix, and its own IPv6 prefixes in the local table.
                    if prefix.network_address in IPV6_LINK_LOCAL:
                        continue
                    found.append(
                        RouteEntry(
                            prefix=prefix,
                            source="connected" if own else "static",
                            next_hop=gateway,
                            interface=NULL if index == NOWHERE else names.get(index),
                            distance=1 if own else metric or 1,
                        )
                    )
            return found

        return await self._request(work)

    async def neighbours(self) -> list[Neighbour]:
        """Return the ARP table."""

        def work(netlink: IPRoute) -> list[Neighbour]:
            names = {link["index"]: self._ios.get(link.get_attr("IFLA_IFNAME")) for link in netlink.get_links()}
            found = []
            for entry in (each for family in FAMILIES for each in netlink.get_neighbours(family=family)):
                mac, name = entry.get_attr("NDA_LLADDR"), names.get(entry["ifindex"])
                if mac is None or name is None or not entry["state"] & NUD_VALID:
                    continue
                info = entry.get_attr("NDA_CACHEINFO") or {}
                age = int(info.get("ndm_updated", 0)) // HZ // 60
                address = ip_address(entry.get_attr("NDA_DST"))
                if not address.is_multicast:
                    found.append(Neighbour(address, mac, name, age, _NUD_NAMES.get(entry["state"], "REACH")))
            return found

        return await self._request(work)

    async def ping(self, options: PingOptions) -> AsyncIterator[PingOutcome]:
        """Send echo requests one after the other; yield each outcome."""
        connection = await self._thread.run(self._netns, lambda: _icmp_socket(options))
        try:
            identifier = random.randrange(1 << 16)
            for sequence in range(options.count):
                yield await _send_echo(connection, options, identifier, sequence & 0xFFFF)
        finally:
            connection.close()


def _interface_addresses(interface: Interface, mac: str, macs: Mapping[str, str]) -> set[IPv4Interface | IPv6Interface]:
    """Return the configured addresses of an interface; `mac` is its hardware address, `macs` are all by full name."""
    wanted: set[IPv4Interface | IPv6Interface] = {*interface.secondary_addresses, *interface.ipv6_addresses}
    if interface.address is not None:
        wanted.add(interface.address)
    if interface.runs_ipv6:
        link_local = interface.ipv6_link_local or _link_local(interface, mac, macs)
        wanted.add(IPv6Interface((link_local, LINK_LOCAL_LENGTH)))
    return wanted


def _link_local(interface: Interface, mac: str, macs: Mapping[str, str]) -> IPv6Address:
    """Return the link-local address derived from the hardware address (RFC 4291, appendix A).

    A serial line and a circuit have no hardware address: IOS uses that of the first port that has one.
    """
    ethernet = (each for name, each in macs.items() if interface_kind(name) not in ("Serial", "ATM"))
    if interface.is_serial or interface.is_atm:
        mac = next(ethernet, mac)
    octets = bytes.fromhex(mac.replace(":", ""))
    identifier = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return IPv6Address(IPV6_LINK_LOCAL.network_address.packed[:8] + identifier)


_KernelRoute = tuple[IPv4Network | IPv6Network, IpAddress | None, int | None, int]
"""Prefix, gateway, index of the interface, metric."""


def _kernel_route(family: socket.AddressFamily, route: Any) -> _KernelRoute:
    gateway = route.get_attr("RTA_GATEWAY")
    return (
        ip_network(f"{route.get_attr('RTA_DST') or ANYWHERE[family]}/{route['dst_len']}"),
        None if gateway is None else ip_address(gateway),
        NOWHERE if route["type"] == RTN_BLACKHOLE else route.get_attr("RTA_OIF"),
        route.get_attr("RTA_PRIORITY") or 0,
    )


def _route_mtu(
    device: Device, prefix: IPv4Network | IPv6Network, gateway: IpAddress | None, interface: str | None
) -> int | None:
    """Return the MTU of a static route; None: that of its interface."""
    return packet_sizes.route_mtu(device, gateway, interface) if isinstance(prefix, IPv4Network) else None


def _icmp_socket(options: PingOptions) -> socket.socket:
    ipv6 = options.address.version == 6
    connection = (
        socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        if ipv6
        else socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    )
    try:
        connection.setblocking(False)
        if ipv6:
            connection.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, options.tos)
            if options.source is not None:
                connection.bind((str(options.source), 0))
            return connection
        discovery = IP_PMTUDISC_DO if options.dont_fragment else IP_PMTUDISC_DONT
        connection.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, discovery)
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, options.tos)
        if options.source is not None:
            connection.bind((str(options.source), 0))
    except OSError as error:
        connection.close()
        raise KernelRefusedError(f"ping: {error.strerror}") from error
    return connection


async def _send_echo(connection: socket.socket, options: PingOptions, identifier: int, sequence: int) -> PingOutcome:
    loop = asyncio.get_running_loop()
    ipv6 = options.address.version == 6
    header = IPV6_HEADER if ipv6 else IP_HEADER
    asks, answers, unreachable = (
        (ICMPV6_ECHO, ICMPV6_ECHO_REPLY, ICMPV6_UNREACHABLE) if ipv6 else (ICMP_ECHO, ICMP_ECHO_REPLY, ICMP_UNREACHABLE)
    )
    # IOS fills its pings with 0xABCD.
    size = options.size - header - ICMP_HEADER
    payload = (b"\xab\xcd" * (size // 2 + 1))[:size]
    packet = struct.pack(">BBHHH", asks, 0, 0, identifier, sequence) + payload
    # For IPv6, the kernel computes it (RFC 3542, 3.1).
    packet = packet[:2] + struct.pack(">H", internet_checksum(packet)) + packet[4:]
    started = time.perf_counter()
    try:
        await loop.sock_sendto(connection, packet, (str(options.address), 0))
    except OSError as error:
        if error.errno == errno.EMSGSIZE:
            return "unreachable"
        # No route: IOS sends nothing and waits for its timeout.
        await asyncio.sleep(options.timeout_s)
        return "timeout"
    try:
        async with asyncio.timeout(options.timeout_s):
            while True:
                received, _ = await loop.sock_recvfrom(connection, 1 << 16)
                arrived = time.perf_counter()
                # For IPv6, the kernel does not pass on the header.
                icmp = received if ipv6 else received[(received[0] & 0xF) * 4 :]
                if len(icmp) < ICMP_HEADER:
                    continue
                if icmp[0] == answers and icmp[4:8] == packet[4:8]:
                    return arrived - started
                if icmp[0] == unreachable and packet[4:8] in icmp[ICMP_HEADER + header :]:
                    return "unreachable"
    except TimeoutError:
        return "timeout"


def internet_checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
