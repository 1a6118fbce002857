"""Tables → tables and charts, with pandas. Everything is pure except `analyse`, which reads and writes a run
folder, and `enough` and `Readings`, which read from one.

Names are imported on first use: a worker that ends a cell needs only the check of its counters, without pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qoslab.analysis.readings import Readings, references
    from qoslab.analysis.run_analysis import Outcome, analyse, enough

_MODULES = {
    "Outcome": "run_analysis",
    "Readings": "readings",
    "analyse": "run_analysis",
    "enough": "run_analysis",
    "references": "readings",
}
"""Module of each name."""


def __getattr__(name: str) -> Any:
    """Import a name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found


__all__ = ["Outcome", "Readings", "analyse", "enough", "references"]
