"""`qoslab list`: experiments and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from qoslab.cli.options import EXPERIMENTS, RUNS, json_option
from qoslab.errors import QoslabError
from qoslab.labs import LABS
from qoslab.model.labs import DEFAULT_LAB
from qoslab.printing import echo
from qoslab.schema.files import FileRefusedError, read_bytes

WIDTH = 300
"""Characters of a message that are shown."""
RECORD_LIMIT = 100 * 2**20
"""Bytes of a run's comparison or manifest; the manifest of 200 000 cells has nearly as many."""


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
        echo(json.dumps(found, indent=2))
        return
    for row in found.get("experiments", []):
        if row["valid"]:
            echo(f"{row['file']}  {row['title']}  ({', '.join(row['arms'])})")
        else:
            first = row["message"].partition("\n")[0]
            echo(f"{row['file']}  (does not hold, see qoslab validate: {first[:WIDTH]})")
    for row in found.get("runs", []):
        echo(f"{row['folder']}  {row['state']}" + (f"  {row['report']}" if row["report"] else ""))
    for kind, rows in found.items():
        if not rows:
            echo(f"no {kind} in {EXPERIMENTS if kind == 'experiments' else RUNS}/", err=True)


def _experiment(file: Path) -> dict[str, Any]:
    from qoslab.schema import load_experiment

    try:
        experiment = load_experiment(file)
    except Exception as error:  # one file must not keep the others from being listed
        message = error.message if isinstance(error, QoslabError) else f"{type(error).__name__}: {error}"
        return {"file": str(file), "name": file.stem, "title": "", "arms": [], "valid": False, "message": message}
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
        rows, manifest = (
            json.loads(read_bytes(folder / name, RECORD_LIMIT)) for name in ("comparison.json", "manifest.json")
        )
    except (OSError, ValueError, RecursionError, FileRefusedError):
        return "unfinished"
    try:
        cells, lab = manifest["cells"], manifest.get("lab", DEFAULT_LAB)
        verdicts = [row["verdict"] for row in rows]
        invalid = sum(not cell["valid"] for cell in cells)
    except (TypeError, KeyError, AttributeError):
        return "damaged"
    text = f"{verdicts.count('within')} within, {verdicts.count('outside')} outside"
    text = f"invalid ({invalid} of {len(cells)} cells): {text}" if invalid else text
    return text if lab in LABS and LABS[lab].is_default else f"{lab}: {text}"
