"""Dump of the kernel's qdiscs, classes and filters over rtnetlink, with all of their attributes.

The JSON of tc lacks rates of policers and classes of HTB, and pyroute2 decodes no flower, red, pedit or csum.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from qoslab.errors import DeviceError

GET_QDISC, GET_CLASS, GET_FILTER = 38, 42, 46
"""RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER."""
REQUEST_DUMP = 0x301
"""NLM_F_REQUEST and NLM_F_DUMP."""
ERROR, DONE = 2, 3
HEADER = struct.Struct("=IHHII")
TCMSG = struct.Struct("=BxxxiIII")
ATTRIBUTE = struct.Struct("=HH")
TYPE_MASK = 0x3FFF
KIND, OPTIONS, XSTATS, STATS2, STAB, CHAIN = 1, 2, 4, 7, 8, 11
"""TCA_*."""
RECEIVE_BYTES = 1 << 20
HOOKS = {"ingress": 0xFFFFFFF2, "egress": 0xFFFFFFF3}
"""Parents of filters on clsact."""

Attributes = dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Message:
    """A qdisc, class or filter as the kernel dumps it."""

    handle: int
    parent: int
    info: int
    attributes: Attributes

    @property
    def kind(self) -> str:
        """The kind of a qdisc, class or classifier."""
        return text_of(self.attributes.get(KIND, b""))

    @property
    def chain(self) -> int:
        """The chain of a filter."""
        return int.from_bytes(self.attributes.get(CHAIN, b""), sys.byteorder)

    @property
    def options(self) -> bytes:
        """The attribute with the parameters."""
        return self.attributes.get(OPTIONS, b"")


def attributes_of(data: bytes) -> Attributes:
    """Return the attributes in a block of them; of several with one number the last."""
    found: Attributes = {}
    offset = 0
    while offset + ATTRIBUTE.size <= len(data):
        length, number = ATTRIBUTE.unpack_from(data, offset)
        if length < ATTRIBUTE.size:
            break
        found[number & TYPE_MASK] = data[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return found


def text_of(data: bytes) -> str:
    """Return a string attribute."""
    return data.split(b"\0")[0].decode("utf-8", errors="replace")


def filters(device: str, hook: str) -> Iterator[Message]:
    """Yield the filters on clsact in one direction.

    A filter of matchall is skipped by the kernel (`mall_walk`) if the answer's buffer is full before it; its preference
    is not, and is asked for again.
    """
    missing: dict[tuple[int, int], None] = {}
    for message in dump(GET_FILTER, device, HOOKS[hook]):
        where = (message.info, message.chain)
        if message.handle:
            missing.pop(where, None)
            yield message
        else:
            # A preference of filters: it has no handle.
            missing[where] = None
    for info, chain in missing:
        yield from (each for each in dump(GET_FILTER, device, HOOKS[hook], info, chain) if each.handle)


def dump(request: int, device: str, parent: int = 0, info: int = 0, chain: int | None = None) -> Iterator[Message]:
    """Yield the objects of a device in the network namespace of this process. Raise DeviceError.

    `info` and `chain` select the filters of one preference and protocol in one chain.
    """
    for payload in payloads(request, device, parent, info, chain):
        yield message_of(payload)


def message_of(payload: bytes) -> Message:
    """Return the object in the payload of a message."""
    _, _, handle, above, info = TCMSG.unpack_from(payload)
    return Message(handle, above, info, attributes_of(payload[TCMSG.size :]))


def payloads(request: int, device: str, parent: int = 0, info: int = 0, chain: int | None = None) -> Iterator[bytes]:
    """Yield the payloads of the messages about the objects of a device; parameters as of `dump`."""
    try:
        index = socket.if_nametoindex(device)
    except OSError as error:
        raise DeviceError(f"{device}: found no such network device") from error
    body = TCMSG.pack(0, index, 0, parent, info)
    if chain is not None:
        body += ATTRIBUTE.pack(ATTRIBUTE.size + 4, CHAIN) + struct.pack("=I", chain)
    message = HEADER.pack(HEADER.size + len(body), request, REQUEST_DUMP, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.sendto(message, (0, 0))
        while True:
            data = netlink.recv(RECEIVE_BYTES)
            offset = 0
            while offset + HEADER.size <= len(data):
                length, kind, *_ = HEADER.unpack_from(data, offset)
                payload = data[offset + HEADER.size : offset + length]
                offset += (length + 3) & ~3
                if kind == DONE:
                    return
                if kind == ERROR:
                    number = -int(struct.unpack_from("=i", payload)[0])
                    raise DeviceError(f"{device}: the kernel refused to list its qdiscs: {os.strerror(number)}")
                if TCMSG.unpack_from(payload)[1] == index:
                    yield payload
