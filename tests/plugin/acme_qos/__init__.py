"""A traffic tool and a platform of another package: iperf3 under another name, and a Linux router under another."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qoslab.model.experiment import Flow
from qoslab.platforms.linux import Linux
from qoslab.traffic import FlowResult, Output
from qoslab.traffic.iperf3 import Iperf3
from qoslab.units import Duration


class Ramp(Iperf3):
    name = "ramp"

    def parse(self, flow: Flow, duration: Duration, client: Output, server: Output) -> FlowResult:
        return replace(super().parse(flow, duration, client, server), tool=self.name)


class Hollow:
    name = "hole"
    suffix = "txt"


@dataclass(frozen=True)
class Bsd(Linux):
    name: str = "bsd"
