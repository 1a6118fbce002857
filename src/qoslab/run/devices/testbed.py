"""pyATS testbed of a lab or of an inventory: devices, their connections, and their cabling."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from qoslab.errors import DeviceError
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.refusals import REFUSALS
from qoslab.model.experiment import Topology
from qoslab.model.inventory import RouterSettings
from qoslab.platforms import is_switch, node_platform
from qoslab.run.devices.ansible_inventory import SWITCH_GROUP, Access, HostAccess, InventoryPart, IosAccess
from qoslab.run.devices.old_ssh import OPENSSH_OLD
from qoslab.system.openssh import host_key_options, identity_options

UNICON_REFUSALS = (r"^%\s*[Ii](?:nvalid|ncomplete) (?:command|input|number)", r"^%\s*[Aa]mbiguous command", r"% ?Error")
"""Unicon's patterns of refused configuration lines, in addition to qoslab's list, which replaces Unicon's."""

DEVICE_RETRY_S = 0.05
"""Time that Unicon waits for more output after a prompt, in seconds: its own default."""

INTERFACE_TYPES = {"Ethernet": "ethernet", "Serial": "serial", "ATM": "atm", "Loopback": "loopback", "Vlan": "vlan"}
"""pyATS interface types by the part of the IOS name."""

TELNET_PORT, SSH_PORT = 23, 22
UNICON = {"defaults": {"class": "unicon.Unicon", "via": "cli"}}

Secret = Callable[[str, InventoryPart, str], str]
"""Function that returns the text for a secret in the testbed: `secret("R1", "password", "…")`."""


def plain_secret(device: str, what: InventoryPart, value: str) -> str:
    """Return the secret itself."""
    return value


def prompt_secret(device: str, what: InventoryPart, value: str) -> str:
    """Return a prompt, which pyATS shows when it loads the testbed."""
    return f"%ASK{{{what} of {device}}}"


class EnvironmentSecrets:
    """Environment variables from which pyATS takes the secrets when it loads the testbed."""

    def __init__(self, names: Mapping[str, Mapping[InventoryPart, str]]) -> None:
        """`names` of existing variables by device and secret; others are called QOSLAB_R1_PASSWORD and so on."""
        self._names = names
        self.used: dict[str, None] = {}
        """Variables in the order of the testbed."""

    def __call__(self, device: str, what: InventoryPart, value: str) -> str:
        """See `Secret`."""
        name = self._names.get(device, {}).get(what) or re.sub(r"\W", "_", f"QOSLAB_{device}_{what}".upper())
        self.used[name] = None
        return f"%ENV{{{name}}}"


def build_testbed(
    name: str,
    routers: Mapping[str, Access],
    topology: Topology | None = None,
    *,
    known_hosts: Path | None = None,
    settings: Mapping[str, RouterSettings] | None = None,
    keys: Mapping[str, Path] | None = None,
    hosts: Mapping[str, dict[str, Any]] | None = None,
    names: Callable[[str, str], str] = lambda node, interface: interface,
    secret: Secret = plain_secret,
) -> dict[str, Any]:
    """Return the testbed for pyATS. IOS routers and `hosts` only, since Unicon cannot access a data plane.

    `topology` adds interfaces and links, under the devices' own names (`names`), with the experiment's names as
    aliases. `known_hosts` is the file with the host keys of virtual routers, if it is not the user's own; `keys` are
    such files of other routers, by router. `settings` has further connection settings of those. Connecting does not
    change the routers' configuration, unlike Unicon's default.
    """
    devices = {}
    for router, access in routers.items():
        if not isinstance(access, IosAccess):
            continue
        way = (settings or {}).get(router, RouterSettings())
        device = _router_device(router, access, way, known_hosts, (keys or {}).get(router), secret)
        devices[router] = {**device, **_chassis_data(topology, router)}
    if not devices:
        raise DeviceError("no IOS router for a testbed")
    devices |= {host: {**device, "alias": host} for host, device in (hosts or {}).items()}
    made: dict[str, Any] = {"testbed": {"name": name}, "devices": devices}
    if topology is not None:
        made["topology"] = _topology_section(topology, set(devices), names)
    return made


def host_device(access: HostAccess) -> dict[str, Any]:
    """Return the device of an inventory host, reached by ssh with its key."""
    cli: dict[str, Any] = {"protocol": "ssh", "ip": access.host}
    if access.port is not None:
        cli["port"] = access.port
    options: list[str] = []
    if access.known_hosts is not None:
        options += host_key_options(access.known_hosts)
    if access.key is not None:
        options += identity_options(access.key)
    options += access.arguments
    if options:
        cli["ssh_options"] = shlex.join(options)
    device = _linux_device(cli)
    if access.user is not None:
        device["credentials"] = {"default": {"username": access.user}}
    return device


def command_device(command: str) -> dict[str, Any]:
    """Return the device of a host, with a command on this machine that opens its shell."""
    return _linux_device({"command": command})


def _linux_device(cli: dict[str, Any]) -> dict[str, Any]:
    cli["arguments"] = {"learn_hostname": True}
    cli["settings"] = {"GRACEFUL_DISCONNECT_WAIT_SEC": 0, "POST_DISCONNECT_WAIT_SEC": 0}
    return {"os": "linux", "type": "host", "connections": {**UNICON, "cli": cli}}


def _router_device(
    name: str, access: IosAccess, way: RouterSettings, known_hosts: Path | None, keys: Path | None, secret: Secret
) -> dict[str, Any]:
    credentials: dict[str, Any] = {}
    login = {
        "username": access.user,
        "password": None if access.password is None else secret(name, "password", access.password),
    }
    if any(value is not None for value in login.values()):
        credentials["default"] = {key: value for key, value in login.items() if value is not None}
    if access.enable is not None:
        credentials["enable"] = {"password": secret(name, "enable", access.enable)}
    cli: dict[str, Any] = {"protocol": "ssh", "ip": access.host, "port": access.port}
    if way.reach == "telnet":
        cli = _telnet_connection(access, way)
    elif options := _ssh_options(access, way, known_hosts, keys):
        cli["ssh_options"] = options
    # No configuration lines at login; the hostname is taken from the prompt; no wait at disconnection.
    cli["arguments"] = {"init_config_commands": [], "learn_hostname": True}
    cli["settings"] = {
        "GRACEFUL_DISCONNECT_WAIT_SEC": 0,
        "POST_DISCONNECT_WAIT_SEC": 0,
        "CONFIGURE_ERROR_PATTERN": [*UNICON_REFUSALS, *REFUSALS],
    }
    if access.proxied:
        # The address is on this machine, but the device is remote: its answers arrive in pieces.
        cli["settings"]["EXECUTE_MATCHED_RETRY_SLEEP"] = DEVICE_RETRY_S if access.pause_s is None else access.pause_s
    if access.answer_s is not None:
        cli["settings"] |= {"EXEC_TIMEOUT": access.answer_s, "CONFIG_TIMEOUT": access.answer_s}
    connections = {**UNICON, "cli": cli}
    if way.console is not None:
        host, _, port = way.console.rpartition(":")
        line = {"protocol": "telnet", "ip": host, "port": int(port)}
        connections["console"] = {**line, "arguments": cli["arguments"], "settings": cli["settings"]}
    return {
        "os": "ios",
        "type": "switch" if access.group == SWITCH_GROUP else "router",
        "alias": name,
        "credentials": credentials,
        "connections": connections,
    }


def _telnet_connection(access: IosAccess, way: RouterSettings) -> dict[str, Any]:
    port = TELNET_PORT if access.port == SSH_PORT else access.port
    if way.jump is None:
        return {"protocol": "telnet", "ip": access.host, "port": port}
    # The jump host only forwards bytes, without a telnet program.
    return {"command": f"ssh -W {access.host}:{port} {_jump_arguments(way.jump)}"}


def _ssh_options(access: IosAccess, way: RouterSettings, known_hosts: Path | None, keys: Path | None) -> str:
    options: list[str] = []
    if known_hosts is not None:
        # A port of this machine: the user's ssh configuration for other hosts does not apply.
        options += ("-F", "none", *host_key_options(known_hosts))
    elif keys is not None:
        options += host_key_options(keys)
    if access.key is not None:
        options += identity_options(access.key)
    if way.old_ssh:
        options += OPENSSH_OLD
    if way.jump is not None:
        options += ("-J", way.jump)
    return shlex.join(options)


def _jump_arguments(text: str) -> str:
    """Return the arguments of ssh for a jump host, after its options."""
    place, _, port = text.partition(":")
    return f"-p {port} {place}" if port else place


def _chassis_data(topology: Topology | None, router: str) -> dict[str, Any]:
    """Return the experiment's data on a router's hardware, and its operating system, replacing IOS."""
    node = None if topology is None else topology.nodes.get(router)
    if node is None or node.model is None:
        return {}
    chassis = {"model": node.model, "type": "switch" if is_switch(node) else "router"}
    generation = node_platform(node).generation(node)
    return chassis if generation is None else {**chassis, "os": GENERATIONS[generation].genie_os}


def _topology_section(topology: Topology, devices: set[str], names: Callable[[str, str], str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for link in topology.links:
        for end in link.ends:
            if end.node not in devices:
                continue
            is_router = node_platform(topology.nodes[end.node]).is_router
            kind = _link_interface_type(end.interface) if is_router else "ethernet"
            interface: dict[str, Any] = {"type": kind, "alias": end.interface, "link": link.name}
            if end.address is not None:
                interface["ipv4"] = str(end.address)
            if end.ipv6_address is not None:
                interface["ipv6"] = str(end.ipv6_address)
            made.setdefault(end.node, {"interfaces": {}})["interfaces"][names(end.node, end.interface)] = interface
    return made


def _link_interface_type(name: str) -> str:
    return next((word for part, word in INTERFACE_TYPES.items() if part in name), "ethernet")


def testbed_yaml(made: Mapping[str, Any]) -> str:
    """Return the testbed as YAML. It may contain passwords, so a file with it must be private."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = False
    # The ssh options of old routers are long.
    yaml.width = 4096
    text = io.StringIO()
    yaml.dump(dict(made), text)
    return text.getvalue()
