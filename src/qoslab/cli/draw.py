"""`qoslab draw`: a picture of a topology, or an inventory for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qoslab.cli.completion import complete_experiments
from qoslab.cli.options import set_option
from qoslab.cli.places import find_experiment_file
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.model.experiment import Topology

INVENTORY = "inventory"
FORMS = ("svg", "mermaid", INVENTORY)
"""Formats of `qoslab.report.drawing.FORMATS` by name (a test compares them), and the inventory."""


@click.command()
@click.argument("experiment", metavar="[EXPERIMENT]", required=False, shell_complete=complete_experiments)
@set_option
@click.option("--lab", metavar="NAME", help="Name of a running virtual lab (see `qoslab lab list`).")
@click.option("--format", "form", type=click.Choice(FORMS), default="svg", show_default=True, help="Output format.")
@click.option("--to", type=click.Path(path_type=Path), metavar="FILE", help="Output file. [default: standard output]")
def command(experiment: str | None, sets: tuple[str, ...], lab: str | None, form: str, to: Path | None) -> None:
    """Draw the topology of an experiment, of a topology file or of a running lab: nodes, interfaces, addresses, rates.

    EXPERIMENT is a file, or the name of a file in experiments/; use --lab to draw a running lab instead. svg is laid
    out from left to right, starting at the first host; mermaid is a flowchart in text form for a Markdown page;
    inventory is an Ansible inventory of the nodes, for a lab of real routers and hosts, with the values to fill in
    marked. An existing file is never overwritten.
    """
    from qoslab.exchange.base import write_atomically
    from qoslab.exchange.inventory_template import inventory_text
    from qoslab.report.drawing import FORMATS

    name, topology = _draw_lab(lab, experiment, sets) if lab is not None else _draw_file(experiment, sets)
    text = inventory_text(topology, name) if form == INVENTORY else FORMATS[form](topology, name)
    if to is None:
        echo(text.rstrip("\n"))
        return
    with write_atomically(to) as draft:
        draft.write_text(text, encoding="utf-8")
    echo(f"Written: {to}", err=True)


def _draw_file(experiment: str | None, sets: tuple[str, ...]) -> tuple[str, Topology]:
    from qoslab.schema import parse_set
    from qoslab.schema.topology import load_topology

    if experiment is None:
        raise click.UsageError("found neither EXPERIMENT nor --lab, expected one of them")
    return load_topology(find_experiment_file(experiment), dict(map(parse_set, sets)))


def _draw_lab(lab: str, experiment: str | None, sets: tuple[str, ...]) -> tuple[str, Topology]:
    from qoslab.virtual_lab import Lab

    if experiment is not None or sets:
        raise click.UsageError("found --lab with EXPERIMENT or --set, expected --lab alone")
    found = Lab.find(lab)
    try:
        return found.name, found.topology
    finally:
        found.close()
