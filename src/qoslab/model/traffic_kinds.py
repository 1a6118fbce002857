"""Catalogue of kinds of traffic: packets, pace, marking and the source of each value.

Values without a published source are named constants with the mark [chosen]; those whose document was not at hand have
the mark [remembered].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IP_AND_UDP = 28
"""Bytes of an IPv4 and a UDP header."""
IPV6_AND_UDP = 48
"""Bytes of an IPv6 and a UDP header."""
RTP = 12
"""Bytes of an RTP header (RFC 3550, section 5.1)."""
LARGEST_PAYLOAD = 1472
"""Bytes of UDP payload in an IPv4 packet of 1500 bytes."""

CODE_POINTS = "RFC 4594, figure 3"

GROUP_OF_PICTURES = "IBBPBBPBBPBB"
"""Pattern of pictures between two intra-coded ones: N = 12, M = 3 (O. Rose, "Statistical properties of MPEG video
traffic", 1995, has traces of this pattern [remembered])."""
PICTURE_SIZES = {"I": 5.0, "P": 2.0, "B": 1.0}
"""Ratio of sizes of pictures [chosen]."""
CONFERENCE_PICTURES = "I" + "P" * 29
"""Pictures of a conference [chosen]: low delay, no B pictures, one I picture a second."""
CONFERENCE_BPS = 1_500_000
"""Rate of a video call of 720 lines [chosen]."""
STREAMING_BPS = 4_000_000
"""Rate of a video stream [chosen]."""
VIDEO_PAYLOAD = 1200
"""Most payload of a datagram of video, RTP header included (RFC 8085, section 3.2: avoid fragments)."""

PAGE_BYTES = 2_650_000
"""Bytes of a web page (HTTP Archive, Web Almanac 2024, "Page weight": median of desktop pages, 2652 KB)."""
READING_S = 30
"""Seconds between two pages of a user (3GPP2 C.R1002-0, HTTP model: mean reading time [remembered])."""
TRANSACTION_BYTES = 20_000
"""Bytes of an answer of a business application [chosen]."""
TRANSACTION_S = 2
"""Seconds between two answers [chosen]."""
DNS_PAYLOAD = 45
"""Payload of a query [chosen]: header 12 bytes (RFC 1035), name 18, EDNS 11, type and class 4."""
DNS_S = 0.5
"""Seconds between two queries of a resolver [chosen]."""
GAME_PAYLOAD = 80
GAME_S = 0.04
"""Interval between packets of a client of a first-person shooter (J. Färber, "Network game traffic modelling", NetGames
2002 [remembered]).
"""
IMIX_PACKETS = (40, 576, 40, 40, 576, 40, 1500, 40, 576, 40, 40, 576)
"""IP packets of 40, 576 and 1500 bytes, 7 to 4 to 1 (simple IMIX; see RFC 6985)."""
IMIX_BPS = 5_000_000
"""Rate of a stream, IP packets [chosen]."""


SPREAD_SHARE = 0.95
"""Share of the traffic time within which sources with a long period start."""
TCP_SPREAD_NS = 10**9
"""Time within which connections without pauses start, so that connections of one kind do not start all at once."""

KindName = Literal[
    "voice",
    "g729",
    "opus",
    "video",
    "streaming",
    "web",
    "transactions",
    "backup",
    "bulk",
    "scavenger",
    "gaming",
    "dns",
    "imix",
]


@dataclass(frozen=True, slots=True)
class Codec:
    """Values of a voice codec for the E-model."""

    name: str
    impairment: float
    """Ie: equipment impairment factor without loss (ITU-T G.113, Appendix I)."""
    robustness: float
    """Bpl: packet-loss robustness factor (ITU-T G.113, Appendix I)."""
    delay_ms: float
    """Delay of packetization and look-ahead."""
    assumed: bool = False
    """True if ITU-T G.113 has no values of the codec."""


G711 = Codec("G.711 with concealment", 0, 25.1, 20)
G729 = Codec("G.729A", 11, 19.0, 25)
"""G.729A with VAD and two frames of 10 ms per packet, as in G.113; look-ahead of 5 ms."""
OPUS = Codec("Opus", 0, 25.1, 26.5, assumed=True)
"""Opus with the impairments of G.711 with concealment, which are assumed; look-ahead of 6.5 ms (RFC 6716, section 2).
"""


@dataclass(frozen=True, slots=True)
class TrafficKind:
    """A kind of traffic. Sizes are bytes of transport payload; `interval_s` is the time between two sends."""

    name: KindName
    summary: str
    unit: str
    """Plural noun for its sources: calls, users."""
    protocol: Literal["udp", "tcp"]
    dscp: int
    """Usual code point (RFC 4594, figure 3)."""
    port: int
    """Destination port."""
    source: str
    """Sources of the packet sizes and intervals."""
    is_bidirectional: bool = False
    """True if the same traffic goes in both directions."""
    sizes: tuple[int, ...] = ()
    """Bytes of each send in a cycle: a datagram, a picture of a video, a page. Empty for TCP without pauses."""
    interval_s: float = 0.0
    largest: int = LARGEST_PAYLOAD
    """Maximum payload of a datagram; a larger send is a burst of several."""
    codec: Codec | None = None
    aliases: tuple[str, ...] = ()

    @property
    def rate_bps(self) -> float | None:
        """Payload rate of one source; None if it sends as fast as it can."""
        if not self.sizes:
            return None
        return sum(self.sizes) * 8 / (len(self.sizes) * self.interval_s)

    @property
    def sends_bursts(self) -> bool:
        """True if a send may be more than one packet, or if sizes vary."""
        return bool(self.sizes) and (self.protocol == "tcp" or len(self.sizes) > 1 or self.sizes[0] > self.largest)

    def interval_ns(self, rate_bps: float | None = None) -> int:
        """Return the time between two sends, at the catalogue's rate or at another one."""
        if rate_bps is None:
            return round(self.interval_s * 10**9)
        return round(sum(self.sizes) * 8 / len(self.sizes) / rate_bps * 10**9)

    def spread_ns(self, duration_ns: int, rate_bps: float | None = None) -> int:
        """Return the time within which its sources start, each at a random time: one cycle, but no longer than the
        traffic.
        """
        if not self.sizes:
            return min(TCP_SPREAD_NS, duration_ns // 4)
        return min(len(self.sizes) * self.interval_ns(rate_bps), round(SPREAD_SHARE * duration_ns))


def picture_bytes(pattern: str, rate_bps: int, interval_s: float) -> tuple[int, ...]:
    """Return the bytes of each picture of a pattern, at a mean rate."""
    parts = [PICTURE_SIZES[each] for each in pattern]
    unit = rate_bps * interval_s * len(parts) / 8 / sum(parts)
    return tuple(round(part * unit) for part in parts)


RTP_PORT = 16384
"""First UDP port of RTP on Cisco devices (command reference, "match ip rtp": 16384 to 32767)."""


def _voice_kind(
    name: KindName, summary: str, number: int, payload: int, codec: Codec, source: str, aliases: tuple[str, ...] = ()
) -> TrafficKind:
    """Return a kind of call: a packet every 20 ms, without silence suppression."""
    return TrafficKind(
        name,
        summary,
        "calls",
        "udp",
        46,
        RTP_PORT + 2 * number,
        source,
        is_bidirectional=True,
        sizes=(payload + RTP,),
        interval_s=0.02,
        codec=codec,
        aliases=aliases,
    )


CATALOGUE: tuple[TrafficKind, ...] = (
    _voice_kind(
        "voice", "G.711 calls, 20 ms", 0, 160, G711, "RFC 3551, section 4.5.14; ITU-T G.711", ("g711", "voip", "call")
    ),
    _voice_kind("g729", "G.729 calls, 20 ms", 2, 20, G729, "RFC 3551, section 4.5.6; ITU-T G.729"),
    _voice_kind("opus", "Opus calls, 32 kb/s, 20 ms", 3, 80, OPUS, "RFC 6716; RFC 7587, section 3.1.1: 28 to 40 kb/s"),
    TrafficKind(
        "video",
        "video calls, 1.5 Mb/s, 30 frames per second",
        "calls",
        "udp",
        34,
        RTP_PORT + 2,
        f"{CODE_POINTS}: multimedia conferencing",
        is_bidirectional=True,
        sizes=picture_bytes(CONFERENCE_PICTURES, CONFERENCE_BPS, 1 / 30),
        interval_s=1 / 30,
        largest=VIDEO_PAYLOAD,
        aliases=("conference",),
    ),
    TrafficKind(
        "streaming",
        "MPEG video streams, 4 Mb/s, 25 frames per second",
        "streams",
        "udp",
        26,
        5004,
        "O. Rose 1995 [remembered]; RFC 3551, section 8 (port)",
        sizes=picture_bytes(GROUP_OF_PICTURES, STREAMING_BPS, 1 / 25),
        interval_s=1 / 25,
        largest=VIDEO_PAYLOAD,
        aliases=("mpeg",),
    ),
    TrafficKind(
        "web",
        "web users, a page of 2.65 MB every 30 s",
        "users",
        "tcp",
        0,
        443,
        "HTTP Archive, Web Almanac 2024; 3GPP2 C.R1002-0 [remembered]",
        sizes=(PAGE_BYTES,),
        interval_s=READING_S,
        aliases=("http", "https"),
    ),
    TrafficKind(
        "transactions",
        "users of a business application, 20 kB every 2 s",
        "users",
        "tcp",
        18,
        1433,
        f"{CODE_POINTS}: low-latency data",
        sizes=(TRANSACTION_BYTES,),
        interval_s=TRANSACTION_S,
        aliases=("transaction", "business"),
    ),
    TrafficKind(
        "backup", "backup: TCP without pause", "streams", "tcp", 10, 873, f"{CODE_POINTS}: high-throughput data"
    ),
    TrafficKind(
        "bulk", "downloads: TCP without pause, not marked", "streams", "tcp", 0, 80, "RFC 2474: default forwarding"
    ),
    TrafficKind(
        "scavenger", "TCP without pause, low priority", "streams", "tcp", 8, 6881, f"{CODE_POINTS}: low-priority data"
    ),
    TrafficKind(
        "gaming",
        "players of a first-person shooter",
        "players",
        "udp",
        32,
        27015,
        "J. Färber, NetGames 2002 [remembered]",
        is_bidirectional=True,
        sizes=(GAME_PAYLOAD,),
        interval_s=GAME_S,
        aliases=("game", "games"),
    ),
    TrafficKind(
        "dns",
        "DNS queries, 2 a second",
        "resolvers",
        "udp",
        0,
        53,
        "RFC 1035",
        is_bidirectional=True,
        sizes=(DNS_PAYLOAD,),
        interval_s=DNS_S,
    ),
    TrafficKind(
        "imix",
        "IMIX 7:4:1 of 40, 576 and 1500 bytes, 5 Mb/s",
        "streams",
        "udp",
        0,
        9,
        "simple IMIX; RFC 6985",
        sizes=tuple(packet - IP_AND_UDP for packet in IMIX_PACKETS),
        interval_s=sum(IMIX_PACKETS) * 8 / len(IMIX_PACKETS) / IMIX_BPS,
    ),
)
"""All kinds of traffic."""

KINDS: dict[str, TrafficKind] = {name: kind for kind in CATALOGUE for name in (kind.name, *kind.aliases)}
"""Kinds of traffic by name and alias."""


def flow_keys(kind: TrafficKind, *, ipv6: bool = False) -> dict[str, object]:
    """Return the keys of a flow of an experiment file that a kind of traffic stands for."""
    keys: dict[str, object] = {"protocol": kind.protocol, "dscp": kind.dscp, "port": kind.port}
    if kind.protocol == "udp":
        headers = IPV6_AND_UDP if ipv6 else IP_AND_UDP
        size = min(min(max(kind.sizes), kind.largest) + headers, LARGEST_PAYLOAD + IP_AND_UDP)
        return {"tool": "flood", **keys, "delay": f"{round(kind.interval_s * 10**9)} ns", "size": f"{size} B"}
    if not kind.sizes:
        return {"tool": "iperf3", **keys}
    return {"tool": "flood", **keys, "delay": f"{round(kind.interval_s * 10**9)} ns", "size": f"{kind.sizes[0]} B"}
