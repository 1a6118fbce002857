"""Rows of the tidy tables (`qoslab.results.tables`) from raw results. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

from qoslab.results import Health
from qoslab.traffic import FlowResult, IntervalResult

Row = dict[str, object]
_OF_INTERVAL = tuple(field.name for field in fields(IntervalResult))


def flow_rows(traffic: str, result: FlowResult, offset_s: float = 0.0) -> Iterator[Row]:
    """Return the rows of `flows`: one for each stream, with the receiver's goodput. `offset_s` is its start time."""
    own = {"traffic": traffic, "offset_s": offset_s, "tool": result.tool, "protocol": result.protocol}
    for stream in result.streams:
        yield own | asdict(stream)


def interval_rows(traffic: str, result: FlowResult, offset_s: float = 0.0) -> Iterator[Row]:
    """Return the rows of `intervals`; `offset_s` is the start time."""
    for interval in result.intervals:
        # There are tens of thousands, with nothing inside that `asdict` would have to copy.
        yield {"traffic": traffic, "offset_s": offset_s} | {name: getattr(interval, name) for name in _OF_INTERVAL}


def flatten(counters: Mapping[str, Any]) -> Row:
    """Return nested counters, as JSON has them, as one level, with names joined by `_`; lists are left out."""
    flat: Row = {}
    _flatten(counters, "", flat)
    return flat


def _flatten(counters: Mapping[str, Any], prefix: str, flat: Row) -> None:
    for name, value in counters.items():
        # Not `Mapping`: a test for an abstract class takes longer than the rest of this function.
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}_", flat)
        elif not isinstance(value, list):
            flat[prefix + name] = value


def class_rows(device: str, replies: Iterable[Mapping[str, Any]], origin_ns: int) -> Iterator[Row]:
    """Return the rows of `classes` from `counters` replies; a nested policy's classes are named `parent/child`."""
    for reply in replies:
        time_s = (reply["time_ns"] - origin_ns) / 1e9
        for interface, counters in _ports_and_subinterfaces(reply):
            for direction in ("input", "output"):
                policy = counters.get(f"policy_{direction}")
                if policy is None:
                    continue
                for name, entry in _classes(policy, ""):
                    own = {key: value for key, value in entry.items() if key not in ("name", "child", "match")}
                    yield {
                        "device": device,
                        "interface": interface,
                        "direction": direction,
                        "policy": policy["policy"],
                        "class": name,
                        "time_s": time_s,
                        **flatten(own),
                    }


def _ports_and_subinterfaces(reply: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each interface, and after a router's port its subinterfaces, which have fewer counters."""
    for interface, counters in reply["interfaces"].items():
        yield interface, counters
        yield from counters.get("subinterfaces", {}).items()


def _classes(policy: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in policy["classes"]:
        yield path + entry["name"], entry
        if entry.get("child") is not None:
            yield from _classes(entry["child"], f"{path}{entry['name']}/")


def interface_rows(device: str, replies: Iterable[Mapping[str, Any]], origin_ns: int) -> Iterator[Row]:
    """Return the rows of `interfaces` from `counters` replies."""
    for reply in replies:
        for interface, counters in _ports_and_subinterfaces(reply):
            other = ("policy_", "switch", "subinterfaces")
            own = {key: value for key, value in counters.items() if not key.startswith(other)}
            yield {
                "device": device,
                "interface": interface,
                "time_s": (reply["time_ns"] - origin_ns) / 1e9,
                **flatten(own),
            }


def queue_rows(device: str, replies: Iterable[Mapping[str, Any]], origin_ns: int) -> Iterator[Row]:
    """Return the rows of `queues` from `counters` replies: one for each threshold of each egress queue of a switch's
    port.
    """
    for reply in replies:
        for interface, counters in reply["interfaces"].items():
            switch = counters.get("switch")
            if switch is None:
                continue
            pairs = zip(switch["enqueued"], switch["dropped"], strict=True)
            for queue, (enqueued, dropped) in enumerate(pairs, 1):
                for threshold, (taken, refused) in enumerate(zip(enqueued, dropped, strict=True), 1):
                    yield {
                        "device": device,
                        "interface": interface,
                        "queue": queue,
                        "threshold": threshold,
                        "time_s": (reply["time_ns"] - origin_ns) / 1e9,
                        "enqueued": taken,
                        "dropped": refused,
                    }


def conversation_rows(
    device: str,
    replies: Iterable[Mapping[str, Any]],
    origin_ns: int,
    traffic_of: Callable[[Mapping[str, Any]], str | None],
) -> Iterator[Row]:
    """Return the rows of `conversations` from `counters` replies; `traffic_of` returns the traffic of an IP header."""
    for reply in replies:
        for interface, counters in reply["interfaces"].items():
            for each in counters["conversations"]:
                ip = each["head"]["ip"]
                yield {
                    "device": device,
                    "interface": interface,
                    "conversation": each["number"],
                    "traffic": None if ip is None else traffic_of(ip),
                    "time_s": (reply["time_ns"] - origin_ns) / 1e9,
                    "depth_packets": each["depth_packets"],
                    "weight": each["weight"],
                    "drops": each["drops"],
                }


def health_row(device: str, health: Health) -> Row:
    """Return a row of `health`."""
    return {
        "device": device,
        "received": health.received,
        "transmitted": health.transmitted,
        "lost_input": health.lost_input,
        "lateness_p50_ns": health.lateness_ns.p50,
        "lateness_p99_ns": health.lateness_ns.p99,
        "lateness_p999_ns": health.lateness_ns.p999,
        "lateness_max_ns": health.lateness_ns.max,
        "late_over_budget": health.late_over_budget,
        "behind_ns": health.behind_ns,
        "budget_ns": health.budget_ns,
    }


def probe_row(probe: str, values: Mapping[str, Any]) -> Row:
    """Return a row of `probes`; an echo operation has no jitter."""
    row: Row = {"probe": probe, "rtt_count": values["rtt_count"], "rtt_p50_ms": values.get("rtt_p50_ms")}
    for name, key in (("rtt", "rtt_ms"), ("jitter", "jitter_sd_ms"), ("jitter_back", "jitter_ds_ms")):
        found = values[key]
        row |= {f"{name}_{part}_ms": None if found is None else found[part] for part in ("min", "avg", "max")}
    return row
