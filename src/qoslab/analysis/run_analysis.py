"""Analysis of a run folder: its tables, metrics and comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from qoslab.analysis.judged import judge
from qoslab.analysis.metrics import concatenate_cells
from qoslab.analysis.readings import Readings
from qoslab.analysis.result_files import to_json, write
from qoslab.analysis.statistics import estimate
from qoslab.analysis.verdicts import INFORMATIVE, LOOSE, NOT_MEASURED, OUTSIDE, UNDECIDED
from qoslab.errors import ExitStatus, RunInvalid
from qoslab.lab_kinds import lab_kind
from qoslab.model.comparison import PublishedValue
from qoslab.model.experiment import Experiment, StoppingRule
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import as_texts
from qoslab.model.metrics import Reference
from qoslab.model.reference_names import references
from qoslab.results import CellFiles, CellSummary, RunFolder, tables
from qoslab.results.folder import MANIFEST, OpenRun


class ImpossibleError(RunInvalid):
    """Error for impossible values of valid cells: the analysis stops, since none of its values can be trusted."""

    def __init__(self, beyond: Mapping[str, Sequence[str]]) -> None:
        """Create it; `beyond` has the impossible values by the name of the cell."""
        listed = [f"{name}: {each}" for name, messages in beyond.items() for each in messages]
        further = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
        super().__init__(listed[0] + further, hint="the raw results are unchanged, and nothing was written")


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
    """Saved results that could not be used or written; see `qoslab.analysis.saved_cells`."""

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
    lab = lab_kind(manifest.lab, f"{folder.path}/{MANIFEST}")
    if readings is None:
        wanted = references(manifest.experiment, manifest.published)
        readings = Readings(wanted)
    found = readings.from_run(folder, run, read)
    if found.beyond:
        raise ImpossibleError(found.beyond)
    if found.saved is not None:
        warnings = found.saved.warnings
    else:
        from qoslab.analysis.idle import idle_warnings  # it needs the command language of routers

        warnings = tuple(idle_warnings(manifest.experiment, found.cells, found.tables, lab))

    trusted = {cell.name for cell in found.cells} - set(found.problems)
    arms = {summary.arm for summary in manifest.cells}
    untrusted = frozenset(arms - {summary.arm for summary in manifest.cells if summary.name in trusted})
    # Unreadable outputs make a cell invalid, regardless of its record.
    cells = [each.model_copy(update={"valid": each.valid and each.name in trusted}) for each in manifest.cells]
    judged = judge(
        manifest.experiment,
        manifest.published,
        found.tables["metrics"],
        cells,
        manifest.lab,
        overrides=manifest.overrides,
        experiment_text=run.experiment_text,
    )
    reasons = (*found.reasons, *judged.impossible)
    notes = [*filter(None, [readings.note]), *write(folder, found, warnings, judged)]
    return Outcome(
        replace(run, cells=found.cells, damaged=found.damaged),
        not reasons,
        reasons,
        untrusted,
        judged.comparison,
        judged.averages,
        judged.pairs,
        manifest.lab,
        frozenset(each.name for each in cells if not each.valid and not each.spared),
        warnings,
        tuple(notes),
    )


FIGURES_SO_FAR = ("arm", "where", "metric", "unit", "measured", "low", "high", "tolerance", "verdict")
"""Columns of the comparison for viewers of a running run."""


def preliminary_values(
    experiment: Experiment,
    published: Sequence[PublishedValue],
    readings: Readings,
    cells: Sequence[CellFiles],
    lab: str,
) -> list[dict[str, object]]:
    """Return the comparison of some valid cells: rows of `FIGURES_SO_FAR`, null for missing values.

    Arms without a cell are left out.
    """
    valid = [reading for cell in cells if not (reading := readings.cell_content(cell)).problems]
    parts = [reading.tables["metrics"] for reading in valid if "metrics" in reading.tables]
    found = tables.with_parameters(concatenate_cells(parts), {cell.name: cell.parameters for cell in cells})
    done = [
        CellSummary(arm=cell.arm, parameters=as_texts(cell.parameters), repetition=cell.repetition, valid=True)
        for cell in cells
    ]
    rows = json.loads(to_json(judge(experiment, published, found, done, lab).comparison))
    return [{name: row[name] for name in FIGURES_SO_FAR} for row in rows if row["measured"] is not None]


def stopping_reason(wanted: StoppingRule, cells: Sequence[CellFiles]) -> str:
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
