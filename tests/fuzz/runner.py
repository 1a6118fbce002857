"""Runner that lets a fuzzer choose the input of a target of `targets`: `runner.py TARGET [options and corpora of
libFuzzer]`.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import atheris
import yaml

sys.path.append(str(Path(__file__).parents[1]))
from json_mutations import value_changes, value_places

with atheris.instrument_imports(include=["qoslab", "ruamel", "jinja2"]):
    from targets import TARGETS

OF_BYTES = 0.3
"""Share of inputs that are changed as bytes, as libFuzzer does, and not by their structure."""
CONFIGURATION = [
    line
    for file in sorted((Path(__file__).parents[1] / "fragments").glob("*.ios"))
    for line in file.read_text(encoding="utf-8").splitlines()
    if not line.startswith("===")
]
"""Configuration blocks; related lines are adjacent."""
EXEC = re.findall(
    r"^(?:show|clear|configure|copy|delete|dir|erase|more|reload|terminal|ping|end|exit|enable|disable)\b.*$",
    (Path(__file__).parents[2] / "docs" / "reference" / "router.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def another_value(data: bytes, longest: int, seed: int) -> bytes:
    """Return a document with one value removed, replaced, or copied from another place."""
    by_chance = random.Random(seed)
    if by_chance.random() > OF_BYTES and (content := _document(data)) is not None:
        around, key = by_chance.choice(list(value_places(content)))
        elsewhere, there = by_chance.choice(list(value_places(content)))
        value = json.loads(json.dumps(elsewhere[there]))
        by_chance.choice([lambda: around.__setitem__(key, value), *(each for _, each in value_changes(around, key))])()
        text = json.dumps(content).encode()
        if len(text) <= longest:
            return text
    return bytes(atheris.Mutate(data, longest))


def another_line(data: bytes, longest: int, seed: int) -> bytes:
    """Return the typed lines with one line of configuration, command or word inserted, replaced or removed."""
    by_chance = random.Random(seed)
    if by_chance.random() > OF_BYTES:
        lines = data.decode(errors="replace").split("\r")
        at = by_chance.randrange(len(lines))
        match by_chance.randrange(5):
            case 0:
                first = by_chance.randrange(len(CONFIGURATION))
                lines[at:at] = CONFIGURATION[first : first + by_chance.randint(1, 4)]
            case 1:
                lines.insert(at, by_chance.choice(EXEC))
            case 2:
                lines.insert(at, by_chance.choice(("configure terminal", "end", "exit", "")))
            case 3:
                del lines[at]
            case _:
                words, others = lines[at].split(" "), by_chance.choice((*CONFIGURATION, *EXEC)).split(" ")
                words[by_chance.randrange(len(words))] = by_chance.choice(("no", "?", *others))
                lines[at] = " ".join(words)
        text = "\r".join(lines).encode()
        if len(text) <= longest:
            return text
    return bytes(atheris.Mutate(data, longest))


MUTATORS = {"experiment": another_value, "shell": another_line}
"""Mutators of targets with structured input."""


def _document(data: bytes) -> Any:
    """Return the document that the bytes describe; None if they describe none."""
    try:
        content = yaml.load(data, yaml.CSafeLoader)
        json.dumps(content)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    return content if next(value_places(content), None) else None


def main() -> None:
    """Run from the command line; libFuzzer does not return."""
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name], custom_mutator=MUTATORS.get(name))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
