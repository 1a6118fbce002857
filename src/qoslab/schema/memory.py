"""Maximum memory of an experiment's queues and links on the machine that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.ios.model import engine_defaults
from qoslab.ios.rules import interface_bandwidth_kbps
from qoslab.model.experiment import Link
from qoslab.policy.rate import Rate
from qoslab.policy.shares import TIME_DIVISORS, reference_rate

if TYPE_CHECKING:
    from qoslab.ios.model.device import Device
    from qoslab.ios.model.policy import QueueLimit

MAX_BYTES = 2**30
"""Maximum bytes that the queues of a router, or the links of an experiment, may hold together."""
FRAME = 1514
"""Bytes of the largest frame."""
SHORTEST = 24
"""Counted bytes of the shortest packet: an IPv4 header on a serial line."""


def queued_bytes(device: Device) -> int:
    """Return the bytes that the output queues of a router hold if all are full of the largest frames."""
    packets = 0
    for interface in device.interfaces.values():
        packets += interface.hold_queue_out or engine_defaults.FAIR_HOLD_QUEUE
        packets += interface.tx_ring_limit or 0
        if interface.service_policy_output is not None:
            packets += _policy_bytes(
                device, interface.service_policy_output, Rate(interface_bandwidth_kbps(interface) * 1000.0)
            )
    return packets * FRAME


def _policy_bytes(device: Device, name: str, base: Rate) -> int:
    policy = device.policy_maps.get(name)
    if policy is None:
        return 0
    packets = 0
    for each in policy.classes:
        rate = reference_rate(each, base, base)
        limit = _queue_packets(each.queue_limit, rate)
        if each.service_policy is not None:
            packets += _policy_bytes(device, each.service_policy, rate)
        elif each.fair_queue is not None:
            # Each flow's queue has its part of the limit; the limit of the class itself is not enforced then.
            queues = each.fair_queue.queues or engine_defaults.CLASS_FLOW_QUEUES
            packets += queues * max(limit // engine_defaults.FLOW_LIMIT_DIVISOR, 1)
        else:
            packets += limit
    return packets


def _queue_packets(limit: QueueLimit | None, rate: Rate) -> int:
    """Return the number of packets that a queue holds. A limit in bytes holds more small packets, and each takes the
    memory of a large one.

    A limit in time is converted at the rate of the class.
    """
    if limit is None:
        return engine_defaults.QUEUE_LIMIT
    if limit.unit == "packets":
        return limit.number
    part = TIME_DIVISORS.get(limit.unit)
    octets = int(rate.bps * limit.number / part) if part else limit.number
    return octets // SHORTEST + 1


def bytes_in_flight(link: Link) -> int:
    """Return the bytes in flight on a link in both directions: its rate times its delay."""
    longest = int(link.delay) + (int(link.jitter.size) if link.jitter is not None else 0)
    return 2 * int(link.rate) * longest // (8 * 10**9)
