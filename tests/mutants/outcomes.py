"""What became of each change of a file, by the names that cargo-mutants gives them, as long as a round goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

KINDS = ("caught", "timeout", "unviable", "missed")


def known(kept: Path) -> dict[str, str]:
    """What was found of a file so far."""
    file = kept / "outcomes.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def keep(kept: Path, found: Mapping[str, str]) -> None:
    """Add to what is known."""
    kept.mkdir(parents=True, exist_ok=True)
    draft = kept / "outcomes.json.draft"
    draft.write_text(json.dumps({**known(kept), **found}, indent=1), encoding="utf-8")
    draft.replace(kept / "outcomes.json")


def of_cargo_mutants(folder: Path) -> dict[str, str]:
    """What it wrote last of those that it tried."""
    found: dict[str, str] = {}
    for kind in KINDS:
        listed = folder / f"{kind}.txt"
        if listed.exists():
            found.update(dict.fromkeys(listed.read_text(encoding="utf-8").splitlines(), kind))
    return found
