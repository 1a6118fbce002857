"""`qoslab list`: experiments and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from qoslab.cli.output_options import json_option
from qoslab.cli.places import EXPERIMENTS, RUNS
from qoslab.errors import QoslabError
from qoslab.overview import RunSummary, read_runs
from qoslab.system.printing import echo, one_line

WIDTH = 300
"""Maximum characters of a message that are shown."""


@click.command()
@click.argument("what", type=click.Choice(["experiments", "runs"]), required=False)
@json_option
def command(what: str | None, as_json: bool) -> None:
    """List experiments and runs.

    Experiments are the files experiments/*.yml, runs the folders runs/EXPERIMENT/TIME. Only names and titles are read;
    `qoslab validate` checks an experiment.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    if what in (None, "experiments"):
        found["experiments"] = [
            _experiment_row(file) for file in sorted(EXPERIMENTS.glob("*.yml"), key=lambda file: file.stem)
        ]
    if what in (None, "runs"):
        found["runs"] = [_run(run) for run in read_runs(RUNS)]
    if as_json:
        echo(json.dumps(found, indent=2))
        return
    for row in found.get("experiments", []):
        about = f"{row['title']}  ({', '.join(row['arms'])})"
        if row["message"]:
            about = f"(unreadable, see qoslab validate: {row['message'].splitlines()[0][:WIDTH]})"
        echo(one_line(f"{row['file']}  {about}"))
    for row in found.get("runs", []):
        echo(one_line(f"{row['folder']}  {row['state']}" + (f"  {row['report']}" if row["report"] else "")))
    for kind, rows in found.items():
        if not rows:
            echo(f"no {kind} in {EXPERIMENTS if kind == 'experiments' else RUNS}/", err=True)


def _experiment_row(file: Path) -> dict[str, Any]:
    from qoslab.schema.experiment_names import read_names

    try:
        names = read_names(file)
    except QoslabError as error:
        return {"file": str(file), "name": file.stem, "title": "", "arms": [], "message": error.message}
    return {"file": str(file), "name": names.name, "title": names.title, "arms": list(names.arms), "message": ""}


def _run(run: RunSummary) -> dict[str, Any]:
    return {
        "folder": str(run.folder),
        "experiment": run.experiment,
        "time": run.folder.name,
        "state": run.words,
        "report": str(run.report) if run.report else None,
    }
