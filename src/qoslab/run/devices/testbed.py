"""The pyATS testbed of a lab or of an inventory: devices, how to reach them, what is cabled to what."""

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
from qoslab.platforms import is_switch, platform_of
from qoslab.run.devices.ansible_inventory import SWITCH_GROUP, Access, HostAccess, IosAccess, What
from qoslab.run.devices.old_ssh import OPENSSH_OLD
from qoslab.system.openssh import with_host_keys, with_identity

UNICON_REFUSALS = (r"^%\s*[Ii](?:nvalid|ncomplete) (?:command|input|number)", r"^%\s*[Aa]mbiguous command", r"% ?Error")
"""Unicon's patterns of refused configuration lines in addition to our own list that replaces its own."""

DEVICE_RETRY_S = 0.05
"""Time that Unicon waits for more output after a prompt: its own default."""

INTERFACE_TYPES = {"Ethernet": "ethernet", "Serial": "serial", "ATM": "atm", "Loopback": "loopback", "Vlan": "vlan"}
"""pyATS's word for an interface, by a part of IOS's name."""

TELNET_PORT, SSH_PORT = 23, 22
UNICON = {"defaults": {"class": "unicon.Unicon", "via": "cli"}}

Secret = Callable[[str, What, str], str]
"""`secret("R1", "password", "…")`: what stands in the testbed for a secret of a device."""


def plain(device: str, what: What, value: str) -> str:
    """The secret itself."""
    return value


def asked(device: str, what: What, value: str) -> str:
    """A question, which pyATS asks when it loads the testbed."""
    return f"%ASK{{{what} of {device}}}"


class FromEnvironment:
    """Names of environment variables, from which pyATS takes the secrets when it loads the testbed."""

    def __init__(self, names: Mapping[str, Mapping[What, str]]) -> None:
        """`names` by device and secret, if they have one already; others are called QOSLAB_R1_PASSWORD."""
        self._names = names
        self.used: dict[str, None] = {}
        """The variables, in the order of the testbed."""

    def __call__(self, device: str, what: What, value: str) -> str:
        """See `Secret`."""
        name = self._names.get(device, {}).get(what) or re.sub(r"\W", "_", f"QOSLAB_{device}_{what}".upper())
        self.used[name] = None
        return f"%ENV{{{name}}}"


def testbed(
    name: str,
    routers: Mapping[str, Access],
    topology: Topology | None = None,
    *,
    known_hosts: Path | None = None,
    settings: Mapping[str, RouterSettings] | None = None,
    keys: Mapping[str, Path] | None = None,
    hosts: Mapping[str, dict[str, Any]] | None = None,
    names: Callable[[str, str], str] = lambda node, interface: interface,
    secret: Secret = plain,
) -> dict[str, Any]:
    """The testbed as pyATS loads it. IOS routers, and `hosts`; Unicon has no way into a data plane.

    `topology` adds interfaces and links, under the names that the devices have for them (`names`), with the
    experiment's as their alias. `known_hosts` is the file with the routers' host keys, if it is not the user's own,
    and they are virtual; `keys` are those files of others, by router. `settings` says how else these are reached.
    Connecting leaves the routers' configuration alone, which Unicon by itself does not.
    """
    devices = {}
    for router, access in routers.items():
        if not isinstance(access, IosAccess):
            continue
        way = (settings or {}).get(router, RouterSettings())
        device = _device(router, access, way, known_hosts, (keys or {}).get(router), secret)
        devices[router] = {**device, **_chassis(topology, router)}
    if not devices:
        raise DeviceError("no IOS router for a testbed")
    devices |= {host: {**device, "alias": host} for host, device in (hosts or {}).items()}
    made: dict[str, Any] = {"testbed": {"name": name}, "devices": devices}
    if topology is not None:
        made["topology"] = _topology(topology, set(devices), names)
    return made


def host_device(access: HostAccess) -> dict[str, Any]:
    """A host of an inventory, reached by ssh with its key."""
    cli: dict[str, Any] = {"protocol": "ssh", "ip": access.host}
    if access.port is not None:
        cli["port"] = access.port
    options: list[str] = []
    if access.known_hosts is not None:
        options += with_host_keys(access.known_hosts)
    if access.key is not None:
        options += with_identity(access.key)
    options += access.arguments
    if options:
        cli["ssh_options"] = shlex.join(options)
    device = _linux(cli)
    if access.user is not None:
        device["credentials"] = {"default": {"username": access.user}}
    return device


def command_device(command: str) -> dict[str, Any]:
    """A host whose shell a command of this machine opens."""
    return _linux({"command": command})


def _linux(cli: dict[str, Any]) -> dict[str, Any]:
    cli["arguments"] = {"learn_hostname": True}
    cli["settings"] = {"GRACEFUL_DISCONNECT_WAIT_SEC": 0, "POST_DISCONNECT_WAIT_SEC": 0}
    return {"os": "linux", "type": "host", "connections": {**UNICON, "cli": cli}}


def _device(
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
        cli = _by_telnet(access, way)
    elif options := _ssh_options(access, way, known_hosts, keys):
        cli["ssh_options"] = options
    # no configuration lines at login; the hostname is the one in the prompt; no waiting when hanging up
    cli["arguments"] = {"init_config_commands": [], "learn_hostname": True}
    cli["settings"] = {
        "GRACEFUL_DISCONNECT_WAIT_SEC": 0,
        "POST_DISCONNECT_WAIT_SEC": 0,
        "CONFIGURE_ERROR_PATTERN": [*UNICON_REFUSALS, *REFUSALS],
    }
    if access.proxied:
        # An address of this machine, but the device is elsewhere: its answers arrive in pieces.
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


def _by_telnet(access: IosAccess, way: RouterSettings) -> dict[str, Any]:
    port = TELNET_PORT if access.port == SSH_PORT else access.port
    if way.jump is None:
        return {"protocol": "telnet", "ip": access.host, "port": port}
    # The jump host carries the bytes; none of its programs is asked to speak telnet.
    return {"command": f"ssh -W {access.host}:{port} {_jump(way.jump)}"}


def _ssh_options(access: IosAccess, way: RouterSettings, known_hosts: Path | None, keys: Path | None) -> str:
    options: list[str] = []
    if known_hosts is not None:
        # A port of this machine: what its users set up for their way to others is not for it.
        options += ("-F", "none", *with_host_keys(known_hosts))
    elif keys is not None:
        options += with_host_keys(keys)
    if access.key is not None:
        options += with_identity(access.key)
    if way.old_ssh:
        options += OPENSSH_OLD
    if way.jump is not None:
        options += ("-J", way.jump)
    return shlex.join(options)


def _jump(text: str) -> str:
    """A jump host as ssh takes it behind other options."""
    place, _, port = text.partition(":")
    return f"-p {port} {place}" if port else place


def _chassis(topology: Topology | None, router: str) -> dict[str, Any]:
    """Return the experiment's data of a router's hardware, and its operating system in place of IOS."""
    node = None if topology is None else topology.nodes.get(router)
    if node is None or node.model is None:
        return {}
    chassis = {"model": node.model, "type": "switch" if is_switch(node) else "router"}
    generation = platform_of(node).generation(node)
    return chassis if generation is None else {**chassis, "os": GENERATIONS[generation].genie_os}


def _topology(topology: Topology, devices: set[str], names: Callable[[str, str], str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for link in topology.links:
        for end in link.ends:
            if end.node not in devices:
                continue
            is_router = platform_of(topology.nodes[end.node]).is_router
            kind = _interface_type(end.interface) if is_router else "ethernet"
            interface: dict[str, Any] = {"type": kind, "alias": end.interface, "link": link.name}
            if end.address is not None:
                interface["ipv4"] = str(end.address)
            if end.ipv6_address is not None:
                interface["ipv6"] = str(end.ipv6_address)
            made.setdefault(end.node, {"interfaces": {}})["interfaces"][names(end.node, end.interface)] = interface
    return made


def _interface_type(name: str) -> str:
    return next((word for part, word in INTERFACE_TYPES.items() if part in name), "ethernet")


def testbed_yaml(made: Mapping[str, Any]) -> str:
    """The testbed as YAML. It may have passwords, so a file of it must be private."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = False
    # Old routers' SSH has long words.
    yaml.width = 4096
    text = io.StringIO()
    yaml.dump(dict(made), text)
    return text.getvalue()
