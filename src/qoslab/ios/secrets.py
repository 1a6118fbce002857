"""Secrets in a router's configuration: passwords, communities, keys, however they are written."""

from __future__ import annotations

import re

REMOVED = "<removed>"
"""In place of a secret, and of what follows it in its line."""

_BEFORE = (
    r"password",
    r"secret",
    r"snmp-server community",
    r"snmp-server host \S+",
    r"snmp-server user \S+ \S+",
    r"key-string",
    r"authentication-key",
    r"message-digest-key \d+ md5",
    r"authentication(?: mode)? (?:text|md5)",
    r"pre-shared-key(?: address \S+(?: [0-9.]+)?)?(?: key)?",
    r"isakmp key",
    r"(?:tacacs|radius)(?:-server)?[^\n]* key",
    r"key(?= [0-9] \S)",
    r"wpa-psk (?:ascii|hex)",
)
"""What a secret follows, an optional number for its form between them (`password 7 0822455D0A16`)."""
_SECRET = re.compile(
    rf"^((?:.*?(?<!\S)|[-+])(?:{'|'.join(_BEFORE)})(?: level \d+)?(?: [0-9](?= \S))?) \S.*$", re.MULTILINE
)
"""In a difference, + or - comes before the line."""


def without_secrets(text: str) -> str:
    """A configuration as it may be kept and shown: each secret is replaced, its line stays.

    By the commands of Cisco's IOS Security Command Reference and SNMP Command Reference; what is not listed there, such
    as a secret in a description, stays as it is.
    """
    return _SECRET.sub(rf"\1 {REMOVED}", text)
