"""Section of docs/internals/proof.md with the comparisons with independent peers. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from document import BEGIN, END, WIDTH

TITLES = (
    "Policers and rte_meter",
    "Policers and act_police",
    "Shapers, schedulers and tc",
    "Active queue management and Linux",
    "FIFO queue and ns-3",
    "Random early detection and ns-3",
    "TCP, ns-3 and Linux",
    "TCP and Linux on similar paths",
    "Causes of differences from ns-3",
)
"""Titles of the comparisons, in the order of the page."""
INTRODUCTION = """\
Independent programs decide on the same packets as the engine, or carry the same traffic. Each difference follows from
the stated quantum of the peer or from a mechanism that only one of the two has, or is listed as a finding
(`tests/peers`). `./qoslab test -e peers -- --write` writes this section, and the values of each policy, line
and path to `target/peers/values`."""


@dataclass(frozen=True)
class Comparison:
    """Comparison: the peer with its version, the result in a phrase, the text below it, and the day."""

    peer: str
    result: str
    lines: Sequence[str] = ()
    date: str = ""
    each: Sequence[str] = ()
    """Table of the values one by one, which the page does not have."""


def skipped_comparison(reason: str) -> Comparison:
    """Return the comparison with a peer that is missing."""
    return Comparison("", f"not run: {reason}")


def write_section(found: Mapping[str, Comparison]) -> str:
    """Return the text of the section between its marks."""
    lines = [BEGIN, "", "## Independent peers", "", *wrap_paragraph(INTRODUCTION), ""]
    lines += ["| comparison | peer | result | date |", "|---|---|---|---|"]
    for title in TITLES:
        each = found.get(title, skipped_comparison("it was never selected"))
        lines.append(f"| {title} | {each.peer} | {each.result} | {each.date} |")
    for title in TITLES:
        if title in found and found[title].lines:
            lines += ["", f"### {title}", "", *found[title].lines]
    return "\n".join([*lines, "", END]) + "\n"


def earlier_sections(text: str) -> dict[str, Comparison]:
    """Return the comparisons of a section."""
    found = {}
    for title in TITLES:
        row = re.search(rf"^\| {re.escape(title)} \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
        if row is not None:
            _, _, below = text.partition(f"### {title}\n\n")
            lines = re.split(rf"\n\n(?=### |{re.escape(END)})", below)[0].splitlines() if below else ()
            found[title] = Comparison(row[1], row[2], tuple(lines), row[3])
    return found


def comparison_values(title: str, found: Comparison) -> str:
    """Return the file with the values of a comparison one by one."""
    return "\n".join([f"# {title}", "", f"{found.peer}: {found.result}", "", *found.each, ""])


def file_name(title: str) -> str:
    """Return the name of the file with the values of a comparison."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()) + ".md"


def wrap_paragraph(text: str, indent: str = "") -> list[str]:
    """Wrap a text at `WIDTH` characters; `indent` precedes all lines except the first."""
    plain = " ".join(text.split())
    return textwrap.wrap(plain, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield a table; columns behind the first are aligned to the right."""
    yield f"| {' | '.join(head)} |"
    yield "|---|" + "--:|" * (len(head) - 1)
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"
