"""Rows of `classes` and `interfaces` from recorded counters of HTB and fq_codel, and of CAKE with its tins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qoslab.analysis.class_metrics import EachClass, class_figures
from qoslab.analysis.kernel_counters import kernel_rows
from qoslab.model.metrics import ClassSelector
from qoslab.results import tables

RECORDED = Path(__file__).parents[1] / "recorded" / "tc"


def rows(name: str, interface: str = "eth1") -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The row of the interface and those of its classes by name."""
    reply = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    found = [
        (table, row) for table, row in kernel_rows("R1", [reply], reply["time_ns"]) if row["interface"] == interface
    ]
    one = next(row for table, row in found if table == "interfaces")
    return one, {str(row["class"]): row for table, row in found if table == "classes"}


def test_classes_of_htb_are_named_by_their_parents_and_count_their_leaves() -> None:
    interface, classes = rows("htb")
    assert set(classes) == {"1:1", "1:1/1:10", "1:1/1:20"}
    assert {row["policy"] for row in classes.values()} == {"htb"}
    bulk = classes["1:1/1:20"]
    assert (bulk["queue_discipline"], bulk["queue_limit_packets"]) == ("pfifo", 50)
    assert bulk["packets"] == bulk["queue_output_packets"] + bulk["drops_tail_packets"] + bulk["queue_depth_packets"]
    assert (bulk["drops_tail_packets"], bulk["drops_tail_bytes"], bulk["bytes"]) == (2973, None, None)
    assert interface["output_packets"] == classes["1:1"]["queue_output_packets"] == 6418
    assert (interface["queue_strategy"], rows("htb", "eth0")[0]["queue_strategy"]) == ("htb", None)


def test_tins_of_cake_are_below_it_and_add_up() -> None:
    interface, classes = rows("cake")
    assert set(classes) == {"cake", "cake/Bulk", "cake/Best-Effort", "cake/Voice"}
    cake, tins = classes["cake"], [classes[f"cake/{name}"] for name in ("Bulk", "Best-Effort", "Voice")]
    assert cake["packets"] == sum(tin["packets"] for tin in tins)
    assert cake["bytes"] == sum(tin["bytes"] for tin in tins)
    assert cake["drops_aqm_packets"] == interface["output_drops"] > 0
    assert cake["drops_aqm_bytes"] == cake["bytes"] - cake["queue_output_bytes"] - cake["queue_depth_bytes"] > 0
    assert cake["random_detect_ecn_mark_packets"] == 0


def test_bytes_that_a_kernel_does_not_count_are_null() -> None:
    _, classes = rows("fq_codel")
    (fq_codel,) = classes.values()
    assert fq_codel["drops_aqm_packets"] > 0
    assert fq_codel["bytes"] is fq_codel["drops_aqm_bytes"] is None
    assert fq_codel["drops_tail_bytes"] == 0


def test_metrics_of_classes_are_known_without_the_bytes_of_drops() -> None:
    last = json.loads((RECORDED / "fq_codel.json").read_text(encoding="utf-8"))
    first = json.loads(json.dumps(last))
    first["time_ns"] -= 2 * 10**9
    for qdisc in first["tc"]["eth1"]["qdiscs"]:
        qdisc["packets"] -= 1000
        qdisc["bytes"] -= 1_000_000
    origin_ns = last["time_ns"] - 6 * 10**9
    found = [row for table, row in kernel_rows("R1", [first, last], origin_ns) if table == "classes"]
    classes = EachClass(tables.frame("classes", found), traffic_s=6.0)
    figures = dict(class_figures(classes, ClassSelector.parse("R1 eth1 fq_codel", {"R1": ("eth1",)})))
    assert figures["class.passed"] == 4_000_000
    assert figures["class.drops"] == found[-1]["drops_aqm_packets"]
