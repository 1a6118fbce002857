"""Names of an experiment file for lists, without checks of its content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent

from qoslab.errors import UserError
from qoslab.schema.named_files import FileRefusedError, read_bytes

SIZE_LIMIT = 2**16
"""Maximum size of an experiment file in bytes; far above any real one."""
DEPTH_LIMIT = 32
"""Maximum number of keys and indices in the path of a value; real ones have at most eight."""


@dataclass(frozen=True)
class Names:
    """Name, title and arms of a file that may be invalid."""

    name: str
    title: str
    arms: tuple[str, ...]


def read_names(path: Path) -> Names:
    """Read only the names of a file, in a tenth of the time of `read_outline`. Raise `UserError` if it is not YAML."""
    try:
        data = _load_yaml(read_bytes(path, SIZE_LIMIT))
    except (OSError, YAMLError, FileRefusedError, RecursionError, ValueError) as error:
        raise UserError(f"{path}: found no YAML ({error})") from error
    top = data if isinstance(data, dict) else {}
    arms = top.get("arms")
    return Names(
        str(top.get("name") or path.stem),
        str(top.get("title") or ""),
        tuple(
            str(arm["name"])
            for arm in (arms if isinstance(arms, list) else ())
            if isinstance(arm, dict) and "name" in arm
        ),
    )


def _load_yaml(content: bytes) -> Any:
    """Load YAML with the C parser, whose stack would overflow on a file that is nested too deeply."""
    depth = 0
    for event in YAML(typ="safe").parse(content):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEPTH_LIMIT:
            raise ValueError(f"nested more than {DEPTH_LIMIT} deep")
    return YAML(typ="safe").load(content)
