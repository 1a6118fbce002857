"""Traffic tools: one module each, found by name in the registry below; others from packages (internals/extending.md).

To add a built-in tool, add a module with a class that implements `TrafficTool`, a recorded output under
`tests/recorded/`, and a line here.
"""

from functools import partial

from qoslab.errors import UserError
from qoslab.system.plugins import PluginRegistry, missing_members
from qoslab.system.programs import OWN_PROGRAMS
from qoslab.traffic.base import Commands as Commands
from qoslab.traffic.base import Endpoints as Endpoints
from qoslab.traffic.base import FlowOutput as FlowOutput
from qoslab.traffic.base import FlowProblem as FlowProblem
from qoslab.traffic.base import FlowResult as FlowResult
from qoslab.traffic.base import IntervalResult as IntervalResult
from qoslab.traffic.base import Listener as Listener
from qoslab.traffic.base import SendingPace as SendingPace
from qoslab.traffic.base import StreamResult as StreamResult
from qoslab.traffic.base import TrafficError as TrafficError
from qoslab.traffic.base import TrafficTool as TrafficTool
from qoslab.traffic.base import UncountedBounds as UncountedBounds
from qoslab.traffic.base import count_connections as count_connections
from qoslab.traffic.base import is_listening as is_listening
from qoslab.traffic.base import used_ports as used_ports
from qoslab.traffic.flood import Flood
from qoslab.traffic.iperf2 import Iperf2
from qoslab.traffic.iperf3 import Iperf3

TOOLS: PluginRegistry[TrafficTool] = PluginRegistry(
    "tools", {"iperf3": Iperf3(), "iperf": Iperf2(), "flood": Flood()}, partial(missing_members, TrafficTool)
)


THIRD_PARTY_PROGRAMS = tuple(
    dict.fromkeys(name for each in TOOLS.own.values() for name in each.programs if name not in OWN_PROGRAMS)
)
"""Third-party programs of the tools above; the Debian packages have the same names."""


def find_tool(name: str) -> TrafficTool:
    """Return the tool of that name. Raise `UserError` if there is none."""
    try:
        return TOOLS[name]
    except KeyError:
        raise UserError(f'found traffic tool "{name}", expected one of {", ".join(sorted(TOOLS))}') from None
