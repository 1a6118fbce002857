"""Run folder → one self-contained HTML file."""

from qoslab.report.html import render

__all__ = ["render"]
