"""Configuration of the Sphinx site: pages are docs/**/*.md, their programs run in `console`, links are in
`reference`."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "site"))

project = "qoslab"
author = "the qoslab authors"
copyright = "the qoslab authors, Apache-2.0"
version = release = version_of("qoslab")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_design",
    "console",
    "reference",
]
exclude_patterns = ["man", "schema"]
nitpicky = False
default_role = "code"  # docstrings have Markdown's backticks
suppress_warnings = ["misc.highlighting_failure"]  # JSON with `…` for what is left out

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "pydata_sphinx_theme"
html_title = "qoslab"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "show_toc_level": 2,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "back_to_top_button": False,
}
# Code blocks without a language, or without a lexer, are shown unchanged.
highlight_language = "text"
