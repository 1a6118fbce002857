"""docs/internals/proof.md: what noticed which mistake, and what noticed none. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

WIDTH = 120

Row = tuple[str, str]
"""An expectation: its place (arm, cells) and its metric."""


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
    held: Sequence[Row]
    """Rows that hold without a mistake."""
    outside: Sequence[Row]
    """Rows that do not."""
    noticed: Mapping[str, Sequence[Row] | None]
    """By mistake that was tried: the rows that notice it; None where no cell comes by its switch."""
    spared: Sequence[str] = ()
    """Mistakes that were not made in further cells once a row had noticed, so that more rows may notice them."""

    @classmethod
    def of(cls, read: Mapping[str, Any]) -> Self:
        """From JSON, in which rows are lists."""

        def rows(found: Iterable[Sequence[str]]) -> list[Row]:
            return [(place, metric) for place, metric in found]

        noticed = {name: None if found is None else rows(found) for name, found in read["noticed"].items()}
        return cls(**{**read, "held": rows(read["held"]), "outside": rows(read["outside"]), "noticed": noticed})


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
        "runs by which this was found; what was simulated once is kept.",
        "",
        "| file | cells | rows that hold | rows that notice a mistake | processor time |",
        "|---|---|---|---|---|",
        *(
            f"| {file.name} | {file.cells} of {file.all_cells} | {len(file.held)} "
            f"| {len(file.held) - len(_unmoved(file, mistakes))} | {file.processor_s:.0f} s |"
            for file in files
        ),
        "",
    ]
    for name, what in mistakes:
        lines += [f"## {name}", "", f"{what[0].upper()}{what[1:]}.", "", *_of_mistake(name, files), ""]
    lines += ["## Rows that notice none", "", *_none(files, mistakes), ""]
    lines += ["## Rows that do not hold without a mistake", "", "They can notice none.", ""]
    lines += [f"- {file.name}: {_listed(file.outside)}" for file in files if file.outside]
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
            least = "at least " if name in file.spared else ""
            yield f"- {file.name}: {least}{len(rows)} of {len(file.held)} rows: {_listed(rows)}"
    if untried:
        yield f"- not tried in {', '.join(untried)}"


def _unmoved(file: FileProof, mistakes: Sequence[tuple[str, str]]) -> list[Row]:
    """The rows of a file that notice none of the mistakes."""
    moved = {row for name, _ in mistakes for row in file.noticed.get(name) or ()}
    return [row for row in file.held if row not in moved]


def _none(files: Sequence[FileProof], mistakes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The rows of each file that notice none, and of which that is not known yet."""
    yield "Either the catalogue lacks a mistake that they would notice, or nothing can violate them. Their expectations"
    yield "are labelled `unproven` in the experiment files: they are shown as wide and not counted."
    yield ""
    for file in files:
        if unmoved := _unmoved(file, mistakes):
            yield f"- {file.name}: {len(unmoved)} of {len(file.held)} rows: {_listed(unmoved)}"
    for file in files:
        unknown = [name for name, _ in mistakes if name in file.spared or name not in file.noticed]
        if unknown and _unmoved(file, mistakes):
            yield (
                f"- of {file.name} more rows may notice one: {len(unknown)} of {len(mistakes)} mistakes were not made, "
                "or not in every cell"
            )


def _listed(rows: Sequence[Row]) -> str:
    """Rows, those of one place together, and places of which it is the same."""
    by_place: dict[str, list[str]] = {}
    for place, metric in rows:
        by_place.setdefault(place, []).append(metric)
    by_metrics: dict[tuple[str, ...], list[str]] = {}
    for place, metrics in by_place.items():
        by_metrics.setdefault(tuple(metrics), []).append(place)
    return "; ".join(
        f"{', '.join(f'`{place}`' for place in places)}: {', '.join(f'`{metric}`' for metric in metrics)}"
        for metrics, places in by_metrics.items()
    )


def _wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Lines of at most `WIDTH` characters, broken between words."""
    for line in lines:
        indent = "  " if line.startswith("- ") else ""
        while len(line) > WIDTH:
            cut = line.rindex(" ", 0, WIDTH + 1)
            yield line[:cut]
            line = indent + line[cut + 1 :]
        yield line
