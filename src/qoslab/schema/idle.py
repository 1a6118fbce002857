"""Classes and policies without effect in an experiment: classes that can match no packet, policies without traffic.

Each is a warning. `allow_idle` of the experiment lists the intended ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from qoslab.errors import Finding
from qoslab.ios.class_shares import ClassShare, candidate_classes
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyClass, PolicyMap
from qoslab.ios.packet_sets import ALL_PACKETS, class_packets, no_match_reason
from qoslab.model.experiment import Arm, Experiment
from qoslab.schema.cell_identity import CellIdentity
from qoslab.schema.devices import configured_devices
from qoslab.schema.document import Place
from qoslab.schema.packet_routes import InterfacePassage
from qoslab.schema.sweep import Sweep
from qoslab.schema.templates import render_lines
from qoslab.schema.traffic_ways import traffic_paths, used_interfaces

COMBINATIONS = 20
"""Maximum number of parameter combinations of each arm whose configurations are examined."""
VERBS = {"input": "enters", "output": "leaves"}


@dataclass(frozen=True)
class Attachment:
    """A policy-map on an interface."""

    interface: str
    direction: str
    policy: str

    def __str__(self) -> str:
        return f"service-policy {self.direction} {self.policy} on {self.interface}"


@dataclass(frozen=True)
class IdlePart:
    """A class or policy of a router that has no effect."""

    router: str
    name: str
    """The class-map or policy-map, as named in the configuration and in `allow_idle`."""
    message: str
    """Message: `class-map match-all VOICE of R1 can match no packet: …`."""
    path: str = ""
    """Path of a class of an attached policy: `class-default/VOICE`; empty for a policy and a class-map."""
    attachment: Attachment | None = None
    """Interface and direction of the policy; None for a class-map."""

    def is_allowed(self, names: Set[str]) -> bool:
        """Return whether `allow_idle` lists it."""
        whole = "" if self.attachment is None else f"{self.attachment.policy}/{self.path}"
        return not names.isdisjoint({self.name, self.path, whole} - {""})


def attachments(device: Device) -> Iterator[Attachment]:
    """Yield the policies of a device's interfaces."""
    for interface in device.interfaces.values():
        for direction in ("input", "output"):
            policy: str | None = getattr(interface, f"service_policy_{direction}")
            if policy is not None:
                yield Attachment(interface.name, direction, policy)
    for virtual in device.host_interfaces.values():
        if virtual.service_policy_input is not None:
            yield Attachment(virtual.name, "input", virtual.service_policy_input)


def idle_parts(experiment: Experiment, arm: Arm, devices: Mapping[str, Device]) -> list[IdlePart]:
    """Return the classes and policies of an arm that have no effect, without those in `allow_idle`. `devices` are its
    routers as configured.
    """
    ways = traffic_paths(experiment, arm, devices)
    passed = used_interfaces(ways), used_interfaces(ways, by_acknowledgements=False)
    found = [each for router, device in devices.items() for each in _idle_parts_of_router(router, device, *passed)]
    allowed = frozenset(experiment.allow_idle)
    return [each for each in found if not each.is_allowed(allowed)]


def _idle_parts_of_router(
    router: str, device: Device, passed: Set[InterfacePassage], carried: Set[InterfacePassage]
) -> Iterator[IdlePart]:
    for class_map in device.class_maps.values():
        if why := no_match_reason(device, class_map):
            about = f"class-map match-{class_map.match} {class_map.name} of {router} can match no packet: {why}"
            yield IdlePart(router, class_map.name, about)
    seen: set[tuple[str, str]] = set()
    for at in attachments(device):
        # The port of a VLAN is not known by the configuration alone.
        if at.interface not in device.host_interfaces and not _uses_classes(router, at, carried):
            what = "only acknowledgements of" if _uses_classes(router, at, passed) else "no"
            yield IdlePart(router, at.policy, _unused_parts(router, at, carried, what), attachment=at)
        for path, why in _unreachable_classes(device, at.policy):
            if (at.policy, path) not in seen:
                seen.add((at.policy, path))
                about = f"class {path} of policy-map {at.policy} of {router} can match no packet: {why}"
                yield IdlePart(router, path.rpartition("/")[2], about, path, at)


def _uses_classes(router: str, at: Attachment, passed: Set[InterfacePassage]) -> bool:
    return any((each.node, each.interface, each.direction) == (router, at.interface, at.direction) for each in passed)


def _unused_parts(router: str, at: Attachment, passed: Set[InterfacePassage], what: str) -> str:
    known = sorted(each.interface for each in passed if (each.node, each.direction) == (router, at.direction))
    verb = VERBS[at.direction]
    instead = f"; {at.direction} traffic of {router} {verb} by {', '.join(known)}" if known else ""
    # Plural, for acknowledgements.
    verb = verb if what == "no" else verb.removesuffix("s")
    return f"{at} of {router}: {what} declared traffic {verb} there{instead}"


def _unreachable_classes(device: Device, policy: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of the classes of an attached policy that no packet reaches, each with the reason."""
    yield from _walk_classes(device, device.policy_maps.get(policy), "", ClassShare(ALL_PACKETS))


def _walk_classes(
    device: Device, policy: PolicyMap | None, above: str, arriving: ClassShare
) -> Iterator[tuple[str, str]]:
    for each in () if policy is None else candidate_classes(device, policy, arriving):
        name = each.policy_class.name
        path = f"{above}{name}"
        if class_packets(device, name).empty:
            continue  # reported for its class-map
        if name != CLASS_DEFAULT and each.remaining_boxes.empty:
            parent = above.rstrip("/")
            taken = "classes above it match all of its packets"
            yield path, f"no packet of class {parent} matches it" if each.matching_boxes.empty else taken
            continue
        # The child classes may match the marks that a class sets.
        inside = ClassShare(ALL_PACKETS) if _sets_marks(each.policy_class) else each.remaining_boxes
        if (child := each.policy_class.service_policy) is not None:
            yield from _walk_classes(device, device.policy_maps.get(child), f"{path}/", inside)


def _sets_marks(policy_class: PolicyClass) -> bool:
    police = policy_class.police
    colours = () if police is None else (police.conform, police.exceed, police.violate)
    actions = [action.action for colour in colours for action in colour or ()]
    return bool(policy_class.marks or policy_class.marks_from) or any(action.startswith("set-") for action in actions)


def has_explicit_class(device: Device, policy: str, path: str) -> bool:
    """Return whether the configuration has a class of a policy, by its path. Every policy also has an implicit
    class-default.
    """
    found = device.policy_maps.get(policy)
    for name in path.split("/"):
        each = None if found is None else found.find(name)
        if each is None:
            return False
        found = None if each.service_policy is None else device.policy_maps.get(each.service_policy)
    return True


def idle_warnings(sweep: Sweep) -> list[Finding]:
    """Return a warning for each idle part of any arm, once, at its line of a template."""
    found: dict[tuple[str, int, str], Finding] = {}
    for arm in sweep.experiment.arms:
        for parameters in sweep.combinations(arm.name)[:COMBINATIONS]:
            experiment = sweep.resolve(CellIdentity(arm.name, tuple(parameters.items()), 1))
            own = experiment.arms[0]
            devices = configured_devices(experiment, sweep.configuration_text(experiment, own))
            for idle in idle_parts(experiment, own, devices):
                place = _idle_line(sweep.file, experiment, own, idle)
                hint = f"fix it, or mark it as intended with allow_idle: [{idle.name}]"
                finding = place.finding(f"arms.{arm.name}.configure.{idle.router}", f"warning: {idle.message}", hint)
                found.setdefault((finding.file, finding.line, finding.message), finding)
    return list(found.values())


def _idle_line(file: Path, experiment: Experiment, arm: Arm, idle: IdlePart) -> Place:
    """Return the template line that configures an idle part: `class-map`, `class`, or `service-policy` below its
    interface.
    """
    layers = experiment.arm_configurations(arm).get(idle.router, ())
    lines = [line for layer in layers for line in render_lines(file, layer)]
    command = "cl" if idle.attachment is None or idle.path else "se"
    port = "" if idle.attachment is None or idle.path else re.sub(r"^\D+", "", idle.attachment.interface)
    interface, found = "", []
    for text, place in lines:
        words = text.split()
        if words and words[0].lower().startswith("int"):
            interface = text.strip()
        if words and words[0].lower().startswith(command) and words[-1] == idle.name and interface.endswith(port):
            found.append(place)
    return found[0] if found else Place(str(file))
