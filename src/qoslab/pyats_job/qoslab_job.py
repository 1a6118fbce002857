"""The job file: `pyats run job` calls `main`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
from pyats.easypy import run

from qoslab.cli.options import CellChoice, LabType, cell_options, set_option
from qoslab.pyats_job import SCRIPT


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []})
@click.option("--experiment", required=True, metavar="EXPERIMENT", help="A file, or the name of one in experiments/.")
@click.option("--in-lab", type=LabType(), help="Lab to run the cells in, as for qoslab run --lab.")
@set_option
@cell_options
def parse_options(experiment: str, in_lab: str | None, sets: Sequence[str], choice: CellChoice) -> dict[str, Any]:
    """Read the options of `qoslab run` that a job takes; pyATS has read its own."""
    return {"experiment": experiment, "sets": list(sets), "choice": replace(choice, lab=in_lab)}


def consumed_option_error(argv: Sequence[str]) -> str:
    """Return the error of a command line that pyATS has already read; empty if there is none."""
    if any(word == "--lab" or word.startswith("--lab=") for word in argv):
        return "found --lab (pyATS reads it as --label), expected --in-lab"
    return ""


def main(runtime: Any) -> None:
    """Run one experiment as one task."""
    if wrong := consumed_option_error(sys.orig_argv):
        sys.exit(f"qoslab: {wrong}")
    try:
        wanted = parse_options.main(sys.argv[1:], prog_name="qoslab job", standalone_mode=False)
    except click.ClickException as error:
        sys.exit(f"qoslab: {error.format_message()}")
    run(testscript=str(SCRIPT), taskid=wanted["experiment"], runtime=runtime, wanted=wanted)
