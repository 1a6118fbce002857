"""Results of a probe from show output and from reports: integer milliseconds, as in IOS.

Values are `rtt_count`, `rtt_ms` and, for jitter operations (null for others), `jitter_samples`, `jitter_sd_ms`,
`jitter_ds_ms`; values in milliseconds are {min, avg, max}. A report of single packets adds `rtt_p50_ms`, their median.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from qoslab.errors import RunInvalid
from qoslab.genie.ip_sla import parse_statistics
from qoslab.ios.show.ip_sla import RETURN_CODES, format_jitter_triplet, format_summary_triplet, jitter_sample_count
from qoslab.model.experiment import Probe
from qoslab.system import program_formats

ProbeValues = dict[str, Any]
JITTER = ("jitter_samples", "jitter_sd_ms", "jitter_ds_ms")


def values_from_output(text: str, number: int) -> ProbeValues | None:
    """Parse the newest hour in `show ip sla statistics aggregated` of a jitter operation; None without an answer."""
    groups = parse_statistics(text).get("operations", {}).get(str(number), {}).get("groups", [])
    if not groups or not groups[-1].get("rtt_count"):
        return None
    return {name: groups[-1][name] for name in ("rtt_count", "rtt_ms", *JITTER)}


def values_from_runs(rtts: Sequence[int]) -> ProbeValues | None:
    """Compute values from round-trip times of single runs, in ms; for echo operations IOS does not aggregate them."""
    if not rtts:
        return None
    spread = {"min": min(rtts), "avg": sum(rtts) // len(rtts), "max": max(rtts)}
    return {"rtt_count": len(rtts), "rtt_ms": spread, **dict.fromkeys(JITTER)}


def values_from_report(report: program_formats.OperationReport, *, jitter: bool) -> ProbeValues | None:
    """Compute values from the data plane's answer, in the form of the output of 2008; None without an answer."""
    hours = report["hours"]
    if not hours or not hours[-1]["statistics"]["rtt"]["count"]:
        return None
    found = hours[-1]["statistics"]
    values: ProbeValues = {
        "rtt_count": found["rtt"]["count"],
        "rtt_ms": _parse_triplet(format_summary_triplet(found["rtt"])),
    }
    trips_ns = [each["arrived_ns"] - each["sent_ns"] for each in report["samples"]]
    if trips_ns:
        values["rtt_p50_ms"] = round(median(trips_ns) / 1e6, 3)
    if not jitter:
        return values | dict.fromkeys(JITTER)
    return values | {
        "jitter_samples": jitter_sample_count(found["jitter_sd"]),
        "jitter_sd_ms": _parse_triplet(format_jitter_triplet(found["jitter_sd"], "2008")),
        "jitter_ds_ms": _parse_triplet(format_jitter_triplet(found["jitter_ds"], "2008")),
    }


def unanswered_error(probe: Probe, code: str, reason: str = "") -> RunInvalid:
    """Return the error for unanswered packets; `code` is the latest return code, `reason` is added."""
    code = RETURN_CODES.get(code, code)
    advice = {
        "No connection": f"no responder on {probe.destination} answers on UDP port 1967; on a router "
        'enable it with "ip sla responder"; the other end must also run qoslab (docs/internals/devices.md)',
        "Timeout": f"no answer from {probe.destination} arrived in time; is there a route both ways, does a policy "
        "drop it, is the timeout too short for the load?",
        "Unknown": "no run ended; give the probe more time, or a lower frequency and timeout",
        "Busy": "no run ended before the next was due; increase the frequency value",
    }.get(code, "see its files in probes/")
    return RunInvalid(f"no packet was answered (return code: {code}{f', {reason}' if reason else ''}): {advice}")


def _parse_triplet(text: str) -> dict[str, int]:
    return dict(zip(("min", "avg", "max"), map(int, text.split("/")), strict=True))
