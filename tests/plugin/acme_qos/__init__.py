"""A traffic tool and a platform of another package: iperf3 under another name, and an engine router under another."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qoslab.model.experiment import Flow
from qoslab.model.units import Duration
from qoslab.platforms.engine import Engine
from qoslab.traffic import FlowResult, Output
from qoslab.traffic.iperf3 import Iperf3


class Ramp(Iperf3):
    """Starts iperf3, and reads what it prints."""

    name = "ramp"

    def parse(self, flow: Flow, duration: Duration, client: Output, server: Output) -> FlowResult:
        """The figures of a flow; `TrafficError` if the output has none."""
        return replace(super().parse(flow, duration, client, server), tool=self.name)


@dataclass(frozen=True)
class Bsd(Engine):
    """Router that is configured like an engine router, over the control socket of its data plane."""

    name: str = "bsd"
