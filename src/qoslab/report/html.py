"""Run folder → `report.html`: one file that needs no network."""

from __future__ import annotations

from base64 import b64encode
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from qoslab.analysis import Outcome, analyse
from qoslab.report.page import Page, build_page
from qoslab.results import RunFolder
from qoslab.shipped import shipped


def render(folder: RunFolder, outcome: Outcome | None = None) -> Path:
    """Write the report of a run and return its path. The run is analysed first, unless its outcome is given.

    `UserError` where the folder is no finished run or cannot be written.
    """
    outcome = outcome if outcome is not None else analyse(folder)
    return folder.replace(folder.report.name, to_html(build_page(folder, outcome)))


@cache
def _environment() -> Environment:
    """Keeps the templates that it has compiled."""
    return Environment(
        loader=FileSystemLoader(shipped("reports")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def to_html(page: Page) -> str:
    """Lay the report out."""
    plotly, script = (_plotly(), _asset("report.js")) if page.graphs else (Markup(), Markup())
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            style=_asset("report.css"),
            script=script,
            plotly=plotly,
            script_hashes=Markup(" ".join(_hash(each) for each in (plotly, script) if each) or "'none'"),
            graphs=[(graph.id, Markup(graph.json)) for graph in page.graphs],
        )
    )


@lru_cache(4)
def _hash(script: str) -> str:
    """As a content policy names a script that stands in the page; no other is run, whatever a run folder has in it."""
    # A browser reads all ends of lines as \n.
    text = script.replace("\r\n", "\n").replace("\r", "\n")
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _plotly() -> Markup:
    """plotly.js as the installed Plotly package brings it along; that package is not imported, for speed."""
    file = distribution("plotly").locate_file("plotly/package_data/plotly.min.js")
    return Markup(Path(str(file)).read_text(encoding="utf-8"))


def _asset(name: str) -> Markup:
    return Markup(shipped(f"reports/{name}").read_text(encoding="utf-8"))
