"""Text of a trial: tables of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qoslab.ios.model.ios_names import dscp_text
from qoslab.policy.rate import UNITS, bps_text, format_number
from qoslab.policy.render import wrap_text
from qoslab.trial.answer import PolicyTrial, traffic_class_path
from qoslab.trial.outcome import ClassResult, Delays, KindResult

NAME = 20
"""Columns of a class name; a longer name is truncated."""
KIND_NAME = 16
KIND_CLASS = 12
DIRECTION_COLUMNS = 4
"""Columns by which the class is narrowed in favour of the name, if names begin with a direction."""
CHANGED_VARIANT = "after"
CLASS_HEAD = ("class", "offered", "sent", "dropped", "p50", "p99", "max")
KIND_HEAD = ("traffic", "class", "received", "lost", "p99", "time", "R", "MOS")
ASSUMED_MARK = "?"


def trial_text(trial: PolicyTrial) -> str:
    """Return the whole answer as text."""
    head = [
        f"{trial.interface} {trial.direction}: policy-map {trial.policy}",
        f"line {bps_text(trial.line_bps)}, round trip {format_number(trial.rtt_ms)} ms, "
        f"{format_number(trial.seconds)} s of traffic",
    ]
    head += list(trial.notes)
    if trial.changes:
        head.append(f"Change: {'; '.join(trial.changes)}")
    parts = ["\n".join(map(wrap_text, head)), _class_table(trial)]
    if trial.two_way:
        parts += _other_policy_tables(trial)
    parts += [_traffic_table(trial), "\n".join(map(wrap_text, _legend_lines(trial)))]
    if trial.findings:
        parts.append("\n".join(["Findings", *(wrap_text(f"  {each}", "    ") for each in trial.findings)]))
    return "\n\n".join(parts) + "\n"


def _format_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Return a table; the first `left` columns are left-aligned, empty columns are omitted."""
    used = [index for index in range(len(head)) if index < left or any(row[index] not in ("", "-") for row in rows)]
    lines = [[line[index] for index in used] for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    made = []
    for line in lines:
        cells = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        made.append("  ".join(cells).rstrip())
    return "\n".join(made)


def _class_table(trial: PolicyTrial) -> str:
    """Return the table of the classes of the tried policy: one row for each variant."""
    rows = _class_rows([each.classes for each in trial.variants])
    ways = [("total on the line", [each.line_bps for each in trial.variants])]
    if trial.two_way:
        ways.append(("other direction", [each.line_in_bps for each in trial.variants]))
    for label, rates in ways:
        for name, rate in zip((label, f"  {CHANGED_VARIANT}"), rates, strict=False):
            rows.append((name, "", _format_rate(rate), "", "", "", ""))
    return _format_table(CLASS_HEAD, rows, 1)


def _other_policy_tables(trial: PolicyTrial) -> Iterator[str]:
    """Yield the tables of the classes of the other policies, each with its place as a title."""
    places = dict.fromkeys((one.interface, one.direction) for each in trial.variants for one in each.others)
    for place in places:
        variants = [
            next((one for one in each.others if (one.interface, one.direction) == place), None)
            for each in trial.variants
        ]
        policies = " and ".join(dict.fromkeys(each.policy for each in variants if each is not None))
        rows = _class_rows([() if each is None else each.classes for each in variants])
        yield f"{place[0]} {place[1]}: policy-map {policies}\n{_format_table(CLASS_HEAD, rows, 1)}"


def _class_rows(of_variants: Sequence[Sequence[ClassResult]]) -> list[tuple[str, ...]]:
    """Return the rows of the classes of a policy: one for each variant."""
    variants = [{one.path: one for one in each} for each in of_variants]
    paths = dict.fromkeys(path for classes in variants for path in classes)
    rows: list[tuple[str, ...]] = []
    for path in paths:
        indent = "  " * (len(path) - 1)
        for name, classes in zip((path[-1], f"  {CHANGED_VARIANT}"), variants, strict=False):
            rows.append((_truncate(indent + name, NAME), *_class_cells(classes.get(path))))
    return rows


def _class_cells(each: ClassResult | None) -> tuple[str, ...]:
    if each is None:
        return ("-",) * 6
    return (
        _format_rate(each.offered_bps),
        _format_rate(each.sent_bps),
        _format_share(each.loss) if each.offered_packets else "-",
        *_delay_cells(each.delay),
    )


def _traffic_table(trial: PolicyTrial) -> str:
    """Return the table of kinds of traffic: one row for each variant."""
    rows = []
    widths = (
        (KIND_NAME + DIRECTION_COLUMNS, KIND_CLASS - DIRECTION_COLUMNS) if trial.two_way else (KIND_NAME, KIND_CLASS)
    )
    for index, kind in enumerate(trial.variants[0].kinds):
        names = (f"{kind_label(kind)} {dscp_text(kind.dscp)}", f"  {CHANGED_VARIANT}")
        for name, variant in zip(names, trial.variants, strict=False):
            each = variant.kinds[index]
            path = traffic_class_path(each, trial.direction)
            rows.append(
                (_truncate(name, widths[0]), _truncate(path[-1] if path else "none", widths[1]), *_kind_cells(each))
            )
    return _format_table(KIND_HEAD, rows, 2)


def kind_label(kind: KindResult) -> str:
    """Return direction, number of sources and name of a kind of traffic."""
    if not kind.way:
        return f"{kind.count} {kind.name}"
    # The name has the direction already: `voice-in`.
    return f"{kind.way}: {kind.count} {kind.name.replace(f'-{kind.way}', '', 1)}"


def _kind_cells(each: KindResult) -> tuple[str, ...]:
    voice = each.voice
    time_ms = each.jitter_ms if each.pages is None else each.pages.p50_ms
    return (
        _format_rate(each.received_bps),
        "-" if each.loss is None else _format_share(each.loss),
        "-" if each.delay is None else _format_ms(each.delay.p99_ms),
        "-" if time_ms is None else _format_ms(time_ms),
        "-" if voice is None else f"{max(voice.rating, 0):.0f}",
        "-" if voice is None else f"{voice.mos:.2f}{ASSUMED_MARK if each.voice_assumed else ''}",
    )


def _delay_cells(delays: Delays | None) -> tuple[str, str, str]:
    if delays is None:
        return ("-", "-", "-")
    return (_format_ms(delays.p50_ms), _format_ms(delays.p99_ms), _format_ms(delays.max_ms))


def _format_share(part: float) -> str:
    if part >= 0.9995:
        return "100 %" if part == 1 else ">99 %"
    return "0 %" if part == 0 else f"{100 * part:.1f} %" if part >= 0.0005 else "<0.1 %"


def _format_ms(value: float) -> str:
    if value < 1:
        return "<0.01 ms" if 0 < value < 0.01 else f"{value:.2f} ms"
    return f"{format_number(value, 3)} ms" if value < 1000 else f"{format_number(value / 1000, 3)} s"


def _format_rate(bps: float) -> str:
    """Return a rate with three significant digits."""
    for size, unit in UNITS:
        if bps >= size:
            return f"{format_number(bps / size, 3)} {unit}"
    return f"{format_number(bps, 3)} b/s"


def _truncate(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _legend_lines(trial: PolicyTrial) -> Iterator[str]:
    if trial.changes:
        yield f"{CHANGED_VARIANT}: with the change; the row above it: without the change."
    yield (
        "Classes: rates include the layer 2 bytes that the router counts; dropped: share of the packets. p50, p99, "
        f"max: one-way delay from host to host, including {format_number(trial.rtt_ms / 2)} ms on the line."
    )
    if trial.two_way:
        yield f"out: traffic that leaves through {trial.interface}; in: traffic that arrives there."
    kinds = trial.variants[0].kinds
    page = (
        "; for TCP, median time until a page or answer is complete, - if more than half were unfinished at the end"
        if any(each.pages for each in kinds)
        else ""
    )
    yield f"Traffic: rates of IP packets for UDP, of payload for TCP. time: jitter (RFC 3550){page}."
    if any(each.voice for each in kinds):
        yield "R and MOS: ITU-T G.107 with the best playout buffer; R above 80: users are satisfied (G.109)."
    if any(each.voice_assumed for each in kinds):
        yield f"{ASSUMED_MARK} ITU-T G.113 has no values for this codec; those of G.711 are assumed."
