"""`qoslab lab`: start, inspect and stop virtual labs."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qoslab.cli.completion import complete_experiments
from qoslab.cli.options import CellChoice, ask_option, experiment_argument, set_option
from qoslab.cli.output_options import json_option
from qoslab.cli.places import find_experiment_file, open_sweep
from qoslab.errors import UserError
from qoslab.lab_kinds import find_kind
from qoslab.platforms import kernel_routers, node_platform, router_names
from qoslab.schema.named_files import FileRefusedError, read_bytes
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.virtual_lab import Lab


MAX_CONFIGURATION_BYTES = 16 * 2**20
"""Maximum bytes of a configuration file."""


@click.group()
def command() -> None:
    """Start, inspect and stop virtual labs.

    A lab started by `lab up` stays up until `lab down` or until the machine shuts down. A run starts its own lab and
    stops it.
    """


@command.command()
@click.argument("file", metavar="EXPERIMENT|TOPOLOGY.yml", shell_complete=complete_experiments)
@click.option("--name", help="Name of the lab. [default: name of the experiment or file]")
@click.option(
    "--old-ssh", is_flag=True, help="Offer only the old SSH algorithms (SHA-1, CBC) on IOS routers, as IOS 12.4 does."
)
@click.option("--telnet", is_flag=True, help="Accept telnet logins on IOS routers as well.")
@click.option(
    "--inert-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Show the lines of this running configuration that virtual routers do not implement, without acting on them.",
)
@click.option(
    "--expose",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Make hosts reachable by SSH on loopback as well, and write an inventory of all nodes for --lab to FILE.",
)
@click.option(
    "--single-host", is_flag=True, help="With --expose: put all hosts on one machine with one NIC per interface."
)
@set_option
@json_option
def up(
    file: str,
    name: str | None,
    old_ssh: bool,
    telnet: bool,
    inert_config: Path | None,
    expose: Path | None,
    single_host: bool,
    sets: Sequence[str],
    as_json: bool,
) -> None:
    """Start the lab of an experiment, or of a file that contains only a topology (nodes and links)."""
    if single_host and expose is None:
        raise click.UsageError("found --single-host without --expose, expected both: it changes how hosts are reached")
    from qoslab.schema import parse_set
    from qoslab.schema.topology import load_topology
    from qoslab.tc.place import manual_guest_routers
    from qoslab.virtual_lab import Lab
    from qoslab.virtual_lab.ios_routers import RouterLogins

    path = find_experiment_file(file)
    lines = "" if inert_config is None else _read_configuration(inert_config)
    found_name, topology = load_topology(path, dict(map(parse_set, sets)))
    guests = frozenset() if expose is not None else manual_guest_routers(kernel_routers(topology))
    ways = RouterLogins(old_ssh, telnet, lines)
    lab = Lab.up(topology, name=name or found_name, owned=False, ways=ways, guests=guests)
    try:
        if expose is not None:
            _expose_lab(lab, expose, together=single_host)
        if as_json:
            echo(json.dumps(_lab_facts(lab), indent=2))
            return
        echo(f"lab {lab.name} is up", err=True)
        echo("\n".join(_print_access(lab)))
        if expose is not None:
            echo("run an experiment in it: " + shlex.join(["qoslab", "run", str(file), "--lab", str(expose)]))
    finally:
        lab.close()


def _read_configuration(file: Path) -> str:
    try:
        return read_bytes(file, MAX_CONFIGURATION_BYTES).decode("utf-8")
    except (OSError, ValueError, FileRefusedError) as error:
        raise UserError(f"{file} cannot be read: {error}", hint="Give the output of `show running-config`.") from error


def _expose_lab(lab: Lab, file: Path, *, together: bool) -> None:
    from qoslab.virtual_lab.expose import expose_lab

    try:
        expose_lab(lab, file, together=together)
    except BaseException:
        lab.down()
        raise


@command.command(name="list")
@json_option
def list_labs(as_json: bool) -> None:
    """List your running labs."""
    from qoslab.virtual_lab import Lab, LabError

    found = []
    for lab in Lab.running_labs():
        try:
            found.append(_lab_facts(lab))
        except (OSError, LabError):
            continue  # The lab stopped after it was found.
        finally:
            lab.close()
    if as_json:
        echo(json.dumps(found, indent=2))
        return
    if not found:
        echo("no lab is up", err=True)
    for facts in found:
        state = "; ".join(facts["failures"]) or "ok"
        echo(f"{facts['name']}  {', '.join(facts['nodes'])}  ({state})")


@command.command()
@click.argument("node")
@click.option("--lab", "name", help="Name of the lab; required if several are running.")
def shell(node: str, name: str | None) -> None:
    """Open a shell on a host or an engine router; log in to an IOS router over SSH.

    NODE is a node of the lab, or R1.dp for the namespace that contains the data-plane ports of R1.
    """
    from qoslab.virtual_lab import Lab

    lab = Lab.find(name)
    if _has_command_line(lab, node):
        echo(f"{node} is a router; the enable secret is {lab.ssh(node).enable}", err=True)
        argv = _ssh_argv(lab, node)
    else:
        shell_program = os.environ.get("SHELL", "/bin/sh")
        echo(f"a shell in {node}; type exit to leave", err=True)
        argv = lab.argv(node, ["env", f"debian_chroot={node}", shell_program])
    sys.stdout.flush()
    os.execvp(argv[0], argv)


@command.command(name="exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--lab", "name", help="Name of the lab; required if several are running.")
@click.argument("node")
@click.argument("argv", nargs=-1, required=True, metavar="COMMAND...")
def execute(name: str | None, node: str, argv: Sequence[str]) -> None:
    """Run a command on a node.

    On a host: `qoslab lab exec client iperf3 -c 192.168.20.2`. On an IOS router: `qoslab lab exec R1 show version`.
    """
    from qoslab.virtual_lab import Lab

    lab = Lab.find(name)
    entered = [*_ssh_argv(lab, node), " ".join(argv)] if _has_command_line(lab, node) else lab.argv(node, argv)
    sys.stdout.flush()
    os.execvp(entered[0], entered)


@command.command()
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="Stop all your labs.")
def down(name: str | None, every: bool) -> None:
    """Stop a lab. [default: the only running lab]"""
    from qoslab.virtual_lab import Lab

    if every and name is not None:
        raise UserError(f"found --all and the name {name}, expected one of them")
    for lab in Lab.running_labs() if every else [Lab.find(name)]:
        lab.down()
        echo(f"lab {lab.name} is down", err=True)


@command.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@experiment_argument
@set_option
@ask_option
def check(inventory: Path, experiment: str, sets: Sequence[str], ask: bool) -> None:
    """Check that an experiment can run on the nodes of an inventory, with the preflight checks of a run. Nothing is
    changed.

    Each finding is printed on one line: what was found, what was expected, what to do.
    """
    from qoslab.run.workers import lab_machinery

    kind = find_kind(str(inventory))
    look = lab_machinery(kind).check if kind.has_place else None
    if look is None:
        raise UserError(f"found {inventory}, expected the path of an inventory")
    _, sweep = open_sweep(experiment, sets, str(inventory))
    if ask:
        from qoslab.run.devices.password_prompt import prompt_for_passwords

        prompt_for_passwords(inventory, router_names(sweep.experiment.topology))
    checked = look(str(inventory), CellChoice(lab=str(inventory)).plan(sweep))
    for line in checked.description:
        echo(line)
    for note in checked.notes:
        echo(f"note: {note}", err=True)
    if checked.refusal is not None:
        raise checked.refusal
    echo(f"{sweep.experiment.name} can be run on {inventory}", err=True)


@command.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option(
    "--console",
    "consoles",
    metavar="ROUTER[=HOST:PORT]",
    multiple=True,
    help="Reach the console of this router by telnet to a terminal server port. "
    "[default: qoslab_console of the inventory] Repeatable.",
)
@ask_option
def rescue(inventory: Path, consoles: Sequence[str], ask: bool) -> None:
    """Restore the routers of an inventory after a run that was killed before it could restore them.

    Rolls back only the configuration of that run; later changes by others are left in place and reported.
    """
    from qoslab.run.real.rescue import restore_routers as restore
    from qoslab.run.real.rescue import unrestored_routers

    if ask and (routers := unrestored_routers(inventory)):
        from qoslab.run.devices.password_prompt import prompt_for_passwords

        prompt_for_passwords(inventory, routers)
    lines = dict(map(_console_address, consoles))
    about = restore(inventory, lambda text: echo(text, err=True), lines)
    if about is None:
        echo(f"nothing to restore: no run has left changes on the routers of {inventory}", err=True)
    else:
        echo(f"the routers of {inventory} are as they were before the run {about.run} ({about.since})", err=True)


def _console_address(text: str) -> tuple[str, tuple[str, int] | None]:
    """Return router and console address as typed; the address is None if the inventory has it."""
    router, equals, place = text.partition("=")
    if router and not equals:
        return router, None
    host, _, port = place.rpartition(":")
    if not (router and host and port.isdecimal() and 0 < int(port) < 65536):
        raise UserError(f'found --console "{text}", expected ROUTER=HOST:PORT, such as R1=192.0.2.250:2003')
    return router, (host, int(port))


def _has_command_line(lab: Lab, node: str) -> bool:
    """Return whether the node is a router with an IOS command line."""
    found = lab.nodes.get(node)
    return found is not None and node_platform(found.node).access.command_line


def _ssh_argv(lab: Lab, router: str) -> list[str]:
    """Return the ssh command line that logs in to a router of the lab without prompts and without using known_hosts."""
    from qoslab.run.devices.old_ssh import OPENSSH_OLD
    from qoslab.system.openssh import host_key_options

    login = lab.ssh(router)
    known = lab.known_hosts()
    return [
        *("env", f"SSH_ASKPASS={lab.askpass(router)}", "SSH_ASKPASS_REQUIRE=force"),
        *("ssh", "-p", str(login.port), *host_key_options(known)),
        *(OPENSSH_OLD if (login.host_key or "").startswith("ssh-rsa ") else ()),
        *("-o", "PubkeyAuthentication=no", f"{login.user}@{login.host}"),
    ]


def _print_access(lab: Lab) -> list[str]:
    lines = []
    for name, node in lab.nodes.items():
        addresses = ", ".join(f"{interface} {' '.join(each)}" for interface, each in node.addresses.items())
        lines.append(f"{name} ({node.node.platform}): {addresses or 'no address'}")
        if node_platform(node.node).access.command_line:
            login = lab.ssh(name)
            lines.append(f"  ssh -p {login.port} {login.user}@{login.host}   password {login.password}")
            if login.telnet is not None:
                lines.append(f"  telnet {login.host} {login.telnet}")
            lines.append(f"  then: enable   secret {login.enable}")
        lines.append(f"  qoslab lab shell --lab {lab.name} {name}")
    return [*lines, f"stop it: qoslab lab down {lab.name}"]


def _lab_facts(lab: Lab) -> dict[str, Any]:
    nodes: dict[str, dict[str, Any]] = {}
    for name, node in lab.nodes.items():
        nodes[name] = {"platform": node.node.platform, "addresses": node.addresses}
        if node_platform(node.node).access.command_line:
            nodes[name]["ssh"] = asdict(lab.ssh(name))
        if node_platform(node.node).is_router:
            nodes[name]["control"] = str(lab.runtime(name) / "control.sock")
    return {
        "name": lab.name,
        "pid": lab.pid,
        "runtime": str(Path(f"/proc/{lab.pid}/root/run/qoslab")),
        "host_key": lab.host_key,
        "nodes": nodes,
        "failures": [str(failure) for failure in lab.failures()],
    }
