"""Run folder → one self-contained HTML file; the same, piece by piece, for notebooks."""

from qoslab.report.html import render, render_index

__all__ = ["render", "render_index"]
