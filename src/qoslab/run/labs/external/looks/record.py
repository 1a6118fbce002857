"""What looks have seen, for the manifest."""

from __future__ import annotations

from typing import Any

from qoslab.run.labs.external.looks.cabling import proofs
from qoslab.run.labs.external.looks.facts import Facts
from qoslab.run.labs.external.looks.rest import round_trips


def links_seen(facts: Facts) -> dict[str, Any]:
    """By link: how sure its cabling is, and what it delays and loses at rest."""
    proven = proofs(facts)
    seen: dict[str, Any] = {}
    for link in facts.experiment.topology.links:
        trips = round_trips(facts, link)
        seen[link.name] = {"cabling": proven[link.name]}
        if trips is not None and trips.took_ms:
            seen[link.name] |= {
                "round_trip_ms": {"least": round(min(trips.took_ms), 3), "median": round(trips.median_ms, 3)},
                "requests": trips.sent,
                "lost": trips.lost,
            }
    return seen
