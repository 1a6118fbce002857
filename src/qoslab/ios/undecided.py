"""Commands about what a lab does not have: labels, payload, other kinds of interfaces, buffers of other hardware.

They are stored and printed. On a device they decide something that no packet of a lab meets, so each of them is listed
as undecided. Rows as in `ios.inert_commands`; below `class-map` each is a criterion that no packet of a lab fits.
"""

from __future__ import annotations

from functools import partial

from qoslab.ios.inert_commands import RESOLVER, Family

AFTER_PORTS = 92
"""The place of interfaces without a port in the running configuration."""
TABLES = 11
"""The place of routing tables."""
IOS_XE = "limit-microseconds"
"""A capability of this generation alone."""

NO_LABELS = "packets of a lab have no labels"
NO_PAYLOAD = "only the payload decides, and traffic of a lab has none that NBAR knows"
NO_DROP_BIT = "cells and frames of a lab have no bit for early discard"
NO_SECOND_TAG = "frames of a lab have one VLAN tag at most"
NO_TUNNELS = "a lab has no tunnels, dial-up sessions, bundles or bridge domains"

_router = partial(Family, requires="router", undecided=True)

OTHER_THAN_IP = (
    "aarp|apollo|appletalk|arp|bridge|bstun|cdp|clns|clns_es|clns_is|cmns|compressedtcp|decnet|dlsw|ipx|llc2|pad|pppoe"
    "|pppoe-discovery|qllc|rsrb|snapshot|stun|vines|vofr|xns"
)

CRITERIA = (
    _router("a router of a lab forwards IP alone", 0, f"match [not] protocol ({OTHER_THAN_IP})", mode="class-map"),
    _router(NO_PAYLOAD, 0, "match [not] protocol <application:word> [<rest:line>]", mode="class-map"),
    _router(NO_LABELS, 0, "match [not] mpls experimental <rest:line>", mode="class-map"),
    _router(NO_DROP_BIT, 0, "match [not] (fr-de|atm-clp)", mode="class-map"),
    _router("circuits are not told apart", 0, "match [not] (fr-dlci|atm-vci|atm) <rest:line>", mode="class-map"),
    _router(NO_SECOND_TAG, 0, "match [not] (cos|vlan) inner <rest:line>", mode="class-map"),
    _router(
        "addresses of stations are those of the lab",
        0,
        "match [not] (source-address|destination-address) mac <rest:line>",
        mode="class-map",
    ),
    _router(
        "no command of a lab sets it",
        0,
        "match [not] (discard-class|traffic-class) <rest:line>",
        mode="class-map",
    ),
    _router(NO_PAYLOAD, 0, "match [not] (application|metadata|field|start|flow) <rest:line>", mode="class-map"),
    _router(NO_TUNNELS, 0, "match [not] (packet tunnel|tunnel) <rest:line>", mode="class-map"),
    _router("a class without other lines", 0, "match none", mode="class-map"),
)
VIRTUAL_INTERFACE = _router(NO_TUNNELS, AFTER_PORTS, ">interface <key:other-interface>")
UNDECIDED = (
    _router(
        NO_LABELS,
        0,
        "set mpls experimental [imposition|topmost] <rest:line>",
        mode="policy-class",
    ),
    _router(NO_DROP_BIT, 0, "set (fr-de|atm-clp|fr-fecn-becn) [<rest:line>]", mode="policy-class"),
    _router(NO_SECOND_TAG, 0, "set (cos-inner|cos inner) <rest:line>", mode="policy-class"),
    _router(NO_TUNNELS, 0, "set [ip] (dscp|precedence) tunnel <rest:line>", mode="policy-class"),
    _router(
        "buffers of a Catalyst 9000: queues of a router have queue-limit",
        0,
        "queue-buffers ratio <rest:line>",
        mode="policy-class",
        requires=IOS_XE,
    ),
    VIRTUAL_INTERFACE,
    _router("a lab has no circuits of frame relay", AFTER_PORTS, ">map-class frame-relay <key:word>"),
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
        pppoe enable [<rest:line>]
        pppoe-client <rest:line>
        nhrp <each:line>
        ip nhrp <each:line>
        qos pre-classify
        """,
        mode="interface",
    ),
    _router(
        "no node of a lab signals a reservation",
        0,
        "ip rsvp <each:line>",
        mode="interface",
    ),
    _router("no node of a lab signals a reservation", RESOLVER, "ip rsvp <each:line>"),
    _router(
        "line cards and switches have queues of their own: a router has none",
        0,
        """
        plim <each:line>
        trust device <rest:line>
        """,
        mode="interface",
        requires=IOS_XE,
    ),
    _router(
        "line cards and switches have queues of their own: a router has none",
        RESOLVER,
        """
        qos queue-softmax-multiplier <rest:line>
        qos queue-stats-frame-count
        platform qos port-channel-aggregate <rest:line>
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
)
