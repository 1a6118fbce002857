"""`qoslab baseline`: keep a full run in the tree, and the document of results with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qoslab.cli.places import RUNS
from qoslab.errors import ExitStatus, UserError
from qoslab.labs import LABS
from qoslab.plan import Options, make_plan
from qoslab.printing import echo
from qoslab.schema import load_sweep
from qoslab.shipped import checkout

if TYPE_CHECKING:
    from qoslab.results import RunFolder


@click.command()
@click.argument("run", required=False)
def command(run: str | None) -> ExitStatus:
    """Keep a run of this checkout's experiments as the baseline of its experiment and kind of lab.

    RUN is a run's folder or an experiment's name (its latest run); without it the latest run of all is taken. It must
    be valid, and of the whole file as it stands in experiments/. Its comparison and manifest go to reports/baselines/,
    and docs/results.md is written anew.
    """
    from qoslab.generated import FILES, RESULTS
    from qoslab.results import find_run
    from qoslab.results.baselines import keep

    top = checkout()
    if top is None:
        raise UserError("qoslab runs from a wheel, where no baselines are kept", hint="Run ./qoslab of a checkout.")
    folder = find_run(RUNS, run)
    if why := _unfit(folder, top):
        raise UserError(f"{folder.path}: {why}, expected a valid run of a whole file of experiments/")
    echo(f"{keep(folder, top).relative_to(top)} written")
    text = FILES[RESULTS](top)
    if (top / RESULTS).read_text(encoding="utf-8") != text:
        (top / RESULTS).write_text(text, encoding="utf-8")
        echo(f"{RESULTS} written")
    return ExitStatus.WITHIN


def _unfit(folder: RunFolder, top: Path) -> str:
    """Why a run is no baseline; empty where it is one."""
    manifest = folder.manifest()
    if manifest.lab not in LABS:
        return f"found a run in the lab {manifest.lab}"
    if not manifest.valid:
        return "found a run that is not valid"
    if others := [each for each in manifest.overrides if each != f"--lab {manifest.lab}"]:
        return f"found a run with other values ({', '.join(others)})"
    file = top / "experiments" / f"{manifest.experiment.name}.yml"
    if not file.exists():
        return f"found a run of {manifest.experiment.name}, which is not in experiments/"
    if (folder.path / "experiment.yml").read_bytes() != file.read_bytes():
        return f"found a run of another version of {file.name}"
    planned = make_plan(load_sweep(file, {}, LABS[manifest.lab].check), Options(lab=manifest.lab)).cells
    missing = {cell.name for cell in planned} - {cell.name for cell in manifest.cells}
    return f"found a run without {len(missing)} of {len(planned)} cells" if missing else ""
