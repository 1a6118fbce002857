"""`qoslab testbed`: the pyATS testbed of a running lab, or of an Ansible inventory."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qoslab.cli.completion import complete_experiments
from qoslab.cli.options import set_option
from qoslab.errors import UserError
from qoslab.results.file_access import replace
from qoslab.system.printing import echo
from qoslab.system.programs import python_module_command

if TYPE_CHECKING:
    from qoslab.model.experiment import Topology
    from qoslab.run.devices.testbed import Secret

SECRETS = ("env", "ask", "plain")


@click.command()
@click.option(
    "--lab",
    metavar="NAME|INVENTORY",
    help="Name of a running virtual lab, or an Ansible inventory file. [default: the only running lab]",
)
@click.option(
    "--experiment",
    metavar="EXPERIMENT",
    shell_complete=complete_experiments,
    help="Experiment with the links between the nodes of an inventory: a file, or the name of a file in experiments/.",
)
@set_option
@click.option(
    "--secrets",
    type=click.Choice(SECRETS),
    help="Source of passwords for pyATS. env: environment variables; ask: prompt; plain: in the testbed file. "
    "[default: env; plain for a virtual lab, where passwords are temporary]",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Output file, readable only by you. [default: standard output]",
)
def command(
    lab: str | None, experiment: str | None, sets: Sequence[str], secrets: str | None, output: Path | None
) -> None:
    """Print the pyATS testbed of a lab: IOS routers and hosts, logins, cabling.

    Load it with pyATS or Genie in the Python environment of qoslab, which has the parsers for classic IOS: genie parse
    "show policy-map interface" --testbed-file FILE --devices R1
    """
    from qoslab.run.devices.testbed import EnvironmentSecrets, testbed_yaml

    if lab is not None and (Path(lab).exists() or "/" in lab):
        topology = None if experiment is None else _read_topology(experiment, sets)
        made, secret = _inventory_testbed(Path(lab), topology, secrets or "env")
    else:
        if experiment is not None:
            raise UserError("found --experiment for a virtual lab, expected an inventory: a lab has its own links")
        made, secret = _lab_testbed(lab, secrets or "plain")
    text = testbed_yaml(made)
    if output is None:
        echo(text, nl=False)
    else:
        replace(output, text.encode(), private=True, in_run=False)
        echo(f"wrote {output}", err=True)
    if isinstance(secret, EnvironmentSecrets) and secret.used:
        echo(f"pyATS takes the passwords from the environment: {', '.join(secret.used)}", err=True)


def _read_topology(experiment: str, sets: Sequence[str]) -> Topology:
    from qoslab.cli.places import open_sweep

    return open_sweep(experiment, sets)[1].experiment.topology


def _inventory_testbed(file: Path, topology: Topology | None, secrets: str) -> tuple[dict[str, Any], Secret]:
    from qoslab.run.devices.ansible_inventory import known_hosts_file, password_variables, read_nodes
    from qoslab.run.devices.testbed import EnvironmentSecrets, build_testbed, host_device, plain_secret, prompt_secret

    inventory = read_nodes(file)
    nodes = inventory.nodes
    if topology is not None:
        there = (*inventory.routers, *inventory.hosts)
        missing = [name for name in topology.nodes if name not in there]
        if missing:
            raise UserError(
                f"found no {', '.join(missing)} in {file}, expected all nodes of the experiment",
                hint="Use the experiment's node names in the inventory.",
            )
    secret: Secret = prompt_secret if secrets == "ask" else plain_secret
    if secrets == "env":
        secret = EnvironmentSecrets(password_variables(file))
    keys = {name: known_hosts_file(file, settings) for name, settings in nodes.routers.items()}

    def device_name(node: str, interface: str) -> str:
        return (nodes.hosts.get(node) or nodes.routers[node]).device(interface)

    made = build_testbed(
        file.stem,
        inventory.routers,
        topology,
        settings=nodes.routers,
        keys={name: key for name, key in keys.items() if key is not None},
        hosts={name: host_device(access) for name, access in inventory.hosts.items()},
        names=device_name,
        secret=secret,
    )
    return made, secret


def _lab_testbed(name: str | None, secrets: str) -> tuple[dict[str, Any], Secret]:
    from qoslab.platforms import host_names
    from qoslab.run.devices.testbed import (
        EnvironmentSecrets,
        build_testbed,
        command_device,
        plain_secret,
        prompt_secret,
    )
    from qoslab.run.workers.virtual.access import lab_router_access
    from qoslab.virtual_lab import Lab

    ways: dict[str, Secret] = {"env": EnvironmentSecrets({}), "ask": prompt_secret, "plain": plain_secret}
    secret = ways[secrets]
    lab = Lab.find(name)
    try:
        known_hosts = lab.known_hosts() if lab.host_key is not None else None
        # A dumb terminal, as a shell adds control characters to its prompt for other terminals.
        words = ["env", "TERM=dumb", *python_module_command("qoslab", "lab", "shell", "--lab", lab.name)]
        hosts = {host: command_device(shlex.join([*words, host])) for host in host_names(lab.topology)}
        made = build_testbed(
            lab.name, lab_router_access(lab), lab.topology, known_hosts=known_hosts, hosts=hosts, secret=secret
        )
    finally:
        lab.close()
    return made, secret
