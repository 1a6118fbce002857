"""Text of the values and findings of a policy: 80 columns, tables up to 100."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.policy.answer import PolicyAnswer
from qoslab.policy.class_values import ClassValues, PoliceValues, PolicyValues, QueueValues, RedValues, ShapeValues
from qoslab.policy.ignored import IgnoredLine
from qoslab.policy.policy_finding import PolicyFinding
from qoslab.policy.rate import format_list, format_number

WIDTH = 80
NAME = 24
"""Columns of a class name; a longer name is truncated."""
DEFAULT = "*"
UNCONFIRMED = "?"
HEAD = ("class", "guaranteed", "maximum", "all busy", "queue", "max wait")
LEGEND = {
    DEFAULT: "* default of the release, not in the input",
    UNCONFIRMED: "? not confirmed by a Cisco document (docs/internals/ask-a-device.md)",
    "~": "~ estimate: assumes idle priority classes without a limit, and one flow in classic class-default",
}


def answer_text(answer: PolicyAnswer) -> str:
    """Return the whole answer as text."""
    parts = ["\n".join(wrap_text(line) for line in answer.notes)] if answer.notes else []
    parts += [_policy_text(each) for each in _group_policies(answer.policies)]
    legend = _legend_lines("\n".join(parts))
    if legend:
        parts.append(legend)
    if answer.ports:
        parts.append("\n".join(["Ports", *(wrap_text(f"  {line}", "      ") for line in answer.ports)]))
    parts.append(_findings_text(answer.findings))
    if answer.ignored:
        parts.append(_ignored_text(answer.ignored))
    return "\n\n".join(parts) + "\n"


def _group_policies(policies: Sequence[PolicyValues]) -> list[PolicyValues]:
    """Return each policy once, with the interfaces of equal policies joined."""
    groups: dict[PolicyValues, list[str]] = {}
    for each in policies:
        groups.setdefault(replace(each, interface="", number=0), []).append(each.interface)
    return [replace(each, interface=format_list(names)) for each, names in groups.items()]


def wrap_text(text: str, indent: str = "  ") -> str:
    """Return a text in lines of at most `WIDTH` characters; `indent` begins those after the first."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _legend_lines(text: str) -> str:
    body = [line for line in text.splitlines() if line.startswith("  ")]
    marks = "".join(each for each in LEGEND if any(each in line for line in body))
    lines = [LEGEND[each] for each in marks]
    if any(" in default " in line for line in body):
        lines.append("in default: no separate queue, shares the queue of class-default")
    return "\n".join(lines)


def _policy_text(policy: PolicyValues) -> str:
    where = f"{policy.interface} {policy.direction}" if policy.interface else f"Not attached ({policy.direction})"
    if policy.place:
        where = f"{policy.place} {policy.direction} (not modelled)"
    lines = [wrap_text(f"{where}: policy-map {policy.policy}")]
    if policy.refused:
        lines.append(wrap_text(f"  refused by these rules: {policy.refused.removeprefix('% ')}"))
    if not policy.place.startswith("control-plane"):
        lines.append(wrap_text(f"  {_line_text(policy)}", "  "))
    lines += [wrap_text(f"  tunnel: {each}", "    ") for each in policy.tunnel_notes]
    if policy.queues:
        lines += ["", *_class_table(policy)]
    details = [line for each in policy.classes for line in _class_details(policy, each)]
    if details:
        lines += ["", *details]
    return "\n".join(lines)


def _line_text(policy: PolicyValues) -> str:
    if not policy.line.is_absolute:
        line = "line rate unknown: give --rate"
    elif policy.base == policy.line:
        line = f"line {policy.line} ({policy.line_source})"
    else:
        line = f"line {policy.line} ({policy.line_source}), percentages refer to {policy.base} ({policy.base_source})"
    if policy.header_bytes is None or policy.switch:
        return line if policy.switch else f"{line}; rates count IP packets with their layer 2 header"
    if policy.header_bytes == 0:
        return f"{line}; rates count tunnel packets without layer 2"
    return f"{line}; rates count IP packets + {policy.header_bytes} bytes of layer 2, no FCS"


def _class_table(policy: PolicyValues) -> list[str]:
    rows = [HEAD, *(_class_row(each) for each in policy.classes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    made = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        made.append(("  " + "  ".join(cells)).rstrip())
    return made


def _class_row(each: ClassValues) -> tuple[str, ...]:
    name = "  " * (len(each.path) - 1) + each.name
    name = name if len(name) <= NAME else name[: NAME - 1] + "…"
    busy = "-"
    if each.joins_default:
        busy = "in default"
    elif each.busy is not None:
        busy = str(each.busy) + ("~" if each.estimate else "")
    elif each.priority:
        busy = "no limit"
    wait = "-" if each.wait_ms is None else _format_ms(each.wait_ms) + (UNCONFIRMED if each.wait_unconfirmed else "")
    return (
        name,
        "-" if each.guaranteed is None else str(each.guaranteed),
        "line" if each.maximum is None else str(each.maximum),
        busy,
        _short_queue_text(each.queue),
        wait,
    )


def _short_queue_text(queue: QueueValues | None) -> str:
    if queue is None:
        return "-"
    marks = (DEFAULT if queue.default else "") + (UNCONFIRMED if queue.unconfirmed else "")
    if queue.packets is not None:
        return f"{queue.packets} packets{marks}"
    if queue.bytes is not None:
        return f"{queue.bytes} bytes{marks}"
    return f"{queue.given_ms} ms{marks}"


def _format_ms(value: float) -> str:
    return f"{format_number(value, 3)} ms" if value < 1000 else f"{format_number(value / 1000, 3)} s"


def _class_details(policy: PolicyValues, each: ClassValues) -> Iterator[str]:
    """Yield the lines of a class below the table."""
    lines = []
    if each.priority is not None:
        lines.append(f"priority: level {each.priority}")
    if each.police is not None:
        lines += _police_text(each.police)
    if each.shape is not None:
        lines.append(_shape_text(each.shape))
    if each.queue is not None and each.queue.bytes is not None:
        lines.append(_queue(each))
    if each.red is not None:
        lines += _red_text(each.red)
    if each.marks:
        lines.append(f"marking: {', '.join(each.marks)}")
    if each.trust:
        lines.append(f"trust: {each.trust}")
    if each.account:
        lines.append(f"counted bytes: account {each.account}")
    if each.drop:
        lines.append("drops every packet")
    lines += [f"not modelled: {text}" for text in each.without_effect]
    lines = [line for line in lines if line]
    if not lines and (policy.queues or policy.refused or each.name == CLASS_DEFAULT):
        return
    yield f"  {' / '.join(each.path)}"
    for line in lines or ["no action"]:
        yield textwrap.fill(line, WIDTH, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False)


def _police_text(police: PoliceValues) -> list[str]:
    mark = DEFAULT if police.default_burst else ""
    name = "police" if police.aggregate is None else f"aggregate policer {police.aggregate}"
    parts = [f"{name}: CIR {police.cir}"]
    if police.bc_bytes is None:
        parts.append("Bc depends on the line")
    else:
        times = [f"{_format_ms(police.bc_ms)} at CIR"] if police.bc_ms is not None else []
        times += [f"{_format_ms(police.line_ms)} at line rate"] if police.line_ms is not None else []
        parts.append(
            f"Bc {police.bc_bytes} bytes{mark} ({', '.join(times)})" if times else f"Bc {police.bc_bytes} bytes{mark}"
        )
    if police.pir is not None:
        parts.append(f"PIR {police.pir}")
    if police.be_bytes is not None and police.violate is not None:
        parts.append(f"Be {police.be_bytes} bytes")
    actions = [f"conform {police.conform}", f"exceed {police.exceed}"]
    actions += [f"violate {police.violate}"] if police.violate is not None else []
    return [", ".join(parts), ", ".join(actions)]


def _shape_text(shape: ShapeValues) -> str:
    parts = [f"shape {shape.mode}: {shape.rate}"]
    if shape.target not in (None, shape.rate):
        parts.append(f"up to {shape.target} by Bc + Be")
    if shape.bc_bits is None or shape.tc_ms is None:
        return f"{parts[0]}, Bc and Be depend on the line"
    mark = (DEFAULT if shape.default_burst else "") + (UNCONFIRMED if shape.unconfirmed else "")
    bursts = [f"Bc {shape.bc_bits} bits{mark}", f"Be {shape.be_bits} bits"]
    if shape.spaced:
        # Remembered [R]: the scheduler gives each packet its time.
        return f"{', '.join([*parts, *bursts])}; packets are spaced{UNCONFIRMED}, the bursts have no effect"
    return ", ".join([*parts, *bursts, f"Tc {_format_ms(shape.tc_ms)}"])


def _queue(each: ClassValues) -> str:
    queue = each.queue
    assert queue is not None
    mark = (DEFAULT if queue.default else "") + (UNCONFIRMED if queue.unconfirmed else "")
    size = (
        f"{queue.packets} packets{mark} = {queue.bytes} bytes"
        if queue.packets is not None
        else f"{queue.bytes} bytes{mark}"
    )
    text = f"queue: {queue.discipline}, {size}"
    if queue.ms is not None:
        text += f" = {_format_ms(queue.ms)} at {each.busy if not each.priority else 'the rate of the line or shaper'}"
    if queue.flows is not None:
        text += f"; {queue.flows} flow queues"
    if queue.per_flow_packets is not None:
        text += f", {queue.per_flow_packets} packets each"
    return text


def _red_text(red: RedValues) -> list[str]:
    mark = UNCONFIRMED if red.unconfirmed else ""
    groups: dict[str, list[str]] = {}
    denominators = {row.denominator for row in red.rows}
    for row in red.rows:
        own = "" if len(denominators) == 1 else f" 1/{row.denominator}"
        limits = f"{row.minimum}-{row.maximum}{row.unit and f' {row.unit}'}{own}"
        groups.setdefault(limits + ("" if row.typed else DEFAULT + mark), []).append(row.value)
    same = f", mark probability 1/{min(denominators)}" if len(denominators) == 1 else ""
    ecn = ", ECN" if red.ecn else ""
    rows = "; ".join(f"{' '.join(names)} {limits}" for limits, names in groups.items())
    return [f"WRED by {red.basis}, weight {red.weight}{same}{ecn}, min-max in {red.unit}: {rows}"]


def _findings_text(findings: Sequence[PolicyFinding]) -> str:
    if not findings:
        return "No findings."
    counts = [
        (severity, sum(each.severity == severity for each in findings)) for severity in ("error", "warning", "note")
    ]
    total = ", ".join(f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in counts if count)
    lines = [f"Findings: {total}"]
    for each in findings:
        place = f" line {each.line}:" if each.line else ""
        text = f"  {each.severity}:{place} {each.message} [{each.source}]"
        lines.append(wrap_text(text, "      "))
    return "\n".join(lines)


def _ignored_text(ignored: Sequence[IgnoredLine]) -> str:
    """Return the ignored lines; lines with the same reason and effect share a paragraph."""
    lines = ["QoS lines that were not read or are undecided, and their possible effect"]
    groups: dict[tuple[str, str], list[IgnoredLine]] = {}
    for each in ignored:
        groups.setdefault((each.reason, each.could_change), []).append(each)
    for (reason, effect), group in groups.items():
        first = group[0]
        place = f" ({first.place})" if first.place not in ("", first.text) else ""
        more = ""
        if len(group) > 1:
            lines_word = "lines" if len(group) > 2 else "line"
            more = (
                f", and {len(group) - 1} more in {lines_word} {format_list([str(each.line) for each in group[1:]], 8)}"
            )
        text = f"  line {first.line}: {first.text}{place}{more}: {reason}; could change {effect}"
        lines.append(wrap_text(text, "      "))
    return "\n".join(lines)
