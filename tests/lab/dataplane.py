"""Router with a client and a server in network namespaces, driving the real `qos-router`.

Works as root and as an ordinary user: everything is in a new user namespace that ends with its processes.

    client eth0 ── Fa0-0 [qos-router] Fa0-0.in ── Fa0-0 [kernel] Fa0-1 ── Fa0-1.in [qos-router] Fa0-1 ── eth0 server
    10.0.10.10          R1.dp                10.0.10.1   R1   10.0.20.1             R1.dp                10.0.20.10
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from waiting import listens, wait_until

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "release" / "qos-router"

CLIENT, SERVER = "10.0.10.10", "10.0.20.10"
#: UDP port of the server that receives datagrams.
SINK = 5001
PORTS = {"FastEthernet0/0": "Fa0-0", "FastEthernet0/1": "Fa0-1"}
#: Maximum wait in seconds until a process is ready.
PATIENCE = 60.0


class DataPlaneLab:
    """Namespaces `client`, `server`, `R1` and `R1.dp`, and the daemon."""

    def __init__(
        self,
        *,
        rates_bps: tuple[int, int] = (100_000_000, 100_000_000),
        daemon: bool = True,
        options: Sequence[str] = (),
        follow: bool = True,
    ) -> None:
        """Build everything; `rates_bps` are those of the client's and the server's link.

        With `daemon=False` the kernel of R1 has the links directly (for comparison). With `follow=False` the daemon
        does not follow that kernel's routes, so the kernel forwards all packets.
        """
        self._stack = contextlib.ExitStack()
        self._follow = follow
        self._nodes: dict[str, int] = {}
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="qos-router-")))
        self.control = self.folder / "control.sock"
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._build(rates_bps, daemon)
            if daemon:
                self.start(options)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> DataPlaneLab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process; the namespaces end with them."""
        self._stack.close()

    # Building

    def _hold(self, command: list[str]) -> int:
        """Start a process that only holds its namespaces; return its id once it has entered them."""
        process = subprocess.Popen([*command, "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        assert process.stdout is not None
        if process.stdout.readline() != b"\n":
            raise RuntimeError(f"{command[0]} could not make namespaces; are unprivileged user namespaces allowed?")
        process.stdout.close()
        return process.pid

    def _build(self, rates_bps: tuple[int, int], daemon: bool) -> None:
        owner = self._hold(["unshare", "--user", "--map-root-user", "--net", "--mount"])
        self._nodes["owner"] = owner
        for node in ("client", "server", "R1", "R1.dp"):
            self._nodes[node] = self._hold([*self._enter("owner"), "unshare", "--net"])
        wiring: dict[str, Any] = {}
        hosts = ("client", "server")
        for (name, short), host, rate_bps in zip(PORTS.items(), hosts, rates_bps, strict=True):
            if daemon:
                self._pair(("R1", short), ("R1.dp", f"{short}.in"))
                self._pair((host, "eth0"), ("R1.dp", short))
                link = {"rate_bps": rate_bps, "framing": "ethernet", "delay_ns": 0}
                wiring[name] = {"inside": f"{short}.in", "wire": short, "link": link, "paced_by_peer": False}
            else:
                self._pair((host, "eth0"), ("R1", short))
        (self.folder / "ports.json").write_text(json.dumps({"ports": wiring}))
        self.run("R1", "sysctl -qw net.ipv4.ip_forward=1")
        for number, (short, host) in enumerate(zip(PORTS.values(), hosts, strict=True), 1):
            self.run("R1", f"ip address add 10.0.{number}0.1/24 dev {short}")
            self.run(host, f"ip address add 10.0.{number}0.10/24 dev eth0")
            self.run(host, f"ip route add default via 10.0.{number}0.1")

    def _pair(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        (a, x), (b, y) = one, other
        self.run("owner", f"ip link add {x} netns {self._nodes[a]} type veth peer name {y} netns {self._nodes[b]}")
        for node, interface in (one, other):
            self.run(node, f"sysctl -qw net.ipv6.conf.{interface.replace('.', '/')}.disable_ipv6=1")
            self.run(node, f"ethtool -K {interface} tso off gso off gro off tx off rx off sg off")
            # Resolved addresses are permanent, so the packets that tests count contain no ARP.
            keep = "base_reachable 3600000 delay_probe 3600000"
            self.run(node, f"ip ntable change name arp_cache dev {interface} {keep}")
            self.run(node, f"ip link set {interface} up")

    # Running things

    def _enter(self, node: str) -> list[str]:
        return ["nsenter", "-t", str(self._nodes[node]), "-U", "-m", "-n", "--preserve-credentials"]

    def run(self, node: str, command: str | Sequence[str]) -> str:
        """Run a command in a node to its end and return its output; raise if it fails."""
        words = command.split() if isinstance(command, str) else list(command)
        done = subprocess.run([*self._enter(node), *words], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{node}: {' '.join(words)}: exit status {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def spawn(self, node: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command in a node; it is killed with the lab."""
        process = subprocess.Popen([*self._enter(node), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def python(self, node: str, code: str, *arguments: str) -> str:
        """Run Python code in a node and return its output."""
        return self.run(node, [sys.executable, "-c", code, *arguments])

    # The daemon

    def start(self, options: Sequence[str] = ()) -> None:
        """Start the daemon and wait until it answers."""
        ports = self.folder / "ports.json"
        files = ["--ports", str(ports), "--control", str(self.control)]
        if self._follow:
            files += ["--kernel-netns", f"/proc/{self._nodes['R1']}/ns/net"]
        self.process = self.spawn("R1.dp", [str(BINARY), "--name", "R1", *files, *options])
        wait_until(self._answers, "qos-router answers on its control socket", PATIENCE)

    def _answers(self) -> bool:
        """Return whether the daemon accepts connections: its socket exists before it listens."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"qos-router: {self.process.communicate()[1].decode()}")
        return listens(self.control)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the daemon."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def ask(self, op: str, **keys: Any) -> dict[str, Any]:
        """Send one request and return the reply, which must not be a refusal."""
        reply = json.loads(self.talk(json.dumps({"op": op, **keys}).encode() + b"\n"))
        assert reply["ok"], reply
        assert isinstance(reply, dict)
        return reply

    def talk(self, data: bytes) -> bytes:
        """Send bytes on a new connection, close that direction, and return the whole answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.control))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))


def configuration(
    policy_maps: dict[str, Any] | None = None, *, generation: str = "classic", **ports: dict[str, Any]
) -> dict[str, Any]:
    """Return a complete configuration; `ports` are keys of interfaces, such as `Fa0_1={"service_policy_output":
    "P"}`.
    """
    interfaces = {}
    for name, short in PORTS.items():
        keys = ports.get(short.replace("-", "_"), {})
        interfaces[name] = {"enabled": True, "bandwidth_kbps": 100_000, **keys}
    return {
        "format": 1,
        "router": "R1",
        "generation": generation,
        "policy_maps": policy_maps or {},
        "interfaces": interfaces,
    }


def policy(**actions: Any) -> dict[str, Any]:
    """Return a policy-map with these actions in class-default."""
    return {"classes": [{"name": "class-default", **actions}]}


@contextlib.contextmanager
def stop_process(lab: DataPlaneLab) -> Iterator[None]:
    """Stop the daemon for the length of the block."""
    lab.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        lab.signal(signal.SIGCONT)


def missing_tools() -> list[str]:
    """Return the missing commands that the lab needs."""
    return [tool for tool in ("unshare", "nsenter", "ip", "ethtool", "sysctl") if shutil.which(tool) is None]


def ping(
    lab: DataPlaneLab, node: str, address: str, count: int = 5, interval: float = 0.02, wait: float = PATIENCE
) -> list[float]:
    """Return the round-trip times in seconds of the answered echo requests; `wait`: seconds for each."""
    script = Path(__file__).with_name("ping.py")
    answered, *times = lab.run(
        node, [sys.executable, str(script), address, str(count), str(interval), str(wait)]
    ).split()
    assert len(times) == int(answered)
    return [float(t) for t in times]


def _udp(size: int, count: int, rate_bps: float) -> list[str]:
    script = Path(__file__).with_name("udp.py")
    return [sys.executable, str(script), SERVER, str(SINK), str(size), str(count), str(rate_bps)]


def send_udp(lab: DataPlaneLab, size: int, count: int, rate_bps: float) -> list[float]:
    """Send datagrams from the client to the sink; return their departure times in seconds."""
    return [float(word) for word in lab.run("client", _udp(size, count, rate_bps)).split()]


def spawn_udp(lab: DataPlaneLab, size: int, count: int, rate_bps: float) -> subprocess.Popen[bytes]:
    """Send datagrams like `send_udp`, in the background; print the times at the end."""
    return lab.spawn("client", _udp(size, count, rate_bps))


def conforming_bytes(times: Sequence[float], size: int, cir_bps: float, bc: int) -> int:
    """Return the bytes of packets of one size at these times that conform to a single-rate policer."""
    tokens, last, passed = float(bc), times[0], 0
    for moment in times:
        tokens, last = min(bc, tokens + (moment - last) * cir_bps / 8), moment
        if tokens >= size:
            tokens -= size
            passed += size
    return passed


def spawn_sink(lab: DataPlaneLab) -> None:
    """Bind the destination port of `send_udp`, so that the server does not answer with ICMP."""
    code = f"""import socket, time
s = socket.socket(type=socket.SOCK_DGRAM)
s.bind(("", {SINK}))
print(flush=True)
time.sleep(3600)"""
    process = lab.spawn("server", [sys.executable, "-c", code])
    assert process.stdout is not None
    process.stdout.readline()


@contextlib.contextmanager
def with_sink() -> Iterator[DataPlaneLab]:
    """Yield a lab whose server receives the datagrams."""
    assert BINARY.exists(), f"{BINARY} is missing: run cargo build --release -p qos-router"
    assert not missing_tools(), f"install {missing_tools()}"
    with DataPlaneLab() as lab:
        spawn_sink(lab)
        yield lab
