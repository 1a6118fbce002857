"""NIC of the host: check if it may move into a namespace, and entries that restore it after its return."""

# pathlib and similar modules take longer to import than everything else here; some hosts are slow.
# ruff: noqa: PTH118, PTH208

from __future__ import annotations

import json
import os
from typing import Any

from qoslab.run.real.agent.kernel import (
    AgentRefusedError,
    call,
    input_interface,
    read_sysctl,
    recreate_arguments,
    remaining_placeholder,
    route_lines,
    ssh_connection,
)

DEFAULT_QDISCS = ("noqueue", "noop", "mq", "pfifo_fast", "fq_codel", "fq")
"""Default queueing disciplines of interfaces."""
FOREVER = 0xFFFFFFFF
"""Lifetime of an address that does not expire, in seconds."""
ADDRESS_FLAGS = ("noprefixroute", "nodad", "mngtmpaddr", "autojoin", "home")
"""Flags of an address that `ip` accepts in the form that it prints."""
ADDR_GEN_MODE_NONE = "1"
"""Value of `addr_gen_mode` for an interface without an automatic link-local address."""
TRIAL_SETTINGS = "accept_dad"


def global_addresses(device: str) -> list[str]:
    """Return the global addresses with their prefix lengths."""
    return [
        f"{each['local']}/{each['prefixlen']}" for each in _address_entries(device) if each.get("scope") == "global"
    ]


def _address_entries(device: str) -> list[dict[str, Any]]:
    shown = json.loads(call("ip", "-j", "addr", "show", "dev", device))
    return [each for link in shown for each in link.get("addr_info", ())]


def check_movable(device: str) -> None:
    """Raise `AgentRefusedError` if the machine needs the interface where it is, or if a move would lose its state."""
    for version, kind in (("-4", ""), ("-6", " of IPv6")):
        if call("ip", version, "route", "show", "default", "dev", device).strip():
            raise AgentRefusedError(
                f"{device} has this machine's default route{kind}: the interface is not moved into a namespace"
            )
    ssh = ssh_connection()
    if ssh and (ssh[2] in (each.split("/")[0] for each in global_addresses(device)) or input_interface(ssh) == device):
        raise AgentRefusedError(f"this SSH connection uses {device}: the interface is not moved into a namespace")
    master = json.loads(call("ip", "-j", "link", "show", "dev", device))[0].get("master")
    if master is not None:
        raise AgentRefusedError(
            f"{device} belongs to {master} and would have to leave it for a namespace; remove it from {master} "
            f'(ip link set {device} nomaster), or set qoslab_isolate to "in place"'
        )
    kinds = {each["kind"] for each in json.loads(call("tc", "-j", "qdisc", "show", "dev", device) or "[]")}
    own = sorted(kinds - set(DEFAULT_QDISCS))
    if own:
        raise AgentRefusedError(
            f"{device} has the queueing discipline {own[0]} and would lose it in a namespace; "
            'set qoslab_isolate to "in place"'
        )


def current_state_journal(device: str) -> list[dict[str, Any]]:
    """Return the entries of a journal that restore the interface once it is back, in reverse order."""
    settings = _kernel_settings(device)
    tried = {key: value for key, value in settings.items() if key.endswith("/" + TRIAL_SETTINGS)}
    # An address in duplicate detection cannot be the source of a route.
    entries: list[dict[str, Any]] = [{"sysctls": tried}]
    own_local = settings.get(f"net/ipv6/conf/{device}/addr_gen_mode") == ADDR_GEN_MODE_NONE
    for words in _route_arguments(device, own_local):
        entries.append({"run": ["ip", *words]})
    for line in call("ip", "neigh", "show", "dev", device, "nud", "permanent").splitlines():
        address, _, mac, *_ = line.split()
        entry = [address, "lladdr", mac, "nud", "permanent", "dev", device]
        entries.append({"run": ["ip", "neigh", "replace", *entry]})
    ipv4 = [each for each in _address_entries(device) if each["family"] == "inet"]
    ipv6 = [
        each
        for each in _address_entries(device)
        if each["family"] == "inet6" and (each["scope"] != "link" or own_local)
    ]
    # `ip` lists IPv4 addresses in their order, and the latest IPv6 address first.
    for each in [*reversed(ipv4), *ipv6]:
        entries.append({"run": ["ip", "addr", "replace", *_address_arguments(each, device), "dev", device]})
    if "UP" in json.loads(call("ip", "-j", "link", "show", "dev", device))[0]["flags"]:
        entries.append({"run": ["ip", "link", "set", "dev", device, "up"]})
    entries.append({"sysctls": {**settings, **dict.fromkeys(tried, "0")}})
    return entries


def _kernel_settings(device: str) -> dict[str, str]:
    """Return the kernel settings of this interface, by path."""
    found = {}
    for folder in [f"net/{version}/{kind}/{device}" for version in ("ipv4", "ipv6") for kind in ("conf", "neigh")]:
        try:
            names = sorted(os.listdir(os.path.join("/proc/sys", folder)))
        except OSError:
            continue  # A kernel without IPv6.
        for name in names:
            value = read_sysctl(f"{folder}/{name}")
            if value is not None:
                found[f"{folder}/{name}"] = value
    return found


def _route_arguments(device: str, own_local: bool) -> list[list[str]]:
    """Return the arguments of `ip` that create the routes again.

    Connected routes come last and so are restored first: gateways are reached through them.
    """
    found = []
    for version in ("-4", "-6"):
        for line in route_lines(call("ip", version, "route", "show", "table", "all", "dev", device)):
            words = recreate_arguments(line)
            if "table local" not in line and (own_local or not words[0].startswith("fe80:")):
                found.append([version, "route", "replace", *words, "dev", device])
    return sorted(found, key=lambda words: "via" not in words)


def _address_arguments(each: dict[str, Any], device: str) -> list[str]:
    """Return the arguments of `ip` for such an address."""
    words = [f"{each['local']}/{each['prefixlen']}"]
    if "address" in each:
        words = [each["local"], "peer", f"{each['address']}/{each['prefixlen']}"]
    for key in ("broadcast", "label", "metric"):
        if key in each and each[key] != device:
            words += [key, str(each[key])]
    if each["family"] == "inet" and each["scope"] != "global":
        words += ["scope", each["scope"]]
    words += [kind for kind in ADDRESS_FLAGS if each.get(kind)]
    for key, name in (("valid_life_time", "valid_lft"), ("preferred_life_time", "preferred_lft")):
        seconds = each.get(key, FOREVER)
        if seconds != FOREVER:
            words += [name, remaining_placeholder(seconds) if seconds else "0"]
    return words
