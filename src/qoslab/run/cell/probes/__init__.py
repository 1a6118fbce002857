"""IP SLA operations of a cell: their start while the traffic runs, and what they measured.

`PROBERS` has one for each way of reaching the node that sends: a router's command line, a data plane's control socket,
the program `sla` on a host. A new one is a module with a `Prober` and a line there.
"""

from qoslab.run.cell.probes.base import Enter, Setting, Show
from qoslab.run.cell.probes.cell_probes import PROBERS, Probes, reserved_ports

__all__ = ["PROBERS", "Enter", "Probes", "Setting", "Show", "reserved_ports"]
