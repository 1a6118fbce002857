"""`qoslab import`: tables and graphs of other tools' files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qoslab.cli.options import json_option
from qoslab.printing import echo

FORMS = ("capture", "iperf3", "irtt", "flent", "iperf", "csv")
"""`qoslab.exchange.readers.READERS` by name; a test compares. Importing it would load pandas for a page of help."""


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The folder that is made; imported/NAME of the first file where absent.",
)
@click.option("--format", "form", type=click.Choice(FORMS), help="Of all files; by their beginning where absent.")
@json_option
def command(files: tuple[Path, ...], to: Path | None, form: str | None, as_json: bool) -> None:
    """Make tables and graphs of other tools' files, as a run has them.

    Each of FILES becomes an arm. The folder has the tables as Parquet, report.html with the graphs, and import.json
    with what was read and what must be known of it.

    \b
    capture  pcapng or pcap, plain or compressed by gzip
    iperf3   what iperf3 printed, JSON of -J or text
    iperf    what iperf 2 printed
    irtt     what irtt client -o wrote
    flent    a data file of flent
    csv      a header time_s, then NAME_bps, NAME_kbps, NAME_Mbps or NAME_ms
    """
    from qoslab.exchange.imported import import_files

    written = import_files(files, to or Path("imported") / files[0].name.split(".")[0], form)
    if as_json:
        echo((written / "import.json").read_text(encoding="utf-8").rstrip())
        return
    for each in json.loads((written / "import.json").read_text(encoding="utf-8"))["files"]:
        echo(f'{each["file"]}: {each["form"]}, arm "{each["arm"]}"')
        for note in each["notes"]:
            echo(f"  {note}")
    echo(f"Written: {written}, report: {written / 'report.html'}")
