"""Counters of a kernel's qdiscs → rows of the tables `classes` and `interfaces`. Pure.

Classes are named as tc names them: `1:10`, below another class `1:1/1:10`. A qdisc without classes is a class of its
kind, as `cake`, and CAKE's tins are below it, as `cake/Voice`. Packets and bytes of a class are those that were
offered: the kernel counts packets that left, those that it dropped, and its backlog. Only CAKE counts the bytes of its
drops; of others, offered and dropped bytes are null as soon as something is dropped. Bytes are those of the frame: IP
and the Ethernet header.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from qoslab.model.drops import DROP_REASONS
from qoslab.tc.interface_qdiscs import LINE, UNDER_LINE

Row = dict[str, object]
TINS: Mapping[str, tuple[str, ...]] = {
    "besteffort": ("Best-Effort",),
    "diffserv3": ("Bulk", "Best-Effort", "Voice"),
    "diffserv4": ("Bulk", "Best-Effort", "Video", "Voice"),
}
"""Names of the tins of CAKE as tc prints them, without blanks; those of other modes are `tin-0`, `tin-1`, …"""
EARLY = frozenset({"cake", "choke", "codel", "fq_codel", "fq_pie", "gred", "pie", "red", "sfb"})
"""Qdiscs that drop before they are full."""
_MARKS = ("ecn_mark", "ecn_marks", "marked")
_FULL = ("drop_overlimit", "overlimit", "pdrop")
"""Counters of drops by a full queue, of qdiscs that drop before they are full."""


def kernel_rows(device: str, replies: Iterable[Mapping[str, Any]], origin_ns: int) -> Iterator[tuple[str, Row]]:
    """Yield tables and rows of the `tc` part of `counters` replies."""
    for reply in replies:
        time_s = (reply["time_ns"] - origin_ns) / 1e9
        for interface, counters in reply.get("tc", {}).items():
            place = {"device": device, "interface": interface, "time_s": time_s}
            qdiscs = [each for each in counters["qdiscs"] if each["handle"] != LINE]
            yield "interfaces", place | _interface(counters["qdiscs"], qdiscs)
            for row in _classes(qdiscs, counters["classes"]):
                yield "classes", place | row


def _interface(everything: Sequence[Mapping[str, Any]], qdiscs: Sequence[Mapping[str, Any]]) -> Row:
    """The interface: what left by its root, and drops of all qdiscs that have no other below them."""
    root = next((each for each in everything if each.get("root")), None)
    own = next((each for each in qdiscs if _is_top(each)), None)
    parents = {str(each.get("parent", "")).partition(":")[0] for each in everything}
    leaves = [each for each in everything if each["handle"].rstrip(":") not in parents]
    output = [each for each in leaves if not _is_input(each)]
    drops = sum(each["drops"] for each in output)
    return {
        "output_packets": None if root is None else root["packets"],
        "output_bytes": None if root is None else root["bytes"],
        "output_drops": drops,
        "queue_strategy": None if own is None else own["kind"],
        "queue_depth": None if root is None else root["qlen"],
        "queue_drops": drops,
        "input_drops": sum(each["drops"] for each in leaves if _is_input(each)),
    }


def _is_top(qdisc: Mapping[str, Any]) -> bool:
    """Return whether a qdisc is the one that the commands put at the root."""
    return qdisc.get("root", False) or qdisc.get("parent") == UNDER_LINE


def _is_input(qdisc: Mapping[str, Any]) -> bool:
    return qdisc["kind"] in ("ingress", "clsact")


def _classes(qdiscs: Sequence[Mapping[str, Any]], classes: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    classes = [each for each in classes if not each["handle"].startswith(LINE)]
    by_parent = {str(each["parent"]): each for each in qdiscs if each.get("parent")}
    parents = {each["handle"]: each["parent"] for each in classes}
    top = next((each for each in qdiscs if _is_top(each)), None)
    policy = "" if top is None else top["kind"]
    for each in classes:
        leaf = by_parent.get(each["handle"])
        yield _row(policy, _path(each["handle"], parents), each, leaf)
    for qdisc in qdiscs:
        if qdisc.get("parent") in parents or (qdisc is top and classes) or _is_input(qdisc):
            continue
        name = qdisc["kind"] if qdisc is top else str(qdisc["parent"])
        yield _row(policy, name, qdisc, qdisc)
        yield from _tins(policy, name, qdisc)


def _path(handle: str, parents: Mapping[str, str | None]) -> str:
    """The names of the classes from the outermost one."""
    names = [handle]
    while (parent := parents.get(names[0])) in parents and parent is not None:
        names.insert(0, parent)
    return "/".join(names)


def _row(policy: str, name: str, counted: Mapping[str, Any], queue: Mapping[str, Any] | None) -> Row:
    """A class: `counted` counts what left, `queue` is the qdisc that holds its packets, if there is one."""
    holder = counted if queue is None else queue
    sent, drops, depth = counted["packets"], holder["drops"], holder["qlen"]
    offered = _offered_bytes(holder)
    if offered is None and drops == 0:
        offered = counted["bytes"] + holder["backlog"]
    lost = None if offered is None else max(0, offered - counted["bytes"] - holder["backlog"])
    early = 0
    if holder["kind"] in EARLY:
        early = drops - min(drops, sum(holder.get(key, 0) for key in _FULL))
    marks = next((holder[key] for key in _MARKS if key in holder), None)
    if "tins" in holder:
        marks = sum(tin["ecn_mark"] for tin in holder["tins"])
    options = holder.get("options", {})
    limit = options.get("limit")
    return {
        "direction": "output",
        "policy": policy,
        "class": name,
        "packets": sent + drops + depth,
        "bytes": offered,
        **_drops({"random": early, "tail": drops - early}, lost),
        "queue_discipline": None if queue is None else queue["kind"],
        "queue_limit_packets": limit if holder["kind"] in ("pfifo", "fq_codel", "codel", "pie", "fq") else None,
        "queue_limit_bytes": limit if holder["kind"] == "bfifo" else None,
        "queue_depth_packets": depth,
        "queue_depth_bytes": holder["backlog"],
        "queue_flows": holder["new_flows_len"] + holder["old_flows_len"] if "new_flows_len" in holder else None,
        "queue_output_packets": sent,
        "queue_output_bytes": counted["bytes"],
        "random_detect_ecn_mark_packets": marks,
    }


def _offered_bytes(qdisc: Mapping[str, Any]) -> int | None:
    """Bytes that were offered to a CAKE; None of others, which do not count the bytes that they drop."""
    return sum(tin["sent_bytes"] for tin in qdisc["tins"]) if "tins" in qdisc else None


def _tins(policy: str, name: str, qdisc: Mapping[str, Any]) -> Iterator[Row]:
    """The tins of a CAKE, which count all packets and bytes that were offered to them (`cake_enqueue` in Linux)."""
    tins = qdisc.get("tins", ())
    names = TINS.get(qdisc.get("options", {}).get("diffserv", ""), ())
    for number, tin in enumerate(tins):
        drops = tin["drops"] + tin["ack_drops"]
        yield {
            "direction": "output",
            "policy": policy,
            "class": f"{name}/{names[number] if len(names) == len(tins) else f'tin-{number}'}",
            "packets": tin["sent_packets"],
            "bytes": tin["sent_bytes"],
            **_drops({"random": drops}, 0 if drops == 0 else None),
            "queue_discipline": "cake",
            "queue_depth_packets": None,
            "queue_depth_bytes": tin["backlog_bytes"],
            "queue_flows": tin["sparse_flows"] + tin["bulk_flows"],
            "random_detect_ecn_mark_packets": tin["ecn_mark"],
        }


def _drops(packets: Mapping[str, int], lost_bytes: int | None) -> Row:
    """The columns of drops; bytes of a single reason are all, otherwise they are not known."""
    row: Row = {}
    reasons = [reason for reason, count in packets.items() if count]
    for reason in DROP_REASONS:
        row[f"drops_{reason}_packets"] = packets.get(reason, 0)
        all_of_it = lost_bytes if len(reasons) <= 1 and reason in reasons else None
        row[f"drops_{reason}_bytes"] = all_of_it if packets.get(reason) else 0
    return row
