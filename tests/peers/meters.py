"""Random meters and their packets, and the decisions of the engine's policers on them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from peer_programs import FOLDER, compile_program, engine_program, package_version, pkg_config

PACKET = np.dtype([("arrival", "<u8"), ("bytes", "<u4")])
"""Packet in the form that the programs read."""

Packets = npt.NDArray[np.void]
Colours = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Meter:
    """Meter: rates in bytes per second, bursts in bytes; without a peak rate it has one rate.

    Without an excess burst it has one bucket.
    """

    cir_bytes: int
    bc_bytes: int
    pir_bytes: int = 0
    be_bytes: int = 0

    @property
    def algorithm(self) -> str:
        """Return the name of the algorithm."""
        return "two rates, RFC 2698" if self.pir_bytes else "one rate, RFC 2697" if self.be_bytes else "one bucket"


@dataclass(frozen=True)
class Quantum:
    """Periods of a peer's rates, in ticks of its clock, and the bytes per period."""

    cir_period: int
    cir_bytes: int
    pir_period: int = 0
    pir_bytes: int = 0


def random_burst(random: np.random.Generator) -> int:
    """Return a burst of 1,518 to 200,000 bytes."""
    return int(np.exp(random.uniform(np.log(1518), np.log(200_000))))


def random_packets(random: np.random.Generator, count: int, rate_bytes: int, grid: int, per_second: int) -> Packets:
    """Return packets of 64 to 1518 bytes that offer 0.5 to 3 times a rate (bytes per second), partly in bursts.

    Arrivals are multiples of `grid`, in ticks of a clock of `per_second` ticks per second.
    """
    packets = np.zeros(count, PACKET)
    packets["bytes"] = random.integers(64, 1519, count)
    load = random.uniform(0.5, 3)
    together = random.integers(1, 20)  # packets that arrive at the same time, on average
    mean = 791 / (rate_bytes * load) * per_second / grid * together
    gaps = np.where(random.random(count) < 1 / together, random.exponential(mean, count), 0)
    packets["arrival"] = np.cumsum(np.rint(gaps).astype(np.uint64)) * np.uint64(grid)
    return packets


def write_packets(path: Path, streams: Iterable[Packets]) -> Path:
    """Write the packets of all meters."""
    with path.open("wb") as file:
        for packets in streams:
            packets.tofile(file)
    return path


def engine_colours(name: str, meters: Sequence[tuple[int, int, int, int]], streams: Sequence[Packets]) -> Colours:
    """Return the engine's decisions; each meter has CIR (b/s), bc (bytes), PIR (b/s), be (bytes)."""
    lines = [f"{' '.join(map(str, meter))} {len(packets)}\n" for meter, packets in zip(meters, streams, strict=True)]
    return _colours(engine_program("meter"), f"engine-{name}", lines, streams)


def rte_meter() -> Path:
    """Build the program with DPDK's meters."""
    package_version("libdpdk-dev")
    return compile_program("rte_meter.c", "gcc", ["-O2", *pkg_config("--cflags", "libdpdk"), "-l:librte_meter.a"])


def rte_lines(per_second: int, meter: Meter, count: int) -> str:
    """Return the line of a meter for `rte_meter`."""
    numbers = (per_second, meter.cir_bytes, meter.bc_bytes, meter.pir_bytes, meter.be_bytes, count)
    return " ".join(map(str, numbers)) + "\n"


def rte_quantum(per_second: int, meter: Meter) -> Quantum:
    """Return the quantum of a meter, from `rte_meter`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "quantum.meters"
    path.write_text(rte_lines(per_second, meter, 0), encoding="ascii")
    printed = subprocess.run([rte_meter(), path], capture_output=True, text=True, check=True).stdout
    return Quantum(*map(int, printed.split()))


def rte_colours(name: str, meters: Sequence[tuple[int, Meter]], streams: Sequence[Packets]) -> Colours:
    """Return the decisions of `rte_meter`; each meter is given with the ticks per second of its clock."""
    lines = [rte_lines(*meter, len(packets)) for meter, packets in zip(meters, streams, strict=True)]
    return _colours(rte_meter(), f"rte-{name}", lines, streams)


def _colours(program: Path, name: str, lines: Sequence[str], streams: Sequence[Packets]) -> Colours:
    FOLDER.mkdir(parents=True, exist_ok=True)
    meters, colours = FOLDER / f"{name}.meters", FOLDER / f"{name}.colours"
    meters.write_text("".join(lines), encoding="ascii")
    packets = write_packets(FOLDER / f"{name}.packets", streams)
    with colours.open("wb") as file:
        subprocess.run([program, meters, packets], stdout=file, check=True, timeout=900)
    packets.unlink()
    found = np.fromfile(colours, np.uint8)
    colours.unlink()
    if len(found) != sum(map(len, streams)):
        raise RuntimeError(f"{program.name} coloured {len(found)} of {sum(map(len, streams))} packets")
    return found
