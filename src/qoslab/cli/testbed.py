"""`qoslab testbed`: the pyATS testbed of a running lab, or of an Ansible inventory."""

from __future__ import annotations

import os
from pathlib import Path

import click

from qoslab.printing import echo


@click.command()
@click.option(
    "--lab",
    metavar="NAME|INVENTORY",
    help="A virtual lab that is up, or the file of an Ansible inventory; the only lab that is up where absent.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file, which only you can read.",
)
def command(lab: str | None, output: Path | None) -> None:
    """Print the pyATS testbed of a lab: its IOS routers, how to log in, what is cabled to what.

    It has the lab's passwords. Load it with pyATS or Genie in qoslab's own environment, which has the parsers for
    classic IOS: genie parse "show policy-map interface" --testbed-file FILE --devices R1
    """
    from qoslab.run.devices.inventory import read_inventory
    from qoslab.run.devices.testbed import testbed, testbed_yaml
    from qoslab.run.labs.virtual.access import lab_routers

    if lab is not None and (Path(lab).exists() or "/" in lab):
        made = testbed(Path(lab).stem, read_inventory(Path(lab)))
    else:
        from qoslab.lab import Lab

        found = Lab.find(lab)
        try:
            known_hosts = found.known_hosts() if found.host_key is not None else None
            made = testbed(found.name, lab_routers(found), found.topology, known_hosts=known_hosts)
        finally:
            found.close()
    text = testbed_yaml(made)
    if output is None:
        echo(text, nl=False)
        return
    with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
    echo(f"wrote {output}", err=True)
