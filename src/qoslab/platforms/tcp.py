"""Settings of a host: what a TCP profile means to the kernel, and whether closed ports answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qoslab.errors import ExperimentError

if TYPE_CHECKING:
    from qoslab.model.experiment import TcpProfile

RTAX_RTO_MIN = 13
"""Number of the route attribute (linux/rtnetlink.h); the kernel heeds it only when it is locked."""
ALWAYS_RACK = (6, 17)
"""The release of Linux from which on `tcp_recovery` cannot turn RACK off any more."""

SYSCTLS: dict[str, str | int] = {
    # A new namespace copies these two from the machine; the values are Linux' own where memory is plentiful.
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    # What one connection learnt about the path must not steer the next one.
    "net.ipv4.tcp_no_metrics_save": 1,
}
"""Settings of every host, independent of its profile."""


def sysctls(profile: TcpProfile) -> dict[str, str | int]:
    """The settings of the host's network namespace."""
    return {
        "net.ipv4.tcp_sack": int(profile.sack),
        "net.ipv4.tcp_timestamps": int(profile.timestamps),
        "net.ipv4.tcp_ecn": int(profile.ecn),
        "net.ipv4.tcp_recovery": profile.recovery,
        "net.ipv4.tcp_early_retrans": profile.early_retrans,
        "net.ipv4.tcp_frto": profile.frto,
    }


def without_effect(profile: TcpProfile, release: str) -> str:
    """Return the settings of a profile that a kernel of that release accepts but ignores; empty if there are none.

    Linux 6.17 took out the counting of SACKed segments (its commit 1c120191dcec, "tcp: remove obsolete and unused
    RFC3517/RFC6675 loss recovery code"); bit 0 of `tcp_recovery` is still there.
    """
    if not profile.sack or profile.recovery & 1:
        return ""
    version = tuple(int(number) for number in re.findall(r"\d+", release)[:2])
    return f"Linux {release} finds losses by time (RACK), regardless of tcp.recovery" if version >= ALWAYS_RACK else ""


def answers(closed_ports: bool) -> dict[str, str | int]:
    """Return the settings for answers to datagrams at closed ports; the default of Linux is up to one a second.

    The first answer to anybody takes as many milliseconds of credit as the limit has, of which there are 60 000 at the
    beginning (`inet_getpeer` in Linux' net/ipv4/inetpeer.c); IPv6 wants a sixteenth of it of routes as wide as all.
    """
    limit_ms = 1000 if closed_ports else 3_600_000
    return {"net.ipv4.icmp_ratelimit": limit_ms, "net.ipv6.icmp.ratelimit": limit_ms}


def metrics(profile: TcpProfile) -> list[tuple[str, int | str]]:
    """The attributes of the host's routes, as netlink has them.

    The congestion control goes here because outside the machine's first network namespace the sysctl refuses all but
    the unrestricted algorithms.
    """
    return [
        ("RTAX_LOCK", 1 << RTAX_RTO_MIN),
        ("RTAX_INITCWND", profile.initcwnd),
        ("RTAX_RTO_MIN", _milliseconds(profile)),
        ("RTAX_CC_ALGO", profile.congestion_control),
    ]


def route_words(profile: TcpProfile) -> dict[str, str]:
    """The same by the words of `ip route`; `rto_min` in milliseconds."""
    return {
        "initcwnd": str(profile.initcwnd),
        "rto_min": str(_milliseconds(profile)),
        "congctl": profile.congestion_control,
    }


def _milliseconds(profile: TcpProfile) -> int:
    milliseconds, rest = divmod(int(profile.rto_min), 1_000_000)
    if rest:
        raise ExperimentError(f"rto_min is {profile.rto_min}; the kernel counts it in whole milliseconds")
    return milliseconds
