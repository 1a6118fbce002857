"""Access to a device's command line, and its failures: values for the proxy process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from qoslab.model.inventory import ANSWER_S
from qoslab.run.devices.login_failures import FailureKind

SSH_PORT, TELNET_PORT = 22, 23
LOGIN_TIMES, ANSWER_TIMES = 2, 4
"""Limits of a whole login and of a whole answer, in multiples of the allowed silence of a device."""


@dataclass(frozen=True)
class Hop:
    """Jump host, reached by SSH."""

    host: str
    port: int = SSH_PORT
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    """Password; None: a key of the user, or of the agent."""


@dataclass(frozen=True)
class AccessMethod:
    """Address and login of a device."""

    host: str
    port: int | None = None
    protocol: Literal["ssh", "telnet"] = "ssh"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    """Password; None: a key of the user, or of the agent; by telnet, no question is expected."""
    enable: str | None = field(default=None, repr=False)
    """Enable secret, if a login does not start at privilege level 15."""
    console: bool = False
    """True for telnet to a terminal server: a single line in any state."""
    old_ssh: bool = False
    """True if SHA-1 and CBC are accepted for SSH as well."""
    jump: Hop | None = None
    check_host_key: bool = True
    key: str | None = None
    """File of a private key, in addition to a password."""
    known_hosts: str | None = None
    """Text of a known_hosts file; None: the user's own file."""
    answer_s: float = ANSWER_S
    """Allowed silence of a device in seconds, during a login and before the answer to a command.

    The limit is `LOGIN_TIMES` as long for a whole login, and `ANSWER_TIMES` as long for a whole answer.
    """
    pause_s: float = 0.2
    """Pause between the end of one login and the start of the next, in seconds.

    Old routers accept one login at a time, and log each.
    """

    @property
    def address_text(self) -> str:
        """Return the address of the device, for people."""
        port = self.port or (SSH_PORT if self.protocol == "ssh" else TELNET_PORT)
        through = f" through {self.jump.host}" if self.jump else ""
        return f"{self.host} port {port} by {'console' if self.console else self.protocol}{through}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the secrets."""
        known = (self.password, self.enable, self.jump.password if self.jump else None)
        return tuple(each for each in known if each)


FINAL = frozenset({FailureKind.LOGIN_REFUSED, FailureKind.ENABLE_REFUSED, FailureKind.KEY_CHANGED})
"""Failures after which no login is tried again: another try with the same secrets could only lock the user out."""


@dataclass(frozen=True)
class AccessFailure:
    """Reason for a failed login."""

    kind: FailureKind
    message: str
    """Finding, without the device's name."""
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class AccessError(Exception):
    """Refusal of a login by a device."""

    def __init__(self, kind: FailureKind, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.trouble = AccessFailure(kind, message, hint)


@dataclass(frozen=True)
class ProxySettings:
    """Settings of the proxy process."""

    access_methods: dict[str, AccessMethod]
    passwords: dict[str, str] = field(repr=False)
    """Client password of each device's proxy."""
    transcripts: str | None = None
    """Folder for transcripts; None: none are kept."""


USER = "qoslab"
"""User name at a proxy."""
