"""HTML report of a run folder as one self-contained file, and the parts of the report for notebooks."""

from qoslab.report.html import render, render_index

__all__ = ["render", "render_index"]
