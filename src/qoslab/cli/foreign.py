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
    help="Output folder. [default: imported/NAME of the first file]",
)
@click.option(
    "--format", "form", type=click.Choice(FORMS), help="Format of all files. [default: detected for each file]"
)
@click.option(
    "--interface",
    "interfaces",
    multiple=True,
    metavar="NAME",
    help="Interface, by name or number, of captures that have several. Repeatable. [default: all, separated]",
)
@json_option
def command(
    files: tuple[Path, ...], to: Path | None, form: str | None, interfaces: tuple[str, ...], as_json: bool
) -> None:
    """Make tables and graphs from the files of other tools.

    Each file becomes one arm. The output folder contains the tables as Parquet, report.html with the graphs, and
    import.json with the list of files, how they were read, and remarks on them.

    \b
    capture  pcapng or pcap, optionally compressed by gzip
    iperf3   output of iperf3: JSON (-J) or text
    iperf    output of iperf 2: text, or CSV (-y C)
    irtt     output of irtt client -o
    flent    a flent data file
    csv      a header time_s, then NAME_bps, NAME_kbps, NAME_Mbps or NAME_ms
    """
    from qoslab.exchange.imported import import_files

    written = import_files(files, to or Path("imported") / files[0].name.split(".")[0], form, interfaces)
    if as_json:
        echo((written / "import.json").read_text(encoding="utf-8").rstrip())
        return
    for each in json.loads((written / "import.json").read_text(encoding="utf-8"))["files"]:
        echo(f'{each["file"]}: {each["form"]}, arm "{each["arm"]}"')
        for note in each["notes"]:
            echo(f"  {note}")
    echo(f"Written: {written}, report: {written / 'report.html'}")
