"""Experiments with plans in a kernel that has the qdiscs: runs as a script there, prints JSON.

Packets leave and arrive by packet sockets on both ends of pairs of virtual devices: eth0 and far0, eth1 and far1.
"""

import contextlib
import heapq
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from qoslab.analysis.kernel_counters import kernel_rows
from qoslab.errors import QoslabError
from qoslab.platforms.kernel_router import plan_config
from qoslab.policy.kernel_plan import plan_pasted
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.tc.interface_qdiscs import InterfaceQdiscs
from qoslab.tc.port_plan import PlannedPort
from qoslab.tc.router_plan import RouterPlan, plan

MAC = b"\2\0\0\0\0\1"
IP, IPV6, ALL = 0x0800, 0x86DD, 0x0003
SO_TIMESTAMPNS = 35
BUFFER = 1 << 24
PAIRS = 6
HEADER = 14


def devices() -> None:
    lines = "".join(
        f"ip link add name eth{n} type veth peer name far{n}\nip link set dev far{n} address 02:00:00:00:00:01\n"
        f"ip link set dev eth{n} up\nip link set dev far{n} up\n"
        for n in range(PAIRS)
    )
    subprocess.run(["sh", "-ec", f"{lines}ip link add name ppp0 type dummy\nip link set dev ppp0 up\n"], check=True)


def planned_commands(text: str, **names: str) -> RouterPlan:
    return plan_pasted(read_configuration(text), None, names)


def run_guest(argv: Sequence[str], text: str) -> tuple[int, str, str]:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def commands(plan: RouterPlan) -> list[tuple[str, ...]]:
    plan.check()
    return [each.words for each in plan_config("R1", plan).commands]


def qdiscs(plan: RouterPlan) -> InterfaceQdiscs:
    return InterfaceQdiscs(run_guest, [each.port.device for each in plan.interfaces])


@contextlib.contextmanager
def apply_commands(plan: RouterPlan) -> Iterator[InterfaceQdiscs]:
    made = qdiscs(plan)
    made.configure(commands(plan))
    try:
        yield made
    finally:
        made.restore()


def counter_rows(plan: RouterPlan, made: InterfaceQdiscs) -> list[dict[str, Any]]:
    """Return the rows of the classes."""
    classes = plan_config("R1", plan).classes or {}
    hooks = dict.fromkeys((name, each["hook"]) for name, some in classes.items() for each in some)
    found = made.counters(hooks)
    for name, each in found["interfaces"].items():
        each["policy"] = classes.get(name, [])
    reply = {"time_ns": found["time_ns"], "tc": found["interfaces"]}
    return [row for table, row in kernel_rows("R1", [reply], 0) if table == "classes"]


def leftovers(plan: RouterPlan) -> list[str]:
    """Return the qdiscs of the devices of a plan that are not the kernel's default."""
    shown = [run_guest(["tc", "qdisc", "show", "dev", each.port.device], "")[1] for each in plan.interfaces]
    return [line for each in shown for line in each.splitlines() if " 0: root" not in line]


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def interface_address(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def udp_frame(
    size: int,
    *,
    dscp: int = 0,
    protocol: int = 17,
    source: str = "10.9.0.2",
    destination: str = "10.9.9.9",
    ports: tuple[int, int] = (1024, 9),
    flags: int = 0,
    number: int = 0,
) -> bytes:
    """Return an Ethernet frame with an IP packet of so many bytes; its identification is `number`."""
    transport = struct.pack(">HHHH", *ports, max(size - 20, 8), 0)
    if protocol == 6:
        transport = struct.pack(">HHIIBBHHH", *ports, 0, 0, 0x50, flags, 1000, 0, 0)
    if protocol == 1:
        transport = struct.pack(">BBHHH", ports[0], 0, 0, 0, 0)
    if ":" in source:
        body = transport.ljust(size - 40, b"\0")
        head = struct.pack(">IHBB", 6 << 28 | dscp << 22 | number, len(body), protocol, 64)
        return (
            MAC * 2 + struct.pack(">H", IPV6) + head + interface_address(source) + interface_address(destination) + body
        )
    head = struct.pack(">BBHHHBBH", 0x45, dscp << 2, size, number, 0, 64, protocol, 0)
    head += interface_address(source) + interface_address(destination)
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return MAC * 2 + struct.pack(">H", IP) + (head + transport).ljust(size, b"\0")


def open_sockets(device: str, protocol: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    # SO_SNDBUFFORCE: a full queue must drop and not stop the sender. SO_RCVBUFFORCE.
    made.setsockopt(socket.SOL_SOCKET, 32, BUFFER)
    made.setsockopt(socket.SOL_SOCKET, 33, BUFFER)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.bind((device, protocol))
    return made


def received_frames(sockets: list[socket.socket], quiet_s: float) -> Iterator[tuple[int, int, bytes]]:
    """Yield socket number, time in ns and frame of each received packet, until none arrives for a time."""
    while True:
        ready, _, _ = select.select(sockets, [], [], quiet_s)
        if not ready:
            return
        for each in ready:
            data, ancillary, _, origin = each.recvmsg(2048, 64)
            if origin[2] == socket.PACKET_OUTGOING:
                continue
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            yield sockets.index(each), seconds * 10**9 + nanoseconds, data


def send(device: str, frames: Iterator[tuple[float, bytes]]) -> None:
    """Send frames at their times, in seconds from now; send late frames at once."""
    out = open_sockets(device, 0)
    start = time.monotonic()
    for at, data in frames:
        if (left := start + at - time.monotonic()) > 0:
            time.sleep(left)
        with contextlib.suppress(OSError):
            # ENOBUFS is a drop.
            out.sendto(data, (device, IPV6 if data[12] == 0x86 else IP))


def run_in_child(device: str, frames: Callable[[], Iterator[tuple[float, bytes]]]) -> None:
    if os.fork() == 0:
        # The plan belongs to the parent process: this process must not restore it.
        try:
            send(device, frames())
        finally:
            os._exit(0)


def check_goldens(folder: str) -> dict[str, Any]:
    """Apply each policy, read it back, and restore."""
    found: dict[str, Any] = {}
    for path in sorted(Path(folder).glob("*.ios")):
        plan = planned_commands(path.read_text(encoding="utf-8"))
        if plan.refused_actions:
            continue
        try:
            with apply_commands(plan) as made:
                again = made.configure(commands(plan))
            found[path.stem] = {"again": again, "left": leftovers(plan)}
        except QoslabError as error:
            found[path.stem] = {"error": error.message, "hint": error.hint}
    return found


SHAPER = """
class-map match-any GOLD
 match dscp af31
class-map match-any SILVER
 match dscp af21
class-map match-any VOICE
 match dscp ef
policy-map CHILD
 class VOICE
  priority 100
 class GOLD
  bandwidth percent {gold}
 class SILVER
  bandwidth percent 20
 class class-default
  {default}
policy-map PARENT
 class class-default
  shape average {rate}
  service-policy CHILD
interface GigabitEthernet0/1
 service-policy output PARENT
"""


def check_changes() -> dict[str, Any]:
    """Change one value, then the tree, then remove everything."""
    names = {"GigabitEthernet0/1": "eth1"}
    first = planned_commands(SHAPER.format(gold=30, default="queue-limit 64", rate=2_000_000), **names)
    weights = planned_commands(SHAPER.format(gold=40, default="queue-limit 64", rate=2_000_000), **names)
    fair = planned_commands(SHAPER.format(gold=40, default="fair-queue", rate=2_000_000), **names)
    found: dict[str, Any] = {}
    with apply_commands(first) as made:
        found["weights"] = made.configure(commands(weights))
        found["fair"] = made.configure(commands(fair))
        run_guest(
            ["tc", "class", "change", "dev", "eth1", "parent", "1:1", "classid", "1:10", "htb", "rate", "3mbit"], ""
        )
        found["same"] = made.is_as_configured()
        found["repaired"] = made.configure(commands(fair)) == [list(each) for each in commands(fair)]
        try:
            qdiscs(first).refuse_foreign()
        except QoslabError as error:
            found["taken"] = error.message
    found["left"] = leftovers(first)
    return found


def check_errors() -> dict[str, Any]:
    """Return the refusal of a parameter by tc."""
    plan = planned_commands(SHAPER.format(gold=30, default="queue-limit 64", rate=2_000_000))
    wrong = [[*each, "limit", "-1"] if "pfifo" in each else each for each in commands(plan)]
    try:
        qdiscs(plan).try_out(wrong)
    except QoslabError as error:
        return {"parameter": error.message}
    return {}


def check_classification(text: str) -> list[dict[str, Any]]:
    """Send packets through the egress filters; the code point at the other end shows the class."""
    packets: list[dict[str, Any]] = json.loads(text)
    plan = planned_commands(Path(sys.argv[2]).read_text(encoding="utf-8"), **{"FastEthernet0/1": "eth1"})
    with apply_commands(plan):
        inlet = open_sockets("far1", ALL)
        for number, packet in enumerate(packets, 1):
            send("eth1", iter([(0.0, udp_frame(packet.pop("size"), number=number, **packet))]))
            packet["class"] = None
        for _, _, data in received_frames([inlet], 0.3):
            if data[12:14] == b"\x08\0":
                number, dscp = struct.unpack(">H", data[18:20])[0], data[15] >> 2
            else:
                word = struct.unpack(">I", data[14:18])[0]
                number, dscp = word & 0xFFFFF, word >> 22 & 63
            if 1 <= number <= len(packets):
                packets[number - 1]["class"] = dscp
    return packets


POLICER = """
policy-map P
 class class-default
  police {police}
interface FastEthernet0/0
 service-policy input P
"""


def check_policer(police: str, count: int, rate_bps: float, seed: int) -> dict[str, Any]:
    """Send packets of random sizes at a random pace; return times, sizes and code points behind the policer."""
    plan = planned_commands(POLICER.format(police=police.replace("|", "\n   ")), **{"FastEthernet0/0": "eth0"})
    draw = random.Random(seed)

    def frames() -> Iterator[tuple[float, bytes]]:
        at = 0.0
        for number in range(count):
            size = draw.randint(46, 1500)
            at += draw.expovariate(rate_bps / 8 / (size + HEADER))
            yield at, udp_frame(size, dscp=8, number=number)

    with apply_commands(plan) as made:
        before, behind = open_sockets("eth0", ALL), open_sockets("eth0", IP)
        run_in_child("far0", frames)
        met: dict[int, list[int]] = {}
        for which, at, data in received_frames([before, behind], 1.0):
            number = struct.unpack(">H", data[18:20])[0]
            if which == 0:
                met.setdefault(number, [0, 0, -1])[:2] = [at, len(data)]
            else:
                met.setdefault(number, [0, 0, -1])[2] = data[15] >> 2
        classes = counter_rows(plan, made)
    return {"packets": [met[number] for number in sorted(met)], "classes": classes}


def check_flows(policy: str, flows_text: str, seconds: float) -> dict[str, Any]:
    """Send flows (DSCP, IP bytes, b/s) through a policy; return arrivals (ns, counted bytes, DSCP) and counters."""
    plan = planned_commands(policy, **{"GigabitEthernet0/1": "eth1"})
    wanted: list[tuple[int, int, float]] = json.loads(flows_text)

    def frames(dscp: int, size: int, rate_bps: float) -> Iterator[tuple[float, bytes]]:
        data = udp_frame(size, dscp=dscp, ports=(1024 + dscp, 9))
        for number in range(int(seconds * rate_bps / 8 / (size + HEADER))):
            yield number * 8 * (size + HEADER) / rate_bps, data

    with apply_commands(plan) as made:
        inlet = open_sockets("far1", ALL)
        run_in_child("eth1", lambda: heapq.merge(*(frames(*each) for each in wanted)))
        arrivals = [(at, len(data), data[15] >> 2) for _, at, data in received_frames([inlet], 1.5)]
        classes = counter_rows(plan, made)
    return {"arrivals": arrivals, "classes": classes}


def check_configurations() -> list[str]:
    """Apply the plans of engine configurations in /run/job/configurations.json; return the errors."""
    wrong = []
    for config in json.loads(Path("/run/job/configurations.json").read_text(encoding="utf-8")):
        ports = [
            PlannedPort(name, f"eth{number}", each["bandwidth_kbps"] * 1000, each["bandwidth_kbps"] * 1000)
            for number, (name, each) in enumerate(config["interfaces"].items())
        ]
        refused = {note.origin.interface for note in plan(config, ports).refused_actions}
        made = plan(config, [port for port in ports if port.interface not in refused])
        try:
            with apply_commands(made):
                pass
        except QoslabError as error:
            wrong.append(error.message)
    return wrong


def main() -> None:
    # The kernel's own neighbour discovery would be counted and policed with the packets of the experiment.
    for each in ("all", "default"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"/proc/sys/net/ipv6/conf/{each}/disable_ipv6").write_text("1", encoding="ascii")
    devices()
    match sys.argv[1:]:
        case ["goldens", folder]:
            result: Any = check_goldens(folder)
        case ["changes"]:
            result = check_changes() | check_errors()
        case ["classification", _, packets]:
            result = check_classification(packets)
        case ["policer", police, count, rate_bps, seed]:
            result = check_policer(police, int(count), float(rate_bps), int(seed))
        case ["flows", policy, given, seconds]:
            result = check_flows(policy, given, float(seconds))
        case ["configurations"]:
            result = check_configurations()
        case other:
            raise SystemExit(f"unknown experiment {other}")
    Path("/run/job/result.json").write_text(json.dumps(result), encoding="utf-8")


main()
