"""Commands that IOS has, that decide what is forwarded and how, and that are not modelled: refused with the reason.

Rows as in `ios.without_effect`; the lines below one that leads a block (`>`) are refused with it.
"""

from __future__ import annotations

from dataclasses import dataclass

BY_CONTENT = (
    "aol-messenger|bittorrent|bridge|cifs|cisco-phone|citrix|clns|compressedtcp|custom-01|custom-02|custom-03"
    "|directconnect|edonkey|exchange|fasttrack|gnutella|h323|ipx|kazaa2|mapi|ms-lync|msn-messenger|napster|netflix"
    "|netshow|novadigm|pad|pcanywhere|rcmd|rtcp|rtp|skype|sqlnet|streamwork|sunrpc|telepresence-media|vdolive|vofr"
    "|webex-meeting|winmx|yahoo-messenger|youtube"
)
"""Protocols that NBAR tells by what packets hold, or by what connections before them held."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Commands that are refused for one reason."""

    reason: str
    rows: str
    mode: str = "config"
    requires: str = ""
    """`router` or `switch`; empty for both."""

    @property
    def syntaxes(self) -> list[str]:
        """The syntax of each row, without marks."""
        return [row.strip().lstrip(">") for row in self.rows.strip().splitlines()]


REFUSED = (
    Refused(
        "routes are static, no routing protocol runs",
        """
        >router (ospf|eigrp|bgp|rip|isis|odr|iso-igrp|mobile|lisp) [<rest:line>]
        >route-map <rest:line>
        ip (prefix-list|as-path|community-list|extcommunity-list) [<rest:line>]
        ip (default-network|multicast-routing|pim|mroute|msdp) [<rest:line>]
        ip (igmp|rsvp|mobile|sap|summer) [<rest:line>]
        >ipv6 router <rest:line>
        """,
    ),
    Refused(
        "no routing protocol runs",
        """
        ip (ospf|eigrp|rip|router|pim|igmp|summary-address|hello-interval|hold-time|bandwidth-percent) <rest:line>
        ip (authentication|split-horizon|rsvp|rgmp|multicast|mrm) [<rest:line>]
        isis <rest:line>
        ipv6 (ospf|rip|eigrp) <rest:line>
        """,
        mode="interface",
    ),
    Refused("addresses are not translated", "ip nat <rest:line>"),
    Refused("addresses are not translated", "ip nat <rest:line>", mode="interface"),
    Refused("there is one routing table", ">ip vrf <rest:line>\n>vrf definition <rest:line>"),
    Refused("there is one routing table", "(ip vrf|vrf) forwarding <rest:line>", mode="interface"),
    Refused("packets are routed by their destination only", "ip local policy <rest:line>"),
    Refused("packets are routed by their destination only", "ip policy <rest:line>", mode="interface"),
    Refused(
        "packets are not encrypted",
        """
        >crypto (isakmp|ipsec|map|dynamic-map|gdoi|ikev2|keyring|engine|ctcp|call|logging|mib) <rest:line>
        """,
    ),
    Refused("packets are not encrypted", "crypto (map|ipsec|engine) <rest:line>", mode="interface"),
    Refused("packets carry no labels", "(mpls|tag-switching) <rest:line>\n>(l2tp-class|pseudowire-class) <rest:line>"),
    Refused("packets carry no labels", "(mpls|tag-switching) <rest:line>\n>xconnect <rest:line>", mode="interface"),
    Refused(
        "packets are not inspected beyond their headers",
        """
        ip (inspect|urlfilter|trigger-authentication) <rest:line>
        ip nbar (custom|port-map|pdlm|resources|attribute-map|attribute-set|http-services) <rest:line>
        >(zone|zone-pair) security <rest:line>
        >parameter-map type <rest:line>
        >class-map type <rest:line>
        >policy-map type <rest:line>
        """,
        requires="router",
    ),
    Refused(
        "packets are not inspected beyond their headers",
        "ip (inspect|verify|ips|admission|auth-proxy) <rest:line>\nzone-member security <rest:line>",
        mode="interface",
    ),
    Refused(
        "packets are not inspected beyond their headers",
        f"""
        match [not] protocol ({BY_CONTENT}) [<rest:line>]
        match [not] protocol http (url|host|mime|referer|from|location|server|user-agent) <rest:line>
        match [not] ip rtp <rest:line>
        """,
        mode="class-map",
        requires="router",
    ),
    Refused(
        "segment sizes that TCP agrees on are not rewritten",
        "ip tcp adjust-mss <rest:line>",
        mode="interface",
        requires="switch",
    ),
    Refused(
        "every line takes packets of up to 1500 bytes",
        "(mtu|ip mtu) <rest:line>",
        mode="interface",
        requires="switch",
    ),
    Refused(
        "packets are not filtered: access lists classify",
        "ip access-group <rest:line>",
        mode="interface",
        requires="switch",
    ),
    Refused("the marks of packets are not mapped by tables", ">table-map <rest:line>"),
    Refused(
        "frames are not bridged by a router",
        "bridge <rest:line>\n>bridge-domain <rest:line>",
        requires="router",
    ),
    Refused("frames are not bridged by a router", "bridge-group <rest:line>", mode="interface", requires="router"),
    Refused("no gateway stands in for another", "(standby|vrrp|glbp) <rest:line>", mode="interface"),
    Refused("links are not bundled", "channel-group <rest:line>\nppp multilink [<rest:line>]", mode="interface"),
    Refused(
        "no interface of this kind is modelled",
        ">interface <name:other-interface>\n>controller <rest:line>",
    ),
    Refused(
        "an address is configured, not learned or borrowed",
        "ip address (dhcp|negotiated|pool) [<rest:line>]\nip unnumbered <rest:line>",
        mode="interface",
    ),
    Refused(
        "frame relay is not modelled",
        ">map-class frame-relay <rest:line>\nframe-relay <rest:line>",
        requires="router",
    ),
    Refused(
        "frame relay is not modelled",
        """
        encapsulation frame-relay [<rest:line>]
        >frame-relay interface-dlci <rest:line>
        frame-relay <rest:line>
        """,
        mode="interface",
        requires="router",
    ),
    Refused("a circuit is configured where it is", ">vc-class atm <rest:line>", requires="router"),
    Refused(
        "a port has one circuit, which is entered as `pvc VPI/VCI`",
        ">(vc|pvc-in-range|range) <rest:line>\npvc <name:word> <circuit:circuit>",
        mode="interface",
        requires="router",
    ),
    Refused(
        "the line itself and its signalling are not modelled", "atm <rest:line>", mode="interface", requires="router"
    ),
    Refused(
        "circuits have a constant rate, or a peak and a sustainable one: `cbr`, `ubr`, `vbr-nrt`",
        "(abr|vbr-rt) <rest:line>",
        mode="atm-vc",
        requires="router",
    ),
    Refused(
        "the circuit leads to one neighbour, and nothing tests whether it is up",
        "(oam-pvc|oam|inarp|broadcast|ilmi|protocol ip) [<rest:line>]",
        mode="atm-vc",
        requires="router",
    ),
    Refused(
        "no session is set up: the link of an experiment has PPP by its framing, and the interface its address",
        "(pppoe-client|pppoe|dialer|protocol ppp|protocol pppoe|ppp) [<rest:line>]",
        mode="atm-vc",
        requires="router",
    ),
    Refused(
        "DSL is not modelled: the line has its rate from the link",
        "dsl <rest:line>",
        mode="interface",
        requires="router",
    ),
    Refused(
        "no session is set up: the link of an experiment has PPPoE by its framing, and the interface its address",
        ">(pppoe|pppoe-client) <rest:line>",
        mode="interface",
        requires="router",
    ),
    Refused(
        "dial-up and tunnels are not modelled",
        """
        (dialer|dialer-group|isdn|tunnel|keepalive-tunnel|peer|vpdn) <rest:line>
        ip nhrp <rest:line>
        qos pre-classify
        """,
        mode="interface",
        requires="router",
    ),
    Refused(
        "headers and payloads are not compressed",
        "(compress|ip rtp header-compression|ip tcp header-compression) [<rest:line>]",
        mode="interface",
        requires="router",
    ),
    Refused(
        "early drops and priority for RTP belong into a policy-map here",
        "(random-detect|ip rtp priority) [<rest:line>]",
        mode="interface",
        requires="router",
    ),
    Refused(
        "a macro that writes a policy: enter what it would write",
        "auto (qos|discovery) [<rest:line>]",
        mode="interface",
        requires="router",
    ),
    Refused(
        "policers meter bytes, not packets",
        "police rate <packets:1-2000000> pps [<rest:line>]",
        mode="policy-class",
        requires="router",
    ),
    Refused(
        "the queues of distributed interface processors are not modelled: queue-limit is there",
        "fair-queue (queue-limit|individual-limit) <rest:line>",
        mode="policy-class",
        requires="router",
    ),
    Refused(
        "packets have no discard class, and cells and frames no bit for what may be dropped first",
        """
        random-detect (discard-class|discard-class-based|atm-clp-based|clp|fr-de) [<rest:line>]
        random-detect aggregate [<rest:line>]
        """,
        mode="policy-class",
        requires="router",
    ),
    Refused(
        "a frame's headers are neither compressed nor suppressed",
        "compression header ip [<rest:line>]",
        mode="policy-class",
        requires="router",
    ),
    Refused(
        "no switch is modelled inside a router",
        "(switchport|vlan-id) [<rest:line>]",
        mode="interface",
        requires="router",
    ),
    Refused(
        "operations of IPv6 have the flow label that the kernel chooses",
        "flow-label <rest:line>",
        mode="sla-icmp-echo",
        requires="router",
    ),
    Refused(
        "neighbours are found by ARP alone",
        "arp <rest:line>\nip arp inspection <rest:line>",
    ),
    Refused(
        "a packet that goes out as it came in is taken",
        """
        (storm-control|ip arp inspection|ip verify) <rest:line>
        switchport (port-security|block|protected) [<rest:line>]
        """,
        mode="interface",
        requires="switch",
    ),
    Refused(
        "every VLAN goes over a trunk, and phones have none of their own",
        "switchport (trunk (allowed|pruning)|voice) <rest:line>\nauto qos (trust|video|classify) [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
    Refused(
        "this switch classifies IPv4 only, and routes no IPv6 here",
        ">ipv6 access-list <rest:line>\nipv6 (unicast-routing|route) [<rest:line>]",
        requires="switch",
    ),
    Refused("this switch classifies IPv4 only", "match protocol ipv6", mode="class-map", requires="switch"),
    Refused("no port is closed to a station", "dot1x <rest:line>"),
    Refused(
        "no port is closed to a station",
        "(dot1x|authentication|mab) [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
)
