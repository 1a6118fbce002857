"""Commands of IOS-XE that are not modelled: refused with the reason. Rows as in `ios.unsupported`."""

from __future__ import annotations

from qoslab.ios.undecided import IOS_XE
from qoslab.ios.unsupported import LABELS, TABLES, Refused

REFUSED_XE = (
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
)
