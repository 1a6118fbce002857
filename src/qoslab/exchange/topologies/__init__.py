"""Conversion of containerlab and netlab topologies to qoslab topology files.

What has no counterpart is refused with its place: nodes that are neither host nor router of ours, segments of more than
two ends, tunnels, links to the machine itself. Parts that only configure a node are omitted and reported.
"""

from qoslab.exchange.topologies.convert import ConversionOptions, import_topology

__all__ = ["ConversionOptions", "import_topology"]
