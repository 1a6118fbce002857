"""A watched run as text: a screen that is redrawn once a second, or lines without a screen."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.text import Text

from qoslab.live.counter_rates import ClassKey, ClassPoint
from qoslab.live.openmetrics import count_finished_cells
from qoslab.live.page import class_texts, interface_texts
from qoslab.live.watched_run import WatchedCell, WatchedRun
from qoslab.model.metrics import Unit, format_value
from qoslab.system.printing import printable

SPARKS = "▁▂▃▄▅▆▇█"
SPARK_POINTS = 40
"""Greatest number of readings in a small graph: the latest."""
MIN_POINTS = 16
"""Least number of readings for a graph."""
MIN_NAME_WIDTH = 12
"""Least width of the name column; below it, each name has its own line."""
MIN_LINES = 6
"""Least number of lines for a cell, and for the values, before another cell is shown."""
GAP = "  "
MAX_ROWS = 16
"""Greatest number of classes shown per cell: those with the most offered bytes."""
MAX_CELLS = 4
STYLES = {"within": "green", "outside": "red"}


def sparkline(values: Sequence[float | None]) -> str:
    """Return a small graph from 0 to the greatest value; blanks for missing values."""
    greatest = max((each for each in values if each is not None), default=0.0)
    if greatest <= 0:
        return "".join(" " if each is None else SPARKS[0] for each in values)
    return "".join(
        " " if each is None else SPARKS[min(len(SPARKS) - 1, int(max(each, 0.0) / greatest * len(SPARKS)))]
        for each in values
    )


def render_screen(run: WatchedRun, console: Console, *, whole: bool = False) -> RenderableType:
    """Return the whole view in lines that fit the console; unless `whole`, cut to its height, with a note on the rest.

    The values come before the cells, which may extend beyond the screen.
    """
    top = [Text(printable(run.title), style="bold"), Text(state_line(run))]
    doing = [f"{name}: {each.step}" for name, each in run.doing.items()][:MAX_CELLS]
    top += [Text(printable(line), style="dim") for line in doing]
    notes = [Text(printable(note), style="dim") for note in list(run.notes)[-4:]]
    head, values, foot, *cells = (
        [line for part in parts for line in part.wrap(console, console.width, overflow="fold")]
        for parts in (
            top,
            _value_lines(run, console.width),
            notes,
            *(_cell_lines(cell, console.width) for cell in run.shown_cells()[:MAX_CELLS]),
        )
    )
    if not whole:
        # One line may report omitted cells.
        room = console.height - len(head) - len(foot) - 1
        cells = cells[: max(room // MIN_LINES - bool(values), 1)]
        values = _fitting_lines(values, max(room // (1 + len(cells)), room - sum(map(len, cells))))
        room -= len(values)
        for number, lines_of_cell in enumerate(cells):
            cells[number] = _fitting_lines(lines_of_cell, room // (len(cells) - number))
            room -= len(cells[number])
    if hidden := len(run.shown_cells()) - len(cells):
        foot.insert(0, Text(f"cells that are not shown: {hidden}", style="dim"))
    return Group(*head, *values, *itertools.chain(*cells), *foot)


def _fitting_lines(found: list[Text], room: int) -> list[Text]:
    """Return as many of the lines as fit, at least one."""
    if len(found) <= room:
        return found
    kept = max(room - 1, 0)
    return [*found[:kept], Text(f"{len(found) - kept} more lines in a taller window", style="dim")]


def state_line(run: WatchedRun) -> str:
    """Return the progress of the run."""
    invalid = f", {len(run.invalid)} invalid" if run.invalid else ""
    return printable(f"{run.lab or 'a'} lab, {run.state}: {count_finished_cells(run)} of {run.planned} cells{invalid}")


def new_lines(run: WatchedRun, printed: dict[tuple[str, ClassKey], float]) -> Iterator[str]:
    """Yield a line for each class and new reading; the caller keeps `printed` between calls."""
    for cell in run.shown_cells():
        for key, points in cell.rates.classes.items():
            for point in points:
                if point.time_s <= printed.get((cell.name, key), -1.0) or not point.offered_bytes:
                    continue
                printed[cell.name, key] = point.time_s
                now = class_texts(point)
                yield printable(
                    f"{cell.name} {now['time']}: {key.title}: offered {now['offered']}, sent {now['sent']}, "
                    f"dropped {now['dropped']}, queue {now['queue']} packets, wait {now['wait']}"
                )


@dataclass(frozen=True)
class _Row:
    name: str
    texts: Sequence[str]
    below: str = ""
    """Heading that is printed once above all rows with the same heading."""
    graph: str = ""
    style: str = ""
    """Style of the last text."""


def _table_rows(heads: Sequence[str], rows: Sequence[_Row], width: int) -> list[Text]:
    """Return the lines of a table: names, right-aligned texts, and the end of a graph as far as it fits.

    A name that is too long for its column has its own line, so that no value is cut.
    """
    widths = [max(cell_len(row.texts[at]) for row in rows) for at in range(len(heads) - 1)]
    widths = [max(each, len(head)) for each, head in zip(widths, heads[1:], strict=True)]
    left = width - sum(widths) - len(GAP) * len(widths)
    names = [cell_len(row.name) for row in rows] + [len(heads[0])]
    column = min(max(names), left) if left >= MIN_NAME_WIDTH else 0
    points = min(left - column - len(GAP), SPARK_POINTS)
    graph = points >= MIN_POINTS and any(row.graph for row in rows)
    head = _Row(heads[0], heads[1:], graph=f"sent, last {points}")
    found, below = [], ""
    for row in (head, *rows):
        if row.below != below:
            below = row.below
            found.append(Text(below))
        name = row.name
        if cell_len(name) > column:
            found.append(Text(name))
            name = ""
        line = Text(set_cell_size(name, column))
        for at, (text, size) in enumerate(zip(row.texts, widths, strict=True)):
            line.append(GAP + " " * (size - cell_len(text)))
            line.append(text, style=row.style if at == len(widths) - 1 else "")
        found.append(line.append(GAP + (row.graph if row is head else row.graph[-points:])) if graph else line)
    return found


def _cell_lines(cell: WatchedCell, width: int) -> list[Text]:
    classes = [(key, points) for key, points in cell.rates.classes.items() if points[-1].offered_bytes]
    classes.sort(key=lambda each: -each[1][-1].offered_bytes)
    time = f", after {class_texts(classes[0][1][-1])['time']}" if classes else ""
    found = [Text(printable(f"{cell.name}{time}"), style="italic")]
    policies = list(dict.fromkeys(key.attachment for key, _ in classes))
    shown = sorted(classes[:MAX_ROWS], key=lambda each: policies.index(each[0].attachment))
    columns = ("offered", "sent", "dropped", "queue", "wait")
    rows = []
    for key, points in shown:
        now = class_texts(points[-1])
        texts = [now[name] for name in columns]
        rows.append(_Row(printable(key.name), texts, printable(key.attachment), _class_sparkline(points)))
    if rows:
        found += _table_rows(("class", *columns), rows, width)
    if len(classes) > MAX_ROWS:
        found.append(Text(f"{len(classes) - MAX_ROWS} classes with less traffic are not shown", style="dim"))
    ways = []
    for (router, interface), points_of_it in cell.rates.interfaces.items():
        now = interface_texts(points_of_it[-1])
        texts = [now[name] for name in ("input", "output", "queue", "drops", "delay")]
        ways.append(_Row(printable(f"{router} {interface}"), texts))
    if ways:
        found += _table_rows(("interface", "input", "output", "queue", "drops", "mean delay"), ways, width)
    return found


def _class_sparkline(points: Sequence[ClassPoint]) -> str:
    """Draw the sent rate over time; the offered rate if the sent one is not counted."""
    last = points[-SPARK_POINTS:]
    sent = [point.sent_bps for point in last]
    return sparkline([point.offered_bps for point in last] if None in sent else sent)


def _value_lines(run: WatchedRun, width: int) -> list[Text]:
    """Return the number of values by verdict, then the values; those out of tolerance first."""
    if not run.figures:
        return []
    counts = Counter(str(row.get("verdict") or "no verdict") for row in run.figures)
    printed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    rows = [
        _Row(
            printable(" ".join(str(row[name]) for name in ("arm", "metric", "where") if row.get(name))),
            (_measured_text(row), printable(str(row.get("tolerance") or "")), printable(str(row.get("verdict") or ""))),
            style=STYLES.get(str(row.get("verdict")), ""),
        )
        for row in sorted(run.figures, key=lambda row: row.get("verdict") != "outside")[:MAX_ROWS]
    ]
    title = Text(printable(f"results so far: {printed}"), style="italic")
    return [title, *_table_rows(("metric", "measured", "expected within", "verdict"), rows, width)]


def _measured_text(row: Mapping[str, Any]) -> str:
    value = float(row.get("measured") or 0)
    unit: Any = row.get("unit") or ""
    return format_value(value, unit) if unit in get_args(Unit) else printable(f"{value:.4g} {unit}".strip())
