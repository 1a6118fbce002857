"""Facts of a lab without faults, for tests of the preflight checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from qoslab.model.experiment import Experiment
from qoslab.model.inventory import HostSettings, Isolation, RouterSettings
from qoslab.model.units import Duration
from qoslab.plan import make_plan
from qoslab.run.real.access.rollback_methods import RollbackState
from qoslab.run.real.preflight.facts import (
    CableAnswers,
    HostFacts,
    HostNic,
    Port,
    PreflightFacts,
    RoundTrips,
    RouterFacts,
)
from qoslab.run.task import cell_demands
from qoslab.schema import load_sweep

SWEEP = load_sweep(Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml", {})
POLICING, ASKED = SWEEP.experiment, cell_demands(make_plan(SWEEP).cells).routers
RUNNING = """\
Building configuration...

Current configuration : 900 bytes
!
hostname R1
!
interface FastEthernet0/0
 ip address 192.168.10.1 255.255.255.0
!
interface FastEthernet0/1
 ip address 192.168.20.1 255.255.255.0
!
snmp-server community PLANTED RO
end
"""
MACS = {
    "Fa0": "02:00:00:00:00:10",
    "Fa1": "02:00:00:00:00:11",
    "client": "02:00:00:00:00:01",
    "server": "02:00:00:00:00:02",
}
SAVED = RollbackState(RUNNING, RUNNING, "No files in directory\n\n64012288 bytes total (64012288 bytes free)\n")
ARCHIVED = RUNNING.replace("!\nsnmp", "!\narchive\n log config\n  hidekeys\n path flash:kept\n!\nsnmp")
SMALL = "No files in directory\n\n64012288 bytes total (100 bytes free)\n"
QUICK = RoundTrips(20, (0.3,) * 20)


def nic_facts(mac: str, **changed: Any) -> HostNic:
    return replace(HostNic(True, True, mac, (), 0, "e1000e", 100, "full"), **changed)


def host_facts(name: str, address: str, far: str, far_mac: str, **changed: Any) -> HostFacts:
    found = HostFacts(
        root=True,
        machine="a",
        cards={
            "eth0": nic_facts(MACS[name], addresses=(address,)),
            "mgmt": nic_facts("02:00:00:00:01:00", addresses=("192.0.2.7/24",)),
        },
        routes={},
        management="mgmt",
        missing=(),
        congestion=frozenset({"reno", "cubic"}),
        free=10**12,
        clock_ahead_ms=0.0,
        clock_error_ms=0.2,
        cables={"eth0": CableAnswers({far: (far_mac,)}, QUICK)},
    )
    return replace(found, **changed)


def router_port(mac: str, *addresses: str, **changed: Any) -> Port:
    return replace(Port(False, True, mac, addresses, 100.0, "full", {}), **changed)


def preflight_facts(experiment: Experiment = POLICING, way: Isolation = "in place", **changed: Any) -> PreflightFacts:
    """Return the facts of a correct lab with changes for R1 (`release`, `ports`, …), `client` and `server`."""
    hosts = {
        "client": host_facts("client", "192.168.10.2/24", "192.168.10.1", MACS["Fa0"], **changed.pop("client", {})),
        "server": host_facts("server", "192.168.20.2/24", "192.168.20.1", MACS["Fa1"], **changed.pop("server", {})),
    }
    router = RouterFacts(
        software="Cisco IOS Software, …",
        ios=True,
        release="12.4(15)T14",
        model="3725",
        ports={
            "FastEthernet0/0": router_port(MACS["Fa0"], "192.168.10.1/24"),
            "FastEthernet0/1": router_port(MACS["Fa1"], "192.168.20.1/24"),
        },
        arp={},
        learnt={},
        neighbours=(),
        pings={},
        address="192.0.2.1",
        running=RUNNING,
        rollback_state=SAVED,
    )
    settings = {name: HostSettings(isolate=way) for name in hosts}
    routers = {"R1": changed.pop("settings", RouterSettings())}
    longest = changed.pop("longest", Duration.parse("60 s"))
    return PreflightFacts(experiment, settings, routers, hosts, {"R1": replace(router, **changed)}, ASKED, longest)


UP = {
    "FastEthernet0/0": router_port(MACS["Fa0"], "192.168.10.1/24"),
    "FastEthernet0/1": router_port(MACS["Fa1"], "192.168.20.1/24"),
}
"""Correct state of R1's interfaces."""
