"""One login: its privilege, its terminal, its configuration mode; and the table of exec commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from qoslab.ios.cli.grammar import Args, Table
from qoslab.ios.cli.terminal import Terminal
from qoslab.ios.config import ConfigSession
from qoslab.ios.environment import Environment
from qoslab.ios.model.device import Device

USER, PRIVILEGED = "user", "privileged"
ANY_MODE = (USER, PRIVILEGED)
"""The modes of commands that need no privilege."""

PRIVILEGED_LEVEL, USER_LEVEL = 15, 1


class ExecSession:
    """What exec commands work on."""

    def __init__(self, environment: Environment, terminal: Terminal, *, privilege: int = USER_LEVEL) -> None:
        self.environment = environment
        self.terminal = terminal
        self.privilege = privilege
        self.config: ConfigSession | None = None
        """The configuration mode, while the login is in it."""
        self.closed = False

    @property
    def device(self) -> Device:
        """The running configuration."""
        return self.environment.device

    @property
    def mode(self) -> str:
        """The exec mode."""
        return PRIVILEGED if self.privilege == PRIVILEGED_LEVEL else USER

    @property
    def prompt(self) -> str:
        """The whole prompt."""
        if self.config is not None:
            return "" if self.config.collecting else f"{self.device.hostname}{self.config.prompt}#"
        return self.device.hostname + ("#" if self.mode == PRIVILEGED else ">")

    def known_interface(self, args: Args, name: str = "name") -> str | None:
        """Return the interface given as argument `name`; a name that the router has not is an invalid input."""
        interface = args.optional(name, str)
        if interface is not None and interface not in self.device.interfaces:
            raise args.invalid(name)
        return interface


Handler = Callable[[ExecSession, Args], Awaitable[str | None]]
"""Carries out a command. The text that it returns goes through the output filter and the pager."""

TEXTS = {
    "ip": "IP information",
    "show": "Show running system information",
    "name": "Interface type and number",
}

EXEC: Table[Handler] = Table(texts=TEXTS)
