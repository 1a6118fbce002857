"""Commands of IOS-XE that are not modelled: refused with the reason. Rows as in `ios.unsupported`."""

from __future__ import annotations

from qoslab.ios.undecided import IOS_XE
from qoslab.ios.unsupported import RefusedCommands

REFUSED_XE = (
    RefusedCommands(
        "a router has two levels of priority; more levels and `express` belong to switches",
        "priority level <level:3-7> [<rest:line>]\npriority level <level:1-7> express [<rest:line>]",
        mode="policy-class",
        requires=IOS_XE,
    ),
)
