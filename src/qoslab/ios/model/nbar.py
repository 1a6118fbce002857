"""Protocols of `match protocol` that are identified by ports or IP protocol numbers.

Sources: the tables of well-known ports in Cisco's NBAR configuration guides for 12.4 and IOS-XE, and IANA's registries
of service names and protocol numbers. A router that inspects the payload also follows the control connection of ftp,
sip, rtsp or tftp to the ports that it opens. That is not modelled: traffic of a lab has no such payload.
"""

from __future__ import annotations

from qoslab.ios.model.port_names import TCP, UDP

Ports = tuple[tuple[int, tuple[int, ...]], ...]
"""Protocol numbers with their ports; one of the ports must be at either end."""


def _tcp_and_udp_ports(*ports: int) -> Ports:
    return ((TCP, ports), (UDP, ports))


def _tcp_ports(*ports: int) -> Ports:
    return ((TCP, ports),)


def _udp_ports(*ports: int) -> Ports:
    return ((UDP, ports),)


PROTOCOLS_BY_PORT: dict[str, Ports] = {
    "capwap-control": _udp_ports(5246),
    "capwap-data": _udp_ports(5247),
    "chargen": _tcp_and_udp_ports(19),
    "cifs": ((TCP, (139, 445)), (UDP, (137, 138))),
    "cisco-tna": _tcp_and_udp_ports(131),
    "citrix": ((TCP, (1494, 2598)), (UDP, (1604,))),
    "clearcase": _tcp_and_udp_ports(371),
    "cuseeme": ((TCP, (7648, 7649)), (UDP, (7648, 7649, 24032))),
    "daytime": _tcp_and_udp_ports(13),
    "dhcp": _udp_ports(67, 68),
    "dhcpv6-client": _tcp_and_udp_ports(546),
    "dhcpv6-server": _tcp_and_udp_ports(547),
    "discard": _tcp_and_udp_ports(9),
    "dns": _tcp_and_udp_ports(53),
    "echo": _tcp_and_udp_ports(7),
    "finger": _tcp_ports(79),
    "ftp": _tcp_ports(20, 21),
    "ftp-data": _tcp_ports(20),
    "gopher": _tcp_and_udp_ports(70),
    "h323": _tcp_and_udp_ports(1300, 1718, 1719, 1720, 11720),
    "hsrp": _tcp_and_udp_ports(1985),
    "imap": _tcp_and_udp_ports(143, 220),
    "irc": _tcp_and_udp_ports(194),
    "isakmp": _tcp_and_udp_ports(500),
    "iscsi": _tcp_ports(3260),
    "kerberos": _tcp_and_udp_ports(88, 749),
    "l2tp": _udp_ports(1701),
    "ldap": _tcp_and_udp_ports(389),
    "ldp": _tcp_and_udp_ports(646),
    "llmnr": _tcp_and_udp_ports(5355),
    "mdns": _udp_ports(5353),
    "mgcp": ((TCP, (2427, 2428, 2727)), (UDP, (2427, 2727))),
    "microsoft-ds": _tcp_and_udp_ports(445),
    "ms-rpc": _tcp_and_udp_ports(135),
    "ms-sql": _tcp_and_udp_ports(1433),
    "ms-sql-m": _tcp_and_udp_ports(1434),
    "ms-wbt": _tcp_ports(3389),
    "mysql": _tcp_and_udp_ports(3306),
    "netbios": _tcp_and_udp_ports(137, 138, 139),
    "netbios-dgm": _tcp_and_udp_ports(138),
    "netbios-ns": _tcp_and_udp_ports(137),
    "netbios-ssn": _tcp_and_udp_ports(139),
    "netshow": _tcp_and_udp_ports(1755),
    "nfs": _tcp_and_udp_ports(2049),
    "nntp": _tcp_and_udp_ports(119),
    "notes": _tcp_and_udp_ports(1352),
    "novadigm": _tcp_and_udp_ports(3460, 3461, 3462, 3463, 3464, 3465),
    "ntp": _tcp_and_udp_ports(123),
    "openvpn": _tcp_and_udp_ports(1194),
    "pcanywhere": ((TCP, (5631, 65301)), (UDP, (22, 5632))),
    "pop3": _tcp_and_udp_ports(110),
    "postgresql": _tcp_and_udp_ports(5432),
    "pptp": _tcp_ports(1723),
    "printer": _tcp_and_udp_ports(515),
    "radius": _udp_ports(1645, 1646, 1812, 1813),
    "rcmd": _tcp_ports(512, 513, 514),
    "ripng": _udp_ports(521),
    "rsvp": _udp_ports(1698, 1699),
    "rtmp": _tcp_ports(1935),
    "rtsp": _tcp_ports(554),
    "sap": _tcp_ports(3200, 3300, 3600),
    "secure-ftp": _tcp_ports(990),
    "secure-imap": _tcp_and_udp_ports(585, 993),
    "secure-irc": _tcp_and_udp_ports(994),
    "secure-ldap": _tcp_and_udp_ports(636),
    "secure-nntp": _tcp_and_udp_ports(563),
    "secure-pop3": _tcp_and_udp_ports(995),
    "secure-telnet": _tcp_ports(992),
    "sip": _tcp_and_udp_ports(5060),
    "sip-tls": _tcp_ports(5061),
    "skinny": _tcp_ports(2000, 2001, 2002),
    "snmp": _tcp_and_udp_ports(161, 162),
    "socks": _tcp_ports(1080),
    "sqlnet": _tcp_and_udp_ports(1521),
    "sqlserver": _tcp_ports(1433),
    "ssdp": _udp_ports(1900),
    "ssh": _tcp_ports(22),
    "ssl": _tcp_ports(443),
    "streamwork": _udp_ports(1558),
    "stun-nat": _tcp_and_udp_ports(3478),
    "sunrpc": _tcp_and_udp_ports(111),
    "submission": _tcp_and_udp_ports(587),
    "syslog": _udp_ports(514),
    "systat": _tcp_and_udp_ports(11),
    "tacacs": _tcp_and_udp_ports(49),
    "telnet": _tcp_ports(23),
    "teredo-ipv6-tunneled": _udp_ports(3544),
    "tftp": _udp_ports(69),
    "timbuktu": _tcp_and_udp_ports(407),
    "time": _tcp_and_udp_ports(37),
    "vdolive": _tcp_ports(7000),
    "vnc": _tcp_ports(5800, 5900, 5901),
    "xmpp-client": _tcp_and_udp_ports(5222),
    "xwindows": _tcp_ports(6000, 6001, 6002, 6003),
}

RTP_PORTS = (16384, 32767)
"""The UDP ports that Cisco's telephones and gateways use for voice."""
PROTOCOLS_BY_PORT_RANGE: dict[str, tuple[int, int]] = {"rtp": RTP_PORTS, "rtp audio": RTP_PORTS}
"""Ranges of UDP ports at either end. NBAR uses the even ports of observed calls and the payload type: here all ports
of the range are RTP audio."""
PROTOCOLS_BY_NUMBER: dict[str, tuple[int, ...]] = {
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

IPV6_ONLY_PROTOCOLS = ("dhcpv6-client", "dhcpv6-server", "ipv6-icmp", "ripng")

PROTOCOLS = ("bgp", "eigrp", "http", "icmp", "ip", "ipv6", "ospf", "rip", "secure-http", "smtp", "tcp", "udp")
"""Protocols that the data plane recognises without an access list."""
DECIDABLE_PROTOCOLS = (*PROTOCOLS_BY_PORT, *PROTOCOLS_BY_PORT_RANGE, *PROTOCOLS_BY_NUMBER)
"""Protocols that are matched by an access list in the data plane."""

PROTOCOL_LIST = "protocol "
"""Name prefix of access lists for protocols in the data plane; names of IOS access lists cannot begin so."""
MATCH_LIST = "match "
"""Name prefix of access lists for other `match` lines."""
