"""Policy-maps and their classes: `policy-map`, `class`; each action of a class has a separate module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.class_map import check_name, order_by_reference
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT, MarkFromField, PolicyClass, PolicyMap
from qoslab.ios.model.table_maps import mapped_values
from qoslab.ios.registry import BLOCKS, CLASS_LINES, ENGINE, Layout
from qoslab.ios.rules import check_change, engine_class
from qoslab.system import program_formats

# The wording of the following refusals is modelled on IOS, not taken from a printout.
POLICY_IN_USE = "% Policy-map {name} is being used"
CLASS_UNKNOWN = "% class map {name} not configured"
POLICY_UNKNOWN = "% policy map {name} not configured"
TOO_MANY_CLASSES = "% Policy-map {name} has the maximum of {limit} classes"


def policy_users(device: Device, name: str) -> list[str]:
    """Return the names of the interfaces and parent policy-maps that refer to a policy-map."""
    interfaces = [
        i.name for i in device.interfaces.values() if name in (i.service_policy_input, i.service_policy_output)
    ]
    interfaces += [i.name for i in device.host_interfaces.values() if i.service_policy_input == name]
    parents = [p.name for p in device.policy_maps.values() if any(c.service_policy == name for c in p.classes)]
    return interfaces + parents


def unknown_policy_error(name: str | None) -> RejectedError:
    """Return the refusal of an unknown policy-map name."""
    return RejectedError(POLICY_UNKNOWN.format(name=name))


def change_class(session: ConfigSession, changed: PolicyClass) -> None:
    """Replace the class being configured by `changed`. Raise RejectedError if IOS refuses the result."""
    policy = session.policy_map
    classes = tuple(changed if each.name == changed.name else each for each in policy.classes)
    result = replace(policy, classes=classes)
    if result == policy:
        return
    check_change(session.device, result)
    session.device.policy_maps[policy.name] = result


@CONFIG.add(
    "config",
    "policy-map <name:word>",
    no="policy-map <name:word>",
    undo=Undo(referred=1, rewrite=True),
    help={"policy-map": "Configure QoS Policy Map", "name": "policy-map name"},
)
def _configure_policy_map(session: ConfigSession, args: Args) -> None:
    maps = session.device.policy_maps
    name = check_name(session.device, args, args.value("name", str))
    if args.unset:
        if policy_users(session.device, name):
            raise RejectedError(POLICY_IN_USE.format(name=name))
        maps.pop(name, None)
        return
    maps.setdefault(name, PolicyMap(name))
    session.enter("policy-map", name)


@CONFIG.add(
    "policy-map",
    "description <text:line>",
    no=True,
    help={"description": "Policy-Map description", "text": "Up to 200 characters describing this Policy-Map"},
)
def _configure_description(session: ConfigSession, args: Args) -> None:
    policy = replace(session.policy_map, description=None if args.unset else args.value("text", str))
    session.device.policy_maps[policy.name] = policy


@CONFIG.add(
    "policy-map",
    "class <name:word> [insert-before <other:word>]",
    no="class <name:word>",
    undo=Undo(ordered=lambda args: args.value("name", str) != CLASS_DEFAULT),
    help={
        "class": "policy criteria",
        "name": "class-map name",
        "insert-before": "insert class before an existing class",
        "other": "class-map name",
    },
)
def _configure_class(session: ConfigSession, args: Args) -> None:
    policy = session.policy_map
    name = args.value("name", str)
    if args.unset:
        remaining = replace(policy, classes=tuple(each for each in policy.classes if each.name != name))
        check_change(session.device, remaining)
        session.device.policy_maps[policy.name] = remaining
        return
    if policy.find(name) is None:
        if name != CLASS_DEFAULT and name not in session.device.class_maps:
            raise RejectedError(CLASS_UNKNOWN.format(name=name))
        limit = session.device.hardware.qos.max_classes
        if len(policy.classes) >= limit:
            raise RejectedError(TOO_MANY_CLASSES.format(name=policy.name, limit=limit))
        position = _class_position(policy, args, name)
        classes = (*policy.classes[:position], PolicyClass(name), *policy.classes[position:])
        check_change(session.device, replace(policy, classes=classes))
        session.device.policy_maps[policy.name] = replace(policy, classes=classes)
    session.enter("policy-class", name)


def _class_position(policy: PolicyMap, args: Args, name: str) -> int:
    """Return the index of a new class: before the class named in the line, else last, but before class-default."""
    present = [each.name for each in policy.classes]
    other = args.optional("other", str)
    if other == CLASS_DEFAULT and other not in present and name != CLASS_DEFAULT:
        return len(present)
    if other is not None:
        if other not in present or name == CLASS_DEFAULT:
            raise args.invalid_argument("other")
        return present.index(other)
    default_is_last = bool(present) and present[-1] == CLASS_DEFAULT
    return len(present) - 1 if default_is_last else len(present)


@BLOCKS.register_family(80)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    yield from (policy_map_block(device, device.policy_maps[name]) for name in policy_order(device))


def policy_order(device: Device) -> list[str]:
    """Return the names of the policy-maps in the order of the running configuration."""
    return order_by_reference(
        {
            name: [c.service_policy for c in each.classes if c.service_policy is not None]
            for name, each in device.policy_maps.items()
        }
    )


def policy_map_block(device: Device, policy: PolicyMap) -> list[str]:
    """Return the lines of one policy-map in the layout of the device's generation."""
    lines = [f"policy-map {policy.name}"]
    if policy.description is not None:
        lines.append(f" description {policy.description}")
    for each in policy.classes:
        lines.append(f" class {each.name}")
        lines += class_lines(device, each)
    return lines


def class_lines(device: Device, each: PolicyClass) -> list[str]:
    """Return the lines of a policy-map's class below `class NAME`.

    Later software indents queueing actions and `police` by four blanks, and `random-detect` by five.
    """
    layout = Layout(device.hardware.qos)
    return [line for lines in CLASS_LINES.family_functions(device.hardware.family) for line in lines(each, layout)]


@ENGINE.register_family(50)
def _engine_config(device: Device) -> program_formats.DataPlaneConfigPart:
    return {"policy_maps": {name: _engine_policy_map(device, each) for name, each in device.policy_maps.items()}}


def _engine_policy_map(device: Device, policy_map: PolicyMap) -> program_formats.PolicyMap:
    classes = []
    for each in policy_map.classes:
        config = engine_class(device.hardware.family, each)
        if each.marks_from:
            config["map"] = [_engine_map(device, mark) for mark in each.marks_from]
        classes.append(config)
    return {"classes": classes}


def _engine_map(device: Device, mark: MarkFromField) -> program_formats.MapAction:
    values = mapped_values(mark, device.table_maps)
    return {"field": mark.field, "source": mark.source, "table": mark.table, "values": values}
