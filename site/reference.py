"""Directives for tables that are made from the code: keys of experiment files, metrics, tables of a run, programs.

Also the pages that are read from files beside docs/, whose links point from there.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TOP = Path(__file__).resolve().parents[1]
BESIDE = {"CHANGELOG.md": "internals/changelog.md", "CONTRIBUTING.md": "internals/contributing.md"}
BESIDE |= {"SECURITY.md": "internals/security.md"}
"""Pages of the site by the files at the top of the checkout that they show."""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)
    yield ""


class _Made(SphinxDirective):
    """A directive that stands for Markdown."""

    def run(self) -> list[nodes.Node]:
        """Parse what `lines` gives in its place."""
        return self.parse_text_to_nodes("\n".join(self.lines()), allow_section_headings=True)

    def lines(self) -> Iterator[str]:
        """The Markdown."""
        raise NotImplementedError


class ExperimentKeys(_Made):
    """Every key of experiment files, from the schema."""

    def lines(self) -> Iterator[str]:
        """A section for each kind of mapping."""
        from qoslab.schema import experiment_schema

        schema = experiment_schema()
        yield from self._section("Experiment", "The file itself.", schema)
        for name, each in sorted(schema["$defs"].items()):
            if "properties" in each:
                yield from self._section(name, each.get("description", ""), each)

    def _section(self, name: str, about: str, schema: dict[str, Any]) -> Iterator[str]:
        yield from (f"## {name}", "", about, "")
        needed = schema.get("required", ())
        rows = (
            (
                f"`{key}`",
                _form(each),
                "required" if key in needed else _default(each),
                each.get("description", ""),
            )
            for key, each in schema["properties"].items()
        )
        yield from _table(("key", "value", "where absent", "meaning"), rows)


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return (
        "" if value is None or value in ({}, [], "") else f"`{value}`".replace("True", "true").replace("False", "false")
    )


def _form(schema: dict[str, Any]) -> str:
    """What may be written, in words."""
    if "enum" in schema:
        words = [f"`{each}`" for each in schema["enum"]]
        return " ".join(words[:12]) + (" …" if len(words) > 12 else "")
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            forms = [_form(each) for each in schema[several] if each.get("pattern") != r"\$\(.+\)"]
            return " or ".join(dict.fromkeys(form for form in forms if form != "null"))
    match schema.get("type"):
        case "array":
            return f"list of {_form(schema.get('items', {}))}"
        case "object":
            return (
                f"names to {_form(inner)}"
                if isinstance(inner := schema.get("additionalProperties"), dict)
                else "mapping"
            )
        case "string":
            examples = schema.get("examples")
            return f"as `{examples[0]}`" if examples else schema.get("format", "text")
        case None:
            return "text"
        case plain:
            return {"integer": "whole number", "boolean": "true or false"}.get(plain, str(plain))


class MetricTable(_Made):
    """Every metric, from the registry."""

    def lines(self) -> Iterator[str]:
        """A section for what selectors name."""
        from qoslab.model.metrics import FORM_OF_SELECTOR, METRICS

        for selector, form in FORM_OF_SELECTOR.items():
            yield from (f"## Of {selector}", "", f"Selector: {form}.", "")
            mine = (each for each in METRICS.own.values() if each.selector == selector)
            yield from _table(
                ("metric", "unit", "meaning"), ((f"`{each.name}`", each.unit, each.description) for each in mine)
            )


class RunTables(_Made):
    """The tables of a run with their columns' units."""

    def lines(self) -> Iterator[str]:
        """A section for each table."""
        from qoslab.results import tables

        for name, schema in tables.SCHEMAS.items():
            yield from (f"## `{name}`", "")
            yield from _table(
                ("column", "type", "unit"),
                ((f"`{each.name}`", str(each.type), tables.unit_of(each.name) or "") for each in schema),
            )


_LINK = re.compile(r"\]\((?:\.\./)+(?P<file>[A-Z]+\.md)(?P<anchor>#[^)]*)?\)")


def _beside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links of a page to files above docs/ go to the pages that show these."""

    def target(found: re.Match[str]) -> str:
        up = "../" * docname.count("/")
        return f"]({up}{BESIDE[found['file']]}{found['anchor'] or ''})" if found["file"] in BESIDE else found[0]

    source[0] = _LINK.sub(target, source[0])


def _plain(app: Sphinx, context: object, lines: list[str]) -> None:
    """Help texts are no reStructuredText: an asterisk is one."""
    lines[:] = [line.replace("*", "\\*") for line in lines]


def _add_rustdoc(app: Sphinx, exception: Exception | None) -> None:
    """The documentation of the crates, which `cargo doc` has written."""
    made = TOP / "target" / "doc"
    if exception is None and made.is_dir():
        shutil.copytree(made, Path(app.outdir) / "rust", dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of it."""
    for name, directive in (
        ("experiment-keys", ExperimentKeys),
        ("metric-table", MetricTable),
        ("run-tables", RunTables),
    ):
        app.add_directive(name, directive)
    app.setup_extension("sphinx_click")
    app.add_lexer("ios", TextLexer)
    app.connect("source-read", _beside)
    app.connect("build-finished", _add_rustdoc)
    app.connect("sphinx-click-process-description", _plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
