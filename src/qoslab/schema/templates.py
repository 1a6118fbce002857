"""IOS configuration templates (Jinja2): which variables they use, and their text once rendered."""

from __future__ import annotations

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


def _line_in(error: BaseException, path: Path) -> int | None:
    """The template's line in the traceback: Jinja2 rewrites tracebacks to name template files."""
    line, traceback = None, error.__traceback__
    while traceback is not None:
        if Path(traceback.tb_frame.f_code.co_filename) == path:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
