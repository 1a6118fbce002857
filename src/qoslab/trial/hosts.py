"""Hosts with the addresses of the traffic of a trial, each behind a router without policies."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Interface

from qoslab.errors import UserError
from qoslab.system import program_formats

BPS = 100_000_000_000
"""Rate of the lines to the hosts, at which no packet waits."""
UPLINK = "uplink"


def host_name(host: str, address: IPv4Address | None) -> str:
    """Return the name of the host with an address, or of the default host without one."""
    return host if address is None else f"{host}-{address}"


def add_hosts(
    made: program_formats.Scenario,
    link: program_formats.Link,
    host: str,
    network: IPv4Interface,
    addresses: Sequence[IPv4Address],
    chain: Sequence[tuple[str, str]],
) -> None:
    """Add a router between a link and its host, and hosts with further addresses behind the router.

    `network` is the router's address towards the default host. `chain` has the routers on the path to the new router,
    each with its next hop. Raise UserError for addresses that are too close to each other.
    """
    name = f"{host}-router"
    own, other = sorted(link["ends"], key=lambda each: each["node"] != host)
    own["node"], own["interface"] = name, UPLINK
    gateway = str(IPv4Interface(other.get("address") or "").ip)
    made["nodes"][name] = {"kind": "router", "routes": [{"prefix": "0.0.0.0/0", "via": gateway}]}
    ends = [(host, network, IPv4Interface((network.network[2], network.network.prefixlen)))]
    for address in addresses:
        # The only network with two addresses.
        near = IPv4Interface((int(address) ^ 1, 31))
        ends.append((host_name(host, address), near, IPv4Interface((address, 31))))
    networks = [near.network for _, near, _ in ends]
    for number, (each, near, far) in enumerate(ends):
        if near.network in networks[:number]:
            raise UserError(
                f"--traffic: found {far.ip} and the other address of its /31 network, expected only one of them"
            )
        made["nodes"][each] = {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "via": str(near.ip)}]}
        made["links"].append(
            {
                "name": f"to {each}",
                "rate_bps": BPS,
                "framing": "ethernet",
                "ends": [
                    {"node": name, "interface": f"port{number}", "address": str(near)},
                    {"node": each, "interface": "eth0", "address": str(far)},
                ],
            }
        )
        for router, hop in chain:
            routes = made["nodes"][router].setdefault("routes", [])
            routes.append({"prefix": str(near.network), "via": hop})
