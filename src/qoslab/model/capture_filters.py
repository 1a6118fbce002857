"""Text of capture filters (pcap-filter(7)): limited, and without names that libpcap would resolve over the network."""

from __future__ import annotations

import ipaddress
import re

MAX_CHARACTERS = 2048
MAX_TERMS = 64
"""Maximum number of tests combined by `and`, `or` and `not`: compilation takes at least the square of their number."""

_KEYWORDS = """
dst src host net mask port portrange less greater proto protochain broadcast multicast inbound outbound len and or
not ether link ppp slip arp rarp ip ip6 sctp tcp udp icmp icmp6 igmp igrp pim vrrp carp ah esp atalk aarp decnet lat
sca moprc mopdl iso esis es-is isis is-is clnp stp ipx netbeui llc loopback vlan mpls pppoed pppoes geneve icmptype
icmpcode icmp-echoreply icmp-unreach icmp-sourcequench icmp-redirect icmp-echo icmp-routeradvert icmp-routersolicit
icmp-timxceed icmp-paramprob icmp-tstamp icmp-tstampreply icmp-ireq icmp-ireqreply icmp-maskreq icmp-maskreply
icmp6type icmp6code icmp6-destinationrunreach icmp6-packettoobig icmp6-timeexceeded icmp6-parameterproblem
icmp6-echo icmp6-echoreply icmp6-multicastlistenerquery icmp6-multicastlistenerreportv1 icmp6-multicastlistenerdone
icmp6-routersolicit icmp6-routeradvert icmp6-neighborsolicit icmp6-neighboradvert icmp6-redirect tcpflags tcp-fin
tcp-syn tcp-rst tcp-push tcp-ack tcp-urg tcp-ece tcp-cwr
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""Words of the language that are not a host name. `gateway` is not included: it is only followed by a host name."""
_WORD = re.compile(r"\\?[\w.:/$-]+")
_BEFORE_SERVICE_NAME = frozenset({"port", "portrange"})
"""Words before the name of a service, which is resolved from a file of this machine (services(5))."""
_CONNECTIVES = frozenset({"and", "or", "not"})
_SERVICE = re.compile(r"[a-z][a-z0-9-]{0,31}")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+(-\d+)?")
_IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){1,3}(/\d{1,2})?|\d{1,3}/\d{1,2}")
_MAC = re.compile(r"[0-9a-fA-F]{1,2}([:.-][0-9a-fA-F]{1,2}){5}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}")


def filter_text_problem(text: str) -> tuple[str, str]:
    """Return the found and expected part of a filter, and a hint; found and expected are empty if its words are valid.

    `qoslab.capture.filters` checks whether libpcap accepts it.
    """
    if len(text) > MAX_CHARACTERS:
        return f"found a filter of {len(text)} characters, expected at most {MAX_CHARACTERS}", ""
    if "\0" in text:
        return "found a filter with a null character, expected text", ""
    words = _WORD.findall(text)
    terms = 1 + sum(word in _CONNECTIVES for word in words) + text.count("&&") + text.count("||") + text.count("!")
    if terms > MAX_TERMS:
        return f"found a filter of {terms} terms, expected at most {MAX_TERMS}", "portrange A-B is one term"
    before = earlier = ""
    for word in words:
        if not _is_known_word(word, before):
            return (
                f'found "{word[:60]}" in a filter, expected a word of pcap-filter(7), an address or a number',
                "host names are not resolved: write addresses",
            )
        if (most := _greatest_number(word, before, earlier)) is not None:
            return f'found "{before} {word[:60]}" in a filter, expected numbers up to {most}', ""
        earlier, before = before, word
    return "", ""


def _greatest_number(word: str, before: str, earlier: str) -> int | None:
    """Return the maximum number after `port`, `portrange` and `proto` if a word exceeds it; None if it does not.

    Some versions of libpcap accept larger numbers, with which the filter matches nothing.
    """
    if before in _BEFORE_SERVICE_NAME:
        most = 65535
    elif before == "proto":
        most = 65535 if earlier in ("ether", "link") else 255
    else:
        return None
    numbers = re.findall(r"\d+", word) if re.fullmatch(r"\d+(?:-\d+)?", word) else []
    return most if any(int(each) > most for each in numbers) else None


def _is_known_word(word: str, before: str) -> bool:
    plain = word.removeprefix("\\")
    if plain in KEYWORDS or _NUMBER.fullmatch(plain) or _IPV4.fullmatch(plain) or _MAC.fullmatch(plain):
        return True
    if before in _BEFORE_SERVICE_NAME and _SERVICE.fullmatch(plain):
        return True
    # `tcp[0:2]` is read as `0:2`, as are numbers with a sign.
    if re.fullmatch(r"-?[\d:-]+", plain) and "::" not in plain:
        return True
    try:
        ipaddress.IPv6Interface(plain)
    except ValueError:
        return False
    return True
