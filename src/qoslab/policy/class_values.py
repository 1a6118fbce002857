"""Values of a policy-map and its classes, and their texts for comparing two configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qoslab.policy.rate import Rate


@dataclass(frozen=True)
class PoliceValues:
    """An effective policer. Bursts are None if they depend on an unknown rate."""

    cir: Rate
    bc_bytes: int | None
    be_bytes: int | None
    pir: Rate | None
    conform: str
    exceed: str
    violate: str | None
    bc_ms: float | None
    """Time to fill the bucket at the CIR."""
    line_ms: float | None
    """Time to empty the full bucket at the line rate."""
    default_burst: bool
    aggregate: str | None = None
    """Name of the aggregate policer that classes share, on a switch."""


@dataclass(frozen=True)
class ShapeValues:
    """An effective shaper."""

    mode: str
    rate: Rate
    bc_bits: int | None
    be_bits: int | None
    tc_ms: float | None
    default_burst: bool
    unconfirmed: bool
    """True if the default is based on an unconfirmed rounding rule."""
    spaced: bool = False
    """True if packets leave one by one, and the bursts are only shown."""
    target: Rate | None = None
    """Highest mean rate: of `shape peak`, CIR × (1 + Be / Bc); None if it depends on an unknown rate."""


@dataclass(frozen=True)
class QueueValues:
    """The queue of a class. `ms` is its length at the rate of the class when all classes are busy."""

    discipline: str
    packets: int | None
    bytes: int | None
    ms: float | None
    default: bool
    unconfirmed: bool
    flows: int | None = None
    per_flow_packets: int | None = None
    given_ms: float | None = None
    """Limit of `queue-limit N ms` or of the default in ms, if the rate to convert it is unknown."""


@dataclass(frozen=True)
class RedRow:
    """Thresholds of random early detection for a precedence or code point."""

    value: str
    minimum: int
    maximum: int
    denominator: int
    typed: bool
    unit: str = ""
    """Unit, if it is not that of the other rows."""


@dataclass(frozen=True)
class RedValues:
    """Weighted random early detection of a class."""

    basis: str
    unit: str
    weight: int
    ecn: bool
    rows: tuple[RedRow, ...]
    unconfirmed: bool


@dataclass(frozen=True)
class ClassValues:
    """A class with its effective values."""

    path: tuple[str, ...]
    """Names of the parent classes, and the name of the class."""
    policy: str
    priority: int | None = None
    """Priority level, from 1."""
    guaranteed: Rate | None = None
    maximum: Rate | None = None
    """Upper limit, including the limits of the parent classes; None for the line rate."""
    busy: Rate | None = None
    """Rate when all classes are busy; None if it depends on the line or has no limit."""
    joins_default: bool = False
    """True if it has no queue and shares the queue of class-default."""
    wait_ms: float | None = None
    wait_unconfirmed: bool = False
    """True if the length of the queue or of the transmit ring is not confirmed."""
    police: PoliceValues | None = None
    shape: ShapeValues | None = None
    queue: QueueValues | None = None
    red: RedValues | None = None
    marks: tuple[str, ...] = ()
    drop: bool = False
    trust: str | None = None
    account: str = ""
    """Packet length that a rate counts, if it differs from the usual one."""
    estimate: bool = False
    """True if the share is based on unconfirmed constants."""
    without_effect: tuple[str, ...] = ()
    """Lines of the class that are not modelled."""

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.path[-1]


@dataclass(frozen=True)
class PolicyValues:
    """A policy-map on an interface, or an outermost policy-map that is not attached."""

    policy: str
    interface: str
    """Empty if it is not attached."""
    direction: str
    refused: str
    base: Rate
    """Base of percentages."""
    base_source: str
    line: Rate
    line_source: str
    header_bytes: int | None
    """Counted layer 2 header in bytes; None if the kind of interface is unknown."""
    queues: bool
    """True if the policy has queues, which replace the queues of the interface."""
    classes: tuple[ClassValues, ...]
    number: int = 0
    """Line of `service-policy`, or of the policy-map."""
    switch: bool = False
    """True if the device is a switch."""
    place: str = ""
    """Another location of the policy-map, such as `control-plane`; empty on an interface."""
    tunnel_notes: tuple[str, ...] = ()
    """Sentences on the counted bytes of packets in tunnels."""


COMPARED_VALUES = ("priority", "guaranteed", "maximum", "busy", "wait_ms", "police", "shape", "queue", "red", "marks")


def flatten_values(values: PolicyValues) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Yield path, name and text of each value of each class, for comparing two configurations."""
    for each in values.classes:
        for name in COMPARED_VALUES:
            value = getattr(each, name)
            inner = {} if isinstance(value, Rate) else getattr(value, "__dataclass_fields__", {})
            for field_name in inner:
                part = getattr(value, field_name)
                if not isinstance(part, bool):
                    yield each.path, (name, field_name), value_text(part)
            if not inner:
                yield each.path, (name,), value_text(value)


def value_text(value: object) -> str:
    """Return the text of a value in a difference."""
    if value is None or value == ():
        return "-"
    if isinstance(value, RedRow):
        return f"{value.value} {value.minimum}-{value.maximum} 1/{value.denominator}"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, tuple):
        return ", ".join(map(value_text, value))
    return str(value)
