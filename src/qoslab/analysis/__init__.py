"""Tables → tables and figures, with pandas. Everything is pure but `analyse`, which reads and writes a run
folder, and `enough`, which reads from one."""

from qoslab.analysis.run import Outcome, analyse, enough

__all__ = ["Outcome", "analyse", "enough"]
