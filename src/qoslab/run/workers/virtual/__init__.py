"""Virtual labs: namespaces of this machine, with virtual routers."""

from __future__ import annotations

from qoslab.run.devices.collector import SharedCollector
from qoslab.run.provenance import package_versions, tool_versions
from qoslab.run.workers.base import LabMachinery
from qoslab.run.workers.virtual.worker import LabWorker

MACHINERY = LabMachinery(LabWorker, SharedCollector, lambda place, experiment: tool_versions(), package_versions)
