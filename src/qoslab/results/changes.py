"""What a run changed on routers that were there before it, and whether they were left as they were found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from qoslab.errors import DamageError, UserError
from qoslab.results.files import read_bytes, replace, writing
from qoslab.results.folder import RunFolder
from qoslab.results.records import Record
from qoslab.results.seal import sealed, unsealed

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
        replace(folder / NAME, sealed(_Changes.dump_json(dict(changes), indent=2) + b"\n"))


def read_changes(run: RunFolder) -> dict[str, RouterChanges]:
    """Those of a run, by router; of one whose lab was left and reached again, all together.

    Files that are none of ours, or not what was written, say nothing.
    """
    found: dict[str, RouterChanges] = {}
    for file in sorted(_files(run), key=lambda file: file.stat().st_mtime_ns):
        try:
            changes = _Changes.validate_json(_content(file))
        except (UserError, ValidationError):
            continue
        for router, each in changes.items():
            before = found.get(router)
            arms = {**each.arms, **(before.arms if before else {})}
            found[router] = each.model_copy(update={"arms": arms})
    return found


def damaged_changes(run: RunFolder) -> Iterator[str]:
    """Which of these files are not what was written."""
    for file in sorted(_files(run)):
        try:
            _content(file)
        except UserError as error:
            yield error.message


def _files(run: RunFolder) -> Iterator[Path]:
    return run.path.glob(f"restore/*/{NAME}")


def _content(file: Path) -> bytes:
    content, whole = unsealed(read_bytes(file, CHANGES_MOST))
    if not whole:
        message = (
            f"{file}: found {len(content)} bytes that do not match the checksum written with them: it is missing or "
            f"of another file"
        )
        raise DamageError(message, hint="copy the run again, if there is another copy")
    return content
