"""Device model: a running configuration as values.

Containers are mutable, so that a command-line session edits them in place; their elements are frozen, except
`Interface` and `Line`. Names of classes and policies are case-sensitive. `None` means not configured; defaults are
not filled in here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Literal

from qoslab.ios.model.catalyst import DEFAULT_PORT, DEFAULT_QOS, SwitchPort, SwitchQos
from qoslab.ios.model.circuit import Circuit
from qoslab.ios.model.generations import GENERATIONS, QosGeneration
from qoslab.ios.model.inert_lines import NO_INERT_LINES, InertLines
from qoslab.ios.model.interface_queueing import CustomList, PriorityList, Shaper
from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.model.ip_sla import IpSla
from qoslab.ios.model.matches import ANY_ADDRESS, AddressMatch, PortMatch
from qoslab.ios.model.object_groups import ObjectGroup
from qoslab.ios.model.policy import ClassMap, PolicyMap, RandomDetect
from qoslab.ios.model.rate_limit import RateLimit, RateLimitList
from qoslab.ios.model.table_maps import TableMap
from qoslab.model.generation import Generation
from qoslab.system import program_formats

Family = Literal["router", "switch"]
"""Family of commands: a router's Modular QoS CLI, or `mls qos` of a Catalyst 3750."""

Speed = Literal["auto", "10", "100", "1000"]


@dataclass(frozen=True, slots=True)
class Hardware:
    """Hardware and software of a device, as opposed to its configuration."""

    platform: str
    """The model's number, for example "3725"."""
    interfaces: tuple[str, ...]
    """Full names in the order of the chassis."""
    generation: Generation = "classic"
    """Generation; for a switch only the layout of class-maps and policy-maps."""
    version: str = "12.4"
    """Version in the running configuration's `version` line."""
    family: Family = "router"
    process_ns: int | None = None
    """Time of process level for a packet; None if unknown."""

    @property
    def qos(self) -> QosGeneration:
        """The description of its generation."""
        return GENERATIONS[self.generation]

    def __post_init__(self) -> None:
        if len(set(self.interfaces)) != len(self.interfaces):
            raise ValueError(f"duplicate interface among {self.interfaces}")


@dataclass(frozen=True, slots=True)
class InterfaceFairQueue:
    """`fair-queue [THRESHOLD [DYNAMIC [RESERVABLE]]]` or `no fair-queue`; None if not typed."""

    enabled: bool = True
    discard_threshold: int | None = None
    """Packets in all conversations from which on a new packet that would leave last is dropped."""
    dynamic_queues: int | None = None
    reserved_queues: int | None = None


@dataclass(frozen=True, slots=True)
class AccessGroups:
    """Access lists that filter an interface's packets of one IP version, by name or decimal number."""

    input: str | None = None
    output: str | None = None


NO_ACCESS_GROUPS = AccessGroups()


@dataclass(slots=True)
class Interface:
    """One interface; `name` is the full name."""

    name: str
    description: str | None = None
    bandwidth_kbps: int | None = None
    address: IPv4Interface | None = None
    secondary_addresses: tuple[IPv4Interface, ...] = ()
    ipv6_addresses: tuple[IPv6Interface, ...] = ()
    ipv6_link_local: IPv6Address | None = None
    """Link-local address; None for the one derived from the hardware address."""
    ipv6_enable: bool = False
    filters: AccessGroups = NO_ACCESS_GROUPS
    """`ip access-group`."""
    ipv6_filters: AccessGroups = NO_ACCESS_GROUPS
    """`ipv6 traffic-filter`."""
    mtu: int | None = None
    """Largest packet of the line in bytes; None is 1500."""
    ip_mtu: int | None = None
    """Largest IPv4 packet in bytes; None for the MTU of the line."""
    ipv6_mtu: int | None = None
    tcp_adjust_mss: int | None = None
    """Maximum MSS of SYNs over IPv4, in bytes."""
    encapsulation: Literal["ppp"] | None = None
    """None on serial lines is HDLC, the default."""
    circuit: Circuit | None = None
    """Circuit of an ATM interface, or of a subinterface of one."""
    vlan: int | None = None
    """VLAN of a subinterface: `encapsulation dot1Q`."""
    native: bool = False
    """True if the frames of its VLAN have no tag."""
    load_interval_s: int | None = None
    shutdown: bool = False
    duplex: Literal["auto", "full", "half"] = "auto"
    speed: Speed = "auto"
    tx_ring_limit: int | None = None
    """Transmit ring limit in packets; for an ATM circuit, in particles."""
    fair_queue: InterfaceFairQueue | None = None
    """Fair queueing; None for the platform's default."""
    random_detect: RandomDetect | None = None
    clock_rate_bps: int | None = None
    hold_queue_in: int | None = None
    hold_queue_out: int | None = None
    keepalive: bool = True
    max_reserved_bandwidth: int | None = None
    """Percent, classic generation; None is 75."""
    rate_limits: tuple[RateLimit, ...] = ()
    """Rate limits, input first; each direction in order."""
    shapers: tuple[Shaper, ...] = ()
    """`traffic-shape`: shapers with access lists in order, then the shaper of all packets."""
    priority_group: int | None = None
    """The number of a priority list."""
    custom_queue_list: int | None = None
    """The number of a queue list."""
    tree: program_formats.InterfaceQueueingTree | None = None
    """Classes and queues by tc commands, on a router without a command line."""
    service_policy_input: str | None = None
    service_policy_output: str | None = None
    port: SwitchPort | None = None
    """Port settings of a switch."""
    inert: InertLines = NO_INERT_LINES
    """Lines without effect."""

    @property
    def kind(self) -> str:
        """The interface's type, such as FastEthernet or Serial."""
        return interface_kind(self.name)

    @property
    def runs_ipv6(self) -> bool:
        """True if IPv6 is active on it: `ipv6 enable`, or any address."""
        return self.ipv6_enable or bool(self.ipv6_addresses) or self.ipv6_link_local is not None

    @property
    def parent(self) -> str | None:
        """Full name of a subinterface's port."""
        port, dot, _ = self.name.partition(".")
        return port if dot else None

    @property
    def is_serial(self) -> bool:
        """True if it is a serial line."""
        return self.kind == "Serial"

    @property
    def circuit_name(self) -> str | None:
        """The circuit's VPI and VCI, such as 0/33."""
        return None if self.circuit is None else self.circuit.name

    @property
    def is_atm(self) -> bool:
        """True if it is an ATM interface, or a subinterface of one."""
        return self.kind == "ATM"


@dataclass(frozen=True, slots=True)
class HostInterface:
    """An interface of the device itself, without hardware: Loopback0; Null0 and a switch's Vlan10 have no address."""

    name: str
    description: str | None = None
    address: IPv4Interface | None = None
    shutdown: bool = False
    service_policy_input: str | None = None
    """Input policy of a VLAN interface."""
    inert: InertLines = NO_INERT_LINES

    @property
    def secondary_addresses(self) -> tuple[IPv4Interface, ...]:
        """Empty: secondary addresses are not supported."""
        return ()


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """`ip route` or `ipv6 route`: towards a next hop, out of an interface, or both."""

    prefix: IPv4Network | IPv6Network
    next_hop: IPv4Address | IPv6Address | None = None
    interface: str | None = None
    distance: int | None = None
    """None is 1."""
    further: str = ""
    """`name`, `tag` and `permanent` as printed, without effect here."""


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One entry of an access list. `protocol` None is `ip` or `ipv6`.

    A standard list uses only action, source and log. With an object group, the corresponding address is any, and the
    protocol None.
    """

    action: Literal["permit", "deny"]
    protocol: int | None = None
    source: AddressMatch = ANY_ADDRESS
    destination: AddressMatch = ANY_ADDRESS
    source_port: PortMatch | None = None
    destination_port: PortMatch | None = None
    icmp_type: int | None = None
    icmp_code: int | None = None
    established: bool = False
    dscp: int | None = None
    precedence: int | None = None
    fragments: bool = False
    log: bool = False
    service_group: str | None = None
    source_group: str | None = None
    destination_group: str | None = None

    @property
    def object_groups(self) -> list[str]:
        """The object groups that the entry refers to."""
        names = (self.service_group, self.source_group, self.destination_group)
        return [name for name in names if name is not None]


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment in an access list."""

    text: str


@dataclass(frozen=True, slots=True)
class AccessList:
    """An access list: entries and remarks in order. Names are shared by both families."""

    name: str
    """A number in decimal, or a name."""
    kind: Literal["standard", "extended", "ipv6"]
    lines: tuple[AccessEntry | Remark, ...] = ()
    numbers: tuple[int, ...] = field(default=(), compare=False)
    """The sequence number of each line; a remark has the number of the entry before it.

    They are not part of the configuration.
    """

    @property
    def is_numbered(self) -> bool:
        """True if its name is a number."""
        return self.name.isdigit()

    @property
    def entries(self) -> tuple[AccessEntry, ...]:
        """The entries without remarks."""
        return tuple(entry for entry in self.lines if isinstance(entry, AccessEntry))


EXEC_TIMEOUT = (10, 0)
"""The default of `exec-timeout` on all lines, minutes and seconds."""


@dataclass(slots=True)
class Line:
    """One terminal line."""

    kind: Literal["con", "aux", "vty"]
    number: int
    exec_timeout: tuple[int, int] | None = None
    """Minutes and seconds; None is `EXEC_TIMEOUT`; (0, 0) is never."""
    logging_synchronous: bool = False
    login: Literal["none", "password", "local"] | None = None
    """None is the default: none on con and aux, the line's password on vty."""
    password: str | None = None
    transport_input: tuple[str, ...] | None = None
    privilege: int | None = None
    inert: InertLines = NO_INERT_LINES
    """Lines without effect."""

    @property
    def name(self) -> str:
        """Return the name, for example `vty 4`."""
        return f"{self.kind} {self.number}"

    @property
    def idle_s(self) -> int | None:
        """Idle timeout of a login in seconds; None: never."""
        minutes, seconds = EXEC_TIMEOUT if self.exec_timeout is None else self.exec_timeout
        return 60 * minutes + seconds or None


@dataclass(frozen=True, slots=True)
class User:
    """A local user; `secret` is kept as a hash."""

    name: str
    privilege: int | None = None
    secret: Secret | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """A password in its form in the configuration: type 0 (as typed) or 5 (MD5-crypt)."""

    kind: Literal[0, 5]
    text: str


Clutter = tuple[tuple[tuple[str, ...], str], ...]
"""Indented lines, each with its known parent lines, outermost first."""


@dataclass(slots=True)
class Device:
    """A whole running configuration."""

    hardware: Hardware
    hostname: str = "Router"
    timestamps: dict[str, str] = field(default_factory=dict)
    """`service timestamps`: options by `debug` and `log`."""
    logging_console: bool = True
    logging_console_level: str | None = None
    """None is `debugging`, all."""
    logging_buffered: int | None = None
    """Bytes."""
    logging_buffered_level: str | None = None
    """None is `debugging`, all."""
    enable_secret: Secret | None = None
    users: dict[str, User] = field(default_factory=dict)
    ip_cef: bool = True
    ip_classless: bool = True
    ip_subnet_zero: bool = True
    ipv6_unicast_routing: bool = False
    ipv6_cef: bool = False
    domain_lookup: bool = True
    domain_name: str | None = None
    class_maps: dict[str, ClassMap] = field(default_factory=dict)
    policy_maps: dict[str, PolicyMap] = field(default_factory=dict)
    table_maps: dict[str, TableMap] = field(default_factory=dict)
    interfaces: dict[str, Interface] = field(default_factory=dict)
    host_interfaces: dict[str, HostInterface] = field(default_factory=dict)
    """Loopback and VLAN interfaces, and Null0 if it has lines."""
    routes: list[StaticRoute] = field(default_factory=list)
    access_lists: dict[str, AccessList] = field(default_factory=dict)
    tree_access_lists: dict[str, list[program_formats.AccessListEntry]] = field(default_factory=dict)
    """Filters of the interfaces' queue trees, in the form of the data plane."""
    object_groups: dict[str, ObjectGroup] = field(default_factory=dict)
    rate_limit_lists: dict[int, RateLimitList] = field(default_factory=dict)
    """`access-list rate-limit`, by number."""
    priority_lists: dict[int, PriorityList] = field(default_factory=dict)
    queue_lists: dict[int, CustomList] = field(default_factory=dict)
    ip_sla: IpSla = field(default_factory=IpSla)
    banner_motd: str | None = None
    """The text between the delimiters, with its line ends."""
    banners: dict[str, str] = field(default_factory=dict)
    """Texts of the other banners by `login`, `exec` and `incoming`."""
    lines: dict[str, Line] = field(default_factory=dict)
    """Terminal lines by name: `con 0`, `aux 0`, `vty 0` to `vty 4` or higher; a switch has no `aux 0`."""
    switch: SwitchQos | None = None
    """Settings of a switch."""
    inert: InertLines = NO_INERT_LINES
    """Lines without effect."""
    clutter: Clutter = ()
    """Lines outside the model: printed in their place, never typed, without effect."""

    @property
    def mls_qos(self) -> SwitchQos:
        """Settings of the switch, for commands that exist on switches only."""
        assert self.switch is not None
        return self.switch

    def __post_init__(self) -> None:
        is_switch = self.hardware.family == "switch"
        if is_switch and self.switch is None:
            self.switch = DEFAULT_QOS
        for name in self.hardware.interfaces:
            self.interfaces.setdefault(name, Interface(name, port=DEFAULT_PORT if is_switch else None))
        auxiliary = () if is_switch else (Line("aux", 0),)
        for line in (Line("con", 0), *auxiliary, *(Line("vty", number) for number in range(5))):
            self.lines.setdefault(line.name, line)

    def subinterfaces(self, port: str) -> list[Interface]:
        """Return the subinterfaces of a port, in the order of their numbers."""
        return [each for each in self.interfaces.values() if each.parent == port]

    def with_circuit(self, port: str) -> Interface:
        """Return the interface of a port's packets: on ATM the interface with the circuit, else the port."""
        found = (each for each in self.subinterfaces(port) if each.circuit is not None)
        return next(found, self.interfaces[port])

    def circuits(self) -> dict[str, Interface]:
        """Return the interfaces with a circuit, by their port."""
        ports = (each.name for each in self.interfaces.values() if each.is_atm and each.parent is None)
        owners = {port: self.with_circuit(port) for port in ports}
        return {port: owner for port, owner in owners.items() if owner.circuit is not None}

    def carriers(self) -> Iterator[tuple[str, Interface]]:
        """Yield the name of each interface of a router's IP stack, and the interface with its addresses.

        They are the same except for an ATM port, which has the addresses of the interface with its circuit.
        """
        for name, interface in self.interfaces.items():
            if not interface.is_atm:
                yield name, interface
            elif interface.parent is None:
                yield name, self.with_circuit(name)

    def is_shut_down(self, interface: Interface) -> bool:
        """Return whether an interface or its port is shut down."""
        return interface.shutdown or (interface.parent is not None and self.interfaces[interface.parent].shutdown)

    def add_subinterface(self, name: str) -> None:
        """Add a subinterface after its port and subinterfaces with lower numbers."""
        self.interfaces[name] = Interface(name)
        chassis = {port: place for place, port in enumerate(self.hardware.interfaces)}

        def place(each: str) -> tuple[int, int]:
            port, _, number = each.partition(".")
            return chassis[port], int(number or -1)

        self.interfaces = {each: self.interfaces[each] for each in sorted(self.interfaces, key=place)}

    @property
    def generation(self) -> Generation:
        """The QoS behaviour of the device's software."""
        return self.hardware.generation

    def copy(self) -> Device:
        """Return a copy that shares nothing mutable with this one."""
        # Not copy.deepcopy: the command line makes a copy for every line, and most of the contents are frozen.
        return replace(
            self,
            timestamps=dict(self.timestamps),
            banners=dict(self.banners),
            users=dict(self.users),
            class_maps=dict(self.class_maps),
            table_maps=dict(self.table_maps),
            policy_maps=dict(self.policy_maps),
            interfaces={name: replace(interface) for name, interface in self.interfaces.items()},
            host_interfaces=dict(self.host_interfaces),
            routes=list(self.routes),
            access_lists=dict(self.access_lists),
            tree_access_lists=dict(self.tree_access_lists),
            object_groups=dict(self.object_groups),
            rate_limit_lists=dict(self.rate_limit_lists),
            priority_lists=dict(self.priority_lists),
            queue_lists=dict(self.queue_lists),
            ip_sla=self.ip_sla.copy(),
            lines={name: replace(line) for name, line in self.lines.items()},
        )
