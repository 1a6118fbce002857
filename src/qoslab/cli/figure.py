"""`qoslab figure`: a figure of a run for a paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from qoslab.cli.completion import complete_figures, complete_runs
from qoslab.cli.output_options import json_option
from qoslab.cli.places import RUNS
from qoslab.errors import UserError
from qoslab.system.extras import require_extra
from qoslab.system.printing import echo


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("name", required=False, shell_complete=complete_figures)
@click.option("--format", "form", type=click.Choice(["svg", "pdf", "png", "pgf"]), help="File format. [default: svg]")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Output file; its extension selects the format. [default: NAME and format]",
)
@click.option(
    "--kind",
    type=click.Choice(["ecdf", "box", "bar"]),
    help="Style for a metric: ecdf (distribution over cells), box (quartiles), bar (median, interval). [default: bar]",
)
@click.option("--width", type=click.FloatRange(40, 500), default=88.0, show_default=True, help="Width in millimetres.")
@json_option
def command(
    run: str,
    name: str | None,
    form: str | None,
    to: Path | None,
    kind: Literal["ecdf", "box", "bar"] | None,
    width: float,
    as_json: bool,
) -> None:
    """Draw one figure of a run, for a paper.

    RUN is a run folder or an experiment name (its latest run). NAME is a graph of the report, a metric, or a figure of
    a plug-in. [default: list the available names] An existing file is replaced.
    """
    if name is None and (kind or form or to):
        raise click.UsageError("found --kind, --format or --to without NAME, expected the name of a figure")
    from qoslab.errors import clip_text, did_you_mean
    from qoslab.exchange.plugin_figures import FIGURES
    from qoslab.report.view import RunView
    from qoslab.results import find_run

    view = RunView(find_run(RUNS, run))
    graphs = view.graphs()
    table = view.table("metrics")
    metrics = sorted(set(table[table["value"].notna()]["metric"]))
    if name is None:
        added = {name: each.title for name, each in FIGURES.working_items()}
        _list(graphs, metrics, added, as_json)
        return
    if kind is not None and (name in graphs or name in FIGURES):
        raise click.UsageError(f"found --kind {kind} with {name}, expected a metric: a graph has a fixed kind")
    if name not in (*graphs, *FIGURES, *metrics):
        near = did_you_mean(name, (*graphs, *FIGURES, *metrics))
        raise UserError(
            f'found figure "{clip_text(name)}", expected a graph of the report, a metric or another package\'s figure',
            hint=f"{near} `qoslab figure {run}` lists the available figures".strip(),
        )
    require_extra("figures")
    from qoslab.exchange import paper

    if name in graphs:
        figure = paper.draw_graph(view.report_graph(name), width)
    elif name in FIGURES:
        paper.set_style()
        figure = FIGURES[name].draw(view, width)
    else:
        figure = paper.draw_metric(view.folder, view.manifest, view.outcome, name, kind or "bar", width)
    file = to or Path(f"{name}.{form or 'svg'}")
    if form is not None and file.suffix.lower() != f".{form}":
        raise UserError(f"--to {file}: found --format {form}, expected the extension .{form}")
    paper.save(figure, file)
    echo(json.dumps({"figure": name, "written": str(file)}, indent=2) if as_json else f"Written: {file}")


def _list(graphs: dict[str, str], metrics: list[str], added: dict[str, str], as_json: bool) -> None:
    if as_json:
        echo(json.dumps({"graphs": graphs, "metrics": metrics, "added": added}, indent=2))
        return
    width = max(map(len, (*graphs, *added)), default=0)
    for heading, named in (("Graphs of the report:", graphs), ("Figures of other packages:", added)):
        if named or named is graphs:
            echo(heading)
        for name, title in named.items():
            echo(f"  {name:{width}}  {title}")
    echo("Metrics (--kind ecdf, box or bar):")
    for metric in metrics:
        echo(f"  {metric}")
