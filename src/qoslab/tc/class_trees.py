"""Queueing of an output policy as a tree of HTB classes.

HTB's `rate` is the guaranteed rate of a class, `ceil` its maximum rate, and `quantum` its share of unused bandwidth.
Priority classes may always send at the rate of the enclosing class, ahead of all other classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qoslab.ios.model import engine_defaults
from qoslab.ios.model.generations import GENERATIONS, QosGeneration
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.model.framing import AAL5_TRAILER, ATM_CORE_HEADER, MEDIUM, extra_bytes
from qoslab.tc.decision_lists import NotExpressibleError, class_decision
from qoslab.tc.engine_values import (
    Config,
    Level,
    ShapeValues,
    class_weights,
    has_queueing_class,
    has_queueing_policy,
    ordered_classes,
    police_values,
    reserved_bps,
    shape_values,
)
from qoslab.tc.fidelity import FidelityNotes
from qoslab.tc.leaves import Leaf, LeafContext, fifo_leaf, leaf_qdisc, queue_limit
from qoslab.tc.objects import HtbClass, Origin, Qdisc
from qoslab.tc.port_plan import PlannedPort

MIN_RATE_BPS = 8_000
"""Rate of a class without a guarantee: HTB has no rate of 0."""
PRIORITY_LEVELS = 2
DEFAULT_PRIORITY = PRIORITY_LEVELS
"""Priority in HTB of classes without priority."""
TIMER_SLACK_MS = 1
"""Minimum size of a bucket as time at its rate, so that late timers do not reduce throughput."""
MIN_QUANTUM = 1000
MAX_QUANTUM = 1_000_000
"""Maximum quantum in bytes; it limits the ratio between shares."""
FIRST_MINOR = 0x10
MIN_ETHERNET_LINE_BYTES = 84


@dataclass(frozen=True, slots=True)
class Length:
    """Length of a packet for HTB: bytes in addition to those of the qdisc, and whether it is rounded to cells."""

    offset: int
    cells: bool = False


@dataclass(frozen=True, slots=True)
class TreePosition:
    """Position of a policy-map in the tree."""

    parent: str
    """Parent class or qdisc."""
    rate_base_bps: int
    guaranteed_base_bps: int
    capacity_bps: int
    path: tuple[str, ...]
    length: Length


@dataclass
class ClassTree:
    """The compiler of one interface's output queueing; `build` fills it."""

    config: Config
    port: PlannedPort
    notes: FidelityNotes

    def __post_init__(self) -> None:
        self.objects: list[Qdisc | HtbClass] = []
        self.leaf_of_path: dict[tuple[str, ...], str] = {}
        """HTB class of each class without a child policy that has queues."""
        self.default = ""
        """HTB class of packets that no filter classifies."""
        self._minor = FIRST_MINOR
        self._base = 0

    @property
    def qos(self) -> QosGeneration:
        """The rules of the generation."""
        return GENERATIONS[self.config["generation"]]

    def class_origin(self, policy: str = "", path: tuple[str, ...] = ()) -> Origin:
        """Return the origin of an object of a class."""
        return Origin(self.port.interface, "output", policy, path)

    def build(self, policy: str | None) -> list[Qdisc | HtbClass]:
        """Return the qdiscs and classes of the interface; without a policy, those of its line and default queue."""
        counted = Length(self.port.counted_offset)
        self._base = min(0, counted.offset, *self._account_offsets(policy))
        line, bandwidth = self.port.line_bps, self.port.bandwidth_bps
        parent = "1:"
        if line is not None:
            self._add(self._add_line_class(line))
            parent = "1:1"
        here = TreePosition(parent, bandwidth, bandwidth, line or bandwidth, (), counted)
        if policy is None:
            self._add_plain_queue(here)
        else:
            self._add_level(policy, here)
        default = int(self.default.split(":")[1], 16)
        stab = (("stab overhead", self._base),) if self._base else ()
        root = Qdisc(
            self.port.device, "1:", "root", "htb", (("default", default), *stab), self.class_origin(policy or "")
        )
        return [root, *self.objects]

    def _account_offsets(self, policy: str | None) -> list[int]:
        if policy is None:
            return [0]
        offsets = [0]
        for each in self.config["policy_maps"][policy]["classes"]:
            offsets.append(self.port.counted_offset + account_length(each, 0).offset)
            offsets += self._account_offsets(each.get("service_policy"))
        return offsets

    def _add_line_class(self, line_bps: int) -> HtbClass:
        """Return the class of the line, which counts the bytes on it."""
        medium = MEDIUM[self.port.framing]
        offset = self.port.counted_offset
        if medium == "atm":
            length, mpu = Length(offset - ATM_CORE_HEADER + AAL5_TRAILER, cells=True), 0
        else:
            length = Length(offset + (extra_bytes(self.port.framing) or 0))
            mpu = MIN_ETHERNET_LINE_BYTES if medium == "ethernet" else 0
        made = self._add_class("1:", "1:1", (line_bps, line_bps), self.port.frame_bytes, 0, self.class_origin(), length)
        return replace(made, mpu_bytes=mpu)

    def _add_class(
        self,
        parent: str,
        classid: str,
        rates: tuple[int, int],
        burst_bytes: int,
        priority: int,
        origin: Origin,
        length: Length,
        quantum: int = 0,
    ) -> HtbClass:
        rate, ceil = rates
        slack = TIMER_SLACK_MS * ceil // 8000
        return HtbClass(
            self.port.device,
            parent,
            classid,
            rate,
            ceil,
            max(self.port.frame_bytes, TIMER_SLACK_MS * rate // 8000, burst_bytes if rate == ceil else 0),
            max(self.port.frame_bytes, slack, burst_bytes),
            priority,
            max(quantum or self.port.frame_bytes, MIN_QUANTUM),
            origin,
            length.offset - self._base,
            0,
            length.cells,
        )

    def _add(self, made: HtbClass) -> None:
        if made.overhead_bytes < 0:
            self.notes.add_refused(
                made.origin, "account", "HTB cannot count fewer bytes than the size table of its qdisc"
            )
            made = replace(made, overhead_bytes=0)
        self.objects.append(made)
        for rate in dict.fromkeys((made.rate_bps, made.ceil_bps)):
            if rate % 8 and rate > MIN_RATE_BPS:
                text = f"{rate} b/s becomes {rate // 8 * 8} b/s: HTB counts bytes per second"
                self.notes.add_approximate(made.origin, "shape", text)

    def _next_classid(self) -> str:
        self._minor += 1
        return f"1:{self._minor - 1:x}"

    def _add_leaf(self, made: HtbClass, leaf: Leaf) -> None:
        self._add(made)
        handle = f"{made.classid.split(':')[1]}:"
        self.objects.append(Qdisc(made.device, handle, made.classid, leaf.kind, leaf.options, made.origin))

    def _add_plain_queue(self, here: TreePosition) -> None:
        """Add the queue of an interface without queueing policy."""
        limit = self.port.hold_queue or engine_defaults.FIFO_HOLD_QUEUE
        self.default = self._next_classid()
        rates = (here.capacity_bps, here.capacity_bps)
        made = self._add_class(here.parent, self.default, rates, 0, DEFAULT_PRIORITY, self.class_origin(), here.length)
        self._add_leaf(made, Leaf("pfifo", (("limit", limit),)))

    def _add_level(self, policy: str, here: TreePosition) -> None:
        """Add the classes of a policy-map that queues."""
        classes = ordered_classes(self.config, policy)
        queued = [each["name"] == CLASS_DEFAULT or has_queueing_class(self.config, each) for each in classes]
        shapes = [self._shape_values(policy, each, here) for each in classes]
        of_interface = not self.qos.separate_queues and not here.path
        reservable = self.port.max_reserved_percent if of_interface else 100
        level = Level(self.config["generation"], here.guaranteed_base_bps, reservable)
        parts = class_weights(level, classes, queued)
        apart = self._needs_shared_queue(classes, queued, shapes)
        sharing = [index for index, each in enumerate(classes) if queued[index] and each.get("priority") is None]
        least = min(parts[index] for index in sharing)
        rates = self._guaranteed_rates(policy, (classes, parts, sharing, shapes), here)
        self._add_priority_classes(policy, classes, here)
        for index in sharing:
            each = classes[index]
            quantum = self.port.frame_bytes * parts[index] // least
            if quantum > MAX_QUANTUM:
                text = f"its share is cut to {MAX_QUANTUM // self.port.frame_bytes} times that of the smallest class"
                self.notes.add_approximate(self.class_origin(policy, (*here.path, each["name"])), "bandwidth", text)
                quantum = MAX_QUANTUM
            self._add_shared_class((policy, each), here, rates[index], shapes[index], (quantum, len(sharing)))
        shared = self.leaf_of_path.get((*here.path, CLASS_DEFAULT), "")
        if apart:
            shared = self._add_default_queue(
                policy, here, max(self.port.frame_bytes, self.port.frame_bytes * parts[-1] // least)
            )
        for each, own in zip(classes, queued, strict=True):
            if not own:
                self.leaf_of_path[(*here.path, each["name"])] = shared

    def _needs_shared_queue(
        self, classes: Sequence[Config], queued: Sequence[bool], shapes: Sequence[ShapeValues | None]
    ) -> bool:
        """Return whether classes without a queue need a separate one: class-default is shaped or has queueing
        children."""
        return not all(queued) and (self._has_queueing_child(classes[-1]) or shapes[-1] is not None)

    def _has_queueing_child(self, each: Config) -> bool:
        """Return whether a class has a child policy with queues."""
        child = each.get("service_policy")
        return child is not None and has_queueing_policy(self.config, child)

    def _shape_values(self, policy: str, each: Config, here: TreePosition) -> ShapeValues | None:
        if each.get("shape") is None:
            return None
        shape = shape_values(each["shape"], here.rate_base_bps, self.config["generation"])
        origin = self.class_origin(policy, (*here.path, each["name"]))
        bucket = self._bucket_bytes(shape)
        longest = f"bursts of up to {bucket + self.port.frame_bytes} bytes after a pause"
        router = max(self.port.frame_bytes, shape.limit_bytes)
        text = f"the same rate; {longest}, {router} bytes on the router"
        if not shape.spaced:
            text += f"; the router sends {shape.increment_bytes} bytes at once every {shape.interval_ms:g} ms"
        self.notes.add_approximate(origin, f"shape {each['shape']['mode']}", text)
        return shape

    def _bucket_bytes(self, shape: ShapeValues) -> int:
        """Return the bucket of a shaper in bytes; HTB sends one packet beyond it."""
        slack = TIMER_SLACK_MS * shape.rate_bps // 8000
        return max(self.port.frame_bytes, shape.limit_bytes - self.port.frame_bytes, slack)

    def _guaranteed_rates(
        self,
        policy: str,
        parts: tuple[Sequence[Config], Sequence[int], Sequence[int], Sequence[ShapeValues | None]],
        here: TreePosition,
    ) -> dict[int, int]:
        """Return the guaranteed rate of each class without priority while all classes are busy."""
        classes, shares, sharing, shapes = parts
        if len(sharing) == 1 and all(each.get("priority") is None for each in classes):
            only = sharing[0]
            shape = shapes[only]
            return {only: here.capacity_bps if shape is None else min(shape.rate_bps, here.capacity_bps)}
        limits = [self._priority_limit(each, here) for each in classes if each.get("priority") is not None]
        taken = sum(limit or 0 for limit in limits)
        unlimited = None in limits
        total = sum(shares[index] for index in sharing)
        minimums = 0
        if self.qos.minimum_and_excess:
            minimums = sum(reserved_bps(classes[index], here.guaranteed_base_bps) or 0 for index in sharing)
        found = {}
        for index in sharing:
            each = classes[index]
            origin = self.class_origin(policy, (*here.path, each["name"]))
            minimum = reserved_bps(each, here.guaranteed_base_bps) if self.qos.minimum_and_excess else None
            if minimum is not None and unlimited:
                text = "HTB would let the classes exceed the rate of their parent; give priority a rate or police"
                self.notes.add_refused(origin, "bandwidth next to priority without a rate", text)
            if unlimited:
                rate = MIN_RATE_BPS
            elif self.qos.minimum_and_excess and not self._has_queueing_child(each):
                rate = minimum or MIN_RATE_BPS
            else:
                rate = (minimum or 0) + (here.capacity_bps - taken - minimums) * shares[index] // total
            shape = shapes[index]
            ceil = here.capacity_bps if shape is None else min(shape.rate_bps, here.capacity_bps)
            found[index] = max(min(rate // 8 * 8, ceil), min(MIN_RATE_BPS, ceil))
            self._add_sharing_note(origin, each, shares[index] / total)
        return found

    def _add_sharing_note(self, origin: Origin, each: Config, part: float) -> None:
        bandwidth = each.get("bandwidth")
        if bandwidth is None:
            return
        ((unit, _),) = bandwidth.items()
        action = "bandwidth" + {"kbps": "", "percent": " percent"}.get(unit, f" {unit.replace('_', ' ')}")
        if self.qos.minimum_and_excess and unit in ("kbps", "percent"):
            self.notes.add_exact(origin, action, "rate of HTB; the rest is shared by quantum")
        elif self.qos.minimum_and_excess:
            self.notes.add_exact(origin, action, "quantum of HTB, a share of the rate left by minimum rates")
        elif self.qos.separate_queues:
            self.notes.add_exact(
                origin, action, f"rate and quantum of HTB: {part:.1%} of the rate that priority leaves"
            )
        else:
            text = f"{part:.1%} of the rate that priority leaves, if class-default has one busy flow"
            self.notes.add_approximate(origin, action, text)

    def _priority_limit(self, each: Config, here: TreePosition) -> int | None:
        """Return the maximum rate of a priority class; None without a limit."""
        own = reserved_bps(each, here.guaranteed_base_bps)
        police = each.get("police")
        if police is None:
            return own
        values = police_values(police, here.rate_base_bps)
        drops = any(action["action"] == "drop" for action in values.exceed)
        limit = values.cir_bps if drops else None
        return limit if own is None else own if limit is None else min(own, limit)

    def _add_priority_classes(self, policy: str, classes: Sequence[Config], here: TreePosition) -> None:
        """Add a class for each priority level."""
        of_level: dict[int, list[Config]] = {}
        for each in classes:
            if each.get("priority") is not None:
                of_level.setdefault(each["priority"].get("level") or 1, []).append(each)
        for number, members in sorted(of_level.items()):
            paths = [(*here.path, each["name"]) for each in members]
            classid = self._next_classid()
            rates = (here.capacity_bps, here.capacity_bps)
            origin = self.class_origin(policy, paths[0])
            made = self._add_class(here.parent, classid, rates, 0, number - 1, origin, here.length)
            self._add_leaf(made, self._shared_priority_queue(members, here, origin))
            for path, each in zip(paths, members, strict=True):
                self.leaf_of_path[path] = classid
                where = self.class_origin(policy, path)
                if each["priority"].get("number") is None:
                    self.notes.add_exact(where, "priority", "HTB class with priority over all others; no policer")
                else:
                    text = "always policed; the router polices only while the line is congested"
                    self.notes.add_approximate(where, "priority", text)

    def _shared_priority_queue(self, members: Sequence[Config], here: TreePosition, origin: Origin) -> Leaf:
        """Return the shared queue of the priority classes of a level, with the greatest limit of these classes."""
        place = self._leaf_place(here.capacity_bps, origin)
        limits = []
        for each in members:
            if each.get("queue_limit") is None:
                limits.append(("packets", self.qos.priority_queue_limit))
            else:
                limits.append(queue_limit(each, place))
        unit, limit = max(limits, key=lambda found: (found[0] == "bytes", found[1]))
        return Leaf("bfifo" if unit == "bytes" else "pfifo", (("limit", limit),))

    def _leaf_place(self, rate_bps: int, origin: Origin) -> LeafContext:
        decision = None
        if origin.path and origin.path[-1] != CLASS_DEFAULT:
            try:
                decision = class_decision(self.config, origin.path[-1])
            except NotExpressibleError:
                decision = None
        generation, bandwidth = self.config["generation"], self.port.bandwidth_bps // 1000
        return LeafContext(generation, rate_bps, bandwidth, self.port.frame_bytes, origin, decision)

    def _add_shared_class(
        self,
        named: tuple[str, Config],
        here: TreePosition,
        rate_bps: int,
        shape: ShapeValues | None,
        sharing: tuple[int, int],
    ) -> None:
        """Add a class without priority and its queue, or the classes of its child."""
        policy, each = named
        quantum, siblings = sharing
        path = (*here.path, each["name"])
        origin = self.class_origin(policy, path)
        ceil = here.capacity_bps if shape is None else min(shape.rate_bps, here.capacity_bps)
        bucket = 0 if shape is None else self._bucket_bytes(shape)
        length = account_length(each, self.port.counted_offset) if each.get("account") is not None else here.length
        if each.get("account") is not None:
            self.notes.add_exact(origin, "account", "overhead and linklayer of HTB")
        classid = self._next_classid()
        made = self._add_class(
            here.parent, classid, (rate_bps, ceil), bucket, DEFAULT_PRIORITY, origin, length, quantum
        )
        reserved = reserved_bps(each, here.guaranteed_base_bps)
        if self._has_queueing_child(each):
            self._add(made)
            if siblings > 1:
                text = "the rate that other classes leave is shared by the number of busy classes below each"
                self.notes.add_approximate(origin, "service-policy", text)
            base = None if shape is None else shape.cir_bps
            guaranteed = base or reserved or here.guaranteed_base_bps
            below = TreePosition(classid, base or here.rate_base_bps, guaranteed, ceil, path, length)
            self._add_level(each["service_policy"], below)
            return
        reference = reserved or (None if shape is None else shape.cir_bps) or here.rate_base_bps
        self._add_leaf(made, leaf_qdisc(each, self._leaf_place(reference, origin), self.notes))
        self.leaf_of_path[path] = classid
        if all(name == CLASS_DEFAULT for name in path):
            self.default = classid

    def _add_default_queue(self, policy: str, here: TreePosition, quantum: int) -> str:
        """Add a queue for the classes without one, next to a class-default that is shaped or has a queueing child."""
        classid = self._next_classid()
        origin = self.class_origin(policy, here.path)
        rates = (MIN_RATE_BPS, here.capacity_bps)
        made = self._add_class(here.parent, classid, rates, 0, DEFAULT_PRIORITY, origin, here.length, quantum)
        self._add_leaf(made, fifo_leaf({"name": ""}, self._leaf_place(here.rate_base_bps, origin), self.notes))
        return classid


def account_length(each: Config, counted_offset: int) -> Length:
    """Return the length of packets by `account`, relative to the kernel's count."""
    account = each.get("account")
    if account is None:
        return Length(counted_offset)
    if "user_defined" in account:
        given = account["user_defined"]
        return Length(counted_offset + given["offset"], bool(given.get("atm")))
    given = account["aal5"]
    counted = {"dot1q": 18, "qinq": 22}[given["access"]]
    # Table 10-1 of the Cisco 10000's QoS guide, as in `crates/qos-core/src/compile/account.rs`.
    taken = {
        "snap-1483routed": 18,
        "mux-1483routed": 8,
        "snap-pppoa": 12,
        "mux-pppoa": 10,
        "snap-rbe": 32,
        "mux-rbe": 22,
        "snap-dot1q-rbe": 36,
        "mux-dot1q-rbe": 26,
    }[given["subscriber"]]
    return Length(counted_offset + taken - counted, cells=True)
