"""Well-formed random configuration lines, made from the table of commands."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from qoslab.ios.cli.syntax import Argument, Automaton
from qoslab.ios.config import CONFIG, ConfigSession

VALUES = {
    "A.B.C.D": ["10.0.0.1", "10.0.1.1", "10.0.0.0", "10.0.1.0", "0.0.0.0", "255.255.255.0", "0.0.0.255"],
    "X:X:X:X::X": ["2001:db8::1", "2001:DB8:0:1::9", "fe80::1", "ff02::1", "::"],
    "X:X:X:X::X/<0-128>": [
        "2001:db8::1/64",
        "2001:db8:0:1::/64",
        "2001:db8:0:1::7/64",
        "::/0",
        "fe80::1/64",
        "::1/128",
    ],
    "Interface": ["Fa0/0", "Fa0/1", "s0/0", "Serial0/1", "fa 0/1", "fa0/9", "ATM1/0", "ATM1/0.1"],
    "Vlan": ["Vlan10", "vlan 1", "Vlan30"],
    "/nn": ["/8", "/24", "/32"],
    "engineID": ["engineID"],
    "WORD": ["Voice", "Data", "Child", "Edge", "Inner", "New", "class-default", "List", "101", "no", "input"],
    "hh:mm": ["00:01:30", "10:20", "23:59:59"],
    "<0-255>/<1-65535>": ["0/33", "0/34", "8/35"],
    "<-63-63>": ["-14", "0", "24", "63"],
    "<0-FF>": ["0", "42", "fE"],
    "LINE": ["some text", "@a b@", "no way", "end", "x  y"],
}
MASKS = ["255.255.255.0", "255.255.0.0", "255.255.255.255", "0.0.0.255"]
MOST_WORDS = 15


def typed_line(random: Random, session: ConfigSession) -> str:
    """Return a line of the session's mode or of global configuration; the end of a banner while one is being typed."""
    if session.is_collecting_banner:
        return "@"
    mode = session.position.mode if random.random() < 0.6 else "config"
    possible = [
        each.automaton
        for each in CONFIG._modes[mode]
        if each.command.requires <= session.capabilities and each.command.syntax != "end"
    ]
    return _walk(random, random.choice(possible))


ENTERED = {
    "config": "",
    "interface": "interface {port}",
    "subinterface": "interface FastEthernet0/0.7",
    "atm-vc": "interface ATM1/0\npvc 0/33",
    "subif-atm-vc": "interface ATM1/0\nno pvc 0/33\ninterface ATM1/0.1 point-to-point\npvc 0/34",
    "vlan": "vlan 7",
    "class-map": "class-map New",
    "policy-map": "policy-map New",
    "policy-class": "class-map New\npolicy-map New\nclass {class_name}",
    "police": "policy-map New\nclass class-default\npolice 8000 1500",
    "line": "line vty 0 4",
    "sla": "ip sla 1",
    "sla-icmp-echo": "ip sla 2\nicmp-echo 10.0.0.1",
    "sla-icmp-jitter": "ip sla 3\nicmp-jitter 10.0.0.1",
    "sla-udp-echo": "ip sla 4\nudp-echo 10.0.0.1 7",
    "sla-udp-jitter": "ip sla 5\nudp-jitter 10.0.0.1 7",
    "standard-acl": "ip access-list standard Hosts",
    "network-group": "object-group network Edge\nhost 10.0.0.9\nobject-group network New",
    "service-group": "object-group service Inner\ntcp\nobject-group service Data",
    "extended-acl": "ip access-list extended Flows",
    "ipv6-acl": "ipv6 access-list Flows6",
    "host-interface": "interface Loopback7",
    "kept": "archive",
}
"""Lines that enter each mode."""
OBJECT_GROUPS = ("network-group", "service-group")
"""Modes for object groups of later routers."""


def lines_of_each_command(random: Random, capabilities: frozenset[str], ports: Sequence[str]) -> list[str]:
    """Yield one or two lines of each command of a device, each after those that enter its mode."""
    lines: list[str] = []
    for mode, entered in ENTERED.items():
        if mode in OBJECT_GROUPS and "object-groups" not in capabilities:
            continue
        possible = [each for each in CONFIG._modes[mode] if each.command.requires <= capabilities]
        for each in random.sample(possible, len(possible)):
            if each.form != "default" and each.command.syntax not in ("exit", "end") and random.random() < 0.7:
                place = entered.format(port=random.choice(ports), class_name=random.choice(["New", "class-default"]))
                lines += [*place.split("\n"), _walk(random, each.automaton)]
    return lines


def _walk(random: Random, automaton: Automaton) -> str:
    words: list[str] = []
    state = automaton.start
    while len(words) < MOST_WORDS:
        edges = automaton.edges(state)
        if not edges or (automaton.accepts(state) and random.random() < 0.4):
            break
        edge = random.choice(edges)
        words.append(edge.symbol if isinstance(edge.symbol, str) else _value(random, edge.symbol))
        state = edge.target
    return " ".join(words)


def _value(random: Random, argument: Argument) -> str:
    placeholder = argument.type.placeholder
    if argument.name == "mask":
        return random.choice(MASKS)
    if placeholder in VALUES:
        return random.choice(VALUES[placeholder])
    low, high = (int(limit) for limit in placeholder.strip("<>").split("-"))
    if argument.name in ("list", "number") and high in (99, 199):
        return random.choice(["5", "7", "101", "102"])
    usual = 1_000_000 if low <= 1_000_000 <= high else low
    return str(random.choice([low, high, random.randint(low, high), min(high, low + random.randint(0, 10)), usual]))
