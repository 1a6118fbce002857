"""Analysis of a run folder: its tables, metrics and comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pandas as pd

from qoslab.analysis import expected_comparison as comparing
from qoslab.analysis.averages import averages_table, pairs_table, scores_table
from qoslab.analysis.metrics import of_all_cells
from qoslab.analysis.readings import Readings, references
from qoslab.analysis.saved import SavedCells, content_of
from qoslab.analysis.shortened import averages_of_shortened, comparison_of_shortened, shortened
from qoslab.analysis.statistics import estimate
from qoslab.analysis.values import unexpected_values
from qoslab.analysis.verdicts import INFORMATIVE, LOOSE, NOT_MEASURED, OUTSIDE, UNDECIDED
from qoslab.errors import ExitStatus, RunInvalid
from qoslab.lab_kinds import lab_kind
from qoslab.model.comparison import PublishedFigure
from qoslab.model.experiment import Enough, Experiment
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import as_texts
from qoslab.model.metrics import Reference
from qoslab.model.partial_runs import STRICT
from qoslab.results import CellFiles, CellSummary, Manifest, RunFolder, tables
from qoslab.results.baselines import AVERAGES, SCORES
from qoslab.results.file_access import WriteError
from qoslab.results.folder import MANIFEST, SAVED_CELLS, OpenRun
from qoslab.results.sealed_files import seal_of_content


class ImpossibleError(RunInvalid):
    """Error for impossible values of valid cells: the analysis stops, since none of its values can be trusted."""

    def __init__(self, beyond: Mapping[str, Sequence[str]]) -> None:
        """Create it; `beyond` has the impossible values by the name of the cell."""
        listed = [f"{name}: {each}" for name, messages in beyond.items() for each in messages]
        further = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
        super().__init__(listed[0] + further, hint="the raw results are unchanged: nothing was written")


@dataclass(frozen=True)
class Outcome:
    """Results of a run."""

    run: OpenRun
    """The run; its cells are those with results, and the damaged ones include those with records of another cell."""
    valid: bool
    reasons: tuple[str, ...]
    """Reasons of an invalid run, with the cell's name."""
    untrusted: frozenset[str]
    """Arms without a valid cell: their values are shown and decide nothing."""
    comparison: pd.DataFrame
    """See `qoslab.analysis.expected_comparison.compare`."""
    averages: pd.DataFrame
    """See `qoslab.analysis.averages.averages_table`."""
    pairs: pd.DataFrame
    """See `qoslab.analysis.averages.pairs_table`."""
    lab: str = DEFAULT_LAB
    """Kind of the lab that the values come from."""
    invalid: frozenset[str] = frozenset()
    """Cells that do not count, without those that were not needed."""
    warnings: tuple[str, ...] = ()
    """Inactive parts of the run: see `qoslab.analysis.idle`. They do not change the verdict."""
    notes: tuple[str, ...] = ()
    """Saved results that could not be used or written; see `qoslab.analysis.saved`."""

    @property
    def outside(self) -> int:
        """Return the number of expectations and averages that are not met."""
        return self._count(OUTSIDE)

    @property
    def not_measured(self) -> int:
        """Return the number of expectations and averages that a shortened run did not reach."""
        return self._count(NOT_MEASURED)

    @property
    def expected(self) -> int:
        """Return the number of expectations and averages that count for the verdict."""
        tables = (self.comparison, self.averages)
        return sum(len(table) for table in tables) - self._count(INFORMATIVE) - self.loose

    @property
    def undecided(self) -> int:
        """Return the number of expectations and averages with too few valid cells that have a value."""
        return self._count(UNDECIDED)

    @property
    def loose(self) -> int:
        """Return the number of values within bounds that are too loose to count as passed."""
        return self._count(LOOSE)

    def _count(self, verdict: str) -> int:
        return sum(int((table["verdict"] == verdict).sum()) for table in (self.comparison, self.averages))

    @property
    def exit_status(self) -> ExitStatus:
        """Exit status of `qoslab run`."""
        if not self.valid or self.undecided:
            return ExitStatus.RUN_INVALID
        return ExitStatus.OUTSIDE if self.outside else ExitStatus.WITHIN


def analyse(
    folder: RunFolder,
    readings: Readings | None = None,
    read: Callable[[Readings, Sequence[CellFiles]], None] | None = None,
) -> Outcome:
    """Compute the tables, `comparison.csv` and `comparison.json` of a run from its raw results, and write them.

    Invalid cells keep their rows in the tables. The comparison uses them only for arms without a valid cell, as values
    that decide nothing. Cells with damaged files, or with records of another cell, are ignored. Arms that were excluded
    from the run are not compared. Cells in the tables of an earlier analysis are not read again. `readings` are of
    cells that were read before, for all metrics that the manifest's experiment names. `read` reads the cells into them,
    such as by several processes. Raise `ImpossibleError` if a valid cell has an impossible value.
    """
    run = folder.open()
    manifest = run.manifest
    lab_kind(manifest.lab, f"{folder.path}/{MANIFEST}")
    readings = readings or Readings(references(manifest.experiment, manifest.published))
    readings.load(folder)
    if read is not None:
        read(readings, run.cells)
    misfits = dict(readings.misfits(run.cells))
    measured = tuple(cell for cell in run.cells if cell not in misfits)
    damaged = {**run.damaged, **{cell.name: why for cell, why in misfits.items()}}
    gathered = readings.gather(measured)
    if gathered.beyond:
        raise ImpossibleError(gathered.beyond)
    recorded = {cell.name for cell in measured}
    reasons = [f"{name}: {problem}" for name, each in gathered.problems.items() for problem in each]
    reasons += _unrecorded(manifest, damaged, recorded)

    parameters = {summary.name: summary.values for summary in manifest.cells}
    found = {name: tables.with_parameters(table, parameters) for name, table in gathered.tables.items()}
    files: list[tuple[str, str | bytes | SavedCells]] = []
    if gathered.saved is not None and gathered.saved.manifest == run.manifest_sha256:
        warnings = gathered.saved.warnings
    else:
        warnings = _idle_warnings(manifest.experiment, measured, found)
        files += _tables(run, readings, measured, warnings, found)

    trusted = recorded - set(gathered.problems)
    arms = {summary.arm for summary in manifest.cells}
    untrusted = frozenset(arms - {summary.arm for summary in manifest.cells if summary.name in trusted})
    # Unreadable outputs make a cell invalid, regardless of its record.
    cells = [each.model_copy(update={"valid": each.valid and each.name in trusted}) for each in manifest.cells]
    judged = _judged(manifest, run.experiment_text, found["metrics"], cells)
    reasons += comparing.impossible(judged.comparison)
    notes = [*filter(None, [readings.note]), *_write(folder, [*files, *_files(judged)])]
    return Outcome(
        replace(run, cells=measured, damaged=damaged),
        not reasons,
        tuple(reasons),
        untrusted,
        judged.comparison,
        judged.averages,
        judged.pairs,
        manifest.lab,
        frozenset(each.name for each in cells if not each.valid and not each.spared),
        warnings,
        tuple(notes),
    )


def _tables(
    run: OpenRun,
    readings: Readings,
    measured: Sequence[CellFiles],
    warnings: Sequence[str],
    found: Mapping[str, pd.DataFrame],
) -> Iterator[tuple[str, bytes | SavedCells]]:
    """Return the files of the tables, and the record of the cells in them."""
    made = {name: tables.parquet(name, table) for name, table in found.items()}
    seals = {name: seal_of_content(content) for name, content in made.items()}
    yield from ((tables.file_of(name), content) for name, content in made.items())
    yield SAVED_CELLS, readings.saved_cells(measured, warnings, run.manifest_sha256, seals)


def _files(judged: Judged) -> Iterator[tuple[str, str | bytes]]:
    """Return the files of a comparison: the comparison itself, averages and pairs of cells."""
    yield "comparison.csv", comparing.to_csv(judged.comparison)
    yield "comparison.json", comparing.to_json(judged.comparison)
    for name, table in (("averages", judged.averages), ("pairs", judged.pairs)):
        yield tables.file_of(name), tables.parquet(name, table)
    for file, table in ((AVERAGES, judged.averages), (SCORES, scores_table(judged.pairs))):
        if not table.empty:
            yield file, table.to_csv(index=False)


def _write(folder: RunFolder, files: Iterable[tuple[str, str | bytes | SavedCells]]) -> list[str]:
    """Write the files of a run in their order; return a note if the record of its tables could not be saved."""
    notes = []
    for name, content in files:
        try:
            folder.replace(name, content_of(content) if isinstance(content, SavedCells) else content)
        except WriteError as error:
            if name != SAVED_CELLS:
                raise
            notes.append(f"{error.message}: the next report reads the cells again")
    return notes


def _idle_warnings(
    experiment: Experiment, cells: Sequence[CellFiles], found: Mapping[str, pd.DataFrame]
) -> tuple[str, ...]:
    from qoslab.analysis.idle import idle_warnings  # it needs the command language of routers

    return tuple(idle_warnings(experiment, cells, found))


def _judged(manifest: Manifest, experiment_text: str, metrics: pd.DataFrame, cells: Sequence[CellSummary]) -> Judged:
    """Compare the values of a run; values that a shortened run cannot have are not measured, unless it is strict."""
    experiment = manifest.experiment
    judged = judge(experiment, manifest.published, metrics, cells, manifest.lab)
    if STRICT in manifest.overrides or not shortened(manifest, experiment_text):
        return judged
    judged = replace(judged, comparison=comparison_of_shortened(judged.comparison))
    if experiment.compare is None:
        return judged
    return replace(judged, averages=averages_of_shortened(judged.averages, experiment.compare, metrics, cells))


def _unrecorded(manifest: Manifest, damaged: Mapping[str, Sequence[str]], recorded: Set[str]) -> list[str]:
    """Return the reasons why planned cells have no record, each with the name of its cell."""
    missing = [each for each in manifest.cells if each.name not in recorded and not each.spared]
    return [
        f"{each.name}: {reason}"
        for each in missing
        for reason in damaged.get(each.name) or each.reasons or ("it was not run to the end",)
    ] or ([] if manifest.cells else ["no cell was run"])


@dataclass(frozen=True)
class Judged:
    """Judged metrics of a run's cells; see `Outcome`."""

    comparison: pd.DataFrame
    averages: pd.DataFrame
    pairs: pd.DataFrame


def judge(
    experiment: Experiment,
    published: Sequence[PublishedFigure],
    metrics: pd.DataFrame,
    cells: Sequence[CellSummary],
    lab: str = DEFAULT_LAB,
) -> Judged:
    """Compare the metrics of cells, each with its validity, with published values and expectations."""
    wanted = experiment.compare
    planned = comparing.Planned(cells)
    arms = {cell.arm for cell in cells}
    trusted = [cell.name for cell in cells if cell.valid]
    comparison = comparing.compare(
        (wanted.article or "") if wanted else "",
        metrics.assign(valid=metrics["cell"].isin(trusted)),
        [each for each in published if each.metric and planned.has(each.arm.split("/"), each.where)],
        planned.expected(wanted, experiment.duration) if wanted else (),
        arms=[arm.name for arm in experiment.arms],
        show={arm: names for arm, names in wanted.show.items() if arm in arms} if wanted else {},
        lab=lab,
        planned=planned,
    )
    pairs = wanted.pairs if wanted else ()
    averages = averages_table(wanted.averages if wanted else (), metrics, cells, pairs)
    if comparison.empty and averages.empty:
        valid = metrics.assign(valid=metrics["cell"].isin(trusted))
        comparison = unexpected_values(experiment, valid, cells, lab)
    return Judged(comparison, averages, pairs_table(pairs, metrics, cells))


FIGURES_SO_FAR = ("arm", "where", "metric", "unit", "measured", "low", "high", "tolerance", "verdict")
"""Columns of the comparison for viewers of a running run."""


def figures_so_far(
    experiment: Experiment,
    published: Sequence[PublishedFigure],
    readings: Readings,
    cells: Sequence[CellFiles],
    lab: str,
) -> list[dict[str, object]]:
    """Return the comparison of some valid cells: rows of `FIGURES_SO_FAR`, null for missing values.

    Arms without a cell are left out.
    """
    valid = [reading for cell in cells if not (reading := readings.of(cell)).problems]
    parts = [reading.tables["metrics"] for reading in valid if "metrics" in reading.tables]
    found = tables.with_parameters(of_all_cells(parts), {cell.name: cell.parameters for cell in cells})
    done = [
        CellSummary(arm=cell.arm, parameters=as_texts(cell.parameters), repetition=cell.repetition, valid=True)
        for cell in cells
    ]
    rows = json.loads(comparing.to_json(judge(experiment, published, found, done, lab).comparison))
    return [{name: row[name] for name in FIGURES_SO_FAR} for row in rows if row["measured"] is not None]


def enough(wanted: Enough, cells: Sequence[CellFiles]) -> str:
    """Return the reason why a cell needs no more repetitions than these; empty if it needs more.

    Repetitions that are not valid do not count.
    """
    valid = [cell for cell in cells if cell.record().valid]
    if len(valid) < wanted.at_least:
        return ""
    found = Readings([Reference.parse(wanted.metric)], captures=False).gather(valid)
    rows = found.tables["metrics"]
    good = (rows["metric"] == wanted.metric) & ~rows["cell"].isin(list(found.problems)) & rows["value"].notna()
    values = rows[good]["value"].astype(float).to_numpy()
    if len(values) < wanted.at_least:
        return ""
    width = estimate(values).half_width
    if not width <= wanted.interval.fraction:
        return ""
    return f"the interval of {wanted.metric} is ±{width:.1%} after {len(values)} repetitions, within {wanted.interval}"
