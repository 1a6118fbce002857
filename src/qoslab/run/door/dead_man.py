"""What takes a router's configuration back when nobody is there any more to do it: a countdown on the router itself.

It is started before the first line is sent, started anew before each cell, and stopped when the router is proven to be
as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from qoslab.errors import UserError
from qoslab.ios.refusals import refusal_in
from qoslab.ios.restore import VOLATILE
from qoslab.model.inventory import DeadManChoice as Choice

Ask = Callable[..., Sequence[str]]
"""`ask("R1", "show clock")`: what a router answers to each line, as `qoslab.run.door.client.Door.ask`."""

_HEADING = re.compile(r"^(?:Building configuration|Current configuration|Using \d+ out of)")


class DeadMan:
    """The countdowns of the routers of a lab."""

    def __init__(
        self,
        ask: Ask,
        wanted: Mapping[str, Choice | None],
        minutes: int,
        keep: Callable[[Mapping[str, Choice]], None] = lambda _: None,
    ) -> None:
        """`wanted` by router; None: the first that the router can. `minutes` is how long it counts.

        `keep` is told what counts down whenever that changes.
        """
        self._ask = ask
        self._wanted = dict(wanted)
        self._minutes = minutes
        self._keep = keep
        self.armed: dict[str, Choice] = {}
        """What counts down, by router."""

    def arm(self) -> None:
        """Start the countdowns, or start them anew. `UserError` where a router cannot do what is wanted."""
        for router, wanted in self._wanted.items():
            if router in self.armed:
                self._renew(router, self.armed[router])
            else:
                self.armed[router] = self._choose(router, wanted)
                self._keep(self.armed)

    def disarm(self) -> None:
        """Stop them: the routers are as they were."""
        for router, choice in list(self.armed.items()):
            stop(self._ask, router, choice)
            del self.armed[router]
            self._keep(self.armed)

    def _choose(self, router: str, wanted: Choice | None) -> Choice:
        if wanted == "none":
            return wanted
        reasons = {}
        for choice in ("archive", "reload") if wanted is None else (wanted,):
            reason = self._archive(router) if choice == "archive" else self._reload(router)
            if not reason:
                return choice
            reasons[choice] = reason
        told = "\n".join(f"  {choice}: {reason}" for choice, reason in reasons.items())
        raise UserError(
            f"{router} cannot take its configuration back by itself, should this run be cut off:\n{told}",
            hint=f"Mend that, or do without: qoslab_dead_man: none for {router} in the inventory.",
        )

    def _archive(self, router: str) -> str:
        """Why it cannot; empty where it counts."""
        said, _ = self._ask(router, f"configure terminal revert timer {self._minutes}", "end")
        if refused := refusal_in(said):
            return refused
        (shown,) = self._ask(router, "show archive config rollback timer")
        return refusal_in(shown) or ""

    def _reload(self, router: str) -> str:
        running, startup = (_steady(text) for text in self._ask(router, "show running-config", "show startup-config"))
        if running != startup:
            return "it has changes that are not saved, which a restart would take away (write memory)"
        _, shown = self._ask(router, f"reload in {self._minutes}", "show reload")
        return "" if "Reload scheduled" in shown else refusal_in(shown) or f"it says: {shown.strip()}"

    def _renew(self, router: str, choice: Choice) -> None:
        line = {"archive": f"configure revert timer {self._minutes}", "reload": f"reload in {self._minutes}"}.get(
            choice
        )
        if line is None:
            return
        (said,) = self._ask(router, line)
        if refused := refusal_in(said):
            raise UserError(
                f"{router} does not count on ({choice}): {refused}",
                hint="It may have taken its configuration back already, or have restarted.",
            )


def stop(ask: Ask, router: str, choice: str) -> None:
    """Stop a countdown; one that is over already is no matter."""
    line = {"archive": "configure confirm", "reload": "reload cancel"}.get(choice)
    if line is not None:
        ask(router, line)


def _steady(text: str) -> list[str]:
    """A configuration's lines without comments, headings, and what changes by itself."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [
        line
        for line in lines
        if line and not line.startswith("!") and not _HEADING.match(line) and not line.startswith(tuple(VOLATILE))
    ]
