"""IP SLA between two routers of a lab: real probes over the data plane, the responder, and probes without one."""

from __future__ import annotations

import asyncio
import subprocess
from itertools import pairwise
from typing import Any

import pytest
from labs import topology

from qoslab.ios.environment import DataPlaneRefusedError
from qoslab.virtual_lab import Lab
from waiting import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

TWO_ROUTERS = topology(R1="engine", R2="engine")("R1 FastEthernet0/0 10.1.0.1/24 - R2 FastEthernet0/0 10.1.0.2/24")
PROCESS_NS = 2_000_000
NOW = {"life_s": None, "start": "now"}


def _operation(kind: str, **keys: Any) -> dict[str, Any]:
    return {"type": kind, "target": "10.1.0.2", "frequency_s": 1, "timeout_ms": 300, "schedule": NOW, **keys}


async def _configure(lab: Lab, router: str, ip_sla: dict[str, Any], process_ns: int | None = None) -> None:
    config = {"format": 1, "router": router, "generation": "classic", "process_ns": process_ns, "ip_sla": ip_sla}
    async with lab.control(router) as client:
        await client.configure(config)


def _final_report(lab: Lab) -> dict[str, Any]:
    """Return the report once every operation has run."""

    async def report() -> dict[str, Any]:
        async with lab.control("R1") as client:
            found: dict[str, Any] = (await client.ip_sla(samples=True))["operations"]
        return found

    def ended() -> dict[str, Any]:
        found = asyncio.run(report())
        return found if all(each["latest"]["return_code"] != "unknown" for each in found.values()) else {}

    return wait_until(ended, "every operation has run")


def test_every_operation_is_answered_by_a_router_with_a_responder(name: str) -> None:
    operations = {
        "1": _operation("icmp-echo"),
        "2": _operation("icmp-jitter"),
        "3": _operation("udp-echo", target_port=5001),
        "4": _operation("udp-jitter", target_port=5002),
    }

    async def configure(lab: Lab) -> None:
        await _configure(lab, "R2", {"responder": True}, PROCESS_NS)
        await _configure(lab, "R1", {"operations": operations}, PROCESS_NS)

    with Lab.up(TWO_ROUTERS, name=name) as lab:
        asyncio.run(configure(lab))
        found = _final_report(lab)
    for number, packets in (("1", 1), ("2", 10), ("3", 1), ("4", 10)):
        latest = found[number]["latest"]
        assert latest["return_code"] == "ok", number
        assert latest["statistics"]["sent"] == packets
        # Three times process level, and two frames of at least 84 bytes on a 100 Mb/s line: no reply can be faster.
        least = 3 * PROCESS_NS + 2 * 6720
        samples = found[number]["samples"]
        assert all(each["arrived_ns"] - each["sent_ns"] >= least for each in samples)
        assert samples
        # The first may have waited for address resolution; the others leave on time, to the nanosecond.
        sent = [each["sent_ns"] for each in samples[1:10]]
        assert all(after - before == 20_000_000 for before, after in pairwise(sent)), sent


def test_operation_without_a_responder_reports_no_connection(name: str) -> None:
    operations = {
        "1": _operation("udp-jitter", target_port=5002),
        "2": _operation("udp-echo", target_port=5001, control=False),
        "3": _operation("icmp-echo", target="10.1.0.9"),
    }

    with Lab.up(TWO_ROUTERS, name=name) as lab:
        asyncio.run(_configure(lab, "R1", {"operations": operations}))
        found = _final_report(lab)
        codes = [found[number]["latest"]["return_code"] for number in ("1", "2", "3")]
        assert codes == ["no_connection", "timeout", "timeout"]
        asyncio.run(_taken_port(lab))


async def _taken_port(lab: Lab) -> None:
    """Yield a responder whose port is in use: the configuration and its operations are unchanged."""
    wanted = {"format": 1, "router": "R1", "generation": "hqf", "ip_sla": {"responder": True, "responder_ports": [7]}}
    with lab.popen("R1", ["python3", "-c", OCCUPY], stdout=subprocess.PIPE, text=True) as taken:
        assert taken.stdout is not None
        taken.stdout.readline()
        async with lab.control("R1") as client:
            before = (await client.config(), (await client.ip_sla())["operations"].keys())
            with pytest.raises(
                DataPlaneRefusedError,
                match=r"ip_sla\.responder: cannot listen on UDP port 1967.* stop the program that uses it",
            ):
                await client.configure(wanted)
            assert (await client.config(), (await client.ip_sla())["operations"].keys()) == before
            # No port is open, even of those that could be opened.
            assert ":0007 " not in lab.run("R1", ["cat", "/proc/net/udp"]).stdout
            taken.kill()
            taken.wait()
            await client.configure(wanted)
            assert ":0007 " in lab.run("R1", ["cat", "/proc/net/udp"]).stdout
            await client.configure(before[0])
            assert ":0007 " not in lab.run("R1", ["cat", "/proc/net/udp"]).stdout


OCCUPY = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 1967))
print("ready", flush=True)
time.sleep(60)
"""
