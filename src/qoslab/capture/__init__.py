"""Packet capture: one module each way of doing it, found by name in the registry. `qoslab.pcap` reads the files."""

from qoslab.capture.base import CaptureError, CaptureTool, Counts
from qoslab.capture.dumpcap import Dumpcap

TOOLS: dict[str, CaptureTool] = {"dumpcap": Dumpcap()}

__all__ = ["TOOLS", "CaptureError", "CaptureTool", "Counts"]
