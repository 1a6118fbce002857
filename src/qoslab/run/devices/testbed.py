"""The pyATS testbed of a lab or of an inventory: devices, how to reach them, what is cabled to what."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qoslab.errors import DeviceError
from qoslab.ios.refusals import REFUSALS
from qoslab.model.experiment import Topology
from qoslab.run.devices.inventory import Access, IosAccess

UNICON_REFUSALS = (r"^%\s*[Ii](?:nvalid|ncomplete) (?:command|input|number)", r"^%\s*[Aa]mbiguous command", r"% ?Error")
"""What Unicon is to look for in answers to configuration lines besides our own list, which replaces its own."""

DEVICE_RETRY_S = 0.05
"""How long Unicon waits whether more follows a prompt: its own default."""

INTERFACE_TYPES = {"Ethernet": "ethernet", "Serial": "serial", "ATM": "atm", "Loopback": "loopback", "Vlan": "vlan"}
"""pyATS's word for an interface, by a part of IOS's name."""


def testbed(
    name: str,
    routers: Mapping[str, Access],
    topology: Topology | None = None,
    *,
    known_hosts: Path | None = None,
) -> dict[str, Any]:
    """The testbed as pyATS loads it. IOS routers only: Unicon has no way into a data plane.

    `topology` adds interfaces and links; `known_hosts` is the file with the routers' host keys, where it is not the
    user's own. Connecting leaves the routers' configuration alone, which Unicon by itself does not.
    """
    devices = {
        router: _device(access, known_hosts) for router, access in routers.items() if isinstance(access, IosAccess)
    }
    if not devices:
        raise DeviceError("there is no IOS router to put into a testbed")
    made: dict[str, Any] = {"testbed": {"name": name}, "devices": devices}
    if topology is not None:
        made["topology"] = _topology(topology, set(devices))
    return made


def _device(access: IosAccess, known_hosts: Path | None) -> dict[str, Any]:
    credentials: dict[str, Any] = {}
    login = {"username": access.user, "password": access.password}
    if any(value is not None for value in login.values()):
        credentials["default"] = {key: value for key, value in login.items() if value is not None}
    if access.enable is not None:
        credentials["enable"] = {"password": access.enable}
    cli: dict[str, Any] = {"protocol": "ssh", "ip": access.host, "port": access.port}
    if known_hosts is not None:
        # A port of this machine: what its users set up for their way to others is not for it.
        cli["ssh_options"] = f"-F none -o UserKnownHostsFile={known_hosts} -o StrictHostKeyChecking=yes"
    # no configuration lines at login; the hostname is the one in the prompt; no waiting when hanging up
    cli["arguments"] = {"init_config_commands": [], "learn_hostname": True}
    cli["settings"] = {
        "GRACEFUL_DISCONNECT_WAIT_SEC": 0,
        "POST_DISCONNECT_WAIT_SEC": 0,
        "CONFIGURE_ERROR_PATTERN": [*UNICON_REFUSALS, *REFUSALS],
    }
    if access.door:
        # An address of this machine, but the device is elsewhere: its answers arrive in pieces.
        cli["settings"]["EXECUTE_MATCHED_RETRY_SLEEP"] = DEVICE_RETRY_S
    return {
        "os": "ios",
        "type": "router",
        "credentials": credentials,
        "connections": {"defaults": {"class": "unicon.Unicon", "via": "cli"}, "cli": cli},
    }


def _topology(topology: Topology, devices: set[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for link in topology.links:
        for end in link.ends:
            if end.node in devices:
                interface: dict[str, Any] = {"type": _interface_type(end.interface), "link": link.name}
                if end.address is not None:
                    interface["ipv4"] = str(end.address)
                if end.ipv6_address is not None:
                    interface["ipv6"] = str(end.ipv6_address)
                made.setdefault(end.node, {"interfaces": {}})["interfaces"][end.interface] = interface
    return made


def _interface_type(name: str) -> str:
    return next((word for part, word in INTERFACE_TYPES.items() if part in name), "ethernet")


def testbed_yaml(made: Mapping[str, Any]) -> str:
    """The testbed as YAML. It has passwords: whoever writes it to a file keeps that file private."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = False
    text = io.StringIO()
    yaml.dump(dict(made), text)
    return text.getvalue()
