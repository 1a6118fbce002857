"""Secrets in a router's configuration: passwords, communities and keys in all their forms."""

from __future__ import annotations

import re

SECRET_REPLACEMENT = "<removed>"
"""Replacement for a secret, and for the rest of its line."""

_SECRET_KEYWORDS = (
    r"(?:area-|domain-)?password",
    r"secret",
    r"snmp-server community",
    r"snmp-server host \S+",
    r"snmp-server user \S+ \S+",
    r"key-string",
    r"authentication-key",
    r"message-digest-key \d+ md5",
    r"(?:standby|vrrp|glbp)(?: \d+)? authentication(?: (?:text|md5)(?= \S))?",
    r"authentication(?: mode)? (?:text|md5|hmac-sha-256)",
    r"ip nhrp authentication",
    r"pre-shared-key(?: address \S+(?: [0-9.]+)?)?(?: key)?",
    r"isakmp key",
    r"(?:tacacs|radius)(?:-server)?[^\n]* key",
    r"server-private[^\n]* key",
    r"server-key",
    r"set session-key (?:in|out)bound (?:ah|esp)",
    r"key(?= [0-9] \S)",
    r"wpa-psk (?:ascii|hex)",
    r"ipsec spi \d+",
    r"encryption(?: mode \S+| vlan \d+)* key \d+ size \S+",
    r"snmp mib community-map",
)
"""Words before a secret, with an optional number for its form (`password 7 0822455D0A16`)."""
_SECRET = re.compile(
    rf"^((?:.*?(?<!\S)|[-+])(?:{'|'.join(_SECRET_KEYWORDS)})(?: level \d+)?(?: [0-9](?= \S))?) \S.*$", re.MULTILINE
)
"""Pattern of a secret; in a difference, + or - comes before the line."""
_KEY = re.compile(r"([-+]?\s*key) (?!chain )\S.*")
"""Pattern of a server's or client group's key. In a key chain, `key` has a number, and the secret is below it."""
_URL = re.compile(r"(://[^\s:/@]+:)[^\s@]+(?=@)")
"""User and password of a URL, as in `path ftp://backup:PASSWORD@192.0.2.9/configs`."""
_KEY_CHAIN = re.compile(r"[-+]?key chain ")


def remove_secrets(text: str) -> str:
    """Return a configuration that is safe to store and show: secrets are replaced, their lines stay.

    The commands are those of Cisco's IOS Security Command Reference and SNMP Command Reference; other secrets, such as
    one in a description, are not replaced.
    """
    return _remove_keys(_URL.sub(rf"\1{SECRET_REPLACEMENT}", _SECRET.sub(rf"\1 {SECRET_REPLACEMENT}", text)))


def _remove_keys(text: str) -> str:
    lines, in_chain = text.split("\n"), False
    for index, line in enumerate(lines):
        if found := _KEY.match(line):
            if not in_chain and not line.endswith(SECRET_REPLACEMENT):
                lines[index] = f"{found[1]} {SECRET_REPLACEMENT}"
        elif line.lstrip("+-")[:1].strip():
            in_chain = _KEY_CHAIN.match(line) is not None
    return "\n".join(lines)
