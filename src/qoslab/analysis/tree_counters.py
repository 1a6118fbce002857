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
UNITS = ("packets", "bytes")
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
    drops, managed = node["drops"], node["managed"]
    early = {"packets": 0, "bytes": 0}
    if managed is not None:
        early = managed["early"]
    elif node["discipline"] in EARLY_DROPS:
        # RED does not distinguish its drops; its limit is hardly ever reached.
        early = drops
    reason = EARLY_DROPS.get(node["discipline"], "aqm")
    flows = None if managed is None or managed["flows"] is None else managed["flows"]["active"]
    tail = {unit: drops[unit] - early[unit] for unit in UNITS}
    row = _queue(name, node["discipline"], node, {reason: early, "tail": tail}, flows)
    if managed is not None:
        # PIE does not measure the wait of each packet in all of its forms, but always has an estimate.
        row["queue_delay_ns"] = managed["sojourn_ns"] if managed["delay_ns"] is None else managed["delay_ns"]
    return row


def _tins(name: str, node: Mapping[str, Any]) -> Iterator[Row]:
    tins = () if node["managed"] is None else node["managed"]["tins"]
    names = TINS.get(len(tins), ())
    for number, tin in enumerate(tins):
        tin_name = f"{name}/{names[number] if names else f'tin-{number}'}"
        drops = {"aqm": tin["early"], "tail": tin["overlimit"]}
        delays = {"queue_delay_ns": tin["average_delay_ns"], "queue_delay_peak_ns": tin["peak_delay_ns"]}
        yield _queue(tin_name, "cake", tin, drops, tin["sparse_flows"] + tin["bulk_flows"]) | delays


def _queue(
    name: str,
    discipline: str | None,
    counted: Mapping[str, Any],
    drops: Mapping[str, Mapping[str, int]],
    flows: int | None,
) -> Row:
    """Return the row of a node or tin: `counted` has its packets and bytes, `drops` those of each reason."""
    sent, marked = counted["sent"], counted["marked"]
    row: Row = {"class": name, "queue_discipline": discipline, "queue_flows": flows}
    for unit in UNITS:
        depth = counted[f"depth_{unit}"]
        row |= {
            unit: sent[unit] + sum(each[unit] for each in drops.values()) + depth,
            f"queue_depth_{unit}": depth,
            f"queue_output_{unit}": sent[unit],
            f"random_detect_ecn_mark_{unit}": marked[unit],
        }
        row |= {f"drops_{reason}_{unit}": drops[reason][unit] if reason in drops else 0 for reason in DROP_REASONS}
    return row
