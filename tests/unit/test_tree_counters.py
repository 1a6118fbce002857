"""Rows of `classes` from counters of the engine's trees of queues: the same columns and names as of a kernel."""

from __future__ import annotations

from typing import Any

from qoslab.analysis.tree_counters import tree_rows


def count(packets: int) -> dict[str, int]:
    return {"packets": packets, "bytes": 1000 * packets}


def node(name: str, parent: str | None, discipline: str | None, sent: int, drops: int = 0, **managed: Any) -> Any:
    return {
        "name": name,
        "parent": parent,
        "discipline": discipline,
        "depth_packets": 2 if discipline else 0,
        "depth_bytes": 2000 if discipline else 0,
        "sent": count(sent),
        "drops": count(drops),
        "marked": count(1 if managed else 0),
        "managed": {"flows": None, "tins": [], "delay_ns": None, "sojourn_ns": 7, **managed} if managed else None,
    }


def rows(*nodes: Any) -> dict[str, dict[str, Any]]:
    reply = {"time_ns": 3 * 10**9, "interfaces": {"Ethernet1": {"tree": list(nodes)}, "Ethernet0": {"tree": []}}}
    return {str(row["class"]): row for row in tree_rows("R1", [reply], 10**9)}


def test_classes_of_htb_are_named_by_their_parents() -> None:
    found = rows(
        node("1:1", None, None, 90),
        node("1:10", "1:1", "fq_codel", 40, 7, early=count(5), overlimit=count(2), marked=count(1)),
        node("1:20", "1:1", "pfifo", 50, 3),
    )
    assert list(found) == ["1:1", "1:1/1:10", "1:1/1:20"]
    assert {(row["policy"], row["interface"], row["time_s"]) for row in found.values()} == {("htb", "Ethernet1", 2.0)}
    managed, fifo = found["1:1/1:10"], found["1:1/1:20"]
    assert (managed["drops_aqm_packets"], managed["drops_tail_packets"], managed["drops_aqm_bytes"]) == (5, 2, 5000)
    assert (managed["packets"], managed["bytes"], managed["random_detect_ecn_mark_packets"]) == (49, 49_000, 1)
    assert (fifo["drops_tail_packets"], fifo["drops_random_packets"], fifo["queue_discipline"]) == (3, 0, "pfifo")


def test_early_drops_of_red_are_random() -> None:
    (red,) = rows(node("red at root", None, "red", 10, 4)).values()
    assert (red["class"], red["policy"], red["drops_random_packets"], red["drops_aqm_packets"]) == ("red", "red", 4, 0)


def test_cake_tins_are_its_children() -> None:
    tin = {
        "early": count(1),
        "overlimit": count(2),
        "sent": count(10),
        "marked": count(0),
        "depth_packets": 0,
        "depth_bytes": 0,
        "sparse_flows": 1,
        "bulk_flows": 2,
        "average_delay_ns": 30,
        "peak_delay_ns": 40,
    }
    found = rows(node("cake at root", None, "cake", 30, 9, early=count(3), overlimit=count(6), tins=[tin] * 3))
    assert list(found) == ["cake", "cake/Best-Effort", "cake/Bulk", "cake/Voice"]
    voice = found["cake/Voice"]
    assert (voice["packets"], voice["drops_aqm_packets"], voice["drops_tail_packets"], voice["queue_flows"]) == (
        13,
        1,
        2,
        3,
    )
