"""IP SLA configuration: operations, their schedules, the responder.

Modes and ranges: CISCO-RTTMON-MIB and Cisco's "IP SLAs ICMP Jitter Operations"; the prompts of the UDP operations and
the wording of the refusals are from memory, not from an output. Echo and UDP jitter operations accept IPv6
addresses from 12.4(20)T on, the first release with HQF [C: IP SLAs Command Reference, icmp-echo]; ICMP jitter does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    collapse_addresses,
)
from typing import cast

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.ios_names import address_text, ipv6_text, join_with_blanks
from qoslab.ios.model.ip_sla import (
    DEFAULT_FREQUENCY_S,
    DEFAULT_LIFE_S,
    DEFAULT_TIMEOUT_MS,
    MONTHS,
    REQUEST_SIZES,
    IpSla,
    Kind,
    Operation,
    Schedule,
    Start,
)
from qoslab.ios.registry import BLOCKS, ENGINE
from qoslab.system import program_formats

NO_TYPE = "sla"
MODES_OF: dict[Kind, str] = {
    "icmp-echo": "sla-icmp-echo",
    "icmp-jitter": "sla-icmp-jitter",
    "udp-echo": "sla-udp-echo",
    "udp-jitter": "sla-udp-jitter",
}
DEFINED = tuple(MODES_OF.values())
SIZED = ("sla-icmp-echo", "sla-udp-echo", "sla-udp-jitter")

RUNNING = (
    "Entry already running and cannot be modified\n"
    "        (only can delete (no) and start over)\n"
    "        (check to see if the probe has finished exiting)"
)
NOT_CONFIGURED = "%Entry not configured"
BAD_FREQUENCY = "%Illegal Value: Cannot set Frequency to be less than Timeout"
BAD_TIMEOUT = "%Illegal Value: Cannot set Timeout to be greater than Frequency"
ONLY_IPV4 = "%Illegal Value: tos is for IPv4 operations, traffic-class for IPv6"
ONLY_IPV6 = "%Illegal Value: traffic-class is for IPv6 operations, tos for IPv4"
LINK_LOCAL = "%Illegal Value: {address} is link-local; an operation needs an address of wider scope"
BAD_SIZE = "%Illegal Value: request data size must be {low} to {high}"

_IP_SLA = {
    "ip": "Global IP configuration subcommands",
    "sla": "IP Service Level Agreement",
    "monitor": "Syntax of releases before 12.4(4)T",
    "number": "Entry Number",
}


@router_command(
    "config",
    "ip sla <number:1-2147483647>",
    no="ip sla <number:1-2147483647>",
    undo=Undo(needs_removal=True),
    help=_IP_SLA,
)
@router_command(
    "config",
    "ip sla monitor <number:1-2147483647>",
    no="ip sla monitor <number:1-2147483647>",
    undo=Undo(line="ip sla <number:1-2147483647>", needs_removal=True),
    help=_IP_SLA,
)
def _configure_ip_sla(session: ConfigSession, args: Args) -> None:
    sla, number = session.device.ip_sla, args.value("number", int)
    if args.unset:
        sla.operations.pop(number, None)
        sla.schedules.pop(number, None)
        return
    if number in sla.schedules:
        raise RejectedError(RUNNING)
    operation = sla.operations.setdefault(number, Operation(number))
    session.enter(NO_TYPE if operation.kind is None else MODES_OF[operation.kind], str(number))


def _current_operation(session: ConfigSession) -> Operation:
    number = int(session.position.names[-1])
    found = session.device.ip_sla.operations.get(number)
    if found is None:
        # Another session has removed the operation.
        raise RejectedError(NOT_CONFIGURED)
    if number in session.device.ip_sla.schedules:
        raise RejectedError(RUNNING)
    return found


def _store_operation(session: ConfigSession, operation: Operation) -> None:
    session.device.ip_sla.operations[operation.number] = operation


_TYPE_HELP = {
    "icmp-echo": "ICMP Echo Operation",
    "icmp-jitter": "ICMP Jitter Operation",
    "udp-echo": "UDP Echo Operation",
    "udp-jitter": "UDP Jitter Operation",
    "target": "Destination IP address",
    "port": "Port Number",
    "source-ip": "Source Address",
    "source": "IP address",
    "source-interface": "Source Interface (ingress icmp packet interface)",
    "interface": "Interface",
    "source-port": "Source Port",
    "from": "Port Number",
    "control": "Enable or disable control packets",
    "enable": "Enable control packets exchange (default)",
    "disable": "Disable control packets exchange",
    "num-packets": "Number of packets to be transmitted",
    "packets": "Number of packets",
    "interval": "Inter Packet Interval",
    "milliseconds": "Milliseconds",
}
_SOURCE = "[source-ip <source:address>]"
_UDP = f"{_SOURCE} [source-port <from:1-65535>] [control (enable|disable)]"
_BURST = "[num-packets <packets:1-60000>] [interval <milliseconds:4-60000>]"
_ECHO_SOURCE = "[source-ip <source:address>|source-interface <interface:interface>]"


_SOURCE6 = "[source-ip <source:ipv6-address>]"
_UDP6 = f"<target:ipv6-address> <port:1-65535> {_SOURCE6} [source-port <from:1-65535>] [control (enable|disable)]"
_ECHO_SOURCE6 = "[source-ip <source:ipv6-address>|source-interface <interface:interface>]"


@CONFIG.add(NO_TYPE, f"icmp-echo <target:address> {_ECHO_SOURCE}", help=_TYPE_HELP)
@CONFIG.add(NO_TYPE, f"icmp-jitter <target:address> {_SOURCE} {_BURST}", help=_TYPE_HELP)
@CONFIG.add(NO_TYPE, f"udp-echo <target:address> <port:1-65535> {_UDP}", help=_TYPE_HELP)
@CONFIG.add(NO_TYPE, f"udp-jitter <target:address> <port:1-65535> {_UDP} {_BURST}", help=_TYPE_HELP)
def _configure_type(session: ConfigSession, args: Args) -> None:
    _define(session, args, IPv4Address)


@CONFIG.add(NO_TYPE, f"icmp-echo <target:ipv6-address> {_ECHO_SOURCE6}", requires={"ip-sla-ipv6"}, help=_TYPE_HELP)
@CONFIG.add(NO_TYPE, f"udp-echo {_UDP6}", requires={"ip-sla-ipv6"}, help=_TYPE_HELP)
@CONFIG.add(NO_TYPE, f"udp-jitter {_UDP6} {_BURST}", requires={"ip-sla-ipv6"}, help=_TYPE_HELP)
def _configure_type_ipv6(session: ConfigSession, args: Args) -> None:
    for address in (*args.values("target", IPv6Address), *args.values("source", IPv6Address)):
        if address.is_link_local:
            raise RejectedError(LINK_LOCAL.format(address=ipv6_text(address)))
    _define(session, args, IPv6Address)


_MONITOR_KINDS: dict[str, Kind] = {"echo": "icmp-echo", "udpEcho": "udp-echo", "jitter": "udp-jitter"}
_MONITOR_HELP = {
    **_TYPE_HELP,
    "type": "Type of entry",
    "echo": "Echo Operation",
    "protocol": "Protocol Designator",
    "ipIcmpEcho": "Use IP/ICMP",
    "udpEcho": "UDP Echo Operation",
    "jitter": "Jitter Operation",
    "dest-ipaddr": "Destination IP address",
    "dest-port": "Destination port number",
    "source-ipaddr": "Source address",
}
_MONITOR_UDP = (
    "dest-ipaddr <target:address> dest-port <port:1-65535> [source-ipaddr <source:address>]"
    " [source-port <from:1-65535>] [control (enable|disable)]"
)


@CONFIG.add(
    NO_TYPE,
    "type echo protocol ipIcmpEcho <target:address>"
    " [source-ipaddr <source:address>|source-interface <interface:interface>]",
    help=_MONITOR_HELP,
)
@CONFIG.add(NO_TYPE, f"type udpEcho {_MONITOR_UDP}", help=_MONITOR_HELP)
@CONFIG.add(NO_TYPE, f"type jitter {_MONITOR_UDP} {_BURST}", help=_MONITOR_HELP)
def _configure_monitor_type(session: ConfigSession, args: Args) -> None:
    _define(session, args, IPv4Address)


def _define(session: ConfigSession, args: Args, family: type[IPv4Address] | type[IPv6Address]) -> None:
    operation = _current_operation(session)
    kind = _MONITOR_KINDS[args.keywords[1]] if "type" in args else cast(Kind, args.keywords[0])
    interface = args.optional("interface", str)
    if interface is not None and interface not in session.device.interfaces:
        raise args.invalid_argument("interface")
    _store_operation(
        session,
        replace(
            operation,
            kind=kind,
            target=args.value("target", family),
            target_port=args.optional("port", int),
            source=args.optional("source", family),
            source_interface=interface,
            source_port=args.optional("from", int),
            control="disable" not in args,
            packets=args.optional("packets", int),
            interval_ms=args.optional("milliseconds", int),
        ),
    )
    session.enter_instead(MODES_OF[kind])


@CONFIG.add(
    DEFINED,
    "frequency <seconds:1-604800>",
    no=True,
    help={"frequency": "Frequency of an operation", "seconds": "Frequency in seconds (default 60)"},
)
def _configure_frequency(session: ConfigSession, args: Args) -> None:
    operation = _current_operation(session)
    seconds = None if args.unset else args.value("seconds", int)
    if 1000 * (seconds or DEFAULT_FREQUENCY_S) < _timeout_ms(operation):
        raise RejectedError(BAD_FREQUENCY)
    _store_operation(session, replace(operation, frequency_s=seconds))


def _timeout_ms(operation: Operation) -> int:
    return DEFAULT_TIMEOUT_MS if operation.timeout_ms is None else operation.timeout_ms


@CONFIG.add(
    DEFINED,
    "timeout <milliseconds:0-604800000>",
    no=True,
    help={"timeout": "Timeout of an operation", "milliseconds": "Timeout in milliseconds (default 5000)"},
)
def _configure_timeout(session: ConfigSession, args: Args) -> None:
    operation = _current_operation(session)
    changed = replace(operation, timeout_ms=None if args.unset else args.value("milliseconds", int))
    if 1000 * (operation.frequency_s or DEFAULT_FREQUENCY_S) < _timeout_ms(changed):
        raise RejectedError(BAD_TIMEOUT)
    _store_operation(session, changed)


@CONFIG.add(
    DEFINED,
    "threshold <milliseconds:0-2147483647>",
    no=True,
    help={
        "threshold": "Operation threshold in milliseconds",
        "milliseconds": "Millisecond threshold value (default 5000)",
    },
)
def _configure_threshold(session: ConfigSession, args: Args) -> None:
    _store_operation(
        session,
        replace(_current_operation(session), threshold_ms=None if args.unset else args.value("milliseconds", int)),
    )


@CONFIG.add(
    SIZED,
    "request-data-size <bytes:0-16384>",
    no=True,
    help={"request-data-size": "Request data size", "bytes": "Number of bytes in payload"},
)
def _configure_size(session: ConfigSession, args: Args) -> None:
    operation = _current_operation(session)
    size = None if args.unset else args.value("bytes", int)
    assert operation.kind is not None
    limits = REQUEST_SIZES[operation.kind]
    assert limits is not None  # the others have no such command
    if size is not None and not limits[0] <= size <= limits[2]:
        raise RejectedError(BAD_SIZE.format(low=limits[0], high=limits[2]))
    _store_operation(session, replace(operation, request_data_size=size))


@CONFIG.add(DEFINED, "tos <value:0-255>", no=True, help={"tos": "Type Of Service", "value": "Type of Service Value"})
def _configure_tos(session: ConfigSession, args: Args) -> None:
    operation = _current_operation(session)
    if operation.is_ipv6:
        raise RejectedError(ONLY_IPV4)
    _store_operation(session, replace(operation, tos=None if args.unset else args.value("value", int)))


@CONFIG.add(
    SIZED,
    "traffic-class <value:0-255>",
    no=True,
    requires={"ip-sla-ipv6"},
    help={"traffic-class": "Traffic Class (IPv6)", "value": "Traffic Class Value"},
)
def _configure_traffic_class(session: ConfigSession, args: Args) -> None:
    operation = _current_operation(session)
    if not operation.is_ipv6:
        raise RejectedError(ONLY_IPV6)
    _store_operation(session, replace(operation, tos=None if args.unset else args.value("value", int)))


@CONFIG.add(DEFINED, "tag <text:line>", no=True, help={"tag": "User defined tag", "text": "Tag string"})
def _configure_tag(session: ConfigSession, args: Args) -> None:
    _store_operation(session, replace(_current_operation(session), tag=None if args.unset else args.value("text", str)))


@CONFIG.add(DEFINED, "owner <text:line>", no=True, help={"owner": "Owner of Entry", "text": "Owner string"})
def _configure_owner(session: ConfigSession, args: Args) -> None:
    _store_operation(
        session, replace(_current_operation(session), owner=None if args.unset else args.value("text", str))
    )


_HISTORY = (
    "history (hours-of-statistics-kept <hours:0-25>|distributions-of-statistics-kept <buckets:1-20>"
    "|statistics-distribution-interval <width:1-100>)"
)


@CONFIG.add(
    DEFINED,
    _HISTORY,
    no=_HISTORY,
    help={
        "history": "History and Distribution Data",
        "hours-of-statistics-kept": "Maximum number of statistics hour groups to capture",
        "hours": "Number of hour groups to be maintained (default 2)",
        "distributions-of-statistics-kept": "Maximum number of statistics distribution buckets to capture",
        "buckets": "Number of statistic distributions kept (default 1)",
        "statistics-distribution-interval": "Statistics distribution interval size",
        "width": "Size of statistics distribution interval, milliseconds (default 20)",
    },
)
def _configure_history(session: ConfigSession, args: Args) -> None:
    fields = {"hours": "hours", "buckets": "buckets", "width": "bucket_ms"}
    given = {field: args.optional(name, int) for name, field in fields.items() if args.values(name, int)}
    _store_operation(session, replace(_current_operation(session), **(dict.fromkeys(given) if args.unset else given)))


_SCHEDULE = (
    "ip sla [monitor] schedule <number:1-2147483647> [(life (forever|<life:0-2147483647>)"
    f"|start-time (now|pending|after <after:clock>|<at:clock> [({'|'.join(MONTHS)}) <day:1-31>])"
    "|ageout <ageout:0-2073600>|recurring)+]"
)


@router_command(
    "config",
    _SCHEDULE,
    no=_SCHEDULE,
    undo=Undo(needs_removal=True, goes_with="ip sla <number:1-2147483647>"),
    help={
        **_IP_SLA,
        "schedule": "IP SLAs Entry Scheduling",
        "life": "Length of time to execute in seconds",
        "forever": "continue running forever",
        "start-time": "When to start this entry",
        "now": "Start now",
        "pending": "Start pending",
        "after": "Start after a certain amount of time from now",
        "at": "Start time (hh:mm[:ss])",
        "ageout": "How long to keep this Entry when inactive",
        "recurring": "Probe to be scheduled automatically every day",
        "day": "Day of the month",
        **dict.fromkeys(MONTHS, "Month of the year"),
    },
)
def _schedule(session: ConfigSession, args: Args) -> None:
    sla, number = session.device.ip_sla, args.value("number", int)
    if args.unset:
        sla.schedules.pop(number, None)
        return
    operation = sla.operations.get(number)
    if operation is None or operation.kind is None:
        raise RejectedError(NOT_CONFIGURED)
    life: int | None = args.optional("life", int)
    if life is None and "forever" not in args:
        life = DEFAULT_LIFE_S
    ageout = args.optional("ageout", int)
    sla.schedules[number] = Schedule(number, life, _start(args), 0 if ageout is None else ageout, "recurring" in args)


def _start(args: Args) -> Start:
    if "now" in args:
        return Start("now")
    after, at = args.optional("after", int), args.optional("at", int)
    if "after" in args and after is not None:
        return Start("after", after)
    if at is None:
        return Start("pending")
    if at >= 86_400:
        raise args.invalid_argument("at")
    month = next((index for index, name in enumerate(MONTHS, 1) if name in args), None)
    return Start("at", at, None if month is None else (month, args.value("day", int)))


@router_command(
    "config",
    "ip sla [monitor] responder [udp-echo port <port:1-65535>]",
    no="ip sla [monitor] responder [udp-echo port <port:1-65535>]",
    undo=Undo(key="ip sla responder [udp-echo port <port:1-65535>]"),
    help={
        **_IP_SLA,
        "responder": "Enable IP SLAs Responder",
        "udp-echo": "Enable UDP echo without control messages",
        "port": "Port Number",
    },
)
def _configure_responder(session: ConfigSession, args: Args) -> None:
    sla, port = session.device.ip_sla, args.optional("port", int)
    if port is None:
        sla.responder = not args.unset
        if args.unset:
            sla.responder_ports = ()
        return
    others = tuple(each for each in sla.responder_ports if each != port)
    sla.responder_ports = others if args.unset else tuple(sorted((*others, port)))
    sla.responder = sla.responder or not args.unset


@BLOCKS.register_family(120)
def _config_blocks(device: Device) -> Iterator[list[str]]:
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
    words: list[object] = [operation.kind, address_text(operation.target)]
    options: tuple[tuple[str, object], ...] = (
        ("", operation.target_port),
        ("source-ip", None if operation.source is None else address_text(operation.source)),
        ("source-interface", operation.source_interface),
        ("source-port", operation.source_port),
        ("control", None if operation.control else "disable"),
        ("num-packets", operation.packets),
        ("interval", operation.interval_ms),
    )
    for name, value in options:
        words += [word for word in (name, value) if word != ""] if value is not None else []
    yield join_with_blanks(words)
    long = _timeout_ms(operation) > 1000 * DEFAULT_FREQUENCY_S
    settings: tuple[tuple[str, object], ...] = (
        ("request-data-size", operation.request_data_size),
        # Neither may contradict the other's default.
        *((("frequency", operation.frequency_s),) if long else ()),
        ("timeout", operation.timeout_ms),
        ("traffic-class" if operation.is_ipv6 else "tos", operation.tos),
        ("tag", operation.tag),
        ("owner", operation.owner),
        ("threshold", operation.threshold_ms),
        *(() if long else (("frequency", operation.frequency_s),)),
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


@ENGINE.register_family(20)
def _engine_config(device: Device) -> program_formats.DataPlaneConfigPart:
    addresses = {name: _interface_addresses(each) for name, each in device.interfaces.items()}
    connected = [each.network for own in addresses.values() for each in own]
    routed = [route.prefix for route in device.routes]
    ip_sla = compile_ip_sla(device.ip_sla, addresses, [*connected, *routed])
    return {} if ip_sla is None else {"ip_sla": ip_sla}


def _interface_addresses(interface: Interface) -> tuple[IPv4Interface | IPv6Interface, ...]:
    return (*(() if interface.address is None else (interface.address,)), *interface.ipv6_addresses)


def compile_ip_sla(
    sla: IpSla,
    addresses: Mapping[str, Sequence[IPv4Interface | IPv6Interface]],
    reachable: Sequence[IPv4Network | IPv6Network] = (),
) -> program_formats.Config | None:
    """Return the data plane's `ip_sla` (docs/internals/control-protocol.md); None if nothing is configured.

    `addresses` are those of the interfaces, for `source-interface`. The responder answers senders in a prefix of
    `reachable`, or all senders if it is empty. Clocks count as not synchronised: there is no NTP.
    """
    operations = {
        str(number): _engine_operation(operation, sla.schedules.get(number), addresses)
        for number, operation in sla.operations.items()
        if operation.kind is not None
    }
    if not operations and not sla.responder:
        return None
    return {
        "responder": sla.responder,
        "responder_ports": list(sla.responder_ports),
        "responder_allow": [
            *map(str, collapse_addresses(each for each in reachable if isinstance(each, IPv4Network))),
            *map(str, collapse_addresses(each for each in reachable if isinstance(each, IPv6Network))),
        ],
        "synchronised": False,
        "operations": operations,
    }


def _engine_operation(
    operation: Operation, schedule: Schedule | None, addresses: Mapping[str, Sequence[IPv4Interface | IPv6Interface]]
) -> program_formats.OperationConfig:
    assert operation.kind is not None  # the others are not compiled
    theirs = addresses.get(operation.source_interface or "", ())
    source = operation.source or next((each.ip for each in theirs if (each.version == 6) == operation.is_ipv6), None)
    settings = {
        "packets": operation.packets,
        "interval_ms": operation.interval_ms,
        "frequency_s": operation.frequency_s,
        "timeout_ms": operation.timeout_ms,
        "threshold_ms": operation.threshold_ms,
        "tos": operation.tos,
        "hours": operation.hours,
        "buckets": operation.buckets,
        "bucket_ms": operation.bucket_ms,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    return {
        "type": operation.kind,
        "target": str(operation.target),
        "target_port": operation.target_port,
        "source": None if source is None else str(source),
        "source_port": operation.source_port,
        "control": operation.control,
        "request_data_size": operation.request_data_size,
        **cast("program_formats.OperationConfig", given),
        "schedule": None if schedule is None else _engine_schedule(schedule),
    }


def _engine_schedule(schedule: Schedule) -> program_formats.Schedule:
    return {
        "life_s": schedule.life_s,
        "start": _engine_start(schedule.start),
        "ageout_s": schedule.ageout_s,
        "recurring": schedule.recurring,
    }


def _engine_start(start: Start) -> program_formats.Start:
    match start.kind:
        case "now" | "pending" as word:
            return word
        case "after":
            return {"after": start.seconds}
        case "at":
            hour, minute, second = start.seconds // 3600, start.seconds // 60 % 60, start.seconds % 60
            date = None if start.date is None else list(start.date)
            return {"at": {"hour": hour, "minute": minute, "second": second, "date": date}}
