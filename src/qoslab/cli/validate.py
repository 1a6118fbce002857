"""`qoslab validate`: check an experiment file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from qoslab.cli.options import CellChoice, experiment_argument, lab_option, set_option
from qoslab.cli.output_options import json_option
from qoslab.cli.places import open_sweep
from qoslab.cli.plan import device_lines
from qoslab.errors import ExitStatus, ExperimentError, UserError
from qoslab.model.labs import DEFAULT_LAB
from qoslab.schema.devices import fidelity_notes, lines_without_effect
from qoslab.schema.idle import idle_warnings
from qoslab.system.printing import echo


@click.command()
@experiment_argument
@set_option
@lab_option
@json_option
def command(experiment: str, sets: Sequence[str], lab: str | None, as_json: bool) -> ExitStatus:
    """Check an experiment file and, with --lab, whether that lab can run it.

    EXPERIMENT is a file, or the name of a file in experiments/. Every error is listed with its location; with --json as
    a list of findings on standard output. Template lines that the routers accept but do not act on are listed as well.
    Warnings about classes that can match no packet, policies without declared traffic, and the accuracy of each IOS
    action in the kernel of a tc router do not change the exit status.
    """
    try:
        file, sweep = open_sweep(experiment, sets, lab or DEFAULT_LAB)
        choice = CellChoice(lab=lab)
        device_lines(choice, choice.plan(sweep))  # refuses an inventory that cannot be run
    except UserError as error:
        if not as_json:
            raise
        findings = [asdict(finding) for finding in error.findings] if isinstance(error, ExperimentError) else []
        echo(json.dumps({"valid": False, "message": error.message, "findings": findings}, indent=2))
        return error.exit_status
    remarks, warnings = lines_without_effect(sweep.experiment, file), idle_warnings(sweep)
    notes = fidelity_notes(sweep.experiment, file)
    if as_json:
        listed = {"remarks": remarks, "warnings": warnings, "fidelity": notes}
        extra = {name: list(map(asdict, found)) for name, found in listed.items()}
        echo(json.dumps({"valid": True, "message": "", "findings": [], **extra}, indent=2))
    else:
        for remark in (*remarks, *warnings, *notes):
            echo(str(remark), err=True)
        checked = sweep.experiment
        arms = ", ".join(arm.name for arm in checked.arms)
        cells = sum(len(sweep.combinations(arm.name)) for arm in checked.arms) * checked.repetitions
        counted = f"; {cells} cells of {', '.join(sweep.parameters)}" if sweep.parameters else ""
        warned = f"; {len(warnings)} warning{'' if len(warnings) == 1 else 's'}" if warnings else ""
        echo(f"{file}: the experiment {checked.name} is valid; arms: {arms}{counted}{warned}", err=True)
    return ExitStatus.WITHIN
