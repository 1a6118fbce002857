"""Report of a run folder as `report.html`: one file that needs no network."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from qoslab.analysis import Outcome, analyse, charts
from qoslab.errors import UserError
from qoslab.overview import read_runs
from qoslab.report.arms import Graph
from qoslab.report.index import build_index
from qoslab.report.lab_comparison import LabComparisonPage
from qoslab.report.page import Page, build_page
from qoslab.results import RunFolder
from qoslab.results.file_access import replace
from qoslab.system.shipped import shipped_path


def render(folder: RunFolder, outcome: Outcome | None = None) -> Path:
    """Write the report of a run and return its path. The run is analysed first, unless `outcome` is given.

    Raise `UserError` if the folder is not a finished run or cannot be written.
    """
    outcome = outcome if outcome is not None else analyse(folder)
    return folder.replace(folder.report.name, to_html(build_page(folder, outcome)))


def render_index(root: Path) -> Path:
    """Write `index.html` for all runs of a folder (EXPERIMENT/TIME) and return its path.

    Raise `UserError` if the folder has no runs or cannot be written. No run is analysed again.
    """
    runs = read_runs(root)
    if not runs:
        raise UserError(
            f"{root}: found no run, expected folders EXPERIMENT/TIME", hint="`qoslab run` creates them in runs/"
        )
    page = build_index(root, runs)
    content = _environment().get_template("index.html.j2").render(page=page, style=_asset("report.css"))
    file = root / "index.html"
    replace(file, content.encode(errors="backslashreplace"))
    return file


def lab_comparison_html(page: LabComparisonPage) -> str:
    """Return the page that compares the results of one experiment in several labs."""
    return _environment().get_template("across.html.j2").render(page=page, style=_asset("report.css"))


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates next to this module's compiled code, if that folder can be written to.

    A changed template is compiled again. The file names have a hash of the version of Jinja and of this module, which
    has the options and filters.
    """

    def __init__(self) -> None:
        key = sha256(version("jinja2").encode() + Path(__file__).read_bytes()).hexdigest()[:16]
        super().__init__(str(Path(__file__).with_name("__pycache__")), f"%s.{key}.template")

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    """Return the template environment; it caches compiled templates."""
    found = Environment(
        loader=FileSystemLoader(shipped_path("reports")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=None if sys.dont_write_bytecode else _CompiledTemplates(),
    )
    # As an image, a drawing's style does not affect the page.
    found.filters["data_uri"] = lambda drawn: f"data:image/svg+xml;base64,{b64encode(drawn.encode()).decode()}"
    found.filters["between_tags"] = _escape_content
    found.filters["dark"] = lambda colour: charts.DARK.get(colour, colour)
    return found


def _escape_content(text: str) -> Markup:
    """Escape the content of an element; quotation marks stay, since escaped ones take five bytes."""
    return Markup(str(escape(text)).replace("&#34;", '"').replace("&#39;", "'"))


def to_html(page: Page) -> str:
    """Return the report as HTML."""
    return _render_with_graphs("report.html.j2", page)


class GraphedPage(Protocol):
    """A page with graphs."""

    @property
    def graphs(self) -> Sequence[Graph]:
        """All graphs of the page."""
        ...


def foreign_html(page: GraphedPage) -> str:
    """Return the page on data imported from files of other tools."""
    return _render_with_graphs("import.html.j2", page)


def _render_with_graphs(template: str, page: GraphedPage) -> str:
    plotly, script = (
        (_asset("plotly/plotly-basic.min.js"), _asset("report.js")) if page.graphs else (Markup(), Markup())
    )
    return (
        _environment()
        .get_template(template)
        .render(
            page=page,
            dark=Markup(json.dumps(charts.DARK)),
            style=_asset("report.css"),
            script=script,
            plotly=plotly,
            script_hashes=Markup(" ".join(_hash(each) for each in (plotly, script) if each) or "'none'"),
            graphs=[(graph.id, Markup(_compact_chart(graph.figure))) for graph in page.graphs],
        )
    )


def _compact_chart(drawn: charts.Figure) -> str:
    """Return a chart as compact JSON that is safe inside a script element, in the form that `report.js` reads: an `x`
    equal to that of an earlier line is replaced by the number of that line, and whole numbers have no decimal point.
    """
    figure = json.loads(json.dumps(drawn), parse_float=_number)
    first: dict[str, int] = {}
    for number, trace in enumerate(figure["data"]):
        earlier = first.setdefault(json.dumps(trace["x"]), number)
        if earlier != number:
            trace["x"] = earlier
    # "<" would end the script element inside "</script>".
    return json.dumps(figure, separators=(",", ":")).replace("<", "\\u003c")


def _number(digits: str) -> float:
    value = float(digits)
    return int(value) if value.is_integer() else value


@lru_cache(4)
def _hash(script: str) -> str:
    """Return the hash of a script in the page for its content security policy, which allows no other script."""
    # A browser reads all line ends as \n.
    text = script.replace("\r\n", "\n").replace("\r", "\n")
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _asset(name: str) -> Markup:
    """Return a file of `reports`, cached, since the plotting library has a megabyte."""
    return Markup(shipped_path(f"reports/{name}").read_text(encoding="utf-8"))
