"""`qoslab schema`: the JSON Schema of experiment files, and the available metrics."""

from __future__ import annotations

import json

import click

from qoslab.cli.output_options import json_option
from qoslab.model.metrics import METRICS
from qoslab.schema import schema_text
from qoslab.system.printing import echo


@click.command()
@click.option("--metrics", is_flag=True, help="List the metrics available to expectations instead.")
@json_option
def command(metrics: bool, as_json: bool) -> None:
    """Print the JSON Schema of experiment files.

    Editors use it to complete and check experiment files. `qoslab generate` writes the same schema to
    docs/schema/experiment.schema.json of a checkout.
    """
    if not metrics:
        echo(schema_text(), nl=False)
    elif as_json:
        rows = [
            {"name": each.name, "unit": each.unit, "selector": each.selector, "description": each.description}
            for _, each in METRICS.working_items()
        ]
        echo(json.dumps(rows, indent=2))
    else:
        for _, each in METRICS.working_items():
            echo(f"{each.name:<26}  {each.unit:<8}  {each.selector:<8} {each.description}")
