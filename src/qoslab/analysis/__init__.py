"""Tables → tables and figures, with pandas. Everything is pure but `analyse`, which reads and writes a run
folder, and `enough` and `Readings`, which read from one."""

from qoslab.analysis.readings import Readings, references
from qoslab.analysis.run_analysis import Outcome, analyse, enough

__all__ = ["Outcome", "Readings", "analyse", "enough", "references"]
