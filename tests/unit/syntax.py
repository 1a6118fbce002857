"""Statements of Python files."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(text: str) -> Iterator[ast.stmt]:
    """Yield every statement of a module, also inside functions. `ast.walk` takes longer: most nodes are expressions."""
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            left += getattr(node, name, ())
