"""Kernel requests for one network namespace: netlink messages in batches, and ethtool features.

pyroute2 encodes and decodes the messages. They are sent over sockets that the supervisor opened inside the namespaces,
which pyroute2's own socket classes cannot use, and in batches, which makes a lab of many nodes fast.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Any

from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, nlmsg
from pyroute2.netlink.rtnl import (
    RTM_GETROUTE,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWNEIGH,
    RTM_NEWQDISC,
    RTM_NEWROUTE,
    RTM_SETNEIGHTBL,
    TC_H_ROOT,
    rt_proto,
    rt_scope,
    rt_type,
)
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import IFF_NOARP, IFF_UP, ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import NUD_REACHABLE, ndmsg
from pyroute2.netlink.rtnl.ndtmsg import ndtmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from qoslab.errors import MachineError
from qoslab.virtual_lab.wiring import ARP_REACHABLE_MS, MTU, TXQUEUELEN, Interface, Neighbour, TokenBucket

if TYPE_CHECKING:
    from qoslab.model.experiment import Address

BATCH = 64
"""Messages per system call. The acknowledgements of a batch must fit the socket's default receive buffer."""
RT_TABLE_MAIN = 254
CREATE = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
REPLACE = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE
NLMSG_ERROR, NLMSG_DONE = 2, 3
HEADER = struct.Struct("=IHHII")
TICK_NS = 64
"""Unit of a token bucket's depth in netlink (the kernel's PSCHED_SHIFT is 6)."""
LINKLAYER_ETHERNET = 1

MODULES = {
    "pair ": "Is the kernel module available? sudo modprobe veth",
    "token bucket ": "Is the kernel module available? sudo modprobe sch_tbf",
}
"""Hints for messages that the kernel refuses, by the prefix of their purpose."""

_EncodedMessage = tuple[bytes, str]
"""Message, and its purpose for error messages."""


def _encode(message: nlmsg, kind: int, flags: int, purpose: str) -> _EncodedMessage:
    message["header"]["type"] = kind
    message["header"]["flags"] = flags
    message.encode()
    return bytes(message.data), purpose


def _end(interface: Interface, namespace: int) -> dict[str, Any]:
    return {
        "index": interface.index,
        "attrs": [
            ("IFLA_IFNAME", interface.name),
            ("IFLA_ADDRESS", interface.mac),
            ("IFLA_MTU", MTU),
            ("IFLA_TXQLEN", TXQUEUELEN),
            ("IFLA_NET_NS_FD", namespace),
        ],
    }


def veth_message(a: Interface, a_namespace: int, b: Interface, b_namespace: int) -> _EncodedMessage:
    """Return the message for a veth pair, each end in its namespace (an open descriptor of this process)."""
    message = ifinfmsg()
    end = _end(a, a_namespace)
    message["index"] = end["index"]
    peer = {"attrs": [("VETH_INFO_PEER", _end(b, b_namespace))]}
    message["attrs"] = [
        *end["attrs"],
        ("IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", "veth"), ("IFLA_INFO_DATA", peer)]}),
    ]
    return _encode(message, RTM_NEWLINK, CREATE, f"pair {a.namespace} {a.name} - {b.namespace} {b.name}")


def link_up(interface: Interface) -> _EncodedMessage:
    """Return the message that brings an interface up."""
    message = ifinfmsg()
    message["index"] = interface.index
    message["flags"] = message["change"] = IFF_UP
    return _encode(message, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, f"{interface.name} up")


def no_arp_message(interface: Interface) -> _EncodedMessage:
    """Return the message that disables ARP on an interface, requests and answers."""
    message = ifinfmsg()
    message["index"] = interface.index
    message["flags"] = message["change"] = IFF_NOARP
    return _encode(message, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, f"{interface.name} without ARP")


FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
"""Address families by IP version."""
IPV6_LINK_LOCAL = IPv6Network("fe80::/10")
IPV6_CONNECTED_METRIC = 256
"""Metric of the kernel's route for an interface's own IPv6 prefix (IP6_RT_PRIO_ADDRCONF)."""


def address_message(interface: Interface, given: Address) -> _EncodedMessage:
    """Return the message that adds an address to an interface."""
    text = str(given.ip)
    message = ifaddrmsg()
    message["family"] = FAMILIES[given.version]
    message["index"] = interface.index
    message["prefixlen"] = given.network.prefixlen
    attributes = [("IFA_LOCAL", text), ("IFA_ADDRESS", text)]
    if given.version == 4:
        attributes.append(("IFA_BROADCAST", str(given.network.broadcast_address)))
    message["attrs"] = attributes
    return _encode(message, RTM_NEWADDR, CREATE, f"address {given} on {interface.name}")


def route_message(
    prefix: IPv4Network | IPv6Network,
    *,
    via: str | None = None,
    connected: tuple[Interface, Address] | None = None,
    metrics: list[tuple[str, int | str]] | None = None,
) -> _EncodedMessage:
    """Return the message for a route by next hop or to a connected subnet; it replaces the prefix's route."""
    message = rtmsg()
    message["family"] = FAMILIES[prefix.version]
    message["dst_len"] = prefix.prefixlen
    message["table"] = RT_TABLE_MAIN
    message["type"] = rt_type["unicast"]
    attributes: list[tuple[str, Any]] = []
    if prefix.prefixlen:
        attributes.append(("RTA_DST", str(prefix.network_address)))
    if connected is not None:
        interface, own = connected
        message["proto"] = rt_proto["kernel"]
        attributes.append(("RTA_OIF", interface.index))
        if prefix.version == 4:
            message["scope"] = rt_scope["link"]
            attributes.append(("RTA_PREFSRC", str(own.ip)))
        else:
            # Only a route with the same metric is replaced.
            attributes.append(("RTA_PRIORITY", IPV6_CONNECTED_METRIC))
    else:
        message["proto"] = rt_proto["static"]
        message["scope"] = rt_scope["universe"]
        attributes.append(("RTA_GATEWAY", via))
    if metrics:
        attributes.append(("RTA_METRICS", {"attrs": metrics}))
    message["attrs"] = attributes
    return _encode(message, RTM_NEWROUTE, REPLACE, f"route {prefix}")


NEIGHBOUR_TABLES = {4: "arp_cache", 6: "ndisc_cache"}


def neighbour_timeout_message(interface: Interface, version: int) -> _EncodedMessage:
    """Return the message that sets the lifetime of new neighbour entries of an interface."""
    message = ndtmsg()
    message["family"] = FAMILIES[version]
    parameters = [("NDTPA_IFINDEX", interface.index), ("NDTPA_BASE_REACHABLE_TIME", ARP_REACHABLE_MS)]
    message["attrs"] = [("NDTA_NAME", NEIGHBOUR_TABLES[version]), ("NDTA_PARMS", {"attrs": parameters})]
    flags = NLM_F_REQUEST | NLM_F_ACK
    return _encode(message, RTM_SETNEIGHTBL, flags, f"IPv{version} neighbour timeout of {interface.name}")


def neighbour_message(entry: Neighbour) -> _EncodedMessage:
    """Return the message for a neighbour's hardware address, which is confirmed as usual once it ages."""
    message = ndmsg()
    message["family"] = FAMILIES[entry.address.version]
    message["ifindex"] = entry.index
    message["state"] = NUD_REACHABLE
    message["attrs"] = [("NDA_DST", str(entry.address)), ("NDA_LLADDR", entry.mac)]
    return _encode(message, RTM_NEWNEIGH, REPLACE, f"neighbour {entry.address}")


def token_bucket_message(interface: Interface, bucket: TokenBucket) -> _EncodedMessage:
    """Return the message for a TBF qdisc as the root of an interface."""
    message = tcmsg()
    message["index"] = interface.index
    message["parent"] = TC_H_ROOT
    parameters = {
        "rate": bucket.rate_bps // 8,
        "rate___reserved": LINKLAYER_ETHERNET,  # struct tc_ratespec has the link layer there.
        "rate_overhead": bucket.overhead_bytes,
        "rate_mpu": bucket.minimum_bytes,
        "limit": bucket.limit_bytes,
        "buffer": bucket.burst_bytes * 8 * 10**9 // bucket.rate_bps // TICK_NS,
    }
    message["attrs"] = [("TCA_KIND", "tbf"), ("TCA_OPTIONS", {"attrs": [("TCA_TBF_PARMS", parameters)]})]
    return _encode(message, RTM_NEWQDISC, REPLACE, f"token bucket on {interface.name}")


class NetlinkNamespace:
    """Network namespace of the lab, seen from outside: its descriptor and a netlink socket in it."""

    def __init__(self, name: str, descriptor: int, route_socket: socket.socket) -> None:
        self.name = name
        self.descriptor = descriptor
        self.socket = route_socket

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self.descriptor)
        self.socket.close()

    def transact(self, messages: list[_EncodedMessage]) -> None:
        """Send messages and wait for all acknowledgements. Raise `MachineError` at the first refusal."""
        for start in range(0, len(messages), BATCH):
            batch = messages[start : start + BATCH]
            packet = bytearray()
            for sequence, (data, _) in enumerate(batch):
                size, kind, flags, _, port = HEADER.unpack_from(data)
                packet += HEADER.pack(size, kind, flags, sequence, port) + data[HEADER.size :]
            self.socket.send(packet)
            refused: tuple[int, str] | None = None
            answered = 0
            while answered < len(batch):
                for kind, sequence, body in self._receive():
                    if kind != NLMSG_ERROR:
                        continue
                    answered += 1
                    (code,) = struct.unpack_from("=i", body)
                    if code and refused is None:
                        refused = -code, batch[sequence][1]
            if refused is not None:
                raise MachineError(
                    f"{self.name}: {refused[1]}: the kernel answered {errno.errorcode.get(refused[0], refused[0])} "
                    f"({os.strerror(refused[0])})",
                    hint=next((hint for start, hint in MODULES.items() if refused[1].startswith(start)), ""),
                )

    def _receive(self) -> Iterator[tuple[int, int, bytes]]:
        packet = self.socket.recv(1 << 17)
        offset = 0
        while offset < len(packet):
            size, kind, _, sequence, _ = HEADER.unpack_from(packet, offset)
            yield kind, sequence, packet[offset + HEADER.size : offset + size]
            offset += size + 3 & ~3

    def routes(self) -> list[dict[str, Any]]:
        """Return the unicast routes of the main tables, not link-local: prefix, gateway, metrics (RTAX_… names)."""
        return [*self._family_routes(4), *self._family_routes(6)]

    def _family_routes(self, version: int) -> list[dict[str, Any]]:
        request = rtmsg()
        request["family"] = FAMILIES[version]
        self.socket.send(_encode(request, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, "routes")[0])
        found: list[dict[str, Any]] = []
        while True:
            packet = self.socket.recv(1 << 17)
            offset = 0
            while offset < len(packet):
                size, kind, _, _, _ = HEADER.unpack_from(packet, offset)
                if kind == NLMSG_DONE:
                    return found
                message = rtmsg(packet[offset : offset + size])
                message.decode()
                offset += size + 3 & ~3
                if message["table"] != RT_TABLE_MAIN or message["type"] != rt_type["unicast"]:
                    continue
                prefix = message.get_attr("RTA_DST") or ("0.0.0.0" if version == 4 else "::")
                if version == 6 and IPv6Address(prefix) in IPV6_LINK_LOCAL:
                    continue
                metrics = message.get_attr("RTA_METRICS")
                found.append(
                    {
                        "prefix": f"{prefix}/{message['dst_len']}",
                        "via": message.get_attr("RTA_GATEWAY"),
                        "metrics": {} if metrics is None else dict(metrics["attrs"]),
                    }
                )


SIOCETHTOOL = 0x8946
ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, ETHTOOL_GFEATURES, ETHTOOL_SFEATURES = 0x37, 0x1B, 0x3A, 0x3B
ETH_SS_FEATURES = 4
GSTRING_LENGTH = 32
NOT_AN_OFFLOAD = frozenset({"highdma"})
"""Features that state where the driver's buffers may be, and do not affect packets."""


class Offloads:
    """Offload features of the interfaces of one machine (ethtool's ioctl; the names are the kernel's)."""

    def __init__(self, control: socket.socket, interface: str) -> None:
        count_request = ctypes.create_string_buffer(
            struct.pack("=IIQI", ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0)
        )
        self._ioctl(control, interface, count_request)
        (count,) = struct.unpack_from("=I", count_request, 16)
        names = ctypes.create_string_buffer(12 + count * GSTRING_LENGTH)
        struct.pack_into("=III", names, 0, ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count)
        self._ioctl(control, interface, names)
        self.names = [
            names.raw[12 + n * GSTRING_LENGTH : 12 + (n + 1) * GSTRING_LENGTH].split(b"\0")[0].decode()
            for n in range(count)
        ]
        self._blocks = (count + 31) // 32

    @staticmethod
    def _ioctl(control: socket.socket, interface: str, data: ctypes.Array[ctypes.c_char]) -> None:
        fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), ctypes.addressof(data)))

    def enabled(self, control: socket.socket, interface: str) -> set[str]:
        """Return the offloads that are on and can be switched off."""
        data = ctypes.create_string_buffer(8 + 16 * self._blocks)
        struct.pack_into("=II", data, 0, ETHTOOL_GFEATURES, self._blocks)
        self._ioctl(control, interface, data)
        on = set()
        for number, name in enumerate(self.names):
            available, _, active, never_changed = struct.unpack_from("=4I", data, 8 + 16 * (number // 32))
            bit = 1 << number % 32
            if active & bit and available & bit and not never_changed & bit and name not in NOT_AN_OFFLOAD:
                on.add(name)
        return on

    def disable(self, control: socket.socket, interface: str) -> set[str]:
        """Switch every offload off; return those that stay on."""
        on = self.enabled(control, interface)
        data = ctypes.create_string_buffer(8 + 8 * self._blocks)
        masks = [0] * self._blocks
        for number, name in enumerate(self.names):
            if name in on:
                masks[number // 32] |= 1 << number % 32
        struct.pack_into("=II", data, 0, ETHTOOL_SFEATURES, self._blocks)
        for block, mask in enumerate(masks):
            struct.pack_into("=II", data, 8 + 8 * block, mask, 0)
        self._ioctl(control, interface, data)
        return self.enabled(control, interface)
