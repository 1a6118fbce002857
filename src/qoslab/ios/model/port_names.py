"""Names of IP protocols, TCP and UDP ports, and ICMP messages in IOS access lists.

Numbers: IANA's registries of protocol numbers, service names and ICMP parameters; spelling: IOS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def name_table(text: str, parse: Callable[[str], T]) -> dict[str, T]:
    """Return the values of `name=value` pairs by name."""
    return {name: parse(value) for name, _, value in (pair.partition("=") for pair in text.split())}


def _optional_number(text: str) -> int | None:
    return int(text) if text else None


def _message_type(text: str) -> tuple[int, int | None]:
    """Parse `TYPE` or `TYPE.CODE`."""
    kind, _, code = text.partition(".")
    return int(kind), _optional_number(code)


PROTOCOLS: dict[str, int | None] = name_table(
    "ahp=51 eigrp=88 esp=50 gre=47 icmp=1 igmp=2 ip= ipinip=4 nos=94 ospf=89 pcp=108 pim=103 tcp=6 udp=17",
    _optional_number,
)
"""IP protocol numbers by keyword; None for every protocol."""
IPV6_PROTOCOLS: dict[str, int | None] = name_table(
    "ahp=51 esp=50 icmp=58 ipv6= pcp=108 sctp=132 tcp=6 udp=17", _optional_number
)
"""Protocol names in IPv6 access lists."""
PROTOCOL_NAMES = {number: name for name, number in PROTOCOLS.items()}
_IPV6_PROTOCOL_NAMES = {number: name for name, number in IPV6_PROTOCOLS.items()}

TCP = 6
UDP = 17
ICMP = 1
ICMPV6 = 58

TCP_PORTS: dict[str, int] = name_table(
    """
    bgp=179 chargen=19 cmd=514 daytime=13 discard=9 domain=53 echo=7 exec=512 finger=79 ftp=21 ftp-data=20 gopher=70
    hostname=101 ident=113 irc=194 klogin=543 kshell=544 login=513 lpd=515 nntp=119 pim-auto-rp=496 pop2=109 pop3=110
    smtp=25 sunrpc=111 tacacs=49 talk=517 telnet=23 time=37 uucp=540 whois=43 www=80
    """,
    int,
)

UDP_PORTS: dict[str, int] = name_table(
    """
    biff=512 bootpc=68 bootps=67 discard=9 dnsix=195 domain=53 echo=7 isakmp=500 mobile-ip=434 nameserver=42
    netbios-dgm=138 netbios-ns=137 netbios-ss=139 non500-isakmp=4500 ntp=123 pim-auto-rp=496 rip=520 snmp=161
    snmptrap=162 sunrpc=111 syslog=514 tacacs=49 talk=517 tftp=69 time=37 who=513 xdmcp=177
    """,
    int,
)

ICMP_MESSAGES: dict[str, tuple[int, int | None]] = name_table(
    """
    administratively-prohibited=3.13 alternate-address=6 echo=8 echo-reply=0 host-isolated=3.8 host-redirect=5.1
    host-unknown=3.7 host-unreachable=3.1 information-reply=16 information-request=15 mask-reply=18 mask-request=17
    net-redirect=5.0 net-unreachable=3.0 network-unknown=3.6 packet-too-big=3.4 parameter-problem=12
    port-unreachable=3.3 protocol-unreachable=3.2 reassembly-timeout=11.1 redirect=5 router-advertisement=9
    router-solicitation=10 source-quench=4 source-route-failed=3.5 time-exceeded=11 timestamp-reply=14
    timestamp-request=13 traceroute=30 ttl-exceeded=11.0 unreachable=3
    """,
    _message_type,
)
"""ICMP type, and code if the name implies one."""
ICMPV6_MESSAGES: dict[str, tuple[int, int | None]] = name_table(
    """
    beyond-scope=1.2 destination-unreachable=1.3 echo-reply=129 echo-request=128 header=4.0 hop-limit=3.0 mld-query=130
    mld-reduction=132 mld-report=131 nd-na=136 nd-ns=135 next-header=4.1 no-admin=1.1 no-route=1.0 packet-too-big=2
    parameter-option=4.2 parameter-problem=4 port-unreachable=1.4 reassembly-timeout=3.1 redirect=137
    renum-command=138.0 renum-result=138.1 renum-seq-number=138.255 router-advertisement=134 router-renumbering=138
    router-solicitation=133 time-exceeded=3 unreachable=1
    """,
    _message_type,
)
"""ICMPv6 type, and code if the name implies one (RFC 4443, 4861, 2710, 2894)."""

_TCP_NAMES = {number: name for name, number in TCP_PORTS.items()}
_UDP_NAMES = {number: name for name, number in UDP_PORTS.items()}
_ICMP_NAMES = {message: name for name, message in ICMP_MESSAGES.items()}
_ICMPV6_NAMES = {message: name for name, message in ICMPV6_MESSAGES.items()}


def port_text(protocol: int | None, port: int) -> str:
    """Return the name that IOS prints for a port of TCP or UDP, or its number."""
    names = _TCP_NAMES if protocol == TCP else _UDP_NAMES
    return names.get(port, str(port))


def icmp_text(kind: int, code: int | None) -> str:
    """Return the name that IOS prints for an ICMP message, or its numbers."""
    return _ICMP_NAMES.get((kind, code)) or _message_numbers(kind, code)


def icmpv6_text(kind: int, code: int | None) -> str:
    """Return the name that IOS prints for an ICMPv6 message, or its numbers."""
    return _ICMPV6_NAMES.get((kind, code)) or _message_numbers(kind, code)


def _message_numbers(kind: int, code: int | None) -> str:
    return str(kind) if code is None else f"{kind} {code}"


def protocol_text(protocol: int | None) -> str:
    """Return the name that IOS prints for a protocol, or its number."""
    return PROTOCOL_NAMES.get(protocol) or str(protocol)


def ipv6_protocol_text(protocol: int | None) -> str:
    """Return the name that an IPv6 access list prints for a protocol, or its number."""
    return _IPV6_PROTOCOL_NAMES.get(protocol) or str(protocol)
