"""Classification, marking and policing of a policy as chains of filters on clsact.

Chain 0 classifies. A class without a child policy has a chain with its actions, reached by `goto`. Actions run in the
order of IOS: marks of the outer class, then of the inner one; the inner policer, then the outer one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.model.framing import COUNTED_HEADER
from qoslab.tc.classify import QOS_GROUP_MASK, match_words
from qoslab.tc.decision_lists import NETWORKS, DecisionList, NotExpressibleError, Row, class_decision
from qoslab.tc.engine_values import Config, PoliceValues, ordered_classes, police_values, rate_bps, reserved_bps
from qoslab.tc.fidelity import FidelityNotes
from qoslab.tc.objects import Action, Control, Filter, Hook, Origin, Police, Protocol, SetClass, SetField, SetMark
from qoslab.tc.port_plan import PlannedPort

PASS = Control()
DROP = Control(drop=True)
DSFIELD_MASK = {"dscp": 0xFC, "precedence": 0xE0}
SHIFT = {"dscp": 2, "precedence": 5}
TICK_S = 1e-6
"""Unit of a bucket in tc(8), in seconds: tc truncates the burst to whole microseconds at the rate."""


@dataclass(frozen=True, slots=True)
class MarkState:
    """New values of a packet's fields: the DS field by network protocol, and the QoS group."""

    ip: tuple[int, int] | None = None
    ipv6: tuple[int, int] | None = None
    qos_group: int | None = None

    def with_set(self, field: str, value: int) -> MarkState:
        """Return the marks with a further `set`."""
        if field == "qos_group":
            return MarkState(self.ip, self.ipv6, value)
        kind = field.removeprefix("ip_")
        bits = (value << SHIFT[kind], DSFIELD_MASK[kind])
        ipv6 = self.ipv6 if field.startswith("ip_") else _overlay_bits(self.ipv6, bits)
        return MarkState(_overlay_bits(self.ip, bits), ipv6, self.qos_group)

    @property
    def fields(self) -> bool:
        """True if a header field changes."""
        return self.ip is not None or self.ipv6 is not None


def _overlay_bits(below: tuple[int, int] | None, bits: tuple[int, int]) -> tuple[int, int]:
    if below is None:
        return bits
    return below[0] & ~bits[1] | bits[0], below[1] | bits[1]


@dataclass(frozen=True, slots=True)
class InnerPosition:
    """The context of a nested policy-map."""

    path: tuple[str, ...] = ()
    marks: MarkState = MarkState()
    after: Control = PASS
    """The policers of the classes above."""
    rate_base_bps: int = 0
    guaranteed_base_bps: int = 0


@dataclass
class FilterChains:
    """The compiler of one interface's policy in one direction; `build` returns the filters."""

    config: Config
    port: PlannedPort
    hook: Hook
    devices: Mapping[str, str]
    leaf_of_path: Mapping[tuple[str, ...], str]
    notes: FidelityNotes

    def __post_init__(self) -> None:
        self.filters: list[Filter] = []
        self.chain_of_path: dict[tuple[str, ...], int | None] = {}
        """Chain with the actions of each class; None for a class with a child policy, whose classes have actions."""
        self.police_chain_of_path: dict[tuple[str, ...], int] = {}
        """Chain with the policers of each class with policers."""
        self.buckets_of_path: dict[tuple[str, ...], list[str]] = {}
        """Actions, `police` or `priority`, of each class's token buckets, in their order."""
        self.policy_of_path: dict[tuple[str, ...], str] = {}
        self._chain = 0
        self._orders: dict[int, int] = {}

    def build(self, policy: str) -> list[Filter]:
        """Return the filters of a policy-map."""
        if self._has_policers(policy):
            # A router polices IP packets only.
            self._add(0, self._class_origin(policy, ()), "matchall", (PASS,), "arp")
        base = self.port.bandwidth_bps
        self._add_level(policy, 0, InnerPosition(rate_base_bps=base, guaranteed_base_bps=base))
        return sorted(self.filters, key=lambda each: (each.chain, each.order))

    def _has_policers(self, policy: str) -> bool:
        classes: Sequence[Config] = self.config["policy_maps"][policy]["classes"]
        own = any(each.get("police") or (each.get("priority") or {}).get("number") for each in classes)
        return own or any(each.get("service_policy") and self._has_policers(each["service_policy"]) for each in classes)

    def _class_origin(self, policy: str, path: tuple[str, ...]) -> Origin:
        direction = "input" if self.hook == "ingress" else "output"
        return Origin(self.port.interface, direction, policy, path)

    def _next_chain(self) -> int:
        self._chain += 1
        return self._chain

    def _add(
        self, chain: int, origin: Origin, match: str, actions: tuple[Action, ...], protocol: Protocol = "all"
    ) -> None:
        order = self._orders[chain] = self._orders.get(chain, 0) + 1
        made = Filter(self.port.device, self.hook, chain, order, protocol, match, actions, origin)
        self.filters.append(made)

    def _add_level(self, policy: str, chain: int, inner: InnerPosition) -> None:
        """Add the classification of a policy-map, and the actions of its classes."""
        targets: list[tuple[Config, int]] = []
        current = chain
        for each in ordered_classes(self.config, policy):
            origin = self._class_origin(policy, (*inner.path, each["name"]))
            target = self._next_chain()
            targets.append((each, target))
            if each["name"] == CLASS_DEFAULT:
                self._add(current, origin, "matchall", (Control(target),))
                continue
            try:
                decision = class_decision(self.config, each["name"])
                current = self._add_class_rows(decision, current, target, origin)
            except NotExpressibleError as error:
                self.notes.add_refused(
                    origin, str(error).split(":")[0], str(error).partition(": ")[2] or "no classifier"
                )
        for each, target in targets:
            self._add_class_actions(policy, each, target, inner)

    def _add_class_rows(self, decision: DecisionList, chain: int, target: int, origin: Origin) -> int:
        """Add the rows of a class; return the chain for the next class."""
        if any(row.packets.ports for row in decision.rows):
            text = "fragments have no visible ports: a fragment matches no entry with ports"
            self.notes.add_approximate(origin, "match of ports", text)
        plain = not decision.default and all(row.member for row in decision.rows)
        if plain:
            for row in decision.rows:
                self._add_row(chain, row, Control(target), origin)
            return chain
        following = self._next_chain()
        if self._orders.get(chain) and chain:
            own = self._next_chain()
            self._add(chain, origin, "matchall", (Control(own),))
            chain = own
        for row in decision.rows:
            self._add_row(chain, row, Control(target if row.member else following), origin)
        self._add(chain, origin, "matchall", (Control(target if decision.default else following),))
        return following

    def _add_row(self, chain: int, row: Row, control: Control, origin: Origin) -> None:
        protocol, match = match_words(row.packets, self.devices)
        self._add(chain, origin, match, (control,), protocol)

    def _add_class_actions(self, policy: str, each: Config, chain: int, inner: InnerPosition) -> None:
        """Add the actions of a class, or the classification of its child policy."""
        path = (*inner.path, each["name"])
        origin = self._class_origin(policy, path)
        marks = inner.marks
        for mark in each.get("set", ()):
            if mark["field"] == "cos":
                self.notes.add_refused(origin, "set cos", "plans do not support VLAN tags")
                continue
            marks = marks.with_set(mark["field"], mark["value"])
            group = mark["field"] == "qos_group"
            action = "set qos-group" if group else f"set {mark['field'].replace('_', ' ')}"
            self.notes.add_exact(origin, action, "lowest 8 bits of the packet's mark" if group else "pedit")
        child = each.get("service_policy")
        self.chain_of_path[path] = chain if child is None else None
        self.policy_of_path[path] = policy
        if child is None:
            self._add_leaf_actions((policy, each), chain, inner, marks)
            return
        after = inner.after
        if each.get("police") is not None:
            after = Control(self._next_chain())
            self._add_policers((policy, each), after.chain or 0, inner, ())
        shape = each.get("shape")
        base = None if shape is None else rate_bps(shape["rate"], inner.rate_base_bps)
        guaranteed = base or reserved_bps(each, inner.guaranteed_base_bps) or inner.guaranteed_base_bps
        below = InnerPosition(path, marks, after, base or inner.rate_base_bps, guaranteed)
        self._add_level(child, chain, below)

    def _add_leaf_actions(self, named: tuple[str, Config], chain: int, inner: InnerPosition, marks: MarkState) -> None:
        """Add the actions of a class without a child policy."""
        policy, each = named
        path = (*inner.path, each["name"])
        origin = self._class_origin(policy, path)
        actions: list[Action] = []
        if path in self.leaf_of_path:
            actions.append(SetClass(self.leaf_of_path[path]))
        if marks.qos_group is not None:
            actions.append(SetMark(marks.qos_group, QOS_GROUP_MASK))
        policed = each.get("police") is not None or (each.get("priority") or {}).get("number") is not None
        if marks.fields and policed:
            rest = Control(self._next_chain())
            self._mark(chain, origin, marks, (rest,))
            chain = rest.chain or 0
        elif marks.fields:
            self._mark(chain, origin, marks, (*actions, inner.after))
            return
        if policed:
            self._add_policers(named, chain, inner, tuple(actions))
        else:
            self._add(chain, origin, "matchall", (*actions, inner.after))

    def _mark(self, chain: int, origin: Origin, marks: MarkState, actions: tuple[Action, ...]) -> None:
        """Add filters that mark packets and continue with `actions`."""
        for network, bits in zip(NETWORKS, (marks.ip, marks.ipv6), strict=True):
            if bits is not None:
                self._add(chain, origin, "matchall", (SetField(network, *bits), *actions), network)
        self._add(chain, origin, "matchall", actions)

    def _add_policers(
        self, named: tuple[str, Config], chain: int, inner: InnerPosition, ahead: tuple[Action, ...]
    ) -> None:
        """Add the policers of a class after the actions `ahead`."""
        policy, each = named
        path = (*inner.path, each["name"])
        self.police_chain_of_path[path] = chain
        origin = self._class_origin(policy, path)
        actions = [*ahead]
        end = inner.after
        if each.get("police") is not None:
            values = police_values(each["police"], inner.rate_base_bps)
            buckets, end = self._token_buckets(values, origin, end)
            actions += buckets
            self.buckets_of_path[path] = ["police" for _ in buckets]
        priority = each.get("priority") or {}
        if priority.get("number") is not None and end != DROP:
            rate = reserved_bps(each, inner.guaranteed_base_bps) or 0
            burst = priority.get("burst_bytes") or rate // 40
            actions.append(self._token_bucket(rate, burst, DROP, origin, "priority"))
            self.buckets_of_path.setdefault(path, []).append("priority")
        self._add(chain, origin, "matchall", (*actions, end))

    def _token_buckets(self, values: PoliceValues, origin: Origin, after: Control) -> tuple[list[Police], Control]:
        """Return the token buckets of a policer and the next step for packets that conform."""
        if values.dynamic:
            self.notes.add_refused(origin, "police dynamic", "a kernel bucket has a fixed size")
            return [], after
        exceed = self._colour_step(values.exceed, origin, after)
        if values.algorithm == "single-rate" and values.exceed != values.violate:
            text = "single rate, three colours (RFC 2697): a kernel bucket cannot fill another one"
            self.notes.add_refused(origin, "police violate-action", text)
            return [], after
        conform = self._colour_step(values.conform, origin, after)
        tick_bytes = max(values.cir_bps, values.pir_bps) * TICK_S / 8
        self.notes.add_exact(
            origin, "police", f"act_police, decisions equal within {tick_bytes:.2g} bytes of the bucket"
        )
        if values.algorithm == "two-rate":
            violate = self._colour_step(values.violate, origin, after)
            first = self._token_bucket(values.pir_bps, values.be_bytes, violate, origin, "police")
            second = self._token_bucket(values.cir_bps, values.bc_bytes, exceed, origin, "police")
            return [first, second], conform
        drop = conform == DROP
        bucket = self._token_bucket(values.cir_bps, values.bc_bytes, exceed, origin, "police", drop=drop)
        return [bucket], conform

    def _token_bucket(
        self, rate: int, burst: int, exceed: Control, origin: Origin, action: str, *, drop: bool = False
    ) -> Police:
        counted = COUNTED_HEADER[self.port.framing]
        seen = 0 if self.hook == "ingress" else self.port.device_header_bytes
        overhead = counted - seen
        if overhead < 0:
            text = (
                f"counts {-overhead} bytes more than the router: at most {-overhead / (64 + counted):.0%} of the rate "
                "with packets of 64 bytes"
            )
            self.notes.add_approximate(origin, action, text)
        if rate % 8:
            self.notes.add_approximate(
                origin, action, f"{rate} b/s becomes {rate // 8 * 8} b/s: tc counts bytes per second"
            )
        return Police(rate, burst, max(overhead, 0), exceed, drop)

    def _colour_step(self, actions: Sequence[Config], origin: Origin, after: Control) -> Control:
        """Return the next step for packets of a colour: continue, go to a chain that marks them, or drop."""
        marks = MarkState()
        for each in actions:
            match each["action"]:
                case "drop":
                    return DROP
                case "transmit":
                    continue
                case "set-dscp-transmit":
                    marks = marks.with_set("dscp", each["value"])
                case "set-prec-transmit":
                    marks = marks.with_set("precedence", each["value"])
                case "set-qos-transmit":
                    marks = marks.with_set("qos_group", each["value"])
                case other:
                    self.notes.add_refused(origin, f"police {other}", "the kernel has no such mark in a plan")
        if marks == MarkState():
            return after
        chain = self._next_chain()
        group = () if marks.qos_group is None else (SetMark(marks.qos_group, QOS_GROUP_MASK),)
        if marks.fields:
            self._mark(chain, origin, marks, (*group, after))
        else:
            self._add(chain, origin, "matchall", (*group, after))
        return Control(chain)
