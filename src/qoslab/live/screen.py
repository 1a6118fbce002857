"""A watched run as text: a screen that is drawn anew once a second, or lines where there is no screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from qoslab.live.openmetrics import done
from qoslab.live.page import class_texts, interface_texts
from qoslab.live.rates import ClassKey, ClassPoint
from qoslab.live.watched import RUNNING, WatchedCell, WatchedRun
from qoslab.printing import printable

SPARKS = "▁▂▃▄▅▆▇█"
SPARK_POINTS = 40
"""Readings of the small graphs: the last."""
MOST_ROWS = 16
"""Classes of a cell that are shown: those that were offered most."""
MOST_CELLS = 4
STYLES = {"within": "green", "outside": "red"}


def sparks(values: Sequence[float | None]) -> str:
    """A small graph, from 0 to the greatest; a blank where there is no value."""
    greatest = max((each for each in values if each is not None), default=0.0)
    if greatest <= 0:
        return "".join(" " if each is None else SPARKS[0] for each in values)
    return "".join(
        " " if each is None else SPARKS[min(len(SPARKS) - 1, int(max(each, 0.0) / greatest * len(SPARKS)))]
        for each in values
    )


def screen(run: WatchedRun) -> RenderableType:
    """All of it."""
    parts: list[RenderableType] = [Text(printable(run.title), style="bold"), Text(state_line(run))]
    doing = [f"{name}: {each.step}" for name, each in run.doing.items()][:MOST_CELLS]
    parts += [Text(printable(line), style="dim") for line in doing]
    for cell in run.shown()[:MOST_CELLS]:
        parts += _cell(cell)
    if run.figures:
        parts.append(_figures(run))
    parts += [Text(printable(note), style="dim") for note in list(run.notes)[-4:]]
    return Group(*parts)


def state_line(run: WatchedRun) -> str:
    """How far it is."""
    state = "goes on" if run.state == RUNNING else run.state
    invalid = f", {len(run.invalid)} invalid" if run.invalid else ""
    return printable(f"{run.lab or 'a'} lab, {state}: {done(run)} of {run.planned} cells{invalid}")


def lines(run: WatchedRun, told: dict[tuple[str, ClassKey], float]) -> Iterator[str]:
    """A line for each class and reading that was not told yet; `told` is kept by the caller."""
    for cell in run.shown():
        for key, points in cell.rates.classes.items():
            for point in points:
                if point.time_s <= told.get((cell.name, key), -1.0) or not point.offered_bytes:
                    continue
                told[cell.name, key] = point.time_s
                now = class_texts(point)
                yield printable(
                    f"{cell.name} {now['time']}: {key.title}: offered {now['offered']}, sent {now['sent']}, "
                    f"dropped {now['dropped']}, queue {now['queue']} packets, wait {now['wait']}"
                )


def _cell(cell: WatchedCell) -> list[RenderableType]:
    classes = [(key, points) for key, points in cell.rates.classes.items() if points[-1].offered_bytes]
    classes.sort(key=lambda each: -each[1][-1].offered_bytes)
    time = f", after {class_texts(classes[0][1][-1])['time']}" if classes else ""
    table = Table(title=Text(printable(f"{cell.name}{time}")), title_justify="left", box=None, pad_edge=False)
    table.add_column("class", overflow="fold")
    for name in ("offered", "sent", "dropped", "queue", "wait"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(f"sent, the last {SPARK_POINTS} readings", no_wrap=True)
    for key, points in classes[:MOST_ROWS]:
        now = class_texts(points[-1])
        table.add_row(
            Text(printable(key.title)),
            *(now[name] for name in ("offered", "sent", "dropped", "queue", "wait")),
            _spark(points),
        )
    parts: list[RenderableType] = [table]
    if len(classes) > MOST_ROWS:
        parts.append(Text(f"{len(classes) - MOST_ROWS} classes with less traffic are not shown", style="dim"))
    ways = Table(box=None, pad_edge=False)
    for name in ("interface", "input", "output", "queue", "drops", "delay in it"):
        ways.add_column(name, justify="left" if name == "interface" else "right", no_wrap=True)
    for (router, interface), found in cell.rates.interfaces.items():
        now = interface_texts(found[-1])
        columns = (now[name] for name in ("input", "output", "queue", "drops", "delay"))
        ways.add_row(Text(printable(f"{router} {interface}")), *columns)
    return [*parts, ways] if cell.rates.interfaces else parts


def _spark(points: Sequence[ClassPoint]) -> str:
    """Of what is sent; where that is not counted, of what is offered."""
    last = points[-SPARK_POINTS:]
    sent = [point.sent_bps for point in last]
    return sparks([point.offered_bps for point in last] if None in sent else sent)


def _figures(run: WatchedRun) -> RenderableType:
    table = Table(title="figures so far", title_justify="left", box=None, pad_edge=False)
    for name in ("arm", "metric", "where", "measured", "expected within", "verdict"):
        table.add_column(name)
    for row in run.figures[:MOST_ROWS]:
        verdict = str(row.get("verdict") or "")
        table.add_row(
            *(Text(printable(str(row.get(name) or ""))) for name in ("arm", "metric", "where")),
            Text(printable(f"{float(row.get('measured') or 0):.4g} {row.get('unit') or ''}".strip())),
            Text(printable(str(row.get("tolerance") or ""))),
            Text(printable(verdict), style=STYLES.get(verdict, "")),
        )
    return table
