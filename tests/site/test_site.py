"""Built site (`tox -e site`): its links, the distance of each page, and the absence of external resources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag

from browser import open_browser

TOP = Path(__file__).parents[2]
SITE = TOP / "target" / "site"
PAGES = sorted(
    file.relative_to(SITE)
    for file in SITE.rglob("*.html")
    if not {"_made", "_static", "rust"} & {*file.relative_to(SITE).parts}
)
ALLOWED_SOURCES = {Path("genindex.html"), Path("search.html"), Path("py-modindex.html")}
"""Files of Sphinx other than pages."""
MADE = sorted(SITE.glob("_made/*/*.html"))
CLICKS = 2
PHONE_PX = 400


@cache
def parse_page(page: Path) -> BeautifulSoup:
    return BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(page: Path) -> frozenset[str]:
    return frozenset(str(each["id"]) for each in parse_page(page).find_all(id=True)) | {
        str(each["name"]) for each in parse_page(page).find_all("a", attrs={"name": True})
    }


def links(page: Path, within: Tag | None = None) -> Iterator[tuple[str, Path, str]]:
    """Return the links of a page to files of the site: text, file, anchor."""
    for tag in (within or parse_page(page)).find_all(["a", "link", "img", "script", "iframe"]):
        written = str(tag.get("href") or tag.get("src") or "")
        parts = urlsplit(written)
        if not written or parts.scheme or parts.netloc:
            continue
        file = (SITE / page).parent / unquote(parts.path) if parts.path else SITE / page
        file = file / "index.html" if file.is_dir() else file
        yield written, file.resolve(), parts.fragment


def test_site_is_built() -> None:
    assert len(PAGES) > 70, "build it first: tox -e site"


def test_every_link_has_a_target() -> None:
    broken = []
    for page in PAGES:
        for written, file, anchor in links(page):
            if not file.is_file():
                broken.append(f"{page}: {written}")
            elif anchor and file.suffix == ".html":
                inside = file.relative_to(SITE.resolve())
                if inside in PAGES and anchor not in anchors(inside) and anchor not in ("", "top"):
                    broken.append(f"{page}: {written}")
    assert sorted(set(broken)) == []


def test_every_page_is_reachable_in_two_clicks() -> None:
    """Count visible links only: those of the text and the sections in its head, without an opened menu."""
    reached, edge = {Path("index.html")}, {Path("index.html")}
    for _ in range(CLICKS):
        edge = {
            file.relative_to(SITE.resolve())
            for page in edge
            for part in parse_page(page).select("article.bd-article, .bd-header .navbar-header-items .nav-item")
            for _, file, _ in links(page, part)
            if file.is_file() and file.relative_to(SITE.resolve()) in PAGES
        } - reached
        reached |= edge
    assert sorted(map(str, {*PAGES} - ALLOWED_SOURCES - reached)) == []


@pytest.mark.parametrize("page", [*PAGES, *MADE], ids=str)
def test_pages_load_no_external_resource(page: Path) -> None:
    found = parse_page(page)
    fetched = [
        str(tag.get("src") or tag.get("href"))
        for tag in (
            *found.find_all(["script", "img", "iframe", "source", "video"], src=True),
            *found.find_all("link", href=True),
        )
        if not {"canonical", "author", "license"} & {*(tag.get("rel") or ())}
    ]
    assert [each for each in fetched if re.match(r"(?:https?:)?//", each)] == []


def test_styles_and_scripts_load_no_external_resource() -> None:
    outside = re.compile(r"""(?:@import\s+|url\(\s*)["']?(?:https?:)?//""")
    styles = sorted(SITE.joinpath("_static").rglob("*.css"))
    assert styles
    assert [str(file.relative_to(SITE)) for file in styles if outside.search(file.read_text(encoding="utf-8"))] == []


def test_every_experiment_is_in_the_gallery_with_its_report() -> None:
    names = {file.stem for file in (TOP / "experiments").glob("*.yml")}
    shown = {heading.get_text().rstrip("#") for heading in parse_page(Path("gallery.html")).find_all("h2")}
    assert shown == names
    linked = {Path(str(tag["href"])).stem for tag in parse_page(Path("gallery.html")).select("a.report")}
    assert linked == names
    assert all(file.is_file() for _, file, _ in links(Path("gallery.html")))


def test_pages_show_the_output_of_commands() -> None:
    tutorial = parse_page(Path("tutorial.html")).get_text()
    for text in ("Created mine. Next:", "The run is valid", 'which the 3725 refuses at "priorty"', "exit status 2"):
        assert text in tutorial
    assert "Traceback" not in tutorial
    (printed,) = (block.get_text() for block in parse_page(Path("python.html")).select("div.ran"))
    assert printed.startswith("Policing versus shaping ")
    # The page must not describe the machine on which it was built.
    assert [str(page) for page in PAGES if str(TOP) in parse_page(page).get_text()] == []


def test_no_page_is_wider_than_a_phone(tmp_path: Path) -> None:
    shown = [page for page in PAGES if page.parent == Path() or page.name == "index.html"]
    assert shown
    with open_browser(tmp_path / "profile") as tab:
        wide = {}
        for page in shown:
            tab.open(f"file://{SITE / page}", width=PHONE_PX, height=800)
            if (width := tab.across()) > PHONE_PX:
                wide[str(page)] = width
    assert wide == {}
