"""Traffic tool and platform of another package: iperf3 and an engine router under other names."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qoslab.model.experiment import Flow
from qoslab.model.units import Duration
from qoslab.platforms.engine import EnginePlatform
from qoslab.traffic import FlowOutput, FlowResult
from qoslab.traffic.iperf3 import Iperf3


class RampTool(Iperf3):
    """Traffic tool that starts iperf3 and parses its output."""

    name = "ramp"

    def parse(self, flow: Flow, duration: Duration, client: FlowOutput, server: FlowOutput) -> FlowResult:
        """Return the values of a flow; `TrafficError` if the output has none."""
        return replace(super().parse(flow, duration, client, server), tool=self.name)


@dataclass(frozen=True)
class BsdPlatform(EnginePlatform):
    """Router configured like an engine router, over the control socket of its data plane."""

    name: str = "bsd"
