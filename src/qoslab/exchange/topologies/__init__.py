"""Conversion of containerlab and netlab topologies to qoslab topology files.

Parts without a counterpart are refused with their place: nodes that qoslab supports neither as host nor as router,
segments with more than two ends, tunnels, links to the machine itself. Parts that only configure a node are omitted and
reported.
"""

from qoslab.exchange.topologies.convert import ConversionOptions, import_topology

__all__ = ["ConversionOptions", "import_topology"]
