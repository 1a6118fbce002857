"""`qoslab list`: experiments and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from qoslab.cli.options import EXPERIMENTS, RUNS, json_option
from qoslab.errors import ExperimentError
from qoslab.model.labs import VIRTUAL


@click.command()
@click.argument("what", type=click.Choice(["experiments", "runs"]), required=False)
@json_option
def command(what: str | None, as_json: bool) -> None:
    """List experiments and runs.

    Experiments are the files experiments/*.yml, runs the folders runs/EXPERIMENT/TIME.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    if what in (None, "experiments"):
        found["experiments"] = [
            _experiment(file) for file in sorted(EXPERIMENTS.glob("*.yml"), key=lambda file: file.stem)
        ]
    if what in (None, "runs"):
        found["runs"] = [_run(folder) for folder in sorted(RUNS.glob("*/*Z*")) if folder.is_dir()]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for row in found.get("experiments", []):
        arms = ", ".join(row["arms"]) if row["valid"] else "does not hold, see qoslab validate"
        click.echo(f"{row['file']}  {row['title']}  ({arms})")
    for row in found.get("runs", []):
        click.echo(f"{row['folder']}  {row['state']}" + (f"  {row['report']}" if row["report"] else ""))
    for kind, rows in found.items():
        if not rows:
            click.echo(f"no {kind} in {EXPERIMENTS if kind == 'experiments' else RUNS}/", err=True)


def _experiment(file: Path) -> dict[str, Any]:
    from qoslab.schema import load_experiment

    try:
        experiment = load_experiment(file)
    except ExperimentError as error:
        return {"file": str(file), "name": file.stem, "title": "", "arms": [], "valid": False, "message": error.message}
    arms = [arm.name for arm in experiment.arms]
    return {
        "file": str(file),
        "name": experiment.name,
        "title": experiment.title,
        "arms": arms,
        "valid": True,
        "message": "",
    }


def _run(folder: Path) -> dict[str, Any]:
    report = folder / "report.html"
    return {
        "folder": str(folder),
        "experiment": folder.parent.name,
        "time": folder.name,
        "state": _state(folder),
        "report": str(report) if report.exists() else None,
    }


def _state(folder: Path) -> str:
    """How many figures are within, and how many cells must not be trusted; `unfinished` where there is no comparison.

    Read as plain JSON, since a listing needs none of what `qoslab.results` loads.
    """
    try:
        rows = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        cells, lab = manifest["cells"], manifest.get("lab", VIRTUAL)
    except (OSError, ValueError):
        return "unfinished"
    verdicts = [row["verdict"] for row in rows]
    invalid = sum(not cell["valid"] for cell in cells)
    text = f"{verdicts.count('within')} within, {verdicts.count('outside')} outside"
    text = f"invalid ({invalid} of {len(cells)} cells): {text}" if invalid else text
    return text if lab == VIRTUAL else f"{lab}: {text}"
