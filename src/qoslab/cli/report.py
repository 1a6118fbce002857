"""`qoslab report`: the report of a run, made again from its raw results."""

from __future__ import annotations

import webbrowser

import click

from qoslab.cli.options import RUNS, json_option
from qoslab.errors import ExitStatus
from qoslab.printing import echo


@click.command()
@click.argument("run", required=False)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@json_option
def command(run: str | None, show: bool, as_json: bool) -> ExitStatus:
    """Analyse a run again and write its report.

    RUN is a run's folder or an experiment's name (its latest run); without it the latest run of all is taken. Raw
    results stay as they are; tables, comparison and report are replaced. The exit status is that of the run.
    """
    from qoslab.results import find_run

    folder = find_run(RUNS, run)

    from qoslab.analysis import analyse
    from qoslab.cli.figures import print_outcome
    from qoslab.report import render

    outcome = analyse(folder)
    report = render(folder, outcome)
    print_outcome(outcome, folder, as_json=as_json)
    if show and not webbrowser.open(report.resolve().as_uri()):
        echo(f"qoslab: found no browser; open {report.resolve()} in one", err=True)
    return outcome.exit_status
