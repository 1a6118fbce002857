"""Commands of IOS-XE that are not modelled: refused with the reason. Rows as in `ios.unsupported`."""

from __future__ import annotations

from qoslab.ios.unsupported import LABELS, TABLES, TUNNELS, Refused

IOS_XE = "limit-microseconds"
"""A capability of this generation alone."""

REFUSED_XE = (
    Refused(
        "marks and each `match` of a class-map are always counted in the same way",
        "platform qos (match-statistics|marker-statistics) [<rest:line>]",
        requires=IOS_XE,
    ),
    Refused("links are not bundled", "platform qos port-channel-aggregate <rest:line>", requires=IOS_XE),
    Refused("a class-map without `match` lines matches nothing", "match none", mode="class-map", requires=IOS_XE),
    Refused(
        "the limit of a flow is a quarter of the queue limit: enter fair-queue without it",
        "fair-queue <queues:16-4096> queue-limit <packets:1-32768>\nfair-queue queue-limit <packets:1-32768>",
        mode="policy-class",
        requires=IOS_XE,
    ),
    Refused(
        "thresholds of a queue by code point are those of random-detect",
        "queue-limit (dscp|cos|precedence) <rest:line>",
        mode="policy-class",
        requires=IOS_XE,
    ),
    Refused(LABELS, "random-detect (mpls-exp-based|exp) [<rest:line>]", mode="policy-class", requires=IOS_XE),
    Refused(
        "packets have no traffic class inside the router: use qos-group",
        "set traffic-class <rest:line>",
        mode="policy-class",
        requires=IOS_XE,
    ),
    Refused(
        TABLES,
        """
        set dscp dscp <rest:line>
        set precedence precedence <rest:line>
        set (traffic-class|mpls) (dscp|cos|precedence|mpls) <rest:line>
        """,
        mode="policy-class",
        requires=IOS_XE,
    ),
    Refused(
        TABLES,
        "(conform-action|exceed-action|violate-action) (set-dscp-transmit|set-cos-transmit) "
        "(dscp|cos|precedence) table <rest:line>",
        mode="police",
        requires=IOS_XE,
    ),
    Refused(
        "classes may reserve all of the bandwidth",
        "max-reserved-bandwidth <rest:line>",
        mode="interface",
        requires=IOS_XE,
    ),
    Refused(
        "line cards have no queues of their own",
        "plim <rest:line>",
        mode="interface",
        requires=IOS_XE,
    ),
    Refused(TUNNELS, "nhrp <rest:line>\nip nhrp <rest:line>", mode="interface", requires=IOS_XE),
)
