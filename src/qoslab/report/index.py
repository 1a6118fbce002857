"""Index of the runs in a folder: the results of each experiment, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from qoslab import __version__
from qoslab.lab_kinds import LABS
from qoslab.model.run_values import NEGLIGIBLE
from qoslab.overview import FINISHED, UNFINISHED, RunSummary
from qoslab.report import text

COLUMNS = 5
"""Number of runs in the table of values: the newest ones."""
_SPARK_WIDTH, _SPARK_HEIGHT, _SPARK_EDGE = 120, 24, 3


@dataclass(frozen=True)
class IndexRow:
    """A run."""

    when: str
    href: str
    """Link to the run's report, relative to the folder; empty if there is none."""
    lab: str
    kind: str
    """Class of the verdict's colour: `within`, `outside`, `invalid` or `informative`."""
    word: str
    words: str
    version: str
    overrides: str


@dataclass(frozen=True)
class Trend:
    """A value over the runs."""

    name: str
    where: str
    tolerance: str
    cells: list[tuple[str, str]]
    """Value and verdict by column."""
    moved: bool
    """True if the newest run differs from the previous one with the same lab and options."""
    spark: str
    """Points of a line over all runs with the newest one's lab and options, oldest first; empty for fewer than two
    runs.
    """
    words: str
    """Text alternative of the line."""


@dataclass(frozen=True)
class IndexSection:
    """An experiment."""

    anchor: str
    name: str
    title: str
    rows: list[IndexRow]
    heads: list[tuple[str, str]]
    """Columns of the table of values: time and lab."""
    moved: list[Trend]
    still: list[Trend]
    compared: str
    """Compared runs; empty if there is only one."""


@dataclass(frozen=True)
class IndexPage:
    """All runs of a folder."""

    version: str
    folder: str
    when: str
    sections: list[IndexSection]

    @property
    def negligible(self) -> str:
        """Describe the difference below which a value has not moved."""
        return f"{100 * NEGLIGIBLE:g} %"

    @property
    def count(self) -> int:
        """Format the number of runs."""
        return sum(len(section.rows) for section in self.sections)


def build_index(root: Path, runs: Sequence[RunSummary]) -> IndexPage:
    """Return the index of runs from `overview.read_runs`, with links relative to their folder `root`."""
    sections = [
        _section(root, number, name, sorted(found, key=_order, reverse=True))
        for number, (name, found) in enumerate(groupby(runs, key=lambda run: run.experiment), 1)
    ]
    return IndexPage(__version__, root.resolve().name, text.moment(datetime.now(UTC)), sections)


def _order(run: RunSummary) -> tuple[str, int]:
    """Return the sort key by time; runs of the same second have a suffix such as `-2`."""
    time, _, number = run.folder.name.partition("-")
    return time, int(number) if number.isdecimal() else 1


def _section(root: Path, number: int, name: str, runs: list[RunSummary]) -> IndexSection:
    finished = [run for run in runs if run.state == FINISHED]
    newest = finished[0] if finished else None
    alike = [run for run in finished if newest and (run.lab, run.overrides) == (newest.lab, newest.overrides)]
    trends = _trends(finished[:COLUMNS], alike) if newest is not None else []
    compared = ""
    if len(alike) > 1:
        compared = f"{_start_text(alike[0])} against {_start_text(alike[1])}, {_lab(alike[0].lab)}, same options"
    return IndexSection(
        anchor=f"experiment-{number}",
        name=name,
        title=newest.title if newest is not None else name,
        rows=[_row(root, run) for run in runs],
        heads=[(_start_text(run), _lab(run.lab)) for run in finished[:COLUMNS]],
        moved=[trend for trend in trends if trend.moved],
        still=[trend for trend in trends if not trend.moved],
        compared=compared,
    )


def _row(root: Path, run: RunSummary) -> IndexRow:
    kind, word = _verdict(run)
    report = run.report
    return IndexRow(
        when=_start_text(run),
        href="./" + quote(report.relative_to(root).as_posix()) if report is not None else "",
        lab=_lab(run.lab) if run.state == FINISHED else "",
        kind=kind,
        word=word,
        words=f"{run.count('within')} within, {run.count('outside')} outside" if run.state == FINISHED else "",
        version=run.version,
        overrides=", ".join(run.overrides),
    )


def _verdict(run: RunSummary) -> tuple[str, str]:
    if run.state != FINISHED:
        return ("informative" if run.state == UNFINISHED else "invalid"), run.state
    if run.invalid:
        return "invalid", f"not valid, {run.invalid} of {run.cells} cells"
    if run.count("outside") + run.count("impossible"):
        return "outside", "outside tolerance"
    if run.count("undecided"):
        return "invalid", "undecided"
    return ("within", "within tolerance") if run.count("within") else ("informative", "informative")


def _start_text(run: RunSummary) -> str:
    try:
        return text.moment(datetime.strptime(run.folder.name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC))
    except ValueError:
        return run.folder.name


def _lab(name: str) -> str:
    return LABS[name].title if name in LABS else name


def _trends(shown: Sequence[RunSummary], alike: Sequence[RunSummary]) -> list[Trend]:
    """Return the values of the newest run that have an expectation or have moved."""
    by_run = {run.folder: run.values_by_key for run in (*shown, *alike)}
    before = by_run[alike[1].folder] if len(alike) > 1 else {}
    trends = []
    for key, value in by_run[alike[0].folder].items():
        moved = key in before and value.has_changed_from(before[key])
        if value.verdict in ("informative", "loose bounds") and not moved:
            continue
        past = [each for run in reversed(alike) if (each := by_run[run.folder].get(key)) is not None]
        cells = [by_run[run.folder].get(key) for run in shown]
        trends.append(
            Trend(
                name=f"{value.arm}: {value.metric}",
                where=value.where,
                tolerance=text.bind_unit(value.tolerance),
                cells=[
                    (text.run_value_text(each), each.verdict) if each is not None else (text.NONE, "") for each in cells
                ],
                moved=moved,
                spark=_spark([each.measured for each in past if each.measured is not None]),
                words=f"{text.run_value_text(past[0])} first, {text.run_value_text(value)} now, over {len(past)} runs",
            )
        )
    return trends


def _spark(values: Sequence[float]) -> str:
    """Return the points of an SVG polyline; a constant line lies in the middle."""
    if len(values) < 2:
        return ""
    least, greatest = min(values), max(values)
    across, down = _SPARK_WIDTH - 2 * _SPARK_EDGE, _SPARK_HEIGHT - 2 * _SPARK_EDGE
    points = []
    for place, value in enumerate(values):
        share = (value - least) / (greatest - least) if greatest > least else 0.5
        x, y = _SPARK_EDGE + across * place / (len(values) - 1), _SPARK_EDGE + down * (1 - share)
        points.append(f"{x:.1f},{y:.1f}")
    return " ".join(points)
