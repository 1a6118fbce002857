"""Tables → tables and figures, with pandas. Everything is pure but `analyse`, which reads and writes a run folder."""

from qoslab.analysis.run import Outcome, analyse

__all__ = ["Outcome", "analyse"]
