"""Picture of a trial as SVG: rates of the classes, and the distribution of delays of each kind of traffic."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import ceil, floor, log10

from qoslab.policy.rate import bps_text, format_number
from qoslab.trial.answer import PolicyTrial
from qoslab.trial.outcome import ClassResult, KindResult, TrialOutcome
from qoslab.trial.render import kind_label

WIDTH = 900
LEFT_MARGIN, RIGHT = 180, 30
ROW = 18
PLOT_HEIGHT = 260
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f")
DASHES = ("", "6 3")
"""Line styles of the variants: without the change, and with it."""
OPACITIES = (0.45, 1.0)
MIN_DELAY_MS = 0.01


def draw(trial: PolicyTrial) -> str:
    """Return the picture."""
    bars = list(_draw_byte_bars(trial))
    bars_height = 60 + sum(1 for _ in _class_rows(trial)) * ROW
    curves = list(_delay_curves(trial, bars_height + 40))
    height = bars_height + PLOT_HEIGHT + 110
    title = f"{trial.interface} {trial.direction}: policy-map {trial.policy}"
    change = f"Change: {'; '.join(trial.changes)}" if trial.changes else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
            'font-size="12">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            _svg_text(10, 18, title, weight="bold"),
            _svg_text(10, 34, change),
            *bars,
            *curves,
            "</svg>",
            "",
        ]
    )


def _svg_text(
    x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", colour: str = "#222"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _svg_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _class_rows(trial: PolicyTrial) -> Iterator[tuple[str, int, TrialOutcome, ClassResult]]:
    """Yield label, number of the variant and values of each innermost class."""
    paths = dict.fromkeys(each.path for variant in trial.variants for each in variant.classes)
    inner = [path for path in paths if not any(other[: len(path)] == path and other != path for other in paths)]
    for path in inner:
        for index, variant in enumerate(trial.variants):
            found = next((each for each in variant.classes if each.path == path), None)
            if found is not None:
                label = f"{path[-1]}{f' ({variant.label})' if variant.label else ''}"
                yield label, index, variant, found


def _draw_byte_bars(trial: PolicyTrial) -> Iterator[str]:
    """Yield the bars: sent bytes, followed by dropped bytes."""
    rows = list(_class_rows(trial))
    most = max((each.offered_bps for _, _, _, each in rows), default=0) or 1
    scale = (WIDTH - LEFT_MARGIN - RIGHT - 150) / most
    yield _svg_text(LEFT_MARGIN, 52, "sent (blue) and dropped (grey), by class")
    for number_, (label, index, _, each) in enumerate(rows):
        y = 58 + number_ * ROW
        sent = each.sent_bps * scale
        yield _svg_text(LEFT_MARGIN - 6, y + 12, label, "end")
        yield f'<rect x="{LEFT_MARGIN}" y="{y}" width="{each.offered_bps * scale:.1f}" height="14" fill="#ccc"/>'
        yield (
            f'<rect x="{LEFT_MARGIN}" y="{y}" width="{sent:.1f}" height="14" fill="{COLOURS[0]}" '
            f'fill-opacity="{OPACITIES[index] if len(trial.variants) > 1 else 1}"/>'
        )
        lost = f", {100 * each.loss:.1f} % dropped" if each.dropped_packets else ""
        yield _svg_text(LEFT_MARGIN + each.offered_bps * scale + 6, y + 12, f"{bps_text(each.sent_bps)}{lost}")


def _delay_curves(trial: PolicyTrial, top: float) -> Iterator[str]:
    """Yield the distribution functions of the delays on a logarithmic axis."""
    kinds = [each for variant in trial.variants for each in variant.kinds if each.histogram]
    yield _svg_text(LEFT_MARGIN - 120, top, "share of packets with a one-way delay up to", weight="bold")
    if not kinds:
        return
    low = floor(log10(max(MIN_DELAY_MS, min(each.histogram[0][0] for each in kinds) / 1e6)))
    high = max(low + 1, ceil(log10(max(each.histogram[-1][0] for each in kinds) / 1e6 + MIN_DELAY_MS)))
    left, right, base = 60.0, WIDTH - 200.0, top + PLOT_HEIGHT

    def x_of(delay_ms: float) -> float:
        return left + (right - left) * (log10(max(delay_ms, 10.0**low)) - low) / (high - low)

    for power in range(low, high + 1):
        yield _svg_line(x_of(10.0**power), top + 10, x_of(10.0**power), base)
        yield _svg_text(x_of(10.0**power), base + 16, f"{format_number(10.0**power)} ms", "middle")
    for part in (0, 0.25, 0.5, 0.75, 1):
        y = base - part * (PLOT_HEIGHT - 20)
        yield _svg_line(left, y, right, y)
        yield _svg_text(left - 6, y + 4, f"{100 * part:.0f} %", "end")
    for index, variant in enumerate(trial.variants):
        for number_, each in enumerate(variant.kinds):
            colour = COLOURS[number_ % len(COLOURS)]
            if each.histogram:
                points = " ".join(
                    f"{x_of(delay):.1f},{base - part * (PLOT_HEIGHT - 20):.1f}"
                    for delay, part in _delay_distribution(each)
                )
                yield (
                    f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8" '
                    f'stroke-dasharray="{DASHES[index] if len(trial.variants) > 1 else ""}"/>'
                )
            if index == 0:
                yield _svg_text(right + 12, top + 24 + number_ * ROW, kind_label(each), colour=colour)
    if trial.changes:
        yield _svg_text(right + 12, top + 34 + len(trial.variants[0].kinds) * ROW, "dashed: after the change")


def _delay_distribution(each: KindResult) -> Iterator[tuple[float, float]]:
    """Yield delays in milliseconds, each with the share of the packets up to it."""
    total, below = sum(packets for _, packets in each.histogram), 0
    yield each.histogram[0][0] / 1e6, 0.0
    for delay, packets in each.histogram:
        below += packets
        yield delay / 1e6, below / total
