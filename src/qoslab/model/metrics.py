"""The figures that a run yields for each arm: their names, units and meaning.

`analysis` computes them, experiment files expect and published tables list them, all under these names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qoslab.units import Duration, Percent, Quantity, QuantityError, Rate, Size

Unit = Literal["b/s", "B", "bit", "ms", "packets", "fraction", "ratio", "index", "flag"]
Bound = Rate | Size | Duration | Percent | int | float
"""A figure as an experiment file writes it."""

QUANTITY_OF_UNIT: dict[Unit, type[Quantity]] = {"b/s": Rate, "B": Size, "ms": Duration, "fraction": Percent}
"""Units that experiment files write as a quantity; the figures of all other units are plain numbers."""


@dataclass(frozen=True)
class Metric:
    """One figure of an arm, a float in `unit`."""

    name: str
    unit: Unit
    description: str


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("goodput.sum", "b/s", "TCP or UDP payload received, sum of all flows, over the traffic time"),
        Metric("goodput.flow.min", "b/s", "goodput of the slowest flow"),
        Metric("goodput.flow.max", "b/s", "goodput of the fastest flow"),
        Metric("goodput.spread", "ratio", "fastest flow over slowest flow"),
        Metric("fairness.jain", "index", "Jain's index over the flows' goodputs; 1 is equal shares"),
        Metric("police.bc", "B", "committed burst in force"),
        Metric("police.conformed_packets", "packets", "packets that conformed"),
        Metric("police.exceeded_packets", "packets", "packets that exceeded"),
        Metric("police.exceed_share", "fraction", "exceeded packets over all policed packets"),
        Metric("shape.byte_limit", "B", "(Bc + Be) / 8, the Byte Limit column"),
        Metric("shape.sustain_bits", "bit", "Bc, the Sustain bits/int column"),
        Metric("shape.excess_bits", "bit", "Be, the Excess bits/int column"),
        Metric("shape.interval_ms", "ms", "Tc, the Interval column"),
        Metric("shape.increment_bytes", "B", "Bc / 8, the Increment column"),
        Metric("shape.queue_depth.during", "packets", "packets in the shaping queue while traffic ran"),
        Metric("shape.active.during", "flag", "1 if shaping was active while traffic ran, else 0"),
    )
}


def as_float(bound: Bound, unit: Unit) -> float:
    """The figure in `unit`; `QuantityError` where its kind does not fit the unit (a rate for packets, say)."""
    expected = QUANTITY_OF_UNIT.get(unit)
    if expected is not None and type(bound) is expected:
        match bound:
            case Rate():
                return float(bound.bps)
            case Size():
                return float(bound.bytes)
            case Duration():
                return bound.ns / 10**6
            case Percent():
                return bound.fraction
    if expected is None and isinstance(bound, int | float):
        return float(bound)
    if expected is not None and isinstance(bound, int | float):
        expected.parse(str(int(bound) if bound == int(bound) else bound))  # refuses, with a proposal
    wanted = f'a {expected.KIND} such as "{expected.EXAMPLES[0]}"' if expected else f"a plain number ({unit})"
    raise QuantityError(f'found "{bound}", expected {wanted}')


def format_value(value: float, unit: Unit) -> str:
    """For people: four significant digits and a fitting prefix, as `841 kb/s`, `32.6 %`, `31250 B`."""
    match unit:
        case "b/s":
            for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
                if abs(value) >= factor:
                    return f"{value / factor:.4g} {prefix}b/s"
            return f"{value:.4g} b/s"
        case "fraction":
            return f"{value * 100:.3g} %"
        case "ratio" | "index":
            return f"{value:.4g}"
        case "flag":
            return "yes" if value else "no"
        case "B" | "bit" | "ms" | "packets":
            number = f"{value:.0f}" if value == round(value) else f"{value:.4g}"
            return f"{number} {unit}"
