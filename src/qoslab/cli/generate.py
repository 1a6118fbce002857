"""`qoslab generate`: write the files of a checkout that are made from others."""

from __future__ import annotations

import click

from qoslab.errors import ExitStatus, UserError
from qoslab.printing import echo
from qoslab.shipped import checkout


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if a file is stale.")
def command(check: bool) -> int:
    """Write the generated files of this checkout: types, default figures, the experiment schema, tables in documents.

    After a change of the data plane's types print its schema first: `qos-router schema counters`.
    """
    from qoslab.generated import FILES  # loads every command of the virtual devices

    top = checkout()
    if top is None:
        raise UserError("qoslab runs from a wheel, where nothing is generated", hint="Run ./qoslab of a checkout.")
    stale = []
    for path, make in FILES.items():
        file = top / path
        text = make(top)
        if file.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if not check:
            file.write_text(text, encoding="utf-8")
    for path in stale:
        echo(f"{path} {'is stale' if check else 'written'}")
    return ExitStatus.OUTSIDE if check and stale else ExitStatus.WITHIN
