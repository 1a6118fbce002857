"""TCP settings of a host: what a profile means to the kernel."""

from __future__ import annotations

from qoslab.errors import ExperimentError
from qoslab.model.experiment import TcpProfile

RTAX_RTO_MIN = 13
"""Number of the route attribute (linux/rtnetlink.h); the kernel heeds it only when it is locked."""


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


def metrics(profile: TcpProfile) -> list[tuple[str, int | str]]:
    """The attributes of the host's routes.

    The congestion control goes here because outside the machine's first network namespace the sysctl refuses all but
    the unrestricted algorithms.
    """
    milliseconds, rest = divmod(int(profile.rto_min), 1_000_000)
    if rest:
        raise ExperimentError(f"rto_min is {profile.rto_min}; the kernel counts it in whole milliseconds")
    return [
        ("RTAX_LOCK", 1 << RTAX_RTO_MIN),
        ("RTAX_INITCWND", profile.initcwnd),
        ("RTAX_RTO_MIN", milliseconds),
        ("RTAX_CC_ALGO", profile.congestion_control),
    ]
