"""`qoslab report`: the report of a run, made again from its raw results."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from qoslab.cli.completion import runs as complete_runs
from qoslab.cli.gate import Gate, gate_options
from qoslab.cli.options import json_option
from qoslab.cli.places import RUNS
from qoslab.errors import ExitStatus, UserError
from qoslab.printing import echo


@click.command()
@click.argument("given", metavar="[RUN]...", nargs=-1, shell_complete=complete_runs)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option("--index", is_flag=True, help="Write index.html over all runs of the folder RUN (runs) instead.")
@click.option("--across", is_flag=True, help="Lay the runs of several labs side by side, in across.html, instead.")
@gate_options
@json_option
def command(given: Sequence[str], show: bool, index: bool, across: bool, gate: Gate, as_json: bool) -> ExitStatus:
    """Analyse a run again and write its report, or the index of all runs, or one of all labs.

    RUN is a run's folder or an experiment's name (its latest run); without it the latest run of all is taken. Raw
    results stay as they are; tables, comparison and report are replaced. The exit status is that of the run.

    With --across it is the experiment's latest run in each lab, with the same settings; the latest that fit to RUN
    where that is a folder; or the runs that are named, one of each lab. Page and tables (across.html, across.csv,
    fidelity.csv) go to the experiment's folder in runs/. The exit status is 1 where labs contradict each other in an
    expected figure, else 0.
    """
    if index and across:
        raise click.UsageError("found --index with --across, expected one of them")
    if (index or across) and gate != Gate():
        raise click.UsageError("found --junit, --summary or --compare, expected them for the report of one run")
    if len(given) > 1 and not across:
        raise click.UsageError(f"found {len(given)} runs, expected one; --across lays several side by side")
    if across:
        from qoslab.cli.across import lay_across
        from qoslab.report.counterparts import counterparts

        status, page = lay_across(counterparts(RUNS, given), RUNS, as_json=as_json)
        _open(page, show)
        return status
    run = given[0] if given else None
    if index:
        from qoslab.report import render_index

        written = render_index(_folder(run))
        echo(json.dumps({"index": str(written)}, indent=2) if as_json else f"Index: {written}")
        _open(written, show)
        return ExitStatus.WITHIN

    from qoslab.results import find_run

    folder = find_run(RUNS, run)
    if gate.before is not None:
        gate.check(folder.manifest().experiment.name)

    from qoslab.cli.figures import print_outcome
    from qoslab.readers import analyse_by_helpers
    from qoslab.report import render

    outcome = analyse_by_helpers(folder)
    report = render(folder, outcome)
    print_outcome(outcome, folder, as_json=as_json)
    gate.write(folder, outcome)
    _open(report, show)
    return outcome.exit_status


def _folder(given: str | None) -> Path:
    root = Path(given) if given is not None else RUNS
    if not root.is_dir():
        raise UserError(f"{root}: found no folder, expected one with runs", hint="qoslab run makes it, runs/")
    return root


def _open(page: Path, show: bool) -> None:
    if show and not webbrowser.open(page.resolve().as_uri()):
        echo(f"qoslab: found no browser; open {page.resolve()} in one", err=True)
