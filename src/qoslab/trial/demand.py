"""Traffic as text, such as `voice 20 calls, video 4, web 50, backup`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from qoslab.errors import UserError
from qoslab.model.traffic_kinds import CATALOGUE, KINDS, TrafficKind
from qoslab.model.units import DSCP_NUMBERS, QuantityError, dscp_number, parse_rate_option

PolicyDirection = Literal["", "out", "in"]
"""Direction at the tried interface: `out` leaves by it, `in` arrives at it, "" is the direction of the tried policy."""
TRIAL_NETWORK = IPv4Network("198.18.0.0/15")
"""Network of the trial (RFC 2544)."""
MAX_SOURCES = 2000
"""Maximum number of sources of all kinds."""
DIRECTION_WORDS: dict[str, tuple[PolicyDirection, ...]] = {"out": ("out",), "in": ("in",), "both": ("out", "in")}
"""Directions by the word before a colon, for the entries after it."""
_FORM = "KIND [COUNT] [rate RATE] [dscp DSCP] [port PORT] [from ADDRESS] [to ADDRESS]"


@dataclass(frozen=True, slots=True)
class TrafficDemand:
    """One kind of traffic with its number of sources."""

    name: str
    """Name, unique among the demands."""
    kind: TrafficKind
    count: int
    dscp: int
    port: int
    rate_bps: int | None = None
    """Payload rate of each source; None for the rate of the catalogue."""
    source: IPv4Address | None = None
    """Address of the sender, for access lists; None for any."""
    destination: IPv4Address | None = None
    way: PolicyDirection = ""

    def is_reverse(self, direction: str) -> bool:
        """Return whether the traffic is against the direction of the tried policy, input or output."""
        return self.way not in ("", "out" if direction == "output" else "in")


def parse_traffic(text: str) -> list[TrafficDemand]:
    """Parse a list of demands. Raise UserError with the invalid part."""
    found: list[TrafficDemand] = []
    ways: tuple[PolicyDirection, ...] = ("",)
    for part in re.split(r"[,;\n]", text):
        head, colon, rest = part.rpartition(":")
        if colon:
            ways = _split_directions(head, part)
        if not (words := rest.strip()):
            continue
        for way in ways:
            ports = {each.port for each in found if each.way == way}
            made = _parse_demand(words, way, {each.name for each in found}, ports)
            if len(ways) > 1 and way == "in":
                # The answers: from the receiver to the sender.
                made = replace(made, source=made.destination, destination=made.source)
            found.append(replace(made, way=way))
    if not found:
        raise UserError("--traffic: found no kind of traffic", hint="give a list such as: voice 20 calls, web 50")
    total = sum(each.count for each in found)
    if total > MAX_SOURCES:
        raise UserError(f"--traffic: found {total} sources, expected at most {MAX_SOURCES}")
    return found


def _split_directions(head: str, part: str) -> tuple[PolicyDirection, ...]:
    word = head.strip().lower()
    if word not in DIRECTION_WORDS:
        raise UserError(
            f'--traffic: found "{head.strip()}:" in "{part.strip()}", expected out:, in: or both:',
            hint="out: traffic leaves through the interface of the policy; in: traffic arrives there",
        )
    return DIRECTION_WORDS[word]


def _parse_demand(part: str, way: PolicyDirection, names: set[str], ports: set[int]) -> TrafficDemand:
    words = part.split()
    if words[0].isdigit() and len(words) > 1:
        words[0], words[1] = words[1], words[0]
    kind = _parse_kind(words[0], part)
    count, options = 1, dict[str, str]()
    rest = words[1:]
    while rest:
        word = rest.pop(0).lower()
        if word.isdigit():
            count = int(word)
        elif word in ("rate", "dscp", "port", "from", "to") and rest:
            options[word] = rest.pop(0)
            if word == "rate" and rest and rest[0].lower().endswith("b/s"):
                options[word] += f" {rest.pop(0)}"
        elif word not in _count_nouns(kind):
            raise UserError(f'--traffic: found "{word}" in "{part}", expected {_FORM}')
    if count < 1:
        raise UserError(f'--traffic: found count {count} in "{part}", expected at least 1')
    base = f"{kind.name}-{way}" if way else str(kind.name)
    name, number = base, 2
    while name in names:
        name, number = f"{base}-{number}", number + 1
    port = _parse_port(options.get("port"), part, kind.port)
    while port in ports and "port" not in options:
        port += 2
    if port in ports:
        raise UserError(
            f'--traffic: found port {port} in "{part}", in use by another kind; expected a different port for each kind'
        )
    dscp, rate_bps = _parse_dscp(options.get("dscp"), kind.dscp), _parse_rate(options.get("rate"), kind, part)
    source, destination = (_parse_address(options.get(word), part) for word in ("from", "to"))
    return TrafficDemand(name, kind, count, dscp, port, rate_bps, source, destination)


def _count_nouns(kind: TrafficKind) -> set[str]:
    """Return the nouns that may follow a count."""
    words = {kind.unit, "flows", "streams", "sources"}
    return words | {word.removesuffix("s") for word in words}


def _parse_kind(word: str, part: str) -> TrafficKind:
    name = word.lower()
    found = KINDS.get(name) or KINDS.get(name.removesuffix("s"))
    if found is not None:
        return found
    near = get_close_matches(name, KINDS, 1)
    known = ", ".join(each.name for each in CATALOGUE)
    hint = f"did you mean {near[0]}?" if near else ""
    raise UserError(f'--traffic: found "{word}" in "{part}", expected one of {known}', hint=hint)


def _parse_dscp(word: str | None, default: int) -> int:
    if word is None:
        return default
    try:
        number = int(word) if word.isdigit() else dscp_number(word)
    except QuantityError:
        number = None
    if not isinstance(number, int) or not 0 <= number <= 63:
        raise UserError(f'--traffic: found DSCP "{word}", expected 0 to 63, or one of {", ".join(DSCP_NUMBERS)}')
    return number


def _parse_port(word: str | None, part: str, default: int) -> int:
    if word is None:
        return default
    if not word.isdigit() or not 1 <= int(word) <= 65535:
        raise UserError(f'--traffic: found port "{word}" in "{part}", expected 1 to 65535')
    return int(word)


def _parse_address(word: str | None, part: str) -> IPv4Address | None:
    if word is None:
        return None
    try:
        address = IPv4Address(word)
    except ValueError:
        address = None
    if (
        address is None
        or address.is_multicast
        or address.is_reserved
        or address in TRIAL_NETWORK
        or int(address) >> 24 == 0
    ):
        raise UserError(
            f'--traffic: found address "{word}" in "{part}", expected an IPv4 address of a host, not in {TRIAL_NETWORK}'
        )
    return address


def _parse_rate(word: str | None, kind: TrafficKind, part: str) -> int | None:
    if word is None:
        return None
    if kind.codec is not None:
        raise UserError(f'--traffic: found a rate in "{part}", expected none: the codec sets the rate')
    try:
        return parse_rate_option(word)
    except QuantityError as error:
        raise UserError(f"--traffic: {error}", hint="give a rate such as 2m or 1.5 Mb/s") from None
