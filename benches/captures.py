"""Measure the speed of reading captures, against tshark in the same run; print a section for internals/performance.md.

    python benches/captures.py [--packets 388000] [--write]

The capture repeats the recorded one many times; tshark is asked for the same fields. Both read a file in memory. The
table shows the fastest of three runs of the reader and the only run of tshark. "To IO graph" is the work of a report:
read, and bin by flow.

Needs `cargo build --release -p qos-pcap` and tshark.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import page

from qoslab.analysis.packets import bin_packets
from qoslab.capture.packet_tables import read_packets

HEADING = "## Captures"
RECORDED = Path(__file__).resolve().parents[1] / "tests/recorded/capture/four-streams.pcapng"
PACKETS_OF_IT = 628
FIELDS = ("frame.time_epoch", "frame.len", "ip.src", "ip.dst", "ip.proto", "tcp.srcport", "tcp.dstport")


def make(file: Path, packets: int) -> int:
    """Write a capture of about so many packets by repeating the recorded one; return the exact number."""
    times = max(1, packets // PACKETS_OF_IT)
    file.write_bytes(RECORDED.read_bytes() * times)
    return times * PACKETS_OF_IT


def seconds(work: Callable[[], object]) -> float:
    """Wall time."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(packets: int) -> list[str]:
    """Return the section."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.pcapng"
        count = make(file, packets)
        command = ["tshark", "-n", "-r", str(file), "-T", "fields", *(word for each in FIELDS for word in ("-e", each))]
        tshark = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
        reads = min(seconds(lambda: sum(map(len, read_packets(file)))) for _ in range(3))
        graphs = min(seconds(lambda: bin_packets(read_packets(file))) for _ in range(3))
    return [
        f"| {count:,} packets | s | of tshark's time |",
        "|---|---|---|",
        f"| tshark, {len(FIELDS)} fields | {tshark:.2f} | 1 |",
        f"| `qos-pcap`, all columns as Arrow tables | {reads:.3f} | 1/{tshark / reads:.0f} |",
        f"| the same, to IO graph | {graphs:.3f} | 1/{tshark / graphs:.0f} |",
    ]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=388_000)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    arguments = parser.parse_args()
    head = page.head("Source: `benches/captures.py`; its docstring describes the measurement.")
    section = "\n".join([HEADING, "", head, "", *measure(arguments.packets), ""])
    page.print_summary(section, write_it=arguments.write)


if __name__ == "__main__":
    main()
