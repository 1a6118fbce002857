"""Plan of a router's QoS for the Linux kernel: qdiscs, classes and filters by interface, with their fidelity.

The input is the configuration of the engine (`qoslab.ios.compile.compile_device`), so that the kernel and the engine
get the same policy. The plan is a pure function of it; `qoslab.tc.interface_qdiscs` executes its commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from qoslab.errors import UserError
from qoslab.tc.class_trees import ClassTree
from qoslab.tc.engine_values import Config, has_queueing_policy
from qoslab.tc.fidelity import FidelityNotes, Note
from qoslab.tc.filter_chains import FilterChains
from qoslab.tc.objects import Filter, HtbClass, Origin, Qdisc, TcObject
from qoslab.tc.port_plan import PlannedPort

OFFLOADS = ("gro", "gso", "tso")
"""Offloads that join packets: queues and policers would count the joined ones."""
REFUSED_ON_INTERFACE = {
    "virtual_circuit": ("vbr-nrt, cbr, ubr", "the kernel has no ATM traffic contracts"),
    "random_detect": ("random-detect", "early detection of an interface without classes is not supported in plans"),
    "tcp_adjust_mss": ("ip tcp adjust-mss", "plans do not include packet changes during forwarding"),
    "tx_ring_limit": ("tx-ring-limit", "a virtual device has no ring; on a network card use `ethtool -G`"),
    "queueing": ("queue lists and traffic-shape", "plans do not include older forms"),
    "rate_limit_input": ("rate-limit input", "a kernel bucket has no extended burst"),
    "rate_limit_output": ("rate-limit output", "a kernel bucket has no extended burst"),
    "access_groups_input": ("ip access-group in", "plans do not include forwarding filters"),
    "access_groups_output": ("ip access-group out", "plans do not include forwarding filters"),
    "subinterfaces": ("subinterfaces", "plans do not include VLAN devices"),
}


KernelKind = tuple[str, str]
"""A type, `qdisc`, `filter`, `ematch` or `action`, and a kind of this type."""


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """Kernel objects that count a class of a policy-map."""

    path: tuple[str, ...]
    policy: str
    hook: str
    chain: int | None
    """Chain of the class's actions, whose filters count its packets; None if its child policy's classes count them."""
    police_chain: int | None
    """Chain of its policers."""
    leaf: str | None
    """HTB class that queues the packets; other classes may share it."""
    buckets: tuple[str, ...] = ()
    """Action of each of its token buckets, in order: `police` or `priority`."""


@dataclass(frozen=True, slots=True)
class InterfacePlan:
    """The plan of one interface."""

    port: PlannedPort
    objects: tuple[TcObject, ...]
    """Qdiscs, classes and filters in an order in which they can be added."""
    classes: tuple[ClassPlan, ...]

    def commands(self) -> list[str]:
        """Return the tc commands, without `tc`."""
        return [each.command() for each in self.objects]

    def kinds(self) -> set[KernelKind]:
        """Return the kinds that the kernel needs."""
        return set().union(*(object_kinds(each) for each in self.objects))


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """The plan of a router."""

    router: str
    interfaces: tuple[InterfacePlan, ...]
    notes: tuple[Note, ...]

    @property
    def refused_actions(self) -> tuple[Note, ...]:
        """The actions that the kernel cannot carry out."""
        return tuple(each for each in self.notes if each.degree == "refused")

    def check(self) -> None:
        """Raise UserError if the kernel does not support a part of the configuration."""
        if self.refused_actions:
            lines = "\n".join(f"  {each.origin}: {each.action}: {each.text}" for each in self.refused_actions)
            raise UserError(
                f"{self.router}: found actions that the Linux kernel cannot carry out\n{lines}",
                hint="remove these actions, or use a platform with the engine of qoslab",
            )

    def commands(self) -> Iterator[str]:
        """Yield the tc commands of all interfaces, without `tc`."""
        for each in self.interfaces:
            yield from each.commands()


def object_kinds(each: TcObject) -> set[KernelKind]:
    """Return the kinds that an object needs."""
    if isinstance(each, Qdisc):
        return {("qdisc", each.kind)}
    if isinstance(each, HtbClass):
        return {("qdisc", "htb")}
    found = {("filter", each.match.split()[0])}
    found |= {("ematch", kind) for kind in re.findall(r"(cmp|meta)\(", each.match)}
    for action in each.actions:
        found |= {("action", kind) for kind in action.kinds}
    return found


def plan(config: Config, ports: Sequence[PlannedPort]) -> RouterPlan:
    """Return the plan of a router for these ports; other interfaces of the configuration have none.

    `config` is the engine's configuration. Refused actions are notes of the plan; `RouterPlan.check` raises an error.
    """
    notes = FidelityNotes()
    if config.get("switch") is not None:
        notes.add_refused(Origin(config["router"]), "mls qos", "queues of a Catalyst switch have no equivalent")
        return RouterPlan(config["router"], (), tuple(notes.found))
    devices = {port.interface: port.device for port in ports}
    made = tuple(_plan_interface(config, port, devices, notes) for port in ports)
    return RouterPlan(config["router"], made, tuple(notes.found))


def _plan_interface(
    config: Config, port: PlannedPort, devices: Mapping[str, str], notes: FidelityNotes
) -> InterfacePlan:
    interface: Config = config["interfaces"].get(port.interface, {})
    origin = Origin(port.interface)
    reserved = interface.get("max_reserved_percent")
    port = replace(
        port,
        hold_queue=interface.get("hold_queue_out") or port.hold_queue,
        max_reserved_percent=port.max_reserved_percent if reserved is None else reserved,
    )
    for key, (action, reason) in REFUSED_ON_INTERFACE.items():
        if interface.get(key):
            notes.add_refused(origin, action, reason)
    output, incoming = interface.get("service_policy_output"), interface.get("service_policy_input")
    queueing = output if output is not None and has_queueing_policy(config, output) else None
    fair = interface.get("fair_queue")
    if queueing is None and fair is not None and fair["enabled"]:
        notes.add_refused(origin, "fair-queue", "weighted fair queueing by precedence has no equivalent in the kernel")
    tree = ClassTree(config, port, notes)
    objects: list[TcObject] = []
    if queueing is not None or port.line_bps is not None:
        objects += tree.build(queueing)
    filters: list[Filter] = []
    classes: list[ClassPlan] = []
    for policy, hook in ((incoming, "ingress"), (output, "egress")):
        if policy is None:
            continue
        leaves = tree.leaf_of_path if hook == "egress" else {}
        chains = FilterChains(config, port, hook, devices, leaves, notes)  # type: ignore[arg-type]
        filters += chains.build(policy)
        for path, chain in chains.chain_of_path.items():
            police = chains.police_chain_of_path.get(path)
            buckets = tuple(chains.buckets_of_path.get(path, ()))
            classes.append(ClassPlan(path, chains.policy_of_path[path], hook, chain, police, leaves.get(path), buckets))
    if filters:
        objects.append(Qdisc(port.device, "ffff:", "clsact", "clsact", (), origin))
    return InterfacePlan(port, (*objects, *filters), tuple(classes))
