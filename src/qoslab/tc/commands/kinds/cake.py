"""`cake`: Common Applications Kept Enhanced (tc-cake(8)). Defaults are those of Linux."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.system import program_formats
from qoslab.tc.commands.qdisc_kind import Flag, Leaf, Parameter, QdiscKind, on_off
from qoslab.tc.commands.tc_units import parse_rate, parse_signed, parse_size, parse_time

ETHERNET_HEADER = 14
"""Bytes of an Ethernet frame that the engine counts in addition to the IP packet; `overhead` is relative to it."""
TARGET_US, RTT_US = 5_000, 100_000
RTTS = {
    "datacentre": 100,
    "lan": 1_000,
    "metro": 10_000,
    "regional": 30_000,
    "internet": 100_000,
    "oceanic": 300_000,
    "satellite": 1_000_000,
    "interplanetary": 3_600_000_000,
}
"""Round-trip times by keyword, microseconds; the target is a twentieth of it (tc-cake(8))."""
OVERHEADS: dict[str, dict[str, int | str]] = {
    "conservative": {"overhead": 48, "carrier": "atm"},
    "ethernet": {"overhead": 38, "mpu": 84},
    "docsis": {"overhead": 18, "mpu": 64, "carrier": "frames"},
    "pppoa-vcmux": {"overhead": 10, "carrier": "atm"},
    "pppoa-llc": {"overhead": 14, "carrier": "atm"},
    "pppoe-vcmux": {"overhead": 32, "carrier": "atm"},
    "pppoe-llcsnap": {"overhead": 40, "carrier": "atm"},
    "bridged-vcmux": {"overhead": 24, "carrier": "atm"},
    "bridged-llcsnap": {"overhead": 32, "carrier": "atm"},
    "ipoa-vcmux": {"overhead": 8, "carrier": "atm"},
    "ipoa-llcsnap": {"overhead": 16, "carrier": "atm"},
    "pppoe-ptm": {"overhead": 30, "carrier": "ptm"},
    "bridged-ptm": {"overhead": 22, "carrier": "ptm"},
}
"""Overhead keywords of tc-cake(8)."""


@dataclass(frozen=True, slots=True)
class Cake:
    """Settings of `cake`."""

    bandwidth_bps: int | None = None
    """Shaper rate; None for no shaper."""
    diffserv: program_formats.Diffserv = "diffserv3"
    isolation: program_formats.Isolation = "triple_isolate"
    rtt_us: int = RTT_US
    memory_limit: int | None = None
    wash: bool = False
    overhead: int | None = None
    """Bytes in addition to the IP packet; None (`raw`) for the Ethernet header."""
    mpu: int = 0
    carrier: program_formats.Carrier = "frames"

    @property
    def target_us(self) -> int:
        """Target delay: a twentieth of the round-trip time."""
        return max(self.rtt_us // 20, 1)


def _engine_leaf(settings: Cake) -> Leaf:
    queue: program_formats.QueueDiscipline = {
        "kind": "cake",
        "diffserv": settings.diffserv,
        "isolation": settings.isolation,
        "rtt_us": settings.rtt_us,
        "target_us": settings.target_us,
        "memory_limit": settings.memory_limit,
        "wash": settings.wash,
    }
    if settings.bandwidth_bps is None:
        return Leaf(queue)
    offset = 0 if settings.overhead is None else settings.overhead - ETHERNET_HEADER
    account: program_formats.LengthAccount = {
        "offset_bytes": offset,
        "least_bytes": settings.mpu,
        "carrier": settings.carrier,
    }
    return Leaf(queue, {"rate_bps": settings.bandwidth_bps, "burst_bytes": 0, "deficit": True, "account": account})


_ISOLATIONS = ("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate")

KINDS = (
    QdiscKind(
        "cake",
        Cake,
        {
            "bandwidth": Parameter("bandwidth_bps", parse_rate),
            "unlimited": Flag({"bandwidth_bps": None}),
            "rtt": Parameter("rtt_us", parse_time),
            "memlimit": Parameter("memory_limit", parse_size),
            "overhead": Parameter("overhead", parse_signed),
            "mpu": Parameter("mpu", parse_size),
            "raw": Flag({"overhead": None, "carrier": "frames", "mpu": 0}),
            "noatm": Flag({"carrier": "frames"}),
            "atm": Flag({"carrier": "atm"}),
            "ptm": Flag({"carrier": "ptm"}),
            **on_off("wash"),
            **{word: Flag({"diffserv": word}) for word in ("besteffort", "diffserv3", "diffserv4")},
            **{word: Flag({"isolation": word.replace("-", "_")}) for word in _ISOLATIONS},
            **{word: Flag({"rtt_us": us}) for word, us in RTTS.items()},
            **{word: Flag(sets) for word, sets in OVERHEADS.items()},
            # Linux's defaults for functions that the engine does not have.
            **dict.fromkeys(("nonat", "egress", "no-ack-filter", "no-split-gso", "split-gso"), Flag()),
        },
        refused={
            "nat": "the engine's router does not translate addresses",
            "ingress": "the engine queues output only",
            "autorate-ingress": "the engine does not estimate the input rate",
            **dict.fromkeys(("ack-filter", "ack-filter-aggressive"), "the engine does not read TCP options"),
            **dict.fromkeys(("diffserv8", "precedence"), "the engine has besteffort, diffserv3 and diffserv4"),
            "fwmark": "the engine has no firewall marks",
            "ether-vlan": "the engine counts tags automatically",
        },
        leaf=_engine_leaf,
    ),
)
