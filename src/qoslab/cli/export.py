"""`qoslab export`: a run in the format of another tool."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.output_options import json_option
from qoslab.cli.places import RUNS
from qoslab.system.printing import echo

FORMATS = ("csv", "parquet", "flent", "ro-crate")
"""Names in `qoslab.exchange.EXPORTS`; a test compares them. Importing it would load pandas for a help page."""
FORMATS_WITH_LICENCE = ("csv", "ro-crate")
"""Formats with a licence and authors; a test compares them as well."""


@click.command()
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Export format.")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Output file or folder. [default: named after experiment, time and format]",
)
@click.option(
    "--licence", default="", metavar="SPDX", help="Licence of the results, such as CC-BY-4.0 (csv, ro-crate)."
)
@click.option(
    "--author",
    "authors",
    multiple=True,
    metavar="'NAME <ORCID>'",
    help="Author; the ORCID in angle brackets is optional (csv, ro-crate). Repeatable.",
)
@json_option
def command(run: str | None, form: str, to: Path | None, licence: str, authors: tuple[str, ...], as_json: bool) -> None:
    """Export a run to the format of another tool.

    RUN is a run folder or an experiment name (its latest run). [default: the latest run of all] The tables are computed
    again first. An existing file is never overwritten.

    \b
    csv       a folder: the tables as CSV, columns and units in datapackage.json
    parquet   a folder: the tables as Parquet, units in the columns' metadata
    flent     a folder: a flent data file for each cell with traffic
    ro-crate  a ZIP file: the complete run with a description for archives; once
              unpacked it is a run again, and `qoslab verify` checks it
    """
    if (licence or authors) and form not in FORMATS_WITH_LICENCE:
        word = "--licence" if licence else "--author"
        raise click.UsageError(
            f"found {word} with --format {form}, expected a format with such a field: {', '.join(FORMATS_WITH_LICENCE)}"
        )
    from qoslab.exchange.attribution import check_licence

    check_licence(licence, authors)
    from qoslab.analysis.parallel import analyse_by_helpers
    from qoslab.exchange import EXPORTS, ExportRequest, write_export
    from qoslab.results import find_run

    folder = find_run(RUNS, run)
    export = EXPORTS[form]
    request = ExportRequest(folder, analyse_by_helpers(folder), licence, authors)
    written = write_export(export, request, to or Path(f"{folder.path.parent.name}-{folder.path.name}{export.ending}"))
    echo(json.dumps({"format": form, "written": str(written)}, indent=2) if as_json else f"Written: {written}")
