"""Rates and intervals as `show` output prints them."""

from __future__ import annotations

from qoslab.ios.model.generations import QosGeneration

RATE_UNIT = 1000
"""Printed rates are multiples of this many bits per second."""


def interval_text(seconds: int) -> str:
    """Return the text of a load interval, such as `5 minute` or `30 second`."""
    return f"{seconds // 60} minute" if seconds % 60 == 0 else f"{seconds} second"


def format_rate(bits_per_second: float) -> int:
    """Return a rate as printed, rounded to whole kilobits."""
    return int(bits_per_second / RATE_UNIT + 0.5) * RATE_UNIT


def format_policy_rate(bits_per_second: float, qos: QosGeneration) -> str:
    """Return a rate in `show policy-map interface`: IOS-XE always prints three zeros after the kilobits."""
    shown = format_rate(bits_per_second)
    return f"{shown // RATE_UNIT}000" if qos.prints_thousands else str(shown)
