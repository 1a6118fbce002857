"""The messages that a router logs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

MOST_MESSAGES = 200
"""Messages in the buffer; IOS counts bytes."""


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the log, `%FACILITY-SEVERITY-MNEMONIC: text`."""

    moment: datetime
    text: str


@dataclass(slots=True)
class MessageLog:
    """The buffered messages, the latest of them, and how many there were."""

    messages: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_MESSAGES))
    count: int = 0

    def add(self, moment: datetime, text: str) -> None:
        """Log a message."""
        self.messages.append(Message(moment, text))
        self.count += 1
