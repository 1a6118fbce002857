"""Protocols of `match protocol` that are identified by ports or IP protocol numbers.

Sources: the tables of well-known ports in Cisco's NBAR configuration guides for 12.4 and IOS-XE, and IANA's registries
of service names and protocol numbers. A router that inspects the payload also follows the control connection of ftp,
sip, rtsp or tftp to the ports that it opens. That is not modelled: traffic of a lab has no such payload.
"""

from __future__ import annotations

from qoslab.ios.model.port_names import TCP, UDP, name_table

Ports = tuple[tuple[int, tuple[int, ...]], ...]
"""Protocol numbers with their ports; one of the ports must be at either end."""


def _parse_ports(text: str) -> Ports:
    """Parse `tcp:139,445/udp:137,138`, or `tcp+udp:53` for the same ports of both."""
    parts = (part.split(":") for part in text.split("/"))
    return tuple(
        ({"tcp": TCP, "udp": UDP}[protocol], tuple(map(int, ports.split(","))))
        for protocols, ports in parts
        for protocol in protocols.split("+")
    )


PROTOCOLS_BY_PORT: dict[str, Ports] = name_table(
    """
    capwap-control=udp:5246 capwap-data=udp:5247 chargen=tcp+udp:19 cifs=tcp:139,445/udp:137,138 cisco-tna=tcp+udp:131
    citrix=tcp:1494,2598/udp:1604 clearcase=tcp+udp:371 cuseeme=tcp:7648,7649/udp:7648,7649,24032 daytime=tcp+udp:13
    dhcp=udp:67,68 dhcpv6-client=tcp+udp:546 dhcpv6-server=tcp+udp:547 discard=tcp+udp:9 dns=tcp+udp:53 echo=tcp+udp:7
    finger=tcp:79 ftp=tcp:20,21 ftp-data=tcp:20 gopher=tcp+udp:70 h323=tcp+udp:1300,1718,1719,1720,11720
    hsrp=tcp+udp:1985 imap=tcp+udp:143,220 irc=tcp+udp:194 isakmp=tcp+udp:500 iscsi=tcp:3260 kerberos=tcp+udp:88,749
    l2tp=udp:1701 ldap=tcp+udp:389 ldp=tcp+udp:646 llmnr=tcp+udp:5355 mdns=udp:5353
    mgcp=tcp:2427,2428,2727/udp:2427,2727 microsoft-ds=tcp+udp:445 ms-rpc=tcp+udp:135 ms-sql=tcp+udp:1433
    ms-sql-m=tcp+udp:1434 ms-wbt=tcp:3389 mysql=tcp+udp:3306 netbios=tcp+udp:137,138,139 netbios-dgm=tcp+udp:138
    netbios-ns=tcp+udp:137 netbios-ssn=tcp+udp:139 netshow=tcp+udp:1755 nfs=tcp+udp:2049 nntp=tcp+udp:119
    notes=tcp+udp:1352 novadigm=tcp+udp:3460,3461,3462,3463,3464,3465 ntp=tcp+udp:123 openvpn=tcp+udp:1194
    pcanywhere=tcp:5631,65301/udp:22,5632 pop3=tcp+udp:110 postgresql=tcp+udp:5432 pptp=tcp:1723 printer=tcp+udp:515
    radius=udp:1645,1646,1812,1813 rcmd=tcp:512,513,514 ripng=udp:521 rsvp=udp:1698,1699 rtmp=tcp:1935 rtsp=tcp:554
    sap=tcp:3200,3300,3600 secure-ftp=tcp:990 secure-imap=tcp+udp:585,993 secure-irc=tcp+udp:994
    secure-ldap=tcp+udp:636 secure-nntp=tcp+udp:563 secure-pop3=tcp+udp:995 secure-telnet=tcp:992 sip=tcp+udp:5060
    sip-tls=tcp:5061 skinny=tcp:2000,2001,2002 snmp=tcp+udp:161,162 socks=tcp:1080 sqlnet=tcp+udp:1521
    sqlserver=tcp:1433 ssdp=udp:1900 ssh=tcp:22 ssl=tcp:443 streamwork=udp:1558 stun-nat=tcp+udp:3478
    sunrpc=tcp+udp:111 submission=tcp+udp:587 syslog=udp:514 systat=tcp+udp:11 tacacs=tcp+udp:49 telnet=tcp:23
    teredo-ipv6-tunneled=udp:3544 tftp=udp:69 timbuktu=tcp+udp:407 time=tcp+udp:37 vdolive=tcp:7000
    vnc=tcp:5800,5900,5901 xmpp-client=tcp+udp:5222 xwindows=tcp:6000,6001,6002,6003
    """,
    _parse_ports,
)

RTP_PORTS = (16384, 32767)
"""The UDP ports that Cisco's telephones and gateways use for voice."""
PROTOCOLS_BY_PORT_RANGE: dict[str, tuple[int, int]] = {"rtp": RTP_PORTS, "rtp audio": RTP_PORTS}
"""Ranges of UDP ports at either end. NBAR uses the even ports of observed calls and the payload type: here all ports
of the range are RTP audio."""
PROTOCOLS_BY_NUMBER: dict[str, tuple[int, ...]] = name_table(
    "egp=8 gre=47 igmp=2 ipinip=4 ipsec=50,51 ipv6-icmp=58 pim=103 sctp=132 vrrp=112",
    lambda numbers: tuple(map(int, numbers.split(","))),
)
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
