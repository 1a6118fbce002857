"""Lines of router output in a run that no parser recognised."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from qoslab.errors import QoslabError
from qoslab.results import CellFiles

Parse = Callable[[str, str], tuple[Any, str]]
"""`parse("show version", text)`: the parsed value, or None with the reason."""
KEY = "unrecognised"
"""Key of lines that our parsers do not recognise."""
TELLING = ("show policy-map", "show mls qos")
"""Commands with parsers that return unrecognised lines. For other commands, each line is removed in turn: a line
without effect on the result was not parsed.
"""


@dataclass(frozen=True)
class Print:
    """Output of a show command of a router."""

    device: str
    command: str
    place: str
    """Path in the run folder."""
    text: str
    parsed: Any
    """Result of the parser during the run; None if there was none."""
    starts: int | None
    """Line number of the text within its file; None in a file of readings."""


@dataclass
class Unparsed:
    """A line, or a whole output, that no parser recognised."""

    device: str
    command: str
    line: str
    """Text of the line; empty for a whole output."""
    place: str
    """Place of the first occurrence."""
    reason: str = ""
    """Reason for refusing the whole output."""
    times: int = 1
    """Number of outputs with this line."""


def find_unparsed(cells: Iterable[CellFiles], parse: Parse) -> list[Unparsed]:
    """Return the unparsed lines of router output, each once for each router and command."""
    found: dict[tuple[str, str, str], Unparsed] = {}
    tried: set[tuple[str, str]] = set()
    for cell in cells:
        for each in _cell_outputs(cell):
            for line, place, reason in _unparsed_lines(each, parse, tried):
                key = (each.device, each.command, line)
                if key in found:
                    found[key].times += 1
                else:
                    found[key] = Unparsed(each.device, each.command, line, place, reason)
    return list(found.values())


def _cell_outputs(cell: CellFiles) -> Iterator[Print]:
    for each in cell.record().observed:
        raw = f"{each.file}.txt"
        parsed = cell.parsed_output(each.device, each.moment, each.command)
        if cell.has(raw):
            yield Print(each.device, each.command, f"{cell.name}/{raw}", cell.text(raw), parsed, 1)
    for device in cell.devices_with_readings():
        for number, reading in enumerate(cell.readings(device), 1):
            result = reading["parsed"]
            parsed = None if isinstance(result, dict) and "unparsed" in result else result
            place = f"{cell.name}/readings/{device}.jsonl:{number}"
            yield Print(device, reading["command"], place, reading["raw"], parsed, None)


def _unparsed_lines(each: Print, parse: Parse, tried: set[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield unparsed lines, or the reason if an output is not parsed at all."""
    if each.parsed is None:
        found, reason = parse(each.command, each.text)
        if found is None:
            yield "", each.place, reason
            return
    else:
        found = each.parsed
    lines = each.text.splitlines()
    if each.command.startswith(TELLING):
        for line in _lines_under_key(found):
            yield line, _place(each, lines, line), ""
    elif (each.device, each.command) not in tried:
        # The first output of each command decides: the others have different values in the same lines.
        tried.add((each.device, each.command))
        yield from ((line, _place(each, lines, line), "") for line in _ineffective_lines(each.command, lines, parse))


def _lines_under_key(found: Any) -> Iterator[str]:
    """Yield all lines under `KEY`, at any depth."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key == KEY:
                yield from map(str, value)
            else:
                yield from _lines_under_key(value)
    elif isinstance(found, list):
        for value in found:
            yield from _lines_under_key(value)


def _ineffective_lines(command: str, lines: list[str], parse: Parse) -> Iterator[str]:
    """Yield lines that can be removed without changing the result of a parser."""
    whole = json.dumps(parse(command, "\n".join(lines))[0], sort_keys=True)
    for number, line in enumerate(lines):
        if not line.strip() or lines.count(line) > 1:
            continue
        rest = "\n".join(lines[:number] + lines[number + 1 :])
        if json.dumps(parse(command, rest)[0], sort_keys=True) == whole:
            yield line.strip()


def _place(each: Print, lines: list[str], wanted: str) -> str:
    if each.starts is None:
        return each.place
    number = next((number for number, line in enumerate(lines, each.starts) if line.strip() == wanted.strip()), None)
    return each.place if number is None else f"{each.place}:{number}"


def readable(cells: Iterable[CellFiles]) -> Iterator[CellFiles]:
    """Return the cells with a readable record."""
    for cell in cells:
        try:
            cell.record()
        except QoslabError:
            continue
        yield cell
