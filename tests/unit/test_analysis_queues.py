"""Counters of interfaces and egress queues to metrics; lost datagrams."""

from __future__ import annotations

from typing import Any

import pytest
from analysis_tables import columns, metrics

from qoslab.analysis import raw
from qoslab.analysis.charts import queue_graph
from qoslab.analysis.goodput import goodput_values
from qoslab.analysis.missing import Missing
from qoslab.analysis.queues import (
    busy_ports,
    interface_values,
    queue_counts,
    queue_rates,
    queue_values,
    select_objects,
    used_selectors,
)
from qoslab.model.metrics import QueueSelector, Reference, SelectorError
from qoslab.results import tables

PORT, OTHER = "GigabitEthernet1/0/15", "GigabitEthernet1/0/1"
CELL = {"arm": "srr", "repetition": 1, "cell": "srr/1"}


def reply(second: float, ef: int, best_effort: int, enqueued: int = 1000) -> dict[str, Any]:
    """Return a reply of a switch of two ports, with drops of queue 1 and 2 at threshold 1 of one of them."""

    def switch(*dropped: int) -> dict[str, Any]:
        rows = [[count, 0, 0] for count in dropped]
        return {"enqueued": [[enqueued, 0, 0], [0] * 3, [0] * 3, [0] * 3], "dropped": [*rows, [0] * 3, [0, 0, 0]]}

    traffic = {"packets": 0, "bytes": 0, "rate_bps": 0.0, "rate_pps": 0.0}
    return {
        "time_ns": int(second * 1e9),
        "interfaces": {
            PORT: {"output": {**traffic, "drops": ef + best_effort}, "switch": switch(ef, best_effort)},
            OTHER: {"output": {**traffic, "drops": 0}, "switch": switch(0, 0)},
            "Serial0/0": {"output": {**traffic, "drops": 3}},
        },
    }


REPLIES = [reply(-1, 5, 10), reply(10, 5, 100, 1500), reply(31, 7, 286, 4000)]


def table(name: str) -> Any:
    rows = raw.queue_rows if name == "queues" else raw.interface_rows
    return tables.frame(name, [CELL | row for row in rows("SW", REPLIES, 0)])


@pytest.mark.parametrize(
    ("selector", "drops"),
    [(None, 278), ("1", 2), ("2", 276), ("2 1", 276), ("2 2", 0), ("3", 0), (f"SW {PORT} 2 1", 276), (f"{OTHER} 2", 0)],
)
def test_drops_are_counted_by_queue_and_threshold(selector: str | None, drops: int) -> None:
    assert dict(queue_values(select_objects(columns(table("queues")), selector)))["queue.drops"] == drops


def test_every_used_queue_has_its_metrics() -> None:
    assert used_selectors("queue", columns(table("queues"))) == [f"{PORT} 1", f"{PORT} 2", f"{OTHER} 1"]
    assert dict(queue_values(select_objects(columns(table("queues")), "1")))["queue.enqueued"] == 6000


@pytest.mark.parametrize(("selector", "drops"), [(None, 278), (PORT, 278), (f"SW {OTHER}", 0), ("Serial0/0", 0)])
def test_output_drops_are_counted_by_port(selector: str | None, drops: int) -> None:
    assert dict(interface_values(select_objects(columns(table("interfaces")), selector))) == {"interface.drops": drops}


def test_queue_without_counters_has_no_value() -> None:
    assert list(queue_values(select_objects(columns(table("queues")), "GigabitEthernet1/0/9 1"))) == []


@pytest.mark.parametrize("text", ["5", "0", "1 4", "1 2 3", "R9 1", f"{PORT} {OTHER} 1"])
def test_unknown_queue_selectors_are_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        QueueSelector.parse(text, {"SW": (PORT, OTHER)})


def test_queue_metrics_are_registered() -> None:
    found = metrics(
        {"interfaces": table("interfaces"), "queues": table("queues")},
        30.0,
        [Reference.parse(f"queue.drops({PORT} 2 1)")],
    ).set_index("metric")["value"]
    assert found[f"queue.drops({PORT} 2 1)"] == 276
    assert found[f"interface.drops({PORT})"] == 278
    assert found["queue.drops"] == 278


def test_datagrams_sent_and_lost_are_counted() -> None:
    rows = [
        {**CELL, "traffic": "voice", "stream": n, "seconds": 5.0, "bytes": 1, "goodput_bps": 1.6, "datagrams": 5000}
        | {"lost": lost, "jitter_ms": jitter}
        for n, (lost, jitter) in enumerate([(0, 1.5), (10, 1.776)], 1)
    ]
    found = dict(goodput_values(columns(tables.frame("flows", rows))))
    assert (found["datagrams.lost"], found["datagrams.loss"]) == (10, 0.001)
    assert found["datagrams.jitter"] == 1.776


def counted_queue(*rows: tuple[float, str, int, int, int | None, int | None]) -> Any:
    """Return time, port, queue, threshold, enqueued and dropped packets of a switch."""
    names = ("time_s", "interface", "queue", "threshold", "enqueued", "dropped")
    return tables.frame("queues", [CELL | {"device": "SW"} | dict(zip(names, row, strict=True)) for row in rows])


def test_single_frame_has_one_datagram() -> None:
    once = counted_queue(
        *((at, OTHER, 1, 1, 0, count) for at, count in ((0, 7), (9, 8))),
        *((at, PORT, 3, 2, count, 0) for at, count in ((9, 5), (0, 4))),
        *((at, PORT, 2, 1, 6, 0) for at in (0, 9)),
    )
    found = queue_counts(once)
    assert [tuple(row)[1:] for row in found.itertuples()] == [("SW", OTHER, 1, 1, 0, 1), ("SW", PORT, 3, 2, 1, 0)]
    assert list(found.index) == [0, 1]
    assert busy_ports(once) == [("SW", OTHER)]
    first = counted_queue((0, PORT, 1, 1, 1, 0), (0, PORT, 2, 1, 0, 1), (0, PORT, 3, 1, 0, 0))
    assert used_selectors("queue", columns(first)) == [f"{PORT} 1", f"{PORT} 2"]


def test_ports_are_selected_by_their_drops() -> None:
    def port(name: str, dropped: int, enqueued: int = 1) -> list[tuple[float, str, int, int, int, int]]:
        return [(at, name, 1, 1, int(at) * enqueued, int(at) * dropped) for at in (0.0, 1.0)]

    assert busy_ports(counted_queue(*port("A", 2), *port("B", 5), *port("C", 0, 9))) == [("SW", "B"), ("SW", "A")]
    assert busy_ports(counted_queue(*port("A", 0, 2), *port("B", 0, 5), *port("C", 0))) == [("SW", "B")]


def test_rates_of_queues_between_readings() -> None:
    times = (0.0, 2.0, 4.0, 5.0, 7.0)
    used = [(at, PORT, 1, 1, int(at * 10), 0) for at in times]
    unused = [(at, PORT, 2, 1, 0, 0) for at in times]
    # No drops are reported for the other threshold, although a frame was dropped.
    partly = [(at, PORT, 3, 1, 0, int(at > 6)) for at in times]
    untold = [(at, PORT, 3, 2, 0, None) for at in times]
    found = queue_rates(counted_queue(*used, *unused, *partly, *untold), "SW", PORT)
    # Half the usual time after another reading is too early.
    assert [tuple(row) for row in found.itertuples()] == [
        (number, *row)
        for number, row in enumerate(
            [(1, at, 10.0, 0.0) for at in (2.0, 4.0, 7.0)] + [(3, at, 0.0, 0.5 * (at > 6)) for at in (2.0, 4.0, 7.0)]
        )
    ]
    nothing = queue_rates(counted_queue(*unused), "SW", PORT)
    assert nothing.empty and list(nothing.columns) == ["queue", "time_s", "enqueued", "dropped"]


def test_counters_outside_the_traffic_time_are_missing() -> None:
    def dropped(*rows: tuple[float, int | None]) -> float | Missing:
        of_one = [(at, OTHER, 1, 1, 0, 0) for at in (0.0, 9.0)]
        cell = counted_queue(*of_one, *((at, PORT, 1, 1, 0, count) for at, count in rows))
        return dict(queue_values(select_objects(columns(cell), None)))["queue.drops"]

    assert dropped((0.0, 3), (5.0, 4), (9.0, 8)) == 5
    assert dropped((5.0, 4)) == f"SW {PORT}: the counters were read only once, which does not cover the traffic time"
    assert dropped((0.0, 5), (5.0, 4), (9.0, 8)) == f"SW {PORT}: its counters decreased"
    assert dropped((0.0, 5), (9.0, None)) == "the counters (dropped) are unknown for 1 of 2"


def test_queue_counters_become_series() -> None:
    queues = table("queues")
    assert busy_ports(queues) == [("SW", PORT)]
    rates = queue_rates(queues, "SW", PORT)
    assert list(rates["queue"]) == [1, 1, 2, 2]
    assert rates["enqueued"].iloc[0] == pytest.approx(500 / 11)
    assert rates["dropped"].iloc[3] == pytest.approx(186 / 21)
    graph = queue_graph(rates)
    assert [line["name"] for line in graph["data"]] == ["queue 1", "queue 1", "queue 2", "queue 2"]
    counts = queue_counts(queues).set_index(["interface", "queue"])
    assert tuple(counts.loc[(PORT, 2), ["enqueued", "dropped"]]) == (0, 276)
    assert busy_ports(queues[queues["interface"] == OTHER]) == [("SW", OTHER)]
    assert busy_ports(queues.head(0)) == []
    assert queue_rates(queues.head(0), "SW", PORT).empty
