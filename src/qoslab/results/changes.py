"""What a run changed on routers that were there before it, and whether they were left as they were found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from qoslab.errors import UserError
from qoslab.results.files import read_bytes, replace, writing
from qoslab.results.folder import RunFolder
from qoslab.results.records import Record

NAME = "changes.json"
CHANGES_MOST = 64 * 2**20
"""Bytes of them."""


class RouterChanges(Record):
    """Of one router: lines that went (`-`) and came (`+`), each below those in which it stands; without secrets."""

    arms: dict[str, tuple[str, ...]]
    """What each arm had configured, against the configuration from before the run; of its first cell."""
    left: tuple[str, ...] | None
    """What differed from that configuration when the run had ended; None: nobody knows."""
    why: str = ""
    """Why nobody knows."""


_Changes = TypeAdapter(dict[str, RouterChanges])


def write_changes(folder: Path, changes: Mapping[str, RouterChanges]) -> None:
    """Write them, by router, to a folder of the run."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace(folder / NAME, _Changes.dump_json(dict(changes), indent=2) + b"\n")


def read_changes(run: RunFolder) -> dict[str, RouterChanges]:
    """Those of a run, by router; of one whose lab was left and reached again, all together.

    Files that are none of ours say nothing.
    """
    found: dict[str, RouterChanges] = {}
    for file in sorted(run.path.glob(f"restore/*/{NAME}"), key=lambda file: file.stat().st_mtime_ns):
        try:
            changes = _Changes.validate_json(read_bytes(file, CHANGES_MOST))
        except (UserError, ValidationError):
            continue
        for router, each in changes.items():
            before = found.get(router)
            arms = {**each.arms, **(before.arms if before else {})}
            found[router] = each.model_copy(update={"arms": arms})
    return found
