"""Packets of the classes of a router: the class of a packet, and a packet for a class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from ipaddress import IPv4Address

from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyClass, PolicyMap
from qoslab.ios.packet_sets import FULL_PORT_RANGE, IPV4, Box, PacketSet, class_packets

NUMBERS = {"udp": 17, "tcp": 6}
SOURCE_PORT = 40_000
"""Source port in the range of traffic generators."""
FIRST_PORT = 5001
MARKS = ("dscp", "ip_dscp", "precedence", "ip_precedence")
MAX_BOXES = 20
"""Maximum number of packet sets of a class that are tried."""
WITHOUT_TAG = ("cos", "vlan", "qos_group", "discard_class")


@dataclass(frozen=True)
class Packet:
    """A packet between two hosts."""

    source: IPv4Address
    destination: IPv4Address
    protocol: str
    dscp: int
    port: int
    size: int
    """Bytes of the IP packet."""

    def to_packet_set(self, entered: int) -> Box:
        """Return the packet as a set; `entered` is the number of its input interface."""
        alone = {"dscp": self.dscp, "protocol": NUMBERS[self.protocol], "length": self.size, "input": entered}
        alone |= {"source_port": SOURCE_PORT, "destination_port": self.port}
        return {
            "network": (IPV4, 0),
            "source": (int(self.source), 2**32 - 1),
            "destination": (int(self.destination), 2**32 - 1),
            **{name: (1 << value, 0) for name, value in alone.items()},
            **dict.fromkeys(WITHOUT_TAG, (1, 0)),
        }


class Classifier:
    """Classifier of packets by the classes of a router."""

    def __init__(self, device: Device) -> None:
        self.device = _without_payload_criteria(device)
        self._sets: dict[str, PacketSet] = {}

    def find_packet(
        self,
        place: tuple[str, Sequence[str]],
        ends: tuple[IPv4Address, IPv4Address],
        size: int,
        taken: Set[int | None],
        entered: tuple[str, str],
    ) -> Packet | None:
        """Return a packet of a class, with an unused port; None if none is found.

        `place` is a policy-map and the path of a class, `entered` the input interface and its input policy.
        """
        found = (each for each in self._candidate_packets(place[1], ends, size, taken, entered[1]))
        return next((each for each in found if self.belongs_to_class(each, place, entered)), None)

    def belongs_to_class(self, packet: Packet, place: tuple[str, Sequence[str]], entered: tuple[str, str]) -> bool:
        """Return whether a packet belongs to a class of a policy-map, after the input policy has marked it."""
        names = list(self.device.interfaces)
        number = names.index(entered[0]) + 1 if entered[0] in names else 0
        policy = self.device.policy_maps.get(entered[1])
        first = None if policy is None else self._matching_class(policy, packet.to_packet_set(number))
        for mark in () if first is None else first.marks:
            if mark.field in MARKS:
                packet = replace(packet, dscp=mark.value * (8 if "precedence" in mark.field else 1))
        box = packet.to_packet_set(number)
        current = self.device.policy_maps.get(place[0])
        for name in place[1]:
            found = None if current is None else self._matching_class(current, box)
            if (CLASS_DEFAULT if found is None else found.name) != name:
                return False
            child = None if found is None else found.service_policy
            current = self.device.policy_maps.get(child) if child else None
        return True

    def _matching_class(self, policy: PolicyMap, box: Box) -> PolicyClass | None:
        one = PacketSet((box,))
        return next((each for each in policy.classes if not (self._set(each.name) & one).empty), None)

    def _set(self, name: str) -> PacketSet:
        if name not in self._sets:
            self._sets[name] = class_packets(self.device, name)
        return self._sets[name]

    def _candidate_packets(
        self, path: Sequence[str], ends: tuple[IPv4Address, IPv4Address], size: int, taken: Set[int | None], policy: str
    ) -> Iterator[Packet]:
        """Yield packets that may belong to a class: datagrams first, as their rate is constant."""
        known = self.device.policy_maps.get(policy)
        marked = known is not None and any(each.marks or each.marks_from for each in known.classes)
        own = {"network": (IPV4, 0)}
        own |= {name: (int(end), 2**32 - 1) for name, end in zip(("source", "destination"), ends, strict=True)}
        boxes = reduce(lambda one, two: one & two, map(self._set, path), PacketSet((own,))).boxes[:MAX_BOXES]
        for protocol in NUMBERS:
            for box in boxes:
                if not box.get("protocol", (FULL_PORT_RANGE["protocol"], 0))[0] >> NUMBERS[protocol] & 1:
                    continue
                ports = box.get("destination_port", (FULL_PORT_RANGE["destination_port"], 0))[0]
                usual = (*range(FIRST_PORT, 2**16), *range(1, FIRST_PORT))
                port = next((each for each in usual if ports >> each & 1 and each not in taken), None)
                dscps = FULL_PORT_RANGE["dscp"] if marked else box.get("dscp", (FULL_PORT_RANGE["dscp"], 0))[0]
                for dscp in (each for each in range(64) if port is not None and dscps >> each & 1):
                    yield Packet(*ends, protocol, dscp, port or 0, size)


def _without_payload_criteria(device: Device) -> Device:
    """Return a device without criteria that only payloads decide: no packet of a lab matches them."""
    maps = {}
    for name, each in device.class_maps.items():
        known = tuple(one for one in each.criteria if not one.is_undecided)
        maps[name] = replace(each, criteria=known if each.match == "any" or known == each.criteria else ())
    return replace(device, class_maps=maps)
