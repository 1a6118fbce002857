"""IOS commands that affect forwarding and are not modelled: refused with the reason.

Rows as in `ios.inert_commands`; the lines of a block (`>`) are refused with its first line.
"""

from __future__ import annotations

from dataclasses import dataclass

NBAR = "packets are not inspected beyond their headers: NBAR is not modelled"
RESERVED = "RSVP is not modelled: no bandwidth is reserved by signalling"
LABELS = "packets carry no labels"
NO_DROP_BIT = "packets have no discard class, and cells and frames no discard-eligible bit"
NO_SWITCH = "switch modules of routers are not modelled"
TABLES = "tables that map marks are not supported"
TUNNELS = "dial-up and tunnels are not modelled"
ONE_TAG = "a frame has at most one VLAN tag (802.1Q)"
NO_GROUP_TAG = "frames carry no security group tag"
RANGES = "named ranges are not supported: enter `interface range` with the interfaces"
SLA_KINDS = "only icmp-echo, icmp-jitter, udp-echo and udp-jitter are modelled"


@dataclass(frozen=True, slots=True)
class RefusedCommands:
    """Commands that are refused for the same reason."""

    reason: str
    rows: str
    mode: str = "config"
    requires: str = ""
    """`router`, `switch`, or the generation of a router's software; empty for all."""

    @property
    def syntaxes(self) -> list[str]:
        """The syntax of each row, without marks."""
        return [row.strip().lstrip(">") for row in self.rows.strip().splitlines()]


REFUSED = (
    RefusedCommands(
        "only static routes are supported: no routing protocol runs",
        """
        >router (ospf|eigrp|bgp|rip|isis|odr|iso-igrp|mobile|lisp) [<rest:line>]
        >route-map <rest:line>
        ip (prefix-list|as-path|community-list|extcommunity-list) [<rest:line>]
        ip (default-network|multicast-routing|pim|mroute|msdp) [<rest:line>]
        ip (igmp|mobile|sap|summer) [<rest:line>]
        >ipv6 router <rest:line>
        ipv6 (prefix-list|multicast-routing|pim|mld) [<rest:line>]
        """,
    ),
    RefusedCommands(
        "no routing protocol runs",
        """
        ip (ospf|eigrp|rip|router|pim|igmp|summary-address|hello-interval|hold-time|bandwidth-percent) <rest:line>
        ip (authentication|split-horizon|rgmp|multicast|mrm) [<rest:line>]
        ip (cgmp|dvmrp|pgm|urd|mobile|proxy-mobile) [<rest:line>]
        (isis|lisp|ospfv3) <rest:line>
        ipv6 (ospf|rip|eigrp|pim|mld) <rest:line>
        """,
        mode="interface",
    ),
    RefusedCommands("addresses are not translated", "ip nat <rest:line>"),
    RefusedCommands("addresses are not translated", "ip nat <rest:line>\nnat64 <rest:line>", mode="interface"),
    RefusedCommands(
        "only IP is routed",
        """
        (appletalk|clns|decnet|dlsw|ipx|netbios|source-bridge|x25|vines|xns|apollo|smrp|tarp) <rest:line>
        (bstun|stun|sdllc|qllc|rsrb|fras|lnm|ncia|locaddr-priority-list|sap-priority-list|sna|dspu|alps) [<rest:line>]
        (lat|tn3270|translate|nls|xot|mop) [<rest:line>]
        """,
        requires="router",
    ),
    RefusedCommands(
        "only IP is routed",
        """
        (appletalk|clns|decnet|dlsw|ipx|netbios|source-bridge|vines|llc2|lapb|x25|xns|apollo|smrp|tarp) <rest:line>
        (bstun|stun|sdllc|sdlc|qllc|fras|lnm|ncia|locaddr-priority|sap-priority|sna|dspu|alps|nls|lat) [<rest:line>]
        """,
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        NO_GROUP_TAG,
        ">ip access-list role-based <rest:line>\ncts role-based <rest:line>",
        requires="router",
    ),
    RefusedCommands(NO_GROUP_TAG, ">cts manual\ncts role-based <rest:line>", mode="interface", requires="router"),
    RefusedCommands(
        "ports do not ask for a login",
        "(authentication|eapol) <rest:line>",
        mode="interface",
        requires="router",
    ),
    RefusedCommands("packets are routed by destination only", "ip load-sharing per-packet", mode="interface"),
    RefusedCommands("there is one routing table", "vrf receive <rest:line>", mode="interface"),
    RefusedCommands(
        ONE_TAG, "dot1q tunneling <rest:line>\nvlan-range <rest:line>", mode="interface", requires="router"
    ),
    RefusedCommands("packets are routed by destination only", "ip local policy <rest:line>"),
    RefusedCommands("there is one routing table", "ip route vrf <rest:line>"),
    RefusedCommands("addresses are not learned", "ip route <prefix:address> <mask:mask> dhcp [<rest:line>]"),
    RefusedCommands("packets are routed by destination only", "ip (policy|wccp) <rest:line>", mode="interface"),
    RefusedCommands("there is one routing table", "ip vrf receive <rest:line>", mode="interface"),
    RefusedCommands(
        "backup lines are not supported: packets follow the routes",
        "(backup|transmit-interface) <rest:line>",
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        "packets are not encrypted",
        """
        >crypto (isakmp|ipsec|map|dynamic-map|gdoi|ikev2|keyring|engine|ctcp|call|logging|mib) <rest:line>
        """,
    ),
    RefusedCommands(
        "packets are not encrypted",
        "crypto (map|ipsec|engine) <rest:line>\n(macsec|mka) [<rest:line>]",
        mode="interface",
    ),
    RefusedCommands(
        "configure RTP priority in a policy-map: `priority` in a class with `match ip rtp`",
        "ip rtp priority <rest:line>",
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        "a port has one circuit, with the queues of its policy-map",
        """
        (queue-depth|random-detect|vc-hold-queue|class-vc|class-range|bump|protect) [<rest:line>]
        (precedence|dscp|ip rtp priority) <rest:line>
        """,
        mode="atm-vc",
        requires="router",
    ),
    RefusedCommands(
        "a port has one circuit and no bundles", ">bundle <name:word>", mode="interface", requires="router"
    ),
    RefusedCommands(
        "random-detect without a policy-map belongs to the port: enter it on the main interface",
        "random-detect [<rest:line>]",
        mode="subinterface",
        requires="router",
    ),
    RefusedCommands(LABELS, "(mpls|tag-switching) <rest:line>\n>(l2tp-class|pseudowire-class) <rest:line>"),
    RefusedCommands(LABELS, "(mpls|tag-switching) <rest:line>\n>xconnect <rest:line>", mode="interface"),
    RefusedCommands(
        "packets are not inspected beyond their headers",
        """
        (ip|ipv6) inspect <rest:line>
        ip (urlfilter|trigger-authentication) <rest:line>
        >(zone|zone-pair) security <rest:line>
        >parameter-map type <rest:line>
        """,
        requires="router",
    ),
    RefusedCommands(
        "packets are not inspected beyond their headers",
        """
        ip (inspect|verify|ips|admission|auth-proxy|security) <rest:line>
        ipv6 (inspect|verify) <rest:line>
        zone-member security <rest:line>
        (utd|umbrella|waas) <rest:line>
        """,
        mode="interface",
    ),
    RefusedCommands(
        NBAR, "match [not] protocol (rtp|http|attribute) [<rest:line>]", mode="class-map", requires="switch"
    ),
    RefusedCommands(
        "`policy-map type queueing` belongs to other switches: enter queueing actions in `policy-map NAME`",
        ">(policy-map|class-map) type (queueing|qos) <rest:line>",
    ),
    RefusedCommands(
        "packets are not inspected beyond their headers",
        ">policy-map type (inspect|packet) <rest:line>\n>class-map type (inspect|packet) <rest:line>",
        requires="switch",
    ),
    RefusedCommands(
        "marks are DSCP, precedence, CoS and the QoS group: TOS bits other than the precedence are matched as a DSCP",
        "match [not] [ip] tos <rest:line>",
        mode="class-map",
        requires="router",
    ),
    RefusedCommands(
        "IPv6 marks have no separate command: `match dscp` or `match precedence` in a class with `match protocol ipv6`",
        "match [not] ipv6 (dscp|precedence) <rest:line>",
        mode="class-map",
        requires="router",
    ),
    RefusedCommands(
        TABLES,
        """
        set [ip] dscp (cos|qos-group|table|exp) [<rest:line>]
        set [ip] precedence (cos|qos-group|table|exp) [<rest:line>]
        set cos (dscp|precedence|cos-inner|table) [<rest:line>]
        set qos-group (dscp|precedence|atm-clp|cos|mpls) [<rest:line>]
        """,
        mode="policy-class",
        requires="switch",
    ),
    RefusedCommands(NO_DROP_BIT, "set discard-class [<rest:line>]", mode="policy-class", requires="switch"),
    RefusedCommands(ONE_TAG, "set vlan <rest:line>", mode="policy-class", requires="switch"),
    RefusedCommands(
        "marks are DSCP and precedence: the other TOS bits are set as a DSCP",
        "set ip tos <rest:line>",
        mode="policy-class",
        requires="switch",
    ),
    RefusedCommands(
        "policy-map types are not supported: enter actions in `policy-map NAME`",
        """
        >policy-map type <kind:word> <rest:line>
        >class-map type (control|traffic|port-filter|queue-threshold|logging|stack|access-control) <rest:line>
        """,
        requires="switch",
    ),
    RefusedCommands(
        "only QoS policy-maps are modelled, which have no type: `service-policy input NAME`",
        "service-policy (type|control|history) [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "macros are not expanded: enter the lines of the policy", "auto qos [<rest:line>]", requires="switch"
    ),
    RefusedCommands(LABELS, "match [not] mpls experimental <rest:line>", mode="class-map", requires="switch"),
    RefusedCommands(LABELS, "set mpls experimental <rest:line>", mode="policy-class", requires="switch"),
    RefusedCommands(
        ONE_TAG,
        "encapsulation dot1Q <vlan:1-4094> second-dot1q <rest:line>\nencapsulation isl <rest:line>",
        mode="subinterface",
        requires="router",
    ),
    RefusedCommands(
        "packets are not classified by MAC addresses",
        "match [not] (source-address|destination-address) mac <rest:line>",
        mode="class-map",
        requires="switch",
    ),
    RefusedCommands(
        "packets are not classified by MAC addresses",
        """
        >mac access-list <rest:line>
        access-list <list:700-799> <rest:line>
        access-list <list:1100-1199> <rest:line>
        """,
    ),
    RefusedCommands("packets are not classified by MAC addresses", "mac access-group <rest:line>", mode="interface"),
    RefusedCommands(
        "a policer meters the packet bytes of its own class",
        """
        police rate <cells:1-2000000> cps [<rest:line>]
        police (aggregate|flow) <rest:line>
        """,
        mode="policy-class",
        requires="router",
    ),
    RefusedCommands(
        "a packet has no colour before it is policed",
        "conform-color <rest:line>",
        mode="police",
    ),
    RefusedCommands(
        "packets are not inspected, admitted or trusted by a class",
        "(inspect|pass|urlfilter|admit|trust|dbl|plim) [<rest:line>]",
        mode="policy-class",
        requires="router",
    ),
    RefusedCommands(
        "fragments of a class are not distinguished",
        "class <name:word> fragment <rest:line>\nclass type <rest:line>",
        mode="policy-map",
    ),
    RefusedCommands(
        "traffic-shape belongs to the port: on a subinterface shape in a policy-map",
        "traffic-shape (rate|group) <rest:line>",
        mode="subinterface",
        requires="router",
    ),
    RefusedCommands(
        "CAR, fair-queue and queue lists belong to the port: on a subinterface use a policy-map",
        "(rate-limit|fair-queue|priority-group|custom-queue-list|max-reserved-bandwidth) [<rest:line>]",
        mode="subinterface",
        requires="router",
    ),
    RefusedCommands(
        "hold queue and transmit ring belong to the port: enter them on the main interface",
        "(hold-queue|tx-ring-limit) [<rest:line>]",
        mode="subinterface",
        requires="router",
    ),
    RefusedCommands(
        "links are not bundled",
        "multilink (max-fragments|interleave|min-links|max-links) [<rest:line>]",
        mode="interface",
        requires="router",
    ),
    RefusedCommands("links are not bundled", "multilink virtual-template <rest:line>", requires="router"),
    RefusedCommands("loss of a neighbour is not detected", "bfd <rest:line>", mode="interface", requires="router"),
    RefusedCommands(
        "clock, framing and channels of a line come from the experiment's link",
        """
        (invert|physical-layer|nrzi-encoding|ignore-dcd|dce-terminal-timing-enable|serial|service-module) [<rest:line>]
        (framing|cablelength|crc|loopback|transmitter-delay|dsu|down-when-looped) [<rest:line>]
        """,
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        "a port has the speed of its hardware",
        "pause [<rest:line>]\nflowcontrol [<rest:line>]",
        mode="interface",
        requires="router",
    ),
    RefusedCommands(RANGES, "interface range macro <rest:line>\ndefine interface-range <rest:line>"),
    RefusedCommands(
        "macros are not expanded: enter their lines for trust and queues, or auto qos voip",
        "auto qos (trust|video|classify) [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "pass-through is not modelled: a port that trusts one mark rewrites the other using the maps",
        "mls qos trust (cos pass-through|pass-through) [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "the only modelled trust device is a telephone",
        "mls qos trust device (ip-camera|cts|media-player) [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "queues of the switch are configured by srr-queue, and marks are not monitored",
        """
        (wrr-queue|rcv-queue|trust) <rest:line>
        mls qos (monitor|ipe|bridged|queue-monitor) [<rest:line>]
        """,
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "backup ports and ports behind telephones are not modelled",
        "switchport (backup|priority) <rest:line>",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "this switch classifies by DSCP, precedence and access lists, not by fields of the frame",
        "match [not] (cos|vlan) <rest:line>",
        mode="class-map",
        requires="switch",
    ),
    RefusedCommands(
        "this switch marks DSCP and precedence; queues belong to ports, not to classes",
        """
        set (qos-group|cos) <value:0-99>
        (shape|bandwidth|priority|queue-limit|queue-buffers|random-detect|fair-queue) [<rest:line>]
        police rate <rest:line>
        """,
        mode="policy-class",
        requires="switch",
    ),
    RefusedCommands(
        "packets are routed by destination only",
        "set (metric|interface|default) <rest:line>\nset ip (next-hop|default|df) <rest:line>",
        mode="policy-class",
        requires="router",
    ),
    RefusedCommands(
        "service instances bridge frames, which is not supported on a router",
        ">service instance <rest:line>",
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        "subinterfaces of serial lines are Frame Relay circuits, which are not modelled",
        ">interface <name:interface> multipoint",
        requires="router",
    ),
    RefusedCommands(
        "CAR matches access lists, and marks DSCP, precedence and QoS group only",
        """
        rate-limit (input|output) (dscp|qos-group) <rest:line>
        rate-limit (input|output) access-group rate-limit <rest:line>
        """,
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        "keepalives are on or off", "keepalive <seconds:0-32767> [<rest:line>]", mode="interface", requires="router"
    ),
    RefusedCommands(
        "static MAC addresses are not supported", "(mac-address-table|mac address-table static) <rest:line>"
    ),
    RefusedCommands(
        "marks are neither bridged nor counted", "mls qos (bridged|marking) [<rest:line>]", requires="switch"
    ),
    RefusedCommands(
        "packets are not classified by circuits",
        "match [not] (fr-dlci|atm-vci|atm) <rest:line>",
        mode="class-map",
        requires="switch",
    ),
    RefusedCommands(
        "the operation has no type, or its type was refused",
        "(frequency|timeout|threshold|tos|traffic-class|tag|owner|request-data-size|history) <rest:line>",
        mode="sla",
        requires="router",
    ),
    RefusedCommands("frames are not mirrored", "monitor session <rest:line>"),
    RefusedCommands("macros are not expanded: enter their lines", "macro global <rest:line>", requires="switch"),
    RefusedCommands(
        "only other switches have queues of this kind",
        "qos queue-softmax-multiplier <rest:line>\nqos queue-stats-frame-count",
        requires="switch",
    ),
    RefusedCommands("only routers send probes", ">(ip sla|rtr) [<rest:line>]", requires="switch"),
    RefusedCommands(
        SLA_KINDS,
        """
        (http|tcp-connect|path-echo|path-jitter|dns|ftp|dhcp|voip|ethernet|dlsw|mpls|frame-relay|slm|video) <rest:line>
        type (http|tcpConnect|pathEcho|pathJitter|dns|ftp|dhcp|voip|slm|dlsw|frame-relay|mpls|ethernet) [<rest:line>]
        """,
        mode="sla",
        requires="router",
    ),
    RefusedCommands(
        "MOS and ICPIF for a codec are not modelled: configure the same traffic with num-packets and interval",
        """
        udp-jitter <target:address> <port:1-65535> codec <rest:line>
        udp-jitter <target:address> <port:1-65535> source-ip <source:address> codec <rest:line>
        udp-jitter <target:address> <port:1-65535> source-port <from:1-65535> codec <rest:line>
        type jitter dest-ipaddr <target:address> dest-port <port:1-65535> codec <rest:line>
        """,
        mode="sla",
        requires="router",
    ),
    RefusedCommands(
        "the target of an operation must be an address: names are not resolved",
        "(icmp-echo|icmp-jitter|udp-echo|udp-jitter) <target:host-name> [<rest:line>]",
        mode="sla",
        requires="router",
    ),
    RefusedCommands(
        "only packets and times of an operation are modelled",
        """
        vrf <name:word>
        (precision|operation-packet-priority|verify-data|clock-tolerance|lives-of-history-kept) [<rest:line>]
        (buckets-of-history-kept|samples-of-history-kept|filter-for-history|percentile|data-pattern) [<rest:line>]
        history (filter|lives-kept|buckets-kept|enhanced|samples-kept) <rest:line>
        """,
        mode="sla-icmp-jitter",
        requires="router",
    ),
    RefusedCommands(
        "reactions to measurements of operations are not supported",
        """
        ip sla [monitor] (reaction-configuration|reaction-trigger|logging) [<rest:line>]
        ip sla [monitor] (low-memory|key-chain|reset|restart) [<rest:line>]
        ip sla (enable|auto|application|ethernet-monitor|keepalive|periodic) [<rest:line>]
        ip sla [monitor] group <rest:line>
        """,
        requires="router",
    ),
    RefusedCommands("the syntax of releases before 12.3(14)T: enter `ip sla`", ">rtr <rest:line>", requires="router"),
    RefusedCommands(
        "the router's own packets have the marks of the program that sends them",
        "ip (tos|qos) <rest:line>",
        requires="router",
    ),
    RefusedCommands(
        "TCP segment sizes are not rewritten",
        "ip tcp adjust-mss <rest:line>",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "all lines accept packets of up to 1500 bytes",
        "(mtu|ip mtu) <rest:line>",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "packets are not filtered: access lists classify",
        "ip access-group <rest:line>",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(TABLES, ">table-map <rest:line>", requires="switch"),
    RefusedCommands(
        "a router does not bridge frames",
        "bridge <rest:line>\n>bridge-domain <rest:line>",
        requires="router",
    ),
    RefusedCommands("a router does not bridge frames", "bridge-group <rest:line>", mode="interface", requires="router"),
    RefusedCommands("gateway redundancy is not modelled", "(standby|vrrp|glbp) <rest:line>", mode="interface"),
    RefusedCommands("links are not bundled", "channel-group <rest:line>", mode="interface", requires="switch"),
    RefusedCommands("no interface of this kind is modelled", ">interface <name:other-interface>", requires="switch"),
    RefusedCommands("no interface of this kind is modelled", ">controller <rest:line>"),
    RefusedCommands(
        "addresses must be configured: they cannot be learned or borrowed",
        "ip address (dhcp|negotiated|pool) [<rest:line>]\nip unnumbered <rest:line>",
        mode="interface",
    ),
    RefusedCommands(
        "Frame Relay is not modelled",
        """
        encapsulation frame-relay [<rest:line>]
        >frame-relay interface-dlci <rest:line>
        """,
        mode="interface",
        requires="router",
    ),
    RefusedCommands("configure the circuit on its own interface", ">vc-class atm <rest:line>", requires="router"),
    RefusedCommands(
        "a port has one circuit: enter `pvc VPI/VCI`",
        ">(vc|pvc-in-range|range) <rest:line>\npvc <name:word> <circuit:circuit>",
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        "the line itself and its signalling are not modelled", "atm <rest:line>", mode="interface", requires="router"
    ),
    RefusedCommands(
        "circuits have a constant rate, or a peak and a sustainable one: `cbr`, `ubr`, `vbr-nrt`",
        "(abr|vbr-rt) <rest:line>",
        mode="atm-vc",
        requires="router",
    ),
    RefusedCommands(
        "the circuit leads to one neighbour, and its state is not tested",
        "(oam-pvc|oam|inarp|broadcast|ilmi|protocol ip) [<rest:line>]",
        mode="atm-vc",
        requires="router",
    ),
    RefusedCommands(
        "no session is set up: PPP comes from the link's framing, and the interface has the address",
        "(pppoe-client|pppoe|dialer|protocol ppp|protocol pppoe|ppp) [<rest:line>]",
        mode="atm-vc",
        requires="router",
    ),
    RefusedCommands(
        "no session is set up: PPPoE comes from the link's framing, and the interface has the address",
        "pppoe <rest:line>",
        mode="interface",
        requires="router",
    ),
    RefusedCommands(
        TUNNELS,
        """
        (dialer|dialer-group|isdn|tunnel|keepalive-tunnel|peer|vpdn) <rest:line>
        """,
        mode="interface",
        requires="router",
    ),
    RefusedCommands(TUNNELS, ">bba-group <rest:line>\nvirtual-profile <rest:line>", requires="router"),
    RefusedCommands("a router does not bridge frames", ">l2vpn <rest:line>", requires="router"),
    RefusedCommands(NO_SWITCH, ">vlan <rest:line>\n(vtp|spanning-tree) <rest:line>", requires="router"),
    RefusedCommands("packets are not redirected to caches", "ip wccp <rest:line>"),
    RefusedCommands(NO_SWITCH, "(switchport|vlan-id) [<rest:line>]", mode="interface", requires="router"),
    RefusedCommands(
        "the kernel chooses the flow label of IPv6 operations",
        "flow-label <rest:line>",
        mode="sla-icmp-echo",
        requires="router",
    ),
    RefusedCommands(
        "neighbours are discovered by ARP only",
        "arp <rest:line>\nip arp inspection <rest:line>",
    ),
    RefusedCommands(
        "packets may leave by the interface on which they arrived",
        """
        (storm-control|ip arp inspection|ip verify) <rest:line>
        switchport (port-security|block|protected) [<rest:line>]
        """,
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "trunks carry every VLAN, and phones have no separate VLAN",
        "switchport (trunk (allowed|pruning)|voice) <rest:line>",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "this switch classifies IPv4 only, and does not route IPv6",
        ">ipv6 access-list <rest:line>\nipv6 (unicast-routing|route) [<rest:line>]",
        requires="switch",
    ),
    RefusedCommands("this switch classifies IPv4 only", "match protocol ipv6", mode="class-map", requires="switch"),
    RefusedCommands("ports are open to all stations", "dot1x <rest:line>"),
    RefusedCommands(
        "ports are open to all stations",
        "(dot1x|authentication|mab) [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
)
