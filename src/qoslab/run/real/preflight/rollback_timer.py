"""Check that a router can roll back by itself, with the inventory's method or with any."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.run.real.access.rollback_methods import COUNTDOWNS
from qoslab.run.real.access.rollback_timer import minutes_of, too_long, tried
from qoslab.run.real.preflight.facts import Facts, Found


def rollback(facts: Facts) -> Iterator[Found]:
    """Report the obstacles to each method, except those that only a start reveals."""
    for name, router in facts.routers.items():
        if not router.ios or router.refused or router.rollback_state is None:
            continue
        settings = facts.router_settings[name]
        wanted, minutes = settings.rollback, minutes_of(settings, facts.longest)
        ways = [way for way in tried(wanted) if way in COUNTDOWNS]
        against = {way: too_long(way, minutes) or COUNTDOWNS[way].can(router.rollback_state) for way in ways}
        reasons = {way: reason for way, reason in against.items() if reason}
        if ways and len(reasons) == len(ways):
            listed = "; ".join(f"{way}: {reason}" for way, reason in reasons.items())
            expected = f"qoslab_rollback: {wanted}" if wanted else "one that works"
            message = f"found no rollback method that works ({listed}), expected {expected}"
            yield Found(name, message, "fix that, or run without a rollback timer: qoslab_rollback: none")
