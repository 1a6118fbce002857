"""Reference pages: the keys of experiment files, from their schema, and the tables of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

MARK = "<!-- generated -->\n"
EXAMPLE = "such as "


def keys_document(present: str) -> str:
    """Return the page with a section for each kind of mapping below the mark; the text above it is unchanged."""
    from qoslab.schema import experiment_schema

    schema = experiment_schema()
    lines = list(_mapping_section("Experiment", "The file itself.", schema))
    for name, each in sorted(schema["$defs"].items()):
        if "properties" in each:
            lines += _mapping_section(name, each.get("description", ""), each)
    return _replace_below_mark(present, lines)


def tables_document(present: str) -> str:
    """Return the page with the columns of each table below the mark; the text above it is unchanged."""
    from qoslab.results import tables

    lines: list[str] = []
    for name, schema in tables.SCHEMAS.items():
        rows = ((f"`{each.name}`", str(each.type), tables.column_unit(each.name) or "") for each in schema)
        lines += [f"## `{name}`", "", *_markdown_table(("column", "type", "unit"), rows)]
    return _replace_below_mark(present, lines)


def _replace_below_mark(present: str, lines: list[str]) -> str:
    before, mark, _ = present.partition(MARK)
    if not mark:
        raise ValueError(f"the line {MARK.strip()!r} is missing, the start of the generated part")
    return f"{before}{MARK}\n" + "\n".join(lines)


def _mapping_section(name: str, about: str, schema: dict[str, Any]) -> Iterator[str]:
    yield from (f"## {name}", "", about, "")
    needed = schema.get("required", ())
    rows = (
        (
            f"`{key}`",
            _accepted_form(each),
            "required" if key in needed else _default_text(each),
            each.get("description", ""),
        )
        for key, each in schema["properties"].items()
    )
    yield from _markdown_table(("key", "value", "default", "meaning"), rows)


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _markdown_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(_escape_cell, row))} |" for row in rows)
    yield ""


def _default_text(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return (
        "" if value is None or value in ({}, [], "") else f"`{value}`".replace("True", "true").replace("False", "false")
    )


def _accepted_form(schema: dict[str, Any]) -> str:
    """Return the accepted values of a key as text."""
    if "enum" in schema:
        words = [f"`{each}`" for each in schema["enum"]]
        return " ".join(words[:12]) + (" …" if len(words) > 12 else "")
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            forms = [_accepted_form(each) for each in schema[several] if each.get("pattern") != r"\$\(.+\)"]
            first, *others = dict.fromkeys(form for form in forms if form != "null")
            return " or ".join([first, *(form.removeprefix(EXAMPLE) for form in others)])
    match schema.get("type"):
        case "array":
            return f"list of {_accepted_form(schema.get('items', {}))}"
        case "object":
            return (
                f"names to {_accepted_form(inner)}"
                if isinstance(inner := schema.get("additionalProperties"), dict)
                else "mapping"
            )
        case "string":
            examples = schema.get("examples")
            return f"{EXAMPLE}`{examples[0]}`" if examples else schema.get("format", "text")
        case None:
            return "text"
        case plain:
            return {"integer": "whole number", "boolean": "true or false"}.get(plain, str(plain))
