"""Comparison of two configurations of a device by Genie's Diff."""

from __future__ import annotations

from collections.abc import Iterable

from qoslab.genie.show_parser import IMPORT_LOCK


def configuration_difference(before: str, after: str, volatile: Iterable[str] = ()) -> list[str]:
    """Return the removed (`-`) and added (`+`) lines, each below its parent lines; empty if there are none.

    `before` and `after` are running configurations. Comments, and lines that begin with one of `volatile`, are ignored,
    as is the order of lines.
    """
    with IMPORT_LOCK:
        from genie.utils.config import Config
        from genie.utils.diff import Diff
    trees = []
    for text in (before, after):
        config = Config(_comparable_lines(text, tuple(volatile)))
        config.tree()
        trees.append(config.config)
    found = Diff(*trees)
    found.findDiff()
    return [line.rstrip().removesuffix(":") for line in str(found).splitlines() if line.strip()]


def _comparable_lines(text: str, volatile: tuple[str, ...]) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    kept = [line for line in lines if line and not line.startswith(("!", *volatile)) and not _is_heading(line)]
    return "\n".join(kept) + "\n"


def _is_heading(line: str) -> bool:
    return line.startswith(("Building configuration", "Current configuration"))
