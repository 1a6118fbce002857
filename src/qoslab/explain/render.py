"""A trace as a numbered table of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from qoslab.explain.router_steps import Trace

WIDTH = 80
TITLE = 19
"""Columns of a step's title."""


def trace_text(trace: Trace) -> str:
    """Return the table."""
    return "\n".join(_trace_lines(trace)) + "\n"


def _trace_lines(trace: Trace) -> Iterator[str]:
    yield from _wrap_text(f"{trace.router}: {trace.packet}", "", "  ")
    yield from _wrap_text(trace.title, "  ", "  ")
    yield from _wrap_text(trace.state, "  ", "  ")
    for note in trace.notes:
        yield from _wrap_text(f"note: {note}", "  ", "  ")
    yield ""
    width = len(str(len(trace.steps)))
    for number, step in enumerate(trace.steps, 1):
        head = f" {number:>{width}}  {step.title:<{TITLE}}"
        yield from _wrap_text(step.text, head, " " * len(head))
        for line in step.lines:
            yield from _wrap_text(str(line), " " * (len(head) + 2), " " * (len(head) + 4))


def _wrap_text(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
