"""`qoslab import`: tables and graphs of other tools' files; experiments from the output of routers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qoslab.cli.output_options import json_option
from qoslab.cli.program import program_name
from qoslab.errors import UserError
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.exchange.routers.ignored import OmittedLines

FORMS = ("capture", "iperf3", "irtt", "flent", "iperf", "csv", "router")
"""Names in `qoslab.exchange.readers.FORMS`; a test compares them. Importing it would load pandas for a help page."""
ROUTER = "router"
MAX_PRINTED_LINES = 20
MAX_EXAMPLES = 3
"""Maximum lines that are shown for an effect; they begin differently."""
"""Maximum number of lines of a list that are printed."""


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
@click.option(
    "--model",
    metavar="MODEL",
    help="Model of all routers, such as ISR4451. [default: the nearest model of each router]",
)
@click.option("--anonymous", is_flag=True, help="Replace names, descriptions and addresses of routers.")
@json_option
def command(
    files: tuple[Path, ...],
    to: Path | None,
    form: str | None,
    interfaces: tuple[str, ...],
    model: str | None,
    anonymous: bool,
    as_json: bool,
) -> None:
    """Import router configurations, captures or results of other tools.

    The output of routers, in one file or several, becomes an experiment with topology, policies and background load.
    Routers are joined by subnet; hosts are placed in subnets without another router. ignored.txt lists the lines that
    are left out. Secrets are never written.

    Each file of a tool becomes one arm of a report. The output folder contains the tables as Parquet, report.html with
    the graphs, and import.json with the list of files, how they were read, and remarks on them.

    \b
    capture  pcapng or pcap, optionally compressed by gzip
    iperf3   output of iperf3: JSON (-J) or text
    iperf    output of iperf 2: text, or CSV (-y C)
    irtt     output of irtt client -o
    flent    a flent data file
    csv      a header time_s, then NAME_bps, NAME_kbps, NAME_Mbps or NAME_ms
    router   show running-config, show version, show interfaces,
             show policy-map interface, show ip route of IOS or IOS-XE
    """
    from qoslab.exchange.readers import detect_format

    target = to or Path("imported") / ("anonymous" if anonymous else files[0].name.split(".")[0])
    forms = {form or detect_format(file) for file in files}
    if forms == {ROUTER}:
        if interfaces:
            raise UserError("found --interface with router output, expected it only with captures")
        _import_routers(files, target, model, anonymous=anonymous, as_json=as_json)
        return
    if ROUTER in forms:
        raise UserError("found router output and other files, expected only one of the two; import them separately")
    if model is not None or anonymous:
        option = "--anonymous" if anonymous else "--model"
        raise UserError(f"found {option} with files of other tools, expected it only with router output")
    _import_files(files, target, form, interfaces, as_json=as_json)


def _import_files(
    files: tuple[Path, ...], to: Path, form: str | None, interfaces: tuple[str, ...], *, as_json: bool
) -> None:
    from qoslab.exchange.file_import import import_files

    written = import_files(files, to, form, interfaces)
    if as_json:
        echo((written / "import.json").read_text(encoding="utf-8").rstrip())
        return
    for each in json.loads((written / "import.json").read_text(encoding="utf-8"))["files"]:
        echo(f'{each["file"]}: {each["form"]}, arm "{each["arm"]}"')
        for note in each["notes"]:
            echo(f"  {note}")
    echo(f"Written: {written}, report: {written / 'report.html'}")


def _import_routers(files: tuple[Path, ...], to: Path, model: str | None, *, anonymous: bool, as_json: bool) -> None:
    from qoslab.exchange.routers import ImportChoices, import_routers

    if model is not None:
        _check_model(model)
    made = import_routers(files, to, ImportChoices(model, anonymous))
    record = (made.folder / "import.json").read_text(encoding="utf-8")
    if as_json:
        echo(record.rstrip())
        return
    from qoslab.model.metrics import format_value

    found = json.loads(record)
    for router in found["routers"]:
        echo(f"{router['name']}: {router['model']}")
        for each in router["policies"]:
            carried = "" if each["carried_by"] == each["interface"] else f", carried by {each['carried_by']}"
            echo(f"  {each['interface']}{carried}: {each['direction']} policy {each['policy']}")
        _print_list([f"{name}: left out: {reason}" for name, reason in router["left_out"].items()])
        _print_list(router["notes"])
    echo(f"Background load: {len(found['load'])} flows")
    _print_list(
        [
            f"{each['flow']}: {format_value(each['bps'], 'b/s')}, {each['from']} to {each['to']} ({each['source']})"
            for each in found["load"]
        ]
    )
    _print_list(found["notes"])
    changing = [each for each in made.left if each.could_change_result]
    echo(f"Ignored lines that could change a result: {sum(each.count for each in changing)}")
    _print_effects(changing)
    echo(f"Written: {made.folder}; all ignored lines: {made.folder / 'ignored.txt'}")
    echo("Next:")
    echo(f"  {program_name()} run {shlex.quote(str(made.experiment))} --lab simulated")


def _print_effects(omitted: Sequence[OmittedLines]) -> None:
    """Print each effect of omitted lines with the number of lines and the first ones."""
    from qoslab.exchange.routers.ignored import group_by_effect

    effects: dict[str, list[OmittedLines]] = {}
    for (effect, _), group in group_by_effect(omitted).items():
        effects.setdefault(effect, []).extend(group)
    several = len({each.file for each in omitted}) > 1
    for effect, group in effects.items():
        count = sum(each.count for each in group)
        echo(f"  {effect} ({count} line{'s' if count > 1 else ''}), such as")
        examples = {tuple(each.text.split()[:2]): each for each in reversed(group)}
        for each in sorted(examples.values(), key=group.index)[:MAX_EXAMPLES]:
            echo(f"    {f'{each.file}:' if several else 'line '}{each.first}: {each.text}")


def _print_list(lines: list[str]) -> None:
    for line in lines[:MAX_PRINTED_LINES]:
        echo(f"  {line}")
    if len(lines) > MAX_PRINTED_LINES:
        echo(f"  and {len(lines) - MAX_PRINTED_LINES} more")


def _check_model(model: str) -> None:
    from qoslab.platforms import MODELS

    known = [name for name, each in MODELS.items() if each.family == "router"]
    if model not in known:
        raise UserError(f'found --model "{model}", expected one of {", ".join(known)}')
