"""`qoslab report`: the report of a run, regenerated from its raw results."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.gate import GateOptions, gate_options
from qoslab.cli.output_options import json_option, verbose_option
from qoslab.cli.places import RUNS
from qoslab.errors import ExitStatus, UserError
from qoslab.system.printing import echo


@click.command()
@click.argument("given", metavar="[RUN]...", nargs=-1, shell_complete=complete_runs)
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@click.option("--index", is_flag=True, help="Write index.html for all runs in the folder RUN instead. [default: runs]")
@click.option("--compare-labs", "labs", is_flag=True, help="Compare the runs of several labs in labs.html instead.")
@gate_options
@verbose_option
@json_option
def command(
    given: Sequence[str], show: bool, index: bool, labs: bool, gate: GateOptions, verbose: bool, as_json: bool
) -> ExitStatus:
    """Analyse a run again and write its report, an index of all runs, or a comparison of labs.

    RUN is a run folder or an experiment name (its latest run). [default: the latest run of all] Raw results are not
    changed; tables, comparison and report are replaced. The exit status is that of the run.

    With --compare-labs the latest runs of the experiment in each lab are compared, provided that they have the same
    settings; if RUN is a folder, the latest runs that match it; if several runs are given, one of each lab. The page
    and its tables (labs.html, labs.csv, fidelity.csv) are written to the folder of the experiment in runs/. The exit
    status is 1 if the labs contradict each other in a value with an expectation, else 0.
    """
    if index and labs:
        raise click.UsageError("found --index with --compare-labs, expected one of them")
    if (index or labs) and gate != GateOptions():
        raise click.UsageError("found --junit, --summary or --compare, expected them for the report of one run")
    if len(given) > 1 and not labs:
        raise click.UsageError(f"found {len(given)} runs, expected one; --compare-labs takes several")
    if labs:
        from qoslab.cli.lab_comparison import compare_labs
        from qoslab.report.matching_runs import counterparts

        status, page = compare_labs(counterparts(RUNS, given), RUNS, as_json=as_json)
        _open(page, show)
        return status
    run = given[0] if given else None
    if index:
        from qoslab.report import render_index

        written = render_index(_run_folder(run))
        echo(json.dumps({"index": str(written)}, indent=2) if as_json else f"Index: {written}")
        _open(written, show)
        return ExitStatus.WITHIN

    from qoslab.results import find_run

    folder = find_run(RUNS, run)
    if gate.before is not None:
        gate.check(folder.manifest().experiment.name)

    from qoslab.analysis.parallel import analyse_by_helpers
    from qoslab.cli.result_table import print_outcome
    from qoslab.report import render

    outcome = analyse_by_helpers(folder)
    report = render(folder, outcome)
    print_outcome(outcome, folder, as_json=as_json, verbose=verbose)
    gate.write(folder, outcome)
    _open(report, show)
    return outcome.exit_status


def _run_folder(given: str | None) -> Path:
    root = Path(given) if given is not None else RUNS
    if not root.is_dir():
        raise UserError(f"{root}: found no folder, expected one with runs", hint="qoslab run creates the folder runs/")
    return root


def _open(page: Path, show: bool) -> None:
    if show and not webbrowser.open(page.resolve().as_uri()):
        echo(f"qoslab: found no browser; open {page.resolve()} in one", err=True)
