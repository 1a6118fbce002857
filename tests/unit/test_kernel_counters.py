"""Rows of `classes` and `interfaces` from recorded counters of HTB and fq_codel, and of CAKE with its tins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis_tables import columns

from qoslab.analysis.class_metrics import EachClass, class_values
from qoslab.analysis.kernel_counters import kernel_rows
from qoslab.model.metrics import ClassSelector
from qoslab.results import tables
from qoslab.tc.interface_qdiscs import InterfaceQdiscs

RECORDED = Path(__file__).parents[1] / "recorded" / "tc"


def rows(name: str, interface: str = "eth1") -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the row of the interface and those of its classes by name."""
    reply = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    found = [
        (table, row) for table, row in kernel_rows("R1", [reply], reply["time_ns"]) if row["interface"] == interface
    ]
    one = next(row for table, row in found if table == "interfaces")
    return one, {str(row["class"]): row for table, row in found if table == "classes"}


def test_htb_classes_are_named_by_their_parents_and_count_their_leaves() -> None:
    interface, classes = rows("htb")
    assert set(classes) == {"1:1", "1:1/1:10", "1:1/1:20"}
    assert {row["policy"] for row in classes.values()} == {"htb"}
    bulk = classes["1:1/1:20"]
    assert (bulk["queue_discipline"], bulk["queue_limit_packets"]) == ("pfifo", 50)
    assert bulk["packets"] == bulk["queue_output_packets"] + bulk["drops_tail_packets"] + bulk["queue_depth_packets"]
    assert (bulk["drops_tail_packets"], bulk["drops_tail_bytes"], bulk["bytes"]) == (2973, None, None)
    assert interface["output_packets"] == classes["1:1"]["queue_output_packets"] == 6418
    assert (interface["queue_strategy"], rows("htb", "eth0")[0]["queue_strategy"]) == ("htb", None)


def test_cake_tins_are_its_children_and_add_up() -> None:
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


def test_delays_are_those_that_codel_pie_and_cake_report() -> None:
    delays = {}
    for interface in ("eth1", "eth2", "eth3", "eth4"):
        for name, row in rows("delays", interface)[1].items():
            delays[interface, name] = row["queue_delay_ns"]
    assert delays["eth1", "1:1"] == 1_978_000
    assert delays["eth2", "1:1"] == 1_000
    assert delays["eth3", "1:1"] == 0
    assert delays["eth4", "cake"] == delays["eth4", "cake/Best-Effort"] == 1_671_000
    tin = rows("delays", "eth4")[1]["cake/Best-Effort"]
    assert (tin["queue_delay_peak_ns"], tin["queue_delay_base_ns"]) == (7_927_000, 173_000)
    assert "queue_delay_ns" not in rows("htb")[1]["1:1/1:20"]


def test_delay_of_fq_codel_is_the_greatest_of_its_flows() -> None:
    qdiscs = '[{"kind": "fq_codel", "handle": "10:", "parent": "1:1"}, {"kind": "fq_codel", "handle": "20:"}]'

    flows = (RECORDED / "fq_codel-flows.txt").read_text(encoding="utf-8")

    def run(argv: Sequence[str], text: str) -> tuple[int, str, str]:
        if argv[0] == "ip":
            return 0, '[{"ifname": "eth0", "mtu": 1500, "txqlen": 1000}]', ""
        return 0, f"{qdiscs}\f{flows}" if argv[0] == "sh" else "", ""

    queues = InterfaceQdiscs(run, ["eth0"])
    queues.configure([["qdisc", "add", "dev", "eth0", "parent", "1:1", "handle", "10:", "fq_codel"]])
    first, second = queues.counters()["interfaces"]["eth0"]["qdiscs"]
    assert (first["ldelay"], "ldelay" in second) == (1_200_000, False)


def test_median_delay_of_the_window_is_a_metric() -> None:
    reply = json.loads((RECORDED / "delays.json").read_text(encoding="utf-8"))
    replies = []
    for second, delay_us in enumerate((90_000, 1_000, 4_000, 7_000, 2_000, 5_000)):
        each = json.loads(json.dumps(reply))
        each["time_ns"] += second * 10**9
        each["tc"]["eth1"]["qdiscs"][-1]["ldelay"] = delay_us
        replies.append(each)
    found = [row for table, row in kernel_rows("R1", replies, reply["time_ns"]) if table == "classes"]
    classes = EachClass(tables.plain("classes", found), traffic_s=6.0)
    values = dict(class_values(classes, ClassSelector.parse("R1 eth1 1:1", {"R1": ("eth1",)})))
    assert values["class.queue_delay"] == 4.5, "of 4, 7, 2 and 5 ms; the first third of the time is left out"


def test_default_qdiscs_of_a_card_are_not_classes() -> None:
    reply = json.loads((RECORDED / "htb.json").read_text(encoding="utf-8"))
    counted = {"bytes": 100, "packets": 1, "drops": 2, "qlen": 0, "backlog": 0}
    queues = [{"kind": "fq_codel", "handle": "0:", "parent": f":{number}", **counted} for number in (1, 2)]
    reply["tc"]["eth1"] = {"qdiscs": [{"kind": "mq", "handle": "0:", "root": True, **counted}, *queues], "classes": []}
    found = [(table, row) for table, row in kernel_rows("R1", [reply], 0) if row["interface"] == "eth1"]
    assert [table for table, _ in found] == ["interfaces"]
    assert (found[0][1]["output_packets"], found[0][1]["output_drops"]) == (1, 2)


def test_metrics_of_classes_are_known_without_the_bytes_of_drops() -> None:
    last = json.loads((RECORDED / "fq_codel.json").read_text(encoding="utf-8"))
    first = json.loads(json.dumps(last))
    first["time_ns"] -= 2 * 10**9
    for qdisc in first["tc"]["eth1"]["qdiscs"]:
        qdisc["packets"] -= 1000
        qdisc["bytes"] -= 1_000_000
    origin_ns = last["time_ns"] - 6 * 10**9
    found = [row for table, row in kernel_rows("R1", [first, last], origin_ns) if table == "classes"]
    classes = EachClass(columns(tables.frame("classes", found)), traffic_s=6.0)
    values = dict(class_values(classes, ClassSelector.parse("R1 eth1 fq_codel", {"R1": ("eth1",)})))
    assert values["class.passed"] == 4_000_000
    assert values["class.drops"] == found[-1]["drops_aqm_packets"]
