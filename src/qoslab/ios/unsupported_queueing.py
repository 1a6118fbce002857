"""Queueing and scheduling commands that are not modelled, or that the software lacks: refused with the reason.

Rows as in `ios.unsupported`.
"""

from qoslab.ios.unsupported import RefusedCommands

REFUSED_QUEUEING = (
    RefusedCommands(
        "random-detect has thresholds by value of a field",
        "random-detect <low:1-1000000> (ms|us|bytes) <rest:line>",
        mode="policy-class",
        requires="router",
    ),
    RefusedCommands(
        "introduced with HQF in 12.4(20)T: this router has earlier software",
        """
        priority level <level:1-4> [<rest:line>]
        fair-queue [<queues:16-4096>] queue-limit <rest:line>
        queue-limit <limit:1-64000000> (bytes|ms|us)
        queue-limit (dscp|precedence|cos|discard-class|qos-group) <rest:line>
        bandwidth remaining ratio <rest:line>
        shape (average|peak) <rate:8000-154400000> [<bits:256-154400000> [<more:0-154400000>]] account <rest:line>
        shape (average|peak) percent <share:1-100> account <rest:line>
        bandwidth <kbps:8-2000000> account <rest:line>
        bandwidth [remaining] percent <share:1-100> account <rest:line>
        """,
        mode="policy-class",
        requires="queue-limit-packets",
    ),
    RefusedCommands(
        "a port of this switch polices and marks on input; on output it has queues and no policies",
        "service-policy output [<rest:line>]",
        mode="interface",
        requires="switch",
    ),
    RefusedCommands(
        "with HQF (from 12.4(20)T) a shaper uses the queue of its class: use queue-limit",
        "shape max-buffers <rest:line>",
        mode="policy-class",
        requires="queue-limit-units",
    ),
    RefusedCommands(
        "introduced with HQF in 12.4(20)T: this router has earlier software",
        "account (user-defined|dot1q|qinq) <rest:line>",
        mode="police",
        requires="queue-limit-packets",
    ),
)
