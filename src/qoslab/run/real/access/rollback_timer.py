"""Rollback timers on the routers, in case no process can restore them.

A timer is started before the first line is sent, restarted before each cell, and stopped when the router is proven to
be restored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from qoslab.errors import DeviceError, UserError
from qoslab.ios.refusals import find_refusal
from qoslab.model.inventory import RollbackMethod as Choice
from qoslab.model.inventory import RouterSettings
from qoslab.model.units import Duration
from qoslab.run.real.access.rollback_methods import ROLLBACK_METHODS, find_required_refusal

Ask = Callable[..., Sequence[str]]
"""Function that returns a router's answer to each line: `ask("R1", "show clock")`, as `AccessProxies.ask`."""


class RollbackTimers:
    """Rollback timers on the routers of a lab."""

    def __init__(
        self,
        ask: Ask,
        settings: Mapping[str, RouterSettings],
        longest: Duration,
        keep: Callable[[Mapping[str, Choice]], None] = lambda _: None,
    ) -> None:
        """`settings` by router. `longest` is the traffic time of the longest cell, which the timer must cover.

        `keep` receives the active timers whenever they change.
        """
        self._ask = ask
        self._settings = dict(settings)
        self._longest = longest
        self._keep = keep
        self.armed: dict[str, Choice] = {}
        """Running timers by router."""
        self._times: dict[str, int] = {}
        """Number of starts of each timer."""

    def arm(self, traffic: Duration) -> None:
        """Start or restart the timers for a cell. Raise `UserError` if a router supports no method."""
        for router, settings in self._settings.items():
            minutes = timer_minutes(settings, traffic)
            if router in self.armed:
                self._restart_timer(router, self.armed[router], minutes)
            else:
                self._start(router, settings, minutes)

    def disarm(self) -> None:
        """Stop the timers after restoring. Raise `DeviceError` if one still runs, which `keep` then still has."""
        reasons = {}
        for router, choice in list(self.armed.items()):
            if reason := stop(self._ask, router, choice):
                reasons[router] = reason
                continue
            del self.armed[router]
            self._keep(self.armed)
        refuse_remaining_timers(reasons)

    def _start(self, router: str, settings: RouterSettings, minutes: int) -> None:
        reasons = {}
        for choice in methods_to_try(settings.rollback):
            if reason := timer_limit_problem(choice, timer_minutes(settings, self._longest)):
                reasons[choice] = reason
                continue
            # Saved before it starts: after an interruption in between, the restoring process stops it.
            self._keep({**self.armed, router: choice})
            countdown = ROLLBACK_METHODS.get(choice)
            reason = "" if countdown is None else countdown.begin(partial(self._ask, router), minutes)
            if not reason:
                self.armed[router], self._times[router] = choice, 1
                return
            reasons[choice] = reason
        self._keep(self.armed)
        listed = "\n".join(f"  {choice}: {reason}" for choice, reason in reasons.items())
        raise UserError(
            f"{router} cannot roll back by itself if this run is interrupted:\n{listed}",
            hint=f"Fix that, or run without a rollback timer: qoslab_rollback: none for {router} in the inventory.",
        )

    def _restart_timer(self, router: str, choice: Choice, minutes: int) -> None:
        if choice not in ROLLBACK_METHODS:
            return
        lines = ROLLBACK_METHODS[choice].restart_lines(minutes, self._times[router])
        answers = self._ask(router, *lines)
        self._times[router] += 1
        if refused := find_required_refusal(lines, answers):
            raise UserError(
                f"{router}: the rollback timer could not be restarted ({choice}): {refused}",
                hint="The router may have rolled back already, or reloaded.",
            )


def timer_minutes(settings: RouterSettings, traffic: Duration) -> int:
    """Return the timer of a router for a cell with this traffic time, in minutes."""
    return max(math.ceil((traffic.seconds + settings.rollback_margin.seconds) / 60), 1)


def timer_limit_problem(choice: Choice, minutes: int) -> str:
    """Return why the greatest time of a method is too short for a cell; empty if it is sufficient."""
    countdown = ROLLBACK_METHODS.get(choice)
    if countdown is None or minutes <= countdown.max_minutes:
        return ""
    return f"its maximum is {countdown.max_minutes} min, but the longest cell needs {minutes} min"


def methods_to_try(wanted: Choice | None) -> tuple[Choice, ...]:
    """Return the methods to try, in order, for the setting in the inventory; None: no setting."""
    return tuple(ROLLBACK_METHODS) if wanted is None else (wanted,)


def stop(ask: Ask, router: str, choice: str) -> str:
    """Stop a timer, which may be over already. Return what remains of it; empty if nothing does."""
    countdown = next((each for name, each in ROLLBACK_METHODS.items() if name == choice), None)
    if countdown is None:
        return ""
    answers = ask(router, *countdown.stop())
    shown = ask(router, *countdown.show_commands)
    # A user who may not enter one command may not see the output of the other.
    refused = filter(None, map(find_refusal, (*answers, *shown)))
    denied = next((each for each in refused if "uthorization failed" in each), "")
    if left := countdown.remaining_timers(shown) or denied:
        left += f" ({denied})" if denied not in left else ""
        left += f"; by hand: {'; '.join(countdown.stop())}"
    return left


def refuse_remaining_timers(reasons: Mapping[str, str]) -> None:
    """Raise `DeviceError` if timers remain, by router."""
    left = {router: reason for router, reason in reasons.items() if reason}
    if left:
        listed = "\n".join(f"  {router}: {reason}" for router, reason in left.items())
        raise DeviceError(
            f"could not cancel the rollback timer:\n{listed}",
            hint="The run locks stay in place. Cancel the timer on the router, then run `qoslab lab rescue`.",
        )
