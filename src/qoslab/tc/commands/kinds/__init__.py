"""Kinds of queueing disciplines: one module each, with `KIND` or several `KINDS`; all modules here are loaded."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from qoslab.tc.commands.qdisc_kind import Kind


def _found() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for module in iter_modules(__path__):
        there = import_module(f"{__name__}.{module.name}")
        kinds |= {kind.name: kind for kind in there.KINDS}
    return kinds


KINDS: dict[str, Kind] = _found()
"""Kinds of qdiscs by their name in tc."""
