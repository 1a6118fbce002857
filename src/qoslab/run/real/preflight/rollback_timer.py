"""Check that a router can roll back by itself, with the inventory's method or with any."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.run.real.access.rollback_methods import ROLLBACK_METHODS
from qoslab.run.real.access.rollback_timer import methods_to_try, timer_limit_problem, timer_minutes
from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding


def rollback(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Report the obstacles to each method, except those that only a start reveals."""
    for name, router in facts.routers.items():
        if not router.ios or router.refused or router.rollback_state is None:
            continue
        settings = facts.router_settings[name]
        wanted, minutes = settings.rollback, timer_minutes(settings, facts.longest)
        ways = [way for way in methods_to_try(wanted) if way in ROLLBACK_METHODS]
        against = {
            way: timer_limit_problem(way, minutes) or ROLLBACK_METHODS[way].obstacle(router.rollback_state)
            for way in ways
        }
        reasons = {way: reason for way, reason in against.items() if reason}
        if ways and len(reasons) == len(ways):
            listed = "; ".join(f"{way}: {reason}" for way, reason in reasons.items())
            expected = f"qoslab_rollback: {wanted}" if wanted else "one that works"
            message = f"found no rollback method that works ({listed}), expected {expected}"
            yield PreflightFinding(name, message, "fix that, or run without a rollback timer: qoslab_rollback: none")
