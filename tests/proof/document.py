"""docs/proof.md: what noticed which mistake. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

WIDTH = 120
ROWS_SHOWN = 6


@dataclass(frozen=True)
class FileProof:
    """An experiment file."""

    name: str
    digest: str
    """Of the file and the simulator."""
    cells: int
    """How many were simulated."""
    all_cells: int
    """How many there are."""
    processor_s: float
    """Processor time that it took, in seconds."""
    held: int
    """Rows that hold without a mistake."""
    outside: Sequence[str]
    """Rows that do not."""
    noticed: Mapping[str, Sequence[str] | None]
    """By mistake that was tried: the rows that notice it; None where no cell comes by its switch."""


def document(mistakes: Sequence[tuple[str, str]], files: Sequence[FileProof], missing: Sequence[str] = ()) -> str:
    """The document; `mistakes` are names and what each does, `missing` the files that were not simulated."""
    caught = [name for name, _ in mistakes if any(file.noticed.get(name) for file in files)]
    lines = [
        "# Mistakes on purpose",
        "",
        "Written by `tox -e prove`: experiment files in virtual time, with each of these mistakes made on purpose",
        "(`crates/mistakes`, `tests/proof/analysis_mistakes.py`). A row notices a mistake if it holds without it and",
        "not with it. Programs do not contain the switches (`tests/lab/test_mistakes.py`).",
        "",
        f"{len(caught)} of {len(mistakes)} mistakes are noticed in {len(files)} files.",
        "",
        *([f"Not simulated for this: {', '.join(missing)}.", ""] if missing else []),
        "A cell is simulated with a mistake if it comes by the switch. Arms of which nothing is expected are left out,",
        "and of sweeps all but the cells that `PICKED` in `tests/proof/prove.py` names. Processor time is that of the",
        "runs by which this was found; what was simulated once is kept. Where a row has noticed a mistake, further",
        "cells and files may have been spared (`PROVE_SPARING`, `PROVE_UNNOTICED`), so that more rows may notice it.",
        "",
        "| file | cells | rows that hold | processor time |",
        "|---|---|---|---|",
        *(
            f"| {file.name} | {file.cells} of {file.all_cells} | {file.held} | {file.processor_s:.0f} s |"
            for file in files
        ),
        "",
    ]
    for name, what in mistakes:
        lines += [f"## {name}", "", f"{what[0].upper()}{what[1:]}.", "", *_of_mistake(name, files), ""]
    lines += ["## Rows that do not hold without a mistake", "", "They can notice none.", ""]
    lines += [f"- {file.name}: `{'`, `'.join(file.outside)}`" for file in files if file.outside]
    return "\n".join(_wrapped(lines)).rstrip() + "\n"


def _of_mistake(name: str, files: Sequence[FileProof]) -> Iterator[str]:
    reached = [(file, rows) for file in files if (rows := file.noticed.get(name)) is not None]
    untried = [file.name for file in files if name not in file.noticed]
    if not reached and not untried:
        yield "**No experiment comes by it.**"
    elif reached and not any(rows for _, rows in reached):
        yield f"**No row notices**, though it is made in {', '.join(file.name for file, _ in reached)}."
    for file, rows in reached:
        if rows:
            more = f" and {len(rows) - ROWS_SHOWN} more" if len(rows) > ROWS_SHOWN else ""
            listed = "`, `".join(rows[:ROWS_SHOWN])
            yield f"- {file.name}: {len(rows)} of {file.held} rows: `{listed}`{more}"
    if untried:
        yield f"- not tried in {', '.join(untried)}"


def _wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Lines of at most `WIDTH` characters, broken between words."""
    for line in lines:
        indent = "  " if line.startswith("- ") else ""
        while len(line) > WIDTH:
            cut = line.rindex(" ", 0, WIDTH + 1)
            yield line[:cut]
            line = indent + line[cut + 1 :]
        yield line
