"""Labs for tests, and their remains on the machine."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from qoslab.model.experiment import Topology
from qoslab.virtual_lab import Lab
from waiting import wait_until

PING = """
import os, select, socket, struct, sys, time
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
mark = os.urandom(8)
body = struct.pack("!BBHHH", 8, 0, 0, 7, 1) + mark
body = struct.pack("!BBHHH", 8, 0, checksum(body), 7, 1) + mark
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
    s.sendto(body, (sys.argv[1], 0))
    end = time.monotonic() + float(sys.argv[2])
    while select.select([s], [], [], max(0, end - time.monotonic()))[0]:
        packet = s.recv(2048)
        if packet[20] == 0 and packet.endswith(mark):
            print(packet[8])
            sys.exit(0)
sys.exit(1)
"""
"""Program that sends one echo request and prints the reply's TTL. The program ping would need a file capability."""


def topology(**nodes: Any) -> Callable[..., Topology]:
    """Return a topology: `topology(a="host")("a eth0 10.0.0.1/24 - b eth0 10.0.0.2/24")`: nodes, then links at 100
    Mb/s.
    """

    def links(*texts: str, rate: str = "100 Mb/s") -> Topology:
        made = []
        for number, text in enumerate(texts):
            ends = []
            for end in text.split(" - "):
                node, interface, *address = end.split()
                ends.append({"node": node, "interface": interface, "address": address[0] if address else None})
            made.append({"name": f"l{number}", "rate": rate, "ends": ends})
        described = {name: {"platform": node} if isinstance(node, str) else node for name, node in nodes.items()}
        return Topology.model_validate_json(json.dumps({"nodes": described, "links": made}))

    return links


TWO_HOSTS = topology(client="host", server="host")("client eth0 10.1.0.1/24 - server eth0 10.1.0.2/24")
ROUTED = topology(client="host", R1="engine", server="host")(
    "client eth0 10.1.0.2/24 - R1 FastEthernet0/0 10.1.0.1/24",
    "R1 FastEthernet0/1 10.2.0.1/24 - server eth0 10.2.0.2/24",
)
IOS_ROUTED = topology(client="host", R1={"platform": "ios", "model": "3725"}, server="host")(
    "client eth0 10.1.0.2/24 - R1 FastEthernet0/0 10.1.0.1/24",
    "R1 FastEthernet0/1 10.2.0.1/24 - server eth0 10.2.0.2/24",
)
POLICE = """\
policy-map Police
 class class-default
  police cir 1000000
!
interface FastEthernet0/1
 service-policy output Police
"""


def ping(lab: Lab, node: str, address: str, seconds: float = 30.0) -> int | None:
    """Return the TTL of the reply; None without a reply in time."""
    done = lab.run(node, ["python3", "-c", PING, address, str(seconds)])
    assert done.returncode in (0, 1), done.stderr
    return int(done.stdout) if done.returncode == 0 else None


class LabTraces:
    """Objects of a running lab that are visible from outside."""

    def __init__(self, lab: Lab) -> None:
        # The kernel reuses the number of a deleted namespace, perhaps for a lab of another test. A namespace is not
        # deleted while it is open here.
        own = Path(f"/proc/{lab.pid}/ns/pid")
        nets = [each for each in Path(f"/proc/{lab.pid}/fd").iterdir() if str(each.readlink()).startswith("net:")]
        self._held = {f"/proc/{os.getpid()}/fd/{os.open(each, os.O_RDONLY)}" for each in (own, *nets)}
        weakref.finalize(self, _close, self._held)
        self.pid_namespace = own.readlink()
        self.namespaces = {str(each.readlink()) for each in nets}
        self.abstract = f"@qoslab/{os.geteuid()}/{lab.name}"
        self.interfaces = set(Path("/sys/class/net").iterdir())
        assert len(self.namespaces) >= len(lab.nodes)
        assert self.found(), "the traces of a lab that is up are not seen: this test could not fail"

    def found(self) -> list[str]:
        """Return the remaining objects."""
        found = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                if (process / "ns/pid").readlink() == self.pid_namespace:
                    found.append(f"process {process.name}: {(process / 'comm').read_text().strip()}")
                links = [process / "ns/net", *(process / "fd").iterdir()]
                held = {str(each.readlink()) for each in links if str(each) not in self._held}
            except OSError:
                continue  # It has just ended, or belongs to another user.
            found += [f"namespace {each} held by {process.name}" for each in held & self.namespaces]
        mounts = Path("/proc/self/mountinfo").read_text()
        found += [f"mount of {each}" for each in self.namespaces if each in mounts]
        if self.abstract in Path("/proc/net/unix").read_text():
            found.append(f"socket {self.abstract}")
        found += [f"interface {each}" for each in set(Path("/sys/class/net").iterdir()) - self.interfaces]
        return found

    def wait_until_gone(self) -> None:
        """Wait until the lab has no remaining objects; fail if one stays."""
        wait_until(lambda: not self.found(), "nothing of the lab is left", report=lambda: str(self.found()))


def _close(held: Iterable[str]) -> None:
    for each in held:
        os.close(int(Path(each).name))


def run_inside(lab: Lab) -> list[int]:
    """Return the processes of a lab except its supervisor."""
    space = Path(f"/proc/{lab.pid}/ns/pid_for_children").stat().st_ino
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != lab.pid:
            try:
                if (process / "ns/pid").stat().st_ino == space:
                    found.append(int(process.name))
            except OSError:
                continue
    return found


def command_line(pid: int) -> bytes:
    """Return the command line of a process according to the kernel; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def agents_folder(lab: Lab) -> Path:
    """Return the folder of the agents on the hosts of an exposed lab, which no other lab uses."""
    for pid in run_inside(lab):
        if b"qoslab.virtual_lab.hostd" in command_line(pid):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return Path(next(each[7:] for each in variables if each.startswith(b"TMPDIR=")).decode())
    raise AssertionError(f"{lab.name} is not exposed")


def data_planes(lab: Lab) -> list[int]:
    """Return the `qos-router` processes of a lab."""
    return [pid for pid in run_inside(lab) if b"qos-router\0--lab" in command_line(pid)]
