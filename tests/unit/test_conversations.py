"""Conversations of weighted fair queueing: from the counters of routers to rows and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from analysis_tables import columns

from qoslab.analysis import raw
from qoslab.analysis.conversations import conversation_values
from qoslab.results import tables

HEAD = {"source": "10.0.0.10", "destination": "10.0.20.10", "id": 0, "ttl": 63, "tos": 0, "protocol": 17}
TRAFFIC_S = 9.0


def conversation(number: int, depth: int, weight: int, port: int | None) -> dict[str, Any]:
    ip = None if port is None else HEAD | {"source_port": 40000, "destination_port": port}
    return {
        "number": number,
        "depth_packets": depth,
        "weight": weight,
        "drops": 4,
        "head": {"bytes": 260, "ip": ip},
    }


def replies() -> Iterator[Mapping[str, Any]]:
    """Return a reading per second: a flood with 57 packets from the fourth on, a session, and a non-IP conversation."""
    for second in range(-1, 11):
        flood = conversation(10, 57 if second > 3 else 3, 32384, 5002)
        others = [conversation(3, 7, 5397, 5001), conversation(4, 1, 32384, None)] if second % 2 else []
        yield {
            "time_ns": 10**12 + second * 10**9,
            "interfaces": {
                "Serial0/1/0": {"conversations": [flood, *others]},
                "FastEthernet0/0": {"conversations": []},
            },
        }


def rows() -> pd.DataFrame:
    names = {5002: "flood", 5001: "session"}
    found = raw.conversation_rows("a1", replies(), 10**12, lambda ip: names[ip["destination_port"]])
    return tables.frame("conversations", [{"arm": "wfq", "repetition": 1, "cell": "c", **row} for row in found])


def figures(traffic: str | None) -> dict[str, Any]:
    table = rows()
    return dict(
        conversation_values(columns(table if traffic is None else table[table["traffic"] == traffic]), TRAFFIC_S)
    )


def test_conversation_rows_name_the_traffic_of_the_next_packet() -> None:
    table = rows()
    assert len(table) == 12 + 2 * 6
    assert table["traffic"].value_counts().to_dict() == {"flood": 12, "session": 6}
    first = table.iloc[0]
    assert (first["device"], first["interface"], first["conversation"], first["time_s"]) == (
        "a1",
        "Serial0/1/0",
        10,
        -1,
    )


def test_depth_and_weight_cover_the_last_two_thirds() -> None:
    assert figures("flood") == {"conversation.depth": 57.0, "conversation.weight": 32384.0}
    assert figures("session") == {"conversation.depth": 7.0, "conversation.weight": 5397.0}


def test_conversations_together_have_a_depth_and_no_weight() -> None:
    # 57 in the seconds 4, 6 and 8, and 65 in 5 and 7.
    assert figures(None) == {"conversation.depth": 57.0}
    assert figures("nobody") == {}
