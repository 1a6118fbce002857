"""Pages in a browser: on a phone nothing is wider than the screen or too small to read, paper holds all tables, and a
keyboard is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sample_run

from browser import Browser, open_browser
from levels import long_cases
from qoslab.analysis import analyse
from qoslab.analysis.charts import overlay_graph
from qoslab.model.matrix import as_texts
from qoslab.plan import Options, make_plan
from qoslab.report import render_index
from qoslab.report.arms import Graph
from qoslab.report.averages import AverageRow, PairRow, PairSection
from qoslab.report.html import to_html
from qoslab.report.page import NoteText, Page, build_page
from qoslab.report.sweep import HeatCell, HeatMap, Listed, SweepSection, sweep_sections
from qoslab.results import CellSummary, Manifest, RunFolder
from qoslab.schema import load_sweep

ROOT = Path(__file__).parents[2]

PAGES = ("plain", "sweep", "index")
SMALLEST_PX = 11
PAPER_PX = 717
"""Width between the margins of a printed A4 page."""
SMALL_LETTERS = """(least) => {
  const found = new Set(), every = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (every.nextNode()) {
    const {data, parentElement: holder} = every.currentNode;
    const size = parseFloat(getComputedStyle(holder).fontSize);
    if (data.trim() && holder.checkVisibility() && size < least) found.add(`${size} px: ${data.trim()}`);
  }
  return [...found];
}"""
DISPLAYS = "[...document.querySelectorAll('.figures, .streams')].map((each) => getComputedStyle(each).display)"
LONG = "the sender's share of the bottleneck's rate while nothing else is sent"


def sweep_page(page: Page) -> Page:
    """Provide the page with the elements of a sweep, as wide as in the widest sweeps."""
    cell = HeatCell("645802 B", 0.4, "one", short="645802")
    names = ["policer", "sender", "rtt", "link"]
    rows = [(["dynamic-rtt", "client", f"{rtt} ms", "50 Mb/s"], [cell] * 20) for rtt in (10, 50, 100)]
    head = [[(f"{rate} Mb/s", 4) for rate in range(5)], [(f"{count}", 1) for count in (1, 2, 5, 10) * 5]]
    heat = HeatMap("", head, names, ["pir", "connections"], rows, "B", [cell] * 5)
    by = [(f"policer {number}", [("dynamic-rtt", "1.234 Mb/s", "1.1 Mb/s to 1.3 Mb/s", 12)]) for number in (1, 2)]
    worst = [Listed("1.234 Mb/s", LONG, "cells/grid/1", [("receiver", "cells/grid/1/captures/receiver.pcapng")])]
    section = SweepSection("sweep-1", "Goodput", "Mean of all.", [], [heat], by, worst, "The lowest")
    row = PairRow("bucket 187500 B", ["12", "3", "45"], "12345678 B", "23456789 B", "+90.0 %", ("a", "b"))
    pairs = PairSection("pairs", "Two", "Won.", "policer dynamic-rtt", "policer static", [("bucket", [row])], [row])
    words = dict.fromkeys(("title", "about", "reason", "interval", "lowest", "highest", "explanation"), LONG)
    kept = {"verdict": "within", "reproduction": "not reproduced"}
    of_figures = dict.fromkeys(("cells", "published", "measured", "difference", "tolerance"), "645802 B")
    metrics = [f"police.bucket.p9{each}_ms" for each in range(12)]
    note = NoteText("Notes", ["One."], metrics, [(LONG, ["12.34 ms"] * 12)])
    wide = {"slow": 1e5, "fast": 1e8}
    lead = Graph("lead", "T", "S", "", overlay_graph({name: pd.Series([rate] * 3) for name, rate in wide.items()}))
    averages = [AverageRow(**words | kept | of_figures)]
    return replace(page, lead=lead, sweep=[section], pairs=[pairs], averages=averages, notes=[note])


GRID = ROOT / "experiments/tcp-friendly-policer.yml"
"""Shipped experiment with the widest maps."""
LIKE = {
    "goodput.of_pir": 0.9475,
    "goodput.of_bottleneck": 0.9475,
    "police.bucket.mean": 645802.0,
    "tcp.timeouts": 123.0,
}
"""Value of each experiment with as many digits as those of its runs."""


def grid_sections(root: Path) -> list[SweepSection]:
    """Provide the sections of a whole run of that experiment."""
    planned = make_plan(load_sweep(GRID, {}), Options(lab="simulated"))
    cells = [
        CellSummary(arm=each.arm, parameters=as_texts(each.parameters), repetition=each.repetition, valid=True)
        for each in planned.cells
    ]
    # All values differ, so that the scale has all its steps.
    rows = [
        {"arm": each.arm, "cell": each.name, "metric": metric, "value": value * (1 - number / 1000)}
        for metric, value in LIKE.items()
        for number, each in enumerate(cells)
    ]
    manifest = Manifest(
        experiment=planned.experiment,
        published=(),
        started=sample_run.STARTED,
        ended=sample_run.STARTED,
        cells=tuple(cells),
    )
    return sweep_sections(manifest, map(RunFolder(root).counted_cell_files, cells), pd.DataFrame(rows))


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Provide the pages as files."""
    root = tmp_path_factory.mktemp("runs")
    folder = sample_run.make_run(root)
    page = build_page(folder, analyse(folder))
    made = {"plain": root / "plain.html", "sweep": root / "sweep.html", "index": Path(render_index(root))}
    made["grid"] = root / "grid.html"
    made["grid"].write_text(to_html(replace(page, sweep=grid_sections(root))), encoding="utf-8")
    made["plain"].write_text(to_html(page), encoding="utf-8")
    made["sweep"].write_text(to_html(sweep_page(page)), encoding="utf-8")
    return {name: file.as_uri() for name, file in made.items()}


@pytest.fixture(scope="module")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Provide one browser for all pages."""
    with open_browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


def visible_elements(shared_browser: Browser, url: str, **look: Any) -> None:
    """Load a page and unfold all of it."""
    shared_browser.open(url, **look)
    shared_browser.tell("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    shared_browser.settle()


@pytest.mark.parametrize("width", [400, *long_cases(1280)])
@pytest.mark.parametrize("page", PAGES)
def test_page_elements_fit_the_screen_and_are_large_enough(
    shared_browser: Browser, urls: dict[str, str], page: str, width: int
) -> None:
    visible_elements(shared_browser, urls[page], width=width)
    assert shared_browser.across() <= width
    assert shared_browser.tell(f"({SMALL_LETTERS})({SMALLEST_PX})") == []


MAPS = """(() => [...document.querySelectorAll(".heat")].map((map) => {
  map.scrollIntoView({block: "start", behavior: "instant"});
  const {left, top, right, bottom} = map.getBoundingClientRect(), holder = map.parentElement.getBoundingClientRect();
  const columns = map.rows[map.rows.length - 1].cells.length;
  return {columns, box: [left, top, right, bottom].map(Math.round), cut: left < holder.left || right > holder.right};
}))()"""
"""Columns, position in the window and overflow of each map."""


def test_widest_maps_fit_on_a_screen(shared_browser: Browser, urls: dict[str, str]) -> None:
    visible_elements(shared_browser, urls["grid"], width=1280, height=800)
    maps = shared_browser.tell(MAPS)
    assert [each["columns"] for each in maps] == [24] * 4
    for each in maps:
        left, top, right, bottom = each["box"]
        assert left >= 0 and top >= 0 and right <= 1280 and bottom <= 800 and not each["cut"], each


STOPS = """(() => {
  const at = document.activeElement;
  if (at === document.body || at.dataset.reached) return null;
  at.dataset.reached = "yes";
  const box = at.getBoundingClientRect();
  let seen = box.width > 0 && box.height > 0 && at.checkVisibility({opacityProperty: true});
  return {what: `${at.localName} ${at.getAttribute("aria-label") ?? at.textContent.trim().slice(0, 40)}`,
    shown: seen && getComputedStyle(at).outlineStyle !== "none"};
})()"""
"""Focused element and its visibility; empty after all elements."""
UNREACHED = """(() => {
  const over = (each, all, part, how) => each[all] > each[part] + 1 && ["auto", "scroll"].includes(how);
  const scrolls = (each, {overflowX, overflowY}) =>
    over(each, "scrollWidth", "clientWidth", overflowX) || over(each, "scrollHeight", "clientHeight", overflowY);
  // Of radio buttons with one name the chosen one is reached, and the others from it.
  const chosen = (name) => document.querySelector(`[type=radio][name="${name}"][data-reached]`);
  const reached = (each) => each.dataset.reached || chosen(each.name);
  return [...document.body.querySelectorAll("*")].filter((each) => each.checkVisibility() && !reached(each)
    && (each.matches("summary, input, button, a[href]") || scrolls(each, getComputedStyle(each))))
    .map((each) => each.outerHTML.slice(0, 80));
})()"""
"""Elements that open, toggle, lead or scroll and never had the focus."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("page", PAGES)
def test_every_control_is_reachable_by_keyboard(shared_browser: Browser, urls: dict[str, str], page: str) -> None:
    # On a screen as narrow as a phone's, most of it has to be scrolled.
    visible_elements(shared_browser, urls[page], width=400)
    stops = []
    shared_browser.press("Tab")
    while (stop := shared_browser.tell(STOPS)) is not None:
        stops.append(stop)
        shared_browser.press("Tab")
        # Elements that receive the focus scroll into view in a moment.
        shared_browser.settle()
    assert len(stops) > (20 if page != "index" else 1)
    assert shared_browser.tell(UNREACHED) == []
    assert [stop["what"] for stop in stops if not stop["shown"]] == []


def focus(shared_browser: Browser, selector: str) -> None:
    """Press Tab until an element has the focus."""
    shared_browser.tell("document.activeElement.blur()")
    for _ in range(200):
        shared_browser.press("Tab")
        if shared_browser.tell(f"document.activeElement.matches({selector!r})"):
            return
    raise AssertionError(f"no tabulator comes to {selector}")


def test_every_control_works_with_keys(shared_browser: Browser, urls: dict[str, str]) -> None:
    shared_browser.open(urls["plain"], width=400)
    shared_browser.press("Tab")
    shared_browser.press("Enter")
    assert shared_browser.tell("location.hash") == "#figures"
    # A link to an arm opens it.
    shared_browser.tell("location.hash = document.querySelector('section.arm').id")
    shared_browser.wait("document.querySelector('details.whole').open")
    shared_browser.wait("document.querySelector('.arm .graph.js-plotly-plot') !== null")
    focus(shared_browser, ".values > summary")
    for key, opened in (("Enter", True), (" ", False), ("Enter", True)):
        shared_browser.press(key)
        shared_browser.settle()
        assert shared_browser.tell("document.activeElement.parentElement.open") is opened
    focus(shared_browser, ".values > .scroll")
    for _ in range(3):
        shared_browser.press("ArrowDown")
    shared_browser.wait("document.activeElement.scrollTop > 0")
    focus(shared_browser, ".controls input[type=checkbox]")
    lines = "document.activeElement.closest('figure').querySelectorAll('.scatterlayer .js-line').length"
    drawn = shared_browser.tell(lines)
    shared_browser.press(" ")
    shared_browser.wait(f"{lines} === {drawn - 1}")
    focus(shared_browser, ".bins input")
    before = shared_browser.tell("document.activeElement.parentElement.textContent")
    shared_browser.press("ArrowRight")
    assert shared_browser.tell("document.activeElement.parentElement.textContent") != before
    assert shared_browser.tell("document.activeElement.checked")


def test_values_of_a_map_are_reachable_by_keyboard(shared_browser: Browser, urls: dict[str, str]) -> None:
    shared_browser.open(urls["grid"])
    focus(shared_browser, ".heat td")
    reported = (
        "(() => { const at = document.activeElement; return [at.cellIndex, at.parentElement.rowIndex, at.title]; })()"
    )
    (column, row, title), *_ = walk = [shared_browser.tell(reported)]
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp"):
        shared_browser.press(key)
        walk.append(shared_browser.tell(reported))
        assert shared_browser.tell("document.querySelector('.touched').textContent") == walk[-1][2] != ""
    places = [(at[0] - column, at[1] - row) for at in walk]
    assert places == [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (0, 0)]
    assert walk[0] == walk[-1] and walk[1][2] != title
    shared_browser.press("Tab")
    assert not shared_browser.tell("document.activeElement.matches('.heat td')")


@pytest.mark.sample(3)
@pytest.mark.parametrize("page", PAGES)
def test_printed_page_has_all_values_as_tables(shared_browser: Browser, urls: dict[str, str], page: str) -> None:
    visible_elements(shared_browser, urls[page], width=PAPER_PX)
    shared_browser.look(width=PAPER_PX, media="print")
    # A browser shrinks all letters of a page that is wider than the sheet.
    assert shared_browser.tell("document.scrollingElement.scrollWidth") <= PAPER_PX
    assert set(shared_browser.tell(DISPLAYS)) == ({"table"} if page != "index" else set())


@pytest.mark.long
def test_printed_page_is_white_in_dark_mode(shared_browser: Browser, urls: dict[str, str]) -> None:
    visible_elements(shared_browser, urls["plain"], dark=True)
    assert shared_browser.tell("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)"
    shared_browser.look(dark=True, media="print")
    assert shared_browser.tell("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert shared_browser.print().startswith(b"%PDF-")
