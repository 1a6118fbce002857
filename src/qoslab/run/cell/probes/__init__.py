"""IP SLA operations of a cell: their start while the traffic runs, and their results.

`PROBERS` has one prober for each access to the sending node: the command line of a router, the control socket of a data
plane, the program `sla` on a host. A new prober is a module with a `Prober` and a line there.
"""

from qoslab.run.cell.probes.base import Enter, Setting, Show
from qoslab.run.cell.probes.cell_probes import PROBERS, CellProbes, reserved_ports

__all__ = ["PROBERS", "CellProbes", "Enter", "Setting", "Show", "reserved_ports"]
