"""IOS configuration templates (Jinja2): the variables that they use, and their rendered text.

Templates are untrusted: see `qoslab.schema.sandbox` for their limits and `qoslab.schema.named_files` for the folders
from which they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from jinja2 import BaseLoader, Environment, TemplateError, TemplateNotFound, TemplateSyntaxError, meta

from qoslab.errors import ExperimentError
from qoslab.model.experiment import Configuration
from qoslab.schema.document import Place
from qoslab.schema.named_files import FileRefusedError, allowed_folders, normalise_path, read_text
from qoslab.schema.sandbox import Sandbox, limited_rendering

TEMPLATE_LIMIT = 2**15
"""Maximum bytes of a template; the longest of this repository has 700."""
TEXT_LIMIT = 2**18
"""Maximum characters of a rendered configuration; routers of this time store 2^15 to 2^18 bytes."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters that a command line interprets as keys: Ctrl-C, Ctrl-Z, Escape."""


@dataclass(frozen=True)
class TemplateVariables:
    """Variables that a template and its includes use."""

    names: frozenset[str]
    complete: bool
    """False if the template includes another by a computed name, so that more may be used."""


class _Loader(BaseLoader):
    """Loader of files below the folders that the experiment may use; names are relative to the first template."""

    def __init__(self, folder: Path, allowed: tuple[Path, ...]) -> None:
        self.folder = folder
        self.allowed = allowed

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        path = self.folder / template
        try:
            source = read_text(path, self.allowed, TEMPLATE_LIMIT)
        except FileRefusedError as error:
            raise TemplateNotFound(template, f"cannot read the template {template}: {error.message}") from error
        stamp = _file_fingerprint(path)
        return source, str(path), lambda: _file_fingerprint(path) == stamp


def _file_fingerprint(path: Path) -> tuple[int, ...]:
    """Return a fingerprint that changes with the content of the file."""
    try:
        state = path.stat()
    except OSError:
        return ()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


@lru_cache
def _jinja_environment(folder: Path, allowed: tuple[Path, ...]) -> Sandbox:
    return Sandbox(_Loader(folder, allowed))


@lru_cache
def _used_variables(
    environment: Sandbox, text: str, name: str, file: str
) -> tuple[frozenset[str], tuple[str | None, ...]]:
    """Return the variables of a template, and the names of included templates, None for a computed name.

    The combinations of a sweep share their templates.
    """
    tree = environment.parse(text, name, file)
    return frozenset(meta.find_undeclared_variables(tree)), tuple(meta.find_referenced_templates(tree))


def template_variables(experiment_file: Path, template: str) -> TemplateVariables:
    """Return the variables of a template. Raise `ExperimentError` with the template's line if it is not valid
    Jinja2.
    """
    path, allowed = experiment_file.parent / template, allowed_folders(experiment_file)
    environment = _jinja_environment(path.parent, allowed)
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
            own, referenced = _used_variables(environment, read_text(file, allowed, TEMPLATE_LIMIT), name, str(file))
            names |= own
        except TemplateSyntaxError as error:
            finding = Place(str(file), error.lineno, 1).finding("", f"not a valid template: {error.message}")
            raise ExperimentError(findings=[finding]) from error
        except FileRefusedError as error:
            finding = Place(str(normalise_path(file))).finding("", f"cannot read the template: {error.message}")
            raise ExperimentError(findings=[finding]) from error
        except Exception as error:  # nested too deeply for Jinja2 or Python
            finding = Place(str(file)).finding("", f"not a valid template: {_template_error(error)}")
            raise ExperimentError(findings=[finding]) from error
        for included in referenced:
            if included is None:
                complete = False
            else:
                waiting.append(included)
    return TemplateVariables(frozenset(names), complete)


def render_configuration(experiment_file: Path, configuration: Configuration) -> str:
    """Return the text of the configuration. Raise `ExperimentError` with the template's line if it cannot be
    rendered.
    """
    path = experiment_file.parent / configuration.template
    text = _render_template(_jinja_environment(path.parent, allowed_folders(experiment_file)), path, configuration)
    if found := _CONTROL.search(text):
        lines = render_lines(experiment_file, configuration)
        place = next((place for line, place in lines if _CONTROL.search(line)), Place(str(path)))
        message = f"found the control character \\x{ord(found[0]):02x}, expected text"
        raise ExperimentError(findings=[place.finding("", message)])
    return text if text.endswith("\n") else text + "\n"


def _render_template(environment: Sandbox, path: Path, configuration: Configuration, limit: int = TEXT_LIMIT) -> str:
    """Return the text. Any exception of an untrusted template becomes a finding about it."""
    pieces: list[str] = []
    left = limit
    try:
        with limited_rendering():
            for piece in environment.get_template(path.name).generate(configuration.variables):
                pieces.append(piece)
                left -= len(piece)
                if left < 0:
                    raise FileRefusedError(f"found a text of more than {limit} characters")
    except Exception as error:
        if isinstance(error, TemplateSyntaxError):
            place = Place(error.filename or str(path), error.lineno, 1)
        else:
            place = _error_place(error.__traceback__, path)
        finding = place.finding("", f"cannot render the template: {_template_error(error)}")
        raise ExperimentError(findings=[finding]) from error
    return "".join(pieces)


_REASONS: dict[type[BaseException], str] = {
    RecursionError: "found endlessly nested includes, macros or brackets, expected fewer",
    MemoryError: "found brackets or blocks nested too deeply, expected fewer",
    SyntaxError: "found blocks nested too deeply, expected fewer",
    ZeroDivisionError: "found a division by zero",
    OverflowError: "found a number that is too large",
}


def _template_error(error: Exception) -> str:
    """Return the error of a template as one line of limited length."""
    if isinstance(error, TemplateError | FileRefusedError):
        text = error.message or str(error)
    else:
        known = next((text for kind, text in _REASONS.items() if isinstance(error, kind)), "")
        text = known or f"{type(error).__name__}: {error}"
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:300] + "…"


_MARK = re.compile("\x01([^\x01\x02]*):([0-9]+)\x02")
"""Mark before each line of a template with recorded places: two control characters that no configuration contains."""


class _MarkingLoader(_Loader):
    """Loader of templates that adds a mark before each line of text."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, filename, uptodate = super().get_source(environment, template)
        parts: list[str] = []
        at_start = True
        # The lexer has already applied the trimming of block tags, and splits texts at the beginnings of lines.
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
def _marking_environment(folder: Path, allowed: tuple[Path, ...]) -> Sandbox:
    return Sandbox(_MarkingLoader(folder, allowed))


def render_lines(experiment_file: Path, configuration: Configuration) -> list[tuple[str, Place]]:
    """Return the lines of `render_configuration`, each with its place in the templates."""
    path = experiment_file.parent / configuration.template
    environment = _marking_environment(path.parent, allowed_folders(experiment_file))
    text = _render_template(environment, path, configuration, limit=16 * TEXT_LIMIT)  # marks are longer than lines
    lines = []
    place = Place(str(path), 1, 1)
    for line in (text or "\n").splitlines():
        for mark in _MARK.finditer(line):
            place = Place(mark[1], int(mark[2]), 1)
        lines.append((_MARK.sub("", line), place))
    return lines


def _error_place(traceback: TracebackType | None, path: Path) -> Place:
    """Return the line of the innermost template in the traceback: Jinja2 rewrites tracebacks to name template files."""
    found = Place(str(path))
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if Path(file).is_relative_to(path.parent):
            found = Place(file, traceback.tb_lineno, 1)
        traceback = traceback.tb_next
    return found
