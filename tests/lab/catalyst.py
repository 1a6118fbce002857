"""`qos-router` as a Catalyst 3750: configurations, and the traffic of the article's last phase."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from dataplane import PORTS, ROOT, SERVER, DataPlaneLab, stop_process

from waiting import wait_until

IN, OUT = "FastEthernet0/0", "FastEthernet0/1"
FLOOD = ROOT / "target" / "release" / "flood"
ARTICLE = {"shape": [0, 0, 0, 0], "share": [30, 70, 1, 1], "limit": 70}
"""Configuration of the egress port in the article's last phase."""


def switch(**changes: Any) -> dict[str, Any]:
    """Return the global configuration with the platform's defaults and QoS enabled."""
    output = [[2, 1]] * 16 + [[3, 1]] * 16 + [[4, 1]] * 8 + [[1, 1]] * 8 + [[4, 1]] * 16
    percents = ({"t1": t, "t2": t, "reserved": 50, "maximum": 400} for t in (100, 200, 100, 100))
    queue_set = {"buffers": [25, 25, 25, 25], "thresholds": list(percents)}
    return {
        "qos": True,
        "rewrite_ip_dscp": True,
        "maps": {
            "cos_dscp": list(range(0, 64, 8)),
            "ip_prec_dscp": list(range(0, 64, 8)),
            "dscp_cos": [dscp // 8 for dscp in range(64)],
            "policed_dscp": list(range(64)),
            "dscp_mutation": {},
            "cos_output_q": [[2, 1], [2, 1], [3, 1], [3, 1], [4, 1], [1, 1], [4, 1], [4, 1]],
            "dscp_output_q": output,
            "cos_input_q": [[2 if cos == 5 else 1, 1] for cos in range(8)],
            "dscp_input_q": [[2 if 40 <= dscp < 48 else 1, 1] for dscp in range(64)],
        },
        "queue_sets": [queue_set, queue_set],
        "input": {
            "buffers": [90, 10],
            "bandwidth": [4, 4],
            "thresholds": [[100, 100], [100, 100]],
            "priority": {"queue": 2, "bandwidth": 10},
        },
        "aggregate_policers": {},
        **changes,
    }


def configuration(switch: dict[str, Any], **ports: dict[str, Any]) -> dict[str, Any]:
    """Return a complete configuration; `ports` are the switch's part of interfaces, such as `Fa0_1={"trust":
    "dscp"}`.
    """
    interfaces = {
        name: {"enabled": True, "bandwidth_kbps": 100_000, "switch": ports.get(short.replace("-", "_"), {})}
        for name, short in PORTS.items()
    }
    return {"format": 1, "router": "R1", "generation": "classic", "switch": switch, "interfaces": interfaces}


def set_up(lab: DataPlaneLab, switch: dict[str, Any], **ports: dict[str, Any]) -> None:
    """Configure the switch and clear its counters."""
    lab.ask("configure", config=configuration(switch, **ports))
    lab.ask("clear")


def counters(lab: DataPlaneLab, port: str) -> dict[str, Any]:
    """Return the counters of a switch port."""
    counted = lab.ask("counters")["interfaces"][port]["switch"]
    assert isinstance(counted, dict)
    return counted


def wait_until_passed(lab: DataPlaneLab, least: int = 0) -> None:
    """Wait until the egress port has sent or dropped each received packet, and at least `least`."""

    def passed() -> bool:
        ports = lab.ask("counters")["interfaces"]
        received, out = sum(ports[IN]["switch"]["dscp_in"]), ports[OUT]["switch"]
        return received >= least and sum(out["dscp_out"]) + sum(map(sum, out["dropped"])) >= received

    wait_until(passed, "each received packet has been sent or dropped")


def spawn_flood(lab: DataPlaneLab, dscp: int, kbps: int, size: int, seconds: float) -> subprocess.Popen[bytes]:
    """Send packets of `size` bytes from the client to the server in the background; the sent number is printed at the
    end.
    """
    options = f"--port {6000 + dscp} --dscp {dscp} --bandwidth {kbps} --size {size} --duration {seconds}"
    return lab.spawn("client", [str(FLOOD), "send", SERVER, *options.split()])


def last_phase(
    lab: DataPlaneLab, seconds: float, stalls: bool, hogs: int = 0, kbps: int = 200_000
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send 13 Mb/s of voice next to full frames of `kbps` while daemon or machine stall; return counters and health."""
    set_up(lab, switch(), Fa0_0={"trust": "dscp"}, Fa0_1=ARTICLE)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(hogs)]
    try:
        floods = [spawn_flood(lab, 46, 13_000, 1_498, seconds), spawn_flood(lab, 0, kbps, 1_500, seconds)]
        end = time.monotonic() + seconds
        while stalls and time.monotonic() < end - 0.4:
            time.sleep(0.1)
            with stop_process(lab):
                time.sleep(0.2)
        sent = [json.loads(flood.communicate(timeout=60)[0]) for flood in floods]
        wait_until_passed(lab)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    values = counters(lab, OUT)
    values["sent"] = sent
    values["received"] = counters(lab, IN)["dscp_in"]
    return values, lab.ask("health")
