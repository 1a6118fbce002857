"""Applets of a virtual router: each enters its commands once, at the end of its countdown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from qoslab.ios.model.applets import Applet
from qoslab.virtual_lab.countdown import ScheduledCall


@dataclass(frozen=True)
class _WaitingApplet:
    applet: Applet
    since: datetime
    countdown: ScheduledCall


class AppletTimers:
    """Applets of a running configuration. The countdown of a new or changed applet starts at once."""

    def __init__(self, carry_out: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        """`carry_out` enters commands."""
        self._carry_out = carry_out
        self._waiting: dict[str, _WaitingApplet] = {}

    @property
    def registration_times(self) -> dict[str, datetime]:
        """Registration times by applet."""
        return {name: each.since for name, each in self._waiting.items()}

    def follow(self, present: Mapping[str, Applet]) -> None:
        """Update the applets to those of the configuration."""
        for name in [name for name, each in self._waiting.items() if present.get(name) != each.applet]:
            self._waiting.pop(name).countdown.stop()
        for name, applet in present.items():
            if name not in self._waiting:
                countdown = ScheduledCall(partial(self._carry_out, applet.commands))
                countdown.start(applet.seconds)
                self._waiting[name] = _WaitingApplet(applet, datetime.now(UTC), countdown)
