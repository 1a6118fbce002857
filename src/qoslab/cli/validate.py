"""`qoslab validate`: check an experiment file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from qoslab.cli.options import experiment_argument, json_option, open_experiment, set_option
from qoslab.errors import ExitStatus, ExperimentError


@click.command()
@experiment_argument
@set_option
@json_option
def command(experiment: str, sets: Sequence[str], as_json: bool) -> ExitStatus:
    """Check an experiment file.

    EXPERIMENT is a file, or the name of one in experiments/. All that does not hold is listed with its place; with
    --json as a list of findings on stdout.
    """
    try:
        file, checked = open_experiment(experiment, sets)
    except ExperimentError as error:
        if not as_json:
            raise
        findings = [asdict(finding) for finding in error.findings]
        click.echo(json.dumps({"valid": False, "message": error.message, "findings": findings}, indent=2))
        return error.exit_status
    if as_json:
        click.echo(json.dumps({"valid": True, "message": "", "findings": []}, indent=2))
    else:
        arms = ", ".join(arm.name for arm in checked.arms)
        click.echo(f"{file}: the experiment {checked.name} holds; arms: {arms}", err=True)
    return ExitStatus.WITHIN
