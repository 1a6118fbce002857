"""A login, with privilege, terminal and configuration mode, and the table of exec commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from qoslab.ios.cli.grammar import Args, CommandTable
from qoslab.ios.cli.terminal import Terminal
from qoslab.ios.config import ConfigSession
from qoslab.ios.environment import RouterEnvironment
from qoslab.ios.model.device import Device

USER, PRIVILEGED = "user", "privileged"
ANY_MODE = (USER, PRIVILEGED)
"""The modes of commands that require no privilege."""

PRIVILEGED_LEVEL, USER_LEVEL = 15, 1

NAME_LENGTH, PROMPT_LENGTH = 20, 30
"""Maximum characters of the hostname, and of the whole prompt, in configuration mode: from the examples at `hostname`
in Cisco's command reference, such as `Switch(config-service-profil)#`."""


class ExecSession:
    """Session of exec commands."""

    def __init__(self, environment: RouterEnvironment, terminal: Terminal, *, privilege: int = USER_LEVEL) -> None:
        self.environment = environment
        self.terminal = terminal
        self.privilege = privilege
        self.config: ConfigSession | None = None
        """The configuration session; None outside configuration mode."""
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
            return "" if self.config.is_collecting_banner else _mode_prompt(self.config.prompt, self.device.hostname)
        return self.device.hostname + ("#" if self.mode == PRIVILEGED else ">")

    def known_interface(self, args: Args) -> str | None:
        """Return the interface given as an argument. Raise the error for invalid input if the router lacks it."""
        interface = args.optional("name", str)
        if interface is not None and interface not in self.device.interfaces:
            raise args.invalid_argument("name")
        return interface


def _mode_prompt(mode: str, hostname: str) -> str:
    """Return the prompt in a mode such as `(config-if)`; a long prompt is truncated but keeps its end."""
    name = hostname[:NAME_LENGTH]
    return f"{name}{mode[:-1][: PROMPT_LENGTH - len(name) - 2]})#"


Handler = Callable[[ExecSession, Args], Awaitable[str | None]]
"""Handler of a command. The returned text passes through the output filter and the pager."""

TEXTS = {"ip": "IP information", "show": "Show running system information", "name": "Interface type and number"}

EXEC: CommandTable[Handler] = CommandTable(texts=TEXTS)
