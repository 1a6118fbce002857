"""The typed counters are what the data plane says it sends (docs/schema)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qoslab.ios import counters

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "schema" / "qos-router-counters.schema.json").read_text()
)


@pytest.mark.parametrize(
    ("typed", "defined"),
    [
        (counters.Volume, "Count"),
        (counters.RatedVolume, "ColourCounters"),
        (counters.RatedVolume, "CriterionCounters"),
        (counters.Traffic, "DirectionCounters"),
        (counters.InterfaceQueue, "InterfaceQueueCounters"),
        (counters.TxRing, "RingCounters"),
        (counters.Drops, "ClassDrops"),
        (counters.Marked, "SetCounters"),
        (counters.Police, "PoliceCounters"),
        (counters.Shape, "ShapeCounters"),
        (counters.ClassQueue, "ClassQueueCounters"),
        (counters.Bandwidth, "BandwidthCounters"),
        (counters.Priority, "PriorityCounters"),
        (counters.RandomDetect, "RandomDetectCounters"),
        (counters.RandomDetectRow, "RandomDetectRow"),
        (counters.PriorityQueue, "PriorityQueueCounters"),
        (counters.ReservedConversations, "ReservedConversations"),
        (counters.ClassCounters, "ClassCounters"),
        (counters.PolicyCounters, "PolicyCounters"),
        (counters.InterfaceCounters, "InterfaceCounters"),
        (counters.AccessListHits, "AccessEntryCounters"),
    ],
)
def test_same_keys(typed: Any, defined: str) -> None:
    assert set(typed.__annotations__) == set(SCHEMA["$defs"][defined]["properties"])


def test_same_reply() -> None:
    assert set(counters.Counters.__annotations__) == {*SCHEMA["properties"], "ok"}
