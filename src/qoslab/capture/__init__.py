"""Packet capture: one module for each tool, found by name in the registry; `packet_tables` reads the files."""

from qoslab.capture.base import CaptureCounts, CaptureError, CaptureTool
from qoslab.capture.dumpcap import Dumpcap

TOOLS: dict[str, CaptureTool] = {"dumpcap": Dumpcap()}

__all__ = ["TOOLS", "CaptureCounts", "CaptureError", "CaptureTool"]
