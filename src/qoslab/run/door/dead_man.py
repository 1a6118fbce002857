"""What takes a router's configuration back when nobody is there any more to do it: a countdown on the router itself.

It is started before the first line is sent, started anew before each cell, and stopped when the router is proven to be
as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from qoslab.errors import UserError
from qoslab.ios.refusals import refusal_in
from qoslab.model.inventory import DeadManChoice as Choice
from qoslab.model.inventory import RouterSettings
from qoslab.run.door.countdowns import COUNTDOWNS
from qoslab.units import Duration

Ask = Callable[..., Sequence[str]]
"""`ask("R1", "show clock")`: what a router answers to each line, as `qoslab.run.door.client.Door.ask`."""

MOST_MINUTES = 120
"""What `configure terminal revert timer` takes."""


class DeadMan:
    """The countdowns of the routers of a lab."""

    def __init__(
        self,
        ask: Ask,
        wanted: Mapping[str, Choice | None],
        minutes: Mapping[str, int],
        keep: Callable[[Mapping[str, Choice]], None] = lambda _: None,
    ) -> None:
        """`wanted` by router; None: the first that the router can. `minutes` is how long each counts.

        `keep` is told what counts down whenever that changes.
        """
        self._ask = ask
        self._wanted = dict(wanted)
        self._minutes = dict(minutes)
        self._keep = keep
        self.armed: dict[str, Choice] = {}
        """What counts down, by router."""
        self._times: dict[str, int] = {}
        """How often each was started."""

    def arm(self) -> None:
        """Start the countdowns, or start them anew. `UserError` where a router cannot do what is wanted."""
        for router, wanted in self._wanted.items():
            if router in self.armed:
                self._renew(router, self.armed[router])
            else:
                self._start(router, wanted)

    def disarm(self) -> None:
        """Stop them: the routers are as they were."""
        for router, choice in list(self.armed.items()):
            stop(self._ask, router, choice)
            del self.armed[router]
            self._keep(self.armed)

    def _start(self, router: str, wanted: Choice | None) -> None:
        reasons = {}
        for choice in tried(wanted):
            # Known before it counts: where this is cut off in between, whoever restores stops it.
            self._keep({**self.armed, router: choice})
            countdown = COUNTDOWNS.get(choice)
            reason = "" if countdown is None else countdown.begin(partial(self._ask, router), self._minutes[router])
            if not reason:
                self.armed[router], self._times[router] = choice, 1
                return
            reasons[choice] = reason
        self._keep(self.armed)
        told = "\n".join(f"  {choice}: {reason}" for choice, reason in reasons.items())
        raise UserError(
            f"{router} cannot take its configuration back by itself, should this run be cut off:\n{told}",
            hint=f"Mend that, or do without: qoslab_dead_man: none for {router} in the inventory.",
        )

    def _renew(self, router: str, choice: Choice) -> None:
        if choice not in COUNTDOWNS:
            return
        said = self._ask(router, *COUNTDOWNS[choice].renew(self._minutes[router], self._times[router]))
        self._times[router] += 1
        if refused := next(filter(None, map(refusal_in, said)), None):
            raise UserError(
                f"{router} does not count on ({choice}): {refused}",
                hint="It may have taken its configuration back already, or have restarted.",
            )


def minutes_of(settings: RouterSettings, duration: Duration) -> int:
    """How long a router counts, of an experiment with that traffic time."""
    return min(math.ceil((duration.seconds + settings.dead_man_after.seconds) / 60), MOST_MINUTES)


def tried(wanted: Choice | None) -> tuple[Choice, ...]:
    """What is tried, in order, for what the inventory says; None: nothing."""
    return tuple(COUNTDOWNS) if wanted is None else (wanted,)


def stop(ask: Ask, router: str, choice: str) -> None:
    """Stop a countdown; one that is over already is no matter."""
    countdown = next((each for name, each in COUNTDOWNS.items() if name == choice), None)
    if countdown is not None:
        ask(router, *countdown.stop())
