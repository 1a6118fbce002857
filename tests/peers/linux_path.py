"""Program of user-mode Linux: TCP connections of the kernel through a path, as in `against_ns3`.

A client, a router and a server are network namespaces. The slow line is netem's rate at the router with a limit of
packets; all propagation delay is at the server, on the return path. Standard input has paths as a JSON list, standard
output the list of their results. All paths run at the same virtual time, each in a process.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

PORT = 5201
CLONE_NEWNET = 0x4000_0000
BYTES_RECEIVED, BYTES_RECEIVED_AT = struct.Struct("=Q"), 128
"""A field of `struct tcp_info`."""
LINE_OVERHEAD_BYTES = 24
SAMPLE_S = 0.1
SYSCTLS = {"tcp_recovery": 0, "tcp_early_retrans": 0, "tcp_frto": 0, "tcp_no_metrics_save": 1}
"""Settings that disable the mechanisms that `against_ns3` leaves out."""

WITHOUT_PUSH = "pedit munge offset 33 u8 set 0 retain 0x08"
"""Rule that clears PSH in the TCP header after an IPv4 header without options."""


LIBC = ctypes.CDLL(None, use_errno=True)


def run(command: str) -> str:
    """Run a command."""
    return subprocess.run(command.split(), check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def namespace(name: str) -> Iterator[None]:
    """Put this thread into a network namespace."""
    with Path(f"/run/netns/{name}").open("rb") as file, Path("/proc/thread-self/ns/net").open("rb") as own:
        if LIBC.setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            LIBC.setns(own.fileno(), 0)


def open_socket(name: str) -> socket.socket:
    """Return a socket of a namespace."""
    with namespace(name):
        return socket.socket()


def set_up_namespaces(path: Mapping[str, Any], names: Sequence[str]) -> None:
    """Make the namespaces of client and server, and their links; the router is a new namespace of this process."""
    if LIBC.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    for role, name in zip(("client", "server"), names, strict=True):
        run(f"ip netns add {name}")
        run(f"ip link add {role} type veth peer name eth0 netns {name}")
        run(f"ip link set {role} up")
    run("ip address add 10.0.1.1/24 dev client")
    run("ip address add 10.0.2.1/24 dev server")
    addresses = (("10.0.1.2/24", "10.0.1.1"), ("10.0.2.2/24", "10.0.2.1"))
    for name, (address, gateway) in zip(names, addresses, strict=True):
        run(f"ip -n {name} link set lo up")
        # Without segments to be split by hardware.
        run(f"ip -n {name} link set eth0 gso_max_segs 1 up")
        run(f"ip -n {name} address add {address} dev eth0")
        run(f"ip -n {name} route add default via {gateway}")
        with namespace(name):
            for key, value in (SYSCTLS | {"tcp_congestion_control": path["control"]}).items():
                Path(f"/proc/sys/net/ipv4/{key}").write_text(str(value), encoding="ascii")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    line = f"rate {path['rate_bps']}bit {LINE_OVERHEAD_BYTES} limit {path['packets']}"
    run(f"tc qdisc add dev server root netem {line}")
    run(f"tc -n {names[1]} qdisc add dev eth0 root netem delay {path['round_trip_us']}us limit 100000")
    if not path["push"]:
        run("tc qdisc add dev client clsact")
        run(f"tc filter add dev client ingress protocol ip u32 match ip protocol 6 0xff action {WITHOUT_PUSH}")


def receive_stream(listener: socket.socket, accepted: list[socket.socket], connections: int) -> None:
    """Accept and read all connections.

    A read ends after 1 MiB, but the kernel copies what arrives at once, so that TCP sees a program that reads at once,
    and user-mode Linux changes to the program 700 times less often.
    """

    def read(connection: socket.socket) -> None:
        data = bytearray(1 << 20)
        while connection.recv_into(data, 0, socket.MSG_WAITALL):
            pass

    for _ in range(connections):
        accepted.append(listener.accept()[0])
        threading.Thread(target=read, args=(accepted[-1],), daemon=True).start()


def received_bytes(accepted: Sequence[socket.socket]) -> int:
    """Return the bytes that have arrived in order on all connections."""
    infos = [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256) for each in accepted]
    return sum(BYTES_RECEIVED.unpack_from(info, BYTES_RECEIVED_AT)[0] for info in infos)


def send_stream(sender: socket.socket, at: float) -> None:
    """Connect at a time, and send forever."""
    time.sleep(max(0, at - time.monotonic()))
    sender.connect(("10.0.2.2", PORT))
    data = bytes(1 << 16)
    while True:
        sender.sendall(data)


class SlowLine:
    """Counters of the slow line."""

    def __init__(self) -> None:
        self.route = IPRoute()
        self.index = self.route.link_lookup(ifname="server")[0]

    def counters(self) -> tuple[int, int, int]:
        """Return the packets sent, dropped, and in the queue."""
        (found,) = self.route.get_qdiscs(index=self.index)
        stats = found.get_attr("TCA_STATS2")
        basic, queue = stats.get_attr("TCA_STATS_BASIC"), stats.get_attr("TCA_STATS_QUEUE")
        return basic["packets"], queue["drops"], queue["qlen"]


def measure_path(number: int, path: Mapping[str, Any], result: Connection) -> None:
    """Run a path, send its result, and end."""
    names = f"client{number}", f"server{number}"
    set_up_namespaces(path, names)
    listener = open_socket(names[1])
    listener.bind(("10.0.2.2", PORT))
    listener.listen(64)
    accepted: list[socket.socket] = []
    threading.Thread(target=receive_stream, args=(listener, accepted, path["connections"]), daemon=True).start()
    start = time.monotonic() + 1
    for late in path["starts_s"]:
        threading.Thread(target=send_stream, args=(open_socket(names[0]), start + late), daemon=True).start()
    time.sleep(start + path["warm_up_s"] - time.monotonic())
    line = SlowLine()
    before, bytes_before, queued, samples = line.counters(), received_bytes(accepted), 0, 0
    while (left := start + path["seconds"] - time.monotonic()) > 0:
        time.sleep(min(left, SAMPLE_S))
        queued, samples = queued + line.counters()[2], samples + 1
    after, bytes_after = line.counters(), received_bytes(accepted)
    seconds = path["seconds"] - path["warm_up_s"]
    sent, dropped = (after[i] - before[i] for i in (0, 1))
    found = {
        "goodput_bps": (bytes_after - bytes_before) * 8 / seconds,
        "loss": dropped / (sent + dropped),
        "in_queue_s": queued / samples / (sent / seconds),
    }
    result.send(found)
    # Its threads never end.
    os._exit(0)


def main() -> None:
    """Run the paths of standard input."""
    paths = json.load(sys.stdin)
    results = []
    context = multiprocessing.get_context("fork")
    for number, path in enumerate(paths):
        result, writer = context.Pipe(duplex=False)
        context.Process(target=measure_path, args=(number, path, writer)).start()
        writer.close()
        results.append(result)
    # The end of a process without a result ends its pipe.
    print(json.dumps([result.recv() for result in results]))


if __name__ == "__main__":
    main()
