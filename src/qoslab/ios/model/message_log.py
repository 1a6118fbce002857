"""The messages that a router logs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

MOST_MESSAGES = 200
"""Maximum messages in the buffer; IOS limits bytes instead."""


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the log, `%FACILITY-SEVERITY-MNEMONIC: text`."""

    moment: datetime
    text: str


@dataclass(slots=True)
class MessageLog:
    """The latest messages, and the number of all messages."""

    messages: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_MESSAGES))
    count: int = 0

    def add(self, moment: datetime, text: str) -> None:
        """Log a message."""
        self.messages.append(Message(moment, text))
        self.count += 1
