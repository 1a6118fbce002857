"""Anonymisation of names, descriptions and addresses in configurations and counters.

Equal names or addresses have equal substitutes. IPv4 addresses keep their common prefixes: two addresses with the same
first n bits have substitutes with n equal bits. Private, documentation and other special blocks and the last eight bits
are unchanged.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from qoslab.exchange.routers.effects import WORDS
from qoslab.exchange.routers.ios_keywords import FURTHER_WORDS
from qoslab.exchange.routers.terminal_text import RouterOutput
from qoslab.ios.config import CONFIG, MODES
from qoslab.ios.model.ios_names import FURTHER_TYPES, INTERFACE_TYPES, PRECEDENCE_NUMBERS, interface_kind
from qoslab.ios.model.nbar import PROTOCOLS, PROTOCOLS_BY_NUMBER, PROTOCOLS_BY_PORT
from qoslab.ios.model.port_names import TCP_PORTS, UDP_PORTS
from qoslab.ios.parse import HEADING
from qoslab.model.units import DSCP_NUMBERS

SPECIAL = tuple(
    map(
        IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
        ),
    )
)
"""Unchanged address blocks (RFC 1918, 3927, 5737, 6598 and others)."""
MAPPED_BITS = 24
_ADDRESS = r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])"
_IPV4 = re.compile(rf"{_ADDRESS}(?:( +(?:mask +)?){_ADDRESS})?")
_IPV6 = re.compile(r"(?<![\w:])([0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}|::[0-9A-Fa-f:]*)(?![\w:])")
_MAC = re.compile(r"(?<![\w.])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![\w.])")
_NUMBERS = re.compile(r"[\d,/:.%()*+-]+[kmg]?$")
_LONG_NUMBER = re.compile(r"\d{5,}")
_TEXT = re.compile(
    r"^(\s*(?:\d+ )?(?:description|remark|title|name|snmp-server (?:location|contact|chassis-id)|banner \S+"
    r"|subject-name|label|alias \S+ \S+|event manager environment \S+|number|destination-pattern))\b.*$"
)
_NAME_DEFINITIONS: tuple[tuple[str, str], ...] = (
    (r"\s*hostname (\S+)", "R"),
    (r"\s*class-map(?: type \S+(?: \S+)?)?(?: match-(?:all|any))? (\S+)\s*$", "CLASS"),
    (r"\s*class(?: type \S+)? (?!class-default)(\S+)\s*$", "CLASS"),
    (r"\s*policy-map(?: type \S+(?: \S+)?)? (\S+)\s*$", "POLICY"),
    (r"\s*service-policy(?: type \S+)?(?: (?:input|output))? ?:? (\S+)\s*$", "POLICY"),
    (r"\s*(?:ip access-list (?:standard|extended)|ipv6 access-list) (?!\d+\s*$)(\S+)", "ACL"),
    (r"\s*match (?:not )?access-group name (\S+)", "ACL"),
    (r"\s*(?:ip vrf|vrf definition|(?:ip )?vrf forwarding) (\S+)", "VRF"),
    (r"\s*object-group \S+ (\S+)", "GROUP"),
    (r"\s*Class-map: (?!class-default)(\S+)", "CLASS"),
    (r"\s*route-map (\S+)", "MAP"),
)
"""Lines that define a name, and the prefix of its substitute."""
_KEPT_AFTER = re.compile(r"(?:license udi pid|cisco) +$", re.IGNORECASE)
_NUMBER_LINES = re.compile(
    r"\s*(?:(?:\d+ )?(?:permit|deny) |access-list"
    r"|police|shape|priority|bandwidth|queue|rate-limit|traffic-shape|clock|random|conform|exceed|violate|cir|pir"
    r"|bc|be|vbr|cbr|ubr|set|fair|compress|mtu|ip mtu|buffers|logging buffered|Current|Using)"
)
"""Lines in which long numbers are rates and sizes."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


@cache
def _command_keywords() -> frozenset[str]:
    """Return the words of commands, which remain unchanged."""
    texts = [form.text for mode in MODES for form in CONFIG.forms(mode)]
    found = {word for text in texts for word in _WORD.findall(re.sub(r"<[^>]*>", " ", text))}
    found |= {*DSCP_NUMBERS, *PRECEDENCE_NUMBERS, *PROTOCOLS_BY_NUMBER, *PROTOCOLS, *MODES, *TCP_PORTS, *UDP_PORTS}
    found |= {word for name in PROTOCOLS_BY_PORT for word in name.split()}
    return frozenset(found | set(WORDS) | FURTHER_WORDS)


class Anonymiser:
    """Substitutes for the names and addresses of some routers."""

    def __init__(self, key: bytes | None = None) -> None:
        """Create substitutes; `key` determines those of addresses, and is random by default."""
        self._key = key or secrets.token_bytes(32)
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def replace(self, outputs: list[RouterOutput]) -> None:
        """Replace names, descriptions and addresses in all outputs."""
        for output in outputs:
            for _, line in output.lines:
                self._define_names(line)
            if output.host:
                self.name(output.host, "R")
        for output in outputs:
            configuration = output.kind == "configuration"
            output.host = self._names.get(output.host, output.host)
            if output.kind == "other":
                output.lines = [(number, "(output of another command)") for number, _ in output.lines[:1]]
            elif configuration:
                output.lines = self._anonymise_configuration(output.lines)
            else:
                output.lines = [(number, self._anonymise_output(line)) for number, line in output.lines]

    def _define_names(self, line: str) -> None:
        for pattern, word in _NAME_DEFINITIONS:
            if found := re.match(pattern, line):
                self.name(found[1], word)
                return

    def name(self, name: str, word: str = "NAME") -> str:
        """Return the substitute of a name; a new one consists of `word` and a number."""
        if name not in self._names:
            self._counts[word] = self._counts.get(word, 0) + 1
            self._names[name] = f"{word}{self._counts[word]}"
        return self._names[name]

    def _anonymise_configuration(self, lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
        made: list[tuple[int, str]] = []
        delimiter = ""
        certificate = False
        for number, line in lines:
            if delimiter:
                ended = delimiter in line
                delimiter = "" if ended else delimiter
                made.append((number, "^C" if ended else "removed"))
                continue
            if certificate:
                certificate = "quit" not in line.split()
                made.append((number, "  quit" if not certificate else "  removed"))
                continue
            certificate = bool(re.match(r"\s+certificate ", line))
            banner = re.match(r"\s*banner \S+ +(\^.|\S)(.*)", line)
            if banner and banner[1] not in banner[2]:
                delimiter = banner[1]
                made.append((number, " ".join(line.split()[:2]) + " ^C"))
            else:
                made.append((number, self.anonymise_line(line)))
        return made

    def anonymise_line(self, line: str) -> str:
        """Return a line of a configuration with all words replaced except keywords and numbers."""
        if line.strip().startswith("!"):
            return "!"
        if HEADING.fullmatch(line.strip()):
            return line
        if (text := _TEXT.match(line)) and not re.match(r"\s*(?:class|policy)-map|\s*match", line):
            return f"{text[1]} {'^Cremoved^C' if 'banner' in text[1] else 'removed'}"
        defined = next((found for pattern, _ in _NAME_DEFINITIONS if (found := re.match(pattern, line))), None)
        start, end = defined.span(1) if defined is not None else (0, 0)
        line = self._substitute_addresses(line) if defined is None else line
        made, last = [], 0
        for token in re.finditer(r"\S+", line):
            made.append(line[last : token.start()])
            last = token.end()
            named = defined is not None and (token.start(), token.end()) == (start, end)
            made.append(self.name(token[0]) if named else self._anonymise_token(token[0], line[: token.start()]))
        return "".join(made)

    def _anonymise_token(self, token: str, before: str) -> str:
        bare = token.strip('",()[]')
        if (
            bare in _command_keywords()
            or bare in ("dot1Q", "!", "")
            or self._substitute_token(bare)
            or _KEPT_AFTER.search(before)
        ):
            return token
        if _NUMBERS.fullmatch(token):
            # Numbers of telephones, of autonomous systems, of devices.
            return token if _NUMBER_LINES.match(before or token) else _LONG_NUMBER.sub("99999", token)
        kind = interface_kind(token.partition(":")[0])
        if kind in (*INTERFACE_TYPES, *FURTHER_TYPES) and kind != token:
            return token
        if _IPV6.fullmatch(token.partition("/")[0]):
            return token
        return self.name(token)

    def _substitute_token(self, token: str) -> bool:
        return (
            bool(re.fullmatch(r"(?:R|CLASS|POLICY|ACL|VRF|GROUP|MAP|NAME)\d+", token)) and token in self._names.values()
        )

    def _anonymise_output(self, line: str) -> str:
        """Return a line of `show` output with known names and addresses replaced."""
        line = self._substitute_addresses(line)
        if re.match(r"\s*Description: ", line):
            return "  Description: removed"
        return re.sub(r"[^\s,;()]+", lambda found: self._names.get(found[0], found[0]), line)

    def _substitute_addresses(self, line: str) -> str:
        line = _IPV4.sub(self._substitute_ipv4, line)
        line = _MAC.sub(lambda found: self._substitute_mac(found[0]), line)
        return _IPV6.sub(lambda found: self._substitute_ipv6(found[1]), line)

    def _substitute_ipv4(self, found: re.Match[str]) -> str:
        """Return the substitutes of an address and of the following mask or address."""
        address, other = _substitute_number(found[1]), _substitute_number(found[3] or "")
        if other is None or not _is_mask(other):
            rest = "" if found[3] is None else found[2] + self._substitute_address(found[3])
            return self._substitute_address(found[1]) + rest
        if address is None or _is_mask(address):
            return found[0]
        bits = other ^ (2**32 - 1) if other >> 24 == 0 else other
        made = int(self.substitute_address(IPv4Address(address)))
        # The address of a network remains a network address.
        return f"{IPv4Address(made & bits if address & bits == address else made)}{found[2]}{found[3]}"

    def _substitute_address(self, text: str) -> str:
        value = _substitute_number(text)
        return text if value is None or _is_mask(value) else str(self.substitute_address(IPv4Address(value)))

    @staticmethod
    def _substitute_mac(text: str) -> str:
        return "0200.0000." + hashlib.sha256(text.lower().encode()).hexdigest()[:4]

    def substitute_address(self, address: IPv4Address) -> IPv4Address:
        """Return the substitute of an IPv4 address."""
        value = int(address)
        if address.is_multicast or address.is_loopback or address.is_link_local or address.is_unspecified:
            return address
        made = value
        for place in range(MAPPED_BITS):
            prefix = value >> (32 - place)
            if not any(
                each.prefixlen > place and int(each.network_address) >> (32 - place) == prefix for each in SPECIAL
            ):
                digest = hmac.new(self._key, f"{place} {prefix}".encode(), "sha256").digest()
                made ^= (digest[0] & 1) << (31 - place)
        return IPv4Address(made)

    def _substitute_ipv6(self, text: str) -> str:
        try:
            address = IPv6Address(text)
        except ValueError:
            return text
        if not address.is_global and not text.lower().startswith("2"):
            return text
        digest = hmac.new(self._key, address.packed[:6], "sha256").digest()
        low = hmac.new(self._key, address.packed[8:], "sha256").digest()[:8]
        last = address.packed[8:] if address.packed[8:14] == bytes(6) else low
        return str(IPv6Address(bytes.fromhex("20010db8") + digest[:2] + address.packed[6:8] + last)).upper()


def _substitute_number(text: str) -> int | None:
    try:
        return int(IPv4Address(text))
    except ValueError:
        return None


def _is_mask(value: int) -> bool:
    """Return whether a number is a mask or a wildcard: all ones on one side, and not a host address."""
    other = value ^ (2**32 - 1)
    return value >> 24 in (0, 255) and ((other & (other + 1)) == 0 or (value & (value + 1)) == 0)
