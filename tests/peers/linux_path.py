"""Program of user-mode Linux: TCP connections of the kernel through a path, as in `against_ns3`.

A client, a router and a server are network namespaces. The slow line is netem's rate at the router with a limit of
packets; all propagation delay is at the server, on the return path. Standard input has the path as JSON, standard
output the result.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

PORT = 5201
LINE_OVERHEAD_BYTES = 24
SAMPLE_S = 0.1
SYSCTLS = {"tcp_recovery": 0, "tcp_early_retrans": 0, "tcp_frto": 0, "tcp_no_metrics_save": 1}
"""Without the mechanisms that `against_ns3` leaves out, too."""

WITHOUT_PUSH = "pedit munge offset 33 u8 set 0 retain 0x08"
"""Clears PSH in the TCP header after an IPv4 header without options."""


def run(command: str) -> str:
    """Run a command."""
    return subprocess.run(command.split(), check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def namespace(name: str) -> Iterator[None]:
    """Put this thread into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/run/netns/{name}").open("rb") as file, Path("/proc/thread-self/ns/net").open("rb") as own:
        if libc.setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(own.fileno(), 0)


def socket_of(name: str) -> socket.socket:
    """Return a socket of a namespace."""
    with namespace(name):
        return socket.socket()


def set_up(path: Mapping[str, Any]) -> None:
    """Make the namespaces and their links; the router is the namespace of this process."""
    for name in ("client", "server"):
        run(f"ip netns add {name}")
        run(f"ip link add {name} type veth peer name eth0 netns {name}")
        run(f"ip link set {name} up")
    run("ip address add 10.0.1.1/24 dev client")
    run("ip address add 10.0.2.1/24 dev server")
    for name, address, gateway in (("client", "10.0.1.2/24", "10.0.1.1"), ("server", "10.0.2.2/24", "10.0.2.1")):
        run(f"ip -n {name} link set lo up")
        # Without segments that the hardware would cut.
        run(f"ip -n {name} link set eth0 gso_max_segs 1 up")
        run(f"ip -n {name} address add {address} dev eth0")
        run(f"ip -n {name} route add default via {gateway}")
        with namespace(name):
            for key, value in (SYSCTLS | {"tcp_congestion_control": path["control"]}).items():
                Path(f"/proc/sys/net/ipv4/{key}").write_text(str(value), encoding="ascii")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    line = f"rate {path['rate_bps']}bit {LINE_OVERHEAD_BYTES} limit {path['packets']}"
    run(f"tc qdisc add dev server root netem {line}")
    run(f"tc -n server qdisc add dev eth0 root netem delay {path['round_trip_us']}us limit 100000")
    if not path["push"]:
        run("tc qdisc add dev client clsact")
        run(f"tc filter add dev client ingress protocol ip u32 match ip protocol 6 0xff action {WITHOUT_PUSH}")


received = 0


def receive(listener: socket.socket, connections: int) -> None:
    """Count what arrives on all connections."""

    def count(connection: socket.socket) -> None:
        global received
        while got := len(connection.recv(1 << 16)):
            received += got

    for _ in range(connections):
        threading.Thread(target=count, args=(listener.accept()[0],), daemon=True).start()


def send(sender: socket.socket, at: float) -> None:
    """Connect at a time, and send for ever."""
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
        """Return packets sent and dropped, and packets in its queue."""
        (found,) = self.route.get_qdiscs(index=self.index)
        stats = found.get_attr("TCA_STATS2")
        basic, queue = stats.get_attr("TCA_STATS_BASIC"), stats.get_attr("TCA_STATS_QUEUE")
        return basic["packets"], queue["drops"], queue["qlen"]


def main() -> None:
    """Run the path of standard input."""
    path = json.load(sys.stdin)
    set_up(path)
    listener = socket_of("server")
    listener.bind(("10.0.2.2", PORT))
    listener.listen(64)
    threading.Thread(target=receive, args=(listener, path["connections"]), daemon=True).start()
    start = time.monotonic() + 1
    for late in path["starts_s"]:
        threading.Thread(target=send, args=(socket_of("client"), start + late), daemon=True).start()
    time.sleep(start + path["warm_up_s"] - time.monotonic())
    line = SlowLine()
    before, bytes_before, queued, samples = line.counters(), received, 0, 0
    while (left := start + path["seconds"] - time.monotonic()) > 0:
        time.sleep(min(left, SAMPLE_S))
        queued, samples = queued + line.counters()[2], samples + 1
    after = line.counters()
    seconds = path["seconds"] - path["warm_up_s"]
    sent, dropped = (after[i] - before[i] for i in (0, 1))
    result = {
        "goodput_bps": (received - bytes_before) * 8 / seconds,
        "loss": dropped / (sent + dropped),
        "in_queue_s": queued / samples / (sent / seconds),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Its threads never end.
    os._exit(0)
