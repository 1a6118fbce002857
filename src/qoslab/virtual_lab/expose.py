"""Access to a virtual lab by SSH on loopback: an SSH server for its hosts, and an inventory of all nodes.

With the inventory, experiments run in the lab as in a rack, without other access to the lab.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from pathlib import Path
from typing import Any

from qoslab.errors import ExperimentError, UserError
from qoslab.model.inventory import EMULATED_BY, LINE
from qoslab.platforms import command_line_nodes, host_names, is_switch, router_names, tc_command_nodes
from qoslab.platforms.base import PROGRAMS, TC_COMMANDS
from qoslab.system.openssh import host_key_options
from qoslab.system.programs import python_module_command
from qoslab.system.waiting import wait_until
from qoslab.tc.daemon import CONFIG_FORMAT
from qoslab.virtual_lab.lab import HOSTD, RUNTIME, Lab
from qoslab.virtual_lab.rights import DAEMONS
from qoslab.virtual_lab.supervision import LabError

LISTEN = "127.0.0.1"
USER = "root"
START_S = 30.0

HEAD = """\
# The lab {name}, as long as it is up: qoslab run {name} --lab {file}
# It has passwords, and next to it are the private key for the hosts and the lab's host keys.
"""


def refuse_nodes_without_ssh(lab: Lab) -> None:
    """Raise `ExperimentError` if a node cannot be reached by SSH alone."""
    with_ssh = (*command_line_nodes(lab.topology), *tc_command_nodes(lab.topology))
    engines = [name for name in router_names(lab.topology) if name not in with_ssh]
    if engines:
        raise ExperimentError(
            f"found the engine router {engines[0]}, expected only hosts, IOS and Linux routers in an exposed lab",
            hint=f"An engine router has no SSH server: --set {engines[0]}.platform=ios.",
        )
    if lab.guests:
        raise ExperimentError(
            f"found {lab.guests[0]} in user-mode Linux, expected the kernel of this machine in an exposed lab",
            hint="A user-mode kernel has no SSH server: bring the lab up with --expose.",
        )


def expose_lab(lab: Lab, file: Path, *, together: bool = False) -> None:
    """Start the SSH server of hosts and Linux routers and write the inventory, readable only by its owner.

    Linux routers lose the line rate of the lab, so that their interfaces have no qdiscs, as those of a new machine.
    `together`: all hosts are one machine with their interfaces as its NICs, which a run moves into namespaces. Next to
    `file`, `NAME.key` is the private key for the hosts, and `NAME.known_hosts` has the host keys. Raise `UserError` if
    one of them cannot be written.
    """
    import asyncssh  # Slow to load.

    refuse_nodes_without_ssh(lab)
    key = asyncssh.generate_private_key("ssh-ed25519", comment=f"qoslab {lab.name}")
    cards = _move_to_single_host(lab) if together else {}
    for router in tc_command_nodes(lab.topology):
        asyncio.run(_send_empty_configuration(lab, router))
    ways = _serve_hosts(lab, key.export_public_key().decode().strip(), together=together)
    file = file.absolute()
    known, private = file.with_suffix(".known_hosts"), file.with_suffix(".key")
    known_hosts = [f"[{LISTEN}]:{way['port']} {way['host_key']}\n" for way in ways.values()]
    for router in command_line_nodes(lab.topology):
        login = lab.ssh(router)
        known_hosts.append(f"[{login.host}]:{login.port} {lab.host_key}\n")
    try:
        _write(private, key.export_private_key().decode())
        _write(known, "".join(known_hosts))
        _write(
            file,
            HEAD.format(name=lab.name, file=shlex.quote(str(file)))
            + _inventory_yaml(_inventory_data(lab, ways, cards, known, private)),
        )
    except OSError as error:
        raise UserError(f"the inventory cannot be written: {error}") from error


async def _send_empty_configuration(lab: Lab, router: str) -> None:
    empty = {"format": CONFIG_FORMAT, "router": router, "commands": [], "shapes_lines": True}
    async with lab.control(router) as client:
        await client.request("configure", config=empty)


def _move_to_single_host(lab: Lab) -> dict[str, dict[str, str]]:
    """Move the interfaces of all hosts into the first; return their new names, by host."""
    machine, *_ = host_names(lab.topology)
    cards: dict[str, dict[str, str]] = {}
    with lab.namespace(machine) as there:
        for host in host_names(lab.topology):
            for _, near, _ in lab.topology.node_links(host):
                card = f"card{sum(map(len, cards.values()))}"
                cards.setdefault(host, {})[near.interface] = card
                lab.run(host, ["tc", "qdisc", "del", "dev", near.interface, "root"])
                lab.run(host, ["ip", "link", "set", near.interface, "down"], check=True)
                lab.run(host, ["ip", "addr", "flush", "dev", near.interface], check=True)
                where = [] if host == machine else ["netns", f"/proc/self/fd/{there}"]
                move = ["ip", "link", "set", "dev", near.interface, *where, "name", card]
                lab.run(host, move, check=True, pass_fds=[there])
                lab.run(machine, ["ip", "link", "set", card, "up"], check=True)
    return cards


def _serve_hosts(lab: Lab, authorized: str, *, together: bool) -> dict[str, dict[str, Any]]:
    """Start the server; return port and host key of each host and Linux router."""
    hosts, linux = host_names(lab.topology), tc_command_nodes(lab.topology)
    served = (*(hosts[:1] if together else hosts), *linux)
    folder = lab.runtime(HOSTD)
    folder.mkdir(exist_ok=True)
    inside = RUNTIME / HOSTD
    spec = {
        "format": 1,
        "listen": LISTEN,
        "authorized": authorized,
        "ready": str(inside / "ready.json"),
        "hosts": {host: f"/proc/1/fd/{lab.handle(host)}" for host in served},
    }
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    argv = python_module_command("qoslab.virtual_lab.hostd", str(inside / "spec.json"))
    lab.spawn(HOSTD, argv, inside / "log", DAEMONS["hosts"])

    def check(late: bool) -> None:
        for failure in lab.failures():
            raise LabError(f"the lab cannot be exposed: {failure}", hint=failure.log.strip())
        if late:
            raise LabError(f"the lab cannot be exposed: its hosts do not listen after {START_S:g} s")

    wait_until((folder / "ready.json").exists, START_S, check)
    ways: dict[str, dict[str, Any]] = json.loads((folder / "ready.json").read_text(encoding="utf-8"))["hosts"]
    return {name: ways[served[0] if together and name in hosts else name] for name in (*hosts, *linux)}


def _inventory_data(
    lab: Lab, ways: dict[str, dict[str, Any]], cards: dict[str, dict[str, str]], known_hosts: Path, key: Path
) -> dict[str, Any]:
    """Return the inventory in Ansible's form."""
    reached = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(key),
        # For Ansible; qoslab reads the next one.
        "ansible_ssh_extra_args": shlex.join(host_key_options(known_hosts)),
        "qoslab_known_hosts": str(known_hosts),
    }
    at = {name: {"ansible_host": LISTEN, "ansible_port": way["port"]} for name, way in ways.items()}
    children: dict[str, Any] = {
        PROGRAMS.group: {
            "vars": {**reached, "qoslab_isolate": "namespace" if cards else "in place"},
            "hosts": {
                name: {**at[name], **({"qoslab_interfaces": cards[name]} if cards else {})}
                for name in host_names(lab.topology)
            },
        }
    }
    if linux := tc_command_nodes(lab.topology):
        children[TC_COMMANDS.group] = {"vars": dict(reached), "hosts": {name: at[name] for name in linux}}
    routers: dict[str, Any] = {}
    switches: dict[str, Any] = {}
    for name in command_line_nodes(lab.topology):
        login = lab.ssh(name)
        of_kind = switches if is_switch(lab.topology.nodes[name]) else routers
        of_kind[name] = {
            "ansible_host": login.host,
            "ansible_port": login.port,
            "ansible_user": login.user,
            "ansible_password": login.password,
            "ansible_become_password": login.enable,
        }
    if routers or switches:
        children["ios"] = {
            "vars": {
                "ansible_connection": "ansible.netcommon.network_cli",
                "ansible_network_os": "cisco.ios.ios",
                "ansible_become": True,
                "ansible_become_method": "ansible.netcommon.enable",
                "ansible_host_key_checking": False,
                "qoslab_known_hosts": str(known_hosts),
                **({"qoslab_old_ssh": True} if (lab.host_key or "").startswith("ssh-rsa ") else {}),
                # The nodes end with the lab.
                "qoslab_rollback": "none",
            },
            "hosts": routers,
        }
        if switches:
            children["ios"]["children"] = {"ios_switch": {"hosts": switches}}
    emulated = [link.name for link in lab.topology.links if link.emulated_keys]
    made_by: dict[str, Any] = {"vars": {EMULATED_BY: dict.fromkeys(emulated, LINE)}} if emulated else {}
    return {"all": {**made_by, "children": children}}


def _inventory_yaml(made: dict[str, Any]) -> str:
    import io

    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = False
    text = io.StringIO()
    yaml.dump(made, text)
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    """Write secrets to a new file: other users may have access to an old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
