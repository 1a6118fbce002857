"""The running configuration as IOS prints it: canonical text in IOS order, for both generations.

One blank for each level, full interface names, `!` only between blocks; the order of entry does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import groupby

from qoslab.ios.catalyst.running_config import policing_lines, qos_lines, queueing_lines, switching_lines, vlan_blocks
from qoslab.ios.model.device import (
    ANY_ADDRESS,
    AccessEntry,
    AccessList,
    AddressMatch,
    Device,
    Interface,
    InterfaceFairQueue,
    Line,
    PortMatch,
    Remark,
    StaticRoute,
)
from qoslab.ios.model.ip_sla import DEFAULT_LIFE_S, MONTHS, Operation, Schedule
from qoslab.ios.model.names import PRECEDENCE_NAMES, dscp_text, spaced
from qoslab.ios.model.policy import (
    COLOURS,
    Amount,
    ClassMap,
    Criterion,
    DynamicBucket,
    Mark,
    Police,
    PoliceAction,
    PolicyClass,
    PolicyMap,
)
from qoslab.ios.model.ports import ICMP, icmp_text, port_text, protocol_text


def render(device: Device) -> str:
    """Return the configuration that `show running-config` prints below its heading, from `version` to `end`."""
    return "!\n" + "".join("\n".join(block) + "\n!\n" for block in _global_blocks(device) if block) + "end\n"


def render_interface(device: Device, name: str) -> str:
    """Return the block of one interface, as `show running-config interface X` prints it between `!` and `end`."""
    return "\n".join(interface_block(device, device.interfaces[name])) + "\n"


def _global_blocks(device: Device) -> Iterator[list[str]]:
    yield [
        f"version {device.hardware.version}",
        *(f"service timestamps {kind} {device.timestamps[kind]}" for kind in sorted(device.timestamps)),
    ]
    yield [f"hostname {device.hostname}"]
    yield _logging(device)
    yield _ip_services(device)
    yield [_user(device, name) for name in sorted(device.users)]
    if device.switch is not None:
        yield list(qos_lines(device.switch))
        yield from vlan_blocks(device.switch)
    for class_name in class_order(device):
        yield class_map_block(device.class_maps[class_name])
    for policy_name in policy_order(device):
        yield policy_map_block(device, device.policy_maps[policy_name])
    for interface in device.interfaces.values():
        yield interface_block(device, interface)
    yield [*(["no ip classless"] if not device.ip_classless else []), *(route_line(route) for route in device.routes)]
    for access_list in access_list_order(device):
        yield access_list_block(access_list)
    yield from ip_sla_blocks(device)
    if device.banner_motd is not None:
        yield f"banner motd ^C{device.banner_motd}^C".split("\n")
    yield [text for lines in line_groups(device) for text in line_block(lines)]


def _logging(device: Device) -> list[str]:
    lines = [] if device.logging_buffered is None else [f"logging buffered {device.logging_buffered}"]
    if not device.logging_console:
        lines.append("no logging console")
    if device.enable_secret is not None:
        lines.append(f"enable secret {device.enable_secret.kind} {device.enable_secret.text}")
    return lines


def _ip_services(device: Device) -> list[str]:
    lines = [] if device.ip_subnet_zero else ["no ip subnet-zero"]
    if device.switch is not None:
        lines.append("ip routing")
    else:
        lines.append("ip cef" if device.ip_cef else "no ip cef")
    if not device.domain_lookup:
        lines.append("no ip domain lookup")
    if device.domain_name is not None:
        lines.append(f"ip domain name {device.domain_name}")
    return lines


def _user(device: Device, name: str) -> str:
    user = device.users[name]
    level = "" if user.privilege is None else f" privilege {user.privilege}"
    secret = "" if user.secret is None else f" secret {user.secret.kind} {user.secret.text}"
    return f"username {name}{level}{secret}"


# Class-maps and policy-maps: whatever another one refers to comes first, else by name.


def class_order(device: Device) -> list[str]:
    """Return the names of the class-maps in the order of the running configuration."""
    return _ordered(
        {
            name: [c.name for c in each.criteria if c.type == "class_map" and c.name is not None]
            for name, each in device.class_maps.items()
        }
    )


def policy_order(device: Device) -> list[str]:
    """Return the names of the policy-maps in the order of the running configuration."""
    return _ordered(
        {
            name: [c.service_policy for c in each.classes if c.service_policy is not None]
            for name, each in device.policy_maps.items()
        }
    )


def _ordered(needs: dict[str, list[str]]) -> list[str]:
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


def class_map_block(class_map: ClassMap) -> list[str]:
    """Return the lines of one class-map."""
    lines = [f"class-map match-{class_map.match} {class_map.name}"]
    if class_map.description is not None:
        lines.append(f"  description {class_map.description}")
    return lines + [f" {match_line(criterion)}" for criterion in class_map.criteria]


def match_line(criterion: Criterion) -> str:
    """Return the `match` line of a criterion."""
    ip = "ip " if criterion.ip_only else ""
    match criterion.type:
        case "access_group":
            text = f"access-group {_group(criterion.name or '')}"
        case "dscp":
            text = f"{ip}dscp {spaced(map(dscp_text, criterion.values))}"
        case "precedence" | "cos" | "qos_group":
            text = f"{ip}{criterion.type.replace('_', '-')} {spaced(criterion.values)}"
        case "packet_length":
            text = f"packet length{_limits(criterion)}"
        case "protocol" | "input_interface" | "class_map":
            text = f"{criterion.type.replace('_', '-')} {criterion.name}"
        case "any":
            text = "any"
    return f"match {'not ' if criterion.negate else ''}{text}"


def _group(name: str) -> str:
    return name if name.isdigit() else f"name {name}"


def _limits(criterion: Criterion) -> str:
    low = "" if criterion.minimum is None else f" min {criterion.minimum}"
    return low if criterion.maximum is None else f"{low} max {criterion.maximum}"


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

    Later software indents queueing actions and `police` by four blanks, and `random-detect` by five. A policer whose
    actions are on lines of their own has three in both: it stands where no line before or behind it seems to be
    below the other, since clients take a configuration apart by indentation.
    """
    if device.switch is not None:
        return [*(f"  {line}" for line in policing_lines(each)), *(f"  set {_mark(mark)}" for mark in each.marks)]
    hqf = device.generation == "hqf"
    deep = "    " if hqf else "  "
    police = [] if each.police is None else police_lines(each.police, deep)
    alone = each.police is not None and any(each.police.actions(colour) for colour in COLOURS)
    lines: list[str] = police if alone and not hqf else []
    if each.priority is not None:
        lines.append(deep + _priority(each))
    if each.bandwidth is not None:
        lines.append(deep + _bandwidth(each))
    if each.shape is not None:
        amounts = "".join(f" {_burst(amount)}" for amount in (each.shape.bc, each.shape.be) if amount is not None)
        lines.append(f"{deep}shape {each.shape.mode} {_rate(each.shape.rate)}{amounts}")
    if not alone:
        lines += police
    if each.queue_limit is not None:
        lines.append(f"{deep}queue-limit {each.queue_limit}{' packets' if hqf else ''}")
    if each.fair_queue is not None:
        lines.append(f"{deep}fair-queue{'' if each.fair_queue.queues is None else f' {each.fair_queue.queues}'}")
    if each.random_detect is not None:
        lines += _random_detect(each, deep + " " if hqf else deep)
    if alone and hqf:
        lines += police
    lines += [f"  set {_mark(mark)}" for mark in each.marks]
    if each.service_policy is not None:
        lines.append(f"  service-policy {each.service_policy}")
    return lines


def police_lines(police: Police, indent: str) -> list[str]:
    """Return the lines of a policer; actions have a line each and then it is indented by three blanks."""
    text = {
        "bps": lambda: f"police {police.cir.number}{_optional('', police.bc)}{_optional('', police.be)}",
        "cir": lambda: (
            f"police cir {_rate(police.cir)}{_optional(' bc', police.bc)}"
            f"{_optional(' pir', police.pir)}{_optional(' be', police.be)}"
        ),
        "rate": lambda: (
            f"police rate {_rate(police.cir)}{_optional(' burst', police.bc)}"
            f"{_optional(' peak-rate', police.pir)}{_optional(' peak-burst', police.be)}"
        ),
    }[police.form]()
    actions = [
        f"     {colour}-action {_action(action)}" for colour in COLOURS for action in police.actions(colour) or ()
    ]
    indent = "   " if actions else indent
    lines = [indent + text, *actions]
    return lines if police.dynamic is None else [*lines, indent + _dynamic_bucket(police.dynamic)]


DYNAMIC_BUCKET = "qoslab-extension police dynamic-bucket"
"""No IOS has this line."""
DYNAMIC_BUCKET_WORDS = {
    "initial_bytes": "initial",
    "minimum_bytes": "minimum",
    "maximum_bytes": "maximum",
    "monitoring_ms": "monitoring",
    "idle_ms": "idle",
    "first_growth_percent": "first-growth",
    "first_growths": "first-growths",
    "growth_percent": "growth",
    "shrink_percent": "shrink",
    "spare_percent": "spare",
}
"""The words of that line by the field that each sets, in their order."""


def _dynamic_bucket(dynamic: DynamicBucket) -> str:
    given = ((word, getattr(dynamic, name)) for name, word in DYNAMIC_BUCKET_WORDS.items())
    return " ".join([DYNAMIC_BUCKET, *(f"{word} {value}" for word, value in given if value is not None)])


def _optional(word: str, amount: Amount | None) -> str:
    if amount is None:
        return ""
    return f"{word} {_rate(amount)}" if amount.unit in ("bps", "percent") else f"{word} {_burst(amount)}"


def _rate(amount: Amount) -> str:
    return f"percent {amount.number}" if amount.unit == "percent" else str(amount.number)


def _burst(amount: Amount) -> str:
    return f"{amount.number} ms" if amount.unit == "ms" else str(amount.number)


def _action(action: PoliceAction) -> str:
    if action.value is None:
        return action.action
    text = dscp_text(action.value) if action.action == "set-dscp-transmit" else str(action.value)
    return f"{action.action} {text}"


def _mark(mark: Mark) -> str:
    name = mark.field.replace("ip_", "ip ").replace("_", "-")
    return f"{name} {dscp_text(mark.value) if mark.field in ('dscp', 'ip_dscp') else mark.value}"


def _priority(each: PolicyClass) -> str:
    priority = each.priority
    assert priority is not None
    level = "" if priority.level is None else f" level {priority.level}"
    rate = {"strict": "", "kbps": f" {priority.number}", "percent": f" percent {priority.number}"}[priority.unit]
    return f"priority{level}{rate}{'' if priority.burst_bytes is None else f' {priority.burst_bytes}'}"


def _bandwidth(each: PolicyClass) -> str:
    bandwidth = each.bandwidth
    assert bandwidth is not None
    words = {"kbps": "", "percent": " percent", "remaining_percent": " remaining percent"}
    return f"bandwidth{words.get(bandwidth.unit, ' remaining ratio')} {bandwidth.number}"


def _random_detect(each: PolicyClass, indent: str) -> list[str]:
    red = each.random_detect
    assert red is not None
    lines = ["random-detect dscp-based" if red.basis == "dscp" else "random-detect"]
    if red.exponential_weight is not None:
        lines.append(f"random-detect exponential-weighting-constant {red.exponential_weight}")
    for value, limits in red.thresholds:
        name = dscp_text(value) if red.basis == "dscp" else str(value)
        probability = "" if limits.denominator is None else f" {limits.denominator}"
        lines.append(f"random-detect {red.basis} {name} {limits.minimum} {limits.maximum}{probability}")
    return [indent + line for line in lines]


# Interfaces.


def interface_block(device: Device, interface: Interface) -> list[str]:
    """Return the lines of one interface."""
    return [f"interface {interface.name}", *(f" {line}" for line in interface_lines(interface))]


def interface_lines(interface: Interface) -> Iterator[str]:
    """Yield the lines below `interface NAME`, without indentation."""
    if interface.description is not None:
        yield f"description {interface.description}"
    if interface.port is not None:
        yield from switching_lines(interface.port)
    if interface.bandwidth_kbps is not None:
        yield f"bandwidth {interface.bandwidth_kbps}"
    for address in interface.secondary_addresses:
        yield f"ip address {address.ip} {address.netmask} secondary"
    if interface.address is not None:
        yield f"ip address {interface.address.ip} {interface.address.netmask}"
    elif not interface.secondary_addresses and (interface.port is None or not interface.port.switched):
        yield "no ip address"
    if interface.encapsulation is not None:
        yield f"encapsulation {interface.encapsulation}"
    if interface.load_interval_s is not None:
        yield f"load-interval {interface.load_interval_s}"
    if interface.shutdown:
        yield "shutdown"
    yield from _line_speed(interface)
    if interface.tx_ring_limit is not None:
        yield f"tx-ring-limit {interface.tx_ring_limit}"
    if interface.fair_queue is not None:
        yield _interface_fair_queue(interface.fair_queue)
    if not interface.keepalive:
        yield "no keepalive"
    if interface.clock_rate_bps is not None:
        yield f"clock rate {interface.clock_rate_bps}"
    if interface.max_reserved_bandwidth is not None:
        yield f"max-reserved-bandwidth {interface.max_reserved_bandwidth}"
    if interface.port is not None:
        yield from queueing_lines(interface.port)
    if interface.service_policy_input is not None:
        yield f"service-policy input {interface.service_policy_input}"
    if interface.service_policy_output is not None:
        yield f"service-policy output {interface.service_policy_output}"
    if interface.hold_queue_in is not None:
        yield f"hold-queue {interface.hold_queue_in} in"
    if interface.hold_queue_out is not None:
        yield f"hold-queue {interface.hold_queue_out} out"


def _line_speed(interface: Interface) -> Iterator[str]:
    if interface.port is None:
        if not interface.serial:
            yield f"duplex {interface.duplex}"
            yield f"speed {interface.speed}"
        return
    # A switch prints what is forced only.
    if interface.speed != "auto":
        yield f"speed {interface.speed}"
    if interface.duplex != "auto":
        yield f"duplex {interface.duplex}"


def _interface_fair_queue(fair_queue: InterfaceFairQueue) -> str:
    if not fair_queue.enabled:
        return "no fair-queue"
    figures = (fair_queue.discard_threshold, fair_queue.dynamic_queues, fair_queue.reserved_queues)
    return " ".join(["fair-queue", *(str(figure) for figure in figures if figure is not None)])


def route_line(route: StaticRoute) -> str:
    """Return the `ip route` line of a static route."""
    parts = [route.prefix.network_address, route.prefix.netmask, route.interface, route.next_hop, route.distance]
    return "ip route " + spaced(part for part in parts if part is not None)


# Access lists: named ones before numbered ones.


def access_list_order(device: Device) -> list[AccessList]:
    """Return the access lists in the order of the running configuration."""
    return sorted(
        device.access_lists.values(),
        key=lambda each: (each.numbered, int(each.name) if each.numbered else 0, each.kind != "standard", each.name),
    )


def access_list_block(access_list: AccessList) -> list[str]:
    """Return the lines of one access list."""
    texts = [access_line(access_list, line) for line in access_list.lines]
    if access_list.numbered and texts:
        return [f"access-list {access_list.name} {text}" for text in texts]
    return [f"ip access-list {access_list.kind} {access_list.name}", *(f" {text}" for text in texts)]


def access_line(access_list: AccessList, line: AccessEntry | Remark) -> str:
    """Return one entry or remark, without the list's name."""
    if isinstance(line, Remark):
        return f"remark {line.text}"
    if access_list.kind == "standard":
        source = _standard_source(line.source)
        return f"{line.action} {source}{' log' if line.log else ''}"
    words = [line.action, protocol_text(line.protocol), _extended_address(line.source)]
    words += _ports(line, line.source_port)
    words.append(_extended_address(line.destination))
    words += _ports(line, line.destination_port)
    if line.protocol == ICMP and line.icmp_type is not None:
        words.append(icmp_text(line.icmp_type, line.icmp_code))
    if line.established:
        words.append("established")
    if line.dscp is not None:
        words.append(f"dscp {dscp_text(line.dscp)}")
    if line.precedence is not None:
        words.append(f"precedence {PRECEDENCE_NAMES[line.precedence]}")
    words += [word for word, given in (("fragments", line.fragments), ("log", line.log)) if given]
    return " ".join(words)


def _standard_source(match: AddressMatch) -> str:
    if match == ANY_ADDRESS:
        return "any"
    return f"{match.address}" if int(match.wildcard) == 0 else f"{match.address} {match.wildcard}"


def _extended_address(match: AddressMatch) -> str:
    if match == ANY_ADDRESS:
        return "any"
    return f"host {match.address}" if int(match.wildcard) == 0 else f"{match.address} {match.wildcard}"


def _ports(line: AccessEntry, match: PortMatch | None) -> list[str]:
    return [] if match is None else [match.op, *(port_text(line.protocol, port) for port in match.ports)]


# IP SLA: the responder, then each operation with its schedule.


def ip_sla_blocks(device: Device) -> Iterator[list[str]]:
    """Yield the blocks of IP SLA."""
    sla = device.ip_sla
    yield [
        *(["ip sla responder"] if sla.responder else []),
        *(f"ip sla responder udp-echo port {port}" for port in sla.responder_ports),
    ]
    for number in sorted(sla.operations):
        block = [f"ip sla {number}", *(f" {line}" for line in operation_lines(sla.operations[number]))]
        schedule = sla.schedules.get(number)
        yield block if schedule is None else [*block, schedule_line(schedule)]


def operation_lines(operation: Operation) -> Iterator[str]:
    """Yield the lines below `ip sla N`, without indentation."""
    if operation.kind is None:
        return
    words: list[object] = [operation.kind, operation.target]
    options: tuple[tuple[str, object], ...] = (
        ("", operation.target_port),
        ("source-ip", operation.source),
        ("source-interface", operation.source_interface),
        ("source-port", operation.source_port),
        ("control", None if operation.control else "disable"),
        ("num-packets", operation.packets),
        ("interval", operation.interval_ms),
    )
    for name, value in options:
        words += [word for word in (name, value) if word != ""] if value is not None else []
    yield spaced(words)
    settings: tuple[tuple[str, object], ...] = (
        ("request-data-size", operation.request_data_size),
        ("timeout", operation.timeout_ms),
        ("tos", operation.tos),
        ("tag", operation.tag),
        ("owner", operation.owner),
        ("threshold", operation.threshold_ms),
        ("frequency", operation.frequency_s),
        ("history hours-of-statistics-kept", operation.hours),
        ("history distributions-of-statistics-kept", operation.buckets),
        ("history statistics-distribution-interval", operation.bucket_ms),
    )
    yield from (f"{name} {value}" for name, value in settings if value is not None)


def schedule_line(schedule: Schedule) -> str:
    """Return the `ip sla schedule` line."""
    words = [f"ip sla schedule {schedule.number}"]
    if schedule.life_s is None:
        words.append("life forever")
    elif schedule.life_s != DEFAULT_LIFE_S:
        words.append(f"life {schedule.life_s}")
    start = schedule.start
    clock = f"{start.seconds // 3600:02}:{start.seconds // 60 % 60:02}:{start.seconds % 60:02}"
    match start.kind:
        case "now":
            words.append("start-time now")
        case "after":
            words.append(f"start-time after {clock}")
        case "at":
            date = "" if start.date is None else f" {MONTHS[start.date[0] - 1]} {start.date[1]}"
            words.append(f"start-time {clock}{date}")
        case "pending":
            pass
    if schedule.ageout_s:
        words.append(f"ageout {schedule.ageout_s}")
    if schedule.recurring:
        words.append("recurring")
    return " ".join(words)


# Terminal lines: neighbours with the same settings are printed together, as `line vty 0 4`.


def line_groups(device: Device) -> list[list[Line]]:
    """Return the terminal lines in order, those that are printed as one block together."""
    rank = {"con": 0, "aux": 1, "vty": 2}
    ordered = sorted(device.lines.values(), key=lambda line: (rank[line.kind], line.number))
    return [list(group) for _, group in groupby(ordered, key=lambda line: (line.kind, line_settings(line)))]


def line_block(lines: list[Line]) -> list[str]:
    """Return the block of a group of lines."""
    first, last = lines[0], lines[-1]
    heading = f"line {first.name}" if len(lines) == 1 else f"line {first.name} {last.number}"
    return [heading, *(f" {text}" for text in line_settings(first))]


def line_settings(line: Line) -> tuple[str, ...]:
    """Return the lines below `line ...`, without indentation."""
    login = line.login or ("password" if line.kind == "vty" else "none")
    texts = [] if line.exec_timeout is None else [f"exec-timeout {line.exec_timeout[0]} {line.exec_timeout[1]}"]
    if line.privilege is not None:
        texts.append(f"privilege level {line.privilege}")
    if line.password is not None:
        texts.append(f"password {line.password}")
    if line.logging_synchronous:
        texts.append("logging synchronous")
    if login == "local":
        texts.append("login local")
    elif login == "password":
        texts.append("login")
    elif line.kind == "vty":
        texts.append("no login")
    if line.transport_input is not None:
        texts.append(f"transport input {spaced(line.transport_input)}")
    return tuple(texts)
