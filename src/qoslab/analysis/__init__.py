"""Tables → tables and figures, with pandas. Everything is pure but `analyse`, which reads and writes a run
folder, and `enough` and `Readings`, which read from one."""

from qoslab.analysis.reading import Readings, references
from qoslab.analysis.run import Outcome, analyse, enough

__all__ = ["Outcome", "Readings", "analyse", "enough", "references"]
