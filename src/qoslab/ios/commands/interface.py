"""Interface configuration mode."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface

from qoslab.ios.cli.grammar import Args, IncompleteError, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import POWER_OF_TWO
from qoslab.ios.model.device import Interface, InterfaceFairQueue
from qoslab.ios.rules import check_attached

DEFAULT_LOAD_INTERVAL_S = 300

# The wording of the following refusals is modelled on IOS, not taken from a printout.
LOAD_INTERVAL_STEP = "% Load interval must be a multiple of 30 seconds"
ALREADY_ATTACHED = "Policy map {policy} is already attached"
SWITCHED = "Command rejected: IP addresses may not be configured on L2 links"
THRESHOLD_POWER_OF_TWO = (
    "Congestive discard threshold must be a power of 2 (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)"
)
SECONDARY_FIRST = "% Must delete secondary before deleting primary"


@CONFIG.add(
    "config",
    "interface <name:interface>",
    help={"interface": "Select an interface to configure", "name": "Interface type and number"},
)
def _interface(session: ConfigSession, args: Args) -> None:
    name = args.value("name", str)
    if name not in session.device.interfaces:
        raise args.invalid("name")
    session.enter("interface", name)


@CONFIG.add(
    "interface",
    "description <text:line>",
    no=True,
    help={"description": "Interface specific description", "text": "Up to 240 characters describing this interface"},
)
def _description(session: ConfigSession, args: Args) -> None:
    session.interface.description = None if args.unset else args.value("text", str)


def _interface_address(address: IPv4Address, mask: IPv4Address) -> IPv4Interface:
    """Return the interface address, or refuse a mask with holes and an address that names a network or everybody."""
    bits = int(mask)
    length = bits.bit_count()
    if bits != (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF or length == 0:
        raise RejectedError(f"Bad mask 0x{bits:X} for address {address}")
    interface = IPv4Interface((address, length))
    network = interface.network
    ends = {network.network_address, network.broadcast_address} if length < 31 else set()
    if address in ends or address.is_multicast or address.is_unspecified:
        raise RejectedError(f"Bad mask /{length} for address {address}")
    return interface


def _remove_address(interface: Interface, address: IPv4Interface, secondary: bool) -> None:
    if secondary:
        if address not in interface.secondary_addresses:
            raise RejectedError("% Address not found on this interface")
        interface.secondary_addresses = tuple(a for a in interface.secondary_addresses if a != address)
    elif interface.address != address:
        raise RejectedError("% Invalid address")
    elif interface.secondary_addresses:
        raise RejectedError(SECONDARY_FIRST)
    else:
        interface.address = None


def _check_overlap(session: ConfigSession, address: IPv4Interface, secondary: bool) -> None:
    """Refuse an address whose subnet another address has, be it on this interface or another one."""
    here = session.interface
    # The primary address may be replaced by any; a secondary one may be entered again, or become the primary one.
    others = [each for each in here.secondary_addresses if each != address]
    if secondary and here.address is not None:
        others.append(here.address)
    if any(each.network.overlaps(address.network) for each in others):
        raise RejectedError(f"% {address.network.network_address} overlaps with secondary")
    for other in session.device.interfaces.values():
        present = [*([other.address] if other.address else []), *other.secondary_addresses]
        if other is not here and any(each.network.overlaps(address.network) for each in present):
            raise RejectedError(f"% {address.network.network_address} overlaps with {other.name}")


@CONFIG.add(
    "interface",
    "ip address <address:address> <mask:mask> [secondary]",
    no=True,
    undo=Undo(key="ip address [<address:address> <mask:mask> secondary]", anew=True),
    help={
        "address": "Set the IP address of an interface",
        "mask": "IP subnet mask",
        "secondary": "Make this IP address a secondary address",
    },
)
def _ip_address(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    given = args.optional("address", IPv4Address)
    if args.unset and given is None:
        interface.address, interface.secondary_addresses = None, ()
        return
    if interface.port is not None and interface.port.switched:
        raise RejectedError(SWITCHED)
    mask = args.optional("mask", IPv4Address)
    if given is None or mask is None:
        raise IncompleteError
    address = _interface_address(given, mask)
    if args.unset:
        _remove_address(interface, address, "secondary" in args)
        return
    _check_overlap(session, address, "secondary" in args)
    if "secondary" not in args:
        interface.address = address
        interface.secondary_addresses = tuple(a for a in interface.secondary_addresses if a.ip != address.ip)
    # The running configuration lists secondary addresses first, so one may come before the primary address.
    elif address not in interface.secondary_addresses:
        interface.secondary_addresses += (address,)


@CONFIG.add(
    "interface",
    "bandwidth <kbps:1-10000000>",
    no=True,
    help={"bandwidth": "Set bandwidth informational parameter", "kbps": "Bandwidth in kilobits"},
)
def _bandwidth(session: ConfigSession, args: Args) -> None:
    changed = replace(session.interface, bandwidth_kbps=None if args.unset else args.value("kbps", int))
    _check_reserved(session, changed)
    session.interface.bandwidth_kbps = changed.bandwidth_kbps


def _check_reserved(session: ConfigSession, changed: Interface) -> None:
    """Refuse a change of the interface that leaves less than its output policy reserves."""
    name = changed.service_policy_output
    policy = None if name is None else session.device.policy_maps.get(name)
    if policy is not None:
        check_attached(session.device, policy, changed, "output")


@CONFIG.add(
    "interface",
    "max-reserved-bandwidth <percent:1-100>",
    no=True,
    requires={"classic"},
    help={"max-reserved-bandwidth": "Maximum Reservable Bandwidth on an Interface", "percent": "Percent of bandwidth"},
)
def _max_reserved_bandwidth(session: ConfigSession, args: Args) -> None:
    percent = None if args.unset else args.value("percent", int)
    _check_reserved(session, replace(session.interface, max_reserved_bandwidth=percent))
    session.interface.max_reserved_bandwidth = percent


@CONFIG.add(
    "interface",
    "clock rate <bps:300-8000000>",
    no=True,
    requires={"router"},
    help={
        "clock": "Configure serial interface clock",
        "rate": "Configure serial interface clock speed",
        "bps": "Clock rate in bits per second",
    },
)
def _clock_rate(session: ConfigSession, args: Args) -> None:
    _serial_only(session, args, "clock")
    session.interface.clock_rate_bps = None if args.unset else args.value("bps", int)


@CONFIG.add(
    "interface",
    "encapsulation (ppp|hdlc)",
    no=True,
    requires={"router"},
    help={
        "encapsulation": "Set encapsulation type for an interface",
        "ppp": "Point-to-Point protocol",
        "hdlc": "Serial HDLC synchronous",
    },
)
def _encapsulation(session: ConfigSession, args: Args) -> None:
    _serial_only(session, args, "encapsulation")
    session.interface.encapsulation = "ppp" if "ppp" in args and not args.unset else None


def _serial_only(session: ConfigSession, args: Args, keyword: str) -> None:
    if not session.interface.serial:
        raise args.invalid(keyword)


def _ethernet_only(session: ConfigSession, args: Args, keyword: str) -> None:
    if session.interface.serial:
        raise args.invalid(keyword)


@CONFIG.add(
    "interface",
    "load-interval <seconds:30-600>",
    no=True,
    help={
        "load-interval": "Specify interval for load calculation for an interface",
        "seconds": "Load interval delay in seconds",
    },
)
def _load_interval(session: ConfigSession, args: Args) -> None:
    if args.unset:
        session.interface.load_interval_s = None
        return
    seconds = args.value("seconds", int)
    if seconds % 30:
        raise RejectedError(LOAD_INTERVAL_STEP)
    # The default is not kept, as IOS does not print it.
    session.interface.load_interval_s = None if seconds == DEFAULT_LOAD_INTERVAL_S else seconds


@CONFIG.add(
    "interface",
    "tx-ring-limit <packets:1-32767>",
    no=True,
    requires={"router"},
    help={"tx-ring-limit": "Configure PA level transmit ring limit", "packets": "Number of packets"},
)
def _tx_ring_limit(session: ConfigSession, args: Args) -> None:
    session.interface.tx_ring_limit = None if args.unset else args.value("packets", int)


@CONFIG.add(
    "interface",
    "hold-queue <packets:0-4096> (in|out)",
    no="hold-queue [<packets:0-4096>] (in|out)",
    undo=Undo(line="hold-queue [<packets:0-4096>] (in|out)"),
    requires={"router"},
    help={
        "hold-queue": "Set hold queue depth",
        "packets": "Queue length",
        "in": "Input queue",
        "out": "Output queue",
    },
)
def _hold_queue(session: ConfigSession, args: Args) -> None:
    packets = None if args.unset else args.value("packets", int)
    if "in" in args:
        session.interface.hold_queue_in = packets
    elif packets == 0:
        # The data plane has no interface without a queue.
        raise args.invalid("packets")
    else:
        session.interface.hold_queue_out = packets


_FAIR_QUEUE_HELP = {
    "fair-queue": "Enable Fair Queuing on an Interface",
    "threshold": "Congestive Discard Threshold",
    "dynamic": "Number Dynamic Conversation Queues",
    "reservable": "Number Reservable Conversation Queues",
}


_FAIR_QUEUE_UNDO = Undo(line="default fair-queue")
"""`no fair-queue` is a value of its own."""


# HQF knows no conversations of an interface, so the figures exist before it only.
@CONFIG.add(
    "interface",
    "fair-queue [<threshold:16-4096> [<dynamic:16-4096> [<reservable:0-1000>]]]",
    no=True,
    undo=_FAIR_QUEUE_UNDO,
    requires={"classic"},
    help=_FAIR_QUEUE_HELP,
)
@CONFIG.add("interface", "fair-queue", no=True, undo=_FAIR_QUEUE_UNDO, requires={"hqf"}, help=_FAIR_QUEUE_HELP)
def _fair_queue(session: ConfigSession, args: Args) -> None:
    if args.form == "default" or (args.negated and not session.interface.serial):
        session.interface.fair_queue = None
        return
    if args.negated:
        session.interface.fair_queue = InterfaceFairQueue(enabled=False)
        return
    threshold, dynamic, reservable = (args.optional(name, int) for name in ("threshold", "dynamic", "reservable"))
    if threshold is not None and threshold & (threshold - 1):
        raise RejectedError(THRESHOLD_POWER_OF_TWO)
    if dynamic is not None and dynamic & (dynamic - 1):
        raise RejectedError(POWER_OF_TWO)
    session.interface.fair_queue = InterfaceFairQueue(True, threshold, dynamic, reservable)


@CONFIG.add("interface", "shutdown", no=True, help={"shutdown": "Shutdown the selected interface"})
def _shutdown(session: ConfigSession, args: Args) -> None:
    session.interface.shutdown = not args.unset


@CONFIG.add("interface", "keepalive", no=True, help={"keepalive": "Enable keepalive"})
def _keepalive(session: ConfigSession, args: Args) -> None:
    session.interface.keepalive = not args.negated


@CONFIG.add(
    "interface",
    "duplex (auto|full)",
    no=True,
    help={
        "duplex": "Configure duplex operation",
        "auto": "Enable AUTO duplex configuration",
        "full": "Force full duplex operation",
    },
)
def _duplex(session: ConfigSession, args: Args) -> None:
    _ethernet_only(session, args, "duplex")
    session.interface.duplex = "full" if "full" in args and not args.unset else "auto"


@CONFIG.add(
    "interface",
    "speed (auto|100|1000)",
    no=True,
    requires={"router"},
    help={
        "speed": "Configure speed operation",
        "auto": "Enable AUTO speed configuration",
        "100": "Force 100 Mbps operation",
        "1000": "Force 1000 Mbps operation",
    },
)
def _speed(session: ConfigSession, args: Args) -> None:
    _ethernet_only(session, args, "speed")
    interface = session.interface
    if args.unset or "auto" in args:
        interface.speed = "auto"
    # Only the wired speed can be forced: the line's rate is hardware here.
    elif interface.kind == "FastEthernet" and "100" in args:
        interface.speed = "100"
    elif interface.kind == "GigabitEthernet" and "1000" in args:
        interface.speed = "1000"
    else:
        raise args.invalid("100" if "100" in args else "1000")


@CONFIG.add(
    "interface",
    "service-policy (input|output) <policy:word>",
    no=True,
    undo=Undo("service-policy (input|output)", "service-policy (input|output) <policy:word>", attaches=True),
    requires={"router"},
    help={
        "service-policy": "Configure QoS Service Policy",
        "input": "Assign policy-map to the input of an interface",
        "output": "Assign policy-map to the output of an interface",
        "policy": "policy-map name",
    },
)
def attach_policy(session: ConfigSession, args: Args) -> None:
    """Attach the policy-map that a `service-policy` line names to the interface, or detach it."""
    interface = session.interface
    direction = "input" if "input" in args else "output"
    if args.unset and "input" not in args and "output" not in args:
        raise IncompleteError
    attached = interface.service_policy_input if direction == "input" else interface.service_policy_output
    name = args.optional("policy", str)
    if args.unset:
        if name is not None and attached != name:
            raise RejectedError(f"% policy map {name} not configured")
        _attach(interface, direction, None)
        return
    policy = session.device.policy_maps.get(args.value("policy", str))
    if policy is None:
        raise RejectedError(f"% policy map {name} not configured")
    if attached not in (None, name):
        raise RejectedError(ALREADY_ATTACHED.format(policy=attached))
    check_attached(session.device, policy, interface, direction)
    _attach(interface, direction, policy.name)


def _attach(interface: Interface, direction: str, name: str | None) -> None:
    if direction == "input":
        interface.service_policy_input = name
    else:
        interface.service_policy_output = name
