"""Policies of a router as an IOS template for its interfaces in the topology."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from qoslab.exchange.routers.configured_interfaces import ConfiguredPort
from qoslab.exchange.routers.input_router import AttachedInterface, InputRouter
from qoslab.ios.commands.account import MAX_ACCOUNTED_BYTES, with_account_offset
from qoslab.ios.device_config.running_config_parser import read_into
from qoslab.ios.device_config.secret_lines import remove_secrets
from qoslab.ios.model.accounting import INHERITED
from qoslab.ios.model.device import Device
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.parse import RefusedLineError, apply_config, parse_config
from qoslab.ios.registry import BLOCKS
from qoslab.model.experiment import Topology
from qoslab.model.framing import COUNTED_HEADER
from qoslab.platforms.startup import CIRCUIT, router_hardware, startup_config
from qoslab.policy.pasted_configuration import Attachment, is_refusal
from qoslab.policy.rate import format_list
from qoslab.policy.tunnels import Tunnel, find_encapsulation, find_tunnels, hidden_classes

LOGIN = {"user": "lab", "password": "unused", "enable": "unused"}
_QUEUEING = re.compile(
    r"(?:no )?(?:bandwidth \d+|fair-queue|tx-ring-limit|hold-queue|max-reserved-bandwidth|rate-limit|traffic-shape"
    r"|random-detect|priority-group|custom-queue-list|load-interval|ip tcp adjust-mss)\b"
)
_SPOKES = re.compile(r"(?:ip )?nhrp map group (?P<group>\S+) service-policy output (?P<policy>\S+)")
"""Per-tunnel QoS of DMVPN: the policy of each spoke in the group."""
_LISTS = ("priority-list", "queue-list", "access-list rate-limit")
_MAX_REFUSED_LINES = 200
MAX_ACCESS_LIST_CHARACTERS = 2**16
"""Maximum characters of access lists in the templates of a router, as the check of a template limits its work."""


@dataclass
class PolicyTemplate:
    """Configuration lines for a router, and the use of each input line."""

    text: str = ""
    policies: list[tuple[AttachedInterface, str, str]] = field(default_factory=list)
    """Attached policies: interface, direction, policy-map."""
    used: set[int] = field(default_factory=set)
    """Numbers of the input lines in the template."""
    refused: dict[int, str] = field(default_factory=dict)
    """Reasons by number of the omitted lines."""
    notes: list[str] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)
    """Bytes of encapsulation that the shapers, shares and policers of a policy-map count with each packet."""


def build_template(router: InputRouter, topology: Topology) -> PolicyTemplate:
    """Return the template of a router, without lines that its model refuses."""
    found = PolicyTemplate()
    blocks = {each.carrier: list(_interface_lines(router, each, found)) for each in router.attached}
    _attach_tunnel_policy(router, blocks, found)
    device = router.configuration.device
    for name, offset in found.counted.items():
        device = with_account_offset(device, name, offset)
    wanted = _policy_maps(device, [name for _, _, name in found.policies])
    maps = _class_maps(device, wanted)
    lines = [line for part in blocks.values() for _, line in part]
    text = _referenced_blocks(device, maps, wanted, lines, found)
    for each in router.attached:
        own = [line for _, line in blocks[each.carrier]]
        if own:
            inner = [f" pvc {CIRCUIT}", *(f"  {line}" for line in own)] if interface_kind(each.carrier) == "ATM" else []
            text += [f"interface {each.carrier}", *(inner or [f" {line}" for line in own]), "!"]
    found.text = _accepted_lines(router, topology, text, found)
    found.policies = [each for each in found.policies if f"service-policy {each[1]} {each[2]}" in found.text]
    _mark_used(router, found, wanted, maps)
    return found


def _interface_lines(
    router: InputRouter, attached: AttachedInterface, found: PolicyTemplate
) -> Iterator[tuple[int, str]]:
    """Yield the queueing lines of an interface and of the ports that carry it, with their numbers."""
    taken: dict[str, str] = {}
    for port in _interface_layers(router, attached):
        for number, text in port.lines.items():
            policy = re.fullmatch(r"service-policy (input|output) (\S+)", text)
            if policy is None:
                if _QUEUEING.match(text):
                    yield number, text
            elif policy[2] not in router.configuration.device.policy_maps:
                found.refused[number] = "the policy-map is not in the input"
            elif policy[1] in taken:
                found.refused[number] = f"{attached.carrier} has the policy of {taken[policy[1]]} in this direction"
            else:
                taken[policy[1]] = port.name
                found.policies.append((attached, policy[1], policy[2]))
                yield number, text


def _interface_layers(router: InputRouter, attached: AttachedInterface) -> list[ConfiguredPort]:
    """Return the interface, followed by its lower interfaces: members of a bundle, physical port of a subinterface."""
    ports = router.layout.ports
    port = ports.get(attached.port)
    if port is None:
        return []
    below = [ports[each] for each in (port.parent, attached.carrier) if each in ports]
    if port.kind == "Dialer":
        below = [*router.layout.member_interfaces(port)[:1], *below]
    return list({each.name: each for each in (port, *below)}.values())


def _attach_tunnel_policy(router: InputRouter, blocks: dict[str, list[tuple[int, str]]], found: PolicyTemplate) -> None:
    """Attach the policy of a tunnel to the port that carries it, if all packets of the port are in the tunnel."""
    tunnels = [each for each in router.layout.ports.values() if each.kind == "Tunnel" and not each.shutdown]
    encapsulated = find_tunnels(router.configuration)
    for port in tunnels:
        for number, direction, policy in _tunnel_policies(port, found):
            attached, reason = _carrier_of_tunnel(router, port, tunnels)
            if attached is not None and any(each[:2] == (attached, direction) for each in found.policies):
                reason = f"{attached.port} has another policy in this direction"
            if policy not in router.configuration.device.policy_maps:
                reason = "the policy-map is not in the input"
            if attached is None or reason:
                found.refused[number] = reason
                found.notes.append(f"{port.name}: service-policy {direction} {policy} is left out: {reason}")
                continue
            size = _count_encapsulation(router, found, (port.name, attached, direction, policy))
            found.policies.append((attached, direction, policy))
            blocks[attached.carrier].append((number, f"service-policy {direction} {policy}"))
            found.notes.append(
                f"{port.name}: service-policy {direction} {policy} is on {attached.carrier}, which carries the packets "
                f"of {port.name} alone; {size}"
            )
    _count_tunnel_bytes(router, encapsulated, found)


def _count_encapsulation(
    router: InputRouter, found: PolicyTemplate, place: tuple[str, AttachedInterface, str, str]
) -> str:
    """Let a policy count the bytes of the tunnels whose packets it handles; return a sentence on them.

    `place` is the interface on the device, the interface of the topology, direction and policy-map.
    """
    port, attached, direction, policy = place
    made = find_encapsulation(router.configuration, Attachment(port, direction, policy, 0))
    if made is None:
        return "not counted: the tunnel bytes"
    titles = format_list([f"{each.bytes_text} by {each.title}" for each in made.tunnels])
    added = f"the bytes that encapsulation adds to each packet ({titles})"
    capabilities = GENERATIONS[router.chassis.generation].capabilities
    if made.has_other_packets:
        return f"not counted: {added}, because the port also has other packets"
    if "max-reserved-bandwidth" in capabilities:
        return f"not counted: {added}, because the release has no `account`"
    offset = made.mean_bytes - (0 if made.is_below_tunnels else COUNTED_HEADER[attached.framing])
    offset = offset if INHERITED in capabilities else min(offset, MAX_ACCOUNTED_BYTES)
    device = router.configuration.device
    if any(set(_policy_maps(device, [policy])) & set(_policy_maps(device, [other])) for other in found.counted):
        return f"counted as in the other policies with the same policy-maps: {added}"
    found.counted[policy] = offset
    return f"`account user-defined {offset}` counts {added}, the mean over all lengths"


def _count_tunnel_bytes(router: InputRouter, tunnels: Sequence[Tunnel], found: PolicyTemplate) -> None:
    """Count the bytes of tunnels above a port, and note the classes that match inner headers here alone."""
    for attached, direction, policy in found.policies:
        own = f"service-policy {direction} {policy}" in router.layout.ports[attached.port].lines.values()
        above = find_encapsulation(router.configuration, Attachment(attached.port, direction, policy, 0))
        if own and above is not None:
            size = _count_encapsulation(router, found, (attached.port, attached, direction, policy))
            found.notes.append(f"{attached.port}: {size}")
        for tunnel in tunnels:
            if direction != "output" or not own or tunnel.source != attached.port or tunnel.pre_classify:
                continue
            if names := hidden_classes(router.configuration, policy):
                one = len(names) == 1
                found.notes.append(
                    f"{attached.port}: {'class' if one else 'classes'} {format_list(names)} {'sees' if one else 'see'} "
                    f"the packets of {tunnel.name} encapsulated on the device, because qos pre-classify is missing "
                    f"there; the topology has no tunnel, so the {'class matches' if one else 'classes match'}"
                )


def _tunnel_policies(port: ConfiguredPort, found: PolicyTemplate) -> Iterator[tuple[int, str, str]]:
    """Yield line, direction and name of the policies of a tunnel; only the first of the policies for groups of
    spokes.
    """
    for direction, policy in port.policies.items():
        yield port.line_number(f"service-policy {direction}"), direction, policy
    groups = [(number, match) for number, text in port.lines.items() if (match := _SPOKES.fullmatch(text))]
    if not groups or "output" in port.policies:
        return
    number, first = groups[0]
    found.notes.append(
        f"{port.name}: the policy {first['policy']} of a spoke in group {first['group']} represents the tunnel; the "
        f"device has one such policy for each spoke"
    )
    for other, match in groups[1:]:
        found.refused[other] = f"the topology has one spoke, in group {first['group']}"
        found.notes.append(f"{port.name}: the policy {match['policy']} of group {match['group']} is left out")
    yield number, "output", first["policy"]


def _carrier_of_tunnel(
    router: InputRouter, tunnel: ConfiguredPort, tunnels: list[ConfiguredPort]
) -> tuple[AttachedInterface | None, str]:
    """Return the interface that carries only the packets of a tunnel, or None and the reason."""
    from qoslab.exchange.routers.show_values import full_interface_name

    source = full_interface_name(tunnel.last_match(r"tunnel source (\S.*)") or "")
    ports = router.layout.ports
    address = tunnel.last_match(r"tunnel source (\d+\.\S+)")
    if address is not None:
        source = next((each.name for each in ports.values() if each.address and str(each.address.ip) == address), "")
    attached = router.find_attached_interface(source)
    if attached is None:
        return None, f"the tunnel's source {source or '?'} is not an interface of the topology"
    if sum(full_interface_name(each.last_match(r"tunnel source (\S.*)") or "") == source for each in tunnels) > 1:
        return None, f"several tunnels share {source}, and the policy is for the packets of one"
    if source in ports and ports[source].last_match(r"ip nat outside"):
        return None, f"{source} also carries packets outside the tunnel (ip nat outside)"
    return attached, ""


def _policy_maps(device: Device, names: list[str]) -> list[str]:
    """Return the policy-maps and all their child policy-maps."""
    found: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        policy = device.policy_maps.get(name)
        if policy is not None and name not in found:
            found.append(name)
            waiting += [each.service_policy for each in policy.classes if each.service_policy]
    return found


def _class_maps(device: Device, policies: list[str]) -> list[str]:
    found: list[str] = []
    waiting = [each.name for name in policies for each in device.policy_maps[name].classes]
    while waiting:
        name = waiting.pop()
        if name in device.class_maps and name not in found and name != CLASS_DEFAULT:
            found.append(name)
            criteria = device.class_maps[name].criteria
            waiting += [each.name for each in criteria if each.type == "class_map" and each.name]
    return found


def _omit_long_access_lists(lists: Sequence[Sequence[str]], found: PolicyTemplate) -> list[Sequence[str]]:
    """Omit the longest access lists if all together exceed the size limit of an experiment."""
    kept = list(lists)
    while sum(len(line) + 1 for block in kept for line in block) > MAX_ACCESS_LIST_CHARACTERS:
        longest = max(kept, key=lambda block: sum(map(len, block)))
        kept.remove(longest)
        found.notes.append(f"left out: {longest[0]}: it has {len(longest)} lines, too many for a template")
    return kept


def _referenced_blocks(
    device: Device, maps: list[str], policies: list[str], lines: list[str], found: PolicyTemplate
) -> list[str]:
    """Return the blocks of the configuration that policies and interfaces refer to."""
    device = _drop_missing_policies(device)
    every = [block for blocks in BLOCKS.family_functions(device.hardware.family) for block in blocks(device) if block]
    chosen = [
        block
        for block in every
        if (block[0].startswith("class-map ") and block[0].split()[-1] in maps)
        or (block[0].startswith("policy-map ") and block[0].split()[-1] in policies)
        or (
            block[0].startswith(_LISTS)
            and any(each.startswith(("priority-group", "custom-", "rate-limit")) for each in lines)
        )
    ]
    words = {word for block in chosen for line in block for word in line.split()} | {
        w for x in lines for w in x.split()
    }
    lists = [
        block for block in every if re.match(r"(?:ip(?:v6)? )?access-list ", block[0]) and _block_names(block, words)
    ]
    words |= {word for block in lists for line in block for word in line.split()}
    lists = _omit_long_access_lists(lists, found)
    groups = [block for block in every if block[0].startswith("object-group ") and block[0].split()[-1] in words]
    return [line for block in (*groups, *lists, *chosen) for line in (*block, "!")]


def _drop_missing_policies(device: Device) -> Device:
    """Return a device with only the policies, and without child policies that are missing in the input."""
    policies = {}
    for name, policy in device.policy_maps.items():
        known = (each.service_policy in (None, *device.policy_maps) for each in policy.classes)
        classes = (
            each if fits else replace(each, service_policy=None)
            for each, fits in zip(policy.classes, known, strict=True)
        )
        policies[name] = replace(policy, classes=tuple(classes))
    return Device(
        replace(device.hardware, interfaces=()),
        class_maps=device.class_maps,
        policy_maps=policies,
        table_maps=device.table_maps,
        access_lists=device.access_lists,
        object_groups=device.object_groups,
        rate_limit_lists=device.rate_limit_lists,
        priority_lists=device.priority_lists,
        queue_lists=device.queue_lists,
    )


def _block_names(block: Sequence[str], words: set[str]) -> bool:
    parts = block[0].split()
    if parts[0] == "access-list":
        return parts[1] in words
    return parts[-1] in words


def _accepted_lines(router: InputRouter, topology: Topology, lines: list[str], found: PolicyTemplate) -> str:
    """Return the lines that the router of the topology accepts, and record the others."""
    chassis = router_hardware(topology, router.name)
    base = startup_config(topology, router.name, LOGIN)
    reading = read_into(parse_config(base, chassis), "\n".join(lines))
    for each in reading.unread:
        if is_refusal(each.reason) or each.place:
            found.notes.append(f"left out: {' / '.join((*each.place, each.text))}: {each.reason.removeprefix('% ')}")
    unread = {each.number for each in reading.unread}
    kept = [line for number, line in enumerate(lines, 1) if number not in unread]
    for _ in range(_MAX_REFUSED_LINES):
        try:
            apply_config(parse_config(base, chassis), "\n".join(kept))
        except RefusedLineError as refusal:
            message = " ".join(each.strip() for each in refusal.refusal.render() if each.strip(" ^"))
            found.notes.append(f"left out: {kept[refusal.number - 1].strip()}: {message.removeprefix('% ')}")
            del kept[refusal.number - 1]
        else:
            break
    return remove_secrets("\n".join(kept)) + "\n" if kept else ""


def _mark_used(router: InputRouter, found: PolicyTemplate, policies: list[str], maps: list[str]) -> None:
    """Record the input lines that are in the template."""
    words = set(found.text.split())
    for each in router.configuration.reading.executed:
        mode, names = each.position.mode, each.position.names
        root = mode.split("-")[0]
        if (
            (root in ("policy", "police") and names and names[0] in policies)
            or (mode == "class-map" and names and names[0] in maps)
            or (mode.endswith("acl") and names and names[0] in words)
            or (root == "object" and names and names[-1] in words)
            or (each.text.startswith("access-list ") and each.text.split()[1] in words)
        ):
            found.used.add(each.number)
    for attached in router.attached:
        for port in _interface_layers(router, attached):
            for number, text in port.lines.items():
                queueing = _QUEUEING.match(text) or re.match(r"service-policy (input|output) ", text)
                if queueing and text in found.text and number not in found.refused:
                    found.used.add(number)


__all__ = ["PolicyTemplate", "build_template"]
