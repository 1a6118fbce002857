"""Kernel settings of a host: sysctls and route attributes of a TCP profile, and answers from closed ports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qoslab.errors import ExperimentError

if TYPE_CHECKING:
    from qoslab.model.experiment import TcpProfile

RTAX_RTO_MIN = 13
"""Number of the route attribute (linux/rtnetlink.h); the kernel applies it only if it is locked."""
RACK_ONLY_RELEASE = (6, 17)
"""First Linux release in which `tcp_recovery` can no longer turn off RACK."""

SYSCTLS: dict[str, str | int] = {
    # A new namespace copies these two from the machine; the values are Linux' defaults with ample memory.
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    # Path metrics learnt by one connection must not affect the next one.
    "net.ipv4.tcp_no_metrics_save": 1,
}
"""Settings of every host, independent of its profile."""
FIXED_PORTS_SYSCTLS: dict[str, str | int] = {"net.ipv4.tcp_max_tw_buckets": 0}
"""Settings of hosts for flows with fixed client ports. The next cell uses these ports at once: no connection may wait
in TIME-WAIT.
"""


def tcp_sysctls(profile: TcpProfile) -> dict[str, str | int]:
    """Return the sysctls of the host's network namespace."""
    return {
        "net.ipv4.tcp_sack": int(profile.sack),
        "net.ipv4.tcp_timestamps": int(profile.timestamps),
        "net.ipv4.tcp_ecn": int(profile.ecn),
        "net.ipv4.tcp_recovery": profile.recovery,
        "net.ipv4.tcp_early_retrans": profile.early_retrans,
        "net.ipv4.tcp_frto": profile.frto,
    }


def settings_without_effect(profile: TcpProfile, release: str) -> str:
    """Return the settings of a profile that a kernel of that release accepts but ignores; empty if there are none.

    Linux 6.17 took out the counting of SACKed segments (its commit 1c120191dcec, "tcp: remove obsolete and unused
    RFC3517/RFC6675 loss recovery code"); bit 0 of `tcp_recovery` is still there.
    """
    if not profile.sack or profile.recovery & 1:
        return ""
    version = tuple(int(number) for number in re.findall(r"\d+", release)[:2])
    return (
        f"Linux {release} detects losses by time (RACK), regardless of tcp.recovery"
        if version >= RACK_ONLY_RELEASE
        else ""
    )


def answer_sysctls(closed_ports: bool) -> dict[str, str | int]:
    """Return the sysctls for answers to datagrams at closed ports; Linux sends up to one a second by default.

    An answer to a peer costs as many milliseconds of credit as the limit; a new peer has a credit of 60 000
    (`inet_getpeer` in Linux' net/ipv4/inetpeer.c). IPv6 requires a sixteenth of that for default routes.
    """
    limit_ms = 1000 if closed_ports else 3_600_000
    return {"net.ipv4.icmp_ratelimit": limit_ms, "net.ipv6.icmp.ratelimit": limit_ms}


def route_metrics(profile: TcpProfile) -> list[tuple[str, int | str]]:
    """Return the attributes of the host's routes in netlink form.

    The congestion control is a route attribute because the sysctl accepts only the unrestricted algorithms outside
    the machine's initial network namespace.
    """
    return [
        ("RTAX_LOCK", 1 << RTAX_RTO_MIN),
        ("RTAX_INITCWND", profile.initcwnd),
        ("RTAX_RTO_MIN", _timer_milliseconds(profile)),
        ("RTAX_CC_ALGO", profile.congestion_control),
    ]


def route_words(profile: TcpProfile) -> dict[str, str]:
    """Return the attributes of the host's routes by keyword of `ip route`; `rto_min` in milliseconds."""
    return {
        "initcwnd": str(profile.initcwnd),
        "rto_min": str(_timer_milliseconds(profile)),
        "congctl": profile.congestion_control,
    }


def _timer_milliseconds(profile: TcpProfile) -> int:
    milliseconds, rest = divmod(int(profile.rto_min), 1_000_000)
    if rest:
        raise ExperimentError(f"rto_min is {profile.rto_min}; the kernel counts it in whole milliseconds")
    return milliseconds
