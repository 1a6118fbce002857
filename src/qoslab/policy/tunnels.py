"""Tunnels of a pasted configuration, and the bytes that they add to packets.

Sources: RFC 2784 and 2890 (GRE), RFC 4303 (ESP), RFC 2405, 2451, 3602 and 4106 (initialization vectors and blocks), RFC
2403, 2404 and 4868 (authentication data), RFC 3948 (UDP encapsulation of ESP). UDP encapsulation is counted if the
local address is private (RFC 1918, RFC 6598) and the address of the peer is not, because the local address is then
translated on the way. Other translations are only known during the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network

from qoslab.ios.model.ios_names import interface_name
from qoslab.ios.rules import descendants
from qoslab.policy.pasted_configuration import Attachment, Configuration, ConfigurationLines
from qoslab.policy.rate import Rate, format_list

TUNNEL_BYTES_ARE_COUNTED = True
"""[I] Queues, shapers and policers of a tunnel interface count packets as they leave: with the headers of the tunnel
and of IPsec. The documentation only states that they do not count the layer 2 header of the port below.
"""
DEFAULT_TRANSFORMS = ("esp-aes", "esp-sha-hmac")
"""[R] Transforms of a profile without `set transform-set`, in transport mode."""
IPV4, IPV6, GRE, GRE_OPTION = 20, 40, 4, 4
ESP, ESP_TRAILER, AH, UDP = 8, 2, 12, 8
GRE_PROTOCOL = 47
PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
"""Addresses that are translated before they reach the Internet."""
TUNNELS = ("Tunnel", "Virtual-Template")
"""Kinds of interfaces that encapsulate packets."""
MODES = ("gre", "ipip", "ipsec", "ipv6", "ipv6ip")
"""Modes that encapsulate packets in IP packets."""
VOICE_PACKET = 200
"""Bytes of an IP packet with 20 ms of G.711."""
FULL_PACKET = 1400
"""Bytes of a full packet: the `ip mtu` for tunnels in Cisco's design guides."""
OUTER_FIELDS = frozenset(("access_group", "protocol", "packet_length", "rtp_ports"))
"""Criteria that match fields which encapsulation hides or changes; DSCP, precedence and ECN are copied to the outer
header.
"""
_CIPHERS = {
    "esp-des": (8, 8),
    "esp-3des": (8, 8),
    "esp-aes": (16, 16),
    "esp-gcm": (8, 4),
    "esp-gmac": (8, 4),
    "esp-null": (0, 4),
}
"""Bytes of the initialization vector and block of a cipher; ESP aligns to at least 4."""
_CHECKS = {
    "esp-md5-hmac": 12,
    "esp-sha-hmac": 12,
    "esp-sha256-hmac": 16,
    "esp-sha384-hmac": 24,
    "esp-sha512-hmac": 32,
    "esp-gcm": 16,
    "esp-gmac": 16,
}
"""Bytes of ESP authentication data."""
_HEADER_CHECKS = {
    "ah-md5-hmac": 12,
    "ah-sha-hmac": 12,
    "ah-sha256-hmac": 16,
    "ah-sha384-hmac": 24,
    "ah-sha512-hmac": 32,
}
_HEADERS_OF_MODE = {
    "sdwan": "IP, UDP, ESP and label headers as the controller selects",
    "mpls traffic-eng": "MPLS labels",
}
"""Headers of modes that are not modelled."""
_TRANSFORM_SET = re.compile(r"crypto ipsec transform-set (\S+) (.+)")
_CRYPTO_MAP = re.compile(
    r"crypto (?:map|dynamic-map) (\S+) (\d+)(?: ipsec-isakmp(?: dynamic (\S+).*)?| ipsec-manual)?$"
)
_PORT_CRYPTO_MAP = re.compile(r"crypto map (\S+)")
_PROFILE = re.compile(r"crypto ipsec profile (\S+)")
_SERVER = re.compile(r"nhrp nhs .* nbma (\S+)")
_NOT_SHARED = re.compile(r"ip nat outside|ip nat enable")


@dataclass(frozen=True)
class Ipsec:
    """A transform set."""

    transforms: tuple[str, ...]
    transport: bool
    """True for transport mode, which adds no IP header."""
    text: str
    """The transforms as typed, with key lengths."""
    known: bool = True
    """False if the transform set is missing in the input, so that the default is assumed."""
    translated: bool = False
    """True if addresses are translated between the peers, so that ESP is in UDP."""

    @property
    def block(self) -> int:
        """Block length in bytes to which packets are padded; 1 without ESP."""
        return max((max(_CIPHERS[each][1], 4) for each in self.transforms if each in _CIPHERS), default=1)

    @property
    def fixed_bytes(self) -> int:
        """Bytes of the headers, initialization vector and authentication data, without padding and IP header."""
        ciphers = [_CIPHERS[each][0] for each in self.transforms if each in _CIPHERS]
        esp = ESP + ESP_TRAILER + sum(ciphers) if self.has_esp else 0
        check = sum(_CHECKS.get(each, 0) for each in self.transforms)
        headers = sum(AH + _HEADER_CHECKS[each] for each in self.transforms if each in _HEADER_CHECKS)
        return esp + check + headers + (UDP if self.translated and self.has_esp else 0)

    @property
    def has_esp(self) -> bool:
        """True if packets are encrypted or authenticated by ESP."""
        return any(each.startswith("esp-") for each in self.transforms)


@dataclass(frozen=True)
class Tunnel:
    """An interface Tunnel or Virtual-Template, or a crypto map of a port, with its encapsulation."""

    name: str
    source: str
    """Interface by which its packets leave; empty if it is missing in the input."""
    outer_bytes: int
    """Bytes of the outermost IP header."""
    inner_bytes: int
    """Bytes of the header between the outer IP header and the packet: GRE."""
    ipsec: Ipsec | None
    pre_classify: bool
    """True with `qos pre-classify`, by which policies of the port below see the inner headers."""

    def overhead_bytes(self, packet_bytes: int) -> int:
        """Return the bytes that are added to an IP packet of `packet_bytes` bytes."""
        total = self.outer_bytes + self.inner_bytes
        if self.ipsec is None:
            return total
        encrypted = packet_bytes + self.inner_bytes
        if not self.ipsec.transport and self.inner_bytes:
            # Tunnel mode also encrypts the IP header of GRE, and adds another one.
            encrypted += self.outer_bytes
            total += self.outer_bytes
        padding = -(encrypted + ESP_TRAILER) % self.ipsec.block if self.ipsec.has_esp else 0
        return total + self.ipsec.fixed_bytes + padding

    @property
    def min_overhead_bytes(self) -> int:
        """Minimum bytes that are added to a packet."""
        return min(self.overhead_bytes(size) for size in self._sizes)

    @property
    def max_overhead_bytes(self) -> int:
        """Maximum bytes that are added to a packet."""
        return max(self.overhead_bytes(size) for size in self._sizes)

    @property
    def mean_bytes(self) -> int:
        """Bytes that are added to a packet on average over all lengths, rounded."""
        return round((self.min_overhead_bytes + self.max_overhead_bytes) / 2)

    @property
    def _sizes(self) -> range:
        return range(VOICE_PACKET, VOICE_PACKET + (1 if self.ipsec is None else self.ipsec.block))

    @property
    def title(self) -> str:
        """Encapsulation as text."""
        ip = "IPv6" if self.outer_bytes == IPV6 else "IPv4"
        base = f"GRE over {ip}" if self.inner_bytes else f"IP in {ip}"
        if self.ipsec is None:
            return base
        mode = "transport" if self.ipsec.transport and self.inner_bytes else "tunnel"
        sets = self.ipsec.text + ("" if self.ipsec.known else ", default assumed?")
        translation = " in UDP (NAT traversal)" if self.ipsec.translated and self.ipsec.has_esp else ""
        return f"{f'{base} and ' if self.inner_bytes else ''}IPsec in {mode} mode ({sets}){translation}"

    @property
    def bytes_text(self) -> str:
        """Added bytes as text."""
        least, most = self.min_overhead_bytes, self.max_overhead_bytes
        return f"{least} bytes" if least == most else f"{least} to {most} bytes"


@dataclass(frozen=True)
class Encapsulation:
    """The tunnels whose packets a policy handles."""

    tunnels: tuple[Tunnel, ...]
    is_below_tunnels: bool
    """True if the policy is on the port below the tunnels."""
    has_other_packets: bool = False
    """True if the port also has packets outside the tunnels."""

    @property
    def hides_fields(self) -> bool:
        """True if classes see only the outer headers of at least one tunnel."""
        return self.is_below_tunnels and not all(each.pre_classify for each in self.tunnels)

    @property
    def mean_bytes(self) -> int:
        """Average bytes that the policy counts for a packet in addition to its length, without layer 2."""
        if not self.tunnels or not (self.is_below_tunnels or TUNNEL_BYTES_ARE_COUNTED):
            return 0
        return round(sum(each.mean_bytes for each in self.tunnels) / len(self.tunnels))

    def counted_bytes(self, tunnel: Tunnel, packet_bytes: int, header_bytes: int) -> int:
        """Return the bytes that the policy counts for an IP packet in a tunnel, including a layer 2 header of
        `header_bytes`.
        """
        if not self.is_below_tunnels:
            return packet_bytes + (tunnel.overhead_bytes(packet_bytes) if TUNNEL_BYTES_ARE_COUNTED else 0)
        return packet_bytes + tunnel.overhead_bytes(packet_bytes) + header_bytes


@lru_cache(maxsize=4)
def find_tunnels(configuration: Configuration) -> tuple[Tunnel, ...]:
    """Return the tunnels that are not shut down, and the crypto maps of ports."""
    lines = configuration.lines
    sets = dict(_transform_sets(lines))
    profiles = {found[1]: lines.below.get(head, []) for head in lines.heads if (found := _PROFILE.fullmatch(head))}
    made = []
    for head, below in lines.below.items():
        bare = head.removeprefix("interface ").partition(" type ")[0]
        name = interface_name(bare) or bare if head.startswith("interface ") else ""
        if name.startswith(TUNNELS) and "shutdown" not in below and (name.startswith("Tunnel") or _has_source(below)):
            made.append(_read_tunnel(configuration, name, below, (sets, profiles)))
    tunnels = [each for each in made if each is not None]
    for head, below in lines.below.items():
        port = head.removeprefix("interface ")
        names = [match[1] for each in below if (match := _PORT_CRYPTO_MAP.fullmatch(each))]
        if head.startswith("interface ") and names:
            for entry in _crypto_map_entries(lines, names[0]):
                tunnels = _crypto_map_tunnels(configuration, tunnels, port, names[0], (entry, sets))
    return tuple(tunnels)


def _has_source(below: Iterable[str]) -> bool:
    return any(each.startswith("tunnel source ") for each in below)


def _crypto_map_entries(lines: ConfigurationLines, name: str) -> Iterator[list[str]]:
    """Yield the lines of each entry of a crypto map, and of the dynamic crypto maps that it names."""
    for head in lines.heads:
        found = _CRYPTO_MAP.fullmatch(head)
        if found is not None and found[1] == name and head.startswith("crypto map "):
            yield lines.below.get(head, [])
            for other in lines.heads if found[3] else ():
                dynamic = _CRYPTO_MAP.fullmatch(other)
                if dynamic is not None and dynamic[1] == found[3] and other.startswith("crypto dynamic-map "):
                    yield lines.below.get(other, [])


def _crypto_map_tunnels(
    configuration: Configuration, tunnels: list[Tunnel], port: str, name: str, entry: tuple[list[str], dict[str, Ipsec]]
) -> list[Tunnel]:
    """Return the tunnels with IPsec by an entry of a crypto map: around the GRE of a tunnel, or on its own."""
    below, sets = entry
    typed = next((each.split()[2] for each in below if re.match(r"set transform-set \S", each)), "")
    if typed not in sets:
        return tunnels
    peer = next((each.split()[2] for each in below if re.match(r"set peer \S", each)), "")
    ipsec = _with_nat_traversal(configuration, sets[typed], port, peer)
    selected = next((each.split()[2] for each in below if re.match(r"match address \S", each)), "")
    access_list = configuration.device.access_lists.get(selected)
    carried = [getattr(each, "protocol", None) for each in access_list.lines] if access_list is not None else []
    if GRE_PROTOCOL in carried:
        return [
            replace(each, ipsec=ipsec) if each.source == port and each.ipsec is None and each.inner_bytes else each
            for each in tunnels
        ]
    # Between networks, a crypto map uses tunnel mode even with a transform set in transport mode.
    made = Tunnel(f"crypto map {name}", port, IPV4, 0, replace(ipsec, transport=False), "qos pre-classify" in below)
    return tunnels if made in tunnels else [*tunnels, made]


def _with_nat_traversal(configuration: Configuration, ipsec: Ipsec, port: str, peer: str) -> Ipsec:
    """Return the transform set, in UDP if a private local address has a peer with a public one."""
    interface = configuration.device.interfaces.get(port)
    if interface is None or interface.address is None or not re.fullmatch(r"\d+\.\d+\.\d+\.\d+", peer):
        return ipsec
    try:
        remote = IPv4Address(peer)
    except ValueError:
        return ipsec
    return replace(ipsec, translated=_is_private(interface.address.ip) and not _is_private(remote))


def _is_private(address: IPv4Address) -> bool:
    return any(address in each for each in PRIVATE)


def find_encapsulation(configuration: Configuration, at: Attachment) -> Encapsulation | None:
    """Return the tunnels whose packets an output policy handles; None without one.

    A port below tunnels has packets outside them if a line such as `ip nat outside` shows it.
    """
    if at.direction == "input" or configuration.device.switch is not None:
        return None
    every = find_tunnels(configuration)
    if at.interface.startswith(TUNNELS):
        own = tuple(each for each in every if each.name == at.interface)
        return Encapsulation(own, is_below_tunnels=False) if own else None
    below = tuple(
        each for each in every if at.interface and at.interface in (each.source, _interface_port(each.source))
    )
    if not below:
        return None
    rows = configuration.lines.below.get(f"interface {below[0].source}", [])
    return Encapsulation(below, is_below_tunnels=True, has_other_packets=any(_NOT_SHARED.match(each) for each in rows))


def unmodelled_tunnel_notes(configuration: Configuration, at: Attachment) -> tuple[str, ...]:
    """Return sentences on the tunnels of an output policy whose mode adds headers of unknown length, such as SD-WAN."""
    if at.direction == "input" or configuration.device.switch is not None:
        return ()
    notes = []
    for head, below in configuration.lines.below.items():
        name = head.removeprefix("interface ").partition(" type ")[0]
        values = _tunnel_values(below)
        mode = " ".join(values.get("tunnel mode", []))
        if not head.startswith("interface Tunnel") or "shutdown" in below or mode.partition(" ")[0] in ("", *MODES):
            continue
        source = _source_interface(configuration, " ".join(values.get("tunnel source", [])))
        if at.interface and at.interface in (name, source, _interface_port(source)):
            text = _HEADERS_OF_MODE.get(mode, "headers")
            notes.append(f"{name}: mode {mode} adds {text}, whose bytes are not counted here")
    return tuple(notes)


def _interface_port(source: str) -> str:
    return source.partition(".")[0]


def hidden_classes(configuration: Configuration, policy: str) -> list[str]:
    """Return the classes of a policy-map and of its children that match by fields of inner headers."""
    device = configuration.device
    names = [one.name for part in descendants(device, device.policy_maps[policy]) for one in part.classes]
    maps = (device.class_maps[name] for name in dict.fromkeys(names) if name in device.class_maps)
    return [each.name for each in maps if any(one.type in OUTER_FIELDS for one in each.criteria)]


def tunnel_notes(found: Encapsulation | None, rate: Rate, header_bytes: int | None) -> tuple[str, ...]:
    """Return sentences on the bytes that a policy counts for packets in tunnels; `rate` is the rate of its shaper."""
    if found is None:
        return ()
    notes = []
    for tunnel in found.tunnels:
        where = f"{tunnel.name}: " if found.is_below_tunnels else ""
        counted = "" if found.is_below_tunnels else ", which the policy counts?"
        notes.append(f"{where}{tunnel.title} adds {tunnel.bytes_text} to each packet{counted}")
        sizes = []
        for name, size in (
            ("voice packet of 200 bytes (G.711, 20 ms)", VOICE_PACKET),
            ("packet of 1400 bytes", FULL_PACKET),
        ):
            total = found.counted_bytes(tunnel, size, header_bytes or 0)
            part = rate.multiplied_by(size / total)
            effect = (
                f"{rate} carry {part} of such packets"
                if rate.is_absolute
                else f"{100 * size / total:.0f} % is the packet"
            )
            sizes.append(f"a {name} counts {total}: {effect}")
        notes.append("; ".join(sizes))
    if found.is_below_tunnels and found.hides_fields:
        names = format_list([each.name for each in found.tunnels if not each.pre_classify])
        notes.append(
            f"classes see the outer headers of {names}: DSCP is copied, addresses, ports and protocols are not"
        )
    elif found.is_below_tunnels:
        notes.append("qos pre-classify: classes see the inner headers")
    return tuple(notes)


def _transform_sets(lines: ConfigurationLines) -> Iterator[tuple[str, Ipsec]]:
    for head in lines.heads:
        if found := _TRANSFORM_SET.fullmatch(head):
            transforms = tuple(each for each in found[2].split() if each.startswith(("esp-", "ah-")))
            mode = [each for each in lines.below.get(head, []) if each.startswith("mode ")]
            yield found[1], Ipsec(transforms, any("transport" in each for each in mode), found[2])


def _read_tunnel(
    configuration: Configuration, name: str, below: Sequence[str], ipsec: tuple[dict[str, Ipsec], dict[str, list[str]]]
) -> Tunnel | None:
    """Return a tunnel; None for a mode without a separate IP header, such as MPLS."""
    values = _tunnel_values(below)
    mode = values.get("tunnel mode") or ["gre", "ip"]
    if mode[0] not in MODES:
        return None
    outer = IPV6 if mode[-1] == "ipv6" or mode[0] == "ipv6" else IPV4
    inner = 0
    if mode[0] == "gre":
        options = ("tunnel key", "tunnel checksum", "tunnel sequence-datagrams")
        inner = GRE + GRE_OPTION * sum(each in values for each in options)
    protection = values.get("tunnel protection", [])
    found: Ipsec | None = None
    if "profile" in protection[:-1]:
        found = _profile_ipsec(protection[protection.index("profile") + 1], ipsec)
    source = _source_interface(configuration, " ".join(values.get("tunnel source", [])))
    if found is not None:
        servers = (match[1] for each in below if (match := _SERVER.search(each)))
        peer = " ".join(values.get("tunnel destination", [])) or next(servers, "")
        found = _with_nat_traversal(configuration, found, source, peer)
    return Tunnel(name, source, outer, inner, found, "qos pre-classify" in below)


def _tunnel_values(below: Iterable[str]) -> dict[str, list[str]]:
    """Return the words after the first two of each line that begins with `tunnel`."""
    return {" ".join(each.split()[:2]): each.split()[2:] for each in below if each.startswith("tunnel ")}


def _profile_ipsec(profile: str, ipsec: tuple[dict[str, Ipsec], dict[str, list[str]]]) -> Ipsec:
    sets, profiles = ipsec
    typed = next((each for each in profiles.get(profile, []) if each.startswith("set transform-set ")), "")
    names = typed.split()[2:]
    if names and names[0] in sets:
        return sets[names[0]]
    return Ipsec(DEFAULT_TRANSFORMS, transport=True, text=" ".join(DEFAULT_TRANSFORMS), known=False)


def _source_interface(configuration: Configuration, source: str) -> str:
    """Return the interface of `tunnel source`, which may be a name or an address."""
    for each in configuration.device.interfaces.values():
        if each.address is not None and str(each.address.ip) == source:
            return each.name
    name = interface_name(source) or ""
    return name if name in configuration.device.interfaces else ""
