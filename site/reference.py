"""Links to files above docs/, names of programs in help texts, and the documentation of the crates."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

TOP = Path(__file__).resolve().parents[1]
MOVED = {"CHANGELOG.md": "internals/changelog.md", "CONTRIBUTING.md": "internals/contributing.md"}
MOVED |= {"SECURITY.md": "internals/security.md"}
"""Pages of the site by the files at the top of the checkout that they show."""


_LINK = re.compile(r"\]\((?:\.\./)+(?P<file>[A-Z]+\.md)(?P<anchor>#[^)]*)?\)")


def _resolve_links(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links of a page to files above docs/ go to the pages that show these."""

    def target(found: re.Match[str]) -> str:
        up = "../" * docname.count("/")
        return f"]({up}{MOVED[found['file']]}{found['anchor'] or ''})" if found["file"] in MOVED else found[0]

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
    """Register the extension with Sphinx."""
    app.setup_extension("sphinx_click")
    app.add_lexer("ios", TextLexer)
    app.connect("source-read", _resolve_links)
    app.connect("build-finished", _add_rustdoc)
    app.connect("sphinx-click-process-description", _plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
