"""Protocols of `match protocol` that are identified by ports or IP protocol numbers.

Sources: the tables of well-known ports in Cisco's NBAR configuration guides for 12.4 and IOS-XE, and IANA's registries
of service names and protocol numbers. A router that inspects the payload also follows the control connection of ftp,
sip, rtsp or tftp to the ports that it opens. That is not modelled: traffic of a lab has no such payload.
"""

from __future__ import annotations

from qoslab.ios.model.port_names import TCP, UDP

Ports = tuple[tuple[int, tuple[int, ...]], ...]
"""Protocol numbers with their ports; one of the ports must be at either end."""


def _both(*ports: int) -> Ports:
    return ((TCP, ports), (UDP, ports))


def _tcp(*ports: int) -> Ports:
    return ((TCP, ports),)


def _udp(*ports: int) -> Ports:
    return ((UDP, ports),)


BY_PORT: dict[str, Ports] = {
    "capwap-control": _udp(5246),
    "capwap-data": _udp(5247),
    "chargen": _both(19),
    "cifs": ((TCP, (139, 445)), (UDP, (137, 138))),
    "cisco-tna": _both(131),
    "citrix": ((TCP, (1494, 2598)), (UDP, (1604,))),
    "clearcase": _both(371),
    "cuseeme": ((TCP, (7648, 7649)), (UDP, (7648, 7649, 24032))),
    "daytime": _both(13),
    "dhcp": _udp(67, 68),
    "dhcpv6-client": _both(546),
    "dhcpv6-server": _both(547),
    "discard": _both(9),
    "dns": _both(53),
    "echo": _both(7),
    "finger": _tcp(79),
    "ftp": _tcp(20, 21),
    "ftp-data": _tcp(20),
    "gopher": _both(70),
    "h323": _both(1300, 1718, 1719, 1720, 11720),
    "hsrp": _both(1985),
    "imap": _both(143, 220),
    "irc": _both(194),
    "isakmp": _both(500),
    "iscsi": _tcp(3260),
    "kerberos": _both(88, 749),
    "l2tp": _udp(1701),
    "ldap": _both(389),
    "ldp": _both(646),
    "llmnr": _both(5355),
    "mdns": _udp(5353),
    "mgcp": ((TCP, (2427, 2428, 2727)), (UDP, (2427, 2727))),
    "microsoft-ds": _both(445),
    "ms-rpc": _both(135),
    "ms-sql": _both(1433),
    "ms-sql-m": _both(1434),
    "ms-wbt": _tcp(3389),
    "mysql": _both(3306),
    "netbios": _both(137, 138, 139),
    "netbios-dgm": _both(138),
    "netbios-ns": _both(137),
    "netbios-ssn": _both(139),
    "netshow": _both(1755),
    "nfs": _both(2049),
    "nntp": _both(119),
    "notes": _both(1352),
    "novadigm": _both(3460, 3461, 3462, 3463, 3464, 3465),
    "ntp": _both(123),
    "openvpn": _both(1194),
    "pcanywhere": ((TCP, (5631, 65301)), (UDP, (22, 5632))),
    "pop3": _both(110),
    "postgresql": _both(5432),
    "pptp": _tcp(1723),
    "printer": _both(515),
    "radius": _udp(1645, 1646, 1812, 1813),
    "rcmd": _tcp(512, 513, 514),
    "ripng": _udp(521),
    "rsvp": _udp(1698, 1699),
    "rtmp": _tcp(1935),
    "rtsp": _tcp(554),
    "sap": _tcp(3200, 3300, 3600),
    "secure-ftp": _tcp(990),
    "secure-imap": _both(585, 993),
    "secure-irc": _both(994),
    "secure-ldap": _both(636),
    "secure-nntp": _both(563),
    "secure-pop3": _both(995),
    "secure-telnet": _tcp(992),
    "sip": _both(5060),
    "sip-tls": _tcp(5061),
    "skinny": _tcp(2000, 2001, 2002),
    "snmp": _both(161, 162),
    "socks": _tcp(1080),
    "sqlnet": _both(1521),
    "sqlserver": _tcp(1433),
    "ssdp": _udp(1900),
    "ssh": _tcp(22),
    "ssl": _tcp(443),
    "streamwork": _udp(1558),
    "stun-nat": _both(3478),
    "sunrpc": _both(111),
    "submission": _both(587),
    "syslog": _udp(514),
    "systat": _both(11),
    "tacacs": _both(49),
    "telnet": _tcp(23),
    "teredo-ipv6-tunneled": _udp(3544),
    "tftp": _udp(69),
    "timbuktu": _both(407),
    "time": _both(37),
    "vdolive": _tcp(7000),
    "vnc": _tcp(5800, 5900, 5901),
    "xmpp-client": _both(5222),
    "xwindows": _tcp(6000, 6001, 6002, 6003),
}

RTP_PORTS = (16384, 32767)
"""The UDP ports that Cisco's telephones and gateways use for voice."""
BY_PORT_RANGE: dict[str, tuple[int, int]] = {"rtp": RTP_PORTS, "rtp audio": RTP_PORTS}
"""Ranges of UDP ports at either end. NBAR uses the even ports of observed calls and the payload type: here all ports
of the range are RTP audio."""
BY_NUMBER: dict[str, tuple[int, ...]] = {
    "egp": (8,),
    "gre": (47,),
    "igmp": (2,),
    "ipinip": (4,),
    "ipsec": (50, 51),
    "ipv6-icmp": (58,),
    "pim": (103,),
    "sctp": (132,),
    "vrrp": (112,),
}
"""Numbers of IP protocols, except those that the data plane recognises itself."""

IPV6_ONLY = ("dhcpv6-client", "dhcpv6-server", "ipv6-icmp", "ripng")

PROTOCOLS = ("bgp", "eigrp", "http", "icmp", "ip", "ipv6", "ospf", "rip", "secure-http", "smtp", "tcp", "udp")
"""Protocols that the data plane recognises without an access list."""
DECIDED = (*BY_PORT, *BY_PORT_RANGE, *BY_NUMBER)
"""Protocols that are matched by an access list in the data plane."""

PROTOCOL_LIST = "protocol "
"""Name prefix of access lists for protocols in the data plane; names of IOS access lists cannot begin so."""
MATCH_LIST = "match "
"""Name prefix of access lists for other `match` lines."""
