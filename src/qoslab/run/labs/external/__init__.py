"""Labs of an inventory: routers and hosts that are there already, reached over SSH and left as they were found."""

from __future__ import annotations

from qoslab.run.devices.collector import SharedCollector
from qoslab.run.labs.external.check import check
from qoslab.run.labs.external.sent import sent
from qoslab.run.labs.external.worker import ExternalWorker, host_versions
from qoslab.run.labs.worker import Machinery
from qoslab.run.provenance import package_versions

MACHINERY = Machinery(ExternalWorker, SharedCollector, host_versions, package_versions, check, sent)
