"""`qoslab generate`: regenerate the generated files of a checkout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from qoslab.errors import ExitStatus, UserError
from qoslab.results.file_access import replace
from qoslab.system.printing import echo
from qoslab.system.shipped import find_checkout


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if a file is out of date.")
def command(check: bool) -> int:
    """Regenerate the generated files of this checkout: types, default values, schemas, tables in documents.

    After changing the types of the data plane, update its schema first: `qos-router schema counters`.
    """
    top = find_checkout()
    if top is None:
        raise UserError(
            "qoslab runs from a wheel, but files can be generated in a checkout only",
            hint="Run ./qoslab in a checkout.",
        )
    stale = False
    for path, text in _generated_files(top):
        file = top / path
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        stale = True
        if check:
            echo(f"{path} is stale")
        else:
            replace(file, text.encode(), in_run=False)
            echo(f"{path} written")
    return ExitStatus.OUTSIDE if check and stale else ExitStatus.WITHIN


def _generated_files(top: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and content of each generated file, in order, since later ones import earlier ones."""
    from qoslab.generate import FILES  # loads every command of the virtual devices

    for path, make in FILES.items():
        yield path, make(top)
