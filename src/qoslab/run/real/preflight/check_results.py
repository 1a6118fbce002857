"""Results of preflight checks for the manifest, and their comparison with those at the start of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qoslab.run.real.preflight.cabling import link_proofs
from qoslab.run.real.preflight.facts import PreflightFacts
from qoslab.run.real.preflight.idle_links import round_trips


def link_results(facts: PreflightFacts) -> dict[str, Any]:
    """Return the certainty of the cabling, and the idle delay and loss, by link."""
    proven = link_proofs(facts)
    seen: dict[str, Any] = {}
    for link in facts.experiment.topology.links:
        trips = round_trips(facts, link)
        seen[link.name] = {"cabling": proven[link.name]}
        if trips is not None and trips.took_ms:
            seen[link.name] |= {
                "round_trip_ms": {"least": round(min(trips.took_ms), 3), "median": round(trips.median_ms, 3)},
                "requests": trips.sent_count,
                "lost": trips.lost_count,
            }
    return seen


def device_identities(facts: PreflightFacts) -> dict[str, dict[str, str]]:
    """Return the identity of each device and its software, by node."""
    routers = {
        name: {"model": each.model, "release": each.release, "serial number": each.board}
        for name, each in facts.routers.items()
    }
    return routers | {name: {"machine": each.machine} for name, each in facts.hosts.items()}


def changed_devices(began: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return one sentence for each node that is not the device on which the run began.

    Unknown identities count as unchanged.
    """
    found = []
    for name, each in now.items():
        was = began.get(name, {})
        differing = [key for key, value in each.items() if value and was.get(key) and was[key] != value]
        if differing:
            is_now, has_been = (", ".join(f"{key} {reply[key]}" for key in differing) for reply in (each, was))
            found.append(f"{name}: found {is_now}, expected the device at the start of the run, {has_been}")
    return found
