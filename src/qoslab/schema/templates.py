"""IOS configuration templates (Jinja2): which variables they use, and their text once rendered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError, meta

from qoslab.errors import ExperimentError
from qoslab.model.experiment import Configuration
from qoslab.schema.document import Place


@dataclass(frozen=True)
class TemplateVariables:
    """What a template and all that it includes take from outside."""

    names: frozenset[str]
    complete: bool
    """False where the template includes another by a computed name, so that more may be used."""


@lru_cache
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # IOS configuration, not HTML
    )


def template_variables(path: Path) -> TemplateVariables:
    """The variables of a template. `ExperimentError` names the template's line where it is not Jinja2."""
    environment = _environment(path.parent)
    names: set[str] = set()
    complete = True
    waiting, seen = [path.name], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        file = path.parent / name
        try:
            tree = environment.parse(file.read_text(encoding="utf-8"), name, str(file))
        except TemplateSyntaxError as error:
            finding = Place(str(file), error.lineno, 1).finding("", f"not a valid template: {error.message}")
            raise ExperimentError(findings=[finding]) from error
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
            raise ExperimentError(
                findings=[Place(str(file)).finding("", f"cannot read the template: {reason}")]
            ) from error
        names |= meta.find_undeclared_variables(tree)
        for included in meta.find_referenced_templates(tree):
            if included is None:
                complete = False
            else:
                waiting.append(included)
    return TemplateVariables(frozenset(names), complete)


def render_configuration(experiment_file: Path, configuration: Configuration) -> str:
    """The configuration's text. `ExperimentError` names the template's line where it cannot be rendered."""
    path = experiment_file.parent / configuration.template
    try:
        text = _environment(path.parent).get_template(path.name).render(configuration.variables)
    except TemplateError as error:
        line = getattr(error, "lineno", None) or _line_in(error, path)
        place = Place(str(path), line, 1) if line else Place(str(path))
        raise ExperimentError(findings=[place.finding("", f"cannot render the template: {error.message}")]) from error
    return text if text.endswith("\n") else text + "\n"


_MARK = re.compile("\x01([^\x01\x02]*):([0-9]+)\x02")
"""Before each line of a template whose places are wanted: two control characters that no configuration has."""


class _MarkingLoader(FileSystemLoader):
    """Loads templates with a mark before each line of text."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, filename, uptodate = super().get_source(environment, template)
        parts: list[str] = []
        at_start = True
        # The lexer's text pieces are already without what block tags trim, and their joints are where lines begin.
        for number, kind, value in environment.lex(source):
            if kind != "data":
                parts.append(value)
                at_start = value.endswith("\n")
                continue
            for offset, line in enumerate(value.splitlines(keepends=True)):
                parts.append(f"\x01{filename}:{number + offset}\x02{line}" if at_start or offset else line)
            at_start = value.endswith("\n")
        return "".join(parts), filename, uptodate


@lru_cache
def _marking_environment(folder: Path) -> Environment:
    return _environment(folder).overlay(loader=_MarkingLoader(folder))


def render_lines(experiment_file: Path, configuration: Configuration) -> list[tuple[str, Place]]:
    """The lines of `render_configuration` and where in the templates each comes from."""
    path = experiment_file.parent / configuration.template
    text = _marking_environment(path.parent).get_template(path.name).render(configuration.variables)
    lines = []
    place = Place(str(path), 1, 1)
    for line in (text or "\n").splitlines():
        for mark in _MARK.finditer(line):
            place = Place(mark[1], int(mark[2]), 1)
        lines.append((_MARK.sub("", line), place))
    return lines


def _line_in(error: BaseException, path: Path) -> int | None:
    """The template's line in the traceback: Jinja2 rewrites tracebacks to name template files."""
    line, traceback = None, error.__traceback__
    while traceback is not None:
        if Path(traceback.tb_frame.f_code.co_filename) == path:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
