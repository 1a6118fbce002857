"""Queues of a class: `bandwidth`, `priority`, `fair-queue`, and the limits of their reservations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands import account
from qoslab.ios.commands.class_queue_lines import classic_queueing_lines, hqf_queueing_lines
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.engine_rules import ONE_UNIT, SUMS
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.policy import CLASS_DEFAULT, Bandwidth, FairQueue, PolicyClass, PolicyMap, Priority
from qoslab.ios.registry import (
    CLASS_LINES,
    COMBINATION_WORDS,
    ENGINE_CLASS,
    OUTPUT_RULES,
    POLICY_RULES,
    SHOW_INTERFACE_CLASS,
    SHOW_POLICY_MAP_CLASS,
    InterfacePolicyClass,
    Layout,
)
from qoslab.ios.rules import exceeds_share, find_amount, interface_bandwidth_kbps
from qoslab.system import program_formats

SUM_EXCEEDS = "Sum total of class bandwidths exceeds"


# Refusals of IOS-XE: the first from a reader's output, the second from the YANG model.
NOT_WITH_PRIORITY = "Bandwidth not allowed with priority"
MIXED_IN_CLASS = (
    "Mixed bandwidth types are not supported. Pls configure bandwidth command either in kbps, percent, "
    "remaining percent or remaining ratio but not mixed"
)


MIXED_UNITS = "All classes with bandwidth should have consistent units"


NOT_TOGETHER = "{one} and {other} can not be configured in the same class"


FAIR_QUEUE_NOT_DEFAULT = "fair-queue can only be configured in class class-default"


PRIORITY_IN_DEFAULT = "priority can not be configured in class class-default"


POWER_OF_TWO = "Number of dynamic queues must be a power of 2 (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)"


_BANDWIDTH_HELP = {
    "bandwidth": "Bandwidth",
    "kbps": "Kilo Bits per second",
    "percent": "% of total Bandwidth",
    "share": "Percentage",
    "remaining": "% of the remaining bandwidth",
    "ratio": "ratio for sharing excess bandwidth",
    "parts": "Ratio",
}


_BANDWIDTH = "<kbps:8-2000000>|percent <share:1-100>|remaining percent <share:1-100>"


@CONFIG.add("policy-class", f"bandwidth ({_BANDWIDTH})", no=True, requires={"remaining-percent"}, help=_BANDWIDTH_HELP)
@CONFIG.add(
    "policy-class",
    f"bandwidth ({_BANDWIDTH}|remaining ratio <parts:1-1000>) {account.SYNTAX}",
    no=True,
    requires={"remaining-ratio"},
    help={**_BANDWIDTH_HELP, **account.HELP},
)
@CONFIG.add(
    "policy-class",
    "bandwidth (<kbps:1-100000000>|percent <share:1-100>|remaining percent <share:1-100>"
    f"|remaining ratio <parts:1-65536>) {account.WIDE_SYNTAX}",
    no=True,
    requires={"remaining-wide"},
    help={**_BANDWIDTH_HELP, **account.HELP},
)
def _configure_bandwidth(session: ConfigSession, args: Args) -> None:
    bandwidth = None
    if not args.unset:
        kbps, share, parts = (args.optional(name, int) for name in ("kbps", "share", "parts"))
        if kbps is not None:
            bandwidth = Bandwidth("kbps", kbps)
        elif parts is not None:
            bandwidth = Bandwidth("remaining_ratio", parts)
        elif share is not None:
            bandwidth = Bandwidth("remaining_percent" if "remaining" in args else "percent", share)
        if bandwidth is not None:
            bandwidth = replace(bandwidth, account=account.parse_account(args))
    change_class(session, replace(session.policy_class, bandwidth=bandwidth))


_PRIORITY_HELP = {
    "priority": "Strict Scheduling Priority for this Class",
    "kbps": "Kilo Bits per second",
    "burst": "Burst in bytes",
    "percent": "% of total bandwidth",
    "share": "Percentage",
    "level": "Multi-Level Priority Queue",
    "queue": "Priority level",
}


@CONFIG.add(
    "policy-class",
    "priority [(<kbps:8-2000000>|percent <share:1-100>) [<burst:32-2000000>]]",
    no=True,
    requires={"priority-narrow"},
    help=_PRIORITY_HELP,
)
@CONFIG.add(
    "policy-class",
    "priority level <queue:1-2> [(<kbps:8-2000000>|percent <share:1-100>) [<burst:32-2000000>]]",
    no=True,
    undo=Undo(key="priority"),
    requires={"priority-levels"},
    help=_PRIORITY_HELP,
)
@CONFIG.add(
    "policy-class",
    "priority [level <queue:1-2>] [(<kbps:1-100000000>|percent <share:1-100>) [<burst:32-2000000>]]",
    no=True,
    undo=Undo(key="priority"),
    requires={"priority-wide"},
    help=_PRIORITY_HELP,
)
def _configure_priority(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset:
        change_class(session, replace(present, priority=None))
        return
    kbps, share = args.optional("kbps", int), args.optional("share", int)
    level, burst = args.optional("queue", int), args.optional("burst", int)
    priority = Priority(level=level)
    if kbps is not None:
        priority = Priority("kbps", kbps, burst, level)
    elif share is not None:
        priority = Priority("percent", share, burst, level)
    change_class(session, replace(present, priority=priority))


_FAIR_QUEUE_HELP = {
    "fair-queue": "Enable Flow-based Fair Queuing in this Class",
    "queues": "Number Dynamic Conversation Queues",
    "queue-limit": "Limit of each flow queue",
    "packets": "Packets",
}


@router_command("policy-class", "fair-queue [<queues:16-4096>]", no=True, help=_FAIR_QUEUE_HELP)
@CONFIG.add(
    "policy-class",
    "fair-queue [<queues:16-4096>] queue-limit <packets:1-32768>",
    no=True,
    undo=Undo(key="fair-queue"),
    requires={"fair-queue-flows"},
    help=_FAIR_QUEUE_HELP,
)
def _configure_fair_queue(session: ConfigSession, args: Args) -> None:
    queues = args.optional("queues", int)
    if queues is not None and queues & (queues - 1):
        raise RejectedError(POWER_OF_TWO)
    fair_queue = None if args.unset else FairQueue(queues, args.optional("packets", int))
    change_class(session, replace(session.policy_class, fair_queue=fair_queue))


# The running configuration.


def _priority_text(each: PolicyClass) -> str:
    priority = each.priority
    assert priority is not None
    level = "" if priority.level is None else f" level {priority.level}"
    rate = {"strict": "", "kbps": f" {priority.number}", "percent": f" percent {priority.number}"}[priority.unit]
    return f"priority{level}{rate}{'' if priority.burst_bytes is None else f' {priority.burst_bytes}'}"


def _bandwidth_text(each: PolicyClass) -> str:
    bandwidth = each.bandwidth
    assert bandwidth is not None
    words = {"kbps": "", "percent": " percent", "remaining_percent": " remaining percent"}
    return f"bandwidth{words.get(bandwidth.unit, ' remaining ratio')} {bandwidth.number}"


@CLASS_LINES.register_family(20, family="router")
def _priority_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.priority is not None:
        yield layout.queueing + _priority_text(each)


@CLASS_LINES.register_family(30, family="router")
def _bandwidth_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.bandwidth is not None:
        yield layout.queueing + _bandwidth_text(each) + account.account_text(each.bandwidth.account)


@CLASS_LINES.register_family(65, family="router")
def _queue_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.fair_queue is not None:
        yield layout.queueing + _fair_queue_text(each.fair_queue.queues, each.fair_queue.queue_limit)


@ENGINE_CLASS.register_family(40)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    return {
        "fair_queue": None if each.fair_queue is None else _engine_fair_queue(each.fair_queue),
        "bandwidth": None if each.bandwidth is None else _engine_bandwidth(each.bandwidth),
        "priority": None if each.priority is None else _engine_priority(each.priority),
    }


def _fair_queue_text(queues: int | None, limit: int | None) -> str:
    words = ["fair-queue", *([str(queues)] if queues is not None else [])]
    return " ".join([*words, *(["queue-limit", str(limit)] if limit is not None else [])])


def _engine_fair_queue(fair: FairQueue) -> program_formats.FairQueueConfig:
    config: program_formats.FairQueueConfig = {"queues": fair.queues}
    if fair.queue_limit is not None:
        config["queue_limit"] = fair.queue_limit
    return config


def _engine_bandwidth(bandwidth: Bandwidth) -> program_formats.BandwidthConfig:
    match bandwidth.unit:
        case "kbps":
            return {"kbps": bandwidth.number}
        case "percent":
            return {"percent": bandwidth.number}
        case "remaining_percent":
            return {"remaining_percent": bandwidth.number}
        case "remaining_ratio":
            return {"remaining_ratio": bandwidth.number}


def _engine_priority(priority: Priority) -> program_formats.PriorityConfig:
    return {
        "unit": priority.unit,
        "number": priority.number,
        "burst_bytes": priority.burst_bytes,
        "level": priority.level,
    }


# Refusals of IOS.


COMBINATION_WORDS.update(
    {
        ("priority", "class_default"): PRIORITY_IN_DEFAULT,
        ("bandwidth", "priority"): lambda qos: (
            NOT_WITH_PRIORITY if qos.minimum_and_excess else NOT_TOGETHER.format(one="bandwidth", other="priority")
        ),
        ("fair_queue", "priority"): NOT_TOGETHER.format(one="fair-queue", other="priority"),
        ("shape", "priority"): NOT_TOGETHER.format(one="priority", other="shape"),
        ("fair_queue", "class_default"): FAIR_QUEUE_NOT_DEFAULT,
        ("fair_queue", "bandwidth"): NOT_TOGETHER.format(one="bandwidth", other="fair-queue"),
    }
)


@POLICY_RULES.register_family(10)
def _check_bandwidths(device: Device, policy: PolicyMap) -> None:
    """Refuse a policy-map that mixes units or reserves too much, regardless of its interface."""
    given = (getattr(each, ONE_UNIT) for each in policy.classes)
    if len({each.unit for each in given if each is not None}) > 1:
        raise RejectedError(MIXED_IN_CLASS if device.hardware.qos.minimum_and_excess else MIXED_UNITS)
    qos = device.hardware.qos
    configured = [(each.name, _engine_config(each)) for each in policy.classes]
    for row in SUMS:
        most = row.most or qos.reservable_percent or 100
        amounts = ((name, find_amount(row, config)) for name, config in configured)
        if (row.only is None or getattr(qos, row.only)) and exceeds_share(amounts, 100, most):
            raise RejectedError(f"{SUM_EXCEEDS} {qos.reservable_percent or 99} percent")


@OUTPUT_RULES.register_family(10)
def _check_output(device: Device, policy: PolicyMap, interface: Interface) -> None:
    bps = 1000 * interface_bandwidth_kbps(interface)
    share = interface.max_reserved_bandwidth
    _check_reserved(
        device, policy, interface, (bps, bps), engine_defaults.CLASSIC_RESERVABLE_PERCENT if share is None else share
    )


def _reserved_kbps(each: PolicyClass, guaranteed_bps: int) -> int:
    """Return the bandwidth in kbit/s that a class reserves of `guaranteed_bps`, rounded as in the engine."""
    given = each.priority if each.bandwidth is None else each.bandwidth
    number = 0 if given is None else given.number or 0
    match given and given.unit:
        case "kbps":
            return number
        case "percent":
            return guaranteed_bps * number // 100_000
    return 0


def _check_reserved(
    device: Device, policy: PolicyMap, interface: Interface, bases: tuple[int, int], of_interface: int
) -> None:
    """Refuse a policy-map whose classes, or those of its descendants, reserve too much.

    `bases` are the base rates in bit/s for percentages of `shape`, and for those of `bandwidth` and `priority`;
    `of_interface` is the percentage that classes may reserve if the interface limits it.
    """
    rate_bps, guaranteed_bps = bases
    qos = device.hardware.qos
    most = of_interface if qos.reservable_percent is None else qos.reservable_percent
    amounts = {each.name: 1000 * _reserved_kbps(each, guaranteed_bps) for each in policy.classes}
    if not qos.default_class_reserves:
        amounts.pop(CLASS_DEFAULT, None)
    if exceeds_share(amounts.items(), guaranteed_bps, most):
        if qos.reservable_percent is not None:
            raise RejectedError(f"{SUM_EXCEEDS} {most} percent")
        reserved = sum(bps for name, bps in amounts.items() if name != CLASS_DEFAULT) // 1000
        # Wording modelled on IOS.
        raise RejectedError(
            f"I/f {interface.name} policy-map {policy.name} requested bandwidth {reserved} (kbps), "
            f"available only {guaranteed_bps * most // 100_000} (kbps)"
        )
    for each in policy.classes:
        if each.service_policy is None:
            continue
        has_minimum = each.bandwidth is not None and each.bandwidth.unit in ("kbps", "percent")
        below = rate_bps, 1000 * _reserved_kbps(each, guaranteed_bps) if has_minimum else guaranteed_bps
        if each.shape is not None:
            amount = each.shape.rate
            shape_bps = rate_bps * amount.number // 100 if amount.unit == "percent" else amount.number
            below = shape_bps, shape_bps
        # [I] Below a class its own rate takes the place of the interface's bandwidth, all of it reservable.
        _check_reserved(device, device.policy_maps[each.service_policy], interface, below, 100)


# Show output.


@SHOW_POLICY_MAP_CLASS.register_family(10)
def _show_queue_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    classic = not GENERATIONS[config["generation"]].separate_queues
    if (priority := typed.get("priority")) is not None:
        # A percentage has no burst before it is attached.
        resolved = entry.get("priority")
        burst = None if resolved is None else resolved["burst_bytes"]
        yield from _classic_priority_text(priority, burst) if classic else _hqf_priority_text(priority)
    if (bandwidth := typed.get("bandwidth")) is not None:
        text = _shown_bandwidth(bandwidth)
        yield f"      Bandwidth {text}{_classic_threshold_text(typed)}" if classic else f"      bandwidth {text}"


@SHOW_POLICY_MAP_CLASS.register_family(45)
def _show_flow_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    if (fair := typed.get("fair_queue")) is not None:
        text = _fair_queue_text(fair.get("queues"), fair.get("queue_limit"))
        yield f"      {text}{' ' if text == 'fair-queue' else ''}"


def _classic_priority_text(priority: program_formats.PriorityConfig, burst: int | None) -> Iterator[str]:
    yield "      Strict Priority"
    if priority["unit"] != "strict":
        yield f"      Bandwidth {_priority_amount(priority)}" + (f" Burst {burst} (Bytes)" if burst is not None else "")


def _hqf_priority_text(priority: program_formats.PriorityConfig) -> Iterator[str]:
    words = ["priority"]
    if (level := priority.get("level")) is not None:
        words.append(f"level {level}")
    if priority["unit"] != "strict":
        words.append(_priority_amount(priority))
    if (burst := priority.get("burst_bytes")) is not None:
        # [I] How a configured burst is printed.
        words.append(f"burst {burst} (Bytes)")
    yield "      " + " ".join(words)


def _priority_amount(priority: program_formats.PriorityConfig) -> str:
    return f"{priority.get('number')} ({'kbps' if priority['unit'] == 'kbps' else '%'})"


def _shown_bandwidth(bandwidth: program_formats.BandwidthConfig) -> str:
    if "kbps" in bandwidth:
        return f"{bandwidth['kbps']} (kbps)"
    if "percent" in bandwidth:
        return f"{bandwidth['percent']} (%)"
    if "remaining_percent" in bandwidth:
        return f"remaining {bandwidth['remaining_percent']} (%)"
    return f"remaining ratio {bandwidth['remaining_ratio']}"


def _classic_threshold_text(typed: program_formats.PolicyClass) -> str:
    if typed.get("random_detect") is not None:
        return ""
    limit = typed.get("queue_limit")
    # Bytes and milliseconds are the later generation's.
    packets = engine_defaults.QUEUE_LIMIT if limit is None or "packets" not in limit else limit["packets"]
    return f" Max Threshold {packets} (packets)"


@SHOW_INTERFACE_CLASS.register_family(10)
def _show_interface_lines(shown: InterfacePolicyClass) -> Iterator[str]:
    if shown.qos.separate_queues:
        yield from hqf_queueing_lines(shown.config, shown.counters, shown.qos)
    else:
        yield from classic_queueing_lines(shown.counters)
