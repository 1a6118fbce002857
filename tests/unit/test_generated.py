"""Generated files equal the output of `./qoslab generate`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from levels import long_cases
from loaded_formats import load_formats
from qoslab.cli import main
from qoslab.generate import FILES, LINE, section_name
from qoslab.generate.format_types import formats_source

TOP = Path(__file__).parents[2]


RESULTS = "docs/reference/results.md"
"""Generator that judges every published run again, which takes seconds."""


@pytest.mark.parametrize("path", [path for path in FILES if path != RESULTS] + long_cases(RESULTS))
def test_generated_files_are_current(path: str) -> None:
    assert (TOP / path).read_text(encoding="utf-8") == FILES[path](TOP), "stale: run ./qoslab generate"


@pytest.mark.long
def test_command_reports_that_no_file_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--check"]) == 0
    assert capsys.readouterr().out == ""


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    """Provide a checkout with only the schemas."""
    shutil.copytree(TOP / "docs" / "schema", tmp_path / "docs" / "schema")
    return tmp_path


def change(top: Path, schema: str, edit: Callable[[dict[str, Any]], object]) -> None:
    file = top / "docs" / "schema" / f"{schema}.schema.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    edit(content["$defs"])
    file.write_text(json.dumps(content), encoding="utf-8")


def schema_of(name: str, text: str) -> str:
    """Return the fields of the class, or the alias, of that name."""
    found = re.search(rf"^(?:class {name}\(TypedDict\):\n(.*?)\n(?:\n|\Z)|({name}: .*?)$)", text, re.M | re.S)
    assert found is not None, name
    return found[1] or found[2]


def test_key_that_the_data_plane_adds_is_typed(schemas: Path) -> None:
    ring = {"full": {"type": ["integer", "null"]}, "held": {"type": "array", "items": {"$ref": "#/$defs/Count"}}}
    for schema in ("qos-router-counters", "qos-sim-result", "qos-sim-explanation"):
        change(schemas, schema, lambda types: types["RingCounters"]["properties"].update(ring))
    assert schema_of("RingCounters", formats_source(schemas)).splitlines()[-2:] == [
        "    full: int | None",
        "    held: NotRequired[list[Count]]",
    ]


def test_fields_with_a_default_may_be_omitted_in_input() -> None:
    text = formats_source(TOP)
    assert schema_of("ShapeConfig", text).splitlines() == [
        "    bc: NotRequired[ShapeBurst | None]",
        "    be: NotRequired[ShapeBurst | None]",
        "    mode: ShapeMode",
        "    rate: RateSpec",
    ]
    assert schema_of("ShapeBurst", text) == "ShapeBurst: TypeAlias = ShapeBurstBits | ShapeBurstMs"
    assert schema_of("ShapeMode", text) == 'ShapeMode: TypeAlias = Literal["average", "peak"]'
    assert schema_of("PolicyClass", text).splitlines().count("    name: str") == 1
    assert schema_of("PolicyClassPart", text).splitlines().count("    name: NotRequired[str]") == 1


def test_type_that_differs_between_schemas_is_refused(schemas: Path) -> None:
    change(schemas, "qos-sim-result", lambda types: types["Count"]["properties"].update(more={"type": "integer"}))
    with pytest.raises(ValueError, match="qos-sim-result has a different Count from the earlier schemas"):
        formats_source(schemas)


def test_types_can_be_executed() -> None:
    assert load_formats().ShapeMode == Literal["average", "peak"]


def test_each_command_has_a_section_with_short_lines() -> None:
    page = (TOP / "docs" / "reference" / "ios-commands.md").read_text(encoding="utf-8").partition("\n## Accepted")[0]
    sections = set(re.findall(r"^### (.*)$", page, re.MULTILINE))
    assert {"police", "service-policy", "permit, deny", "show policy-map interface"} <= sections
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert blocks and max(len(line) for block in blocks for line in block.splitlines()) <= LINE + len("    ")


@pytest.mark.parametrize(
    ("syntax", "name"),
    [
        ("police rate <rate:1-9> bps", "police"),
        ("show policy-map interface [<name:word>]", "show policy-map interface"),
        ("[<sequence:1-9>] (permit|deny) ip any any", "permit, deny"),
        ("(exit|logout|quit)", "exit, logout, quit"),
        ("<text:line>", "entries of a list"),
    ],
)
def test_section_of_a_command_is_named_by_its_first_words(syntax: str, name: str) -> None:
    assert section_name(syntax) == name
