"""Rows of the table `classes`, from counters of the engine's queue trees, which tc commands configure. Pure.

They are named like classes of a kernel's qdiscs (`kernel_counters`): `1:1/1:10` for a class, `fq_codel` for a qdisc
without classes, `cake/Voice` for a tin of CAKE. The engine counts the bytes of its drops, so that none is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from qoslab.model.drops import DROP_REASONS
from qoslab.tc.kernel_kinds import EARLY_DROPS

Row = dict[str, object]
TINS: Mapping[int, tuple[str, ...]] = {
    1: ("Best-Effort",),
    3: ("Best-Effort", "Bulk", "Voice"),
    4: ("Best-Effort", "Bulk", "Video", "Voice"),
}
"""Names of CAKE's tins in the engine's order, by their number; tins of other modes are `tin-0`, …"""


def tree_rows(device: str, replies: Iterable[Mapping[str, Any]], origin_ns: int) -> Iterator[Row]:
    """Yield the rows of the trees' nodes in `counters` replies."""
    for reply in replies:
        time_s = (reply["time_ns"] - origin_ns) / 1e9
        for interface, counters in reply["interfaces"].items():
            nodes: Sequence[Mapping[str, Any]] = counters.get("tree") or ()
            classes = {node["name"] for node in nodes if _is_class(node)}
            names = _names(nodes)
            for node in nodes:
                if classes and not _is_class(node) and node["parent"] is None:
                    continue
                place = {
                    "device": device,
                    "interface": interface,
                    "direction": "output",
                    "policy": "htb" if classes else str(names[nodes[0]["name"]]),
                    "time_s": time_s,
                }
                yield place | _row(names[node["name"]], node)
                for row in _tins(names[node["name"]], node):
                    yield place | row


def _is_class(node: Mapping[str, Any]) -> bool:
    """Return whether a node is a class: `1:10`, not `1:`."""
    major, _, minor = str(node["name"]).partition(":")
    return bool(minor) and " " not in major


def _names(nodes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of nodes, below those of their classes."""
    found: dict[str, str] = {}
    for node in nodes:
        kind = node["discipline"] or "tbf"
        own = str(node["name"]) if _is_class(node) else str(kind)
        above = found.get(str(node["parent"])) if node["parent"] is not None else None
        found[str(node["name"])] = own if above is None else f"{above}/{own}"
    return found


def _row(name: str, node: Mapping[str, Any]) -> Row:
    sent, drops, managed = node["sent"], node["drops"], node["managed"]
    early = {"packets": 0, "bytes": 0}
    if managed is not None:
        early = managed["early"]
    elif node["discipline"] in EARLY_DROPS:
        # RED does not distinguish its drops; its limit is hardly ever reached.
        early = drops
    reason = EARLY_DROPS.get(node["discipline"], "aqm")
    row: Row = {
        "class": name,
        "packets": sent["packets"] + drops["packets"] + node["depth_packets"],
        "bytes": sent["bytes"] + drops["bytes"] + node["depth_bytes"],
        "queue_discipline": node["discipline"],
        "queue_depth_packets": node["depth_packets"],
        "queue_depth_bytes": node["depth_bytes"],
        "queue_flows": None if managed is None or managed["flows"] is None else managed["flows"]["active"],
        "queue_output_packets": sent["packets"],
        "queue_output_bytes": sent["bytes"],
        "random_detect_ecn_mark_packets": node["marked"]["packets"],
        "random_detect_ecn_mark_bytes": node["marked"]["bytes"],
    }
    for unit in ("packets", "bytes"):
        row |= _drops(unit, {reason: early[unit], "tail": drops[unit] - early[unit]})
    return row


def _tins(name: str, node: Mapping[str, Any]) -> Iterator[Row]:
    tins = () if node["managed"] is None else node["managed"]["tins"]
    names = TINS.get(len(tins), ())
    for number, tin in enumerate(tins):
        lost = {unit: tin["early"][unit] + tin["overlimit"][unit] for unit in ("packets", "bytes")}
        row: Row = {
            "class": f"{name}/{names[number] if names else f'tin-{number}'}",
            "packets": tin["sent"]["packets"] + lost["packets"] + tin["depth_packets"],
            "bytes": tin["sent"]["bytes"] + lost["bytes"] + tin["depth_bytes"],
            "queue_discipline": "cake",
            "queue_depth_packets": tin["depth_packets"],
            "queue_depth_bytes": tin["depth_bytes"],
            "queue_flows": tin["sparse_flows"] + tin["bulk_flows"],
            "queue_output_packets": tin["sent"]["packets"],
            "queue_output_bytes": tin["sent"]["bytes"],
            "random_detect_ecn_mark_packets": tin["marked"]["packets"],
            "random_detect_ecn_mark_bytes": tin["marked"]["bytes"],
        }
        for unit in ("packets", "bytes"):
            row |= _drops(unit, {"aqm": tin["early"][unit], "tail": tin["overlimit"][unit]})
        yield row


def _drops(unit: str, counts: Mapping[str, int]) -> Row:
    return {f"drops_{reason}_{unit}": counts.get(reason, 0) for reason in DROP_REASONS}
