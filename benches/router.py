"""Measure `qos-router` against the kernel in the same namespaces; print a section for internals/performance.md.

    python benches/router.py [--seconds 2] [--pairs 5] [--write]

Throughput: a UDP flood from the client, counted at the server's interface, alternately through `qos-router` (links of
10 Gb/s, so that they do not limit) and through the kernel with HTB on the outgoing interface. The flood comes from
iperf3, like in an experiment, and from `flood`, with one or 32 ("batches") datagrams per system call; each with its
shortest packets and with full ones. The kernel forwards within the sender's system call, `qos-router` in the daemon on
another core. So with free cores the ratio tends to the quotient of the sender's and the daemon's processor time per
packet; with competing work the daemon loses a second share. Offloads are off.

Spacing: a flood of twice the rate into a link of `qos-router`, and into the kernel with TBF of the same rate; the
kernel stamps arrivals at the server, which runs nothing else during the test.

Needs `cargo build --release -p qos-router -p flood`, ethtool, iperf3, tc and an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(ROOT / "tests")]

from dataplane import SERVER, SINK, DataPlaneLab, configuration, ping, spawn_sink  # noqa: E402

FLOOD = ROOT / "target" / "release" / "flood"
HEADING = "## qos-router"

NOTE = """\
A flood goes alternately through the router and through the kernel (`benches/router.py`). The kernel forwards within the
sender's system call; `qos-router` forwards on another core. The table has their times per packet, so with free cores
the ratio tends to their quotient, unless the tool itself is the limit. The gap error is the difference between the
spacing of two neighbouring packets and that of the rate. The kernel's timer works in interrupts; `qos-router` is a
process that needs the processor: if others compete for it, the last two columns show it, while its rate stays exact.
"""

#: Programs of the distribution that this starts.
TOOLS = ("ethtool", "iperf3", "ip", "tc", "nsenter", "unshare")
#: IP bytes of a packet: the least that a tool can send, and a full one.
SHORTEST, FULL = "shortest", "1500 bytes"
#: Ethernet header.
FRAME = 14
#: IPv4 and UDP.
HEADERS = 28
FAST_BPS = 10_000_000_000
#: Seconds in which all that waits behind a limiter has left.
DRAIN_S = 1.5
#: Datagrams that `flood` hands over in a system call.
BATCH = 32
#: Rates for accuracy and spacing, bits of frames per second.
RATES = (1_000_000, 10_000_000, 100_000_000)

#: Bytes of a slot of the ring below: its header and the headers of a frame.
SLOT = 128
BLOCK = 65_536
#  Keeps the kernel's receive stamps of the requested number of frames in a ring (packet(7), TPACKET_V2), and prints
# them
#: in ns, one a line, on SIGTERM: until then it sleeps, so that it takes no processor from a limiter.
STAMPS = f"""
import mmap, signal, socket, struct, sys
slots = int(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
s.setsockopt(263, 10, 1)  # PACKET_VERSION: TPACKET_V2
s.setsockopt(263, 17, 16)  # PACKET_TIMESTAMP: where the frame enters the interface's queue
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
s.setsockopt(263, 5, struct.pack("IIII", {BLOCK}, slots * {SLOT} // {BLOCK}, {SLOT}, slots))  # PACKET_RX_RING
ring = mmap.mmap(s.fileno(), slots * {SLOT})
s.bind(("eth0", 0x800))
print(flush=True)
signal.sigwait([signal.SIGTERM])
for slot in range(slots):
    status, *_, sec, ns = struct.unpack_from("IIIHHII", ring, slot * {SLOT})
    if not status & 1:
        break
    print(sec * 10**9 + ns)
else:
    sys.exit("the ring is full")
"""


def received_packets(lab: DataPlaneLab) -> int:
    """Return the number of packets that the server's interface has received."""
    line = next(line for line in lab.run("server", "cat /proc/net/dev").splitlines() if "eth0:" in line)
    return int(line.split(":")[1].split()[1])


def flood(
    lab: DataPlaneLab, size: int, seconds: float, packets_per_second: float = 10e6, *, batch: int = 1, spin_us: int = 30
) -> None:
    """Send a flood with `flood`, by default at a rate beyond its capacity; it skips overdue datagrams."""
    words = f"send {SERVER} --port {SINK} --size {size} --duration {seconds:g} --delay {1000 / packets_per_second:.6f}"
    lab.run("client", [str(FLOOD), *words.split(), *f"--batch {batch} --spin {spin_us}".split()])


def batches(lab: DataPlaneLab, size: int, seconds: float) -> None:
    """Send the same flood with many datagrams per system call."""
    flood(lab, size, seconds, batch=BATCH)


def iperf3(lab: DataPlaneLab, size: int, seconds: float) -> None:
    """Send a flood with iperf3."""
    server = lab.spawn("server", ["iperf3", "--server", "--one-off", "--forceflush"])
    assert server.stdout is not None
    while b"listening" not in server.stdout.readline():
        pass
    words = f"iperf3 --client {SERVER} --udp --bitrate 0 --length {size - HEADERS} --time {seconds:g}"
    lab.run("client", words)
    server.communicate(timeout=10)


def throughput(lab: DataPlaneLab, tool: Callable[[DataPlaneLab, int, float], None], size: int, seconds: float) -> float:
    """Return the packets per second that reach the server."""
    before = received_packets(lab)
    tool(lab, size, seconds)
    return (received_packets(lab) - before) / seconds


def spacing(lab: DataPlaneLab, rate: float, seconds: float, framing: int) -> tuple[float, float, float, float]:
    """Return the achieved rate relative to the requested one, and errors of the gaps: median, 99th percentile and
    maximum, in microseconds.

    `framing` is the number of bytes that the limiter counts beyond the frame.
    """
    size = 1500
    per_second = 2 * rate / 8 / (FRAME + size)
    blocks = math.ceil(per_second * (seconds + DRAIN_S) * SLOT / BLOCK)
    receiver = lab.spawn("server", [sys.executable, "-c", STAMPS, str(blocks * BLOCK // SLOT)])
    assert receiver.stdout is not None
    receiver.stdout.readline()
    flood(lab, size, seconds, per_second, spin_us=0)
    time.sleep(DRAIN_S)
    receiver.terminate()
    printed, failure = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, failure.decode()
    stamps = [int(word) for word in printed.split()]
    # The first packets find an empty bucket or line; what is left when the flood ends still leaves at the rate.
    stamps = stamps[len(stamps) // 10 :]
    ideal = (FRAME + size + framing) * 8e9 / rate
    gaps = [b - a for a, b in itertools.pairwise(stamps)]
    errors = sorted(abs(gap - ideal) / 1000 for gap in gaps)
    reached = ideal * len(gaps) / (stamps[-1] - stamps[0])
    return reached, errors[len(errors) // 2], errors[len(errors) * 99 // 100], errors[-1]


Tool = Callable[[DataPlaneLab, int, float], None]

#: Each with the IP bytes of its packets: iperf3's least payload is 16 bytes, and a datagram of `flood` carries 28.
FLOODS: dict[str, tuple[Tool, dict[str, int]]] = {
    "iperf3": (iperf3, {SHORTEST: 44, FULL: 1500}),
    "flood": (flood, {SHORTEST: 56, FULL: 1500}),
    "flood, batches": (batches, {SHORTEST: 56, FULL: 1500}),
}


def children() -> float:
    """Return the processor time of finished commands in seconds, including system calls."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu(lab: DataPlaneLab) -> float:
    """Return the processor time of the daemon in seconds, including system calls."""
    assert lab.process is not None
    return int(Path(f"/proc/{lab.process.pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9


def kernel_lab() -> DataPlaneLab:
    """Yield the same nodes with the kernel forwarding between its links."""
    lab = DataPlaneLab(daemon=False)
    spawn_sink(lab)
    ping(lab, "client", SERVER, 2)
    return lab


def router_lab(rate_bps: int) -> DataPlaneLab:
    """Yield the lab with `qos-router` and a link of this rate to the server."""
    lab = DataPlaneLab(rates_bps=(FAST_BPS, rate_bps))
    spawn_sink(lab)
    lab.ask("configure", config=configuration())
    ping(lab, "client", SERVER, 2)
    return lab


def compare_throughput(seconds: float, pairs: int) -> list[str]:
    """Return the rows of the throughput table."""
    rows = [
        "| flood from | packets | qos-router, packets/s | kernel with HTB, packets/s | ratio, median of pairs "
        "| least, greatest | daemon's time a packet, µs | kernel path's with sender, µs | quotient |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    with router_lab(FAST_BPS) as ours, kernel_lab() as theirs:
        theirs.run("R1", "tc qdisc add dev Fa0-1 root handle 1: htb default 1")
        theirs.run("R1", "tc class add dev Fa0-1 parent 1: classid 1:1 htb rate 10gbit")
        cases = [(tool, send, *size) for tool, (send, sizes) in FLOODS.items() for size in sizes.items()]
        for tool, send, name, size in cases:
            results = []
            busy, passed = cpu(ours), ours.ask("health")["transmitted"]
            senders = [0.0, 0.0]  # seconds, packets
            for number in range(pairs):
                labs = [ours, theirs] if number % 2 == 0 else [theirs, ours]
                values = {}
                for lab in labs:
                    before = children()
                    values[id(lab)] = throughput(lab, send, size, seconds)
                    if lab is theirs:
                        senders[0] += children() - before
                        senders[1] += values[id(lab)] * seconds
                results.append((values[id(ours)], values[id(theirs)]))
            ratios = sorted(a / b for a, b in results)
            a, b = (statistics.median(column) for column in zip(*results, strict=True))
            median, spread = statistics.median(ratios), f"{ratios[0]:.2f}, {ratios[-1]:.2f}"
            cost = (cpu(ours) - busy) * 1e6 / (ours.ask("health")["transmitted"] - passed)
            kernel = senders[0] * 1e6 / senders[1]
            costs = f"{cost:.1f} | {kernel:.1f} | {kernel / cost:.2f}"
            rows.append(f"| {tool} | {name} | {a:,.0f} | {b:,.0f} | {median:.2f} | {spread} | {costs} |")
    return rows


def compare_spacing(seconds: float) -> list[str]:
    """Return the rows of the table of rate and spacing."""
    rows = [
        "| limiter | rate, Mb/s | measured ÷ configured | gap error: median, µs | 99 %, µs | greatest, µs |",
        "|---|---|---|---|---|---|",
    ]

    def row(name: str, rate: float, values: tuple[float, float, float, float]) -> str:
        reached, *errors = values
        return f"| {name} | {rate / 1e6:g} | {reached:.5f} | " + " | ".join(f"{e:,.1f}" for e in errors) + " |"

    for rate in RATES:
        with router_lab(rate) as lab:
            rows.append(row("qos-router, line", rate, spacing(lab, rate, seconds, 24)))
        with kernel_lab() as lab:
            lab.run("R1", f"tc qdisc add dev Fa0-1 root tbf rate {rate}bit burst 1600 limit 150000")
            rows.append(row("kernel TBF", rate, spacing(lab, rate, seconds, 0)))
    return rows


def main() -> None:
    """Measure, print, and write if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    options = parser.parse_args()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        parser.error(f"not found: {', '.join(missing)}; install them (`./qoslab test` does), or add them to PATH")
    lines = [HEADING, "", f"{page.machine()}.", "", NOTE]
    lines += [*compare_throughput(options.seconds, options.pairs), "", *compare_spacing(options.seconds)]
    section = "\n".join(lines) + "\n"
    page.print_summary(section, write_it=options.write)


if __name__ == "__main__":
    main()
