"""Labs of an inventory: existing routers and hosts, reached over SSH and restored after the run."""

from __future__ import annotations

from qoslab.run.devices.collector import SharedCollector
from qoslab.run.provenance import package_versions
from qoslab.run.workers.base import LabMachinery
from qoslab.run.workers.external.command_preview import preview_commands
from qoslab.run.workers.external.preflight_command import check
from qoslab.run.workers.external.worker import ExternalWorker, host_versions

MACHINERY = LabMachinery(ExternalWorker, SharedCollector, host_versions, package_versions, check, preview_commands)
