"""Rows of the tables `classes` and `interfaces`, from counters of a kernel's qdiscs. Pure.

Classes of an IOS policy are named as on other routers, `PARENT/CHILD`. Classes of tc commands have their names in tc:
`1:10`, or `1:1/1:10` below another class. A qdisc without classes is a class of its kind, such as `cake`, with CAKE's
tins below it, such as `cake/Voice`. Packets and bytes of a class are those that were offered: the kernel counts sent
and dropped packets, and its backlog; for an IOS policy its filters count offered packets. Only CAKE counts the bytes of
its drops; for other qdiscs, offered and dropped bytes are null after the first drop. Bytes are those of the frame: IP
and the Ethernet header.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qoslab.model.drops import DROP_REASONS
from qoslab.tc.kernel_kinds import EARLY_DROPS
from qoslab.tc.lab_line import LINE, LINE_PARENT

Row = dict[str, object]
TINS: Mapping[str, tuple[str, ...]] = {
    "besteffort": ("Best-Effort",),
    "diffserv3": ("Bulk", "Best-Effort", "Voice"),
    "diffserv4": ("Bulk", "Best-Effort", "Video", "Voice"),
}
"""Names of CAKE's tins as tc prints them, without blanks; tins of other modes are `tin-0`, `tin-1`, …"""
DELAYS: Mapping[str, str] = {
    "ldelay": "queue_delay_ns",
    "delay": "queue_delay_ns",
    "avg_delay_us": "queue_delay_ns",
    "peak_delay_us": "queue_delay_peak_ns",
    "base_delay_us": "queue_delay_base_ns",
}
"""Columns of delays by the words of tc, in microseconds: CoDel and flows of FQ-CoDel, PIE, tins of CAKE."""
_MARKS = ("ecn_mark", "ecn_marks", "marked")
_FULL = ("drop_overlimit", "overlimit", "pdrop")
"""Counters of drops by a full queue, for qdiscs that also drop before the queue is full."""


def kernel_rows(device: str, replies: Iterable[Mapping[str, Any]], origin_ns: int) -> Iterator[tuple[str, Row]]:
    """Yield tables and rows of the `tc` part of `counters` replies."""
    for reply in replies:
        time_s = (reply["time_ns"] - origin_ns) / 1e9
        for interface, counters in reply.get("tc", {}).items():
            place = {"device": device, "interface": interface, "time_s": time_s}
            # Default qdiscs are not part of a configuration; a NIC has one for each of its queues, below the root.
            everything = [each for each in counters["qdiscs"] if each["handle"] != "0:" or each.get("root")]
            qdiscs = [each for each in everything if each["handle"] not in (LINE, "0:")]
            yield "interfaces", place | _interface(everything, qdiscs)
            policy = counters.get("policy")
            rows = _classes(qdiscs, counters["classes"]) if policy is None else _policy_classes(policy, counters)
            for row in rows:
                yield "classes", place | row


def _interface(everything: Sequence[Mapping[str, Any]], qdiscs: Sequence[Mapping[str, Any]]) -> Row:
    """Return the row of an interface: packets sent by its root qdisc, and drops of all qdiscs without other qdiscs
    below them.
    """
    # `noqueue` counts nothing.
    root = next((each for each in everything if each.get("root") and each["kind"] != "noqueue"), None)
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
    """Return whether a qdisc is the root of the configured tree."""
    return qdisc.get("root", False) or qdisc.get("parent") == LINE_PARENT


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


@dataclass(frozen=True)
class _Counted:
    """Counters of a class of an IOS policy."""

    packets: int
    bytes: int
    drops: Mapping[str, int]
    """Packets that the class's policers dropped, by reason."""
    leaves: frozenset[str]
    """HTB classes that queue the class's packets."""


ETHERNET_HEADER = 14
"""Bytes of a frame that filters on input do not count."""
DIRECTIONS = {"ingress": "input", "egress": "output"}


def _policy_classes(policy: Sequence[Mapping[str, Any]], counters: Mapping[str, Any]) -> Iterator[Row]:
    """Return the rows of the classes of IOS policies: packets from filters, decisions from policers, the rest from
    qdiscs.

    Counters of a class with a child policy are sums of those of the child's classes, and of the class's own policers.
    """
    chains: dict[tuple[str, int], list[Sequence[Mapping[str, Any]]]] = {}
    for each in counters.get("filters", ()):
        chains.setdefault((each["hook"], each["chain"]), []).append(each["actions"])
    queues = {str(each["parent"]): each for each in counters["qdiscs"] if each.get("parent")}
    owners: dict[str, tuple[str, ...]] = {}
    for each in policy:
        # Classes without a queue share the queue of class-default, which is the last one.
        if each["leaf"] is not None:
            owners[each["leaf"]] = tuple(each["path"])
    found: dict[tuple[str, tuple[str, ...]], _Counted] = {}
    outer = {each["hook"]: each["policy"] for each in reversed(policy) if len(each["path"]) == 1}
    for each in sorted(policy, key=lambda one: -len(one["path"])):
        path, hook = tuple(each["path"]), each["hook"]
        below = [one for (at, other), one in found.items() if at == hook and other[:-1] == path]
        found[hook, path] = _sum([_own_counters(each, chains), *below])
    users = Counter(str(each["leaf"]) for each in policy if each["leaf"] is not None)
    for each in policy:
        path, hook = tuple(each["path"]), each["hook"]
        one = found[hook, path]
        of_queues = [_queue_drops(queues[leaf]) for leaf in one.leaves if leaf in queues]
        drops: dict[str, int | None] = dict(sum(map(Counter, of_queues), Counter(one.drops)))
        if each["leaf"] is not None and users[each["leaf"]] > 1 and any(sum(some.values()) for some in of_queues):
            # The classes of the packets that the queue dropped are unknown.
            drops |= dict.fromkeys(of_queues[0])
        queue = queues.get(each["leaf"]) if owners.get(each["leaf"]) == path else None
        yield {
            "direction": DIRECTIONS[hook],
            "policy": outer.get(hook, each["policy"]),
            "class": "/".join(path),
            "packets": one.packets,
            "bytes": one.bytes,
            **_drops(drops, None),
            **_packets_by_colour(each, chains),
            **({} if queue is None else _queue(queue, queue)),
        }


def _own_counters(
    each: Mapping[str, Any], chains: Mapping[tuple[str, int], Sequence[Sequence[Mapping[str, Any]]]]
) -> _Counted:
    """Return the counters of one class without those of the classes below it."""
    hook = each["hook"]
    filters = () if each["chain"] is None else chains.get((hook, each["chain"]), ())
    first = [actions[0] for actions in filters if actions]
    packets = sum(one["packets"] for one in first)
    header = ETHERNET_HEADER if hook == "ingress" else 0
    drops: Counter[str] = Counter()
    for action, bucket in _buckets(each, chains):
        drops[action] += bucket["drops"]
    leaves = frozenset() if each["leaf"] is None else frozenset({str(each["leaf"])})
    return _Counted(packets, sum(one["bytes"] for one in first) + header * packets, drops, leaves)


def _buckets(
    each: Mapping[str, Any], chains: Mapping[tuple[str, int], Sequence[Sequence[Mapping[str, Any]]]]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the token buckets of a class, each with its action."""
    filters = () if each["police_chain"] is None else chains.get((each["hook"], each["police_chain"]), ())
    buckets = [one for actions in filters for one in actions if one["kind"] == "police"]
    return list(zip(each["buckets"], buckets, strict=False))


def _sum(parts: Sequence[_Counted]) -> _Counted:
    drops: Counter[str] = Counter()
    for each in parts:
        drops.update(each.drops)
    leaves = frozenset().union(*(each.leaves for each in parts))
    return _Counted(sum(each.packets for each in parts), sum(each.bytes for each in parts), drops, leaves)


def _packets_by_colour(
    each: Mapping[str, Any], chains: Mapping[tuple[str, int], Sequence[Sequence[Mapping[str, Any]]]]
) -> Row:
    """Return the packets of each colour; the first of two buckets is that of the peak rate."""
    buckets = [bucket for action, bucket in _buckets(each, chains) if action == "police"]
    if not buckets:
        return {}
    *peak, committed = buckets
    row: Row = {
        "police_conformed_packets": committed["packets"] - committed["overlimits"],
        "police_exceeded_packets": committed["overlimits"],
    }
    return row | {"police_violated_packets": peak[0]["overlimits"]} if peak else row


def _path(handle: str, parents: Mapping[str, str | None]) -> str:
    """Return the names of the classes, from the outermost one."""
    names = [handle]
    while (parent := parents.get(names[0])) in parents and parent is not None:
        names.insert(0, parent)
    return "/".join(names)


def _row(policy: str, name: str, counted: Mapping[str, Any], queue: Mapping[str, Any] | None) -> Row:
    """Return the row of a class: `counted` counts sent packets, `queue` is the qdisc of its queued packets, if there is
    one.
    """
    holder = counted if queue is None else queue
    sent, drops, depth = counted["packets"], holder["drops"], holder["qlen"]
    offered = _offered_bytes(holder)
    if offered is None and drops == 0:
        offered = counted["bytes"] + holder["backlog"]
    lost = None if offered is None else max(0, offered - counted["bytes"] - holder["backlog"])
    return {
        "direction": "output",
        "policy": policy,
        "class": name,
        "packets": sent + drops + depth,
        "bytes": offered,
        **_drops(_queue_drops(holder), lost),
        **_queue(holder, counted),
        "queue_discipline": None if queue is None else queue["kind"],
    }


def _queue_drops(holder: Mapping[str, Any]) -> dict[str, int]:
    """Return the drops of a queue by reason: before it was full, and due to a full queue."""
    drops, kind = holder["drops"], holder["kind"]
    early = drops - min(drops, sum(holder.get(key, 0) for key in _FULL)) if kind in EARLY_DROPS else 0
    return {EARLY_DROPS.get(kind, "aqm"): early, "tail": drops - early}


def _queue(holder: Mapping[str, Any], counted: Mapping[str, Any]) -> Row:
    """Return the columns of a queue: `counted` counts sent packets, `holder` holds packets."""
    marks = next((holder[key] for key in _MARKS if key in holder), None)
    if "tins" in holder:
        marks = sum(tin["ecn_mark"] for tin in holder["tins"])
    limit = holder.get("options", {}).get("limit")
    return {
        "queue_discipline": holder["kind"],
        "queue_limit_packets": limit if holder["kind"] in ("pfifo", "fq_codel", "codel", "pie", "fq", "sfq") else None,
        "queue_limit_bytes": limit if holder["kind"] in ("bfifo", "red") else None,
        "queue_depth_packets": holder["qlen"],
        "queue_depth_bytes": holder["backlog"],
        "queue_flows": holder["new_flows_len"] + holder["old_flows_len"] if "new_flows_len" in holder else None,
        **_delays(holder),
        "queue_output_packets": counted["packets"],
        "queue_output_bytes": counted["bytes"],
        "random_detect_ecn_mark_packets": marks,
    }


def _delays(holder: Mapping[str, Any]) -> Row:
    """Return the delay in a queue that its qdisc reports, if it measures one: the greatest of the tins of CAKE."""
    if tins := holder.get("tins"):
        return {DELAYS[name]: 1000 * max(tin[name] for tin in tins) for name in ("avg_delay_us", "peak_delay_us")}
    return {column: 1000 * holder[name] for name, column in DELAYS.items() if name in holder}


def _offered_bytes(qdisc: Mapping[str, Any]) -> int | None:
    """Return the bytes offered to a CAKE; None for other qdiscs, which do not count the bytes of drops."""
    return sum(tin["sent_bytes"] for tin in qdisc["tins"]) if "tins" in qdisc else None


def _tins(policy: str, name: str, qdisc: Mapping[str, Any]) -> Iterator[Row]:
    """Return the rows of a CAKE's tins, which count all packets and bytes offered to them (`cake_enqueue` in Linux)."""
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
            **_drops({"aqm": drops}, 0 if drops == 0 else None),
            "queue_discipline": "cake",
            "queue_depth_packets": None,
            "queue_depth_bytes": tin["backlog_bytes"],
            "queue_flows": tin["sparse_flows"] + tin["bulk_flows"],
            **_delays(tin),
            "random_detect_ecn_mark_packets": tin["ecn_mark"],
        }


def _drops(packets: Mapping[str, int | None], lost_bytes: int | None) -> Row:
    """Return the columns of drops; bytes of a single reason are the total, those of several reasons are unknown."""
    row: Row = {}
    reasons = [reason for reason, count in packets.items() if count != 0]
    for reason in DROP_REASONS:
        row[f"drops_{reason}_packets"] = packets.get(reason, 0)
        all_of_it = lost_bytes if len(reasons) <= 1 and reason in reasons else None
        row[f"drops_{reason}_bytes"] = 0 if packets.get(reason, 0) == 0 else all_of_it
    return row
