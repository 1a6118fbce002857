"""Files that are made from others are those that `./qoslab generate` would write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qoslab.cli import main
from qoslab.generated import COUNTERS, FILES, typed_dicts

TOP = Path(__file__).parents[2]


@pytest.mark.parametrize("path", FILES)
def test_generated_files_are_current(path: str) -> None:
    assert (TOP / path).read_text(encoding="utf-8") == FILES[path](TOP), "stale: run ./qoslab generate"


def test_the_command_says_that_nothing_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--check"]) == 0
    assert capsys.readouterr().out == ""


def test_a_key_that_the_data_plane_adds_is_typed() -> None:
    schema: dict[str, Any] = json.loads((TOP / COUNTERS).read_text(encoding="utf-8"))
    schema["$defs"]["RingCounters"]["properties"]["full"] = {"type": ["integer", "null"]}
    schema["$defs"]["RingCounters"]["properties"]["held"] = {"type": "array", "items": {"$ref": "#/$defs/Count"}}
    text = typed_dicts(schema, "Counters", {"ok": "bool"}, "a test")
    ring = text.split("class RingCounters(TypedDict):")[1].split("\n\n\n")[0]
    assert "    full: int | None\n" in ring
    assert "    held: NotRequired[list[Count]]" in ring
