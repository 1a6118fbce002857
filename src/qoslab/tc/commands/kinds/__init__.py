"""Kinds of queueing disciplines: one module each, with `KIND` or several `KINDS`; all modules here are loaded."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from qoslab.tc.commands.qdisc_kind import QdiscKind


def _discover_kinds() -> dict[str, QdiscKind]:
    kinds: dict[str, QdiscKind] = {}
    for module in iter_modules(__path__):
        there = import_module(f"{__name__}.{module.name}")
        kinds |= {kind.name: kind for kind in there.KINDS}
    return kinds


KINDS: dict[str, QdiscKind] = _discover_kinds()
"""Kinds of qdiscs by their name in tc."""
