"""Changes that a run made to real routers, and the remaining differences after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from qoslab.errors import DamageError, UserError
from qoslab.results.file_access import convert_write_errors, replace
from qoslab.results.folder import RunFolder
from qoslab.results.records import Record
from qoslab.results.sealed_files import add_seal, read_bytes, split_seal

NAME = "changes.json"
CHANGES_MOST = 64 * 2**20
"""Maximum size of a file of changes, in bytes."""


class RouterChanges(Record):
    """Changes of one router: removed (`-`) and added (`+`) lines, each below its parent lines; without secrets."""

    arms: dict[str, tuple[str, ...]]
    """Configured lines of each arm, relative to the configuration before the run, in its first cell."""
    left: tuple[str, ...] | None
    """Differences from that configuration after the run; None: unknown."""
    why: str = ""
    """Reason for unknown differences."""


_Changes = TypeAdapter(dict[str, RouterChanges])


def write_changes(folder: Path, changes: Mapping[str, RouterChanges]) -> None:
    """Write the changes, by router, to a folder of the run."""
    with convert_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace(folder / NAME, add_seal(_Changes.dump_json(dict(changes), indent=2) + b"\n"))


def read_changes(run: RunFolder) -> dict[str, RouterChanges]:
    """Return the changes of a run, by router; changes from several connections to the same lab are merged.

    Files of another format, or with a wrong seal, are ignored.
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
    """Yield a message for each file of changes that differs from its seal."""
    for file in sorted(_files(run)):
        try:
            _content(file)
        except UserError as error:
            yield error.message


def _files(run: RunFolder) -> Iterator[Path]:
    return run.path.glob(f"restore/*/{NAME}")


def _content(file: Path) -> bytes:
    content, whole = split_seal(read_bytes(file, CHANGES_MOST))
    if not whole:
        message = (
            f"{file}: found {len(content)} bytes that do not match the checksum written with them: the checksum is "
            f"missing or belongs to another file"
        )
        raise DamageError(message, hint="copy the run again, if there is another copy")
    return content
