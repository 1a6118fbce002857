"""`qoslab verify`: check of a run's files against their recorded checksums."""

from __future__ import annotations

import json

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.output_options import json_option
from qoslab.cli.places import RUNS
from qoslab.errors import ExitStatus
from qoslab.system.printing import echo, one_line


@click.command()
@click.argument("run", required=False, shell_complete=complete_runs)
@json_option
def command(run: str | None, as_json: bool) -> ExitStatus:
    """Verify the checksums of a run's files.

    RUN is a run folder or an experiment name (its newest run, finished or not). [default: the newest run of all] Every
    truncated, changed, removed or added file is listed, except files that a report computes again. The exit status is 3
    if there is one, else 0. An unknown file outside the cells is listed but does not change the status, because no
    report reads it. An unpacked RO-Crate is also compared with its own list of files.
    """
    from qoslab.results import find_run_to_resume
    from qoslab.results.verify import verify

    folder = find_run_to_resume(RUNS, run)
    found = verify(folder)
    if as_json:
        document = {"run": str(folder.path), "cells": found.cells, "files": found.files, "bytes": found.bytes}
        echo(json.dumps({**document, "damage": list(found.damage), "notes": list(found.notes)}, indent=2))
    else:
        for line in (*found.damage, *found.notes):
            echo(one_line(line))
        what = f"{found.cells} cells, {found.files} files, {found.bytes / 1e6:.1f} MB in {folder.path}"
        echo(f"{what}: {'DAMAGED, see above' if found.damage else 'all checksums match'}")
    return ExitStatus.RUN_INVALID if found.damage else ExitStatus.WITHIN
