"""Measure the time until a run on real devices is refused: `python benches/refusals.py [--write] [--repetitions N]`.

A virtual lab behind SSH on loopback stands for real devices. One fault after another is set up, and `qoslab run` is
started on it like a user does: the time includes the start of Python. The message must name the faulty device. Then a
run starts, and a second user requests the same lab; after the first run is killed, the time until the hosts are free
for others is measured.

`--write` writes the section of internals/performance.md. The exit status is 1 if the longest time exceeds its limit.
It needs an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import page

from qoslab.model.experiment import Topology
from qoslab.run.devices.ansible_inventory import read_lab
from qoslab.run.real.access.inventory_proxies import access_methods
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab

HEADING = "## Refusals"
FILE = Path(__file__).resolve().parents[1] / "experiments" / "policing-vs-shaping.yml"
QOSLAB = str(Path(sys.executable).with_name("qoslab"))
PATIENCE_S = 120.0
FREE = "hosts free after SIGKILL"
SECOND = "a second user"
WRONG_S = 15.0
"""Greatest time of a check of all nodes, including the start of its programs."""
AT_MOST_S = {SECOND: 5.0, FREE: 5.0}
"""Greatest additional time: no login, and at most the timeout of a host."""

LAN = "client eth0 192.168.10.2/24 - R1 FastEthernet0/0 192.168.10.1/24"
WAN = "R1 FastEthernet0/1 192.168.20.1/24 - server eth0 192.168.20.2/24"
ADDRESS = "ip address {} 255.255.255.0"


@dataclass(frozen=True)
class WrongInput:
    """A fault in a lab, and the message that must name it."""

    what: str
    expected: str
    links: Sequence[str] = (LAN, WAN)
    lines: Sequence[str] = ()
    """Configuration lines of a router."""
    router: str = "R1"
    model: str = "3725"
    on_client: str = ""
    """Command on the client."""


WRONG = (
    WrongInput(
        "swapped ports",
        "link lan: found FastEthernet0/1 of R1 at eth0 of client",
        (LAN.replace("0/0", "0/1"), WAN.replace("0/1", "0/0")),
        (
            *("interface Fa0/0", "no ip address", "interface Fa0/1", ADDRESS.format("192.168.20.1")),
            *("interface Fa0/0", ADDRESS.format("192.168.10.1")),
        ),
    ),
    WrongInput(
        "wrong VLAN",
        "link lan: found nobody who answers for 192.168.10.1",
        (
            "client eth0 192.168.10.2/24 - SW GigabitEthernet1/0/1",
            f"SW GigabitEthernet1/0/2 - {LAN.partition(' - ')[2]}",
            WAN,
        ),
        ("vlan 20", "exit", "interface Gi1/0/1", "switchport access vlan 20"),
        router="SW",
    ),
    WrongInput("port down", "found FastEthernet0/1 shut down", lines=("interface Fa0/1", "shutdown")),
    WrongInput("half duplex", "found FastEthernet0/1 half duplex", lines=("interface Fa0/1", "duplex half")),
    WrongInput(
        "wrong address",
        "found 192.168.20.9/24 on FastEthernet0/1",
        lines=("interface Fa0/1", ADDRESS.format("192.168.20.9")),
    ),
    WrongInput(
        "test traffic through the management NIC",
        "client: found the route to 192.168.20.2 through mgmt0, expected it through eth0",
        on_client="ip link add mgmt0 type veth peer far; ip link set far up; ip link set mgmt0 up; "
        "ip addr add 192.168.20.77/25 dev mgmt0",
    ),
    WrongInput(
        "missing link",
        "found FastEthernet0/1 down",
        (LAN, "server eth0 192.168.20.2/24 - other eth0 192.168.20.3/24"),
        ("interface Fa0/1", ADDRESS.format("192.168.20.1"), "no shutdown"),
    ),
    WrongInput("wrong device", "R1: found a 2811, expected a 3725", model="2811"),
)


def make_project(links: Sequence[str], model: str) -> Topology:
    """Return the nodes and links of a lab, each at 100 Mb/s."""
    kinds: dict[str, Any] = {
        "client": {"platform": "host", "routes": [{"prefix": "0.0.0.0/0", "via": "192.168.10.1"}]},
        "R1": {"platform": "ios", "model": model},
        "SW": {"platform": "ios", "model": "3750G"},
        "server": {"platform": "host", "routes": [{"prefix": "0.0.0.0/0", "via": "192.168.20.1"}]},
        "other": {"platform": "host"},
    }
    made_links: list[dict[str, Any]] = []
    for number, text in enumerate(links):
        words = [end.split() for end in text.split(" - ")]
        ends = [{"node": node, "interface": port, "address": more[0] if more else None} for node, port, *more in words]
        made_links.append({"name": f"l{number}", "rate": "100 Mb/s", "ends": ends})
    there = {end["node"] for link in made_links for end in link["ends"]}
    if "other" in there:
        kinds["server"] = {"platform": "host"}
    nodes = {name: kind for name, kind in kinds.items() if name in there}
    return Topology.model_validate_json(json.dumps({"nodes": nodes, "links": made_links}))


@contextmanager
def make_lab(folder: Path, wrong: WrongInput) -> Iterator[tuple[Lab, Path]]:
    """Yield a lab with this fault, and its inventory."""
    inventory = folder / "rack.yml"
    with Lab.up(make_project(wrong.links, wrong.model), name=f"refusals-{os.getpid()}") as lab:
        expose_lab(lab, inventory)
        if wrong.lines:
            known = read_lab(inventory)
            with AccessProxies(access_methods(inventory, known.routers, known.nodes.routers)) as proxies:
                reply = proxies.ask(wrong.router, "configure terminal", *wrong.lines, "end")
                assert not any("%" in each for each in reply), reply
        if wrong.on_client:
            lab.run("client", ["sh", "-c", wrong.on_client], check=True)
        yield lab, inventory


def command(inventory: Path, duration: str) -> list[str]:
    """Return the command that runs an experiment on an inventory."""
    return [QOSLAB, "run", str(FILE), "--lab", str(inventory), "--duration", duration, "--arm", "policed"]


def refused(inventory: Path, folder: Path, expected: str) -> float:
    """Start a run that must be refused with this message; return the duration."""
    began = time.monotonic()
    done = subprocess.run(
        command(inventory, "2s"), capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S, check=False
    )
    took = time.monotonic() - began
    if done.returncode != 2 or expected not in done.stderr:
        sys.exit(f"expected {expected!r} and status 2, found {done.returncode}:\n{done.stderr}")
    return took


def second_user(lab: Lab, inventory: Path, folder: Path) -> tuple[float, float]:
    """Measure the time until a second user is refused, and until its hosts are free after the first is killed."""
    others = shutil.copy(inventory, folder / "others.yml")
    with subprocess.Popen(
        command(inventory, "60s"), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as first:
        deadline = time.monotonic() + PATIENCE_S
        while not _sends_packets(lab):
            assert first.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        reported = refused(Path(others), folder, "eth0 is locked by the run of policing-vs-shaping")
        first.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        while _sends_packets(lab) or _hold_lock(lab):
            time.sleep(0.01)
        free = time.monotonic() - killed
    subprocess.run([QOSLAB, "lab", "rescue", str(inventory)], cwd=folder, capture_output=True, check=True)
    return reported, free


def _sends_packets(lab: Lab) -> bool:
    return bool(lab.run("client", ["sh", "-c", "ss -Htn dst 192.168.20.2"]).stdout.strip())


def _hold_lock(lab: Lab) -> bool:
    return any("qoslab" in lab.run(host, ["cat", "/proc/net/unix"]).stdout for host in ("client", "server"))


def allowed_seconds(what: str) -> float:
    """Return the greatest allowed time, in seconds."""
    return AT_MOST_S.get(what, WRONG_S)


def too_long(found: dict[str, list[float]]) -> list[str]:
    """Return the measurements that took longer than allowed."""
    return [what for what, each in found.items() if max(each) > allowed_seconds(what)]


def section(found: dict[str, list[float]], machine: str) -> str:
    """Return the section of the page."""
    text = (
        "Time from the start of `qoslab run NAME --lab INVENTORY` to its end with the list of errors, before any "
        "change; the lab is a virtual one behind SSH on loopback. The table has the median and the "
        "longest time in seconds. In one case a second user starts a run during another user's run; *hosts are free* "
        "is the time until nothing of a killed run is left on them. The longest time is compared with its limit. "
        "Written by `python benches/refusals.py --write`."
    )
    lines = [
        HEADING,
        "",
        textwrap.fill(text, page.WIDTH),
        "",
        f"{machine}.",
        "",
        "| fault | median | longest | at most | |",
        "|---|---|---|---|---|",
        *(
            f"| {what} | {statistics.median(each):.1f} | {max(each):.1f} | {allowed_seconds(what):g} | "
            f"{'**not met**' if what in too_long(found) else 'met'} |"
            for what, each in found.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, metavar="N")
    parser.add_argument("--write", action="store_true", help="write the section of docs/internals/performance.md")
    chosen = parser.parse_args()
    machine, found = page.machine(), dict[str, list[float]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        for wrong in WRONG:
            with make_lab(folder, wrong) as (_, inventory):
                found[wrong.what] = [refused(inventory, folder, wrong.expected) for _ in range(chosen.repetitions)]
            print(f"{wrong.what}: {', '.join(f'{each:.1f}' for each in found[wrong.what])} s", flush=True)
        with make_lab(folder, WrongInput("", "")) as (lab, inventory):
            pairs = [second_user(lab, inventory, folder) for _ in range(chosen.repetitions)]
        found[SECOND], found[FREE] = map(list, zip(*pairs, strict=True))
    page.print_summary(section(found, machine), write_it=chosen.write)
    return 1 if too_long(found) else 0


if __name__ == "__main__":
    sys.exit(main())
