"""`qoslab unparsed`: router output of a run that no parser recognised."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.output_options import json_option
from qoslab.cli.places import RUNS
from qoslab.system.extras import require_extra
from qoslab.system.printing import echo


@click.command()
@click.argument("run", required=False, shell_complete=complete_runs)
@json_option
def command(run: str | None, as_json: bool) -> None:
    """List router output of a run that no parser recognised, each line once for each router and command.

    RUN is a run folder or an experiment name (its newest run, finished or not). [default: the newest run of all] For
    parsers that do not report the lines they skip, the list contains all lines without a parsed value, including
    headings.
    """
    require_extra("devices")
    from qoslab.analysis.unparsed import find_unparsed, readable
    from qoslab.genie.show_parser import parse
    from qoslab.results import find_run_to_resume

    def read(command: str, text: str) -> tuple[Any, str]:
        found = parse("ios", command, text)
        return found.parsed, found.reason

    folder = find_run_to_resume(RUNS, run)
    found = find_unparsed(readable(folder.open().cells), read)
    if as_json:
        echo(json.dumps({"run": str(folder.path), "unparsed": [asdict(each) for each in found]}, indent=2))
        return
    for each in found:
        what = each.line or f"nothing: {each.reason}"
        echo(f"{each.device}: {each.command}: {what}  ({each.place}, in {each.times} outputs)")
    if not found:
        echo(f"all router output in {folder.path} was parsed", err=True)
