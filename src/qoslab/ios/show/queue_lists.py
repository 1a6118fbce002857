"""`show queueing priority` and `show queueing custom`: the configured lists."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.commands.queue_lists import rule_text
from qoslab.ios.model.device import Device
from qoslab.ios.model.interface_queueing import PRIORITIES, CustomList, PriorityList


def show_queueing_priority(device: Device) -> str:
    """Return `show queueing priority`."""
    lines = ["Current DLCI priority queue configuration:", "Current priority queue configuration:"]
    lists = sorted(device.priority_lists.values(), key=lambda each: each.number)
    if lists:
        lines += ["", "List   Queue  Args"]
    lines += [f"{each.number:<7}{line}" for each in lists for line in _priority_row(each)]
    return "".join(line + "\n" for line in lines)


def show_queueing_custom(device: Device) -> str:
    """Return `show queueing custom`."""
    lines = ["Current custom queue configuration:"]
    lists = sorted(device.queue_lists.values(), key=lambda each: each.number)
    if lists:
        lines += ["", "List   Queue  Args"]
    lines += [f"{each.number:<7}{line}" for each in lists for line in _custom_row(each)]
    return "".join(line + "\n" for line in lines)


def _priority_row(each: PriorityList) -> Iterator[str]:
    if each.default is not None:
        yield f"{PRIORITIES[each.default]:<7}default"
    for rule in each.rules:
        yield f"{PRIORITIES[rule.queue]:<7}{rule_text(rule, '')}"
    for level, limit in zip(PRIORITIES, each.limits or (), strict=False):
        yield f"{level:<7}limit {limit}"


def _custom_row(each: CustomList) -> Iterator[str]:
    if each.default is not None:
        yield f"{each.default:<7}default"
    for rule in each.rules:
        yield f"{rule.queue:<7}{rule_text(rule, '')}"
    for queue in each.queues:
        if queue.limit is not None:
            yield f"{queue.number:<7}limit {queue.limit}"
        if queue.byte_count is not None:
            yield f"{queue.number:<7}byte-count {queue.byte_count}"
