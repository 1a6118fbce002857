"""Facts of the host, and answers on its cables. Nothing is changed.

A request for an address (ARP, RFC 826) leaves by the given interface and is never routed, so any device that answers is
on that cable, and the answer has its hardware address. It needs no address of the host (RFC 5227, 2.1.1).
"""

# pathlib and similar modules take longer to import than everything else here; some hosts are slow.
# ruff: noqa: PTH119, PTH123, PTH207

from __future__ import annotations

import array
import fcntl
import glob
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import time
from typing import Any

from qoslab.run.real.agent.kernel import AgentRefusedError, call, input_interface, output_interface, ssh_connection

ETH_P_ARP = 0x0806
ARP = struct.Struct("!HHBBH6s4s6s4s")
BROADCAST = b"\xff" * 6
ANSWER_S = 1.0
"""Time for an answer that is not queued, in seconds; longer than a router takes."""
MISSES = 3
"""Number of unanswered requests in a row after which a host counts as absent."""
PACE_S = 0.003
"""Pause between requests that do not wait for an answer, in seconds."""
CAPTURE = "dumpcap"
CAPTURE_S = 10.0
"""Time limit for dumpcap to report if it may capture, in seconds."""
SIOCETHTOOL = 0x8946
ETHTOOL_GSET, ETHTOOL_GDRVINFO = 0x1, 0x3
DUPLEX = {0: "half", 1: "full"}
UNKNOWN_SPEED = 0xFFFF


def list_nics() -> dict[str, Any]:
    """Return all interfaces of the host, by name."""
    counted = {link["ifname"]: link.get("stats64", {}) for link in json.loads(call("ip", "-j", "-s", "link", "show"))}
    found = {}
    for link in json.loads(call("ip", "-j", "addr", "show")):
        stats = counted.get(link["ifname"], {})
        received, sent = stats.get("rx", {}), stats.get("tx", {})
        found[link["ifname"]] = {
            "up": "UP" in link["flags"],
            "carrier": "LOWER_UP" in link["flags"],
            "mac": link.get("address", ""),
            "addresses": [f"{each['local']}/{each['prefixlen']}" for each in link.get("addr_info", ())],
            "errors": received.get("errors", 0) + sent.get("errors", 0),
            **ethernet_facts(link["ifname"]),
        }
    return found


def ethernet_facts(device: str) -> dict[str, Any]:
    """Return driver, speed in Mb/s and duplex of a NIC; None if not reported."""
    facts: dict[str, Any] = {"driver": "", "mbps": None, "duplex": None}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        try:
            answer = _query_ethtool(handle, device, struct.pack("I192x", ETHTOOL_GDRVINFO))
            facts["driver"] = answer[4:36].rstrip(b"\0").decode(errors="replace")
            answer = _query_ethtool(handle, device, struct.pack("I40x", ETHTOOL_GSET))
        except OSError:
            return facts
    low, duplex = struct.unpack_from("=HB", answer, 12)
    (high,) = struct.unpack_from("=H", answer, 28)
    facts["mbps"] = None if low == UNKNOWN_SPEED else high << 16 | low
    facts["duplex"] = DUPLEX.get(duplex)
    return facts


def _query_ethtool(handle: socket.socket, device: str, request: bytes) -> bytes:
    data = array.array("B", request)
    at, _ = data.buffer_info()
    fcntl.ioctl(handle.fileno(), SIOCETHTOOL, struct.pack("16sP16x", device.encode(), at))
    return data.tobytes()


def management_interface() -> dict[str, str]:
    """Return the host's address in this connection, and the interface of its answers."""
    words = ssh_connection()
    return {"address": words[2], "device": input_interface(words)} if words else {"address": "", "device": ""}


def list_congestion_controls() -> list[str]:
    """Return the congestion controls of the kernel, loaded or as modules."""
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="utf-8") as file:
        loaded = file.read().split()
    modules = glob.glob(f"/lib/modules/{os.uname().release}/kernel/net/ipv4/tcp_*.ko*")
    return loaded + [os.path.basename(each).partition(".ko")[0][len("tcp_") :] for each in modules]


def capture_error(program: str) -> str:
    """Return the message of dumpcap if this user may not capture; empty otherwise.

    Listing the link types opens the interface, unlike a list of interfaces (`-D`); `any` is always up.
    """
    try:
        done = subprocess.run(
            [program, "-L", "-i", "any"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=CAPTURE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(program + ": ")]
    return "" if done.returncode == 0 else (own or lines or [f"ended with status {done.returncode}"])[-1]


def collect_facts(programs: list[str], far: list[str], folder: str) -> dict[str, Any]:
    """Return the host's facts for an experiment: NICs, routes to far addresses, missing programs, rights, free disk."""
    return {
        "cards": list_nics(),
        "routes": {address: output_interface(address) for address in far},
        "management": management_interface(),
        "missing": [name for name in programs if shutil.which(name) is None],
        "no_capture": capture_error(CAPTURE) if CAPTURE in programs and shutil.which(CAPTURE) else "",
        "congestion": list_congestion_controls(),
        "free": shutil.disk_usage(folder).free,
    }


class CableProbe:
    """ARP requests on one interface. Raises `AgentRefusedError` if the user has no permission."""

    def __init__(self, device: str, mac: str, sender: str) -> None:
        """`sender` is the host's own address there; 0.0.0.0 if it has none."""
        self.mac = bytes.fromhex(mac.replace(":", ""))
        self.sender = socket.inet_aton(sender)
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP))
        except PermissionError:
            raise AgentRefusedError("detecting the neighbour on a cable requires root or CAP_NET_RAW") from None
        self.socket.bind((device, ETH_P_ARP))

    def ask(self, address: str) -> None:
        """Send one request."""
        asked = ARP.pack(1, 0x0800, 6, 4, 1, self.mac, self.sender, b"\0" * 6, socket.inet_aton(address))
        try:
            self.socket.send(BROADCAST + self.mac + struct.pack("!H", ETH_P_ARP) + asked)
        except OSError:
            return  # The line went down: no answers.

    def next_answer(self, until: float) -> tuple[str, str] | None:
        """Return the next answer: address and hardware address; None after the time `until`."""
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                return None
            frame = self.socket.recv(2048)
            if len(frame) < 14 + ARP.size:
                continue
            _, _, _, _, operation, mac, address, _, _ = ARP.unpack_from(frame, 14)
            if operation == 2 and mac != self.mac:
                return socket.inet_ntoa(address), ":".join(f"{byte:02x}" for byte in mac)

    def answering_macs(self, addresses: list[str]) -> dict[str, list[str]]:
        """Return the hardware addresses that answer for these addresses."""
        found: dict[str, list[str]] = {}
        for _ in range(2):
            for address in addresses:
                self.ask(address)
            until = time.monotonic() + ANSWER_S / 2
            while True:
                heard = self.next_answer(until)
                if heard is None:
                    break
                if heard[0] in addresses and heard[1] not in found.setdefault(heard[0], []):
                    found[heard[0]].append(heard[1])
        return found

    def round_trips(self, address: str, count: int, within_s: float) -> tuple[int, list[float]]:
        """Send sequential requests; return their number, and the round-trip times in ms."""
        took: list[float] = []
        asked = missed = 0
        while asked < count and missed < MISSES:
            begun = time.monotonic()
            self.ask(address)
            asked += 1
            heard = self.next_answer(begun + within_s)
            while heard is not None and heard[0] != address:
                heard = self.next_answer(begun + within_s)
            if heard is None:
                missed += 1
            else:
                missed = 0
                took.append(1000 * (time.monotonic() - begun))
        return asked, took

    def count_answers(self, address: str, count: int, within_s: float) -> int:
        """Return the number of answers to a burst of `count` requests."""
        heard = 0
        for number in range(count):
            self.ask(address)
            until = time.monotonic() + (PACE_S if number < count - 1 else within_s)
            while True:
                answer = self.next_answer(until)
                if answer is None:
                    break
                heard += answer[0] == address
        return heard


def probe_cable(
    device: str, sender: str, far: str, others: list[str], count: int, burst: int, within_s: float
) -> dict[str, Any]:
    """Return the answers on an interface: for the far end's address, and for others of the experiment."""
    card = list_nics().get(device)
    nobody: dict[str, Any] = {"macs": {}, "asked": 0, "took_ms": [], "burst": 0, "answered": 0}
    if card is None or not card["carrier"]:
        return dict(nobody, why=f"{device} has no link" if card else f"there is no {device}")
    own = [each.partition("/")[0] for each in card["addresses"]]
    try:
        cable = CableProbe(device, card["mac"], sender if sender in own else "0.0.0.0")
    except AgentRefusedError as error:
        return _probe_by_ping(device, far, count, within_s) if far and sender in own else dict(nobody, why=str(error))
    with cable.socket:
        macs = cable.answering_macs([*([far] if far else []), *others])
        if far not in macs:
            return dict(nobody, macs=macs, asked=2, why="")
        asked, took = cable.round_trips(far, count, within_s)
        answered = cable.count_answers(far, burst, within_s) if burst else 0
        return {"macs": macs, "asked": asked, "took_ms": took, "burst": burst, "answered": answered, "why": ""}


def _probe_by_ping(device: str, far: str, count: int, within_s: float) -> dict[str, Any]:
    """Probe a cable without raw sockets, by pings that no router forwards and the neighbour table."""
    command = ["ping", "-n", "-c", str(count), "-i", "0.2", "-W", str(max(1, round(within_s))), "-t", "1"]
    done = subprocess.run([*command, "-I", device, far], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    words = done.stdout.decode(errors="replace").split()
    took = [float(word[len("time=") :]) for word in words if word.startswith("time=")]
    entries = json.loads(call("ip", "-j", "neigh", "show", far, "dev", device) or "[]")
    macs = [each["lladdr"] for each in entries if "lladdr" in each]
    found = {far: macs} if macs else {}
    why = "" if took or macs else "no answer to ping"
    return {"macs": found, "asked": count, "took_ms": took, "burst": 0, "answered": 0, "why": why}
