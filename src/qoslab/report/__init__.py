"""Run folder → one self-contained HTML file; the same, piece by piece, for notebooks."""

from qoslab.report.html import render
from qoslab.report.view import RunView, open_run

__all__ = ["RunView", "open_run", "render"]
