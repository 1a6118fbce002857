"""Parser of `show vlans` of a router: the VLANs of its subinterfaces. Genie has none."""

from __future__ import annotations

import re
from typing import Any

Values = dict[str, Any]

_VLAN = re.compile(r"Virtual LAN ID: +(\d+) +\(IEEE 802\.1Q Encapsulation\)")
_TRUNK = re.compile(r"vLAN Trunk Interface: +(\S+)")
_NAME = re.compile(r"[A-Z][A-Za-z-]*\d+(?:/\d+)*(?:\.\d+)?")
_ADDRESS = re.compile(r"IP +(\S+) +(\d+) +(\d+)")
_TOTAL = re.compile(r"(\d+) packets, (\d+) bytes (input|output)")


def parse_vlans(text: str) -> Values:
    """Parse `text` by VLAN: `interfaces`, `native` (names), `counters` of each; empty without VLANs."""
    result: Values = {}
    vlan: Values = {}
    native = False
    for raw in text.splitlines():
        line = raw.strip()
        if match := _VLAN.fullmatch(line):
            vlan = result.setdefault(match[1], {"interfaces": [], "native": [], "counters": {}})
            native = False
        elif not vlan:
            continue
        elif match := _TRUNK.fullmatch(line):
            vlan["interfaces"].append(match[1])
        elif line.startswith("This is configured as native Vlan"):
            native = True
        elif line.startswith("Protocols Configured:"):
            native = False
        elif _NAME.fullmatch(line):
            vlan["native" if native else "interfaces"].append(line)
        elif match := _ADDRESS.fullmatch(line):
            vlan.setdefault("addresses", []).append(match[1])
        elif match := _TOTAL.fullmatch(line):
            # The n-th value is for the n-th interface.
            counted = vlan["counters"]
            done = [name for name, each in counted.items() if {"input", "output"} <= each.keys()]
            name = next((name for name in vlan["interfaces"] if name not in done), None)
            if name is not None:
                counted.setdefault(name, {})[match[3]] = {"packets": int(match[1]), "bytes": int(match[2])}
    return result
