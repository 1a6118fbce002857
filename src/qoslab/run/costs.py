"""Cost of simulated cells, learnt from earlier runs. Plain JSON is enough for an estimate."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

from qoslab.lab_kinds import LABS

CELLS = 50
"""Number of examined cells per arm."""


def simulation_costs(runs: Path, experiment: str) -> dict[str, float]:
    """Return, by arm, the mean seconds per simulated second in the newest simulated run of the experiment."""
    found: dict[str, float] = {}
    for folder in sorted((runs / experiment).glob("*Z*"), reverse=True):
        for arm, cost in _run_costs(folder).items():
            found.setdefault(arm, cost)
    return found


def _run_costs(folder: Path) -> dict[str, float]:
    manifest = _read(folder / "manifest.json")
    kind = LABS.get(manifest.get("lab", ""))
    if kind is None or kind.real_time:
        return {}
    cells: dict[str, list[str]] = defaultdict(list)
    for cell in manifest["cells"]:
        if cell["valid"]:
            cells[cell["arm"]].append(cell["folder"])
    found = {}
    for arm, folders in cells.items():
        # Evenly spaced over all cells, since neighbouring cells are similar.
        chosen = folders[:: max(1, len(folders) // CELLS)]
        records = [_read(folder / each / "cell.json") for each in chosen]
        took = sum(_record_seconds(record) for record in records)
        simulated = sum(record.get("virtual_s") or 0.0 for record in records)
        if simulated:
            found[arm] = took / simulated
    return found


def _record_seconds(record: dict[str, Any]) -> float:
    steps = [step for step in record.get("steps", ()) if step["ended"]]
    if not steps:
        return 0.0
    return (datetime.fromisoformat(steps[-1]["ended"]) - datetime.fromisoformat(steps[0]["started"])).total_seconds()


def _read(file: Path) -> dict[str, Any]:
    """Return a JSON file of a run; empty if the run was interrupted or the file was removed."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
