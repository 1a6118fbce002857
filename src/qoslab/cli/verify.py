"""`qoslab verify`: whether the files of a run are what it wrote."""

from __future__ import annotations

import json

import click

from qoslab.cli.completion import runs
from qoslab.cli.options import json_option
from qoslab.cli.places import RUNS
from qoslab.errors import ExitStatus
from qoslab.printing import echo


@click.command()
@click.argument("run", required=False, shell_complete=runs)
@json_option
def command(run: str | None, as_json: bool) -> ExitStatus:
    """Compare the files of a run with what was written.

    RUN is a run's folder or an experiment's name (its newest run, finished or not); without it the newest run of all is
    taken. Every file that was cut, changed, removed or added is named, but for what a report computes anew. The exit
    status is 3 where there is one, else 0. A file beside the cells that no run has is named and leaves the status as it
    is: no report takes it. An unpacked RO-Crate is compared with its list, too, which has every file.
    """
    from qoslab.results import find_unfinished
    from qoslab.results.verify import verify

    folder = find_unfinished(RUNS, run)
    found = verify(folder)
    if as_json:
        told = {"run": str(folder.path), "cells": found.cells, "files": found.files, "bytes": found.bytes}
        echo(json.dumps({**told, "damage": list(found.damage), "notes": list(found.notes)}, indent=2))
    else:
        for line in (*found.damage, *found.notes):
            echo(line)
        what = f"{found.cells} cells, {found.files} files, {found.bytes / 1e6:.1f} MB in {folder.path}"
        echo(f"{what}: {'DAMAGED, see above' if found.damage else 'all is what was written'}")
    return ExitStatus.RUN_INVALID if found.damage else ExitStatus.WITHIN
