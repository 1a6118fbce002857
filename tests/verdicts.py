"""Exit status of a run folder, and reasons against a cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

INVALID, OUT_OF_TOLERANCE, WITHIN_TOLERANCE = 3, 1, 0


def runs_of(folder: Path) -> list[Path]:
    """Return the runs of any experiment in a folder, the oldest first."""
    return sorted((path for path in folder.glob("runs/*/*Z*") if not path.is_symlink()), key=lambda path: path.name)


def newest_run(folder: Path) -> Path:
    """Return the newest run."""
    return runs_of(folder)[-1]


def status_of(run: Path) -> int:
    """Return the exit status that `reference/statistics.md` and the manual page promise, from the files of a finished
    run.

    It is 3 with an invalid cell or an impossible value, else 1 with a value out of tolerance.
    """
    cells = json.loads((run / "manifest.json").read_text())["cells"]
    verdicts = set()
    for name in ("comparison.csv", "averages.csv"):
        if (run / name).exists():
            with (run / name).open(newline="", encoding="utf-8") as file:
                verdicts |= {row["verdict"] for row in csv.DictReader(file)}
    if "impossible" in verdicts or not all(cell["valid"] or cell["spared"] for cell in cells):
        return INVALID
    return OUT_OF_TOLERANCE if "outside" in verdicts else WITHIN_TOLERANCE


def reasons_except_lateness(record: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a `cell.json` without lateness of the machine, which tests ignore."""
    return [reason for reason in record["reasons"] if reason not in record["lateness"]]
