"""Trace TCP of 2008 behind a policer, simulated and on this machine's kernel; for internals/simulator.md.

    python benches/timeouts.py [--repetitions 5] [--write]

The arm `policed` of `policing-vs-shaping`, with a capture at the sender. Four connections lose most segments of each
burst and are silent until their timeouts, so these determine the shares. The counts of each capture: silences of more
than 200 ms that end with a retransmission; how many of them end within 2 ms of another connection's; and how often the
first SACK of a reordered segment triggers an immediate retransmission, before any further SACK. The simulation uses the
duplicate-ACK threshold of the profile (three), and RACK.

Needs the programs of `crates/` (`cargo build --locked --release`), tshark, and a quiet machine for some minutes.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import page
from ruamel.yaml import YAML

from qoslab.model.experiment import TCP_PROFILES
from qoslab.results import RunFolder, find_run, tables

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"
NAME, ARM, SENDER = "policing-vs-shaping", "policed", "client"
DOCUMENT = ROOT / "docs" / "internals" / "simulator.md"
HEADING = "### Timeouts behind a policer"
SILENCE_S, TOGETHER_S, AT_ONCE_S = 0.2, 0.002, 0.0005
LIMIT = 14
"""Number of lines of a trace."""
FIELDS = ("frame.time_relative", "tcp.stream", "tcp.dstport", "tcp.seq", "tcp.len", "tcp.ack", "tcp.options.sack_le")
OUTPUT_PATTERN = (
    "The last column shows whether a kernel repairs by RACK: from Linux 6.17 on it does, although the profile asks "
    "for a count of three reports. Timeouts of 300 ms end on ticks of 4 ms at multiples of 32 ms, here as there, so "
    "those of connections that lost in one burst end together; on a machine with several processors some are a tick "
    "late, which is not modelled and parts them."
)
"""Conclusions from the table."""
PORT = "5201"
"""Port of the receiver."""


@dataclass(frozen=True)
class Segment:
    """Segment in the capture of the sender."""

    time_s: float
    stream: str
    sent: bool
    sequence: int
    length: int
    acknowledged: int
    reported: tuple[int, ...]
    """Starts of the SACK blocks beyond a gap."""

    def line(self, since_s: float, first: int) -> str:
        """Return a line of a trace; bytes are counted from `first`."""
        at = f"{(self.time_s - since_s) * 1e3:9.3f} ms"
        if self.sent:
            return f"{at}  sends {self.sequence - first}"
        beyond = "".join(f", has {each - first} and more" for each in self.reported)
        return f"{at}              acknowledges {self.acknowledged - first}{beyond}"


@dataclass
class Trace:
    """Captures of a variant."""

    goodput_kbps: list[float] = field(default_factory=list)
    dropped_percent: list[float] = field(default_factory=list)
    silences_s: list[float] = field(default_factory=list)
    together: int = 0
    first_reports: int = 0
    at_once: int = 0
    example: list[str] = field(default_factory=list)

    def add(self, capture: Path) -> None:
        """Count a capture."""
        by_stream: dict[str, list[Segment]] = defaultdict(list)
        for segment in read(capture):
            by_stream[segment.stream].append(segment)
        ends: list[tuple[float, str]] = []
        for stream, segments in by_stream.items():
            for silence, end in silences(segments):
                self.silences_s.append(silence)
                ends.append((end, stream))
            self._first_reports(segments)
        for end, stream in ends:
            self.together += any(abs(end - other) < TOGETHER_S for other, whose in ends if whose != stream)

    def _first_reports(self, segments: Sequence[Segment]) -> None:
        for number, segment in enumerate(segments):
            earlier = [each for each in segments[:number] if not each.sent]
            if segment.sent or not segment.reported or not earlier or earlier[-1].reported:
                continue
            self.first_reports += 1
            answer = next((each for each in segments[number + 1 :] if each.sent), None)
            if answer is None or answer.time_s - segment.time_s > AT_ONCE_S or answer.sequence > segment.reported[0]:
                continue
            self.at_once += 1
            if not self.example:
                self.example = trace_text(segments[max(number - 5, 0) : number + LIMIT - 5])


def trace_text(segments: Sequence[Segment]) -> list[str]:
    """Return a trace as text."""
    first = min(each.sequence for each in segments if each.sent)
    return [each.line(segments[0].time_s, first) for each in segments]


def silences(segments: Sequence[Segment]) -> Iterator[tuple[float, float]]:
    """Return the length and the end of each silence that a retransmitted segment ended, in seconds."""
    seen: set[int] = set()
    last = None
    for segment in segments:
        if not segment.sent or not segment.length:
            continue
        if last is not None and segment.time_s - last > SILENCE_S and segment.sequence in seen:
            yield segment.time_s - last, segment.time_s
        seen.add(segment.sequence)
        last = segment.time_s


def read(capture: Path) -> Iterator[Segment]:
    """Return the segments of the connections that carry the load."""
    words = [word for name in FIELDS for word in ("-e", name)]
    command = ["tshark", "-r", str(capture), "-o", "tcp.relative_sequence_numbers:TRUE", "-T", "fields", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    carried: dict[str, int] = defaultdict(int)
    for row in rows:
        carried[row[1]] += int(row[4] or 0)
    for time, stream, port, sequence, length, acknowledged, reported in rows:
        # Not iperf3's control connection.
        if carried[stream] > 50_000:
            blocks = tuple(int(each) for each in reported.split(",") if each)
            yield Segment(float(time), stream, port == PORT, int(sequence), int(length), int(acknowledged or 0), blocks)


def experiment(folder: Path, name: str, recovery: int) -> Path:
    """Return the arm of the shipped experiment with a capture at the sender and this setting."""
    document: dict[str, Any] = YAML(typ="safe").load(EXPERIMENTS / f"{NAME}.yml")
    profile = TCP_PROFILES["legacy-2008"].model_dump(mode="json") | {"recovery": recovery}
    document |= {"name": name, "tcp": profile, "arms": [arm for arm in document["arms"] if arm["name"] == ARM]}
    document["captures"] = [{"name": SENDER, "node": SENDER, "interface": "eth0", "filter": "tcp"}]
    for key in ("compare", "observe"):
        del document[key]
    made = folder / f"{name}.yml"
    YAML(typ="safe").dump(document, made)
    return made


def run(folder: Path, file: Path, lab: str, repetitions: int) -> RunFolder:
    """Run the experiment."""
    options = ["--lab", lab, "--repetitions", str(repetitions), "--attempts", "3"]
    command = [str(Path(sys.executable).with_name("qoslab")), "run", str(file), *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    return find_run(folder / "runs", file.stem)


def trace_run(folder: Path, name: str, recovery: int, lab: str, repetitions: int) -> Trace:
    """Run a variant and count."""
    made = run(folder, experiment(folder, name, recovery), lab, repetitions)
    trace = Trace()
    metric_values = tables.read_table(made, "metrics")
    for metric, values, unit in (
        ("goodput.sum", trace.goodput_kbps, 1e3),
        ("police.exceed_share", trace.dropped_percent, 0.01),
    ):
        values.extend(value / unit for value in metric_values[metric_values["metric"] == metric]["value"])
    for capture in sorted(made.path.glob(f"cells/*/*/captures/{SENDER}.pcapng")):
        trace.add(capture)
    return trace


def median_value(values: Sequence[float], digits: int) -> str:
    """Return median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def row(name: str, trace: Trace) -> str:
    """Return a line of the table."""
    count = len(trace.silences_s)
    milliseconds = statistics.median(trace.silences_s) * 1e3
    cells = (
        name,
        median_value(trace.goodput_kbps, 0),
        median_value(trace.dropped_percent, 1),
        f"{count}",
        f"{milliseconds:.0f}",
        f"{100 * trace.together / count:.0f} %",
        f"{trace.at_once} of {trace.first_reports}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each variant")
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/simulator.md")
    arguments = parser.parse_args()
    head = page.head("Source: `benches/timeouts.py`; its docstring describes the counts.")
    with tempfile.TemporaryDirectory(prefix="qoslab-timeouts-") as place:
        folder = Path(place)
        shutil.copytree(EXPERIMENTS / "templates", folder / "templates")
        variants = {
            "simulated": trace_run(folder, "counted", 0, "simulated", arguments.repetitions),
            "simulated, with RACK": trace_run(folder, "rack", 1, "simulated", arguments.repetitions),
            "virtual lab": trace_run(folder, "kernel", 0, "virtual", arguments.repetitions),
        }
    lines = [
        HEADING,
        "",
        head,
        "",
        "| TCP of 2008 | goodput, kb/s | dropped, % | silences | median, ms | end with another's | repaired at once |",
        "|---|---|---|--:|--:|--:|--:|",
        *(row(name, trace) for name, trace in variants.items()),
    ]
    lines += ["", *textwrap.wrap(OUTPUT_PATTERN, page.WIDTH)]
    for name in ("virtual lab", "simulated, with RACK"):
        if example := variants[name].example:
            lines += [
                "",
                f"One report, and a segment is sent again ({name}):",
                "",
                *(f"    {each}" for each in example),
            ]
    page.print_summary("\n".join([*lines, ""]), write_it=arguments.write, to=DOCUMENT)


if __name__ == "__main__":
    main()
