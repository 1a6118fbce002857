"""`qoslab draw`: a picture of a topology."""

from __future__ import annotations

from pathlib import Path

import click

from qoslab.cli.completion import experiments
from qoslab.cli.options import set_option
from qoslab.cli.places import experiment_file
from qoslab.printing import echo

FORMS = ("svg", "mermaid")
"""`qoslab.report.drawing.FORMATS` by name; a test compares."""


@click.command()
@click.argument("experiment", metavar="EXPERIMENT", shell_complete=experiments)
@set_option
@click.option("--format", "form", type=click.Choice(FORMS), default="svg", help="[default: svg]")
@click.option("--to", type=click.Path(path_type=Path), metavar="FILE", help="Standard output where absent.")
def command(experiment: str, sets: tuple[str, ...], form: str, to: Path | None) -> None:
    """Draw the topology of an experiment, or of a topology file: nodes, interfaces, addresses, rates.

    EXPERIMENT is a file, or the name of one in experiments/. SVG is laid out from the first host to the right; a
    flowchart of Mermaid is text for a Markdown page, which the forge lays out. Nothing is written over.
    """
    from qoslab.exchange.base import whole
    from qoslab.report.drawing import FORMATS
    from qoslab.schema import parse_set
    from qoslab.schema.topology import load_topology

    name, topology = load_topology(experiment_file(experiment), dict(map(parse_set, sets)))
    text = FORMATS[form](topology, name)
    if to is None:
        echo(text.rstrip("\n"))
        return
    with whole(to) as draft:
        draft.write_text(text, encoding="utf-8")
    echo(f"Written: {to}", err=True)
