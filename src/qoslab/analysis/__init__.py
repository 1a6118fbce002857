"""Analysis of runs with pandas: from raw results to tables, metrics and charts. Everything is pure except `analyse`,
which reads and writes a run folder, and `enough` and `Readings`, which read from one.

Names are imported on first use: a worker that finishes a cell needs only the check of its counters, without pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.system.first_use import lazy_imports

if TYPE_CHECKING:
    from qoslab.analysis.readings import Readings as Readings
    from qoslab.analysis.run_analysis import Outcome as Outcome
    from qoslab.analysis.run_analysis import analyse as analyse
    from qoslab.analysis.run_analysis import stopping_reason as stopping_reason

_MODULES = {
    "Outcome": "run_analysis",
    "Readings": "readings",
    "analyse": "run_analysis",
    "stopping_reason": "run_analysis",
}
"""Module of each name."""
__getattr__ = lazy_imports(__name__, _MODULES)
