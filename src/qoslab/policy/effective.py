"""Effective values of attached policy-maps: rates, bursts, queues and waits, with defaults filled in.

Sizes are in bytes unless stated otherwise, for IP packets of the interface's MTU with the layer 2 header that the
router counts. Rates depend on the interface's `bandwidth`, and waits on its line rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from qoslab.ios.device_config.normalise import ASSURED_FORWARDING, EF, red_thresholds, resolve_percentages
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.generations import GENERATIONS, QosGeneration
from qoslab.ios.model.ios_names import dscp_text, interface_kind
from qoslab.ios.model.policy import (
    CLASS_DEFAULT,
    Mark,
    MarkFromField,
    PoliceAction,
    PolicyClass,
    PolicyMap,
    RandomDetect,
    RedThresholds,
    Shape,
    UserDefinedAccount,
)
from qoslab.ios.rules import (
    VIRTUAL_BANDWIDTH_KBPS,
    descendants,
)
from qoslab.model.framing import ATM_CORE_HEADER, COUNTED_HEADER
from qoslab.model.generation import Generation
from qoslab.policy.class_values import (
    ClassValues,
    PoliceValues,
    PolicyValues,
    QueueValues,
    RedRow,
    RedValues,
    ShapeValues,
)
from qoslab.policy.composed_rates import composed_clock_rate
from qoslab.policy.line_rates import CARRIED, LINE, base_rate, carrier_line, line_rate
from qoslab.policy.pasted_configuration import Attachment, Configuration, outermost_policies
from qoslab.policy.rate import Rate
from qoslab.policy.shares import (
    TIME_DIVISORS,
    PolicyLevel,
    priority_limit,
    rate_of,
    rates_when_all_busy,
    reference_rate,
    reserved_rate,
)
from qoslab.policy.tunnels import find_encapsulation, tunnel_notes, unmodelled_tunnel_notes

MTU = 1500
VLAN_TAG = 4
"""Bytes of an IEEE 802.1Q tag."""


@dataclass(frozen=True)
class _PolicyPosition:
    """Position of a policy-map in the hierarchy."""

    rate: Rate
    guaranteed: Rate
    capacity: Rate
    line: Rate
    queues: bool
    path: tuple[str, ...] = ()
    ring_ms: float | None = 0.0
    """Longest wait after the queues: transmit ring, or interval of a parent's shaper."""
    reservable: float = 1.0
    ring_unconfirmed: bool = False
    ceiling: Rate | None = None
    """Rate of the parent shapers and policers; None for the line rate."""
    added: int = 0
    """Bytes that the shaper above counts for each packet in addition, by `account user-defined`."""


@dataclass
class _EffectiveContext:
    device: Device
    generation: Generation
    frame: int
    output: bool
    jumbo: bool
    """True if the port accepts packets above 1500 bytes: the divisor of default queue limits is then not certain."""
    made: list[ClassValues] = field(default_factory=list)

    @property
    def qos(self) -> QosGeneration:
        """The description of the generation."""
        return GENERATIONS[self.generation]

    @property
    def has_separate_queues(self) -> bool:
        """True if each class has its own queue."""
        return self.qos.separate_queues


def effective_policies(configuration: Configuration, rate_bps: int | None = None) -> list[PolicyValues]:
    """Return the values of each attached policy-map; of the outermost policy-maps if none is attached.

    `rate_bps` replaces the line rate of the interface.
    """
    device = configuration.device
    attached = [each for each in configuration.attachments if each.policy in device.policy_maps]
    on_interfaces, outer = {at.policy for at in attached}, outermost_policies(device)
    others = [
        _other_location(configuration, name)
        for name in device.policy_maps
        if configuration.attached_elsewhere(name) is not None or (name in outer and name not in on_interfaces)
    ]
    # If some policies are attached, unattached ones have no values.
    attached += [each for each in others if each.place or not attached]
    return [_policy_values(configuration, each, rate_bps) for each in attached]


def _other_location(configuration: Configuration, name: str) -> Attachment:
    """Return the location of a policy-map that is not on an interface."""
    found = configuration.attached_elsewhere(name)
    if found is not None:
        return Attachment("", found[1], name, found[2], place=found[0], circuit=configuration.circuit_rates(name))
    device = configuration.device
    direction = "output" if _policy_has_queues(device, device.policy_maps[name]) else "input or output"
    return Attachment("", direction, name, configuration.line_number(name))


def _policy_values(configuration: Configuration, at: Attachment, rate_bps: int | None) -> PolicyValues:
    device = configuration.device
    policy = device.policy_maps[at.policy]
    interface = device.interfaces.get(at.interface)
    speed = None if interface is None else configuration.speed_mbps(interface.parent or interface.name)
    base, base_source = base_rate(interface, at, rate_bps, speed)
    line, line_source = line_rate(device, interface, rate_bps, speed) or (base, base_source)
    kind = interface_kind(at.interface)
    if interface is None and rate_bps is None and kind in CARRIED:
        line, line_source = carrier_line(configuration, at)
        if not base.is_absolute:
            # Without percentages, the base has no effect.
            default = Rate(VIRTUAL_BANDWIDTH_KBPS[kind] * 1000.0), f"default bandwidth of {kind}"
            base, base_source = default if any(map(has_percentage, policy.classes)) else (line, line_source)
    elif rate_bps is None and (clocks := composed_clock_rate(configuration.lines.below, at.interface)) is not None:
        line, line_source = Rate(float(clocks[0])), clocks[1]
    if at.circuit is not None and rate_bps is None:
        base, base_source = Rate(float(at.circuit.min_cir_bps)), at.circuit.min_cir_source
        line, line_source = Rate(float(at.circuit.cir_bps)), "frame-relay cir"
    tags = configuration.vlan_tags(at.interface)
    header = _unmodelled_header(configuration, at, tags) if interface is None else counted_header(interface, tags)
    encapsulation = find_encapsulation(configuration, at)
    if encapsulation is not None and not encapsulation.is_below_tunnels:
        header = 0
    mtu = MTU if interface is None or interface.mtu is None else interface.mtu
    output = at.direction != "input"
    jumbo = configuration.port_mtu(at.interface) > MTU
    context = _EffectiveContext(device, device.generation, mtu + (header or 0), output, jumbo)
    queues = output and device.hardware.family == "router" and _policy_has_queues(device, policy)
    reservable = engine_defaults.CLASSIC_RESERVABLE_PERCENT
    if interface is not None and interface.max_reserved_bandwidth is not None:
        reservable = interface.max_reserved_bandwidth
    ring = 0 if interface is None else ring_bytes(context.qos, interface, line, context.frame)
    behind = _transmission_ms(ring, line)
    guessed = interface is not None and interface.tx_ring_limit is None
    if interface is not None and interface.is_serial and context.qos.tx_ring is None:
        guessed = False
    here = _PolicyPosition(base, base, line, line, queues, (), behind, reservable / 100, guessed)
    _walk(context, policy, here)
    shaped = [each.shape.rate for each in context.made if each.shape is not None and len(each.path) == 1]
    added = next((_uncounted_header_bytes(each.shape) for each in policy.classes if each.shape is not None), 0)
    return PolicyValues(
        at.policy,
        at.name,
        at.direction,
        at.refused,
        base,
        base_source,
        line,
        line_source,
        header,
        queues,
        tuple(context.made),
        at.line,
        device.switch is not None,
        at.place,
        tunnel_notes(encapsulation, shaped[0] if shaped else line, (header or 0) + added)
        + unmodelled_tunnel_notes(configuration, at),
    )


def has_percentage(typed: PolicyClass | None) -> bool:
    """Return whether a rate of a class is a percentage of the rate above it."""
    if typed is None:
        return False
    amounts = [one.cir for one in (typed.police,) if one] + [one.rate for one in (typed.shape,) if one]
    given = [one.unit for one in (typed.bandwidth, typed.priority) if one]
    return "percent" in given or any(each.unit == "percent" for each in amounts)


def _unmodelled_header(configuration: Configuration, at: Attachment, vlan_tags: int) -> int | None:
    """Return the counted bytes of layer 2 of an interface of a kind that is not modelled; None if they are unknown."""
    if at.interface.startswith("Port-channel"):
        return COUNTED_HEADER["ethernet"] + VLAN_TAG * vlan_tags
    if not at.interface.startswith("Serial"):
        return None
    below = configuration.lines.below.get(f"interface {at.interface}", [])
    encapsulations = [text.split()[1] for text in below if text.startswith("encapsulation ")]
    bundled = any(text.startswith("ppp multilink") for text in below)
    known = not bundled and set(encapsulations) <= {"ppp", "hdlc"}
    return COUNTED_HEADER["ppp"] if known else None


def counted_header(interface: Interface, vlan_tags: int = 0) -> int:
    """Return the bytes of layer 2 that are counted with an IP packet."""
    if interface.is_atm:
        return 8 + ATM_CORE_HEADER
    return COUNTED_HEADER["ppp" if interface.is_serial else "ethernet"] + VLAN_TAG * vlan_tags


def ring_bytes(qos: QosGeneration, interface: Interface, line: Rate, frame: int) -> int:
    """Return the bytes of the full transmit ring and of the packet on the line."""
    if interface.is_atm:
        return frame + (interface.tx_ring_limit or engine_defaults.ATM_TX_RING) * engine_defaults.ATM_PARTICLE
    if interface.tx_ring_limit is not None:
        packets = interface.tx_ring_limit
    elif qos.tx_ring is not None:
        packets = qos.tx_ring
    elif interface.is_serial:
        packets = engine_defaults.SERIAL_TX_RING_FAIR
    else:
        fast = line.is_absolute and line.bps > engine_defaults.ETHERNET_FAST_ABOVE_BPS
        packets = engine_defaults.ETHERNET_TX_RING_FAST if fast else engine_defaults.ETHERNET_TX_RING
    return (packets + 1) * frame


def _policy_has_queues(device: Device, policy: PolicyMap) -> bool:
    return any(each.queueing for part in descendants(device, policy) for each in part.classes)


def _class_has_queues(device: Device, each: PolicyClass) -> bool:
    child = device.policy_maps.get(each.service_policy or "")
    return each.queueing or (child is not None and _policy_has_queues(device, child))


def _walk(context: _EffectiveContext, policy: PolicyMap, here: _PolicyPosition) -> None:
    known = (_rate_bps(here.rate), _rate_bps(here.guaranteed), context.generation)
    classes = [resolve_percentages(each, *known) for each in policy.classes]
    if policy.find(CLASS_DEFAULT) is None:
        classes.append(PolicyClass(CLASS_DEFAULT))
    caps = {each.name: cap for each in classes if (cap := _class_max_rate(each, here.rate)) is not None}
    own = [each for each in classes if each.name == CLASS_DEFAULT or _class_has_queues(context.device, each)]
    level = PolicyLevel(context.generation, own, here.guaranteed, here.capacity, here.reservable, caps)
    busy = rates_when_all_busy(level) if here.queues else {}
    alone = sum(each.priority is None for each in own) < 2
    unlimited = any(each.priority and priority_limit(each, here.guaranteed, caps) is None for each in own)
    values = {}
    for each in classes:
        named = (policy.name, policy.find(each.name) or each, each)
        queued = here.queues and each in own
        values[each.name] = _class_values(context, named, here, caps.get(each.name), busy.get(each.name), queued=queued)
    priorities = [(each, queue) for each in own if each.priority and (queue := values[each.name].queue)]
    for each in classes:
        made = values[each.name]
        if each.priority and made.queue is not None:
            made = replace(made, wait_ms=_priority_wait(context, made.priority or 1, here, priorities, caps))
        estimate = here.queues and (unlimited or (not context.has_separate_queues and not alone))
        context.made.append(replace(made, estimate=estimate and each.priority is None))
        child = context.device.policy_maps.get(each.service_policy or "")
        if child is not None and len(here.path) < engine_defaults.MAX_LEVELS:
            _walk(context, child, _child_position(context, here, each, made, busy.get(each.name)))


def _shaper_wait(context: _EffectiveContext, shape: ShapeValues) -> float | None:
    """Return the longest wait of the first packet in a shaper: its interval, or one packet time if it spaces
    packets.
    """
    return _transmission_ms(context.frame, shape.target) if context.qos.tx_ring is not None else shape.tc_ms


def _child_position(
    context: _EffectiveContext, here: _PolicyPosition, each: PolicyClass, made: ClassValues, busy: Rate | None
) -> _PolicyPosition:
    """Return the position of a child policy-map: percentages refer to the parent's shaper, else to its bandwidth."""
    shape = None if made.shape is None else made.shape.rate
    capacity = busy or (None if made.shape is None else made.shape.target) or shape or here.capacity
    tc_ms = here.ring_ms if made.shape is None else _shaper_wait(context, made.shape)
    return _PolicyPosition(
        shape or here.rate,
        shape or reserved_rate(each, here.guaranteed) or here.guaranteed,
        capacity,
        here.line,
        here.queues,
        made.path,
        tc_ms,
        ring_unconfirmed=made.shape is None and here.ring_unconfirmed,
        ceiling=made.maximum,
        added=here.added if each.shape is None else _uncounted_header_bytes(each.shape),
    )


def _uncounted_header_bytes(shape: Shape) -> int:
    """Return the bytes that a shaper counts for each packet in addition, unless it counts cells."""
    account = shape.account
    return account.offset if isinstance(account, UserDefinedAccount) and not account.atm else 0


def _class_values(
    context: _EffectiveContext,
    named: tuple[str, PolicyClass, PolicyClass],
    here: _PolicyPosition,
    cap: Rate | None,
    busy: Rate | None,
    *,
    queued: bool,
) -> ClassValues:
    policy, typed, each = named
    made = ClassValues(
        (*here.path, each.name),
        policy,
        priority=None if each.priority is None else each.priority.level or 1,
        guaranteed=reserved_rate(each, here.guaranteed) if queued else None,
        maximum=_lower_rate(cap, here.ceiling),
        busy=busy,
        joins_default=here.queues and not queued,
        police=_police_values(context, typed, each, here),
        shape=_shape_values(context, typed, each, here.rate),
        marks=(*map(_mark_text, each.marks), *map(_source_text, each.marks_from)),
        drop=each.drop,
        trust=each.trust,
        without_effect=tuple(line.text for line in each.inert),
        account="".join(str(one.account) for one in (each.shape, each.bandwidth) if one and one.account),
    )
    if made.shape is not None and made.shape.rate.lower(here.line) != here.line:
        # Below the line rate, packets wait for the shaper and not for the transmit ring.
        here = replace(here, ring_ms=_shaper_wait(context, made.shape), ring_unconfirmed=False)
    if each.shape is not None:
        here = replace(here, added=_uncounted_header_bytes(each.shape))
    if not queued or _class_has_queues(context.device, PolicyClass("", service_policy=each.service_policy)):
        return made
    queue = _queue_values(context, each, here, busy)
    return replace(
        made,
        queue=queue,
        wait_ms=None if each.priority else _queue_wait(here, queue),
        wait_unconfirmed=here.ring_unconfirmed or queue.unconfirmed,
        red=_red_values(context, each, here, queue),
    )


def _class_max_rate(each: PolicyClass, base: Rate) -> Rate | None:
    """Return the maximum rate of a class; None without a limit."""
    limits = []
    if each.drop:
        return Rate()
    if each.shape is not None:
        cir = rate_of(each.shape.rate, base)
        limits.append(_target(each.shape, cir) or LINE)
    police = each.police
    if police is not None and _drops_all(police.exceed):
        limits.append(rate_of(police.cir, base))
    elif police is not None and police.pir is not None and _drops_all(police.violate):
        limits.append(rate_of(police.pir, base))
    if not limits:
        return None
    return _lower_rate(limits[0], limits[-1])


def _lower_rate(one: Rate | None, other: Rate | None) -> Rate | None:
    return other if one is None else one if other is None else one.lower(other) or one


def _drops_all(actions: tuple[PoliceAction, ...] | None) -> bool:
    return any(each.action == "drop" for each in actions or ())


def _rate_bps(rate: Rate) -> int | None:
    return int(rate.bps) if rate.is_absolute else None


def _transmission_ms(size: int, rate: Rate | None) -> float | None:
    """Return the transmission time of some bytes at a rate in milliseconds."""
    return None if rate is None or not rate.is_absolute or rate.bps <= 0 else size * 8000 / rate.bps


def _police_values(
    context: _EffectiveContext, typed: PolicyClass, each: PolicyClass, here: _PolicyPosition
) -> PoliceValues | None:
    if each.aggregate is not None and context.device.switch is not None:
        found = dict(context.device.switch.aggregate_policers).get(each.aggregate)
        if found is None:
            return None
        cir = Rate(float(found.rate_bps))
        bytes_ = found.burst_bytes
        return PoliceValues(
            cir,
            bytes_,
            None,
            None,
            "transmit",
            found.exceed,
            None,
            _transmission_ms(bytes_, cir),
            _transmission_ms(bytes_, here.line),
            False,
            each.aggregate,
        )
    police = each.police
    if police is None:
        return None
    cir = rate_of(police.cir, here.rate)
    bc = _burst_bytes(police.bc)
    return PoliceValues(
        cir,
        bc,
        _burst_bytes(police.be),
        None if police.pir is None else rate_of(police.pir, here.rate),
        _action_texts(police.conform),
        _action_texts(police.exceed),
        None if police.violate is None else _action_texts(police.violate),
        None if bc is None else _transmission_ms(bc, cir),
        None if bc is None else _transmission_ms(bc, here.line),
        typed.police is None or typed.police.bc is None,
    )


def _burst_bytes(amount: object) -> int | None:
    number, unit = getattr(amount, "number", None), getattr(amount, "unit", None)
    return number if unit in ("bytes", "bits") else None


def _action_texts(actions: tuple[PoliceAction, ...] | None) -> str:
    return ", ".join(
        each.action if each.value is None else f"{each.action} {_action_text(each)}" for each in actions or ()
    )


def _action_text(each: PoliceAction) -> str:
    return dscp_text(each.value or 0) if each.action == "set-dscp-transmit" else str(each.value)


def _mark_text(mark: Mark) -> str:
    value = dscp_text(mark.value) if "dscp" in mark.field else str(mark.value)
    return f"{mark.field.replace('ip_', 'ip ').replace('_', '-')} {value}"


def _source_text(mark: MarkFromField) -> str:
    table = "" if mark.table is None else f" by table-map {mark.table}"
    return f"{mark.field.replace('ip_', 'ip ')} from {mark.source}".replace("_", "-") + table


def _shape_values(context: _EffectiveContext, typed: PolicyClass, each: PolicyClass, base: Rate) -> ShapeValues | None:
    shape = each.shape
    if shape is None:
        return None
    default = typed.shape is None or typed.shape.bc is None
    rate = rate_of(shape.rate, base)
    bc = _burst_bytes(shape.bc)
    low = (
        default
        and rate.is_absolute
        and rate.bps * context.qos.shape_interval_ms < context.qos.shape_least_burst_bits * 1000
    )
    tc_ms = None if bc is None or not rate.is_absolute or rate.bps <= 0 else bc * 1000 / rate.bps
    spaced = context.qos.tx_ring is not None
    return ShapeValues(shape.mode, rate, bc, _burst_bytes(shape.be), tc_ms, default, low, spaced, _target(shape, rate))


def _target(shape: Shape, cir: Rate) -> Rate | None:
    """Return the highest mean rate of a shaper; None if its bursts depend on an unknown rate."""
    if shape.mode != "peak":
        return cir
    bc, be = _burst_bytes(shape.bc), _burst_bytes(shape.be)
    return None if not bc or be is None else cir.multiplied_by(1 + be / bc)


def _priority_queue(context: _EffectiveContext, each: PolicyClass, here: _PolicyPosition) -> QueueValues:
    """Return the queue of a priority class."""
    limit = each.queue_limit
    if limit is None or limit.unit == "packets":
        packets = context.qos.priority_queue_limit if limit is None else limit.number
        size = packets * context.frame
        time = _drain_time_ms(context, here, size, here.capacity)
        return QueueValues("priority", packets, size, time, limit is None, not context.has_separate_queues)
    # The time is at the rate of the class.
    own = reserved_rate(each, here.guaranteed) or here.rate
    part = TIME_DIVISORS.get(limit.unit)
    size = int(own.bps * limit.number / part) if part else limit.number
    known = not part or own.is_absolute
    time = _drain_time_ms(context, here, size, here.capacity)
    return QueueValues("priority", None, size if known else None, time, False, not known)


def _queue_values(
    context: _EffectiveContext, each: PolicyClass, here: _PolicyPosition, busy: Rate | None
) -> QueueValues:
    if each.priority is not None:
        return _priority_queue(context, each, here)
    separate = context.has_separate_queues
    limit = each.queue_limit
    rate = reference_rate(each, here.rate, here.guaranteed)
    if limit is not None and limit.unit != "packets":
        part = TIME_DIVISORS.get(limit.unit)
        size_known = not part or rate.is_absolute
        size = int(rate.bps * limit.number / part) if part else limit.number
        time = _drain_time_ms(context, here, size, busy) if size_known else None
        given = {"ms": limit.number, "us": limit.number / 1000}.get(limit.unit)
        return QueueValues("FIFO", None, size if size_known else None, time, False, False, given_ms=given)
    if limit is None and each.random_detect is not None and each.random_detect.unit not in (None, "percent"):
        size = engine_defaults.QUEUE_LIMIT_BYTES
        if context.qos.queue_limit_ms is not None:
            size = context.qos.queue_limit(_rate_bps(rate)) * engine_defaults.XE_QUEUE_LIMIT_PACKET
        return QueueValues("FIFO", None, size, _drain_time_ms(context, here, size, busy), True, True)
    if limit is None and context.qos.queue_limit_ms is not None and not rate.is_absolute:
        return QueueValues("FIFO", None, None, None, True, False, given_ms=context.qos.queue_limit_ms)
    packets = context.qos.queue_limit(_rate_bps(rate)) if limit is None else limit.number
    size = packets * context.frame
    flows = per_flow = None
    discipline = "FIFO"
    if separate and each.fair_queue is not None:
        discipline, flows = "fair", each.fair_queue.queues or context.qos.class_flow_queues
        if each.random_detect is None or context.qos.flow_limit_with_random_detect:
            per_flow = max(packets // engine_defaults.FLOW_LIMIT_DIVISOR, 1)
        if each.fair_queue.queue_limit is not None:
            per_flow = each.fair_queue.queue_limit
    elif not separate and (each.fair_queue or each.shape or (each.name == CLASS_DEFAULT and each.bandwidth is None)):
        discipline = "weighted fair"
        flows = None if each.fair_queue is None else each.fair_queue.queues
    time = _drain_time_ms(context, here, size, busy)
    unconfirmed = discipline != "FIFO" or (limit is None and context.jumbo and context.qos.queue_limit_ms is not None)
    return QueueValues(discipline, packets, size, time, limit is None, unconfirmed, flows, per_flow)


def _queue_wait(here: _PolicyPosition, queue: QueueValues) -> float | None:
    """Return the longest wait of a packet that is not dropped while all classes are busy."""
    if queue.ms is None:
        return None
    # With fair queueing, one flow that uses the class alone.
    part = queue.per_flow_packets / queue.packets if queue.per_flow_packets and queue.packets else 1.0
    return queue.ms * part + (here.ring_ms or 0)


def _priority_wait(
    context: _EffectiveContext,
    level: int,
    here: _PolicyPosition,
    classes: Sequence[tuple[PolicyClass, QueueValues]],
    caps: Mapping[str, Rate],
) -> float | None:
    """Return the longest wait of a packet of a priority level while all classes are busy.

    All classes of a level share a queue. A lower level waits for the higher ones, too: while their bursts leave, new
    packets arrive at their rates.
    """
    sizes: dict[int, list[tuple[int, int]]] = {}
    left = here.capacity
    for each, queue in classes:
        own = each.priority.level or 1 if each.priority else 1
        limit = priority_limit(each, here.guaranteed, caps)
        if own < level and limit is None:
            return None
        if own <= level:
            left = left if own == level or limit is None else left - limit
            size = queue.bytes or 0
            sizes.setdefault(own, []).append((min(size, _greatest_burst(each, size)), size))
    ahead = sum(min(sum(burst for burst, _ in each), max(size for _, size in each)) for each in sizes.values())
    time = _drain_time_ms(context, here, ahead + context.frame, left)
    return None if time is None else time + (here.ring_ms or 0)


def _greatest_burst(each: PolicyClass, size: int) -> int:
    """Return the bytes that the policer of a priority class lets through at once; `size` without a policer."""
    if each.priority is not None and each.priority.burst_bytes is not None:
        # While the line is congested, the policer of the class drops traffic above its burst.
        size = min(size, each.priority.burst_bytes)
    police = each.police
    if police is None:
        return size
    bc, be = _burst_bytes(police.bc), _burst_bytes(police.be)
    if _drops_all(police.exceed):
        return size if bc is None else min(size, bc)
    if police.violate is None or not _drops_all(police.violate) or bc is None or be is None:
        return size
    return min(size, be if police.pir is not None else bc + be)


def _drain_time_ms(context: _EffectiveContext, here: _PolicyPosition, size: int, rate: Rate | None) -> float | None:
    """Return the time to send `size` bytes of full packets at a rate, in milliseconds.

    The rate counts the bytes that `account` of the shaper adds to each packet.
    """
    return _transmission_ms(size + size * here.added // context.frame, rate)


def _red_values(
    context: _EffectiveContext, each: PolicyClass, here: _PolicyPosition, queue: QueueValues
) -> RedValues | None:
    red = each.random_detect
    if red is None:
        return None
    by_limit = context.qos.random_detect_by_limit
    in_bytes = queue.packets is None and queue.bytes is not None
    limit = queue.bytes if in_bytes else queue.packets if by_limit else None
    unit = "bytes" if in_bytes else "packets"
    if by_limit and limit is None:
        # The rate that gives the limit is not known.
        limit, unit = 100, "percent of the limit"
    rate = reference_rate(each, here.rate, here.guaranteed)
    part = TIME_DIVISORS.get(red.unit or "packets")
    if part and in_bytes and rate.is_absolute:
        red = _convert_red_to_bytes(red, int(rate.bps), part)
    values: list[int] = list(range(8))
    if red.basis == "dscp":
        shown = {0, EF, *(8 * above + drop for above in ASSURED_FORWARDING for drop in (2, 4, 6))}
        values = sorted(shown | {value for value, _ in red.thresholds})
    typed = dict(red.thresholds)
    given = red.unit or "packets"
    own_unit = "" if given in (unit, "percent") else given
    rows = []
    for value in values:
        row = red_thresholds(red, value, context.generation, limit)
        name = dscp_text(value) if red.basis == "dscp" else str(value)
        is_typed = value in typed or bool(red.aggregate)
        rows.append(
            RedRow(name, row.minimum, row.maximum, row.denominator or 10, is_typed, own_unit if is_typed else "")
        )
    weight = red.exponential_weight or engine_defaults.RANDOM_DETECT_WEIGHT
    # On IOS-XE the thresholds by precedence are from router output, those by DSCP are from memory.
    unconfirmed = red.basis == "dscp" if by_limit else not context.has_separate_queues or in_bytes
    return RedValues(red.basis, unit, weight, red.ecn, tuple(rows), unconfirmed)


def _convert_red_to_bytes(red: RandomDetect, rate_bps: int, part: int) -> RandomDetect:
    """Return early detection with its thresholds in bytes at the rate of the class, like its queue limit."""

    def converted(row: RedThresholds) -> RedThresholds:
        least, most = (max(rate_bps * each // part, 1) for each in (row.minimum, row.maximum))
        return replace(row, minimum=least, maximum=most)

    rows = tuple((value, converted(row)) for value, row in red.thresholds)
    aggregate = None if red.aggregate is None else converted(red.aggregate)
    return replace(red, unit="bytes", thresholds=rows, aggregate=aggregate)
