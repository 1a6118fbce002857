"""Virtual labs: namespaces of this machine, with virtual routers."""

from __future__ import annotations

from qoslab.run.devices.collector import SharedCollector
from qoslab.run.labs.virtual.worker import LabWorker
from qoslab.run.labs.worker import Machinery
from qoslab.run.provenance import package_versions, tool_versions

MACHINERY = Machinery(LabWorker, SharedCollector, lambda place, experiment: tool_versions(), package_versions)
