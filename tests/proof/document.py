"""Text of docs/internals/proof.md: how many expectations detect each mistake. Pure.

The rows themselves are listed in a file of the output folder. The page also has a section that `tox -e peers` writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

WIDTH = 120
BEGIN, END = "<!-- written by: tox -e peers -- --write -->", "<!-- written until here -->"
"""Marks of the section of the independent peers."""

Row = tuple[str, str]
"""Expectation: its place (arm, cells) and its metric."""


@dataclass(frozen=True)
class FileProof:
    """Results of an experiment file."""

    name: str
    digest: str
    """Digest of the file and the simulator."""
    cells: int
    """Number of simulated cells."""
    all_cells: int
    """Number of all cells."""
    processor_s: float
    """Processor time of the simulations, in seconds."""
    held: Sequence[Row]
    """Rows that pass without a mistake."""
    outside: Sequence[Row]
    """Rows that fail without a mistake."""
    noticed: Mapping[str, Sequence[Row] | None]
    """Rows that detect each tried mistake; None if no cell executes its switch."""
    spared: Sequence[str] = ()
    """Mistakes that were not tried in further cells after a row had detected them; more rows may detect these."""

    @classmethod
    def of(cls, read: Mapping[str, Any]) -> Self:
        """Return the value from JSON, in which rows are lists."""

        def rows(found: Iterable[Sequence[str]]) -> list[Row]:
            return [(place, metric) for place, metric in found]

        noticed = {name: None if found is None else rows(found) for name, found in read["noticed"].items()}
        return cls(**{**read, "held": rows(read["held"]), "outside": rows(read["outside"]), "noticed": noticed})


def proof_document(mistakes: Sequence[tuple[str, str]], files: Sequence[FileProof], missing: Sequence[str] = ()) -> str:
    """Return the document; `mistakes` are names and descriptions, `missing` the files without a simulation."""
    caught = [name for name, _ in mistakes if any(file.noticed.get(name) for file in files)]
    lines = [
        "# Deliberate mistakes and independent implementations",
        "",
        "Written by `tox -e prove`: experiment files are simulated with each of these deliberate mistakes",
        "(`crates/mistakes`, `tests/proof/analysis_mistakes.py`). A row detects a mistake if it passes without it, but",
        "not with it. Released programs do not contain the mistakes (`tests/lab/test_mistakes.py`).",
        "",
        f"{len(caught)} of {len(mistakes)} mistakes are detected in {len(files)} files.",
        "",
        *([f"Not simulated: {', '.join(missing)}.", ""] if missing else []),
        "A cell is only simulated with a mistake if it executes the code of this mistake. Arms without expectations",
        "are omitted, and of sweeps all cells except those in `PICKED` of `tests/proof/prove.py`. The processor time",
        "is that of the simulations of this version; earlier results of unchanged files are reused.",
        "",
        "| file | cells | passing rows | rows that detect a mistake | processor time |",
        "|---|---|---|---|---|",
        *(
            f"| {file.name} | {file.cells} of {file.all_cells} | {len(file.held)} "
            f"| {len(file.held) - len(_unaffected_rows(file, mistakes))} | {file.processor_s:.0f} s |"
            for file in files
        ),
        "",
    ]
    lines += [
        "## Mistakes",
        "",
        "The numbers are those of detecting rows. The command also writes `target/mistakes/rows.md`, which lists them.",
        "",
        "| mistake | | detected in |",
        "|---|---|---|",
        *(f"| {name} | {_sentence(what)} | {_counts(name, files)} |" for name, what in mistakes),
        "",
    ]
    lines += ["## Rows that detect no mistake", "", *_no_rows(files, mistakes), ""]
    lines += ["## Rows that fail without a mistake", "", "They cannot detect a mistake.", ""]
    lines += [f"- {file.name}: {_format_list(file.outside)}" for file in files if file.outside]
    return "\n".join(_wrap_text(lines)).rstrip() + "\n"


def proof_details(mistakes: Sequence[tuple[str, str]], files: Sequence[FileProof]) -> str:
    """Return the list of the rows that detect each mistake."""
    lines = ["# Rows that detect each mistake", ""]
    for name, what in mistakes:
        lines += [f"## {name}", "", _sentence(what), "", *_mistake_row(name, files), ""]
    return "\n".join(_wrap_text(lines)).rstrip() + "\n"


def _sentence(what: str) -> str:
    return f"{what[0].upper()}{what[1:]}."


def _counts(name: str, files: Sequence[FileProof]) -> str:
    """Return the numbers of detecting rows by file, or that there are none."""
    found = [
        f"{file.name} {'at least ' if name in file.spared else ''}{len(rows)}"
        for file in files
        if (rows := file.noticed.get(name))
    ]
    return ", ".join(found) or "**no file**"


def _mistake_row(name: str, files: Sequence[FileProof]) -> Iterator[str]:
    reached = [(file, rows) for file in files if (rows := file.noticed.get(name)) is not None]
    untried = [file.name for file in files if name not in file.noticed]
    if not reached and not untried:
        yield "**No experiment executes it.**"
    elif reached and not any(rows for _, rows in reached):
        yield f"**No row detects it**, although it is made in {', '.join(file.name for file, _ in reached)}."
    for file, rows in reached:
        if rows:
            least = "at least " if name in file.spared else ""
            yield f"- {file.name}: {least}{len(rows)} of {len(file.held)} rows: {_format_list(rows)}"
    if untried:
        yield f"- not tried in {', '.join(untried)}"


def _unaffected_rows(file: FileProof, mistakes: Sequence[tuple[str, str]]) -> list[Row]:
    """Return the rows of a file that detect none of the mistakes."""
    moved = {row for name, _ in mistakes for row in file.noticed.get(name) or ()}
    return [row for row in file.held if row not in moved]


def _no_rows(files: Sequence[FileProof], mistakes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the rows of each file that detect no mistake, and the files with untried mistakes."""
    yield "Either the catalogue lacks a mistake that they would detect, or no mistake can violate them. Their"
    yield "expectations are marked `unproven` in the experiment files: reports show `loose bounds` and omit them from"
    yield "the count."
    yield ""
    for file in files:
        if unmoved := _unaffected_rows(file, mistakes):
            yield f"- {file.name}: {len(unmoved)} of {len(file.held)} rows: {_format_list(unmoved)}"
    for file in files:
        unknown = [name for name, _ in mistakes if name in file.spared or name not in file.noticed]
        if unknown and _unaffected_rows(file, mistakes):
            yield (
                f"- more rows of {file.name} may detect one: {len(unknown)} of {len(mistakes)} mistakes were not made, "
                "or not in every cell"
            )


def _format_list(rows: Sequence[Row]) -> str:
    """Join rows: metrics of one place, and places with the same metrics."""
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


def _wrap_text(lines: Sequence[str]) -> Iterator[str]:
    """Lines of at most `WIDTH` characters, broken between words; rows of tables stay whole."""
    for line in lines:
        if line.startswith("| "):
            yield line
            continue
        indent = "  " if line.startswith("- ") else ""
        while len(line) > WIDTH:
            cut = line.rindex(" ", 0, WIDTH + 1)
            yield line[:cut]
            line = indent + line[cut + 1 :]
        yield line


def page_section(page: str) -> str:
    """Return the section of a page; empty if it has none."""
    found = re.search(rf"{re.escape(BEGIN)}.*{re.escape(END)}\n", page, re.DOTALL)
    return found[0] if found else ""


def replace_section(page: str, text: str) -> str:
    """Return a page with the section, in place of an earlier one or at its end."""
    if not text:
        return page
    earlier = page_section(page)
    return page.replace(earlier, text) if earlier else page.rstrip("\n") + "\n\n" + text
