"""`qoslab notebook`: JupyterLab on the notebook of an experiment."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import chdir
from pathlib import Path

import click

from qoslab.cli.completion import complete_experiments, complete_runs
from qoslab.cli.places import RUNS
from qoslab.errors import UserError
from qoslab.lab_kinds.simulated import SimulatedKind
from qoslab.results.file_access import draft_path
from qoslab.system.extras import require_extra
from qoslab.system.printing import echo
from qoslab.system.programs import python_module_command
from qoslab.system.shipped import shipped_path

NOTEBOOKS = Path("analysis")
"""Folder of notebooks, relative to the working directory; each has the name of its experiment."""


@click.command()
@click.argument("experiment", required=False, shell_complete=complete_experiments)
@click.option(
    "--run",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Run folder to show. [default: the latest run of the experiment]",
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
def command(experiment: str | None, run: str | None, no_browser: bool) -> None:
    """Open the notebook of an experiment in JupyterLab.

    The notebook shows the latest run of the experiment; if there is none, qoslab simulates one. EXPERIMENT may
    be omitted if there is only one notebook.
    """
    require_extra("notebook")
    notebook = find_notebook(experiment)
    from qoslab.report.view import RUN_VARIABLE

    # Prevents kernels from importing modules of the notebook's folder before any cell is run.
    environment = {"PYTHONSAFEPATH": "1", **os.environ}
    if run is not None:
        from qoslab.results import find_run

        environment[RUN_VARIABLE] = str(find_run(RUNS, run).path)
    else:
        simulate_unless_run(notebook.stem)
    warn_about_partial_run(Path(environment.get(RUN_VARIABLE) or RUNS / notebook.stem / "latest"))
    argv = python_module_command("jupyterlab", str(notebook.absolute()))
    if no_browser:
        argv.append("--no-browser")
    if os.geteuid() == 0:
        # Jupyter refuses to start as root without this option.
        argv.append("--allow-root")
    sys.stdout.flush()
    # Jupyter runs configuration files of the folder that it is started in; the notebook's is the one that it shows.
    with chdir(sys.prefix):
        os.execve(sys.executable, argv, environment)


def simulate_unless_run(experiment: str) -> None:
    """Simulate the whole experiment if it has no finished run, so that its notebook has results to show."""
    from qoslab.report.view import RUN_VARIABLE

    if os.environ.get(RUN_VARIABLE) or (RUNS / experiment / "latest").exists():
        return
    from qoslab.cli.run import command as run_experiment

    echo(f"{experiment} has no run yet: simulating one first; `--run RUN` shows another run", err=True)
    run_experiment.main([experiment, "--lab", SimulatedKind.name], prog_name="qoslab run", standalone_mode=False)


def warn_about_partial_run(run: Path) -> None:
    """Warn that a notebook of the whole experiment cannot be complete for a partial run."""
    from qoslab.model.partial_runs import partial_options
    from qoslab.overview import read_run

    if part := partial_options(read_run(run).overrides):
        echo(f"{run} is partial ({part}): the notebook shows only this part", err=True)


def find_notebook(experiment: str | None) -> Path:
    """Return the notebook of an experiment. Raise `UserError` if there is none, or if there are several and no name.

    A shipped notebook is first copied into `analysis/`, unless the user has one with that name, so that it can be
    edited.
    """
    known = {
        path.stem: path for folder in (shipped_path("analysis"), NOTEBOOKS) for path in sorted(folder.glob("*.ipynb"))
    }
    wanted = Path(experiment).stem if experiment is not None else next(iter(known)) if len(known) == 1 else None
    if wanted is not None and wanted in known:
        own = NOTEBOOKS / f"{wanted}.ipynb"
        if not own.exists():
            with draft_path(own) as draft:
                shutil.copyfile(known[wanted], draft)
        return own
    found = f'found "{experiment}"' if experiment is not None else "found no name"
    raise UserError(
        f"{found}, expected one of {', '.join(known)}" if known else f"{found}: there is no notebook",
        hint=f"notebooks are {NOTEBOOKS}/EXPERIMENT.ipynb",
    )
