"""Experiments with plans in a kernel that has the qdiscs: run as a script there, prints JSON.

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
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qoslab.errors import QoslabError
from qoslab.policy.kernel_plan import plan_pasted
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.tc import rtnetlink_dump
from qoslab.tc.device_state import seen
from qoslab.tc.kernel_counts import read, read_device
from qoslab.tc.plan_application import apply, dry_run
from qoslab.tc.port_plan import Port
from qoslab.tc.router_plan import Plan, plan

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


def planned(text: str, **names: str) -> Plan:
    return plan_pasted(read_configuration(text), None, names)


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def address(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def frame(
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
        return MAC * 2 + struct.pack(">H", IPV6) + head + address(source) + address(destination) + body
    head = struct.pack(">BBHHHBBH", 0x45, dscp << 2, size, number, 0, 64, protocol, 0)
    head += address(source) + address(destination)
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return MAC * 2 + struct.pack(">H", IP) + (head + transport).ljust(size, b"\0")


def opened(device: str, protocol: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    # SO_SNDBUFFORCE: a full queue must drop and not stop the sender. SO_RCVBUFFORCE.
    made.setsockopt(socket.SOL_SOCKET, 32, BUFFER)
    made.setsockopt(socket.SOL_SOCKET, 33, BUFFER)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.bind((device, protocol))
    return made


def received(sockets: list[socket.socket], quiet_s: float) -> Iterator[tuple[int, int, bytes]]:
    """Yield socket number, time in ns and frame of what comes, until nothing comes for a time."""
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
    """Send frames at their times, in seconds from now; a frame that is late is sent at once."""
    out = opened(device, 0)
    start = time.monotonic()
    for at, data in frames:
        if (left := start + at - time.monotonic()) > 0:
            time.sleep(left)
        with contextlib.suppress(OSError):
            # ENOBUFS is a drop.
            out.sendto(data, (device, IPV6 if data[12] == 0x86 else IP))


def in_child(device: str, frames: Callable[[], Iterator[tuple[float, bytes]]]) -> None:
    if os.fork() == 0:
        # The plan is the parent's: nothing of this process may restore it.
        try:
            send(device, frames())
        finally:
            os._exit(0)


def goldens(folder: str) -> dict[str, Any]:
    """Apply each policy, read it back, and restore."""
    found: dict[str, Any] = {}
    for path in sorted(Path(folder).glob("*.ios")):
        plan = planned(path.read_text(encoding="utf-8"))
        if plan.refused:
            continue
        try:
            with apply(plan) as applied:
                again = applied.change(plan)
            left = [str(key) for each in plan.interfaces for key in seen(each.port.device)]
            found[path.stem] = {"again": again, "left": left}
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


def changes() -> dict[str, Any]:
    """Change one value, then the tree, then back to nothing."""
    names = {"GigabitEthernet0/1": "eth1"}
    first = planned(SHAPER.format(gold=30, default="queue-limit 64", rate=2_000_000), **names)
    weights = planned(SHAPER.format(gold=40, default="queue-limit 64", rate=2_000_000), **names)
    fair = planned(SHAPER.format(gold=40, default="fair-queue", rate=2_000_000), **names)
    found: dict[str, Any] = {}
    with apply(first) as applied:
        found["weights"] = applied.change(weights)
        found["fair"] = applied.change(fair)
        command = "tc class change dev eth1 parent 1:1 classid 1:10 htb rate 3mbit"
        subprocess.run(["sh", "-ec", command], check=True)
        try:
            applied.verify()
        except QoslabError as error:
            found["differs"] = error.message
        found["repaired"] = applied.change(fair)
        try:
            apply(first)
        except QoslabError as error:
            found["taken"] = error.message
    found["left"] = list(map(str, seen("eth1")))
    return found


def errors() -> dict[str, Any]:
    """Refusals by tc, and by a kernel without a module."""
    from dataclasses import replace

    plan = planned(SHAPER.format(gold=30, default="queue-limit 64", rate=2_000_000))
    interface = plan.interfaces[0]
    wrong = [
        replace(each, options=(("limit", -1),)) if getattr(each, "kind", "") == "pfifo" else each
        for each in interface.objects
    ]
    found = {}
    try:
        dry_run(replace(plan, interfaces=(replace(interface, objects=tuple(wrong)),)), lambda _: "wan.ios.j2:7")
    except QoslabError as error:
        found["parameter"] = error.message
    return found


def classification(text: str) -> list[dict[str, Any]]:
    """Send packets through the egress filters; the code point on the other end shows the class."""
    packets: list[dict[str, Any]] = json.loads(text)
    plan = planned(Path(sys.argv[2]).read_text(encoding="utf-8"), **{"FastEthernet0/1": "eth1"})
    with apply(plan):
        inlet = opened("far1", ALL)
        for number, packet in enumerate(packets, 1):
            send("eth1", iter([(0.0, frame(packet.pop("size"), number=number, **packet))]))
            packet["class"] = None
        for _, _, data in received([inlet], 0.3):
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


def policer(police: str, count: int, rate_bps: float, seed: int) -> dict[str, Any]:
    """Send packets of random sizes at a random pace; return times, sizes and code points behind the policer."""
    plan = planned(POLICER.format(police=police.replace("|", "\n   ")), **{"FastEthernet0/0": "eth0"})
    draw = random.Random(seed)

    def frames() -> Iterator[tuple[float, bytes]]:
        at = 0.0
        for number in range(count):
            size = draw.randint(46, 1500)
            at += draw.expovariate(rate_bps / 8 / (size + HEADER))
            yield at, frame(size, dscp=8, number=number)

    with apply(plan):
        before, behind = opened("eth0", ALL), opened("eth0", IP)
        in_child("far0", frames)
        met: dict[int, list[int]] = {}
        for which, at, data in received([before, behind], 1.0):
            number = struct.unpack(">H", data[18:20])[0]
            if which == 0:
                met.setdefault(number, [0, 0, -1])[:2] = [at, len(data)]
            else:
                met.setdefault(number, [0, 0, -1])[2] = data[15] >> 2
        counters = asdict(read(plan.interfaces[0]))
    return {"packets": [met[number] for number in sorted(met)], "classes": counters["classes"]}


def flows(policy: str, flows_text: str, seconds: float) -> dict[str, Any]:
    """Send flows (DSCP, IP bytes, b/s) through a policy; return arrivals (ns, counted bytes, DSCP) and counters."""
    plan = planned(policy, **{"GigabitEthernet0/1": "eth1"})
    wanted: list[tuple[int, int, float]] = json.loads(flows_text)

    def frames(dscp: int, size: int, rate_bps: float) -> Iterator[tuple[float, bytes]]:
        data = frame(size, dscp=dscp, ports=(1024 + dscp, 9))
        for number in range(int(seconds * rate_bps / 8 / (size + HEADER))):
            yield number * 8 * (size + HEADER) / rate_bps, data

    with apply(plan):
        inlet = opened("far1", ALL)
        in_child("eth1", lambda: heapq.merge(*(frames(*each) for each in wanted)))
        arrivals = [(at, len(data), data[15] >> 2) for _, at, data in received([inlet], 1.5)]
        counters = asdict(read(plan.interfaces[0]))
    return {"arrivals": arrivals, "counters": counters}


QDISCS = {
    "fq_codel": "fq_codel limit 100 target 1ms interval 5ms",
    "codel": "codel limit 50 target 1ms interval 5ms",
    "pie": "pie limit 50 target 2ms tupdate 2ms",
    "red": "red limit 40000 min 3000 max 9000 avpkt 1000 burst 5 bandwidth 2mbit ecn",
    "sfq": "sfq limit 30",
    "cake": "cake bandwidth 2mbit",
}


def counters() -> dict[str, Any]:
    """Load each qdisc below HTB at 2 Mb/s; return the kernel's messages, tc's JSON and our counters."""
    found = {}
    for name, words in QDISCS.items():
        above = "" if name == "cake" else "parent 1:1 handle 2:"
        root = "tc qdisc add dev eth1 root handle 1: "
        shaper = f"{root}htb default 1; tc class add dev eth1 parent 1: classid 1:1 htb rate 2mbit; "
        own = f"{root}{words}" if name == "cake" else f"{shaper}tc qdisc add dev eth1 {above} {words}"
        subprocess.run(["sh", "-ec", own], check=True)

        def frames() -> Iterator[tuple[float, bytes]]:
            for number in range(600):
                data = bytearray(frame(1000, dscp=46 if number % 4 == 0 else 0, ports=(1024 + number % 4, 9)))
                data[15] |= 2 if number % 2 else 0
                data[24:26] = b"\0\0"
                data[24:26] = struct.pack(">H", checksum(bytes(data[14:34])))
                yield number / 600, bytes(data)

        send("eth1", frames())
        time.sleep(2)  # until the queue is empty
        said = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", "eth1"], capture_output=True, check=True)
        requests = (rtnetlink_dump.GET_QDISC, rtnetlink_dump.GET_CLASS)
        messages = {
            str(request): [each.hex() for each in rtnetlink_dump.payloads(request, "eth1")] for request in requests
        }
        found[name] = {
            "tc": json.loads(said.stdout),
            "messages": messages,
            "counters": [asdict(each) for each in read_device("eth1")],
        }
        subprocess.run(["tc", "qdisc", "del", "dev", "eth1", "root"], check=True)
    return found


def configurations() -> list[str]:
    """Apply the plans of engine configurations in /run/job/configurations.json; return what went wrong."""
    wrong = []
    for config in json.loads(Path("/run/job/configurations.json").read_text(encoding="utf-8")):
        ports = [
            Port(name, f"eth{number}", each["bandwidth_kbps"] * 1000, each["bandwidth_kbps"] * 1000)
            for number, (name, each) in enumerate(config["interfaces"].items())
        ]
        refused = {note.origin.interface for note in plan(config, ports).refused}
        made = plan(config, [port for port in ports if port.interface not in refused])
        try:
            apply(made).restore()
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
            result: Any = goldens(folder)
        case ["changes"]:
            result = changes() | errors()
        case ["classification", _, packets]:
            result = classification(packets)
        case ["policer", police, count, rate_bps, seed]:
            result = policer(police, int(count), float(rate_bps), int(seed))
        case ["flows", policy, given, seconds]:
            result = flows(policy, given, float(seconds))
        case ["configurations"]:
            result = configurations()
        case ["counters"]:
            result = counters()
        case other:
            raise SystemExit(f"unknown experiment {other}")
    Path("/run/job/result.json").write_text(json.dumps(result), encoding="utf-8")


main()
