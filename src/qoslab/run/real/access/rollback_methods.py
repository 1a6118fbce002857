"""Rollback methods of a router: commands to start, restart and stop each timer, and its effect.

Sources: Cisco's guides to Configuration Replace and Configuration Rollback (the timer for a confirmation is in
12.4(20)T, `configure replace` in 12.3(7)T) and to Embedded Event Manager (countdowns and `action cli` in 12.3(14)T).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from qoslab.ios.device_config.restore import APPLETS, VOLATILE
from qoslab.ios.refusals import find_refusal
from qoslab.model.inventory import RollbackMethod as Choice

Lines = tuple[str, ...]
Ask = Callable[..., Sequence[str]]
"""Function that returns the router's answer to each line: `ask("show clock")`."""

COPY = "flash:qoslab-before.cfg"
"""Path of the configuration that an applet restores."""
MAXRUN = "maxrun 300"
"""Time limit of the applet: the default of 20 s may be too short to activate a configuration."""
_CONFIGURE, _END = "configure terminal", "end"
_REGISTERED = "show event manager policy registered | include qoslab-"
_SCHEDULED = "Reload scheduled"
_ARCHIVE = re.compile(r"^archive *\r?\n(?: .*\n)*? path \S", re.MULTILINE)
_FREE = re.compile(r"\((\d+) bytes free\)")
_CERTIFICATE = re.compile(
    r"^( certificate (?:\S+ )?[0-9A-F]+)"
    r"(?: nvram:\S+|[ \r]*(?:\n[ \t]+[0-9A-F][0-9A-F ]*\r?)*\n[ \t]+quit)[ \r]*$",
    re.MULTILINE,
)
"""Pattern of certificates: the startup configuration names a file in place of their content."""
_HEADING = re.compile(r"^(?:Building configuration|Current configuration|Using \d+ out of)")


@dataclass(frozen=True)
class RollbackState:
    """Router data that some rollback method needs, as shown."""

    running: str = field(repr=False)
    startup: str = field(repr=False)
    flash: str = ""
    """Output of `dir` for the file system of the copy."""


class RollbackMethod(ABC):
    """Rollback timer of one method. Its target is fixed when it is started; a restart keeps it."""

    effect: str
    """Effect at its end, in a few words."""
    max_minutes: int
    """Greatest time in minutes."""
    show_commands: Lines
    """The show commands that show whether it is active."""

    @abstractmethod
    def start(self, minutes: int) -> Lines:
        """Return the lines that start it."""

    @abstractmethod
    def restart_lines(self, minutes: int, times: int) -> Lines:
        """Return the lines that restart it; `times` is the number of starts so far."""

    @abstractmethod
    def stop(self) -> Lines:
        """Return the lines that stop the timer and remove its configuration; harmless if it has expired."""

    @abstractmethod
    def remaining_timers(self, shown: Sequence[str]) -> str:
        """Return the remains of the timer, from the router's answers to `looks`; empty if there are none."""

    @abstractmethod
    def obstacle(self, state: RollbackState) -> str:
        """Return why the router cannot run it, as far as known without starting it; empty if no reason is known."""

    @abstractmethod
    def begin(self, ask: Ask, minutes: int) -> str:
        """Start it; return why the router cannot run it, empty if it is running."""


class ConfirmationTimer(RollbackMethod):
    """Rollback unless the change of the configuration is confirmed."""

    effect = "the router restores its earlier configuration, unless the change is confirmed"
    max_minutes = 120
    show_commands = ("show archive config rollback timer",)

    def start(self, minutes: int) -> Lines:
        """See `RollbackMethod`."""
        return f"configure terminal revert timer {minutes}", _END

    def restart_lines(self, minutes: int, times: int) -> Lines:
        """See `RollbackMethod`."""
        return (f"configure revert timer {minutes}",)

    def stop(self) -> Lines:
        """See `RollbackMethod`."""
        return ("configure confirm",)

    def remaining_timers(self, shown: Sequence[str]) -> str:
        """See `RollbackMethod`."""
        return "its rollback timer is still running" if "Timer type" in shown[0] else ""

    def obstacle(self, state: RollbackState) -> str:
        """See `RollbackMethod`."""
        return "" if _ARCHIVE.search(state.running) else "it has no `archive` with a `path` in its configuration"

    def begin(self, ask: Ask, minutes: int) -> str:
        """See `RollbackMethod`."""
        if refused := find_refusal(ask(*self.start(minutes))[0]):
            return refused
        (shown,) = ask(*self.show_commands)
        return find_refusal(shown) or ""


class AppletTimer(RollbackMethod):
    """Rollback by an applet of the Embedded Event Manager, which activates a copy of the configuration without it."""

    effect = f"an applet restores {COPY}, a copy from before the run"
    max_minutes = (2**32 - 1) // 60
    show_commands = (_REGISTERED, "dir flash:")

    def start(self, minutes: int) -> Lines:
        """See `RollbackMethod`."""
        return f"copy running-config {COPY}", _CONFIGURE, *self._applet_lines(minutes, 0), _END

    def restart_lines(self, minutes: int, times: int) -> Lines:
        """See `RollbackMethod`. The new applet starts before the old one is removed."""
        old = APPLETS[(times - 1) % len(APPLETS)]
        return _CONFIGURE, *self._applet_lines(minutes, times), f"no {old}", _END

    def stop(self) -> Lines:
        """See `RollbackMethod`."""
        return _CONFIGURE, *(f"no {each}" for each in APPLETS), _END, f"delete /force {COPY}"

    def remaining_timers(self, shown: Sequence[str]) -> str:
        """See `RollbackMethod`."""
        registered, files = shown
        counting = [each for each in map(_name, APPLETS) if each in registered]
        if counting:
            return f"the applet {counting[0]} is still running"
        copy = COPY.partition(":")[2]
        return f"{COPY} still exists, with all secrets of its configuration" if copy in files.split() else ""

    def obstacle(self, state: RollbackState) -> str:
        """See `RollbackMethod`."""
        if refused := find_refusal(state.flash):
            return refused
        free, needed = _FREE.search(state.flash), len(state.running.encode())
        if free is None or int(free[1]) >= needed:
            return ""
        return f"flash has {free[1]} bytes free, but the copy needs {needed}"

    def begin(self, ask: Ask, minutes: int) -> str:
        """See `RollbackMethod`."""
        copy, *applet = self.start(minutes)
        (copied,) = ask(copy)
        if refused := find_refusal(copied):
            return refused
        name = _name(APPLETS[0])
        *answers, shown = ask(*applet, _REGISTERED)
        refused = find_required_refusal(applet, answers) or find_refusal(shown) or ""
        if name in shown and not refused:
            return ""
        ask(*self.stop())
        return refused or "it does not list the applet with the timer"

    @staticmethod
    def _applet_lines(minutes: int, times: int) -> Lines:
        return (
            APPLETS[times % len(APPLETS)],
            f" event timer countdown time {60 * minutes}",
            # Replaces the previous line, if the release supports it.
            f" event timer countdown time {60 * minutes} {MAXRUN}",
            ' action 1.0 cli command "enable"',
            f' action 2.0 cli command "configure replace {COPY} force"',
            " exit",
        )


class ReloadTimer(RollbackMethod):
    """Rollback by a reload of the router."""

    effect = "the router reloads its startup configuration (it must equal the running one)"
    max_minutes = 24 * 24 * 60
    show_commands = ("show reload",)

    def start(self, minutes: int) -> Lines:
        """See `RollbackMethod`."""
        # The command for minutes alone accepts three digits.
        return (f"reload in {minutes}" if minutes < 1000 else f"reload in {minutes // 60}:{minutes % 60:02}",)

    def restart_lines(self, minutes: int, times: int) -> Lines:
        """See `RollbackMethod`."""
        return self.start(minutes)

    def stop(self) -> Lines:
        """See `RollbackMethod`."""
        return ("reload cancel",)

    def remaining_timers(self, shown: Sequence[str]) -> str:
        """See `RollbackMethod`."""
        return "its reload is still scheduled" if _SCHEDULED in shown[0] else ""

    def obstacle(self, state: RollbackState) -> str:
        """See `RollbackMethod`."""
        if _comparable_lines(state.running) == _comparable_lines(state.startup):
            return ""
        return "it has unsaved changes that a reload would remove (write memory)"

    def begin(self, ask: Ask, minutes: int) -> str:
        """See `RollbackMethod`."""
        if reason := self.obstacle(RollbackState(*ask("show running-config", "show startup-config"))):
            return reason
        *_, shown = ask(*self.start(minutes), *self.show_commands)
        return "" if _SCHEDULED in shown else find_refusal(shown) or f"it shows: {shown.strip()}"


ROLLBACK_METHODS: Mapping[Choice, RollbackMethod] = MappingProxyType(
    {"archive": ConfirmationTimer(), "eem": AppletTimer(), "reload": ReloadTimer()}
)
"""Rollback methods in the default order; the last one costs a reload of the router, and its counters."""


def find_required_refusal(lines: Sequence[str], ask: Sequence[str]) -> str:
    """Return the router's refusal of one of the required lines; empty without one."""
    refused = (find_refusal(answer) for line, answer in zip(lines, ask, strict=True) if not line.endswith(MAXRUN))
    return next(filter(None, refused), "")


def _name(applet: str) -> str:
    return applet.rpartition(" ")[2]


def _comparable_lines(text: str) -> list[str]:
    """Return a configuration's lines without comments, headings, volatile lines and certificates."""
    lines = [line.rstrip() for line in _CERTIFICATE.sub(r"\1", text).splitlines()]
    return [
        line
        for line in lines
        if line and not line.startswith("!") and not _HEADING.match(line) and not line.startswith(tuple(VOLATILE))
    ]
