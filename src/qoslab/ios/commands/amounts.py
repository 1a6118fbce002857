"""Rates and bursts of `police` and `shape`, in printed output and in data plane configuration."""

from __future__ import annotations

from qoslab.ios.model.policy import Amount
from qoslab.system import program_formats


def rate_text(amount: Amount) -> str:
    """Return a rate as the running configuration prints it."""
    return f"percent {amount.number}" if amount.unit == "percent" else str(amount.number)


def burst_text(amount: Amount) -> str:
    """Return a burst as the running configuration prints it."""
    return f"{amount.number} ms" if amount.unit == "ms" else str(amount.number)


def rate_config(rate: Amount) -> program_formats.RateSpec:
    """Return a rate for the data plane."""
    return {"percent": rate.number} if rate.unit == "percent" else {"bps": rate.number}


def percent_text(percent: float) -> str:
    """Return a percentage without needless decimals, such as 20 or 12.5."""
    return f"{percent:g}"
