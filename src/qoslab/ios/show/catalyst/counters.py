"""Counters of a Catalyst 3750: QoS statistics by port, drops by queue and threshold, frames by port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qoslab.ios.model.ios_names import short_name
from qoslab.system import program_formats

INPUT_QUEUES = 2
QUEUES = 4
THRESHOLDS = 3
_LAST_DSCP_ROW = 4
"""Index of the row that begins with 60: it has four values, although its label extends to 64."""


def idle_counters() -> program_formats.SwitchPortCounters:
    """Return the counters of a port without any traffic."""
    return {
        "dscp_in": [0] * 64,
        "dscp_out": [0] * 64,
        "cos_in": [0] * 8,
        "cos_out": [0] * 8,
        "input_enqueued": [[0] * THRESHOLDS for _ in range(INPUT_QUEUES)],
        "enqueued": [[0] * THRESHOLDS for _ in range(QUEUES)],
        "dropped": [[0] * THRESHOLDS for _ in range(QUEUES)],
        "policer": {"in_profile": 0, "out_of_profile": 0},
        "depth_cells": [0] * QUEUES,
        "depth_packets": [0] * QUEUES,
        "operational_bandwidth_percent": 100.0,
    }


def subtract_counters(
    now: program_formats.SwitchPortCounters, before: program_formats.SwitchPortCounters
) -> program_formats.SwitchPortCounters:
    """Return the counts since `before`; depths are the current ones."""
    policer: program_formats.ProfileCounters = {
        "in_profile": now["policer"]["in_profile"] - before["policer"]["in_profile"],
        "out_of_profile": now["policer"]["out_of_profile"] - before["policer"]["out_of_profile"],
    }
    return {
        **now,
        "dscp_in": _subtract_values(now["dscp_in"], before["dscp_in"]),
        "dscp_out": _subtract_values(now["dscp_out"], before["dscp_out"]),
        "cos_in": _subtract_values(now["cos_in"], before["cos_in"]),
        "cos_out": _subtract_values(now["cos_out"], before["cos_out"]),
        "enqueued": [_subtract_values(*each) for each in zip(now["enqueued"], before["enqueued"], strict=True)],
        "dropped": [_subtract_values(*each) for each in zip(now["dropped"], before["dropped"], strict=True)],
        "policer": policer,
    }


def _subtract_values(now: Sequence[int], before: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(now, before, strict=True)]


def show_statistics(name: str, counters: program_formats.SwitchPortCounters) -> str:
    """Return `show mls qos interface X statistics`. Column widths are from memory [R]."""
    return "".join(line + "\n" for line in _statistics_lines(name, counters))


def _statistics_lines(name: str, counters: program_formats.SwitchPortCounters) -> Iterator[str]:
    yield f"{name} (All statistics are in packets)"
    yield ""
    for field, received, sent in (
        ("dscp", counters["dscp_in"], counters["dscp_out"]),
        ("cos", counters["cos_in"], counters["cos_out"]),
    ):
        for way, values in (("incoming", received), ("outgoing", sent)):
            yield f"  {field}: {way}  "
            yield "-" * 31
            yield ""
            yield from _groups_of_five(values)
    for what, rows in (("enqueued", counters["enqueued"]), ("dropped", counters["dropped"])):
        yield f"  output queues {what}: "
        yield " queue:    threshold1   threshold2   threshold3"
        yield "-" * 47
        for queue, thresholds in enumerate(rows):
            yield f" queue {queue}:" + "".join(f"{value:12}" for value in thresholds) + " "
        yield ""
    profile = counters["policer"]
    yield f"Policer: Inprofile: {profile['in_profile']:12} OutofProfile: {profile['out_of_profile']:12} "
    yield ""


def _groups_of_five(values: Sequence[int]) -> Iterator[str]:
    for low in range(0, len(values), 5):
        some = values[low : low + 5]
        high = low + (_LAST_DSCP_ROW if low == 60 else len(some) - 1)
        yield f"{low:3} - {high:2} :" + f"{some[0]:12}" + "".join(f"{value:13}" for value in some[1:]) + "  "


def show_port_asic_drops(name: str, counters: program_formats.SwitchPortCounters) -> str:
    """Return `show platform port-asic stats drop X`: queues and weights count from 0."""
    lines = ["", f"  Interface {short_name(name)} TxQueue Drop Statistics"]
    for queue, weights in enumerate(counters["dropped"]):
        lines.append(f"    Queue {queue}")
        lines += [f"      Weight {weight} Frames {frames}" for weight, frames in enumerate(weights)]
    return "".join(line + "\n" for line in lines)


def show_counters(interfaces: Mapping[str, program_formats.InterfaceCounters]) -> str:
    """Return `show interfaces [X] counters`. All packets count as unicast, as broadcasts are not counted separately."""
    lines: list[str] = []
    for way in ("In", "Out"):
        lines += ["", f"{'Port':<8}" + _format_columns([f"{way}{word}" for word in _FRAMES], (16, 15, 15, 15)) + " "]
        for name, each in interfaces.items():
            traffic = each["input"] if way == "In" else each["output"]
            lines.append(
                f"{short_name(name):<8}"
                + _format_columns((traffic["bytes"], traffic["packets"], 0, 0), (16, 15, 15, 15))
                + " "
            )
    return "".join(line + "\n" for line in lines)


_FRAMES = ("Octets", "UcastPkts", "McastPkts", "BcastPkts")


def _format_columns(values: Sequence[object], widths: Sequence[int]) -> str:
    return "".join(f"{value:>{width}}" for value, width in zip(values, widths, strict=True))


def show_error_counters(interfaces: Mapping[str, program_formats.InterfaceCounters]) -> str:
    """Return `show interfaces [X] counters errors`: only output queue drops, since a virtual line has no errors."""
    first = ("Align-Err", "FCS-Err", "Xmit-Err", "Rcv-Err", "UnderSize", "OutDiscards")
    second = ("Single-Col", "Multi-Col", "Late-Col", "Excess-Col", "Carri-Sen", "Runts", "Giants")
    lines = ["", f"{'Port':<8}" + _format_columns(first, _ERRORS) + " "]
    for name, each in interfaces.items():
        lines.append(
            f"{short_name(name):<8}" + _format_columns((0, 0, 0, 0, 0, each["output"]["drops"]), _ERRORS) + " "
        )
    lines += ["", f"{'Port':<8}" + _format_columns(second, _COLLISIONS) + " "]
    lines += [f"{short_name(name):<8}" + _format_columns((0,) * len(second), _COLLISIONS) + " " for name in interfaces]
    return "".join(line + "\n" for line in lines)


_ERRORS = (13, 12, 12, 12, 11, 13)
_COLLISIONS = (12, 11, 11, 12, 11, 11, 11)
