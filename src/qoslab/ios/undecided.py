"""Commands on subjects that a lab does not have: labels, payload, other interface types, other hardware's buffers.

They are stored and printed. On a real device they affect packets that a lab does not have, so each of them is listed as
undecided. Rows as in `ios.inert_commands`; each row below `class-map` is a criterion that no packet of a lab matches.
"""

from __future__ import annotations

from functools import partial

from qoslab.ios.inert_commands import RESOLVER, InertFamily

AFTER_PORTS = 92
"""The rank of interfaces without a port in the running configuration."""
TABLES = 11
"""The rank of routing tables in the running configuration."""
IOS_XE = "limit-microseconds"
"""A capability that only IOS-XE has."""

NO_LABELS = "lab packets carry no labels"
NO_PAYLOAD = "depends on the payload, and lab traffic has no payload that NBAR recognises"
NO_DROP_BIT = "cells and frames in a lab have no discard-eligible bit"
NO_SECOND_TAG = "frames in a lab have at most one VLAN tag"
NO_TUNNELS = "a lab has no tunnels, dial-up sessions, bundles or bridge domains"

_router = partial(InertFamily, requires="router", undecided=True)

OTHER_THAN_IP = (
    "aarp|apollo|appletalk|arp|bridge|bstun|cdp|clns|clns_es|clns_is|cmns|compressedtcp|decnet|dlsw|ipx|llc2|pad|pppoe"
    "|pppoe-discovery|qllc|rsrb|snapshot|stun|vines|vofr|xns"
)

CRITERIA = (
    _router("a router in a lab forwards IP only", 0, f"match [not] protocol ({OTHER_THAN_IP})", mode="class-map"),
    _router(NO_PAYLOAD, 0, "match [not] protocol <application:word> [<rest:line>]", mode="class-map"),
    _router(NO_LABELS, 0, "match [not] mpls experimental <rest:line>", mode="class-map"),
    _router(NO_DROP_BIT, 0, "match [not] (fr-de|atm-clp)", mode="class-map"),
    _router("circuits are not distinguished", 0, "match [not] (fr-dlci|atm-vci|atm) <rest:line>", mode="class-map"),
    _router(NO_SECOND_TAG, 0, "match [not] (cos|vlan) inner <rest:line>", mode="class-map"),
    _router(
        "MAC addresses come from the lab",
        0,
        "match [not] (source-address|destination-address) mac <rest:line>",
        mode="class-map",
    ),
    _router(
        "no supported command sets it",
        0,
        "match [not] traffic-class <rest:line>",
        mode="class-map",
    ),
    _router(NO_PAYLOAD, 0, "match [not] (application|metadata|field|start|flow) <rest:line>", mode="class-map"),
    _router(NO_TUNNELS, 0, "match [not] (packet tunnel|tunnel) <rest:line>", mode="class-map"),
    _router(NO_SECOND_TAG, 0, "match [not] service <rest:line>", mode="class-map"),
    _router(
        "lab packets do not have it, or the router does not learn it",
        0,
        "match [not] (any-source|tag|input vlan|port-type|user|l2vpn|object-group|class|security-group|user-group"
        "|group-object|ethertype|spi|cac|wlan|efp|device-type|flowspec) [<rest:line>]",
        mode="class-map",
    ),
    _router("a class without other lines", 0, "match none", mode="class-map"),
)
NO_COMPRESSION = "headers and payloads are not compressed in a lab"
NO_CIRCUITS = "a lab has no Frame Relay circuits"
HARDWARE_QUEUES = "hardware queues exist on switches and line cards, not on a router"
OTHER_POLICIES = "policies of this type inspect, filter or monitor: they neither queue nor mark"
MACRO = "macros are not expanded: paste a running configuration with the lines of the macro"
VIRTUAL_INTERFACE = _router(NO_TUNNELS, AFTER_PORTS, ">interface <key:other-interface>")
UNDECIDED = (
    _router(
        NO_LABELS,
        0,
        "set mpls experimental [imposition|topmost] <rest:line>",
        mode="policy-class",
    ),
    _router(NO_DROP_BIT, 0, "set (fr-de|atm-clp|fr-fecn-becn) [<rest:line>]", mode="policy-class"),
    _router(
        NO_SECOND_TAG,
        0,
        """
        set (cos-inner|cos inner|vlan) <rest:line>
        set cos (cos-inner|inner) [<rest:line>]
        """,
        mode="policy-class",
    ),
    _router(
        NO_LABELS,
        0,
        """
        set [ip] dscp (exp|mpls) [<rest:line>]
        set [ip] precedence (exp|mpls) [<rest:line>]
        set cos (exp|mpls) [<rest:line>]
        set qos-group (exp|mpls|atm-clp) [<rest:line>]
        set discard-class (exp|mpls) [<rest:line>]
        random-detect (mpls-exp-based|exp) [<rest:line>]
        queue-limit exp <rest:line>
        """,
        mode="policy-class",
    ),
    _router(
        NO_DROP_BIT,
        0,
        """
        random-detect (atm-clp-based|clp|fr-de|clp-based) [<rest:line>]
        queue-limit (atm|clp) <rest:line>
        """,
        mode="policy-class",
    ),
    _router(
        "packets have no traffic class, security group or user priority inside the router",
        0,
        "set (traffic-class|wlan|srp-priority|security-group) <rest:line>",
        mode="policy-class",
    ),
    _router(
        "the other TOS bits of a packet are part of its DSCP",
        0,
        "set ip tos <rest:line>",
        mode="policy-class",
    ),
    _router(
        "separate thresholds for flows, VLANs and reservations are not supported",
        0,
        """
        random-detect (flow|vlan|aggregate|qos-group-based) [<rest:line>]
        random-detect precedence rsvp <rest:line>
        """,
        mode="policy-class",
    ),
    _router(
        "applies to distributed processors and switches: use `queue-limit`",
        0,
        """
        fair-queue [<queues:16-4096>] (individual-limit|aggregate-limit) <rest:line>
        queue-limit percent <rest:line>
        """,
        mode="policy-class",
    ),
    _router(NO_COMPRESSION, 0, "(compression header|header-compression) ip [<rest:line>]", mode="policy-class"),
    _router(
        "Frame Relay and voice adaptation of a shaper are not modelled",
        0,
        "shape (fr-voice-adapt|adaptive percent|adaptive upstream) [<rest:line>]",
        mode="policy-class",
    ),
    _router(
        "policers in packets per second belong to the control plane, which is not policed",
        0,
        "police rate <packets:1-2000000> pps [<rest:line>]",
        mode="policy-class",
    ),
    _router(
        "percentages refer to the shaper above, or to `bandwidth`",
        0,
        "bandwidth qos-reference <rest:line>",
        mode="policy-class",
    ),
    _router(
        "percentages refer to the shaper above, or to `bandwidth`",
        0,
        "bandwidth qos-reference <rest:line>",
        mode="interface",
    ),
    _router(
        NO_COMPRESSION,
        0,
        """
        compress [<each:line>]
        ip (rtp|tcp) header-compression [<each:line>]
        ip (rtp|tcp) compression-connections <rest:line>
        """,
        mode="interface",
    ),
    _router(MACRO, 0, "auto (qos|discovery) [<each:line>]", mode="interface"),
    _router(MACRO, RESOLVER, "auto qos [<each:line>]"),
    _router(
        HARDWARE_QUEUES,
        0,
        """
        (mls qos|wrr-queue|rcv-queue|srr-queue|queue-set|platform qos|platform qos-trust|qos trust) [<each:line>]
        priority-queue (out|cos-map) [<each:line>]
        fair-queue (tos|qos-group|limit|aggregate-limit|individual-limit) [<each:line>]
        (tx-queue-limit|rx-queue-limit) <rest:line>
        """,
        mode="interface",
    ),
    _router(HARDWARE_QUEUES, RESOLVER, "mls qos [<each:line>]"),
    _router("marking by routes is not supported", 0, "bgp-policy <each:line>", mode="interface"),
    _router(
        "overhead accounting is configured on a shaper",
        0,
        "(qos-overhead-accounting|overhead-accounting) [<rest:line>]",
        mode="interface",
    ),
    _router(
        "no frame requests a lower rate: a shaper has one rate",
        0,
        "traffic-shape (adaptive|fecn-adapt|fecn-create) [<rest:line>]",
        mode="interface",
    ),
    _router("no node in a lab signals a reservation", 0, "ip rtp reserve <rest:line>", mode="interface"),
    _router("no node in a lab signals a reservation", RESOLVER, "call rsvp-sync [<each:line>]"),
    _router(OTHER_POLICIES, 0, "service-policy (type|control|history) [<each:line>]", mode="interface"),
    _router(
        OTHER_POLICIES,
        AFTER_PORTS,
        """
        >policy-map type <key-kind:word> <key:line>
        >class-map type <key-kind:word> <key:line>
        """,
    ),
    _router("configure random-detect in a policy-map, not in groups", RESOLVER, ">random-detect-group <key:line>"),
    _router(NO_TUNNELS, 0, "set [ip] (dscp|precedence) tunnel <rest:line>", mode="policy-class"),
    _router(
        "applies to buffers of a Catalyst 9000: a router uses queue-limit",
        0,
        "queue-buffers ratio <rest:line>",
        mode="policy-class",
        requires=IOS_XE,
    ),
    VIRTUAL_INTERFACE,
    _router(NO_CIRCUITS, AFTER_PORTS, ">map-class (frame-relay|atm|dialer) <key:word>"),
    _router(NO_CIRCUITS, RESOLVER, "frame-relay <each:line>"),
    _router(
        "separate thresholds for flows, groups and reservations are not supported",
        0,
        """
        random-detect (flow|attach) [<each:line>]
        random-detect precedence rsvp <rest:line>
        """,
        mode="interface",
    ),
    _router(
        "a lab router neither bridges nor bundles frames",
        0,
        "(lacp|l2protocol|storm-control|port-channel|ethernet) <each:line>",
        mode="interface",
        requires=IOS_XE,
    ),
    _router(
        NO_CIRCUITS,
        0,
        """
        frame-relay (traffic-shaping|class|fragment|fragmentation|lmi-type|lmi-n391dte|intf-type) [<each:line>]
        frame-relay (fair-queue|interface-queue|congestion-management|policing|qos-autosense) [<each:line>]
        frame-relay (map|de-group|priority-dlci-group|inverse-arp|local-dlci|payload-compression) [<each:line>]
        frame-relay ip (rtp|tcp) <each:line>
        """,
        mode="interface",
    ),
    _router(
        "a subinterface without a bandwidth has that of its port",
        0,
        "bandwidth inherit [<rest:line>]",
        mode="interface",
    ),
    _router(
        "all interfaces share one routing table",
        TABLES,
        """
        >ip vrf <key:word>
        >vrf definition <key:word>
        """,
    ),
    _router("all interfaces share one routing table", 0, "(ip vrf|vrf) forwarding <rest:line>", mode="interface"),
    _router(
        NO_TUNNELS,
        0,
        """
        channel-group <rest:line>
        ppp multilink [<each:line>]
        multilink-group <rest:line>
        pppoe enable [<rest:line>]
        pppoe-client <rest:line>
        nhrp <each:line>
        ip nhrp <each:line>
        qos pre-classify
        """,
        mode="interface",
    ),
    _router(
        "no node in a lab signals a reservation",
        0,
        "ip rsvp <each:line>",
        mode="interface",
    ),
    _router("no node in a lab signals a reservation", RESOLVER, "ip rsvp <each:line>"),
    _router(
        "applies to queues of line cards and switches, which a router does not have",
        0,
        """
        plim <each:line>
        trust device <rest:line>
        """,
        mode="interface",
        requires=IOS_XE,
    ),
    _router(
        "applies to queues of line cards and switches, which a router does not have",
        RESOLVER,
        """
        qos (queue-softmax-multiplier|queue-stats-frame-count|stack-buffer|share-buffer) [<rest:line>]
        qos (track-packet-dropped|wireless-default-untrust|egress-dscp-cos-map) [<rest:line>]
        platform qos <each:line>
        platform (tunnel-qos|port-channel) [<each:line>]
        port-channel (load-balancing|load-balance-hash-algo) <each:line>
        """,
        requires=IOS_XE,
    ),
    _router(
        NO_PAYLOAD,
        RESOLVER,
        """
        ip nbar protocol-pack <each:line>
        >ip nbar attribute-map <key:word>
        ip nbar attribute-set <each:line>
        ip nbar (protocol-discovery|classification|attribute|http-services|resources|pdlm) [<each:line>]
        """,
    ),
    _router(NO_PAYLOAD, 0, "ip nbar (enable|classification|custom) [<each:line>]", mode="interface"),
    _router(
        "protocols use the ports of Cisco's table: match an access list for others",
        RESOLVER,
        "ip nbar (port-map|custom) <each:line>",
    ),
)
