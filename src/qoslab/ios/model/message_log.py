"""The messages that a router logs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

MAX_MESSAGES = 200
"""Maximum messages in the buffer; IOS limits bytes instead."""


@dataclass(frozen=True, slots=True)
class LogMessage:
    """One line of the log, `%FACILITY-SEVERITY-MNEMONIC: text`."""

    moment: datetime
    text: str


@dataclass(slots=True)
class MessageLog:
    """The latest messages, and the number of all messages."""

    messages: deque[LogMessage] = field(default_factory=lambda: deque(maxlen=MAX_MESSAGES))
    count: int = 0

    def add(self, moment: datetime, text: str) -> None:
        """Log a message."""
        self.messages.append(LogMessage(moment, text))
        self.count += 1
