"""Check that the command of an observation only reads: known words after `show`, known filters, no control characters.

The command is typed into a router, which may be a real one. `show … | redirect URL` writes a file, a line end begins
another command, and control characters are editing keys. Therefore every unknown word is refused.
"""

from __future__ import annotations

import re

from qoslab.errors import clip_text, did_you_mean, format_alternatives
from qoslab.ios.cli import output_filters
from qoslab.ios.regexps import Regexp, RegexpError
from qoslab.model.experiment import Trigger
from qoslab.model.metrics import COUNTERS

LENGTH_LIMIT = 200
"""Maximum number of characters of a command; IOS accepts 254 on a line."""

TOPICS = (
    *("access-lists", "adjacency", "arp", "atm", "buffers", "cef", "class-map", "clock", "controllers", "cpu", "diag"),
    *("environment", "etherchannel", "flow", "frame-relay", "hardware", "hosts", "hqf", "interface", "interfaces"),
    *("inventory", "ip", "ipv6", "lldp", "mac", "mac-address-table", "memory", "mls", "module", "mpls", "ntp"),
    *("platform", "policy-map", "ppp", "processes", "protocols", "qos", "queue", "queueing", "route-map"),
    *(
        "running-config",
        "sdm",
        "snmp",
        "spanning-tree",
        "startup-config",
        "subsys",
        "table-map",
        "tcp",
        "traffic-shape",
    ),
    *("users", "version", "vlan", "vlans"),
)
"""Allowed first words after `show`."""


def observation_problem(command: str) -> tuple[str, str]:
    """Return the error of a command and the proposed command; both are empty if the command is allowed."""
    expected = "expected a show command in full, such as show policy-map interface"
    quoted = f'found "{clip_text(command)}"'
    if control := re.search(r"[^ -~]", command):
        return f"{quoted} with the character \\x{ord(control[0]):02x}, expected letters, digits and punctuation", ""
    if len(command) > LENGTH_LIMIT:
        return f"{quoted}, expected at most {LENGTH_LIMIT} characters", ""
    shown, mark = output_filters.split(command)
    words = shown.split()
    if words[:1] != ["show"] or len(words) < 2:
        return f"{quoted}, {expected}", ""
    if words[1] not in TOPICS:
        return f'found "show {words[1]}", {expected}, of {format_alternatives(TOPICS)}', did_you_mean(words[1], TOPICS)
    if odd := next((word for word in words if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9/.:_-]*", word)), None):
        return f'found "{odd}" in a show command, expected words, names and numbers', ""
    return ("", "") if mark is None else _filter(command[mark:].split(maxsplit=1))


def trigger_problem(trigger: Trigger) -> str:
    """Return the error in the time of an observation; empty if there is none."""
    given = [name for name in COUNTERS if getattr(trigger, name) is not None]
    if len(given) == 1:
        return ""
    found = f"the keys {', '.join(given)}" if given else "no key"
    return f"found {found}, expected exactly one of {format_alternatives(COUNTERS).removeprefix('one of ')}"


def _filter(words: list[str]) -> tuple[str, str]:
    """Return the error in the filter after `|` and the proposed filter; both are empty if there is none."""
    kind, expression = (*words, "", "")[:2]
    if kind not in output_filters.KINDS:
        return f'found "| {clip_text(kind)}", expected {format_alternatives(output_filters.KINDS)}', did_you_mean(
            kind, output_filters.KINDS
        )
    if re.search(r"\s\|", expression):
        return (
            f'found a second filter in "{clip_text(expression)}", expected one',
            "write a|b without spaces for alternatives",
        )
    try:
        Regexp(expression)
    except RegexpError as error:
        return f'found "{clip_text(expression)}", expected a regular expression: {error}', ""
    return ("", "") if expression else (f"found nothing behind | {kind}, expected a regular expression", "")
