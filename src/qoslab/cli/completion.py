"""Shell completions: experiments, arms, parameters and their values, runs.

Called by click (`_QOSLAB_COMPLETE=bash_source qoslab`). An invalid file yields no proposals and no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from qoslab.cli.places import EXPERIMENTS, RUNS, find_experiment_file
from qoslab.errors import QoslabError
from qoslab.lab_kinds import LABS
from qoslab.schema.named_files import FileRefusedError, read_bytes
from qoslab.system.shipped import shipped_path

if TYPE_CHECKING:
    from qoslab.schema.outline import Outline

MAX_REPORT_BYTES = 50 * 2**20
"""Maximum bytes of a report that is searched for graphs."""
MAX_ROWS = 2**22
"""Maximum number of table rows that are searched for names."""
_GRAPH = re.compile(rb'<div class="graph" id="([^"]+)"')

Items = list[CompletionItem]


def _with_prefix(words: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(incomplete)]


def complete_experiments(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Return the names of experiments here and of shipped ones; without a match, propose files."""
    found = [
        file.stem for folder in (EXPERIMENTS, shipped_path("experiments")) for file in sorted(folder.glob("*.yml"))
    ]
    return _with_prefix(found, incomplete) or [CompletionItem(incomplete, type="file")]


def complete_runs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Return experiments that have a finished run, and run folders, newest first."""
    named = [link.parent.name for link in sorted(RUNS.glob("*/latest"))]
    folders = sorted((folder for folder in RUNS.glob("*/*Z*")), key=lambda folder: folder.name, reverse=True)
    return _with_prefix([*named, *map(str, folders)], incomplete) or [CompletionItem(incomplete, type="dir")]


def _experiment_outline(ctx: click.Context) -> Outline:
    """Return the outline of the experiment on the line; an empty one if it cannot be read."""
    from qoslab.schema.outline import Outline, read_outline

    # After an option without a value, click leaves the parsed arguments unchanged.
    given = ctx.params.get("experiment") or next(iter(ctx.args), "")
    try:
        # Checking a whole sweep takes seconds, which is too long for completion.
        return read_outline(find_experiment_file(str(given)))
    except QoslabError:
        return Outline({}, {})


def complete_arms(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Return the arms of the experiment on the line."""
    found = _experiment_outline(ctx).arms.items()
    return [CompletionItem(name, help=title or None) for name, title in found if name.startswith(incomplete)]


def complete_parameters(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Return the parameters of the experiment on the line, such as `rtt=`; after the `=`, their values."""
    found = _experiment_outline(ctx).parameters
    name, equals, _ = incomplete.partition("=")
    if not equals:
        return _with_prefix((f"{each}=" for each in found), incomplete)
    return _with_prefix((f"{name}={value}" for value in found.get(name, ())), incomplete)


def complete_metrics(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Return the metrics of the run on the line."""
    return _with_prefix(_measured_metrics(_run(ctx)), incomplete)


def complete_figures(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Return the graphs of the run's report, figures of other packages, and the run's metrics."""
    from qoslab.exchange.plugin_figures import FIGURES

    run = _run(ctx)
    try:
        page = read_bytes(run / "report.html", MAX_REPORT_BYTES)
    except (OSError, FileRefusedError):
        page = b""
    graphs = (name.decode(errors="replace") for name in _GRAPH.findall(page))
    return _with_prefix([*graphs, *FIGURES, *_measured_metrics(run)], incomplete)


def _run(ctx: click.Context) -> Path:
    """Return the path of the run on the line; it may not exist."""
    given = str(ctx.params.get("run") or next(iter(ctx.args), ""))
    return next((run for run in (RUNS / given / "latest", RUNS / given) if run.exists()), Path(given))


def _measured_metrics(run: Path) -> list[str]:
    """Return the metrics with a value in a run."""
    import pyarrow.lib  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        # Names remain dictionary-encoded: each is read once, regardless of the number of rows.
        with pq.ParquetFile(run / "tables" / "metrics.parquet", read_dictionary=["metric"]) as file:
            if file.metadata.num_rows > MAX_ROWS:
                return []
            table = file.read(columns=["metric", "value"])
        valued = table.filter(table["value"].is_valid())
        return sorted(name for name in valued["metric"].unique().to_pylist() if isinstance(name, str))
    except (OSError, pyarrow.lib.ArrowException, ValueError, LookupError, TypeError):
        return []


def complete_labs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Return the kinds of labs; without a match, propose files, for inventories."""
    words = [name for name, kind in LABS.items() if not kind.has_place]
    return _with_prefix(words, incomplete) or [CompletionItem(incomplete, type="file")]
