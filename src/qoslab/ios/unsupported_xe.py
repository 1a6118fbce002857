"""Commands of IOS-XE that are not modelled: refused with the reason. Rows as in `ios.unsupported`."""

from __future__ import annotations

from qoslab.ios.undecided import IOS_XE
from qoslab.ios.unsupported import LABELS, TABLES, Refused

REFUSED_XE = (
    Refused(
        "a router has two levels of priority: more, and `express`, are of switches",
        "priority level <level:3-7> [<rest:line>]\npriority level <level:1-7> express [<rest:line>]",
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
)
