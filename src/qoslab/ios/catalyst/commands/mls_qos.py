"""Global configuration of a Catalyst 3750: `mls qos`, its maps, queue-sets, input queues and aggregate policers; VLANs.

Ranges: Catalyst 3750 command reference; those of the queue-set's thresholds are from memory, not confirmed [R].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from qoslab.ios.catalyst.commands.vlan_interface import vlan_interfaces
from qoslab.ios.catalyst.compile import compile_qos
from qoslab.ios.catalyst.running_config import qos_lines, vlan_blocks
from qoslab.ios.cli.grammar import Args, IncompleteError, RejectedError
from qoslab.ios.cli.session import ConfigSession, switch_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.catalyst import (
    DEFAULT_COS_DSCP,
    DEFAULT_COS_INPUT,
    DEFAULT_COS_OUTPUT,
    DEFAULT_DSCP_COS,
    DEFAULT_DSCP_INPUT,
    DEFAULT_DSCP_OUTPUT,
    FIRST_VLAN,
    IDENTITY,
    AggregatePolicer,
    Exceed,
    InputQueues,
    QueuePlace,
    QueueSet,
    QueueThresholds,
)
from qoslab.ios.model.device import Device
from qoslab.ios.registry import BLOCKS, ENGINE
from qoslab.system import program_formats

MAX_VALUES = 8
"""Maximum code points in one line of a map."""
POLICE_RATE = "8000-10000000000"
"""bit/s, as in the guide OL-8550-09; the older OL-8552-07 has 1 Mb/s to 1 Gb/s."""
POLICE_BURST = "8000-1000000"
"""Bytes."""

# The wording of the following refusals is modelled on the switch's (`Command rejected:`), not taken from a printout.
BUFFERS_SUM = "Command rejected: buffers sum to {total} percent, they must sum to 100"
AGGREGATE_IN_USE = "Command rejected: aggregate policer {name} is used by policy-map {policy}"
DEFAULT_VLAN = "Command rejected: VLAN {number} is a default VLAN and may not be deleted or renamed"
VLAN_IN_USE = "Command rejected: VLAN {number} is the access VLAN of {interface}"

MLS = {"mls": "mls global commands", "qos": "qos command keyword"}
_MAP = {**MLS, "map": "qos map"}
_QUEUES = {**MLS, "srr-queue": "Configure SRR receive and transmit queues"}
_PLACES = {
    **_QUEUES,
    "input": "Configure SRR receive queues",
    "output": "Configure SRR transmit queues",
    "cos-map": "Configure cos-map for a queue id",
    "dscp-map": "Configure dscp-map for a queue id",
    "queue": "enter cos/dscp-map output queue-id",
    "threshold": "enter cos/dscp-map threshold-id",
    "number": "queue id",
    "level": "threshold id",
}


def _change(session: ConfigSession, **changes: Any) -> None:
    session.device.switch = replace(session.device.mls_qos, **changes)


@switch_command("config", "mls qos", no=True, help=MLS)
def _configure_mls_qos(session: ConfigSession, args: Args) -> None:
    _change(session, enabled=not args.unset)


@switch_command(
    "config",
    "mls qos rewrite ip dscp",
    no=True,
    help={**MLS, "rewrite": "Rewrite Packet/Frame", "ip": "Rewrite IP", "dscp": "Rewrite IP DSCP"},
)
def _rewrite(session: ConfigSession, args: Args) -> None:
    _change(session, rewrite_ip_dscp=not args.is_negated)


# Maps.


def _eight_values(args: Args) -> tuple[int, ...]:
    """Return the values of a map that has exactly one for each of eight codes."""
    values = args.values("dscp", int)
    if len(values) < MAX_VALUES:
        raise IncompleteError
    if len(values) > MAX_VALUES:
        raise args.invalid_repeat("dscp", MAX_VALUES)
    return tuple(values)


def _listed_codes(args: Args, name: str) -> list[int]:
    """Return the codes of a line, at most eight."""
    values = args.values(name, int)
    if len(values) > MAX_VALUES:
        raise args.invalid_repeat(name, MAX_VALUES)
    return values


@switch_command(
    "config",
    "mls qos map (cos-dscp|ip-prec-dscp) <dscp:0-63>+",
    no="mls qos map (cos-dscp|ip-prec-dscp) [<dscp:0-63>+]",
    help={
        **_MAP,
        "cos-dscp": "Class of service to dscp mapping",
        "ip-prec-dscp": "IP precedence to dscp mapping",
        "dscp": "8 dscp values separated by spaces",
    },
)
def _configure_eight_to_dscp(session: ConfigSession, args: Args) -> None:
    values = DEFAULT_COS_DSCP if args.unset else _eight_values(args)
    _change(session, **{args.keywords[-1].replace("-", "_"): values})


_DSCP_VALUES = {"dscp": "dscp values separated by spaces (up to 8 values total)", "to": "to keyword"}
_DSCP_MAPS = {"dscp-cos": ("dscp_cos", DEFAULT_DSCP_COS), "policed-dscp": ("policed_dscp", IDENTITY)}


@switch_command(
    "config",
    "mls qos map dscp-cos <dscp:0-63>+ to <value:0-7>",
    no="mls qos map dscp-cos [<dscp:0-63>+ to <value:0-7>]",
    undo=Undo(table=True),
    help={**_MAP, "dscp-cos": "dscp to class of service mapping", **_DSCP_VALUES, "value": "cos value"},
)
@switch_command(
    "config",
    "mls qos map policed-dscp <dscp:0-63>+ to <value:0-63>",
    no="mls qos map policed-dscp [<dscp:0-63>+ to <value:0-63>]",
    undo=Undo(table=True),
    help={**_MAP, "policed-dscp": "dscp to policed dscp mapping", **_DSCP_VALUES, "value": "policed dscp value"},
)
def _configure_by_dscp(session: ConfigSession, args: Args) -> None:
    attribute, default = _DSCP_MAPS[args.keywords[3]]
    _change(session, **{attribute: _mapped_codes(args, getattr(session.device.mls_qos, attribute), default)})


def _mapped_codes(args: Args, present: Sequence[int], default: Sequence[int]) -> tuple[int, ...]:
    """Return a map by DSCP after a line that maps code points to one value, or that resets these or all of them."""
    if args.unset and "to" not in args:
        return tuple(default)
    values = list(present)
    for dscp in _listed_codes(args, "dscp"):
        values[dscp] = default[dscp] if args.unset else args.value("value", int)
    return tuple(values)


@switch_command(
    "config",
    "mls qos map dscp-mutation <name:word> <dscp:0-63>+ to <value:0-63>",
    no="mls qos map dscp-mutation <name:word> [<dscp:0-63>+ to <value:0-63>]",
    undo=Undo(table=True),
    help={
        **_MAP,
        "dscp-mutation": "dscp mutation map",
        "name": "dscp mutation name",
        **_DSCP_VALUES,
        "value": "dscp value",
    },
)
def _configure_dscp_mutation(session: ConfigSession, args: Args) -> None:
    name, qos = args.value("name", str), session.device.mls_qos
    session.device.switch = qos.with_mutation(name, _mapped_codes(args, qos.mutation(name), IDENTITY))


# The queue and threshold of each CoS and DSCP. The number of queues differs between the directions.

_PLACE_MAPS: dict[tuple[str, str], tuple[str, tuple[QueuePlace, ...]]] = {
    ("output", "cos-map"): ("cos_output", DEFAULT_COS_OUTPUT),
    ("output", "dscp-map"): ("dscp_output", DEFAULT_DSCP_OUTPUT),
    ("input", "cos-map"): ("cos_input", DEFAULT_COS_INPUT),
    ("input", "dscp-map"): ("dscp_input", DEFAULT_DSCP_INPUT),
}


def _place_syntax(direction: str, queues: int, field: str, top: int) -> str:
    return (
        f"mls qos srr-queue {direction} {field}-map [queue <number:1-{queues}>] [threshold <level:1-3>] <code:0-{top}>+"
    )


def _place_map(session: ConfigSession, args: Args) -> None:
    direction = "output" if "output" in args else "input"
    attribute, default = _PLACE_MAPS[direction, "cos-map" if "cos-map" in args else "dscp-map"]
    if args.unset:
        _change(session, **{attribute: default})
        return
    places = list(getattr(session.device.mls_qos, attribute))
    queue, level = args.optional("number", int), args.optional("level", int)
    for code in _listed_codes(args, "code"):
        # [R] Without `queue` the queue stays; without `threshold` it is the first.
        places[code] = (places[code][0] if queue is None else queue, 1 if level is None else level)
    _change(session, **{attribute: tuple(places)})


for _direction, _queue_count in (("output", 4), ("input", 2)):
    for _field, _top in (("cos", 7), ("dscp", 63)):
        switch_command(
            "config",
            _place_syntax(_direction, _queue_count, _field, _top),
            no=f"mls qos srr-queue {_direction} {_field}-map",
            undo=Undo(table=True),
            help={**_PLACES, "code": f"{_field} values separated by spaces (up to 8 values total)"},
        )(_place_map)


# Input queues.


def _change_input(session: ConfigSession, **changes: Any) -> None:
    _change(session, input=replace(session.device.mls_qos.input, **changes))


@switch_command(
    "config",
    "mls qos srr-queue input buffers <first:0-100> <second:0-100>",
    no="mls qos srr-queue input buffers [<first:0-100> <second:0-100>]",
    help={
        **_PLACES,
        "buffers": "Configure buffer allocation",
        "first": "enter percentage of buffers for queue 1",
        "second": "enter percentage of buffers for queue 2",
    },
)
def _configure_input_buffers(session: ConfigSession, args: Args) -> None:
    buffers = _argument_pair(args, InputQueues().buffers)
    _check_sum(buffers)
    _change_input(session, buffers=buffers)


def _argument_pair(args: Args, default: tuple[int, ...]) -> tuple[int, int]:
    first, second = default if args.unset else (args.value("first", int), args.value("second", int))
    return first, second


def _check_sum(buffers: Sequence[int]) -> None:
    if sum(buffers) != 100:
        raise RejectedError(BUFFERS_SUM.format(total=sum(buffers)))


@switch_command(
    "config",
    "mls qos srr-queue input bandwidth <first:1-100> <second:1-100>",
    no="mls qos srr-queue input bandwidth [<first:1-100> <second:1-100>]",
    help={
        **_PLACES,
        "bandwidth": "Configure SRR bandwidth",
        "first": "enter bandwidth weight for queue 1",
        "second": "enter bandwidth weight for queue 2",
    },
)
def _configure_input_bandwidth(session: ConfigSession, args: Args) -> None:
    _change_input(session, bandwidth=_argument_pair(args, InputQueues().bandwidth))


@switch_command(
    "config",
    "mls qos srr-queue input threshold <number:1-2> <first:1-100> <second:1-100>",
    no="mls qos srr-queue input threshold <number:1-2> [<first:1-100> <second:1-100>]",
    help={
        **_PLACES,
        "threshold": "Configure queue thresholds",
        "first": "enter drop threshold1 as percentage",
        "second": "enter drop threshold2 as percentage",
    },
)
def _configure_input_threshold(session: ConfigSession, args: Args) -> None:
    thresholds = list(session.device.mls_qos.input.thresholds)
    queue = args.value("number", int) - 1
    thresholds[queue] = _argument_pair(args, InputQueues().thresholds[queue])
    _change_input(session, thresholds=tuple(thresholds))


@switch_command(
    "config",
    "mls qos srr-queue input priority-queue <number:1-2> bandwidth <percent:0-40>",
    no="mls qos srr-queue input priority-queue [<number:1-2> [bandwidth <percent:0-40>]]",
    help={
        **_PLACES,
        "priority-queue": "Configure priority scheduling for a queue",
        "bandwidth": "Bandwidth keyword",
        "percent": "enter priority bandwidth as percentage of ring bandwidth",
    },
)
def _configure_input_priority(session: ConfigSession, args: Args) -> None:
    queue, percent = InputQueues().priority_queue, InputQueues().priority_bandwidth
    if not args.unset:
        queue, percent = args.value("number", int), args.value("percent", int)
    _change_input(session, priority_queue=queue, priority_bandwidth=percent)


# Queue-sets.

_QUEUE_SET = {
    **MLS,
    "queue-set": "Choose a queue set for this queue",
    "output": "Choose a queue set for this queue",
    "set": "queue-set id",
}


def _change_queue_set(session: ConfigSession, args: Args, **changes: Any) -> None:
    sets = list(session.device.mls_qos.queue_sets)
    index = args.value("set", int) - 1
    sets[index] = replace(sets[index], **changes)
    _change(session, queue_sets=tuple(sets))


_BUFFERS = "<first:0-99> <second:1-100> <third:0-99> <fourth:0-99>"


@switch_command(
    "config",
    f"mls qos queue-set output <set:1-2> buffers {_BUFFERS}",
    no=f"mls qos queue-set output <set:1-2> buffers [{_BUFFERS}]",
    help={
        **_QUEUE_SET,
        "buffers": "assign buffers to egress queues",
        "first": "enter percent of buffers for queue 1",
        "second": "enter percent of buffers for queue 2",
        "third": "enter percent of buffers for queue 3",
        "fourth": "enter percent of buffers for queue 4",
    },
)
def _configure_buffers(session: ConfigSession, args: Args) -> None:
    buffers = QueueSet().buffers
    if not args.unset:
        buffers = tuple(args.value(name, int) for name in ("first", "second", "third", "fourth"))
        _check_sum(buffers)
    _change_queue_set(session, args, buffers=buffers)


_THRESHOLDS = "<first:1-3200> <second:1-3200> <reserved:1-100> <maximum:1-3200>"


@switch_command(
    "config",
    f"mls qos queue-set output <set:1-2> threshold <number:1-4> {_THRESHOLDS}",
    no=f"mls qos queue-set output <set:1-2> threshold [<number:1-4> [{_THRESHOLDS}]]",
    undo=Undo(key="mls qos queue-set output <set:1-2> threshold <number:1-4>"),
    help={
        **_QUEUE_SET,
        "threshold": "Assign threshold values to a queue",
        "number": "enter queue id in this queue set",
        "first": "enter drop threshold1 (percent of the queue's buffers)",
        "second": "enter drop threshold2 (percent of the queue's buffers)",
        "reserved": "enter reserved threshold (percent of the queue's buffers)",
        "maximum": "enter maximum threshold (percent of the queue's buffers)",
    },
)
def _configure_queue_set_threshold(session: ConfigSession, args: Args) -> None:
    present = list(session.device.mls_qos.queue_sets[args.value("set", int) - 1].thresholds)
    number = args.optional("number", int)
    for queue in range(len(present)) if number is None else (number - 1,):
        present[queue] = QueueSet().thresholds[queue] if args.unset else _thresholds(args)
    _change_queue_set(session, args, thresholds=tuple(present))


def _thresholds(args: Args) -> QueueThresholds:
    return QueueThresholds(*(args.value(field.name, int) for field in fields(QueueThresholds)))


# Aggregate policers.


@switch_command(
    "config",
    f"mls qos aggregate-policer <name:word> <rate:{POLICE_RATE}> <burst:{POLICE_BURST}>"
    " exceed-action (drop|policed-dscp-transmit)",
    no="mls qos aggregate-policer <name:word>"
    f" [<rate:{POLICE_RATE}> <burst:{POLICE_BURST}> exceed-action (drop|policed-dscp-transmit)]",
    undo=Undo(referred=5),
    help={
        **MLS,
        "aggregate-policer": "Named aggregate policer",
        "name": "aggregate policer name",
        "rate": "Bits per second",
        "burst": "Normal burst bytes",
        "exceed-action": "action when rate is exceeded",
        "drop": "drop packet",
        "policed-dscp-transmit": "change dscp per policed-dscp map and send it",
    },
)
def _configure_aggregate_policer(session: ConfigSession, args: Args) -> None:
    name, qos = args.value("name", str), session.device.mls_qos
    if args.unset:
        users = [p.name for p in session.device.policy_maps.values() if any(c.aggregate == name for c in p.classes)]
        if users:
            raise RejectedError(AGGREGATE_IN_USE.format(name=name, policy=users[0]))
        session.device.switch = qos.with_aggregate(name, None)
        return
    exceed: Exceed = "drop" if "drop" in args else "policed-dscp-transmit"
    policer = AggregatePolicer(args.value("rate", int), args.value("burst", int), exceed)
    session.device.switch = qos.with_aggregate(name, policer)


# VLANs.


@switch_command(
    "config",
    "vlan <number:1-4094>",
    no="vlan <number:1-4094>",
    undo=Undo(referred=6),
    help={"vlan": "VLAN commands", "number": "ISL VLAN IDs 1-4094"},
)
def _configure_vlan(session: ConfigSession, args: Args) -> None:
    number, qos = args.value("number", int), session.device.mls_qos
    if args.unset:
        if number == FIRST_VLAN:
            raise RejectedError(DEFAULT_VLAN.format(number=number))
        for interface in session.device.interfaces.values():
            if interface.port is not None and number == interface.port.access_vlan:
                raise RejectedError(VLAN_IN_USE.format(number=number, interface=interface.name))
        _change(session, vlans=tuple(each for each in qos.vlans if each[0] != number))
        return
    if number != FIRST_VLAN and number not in dict(qos.vlans):
        session.device.switch = qos.with_vlan(number, None)
    session.enter("vlan", str(number))


@switch_command(
    "vlan", "name <text:word>", no=True, help={"name": "Ascii name of the VLAN", "text": "The ascii name for the VLAN"}
)
def _configure_vlan_name(session: ConfigSession, args: Args) -> None:
    number = int(session.position.names[0])
    if number == FIRST_VLAN:
        raise RejectedError(DEFAULT_VLAN.format(number=number))
    name = None if args.unset else args.value("text", str)
    session.device.switch = session.device.mls_qos.with_vlan(number, name)


@switch_command(
    "config", "ip routing", help={"ip": "Global IP configuration subcommands", "routing": "Enable IP routing"}
)
def _configure_ip_routing(session: ConfigSession, args: Args) -> None:
    """Accept the command without effect: routing between the switch's routed ports cannot be turned off here."""


@BLOCKS.register_family(60, family="switch")
def _config_blocks(device: Device) -> Iterator[list[str]]:
    yield list(qos_lines(device.mls_qos))
    yield from vlan_blocks(device.mls_qos)


@ENGINE.register_family(10, family="switch")
def _engine_config(device: Device) -> program_formats.DataPlaneConfigPart:
    policies = {str(vlan): each.service_policy_input for vlan, each in vlan_interfaces(device)}
    attached = {vlan: name for vlan, name in policies.items() if name is not None}
    return {"switch": {**compile_qos(device.mls_qos), "vlan_policies": attached}}
