"""Measure the loss of `qos-router` as a switch; print a Markdown section for docs/internals/performance.md.

    python benches/switch.py [--seconds 5] [--write]

From 1 Gb/s to 100 Mb/s with the egress port of the article's last phase (`share 30 70 1 1`, `limit 70`): voice of
13 Mb/s and 200 Mb/s of full frames, on a quiet machine, with a daemon that is stopped for 200 ms again and again, and
next to busy processes. The senders skip late packets, so that next to busy processes they offer less.

Needs `cargo build --release -p qos-router -p flood`; the first row an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(ROOT / "tests")]

from catalyst import last_phase  # noqa: E402
from dataplane import DataPlaneLab  # noqa: E402

HEADING = "## Switch"
LINE_BITS = 8 * 1518
"""Bits of a full frame with its check sequence."""
CASES = (
    ("quiet", False, 0),
    ("daemon stopped for 200 ms of every 300", True, 0),
    ("next to 4 busy processes", False, 4),
)


def measure(seconds: float) -> list[str]:
    """Return the section."""
    columns = ("machine", "offered, Mb/s", "voice: came, left", "voice: dropped", "best effort: dropped")
    own = ("ring overflow", "refused by the kernel", "late arrivals", "greatest lateness, ms")
    rows = ["| " + " | ".join(columns + own) + " |", "|" + "---|" * len(columns + own)]
    with DataPlaneLab(rates_bps=(1_000_000_000, 100_000_000)) as lab:
        last_phase(lab, 0.5, False)
        for name, stalls, hogs in CASES:
            metric_values, health = last_phase(lab, seconds, stalls, hogs)
            frames = metric_values["received"][46] + metric_values["received"][0]
            values = (
                name,
                f"{frames * LINE_BITS / seconds / 1e6:.0f}",
                f"{metric_values['received'][46]:,}, {metric_values['dscp_out'][46]:,}",
                f"{sum(metric_values['dropped'][0]):,}",
                f"{sum(metric_values['dropped'][1]):,}",
                f"{health['lost_input']:,}",
                f"{health['unsent']:,}",
                f"{health['late_arrivals']:,}",
                f"{health['lateness_ns']['max'] / 1e6:.1f}",
            )
            rows.append("| " + " | ".join(values) + " |")
    return rows


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="traffic time of each row")
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    arguments = parser.parse_args()
    head = page.head("Source: `benches/switch.py`; its docstring describes the measurement.")
    section = "\n".join([HEADING, "", head, "", *measure(arguments.seconds), ""])
    page.print_summary(section, write_it=arguments.write)


if __name__ == "__main__":
    main()
