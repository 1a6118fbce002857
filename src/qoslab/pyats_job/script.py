"""The AEtest script: a run in the common setup, then a testcase for each of its cells.

Result codes of a testcase: passed, its cell is valid and all that is expected of its arm holds; failed, something does
not; errored, the cell is invalid; blocked, it was never run, since the run could not begin or broke off; skipped, it
was not needed, as the repetitions before it were enough, or it has no expectations.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyats import aetest
from pyats.easypy import runtime

from qoslab.analysis.verdicts import IMPOSSIBLE, LOOSE, OUTSIDE, UNDECIDED, WITHIN
from qoslab.cli.places import open_sweep
from qoslab.cli.run import handle_signals_as_ctrl_c, prepare_run, write_run_report
from qoslab.errors import QoslabError
from qoslab.pyats_job.cell_results import AVERAGES, CellResult, ExpectedResult, cell_results
from qoslab.results.changes import read_changes
from qoslab.results.redaction import KNOWN
from qoslab.run.progress_lines import RunProgress
from qoslab.run.runner import run_cells

_LOG = logging.getLogger(__name__)

parameters: dict[str, Any] = {"run": None}
"""Parameters of the script, until there is a run. Those of a section would override those of the setup."""


class _Progress(RunProgress):
    """Report the progress of the run in the task's log."""

    def note(self, text: str) -> None:
        _LOG.info(KNOWN.hidden(text))


class CommonSetup(aetest.CommonSetup):  # type: ignore[misc]
    """The run."""

    @aetest.subsection  # type: ignore[untyped-decorator]
    def make_ready(self, wanted: dict[str, Any]) -> None:
        """Check the experiment; from here on each of its cells is a testcase."""
        choice, sets = wanted["choice"], wanted["sets"]
        try:
            file, sweep = open_sweep(wanted["experiment"], sets, choice.kind.name)
            prepared = prepare_run(file, sweep, choice, sets)
        except QoslabError as error:
            self.blocked(_error_text(error), goto=["common_cleanup"])
        cells = [cell.name for cell in prepared.request.plan.cells]
        aetest.loop.mark(Cell, cell=cells, uids=cells)
        self.parent.parameters["prepared"] = prepared

    @aetest.subsection  # type: ignore[untyped-decorator]
    def run_experiment(self, prepared: Any) -> None:
        """Run it, and write its report."""
        request, plan = prepared.request, prepared.request.plan
        handle_signals_as_ctrl_c()
        try:
            with (
                _Progress(
                    plan.experiment.title, len(plan.cells), plan.estimate_seconds(prepared.expected), quiet=True
                ) as progress,
                run_cells(request, progress) as made,
            ):
                outcome = write_run_report(made, prepared.analysis.readings)
                made.publish()
        except QoslabError as error:
            self.blocked(_error_text(error), goto=["common_cleanup"])
        _LOG.info("report: %s", made.report)
        for file in (made.report, made.path / "comparison.csv"):
            if file.exists() and runtime.directory:
                shutil.copy(file, Path(runtime.directory) / file.name)
        self.parent.parameters.update(run=made, results=cell_results(made.manifest().cells, outcome))


class Cell(aetest.Testcase):  # type: ignore[misc]
    """One cell: its validity, and the expectations of its arm."""

    @aetest.test  # type: ignore[untyped-decorator]
    def check_validity(self, cell: str, results: dict[str, CellResult]) -> None:
        """Return whether its values can be trusted."""
        result = results[cell]
        if result.skip_reason:
            self.skipped(result.skip_reason, goto=["next_tc"])
        if not result.was_run:
            self.blocked("; ".join(result.reasons) or "it was not run", goto=["next_tc"])
        if result.reasons:
            self.errored("; ".join(result.reasons), goto=["next_tc"])

    @aetest.test  # type: ignore[untyped-decorator]
    def check_values(self, cell: str, results: dict[str, CellResult], steps: Any) -> None:
        """Check the expectations of the cell's arm, a step each; over all of its cells, as in the report."""
        expected = results[cell].expected
        if not expected:
            self.skipped("it has no expectations")
        _check_each(steps, expected)


class Averages(aetest.Testcase):  # type: ignore[misc]
    """Expectations of averages over cells."""

    @aetest.test  # type: ignore[untyped-decorator]
    def check_averages(self, results: dict[str, CellResult], steps: Any) -> None:
        """A step each."""
        expected = results[AVERAGES].expected
        if not expected:
            self.skipped("the averages have no expectations")
        _check_each(steps, expected)


class CommonCleanup(aetest.CommonCleanup):  # type: ignore[misc]
    """Cleanup after the run."""

    @aetest.subsection  # type: ignore[untyped-decorator]
    def check_routers_restored(self, run: Any, steps: Any) -> None:
        """Return whether routers that stay are as they were before the run."""
        changes = {} if run is None else read_changes(run)
        if not changes:
            self.skipped("the run changed no router that still exists")
        for router, each in changes.items():
            with steps.start(router, continue_=True) as step:
                if each.left is None:
                    step.failed(f"it may differ from its original state: {each.why}")
                elif each.left:
                    step.passx("others changed it during the run:\n" + "\n".join(each.left))


def _check_each(steps: Any, expected: Sequence[ExpectedResult]) -> None:
    for each in expected:
        with steps.start(each.name, description=each.text, continue_=True) as step:
            _LOG.info("%s: %s", each.name, each.text)
            if each.verdict in (WITHIN, LOOSE):
                step.passed(each.text)
            elif each.verdict == OUTSIDE:
                step.failed(each.text)
            elif each.verdict in (IMPOSSIBLE, UNDECIDED):
                step.errored(each.text)
            else:
                step.skipped(each.text)


def _error_text(error: QoslabError) -> str:
    return KNOWN.hidden(f"{error.message} {error.hint}".strip())
