"""Check that routers at an ATM link have a circuit with the encapsulation of the link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qoslab.errors import Finding
from qoslab.ios.model.circuit import DEFAULT_ENCAPSULATION
from qoslab.ios.model.device import Device
from qoslab.model.experiment import Experiment
from qoslab.model.framing import MEDIUM
from qoslab.platforms.startup import CIRCUIT_ENCAPSULATIONS
from qoslab.schema.document import Document, Steps


def unmatched_circuits(
    experiment: Experiment, document: Document, arm: str, devices: Mapping[str, Device]
) -> Iterator[Finding]:
    """Yield the ends of ATM links whose circuit is missing or has another encapsulation. `devices` are the devices of
    the arm.
    """
    for number, link in enumerate(experiment.topology.links):
        if MEDIUM[link.framing] != "atm":
            continue
        expected = CIRCUIT_ENCAPSULATIONS[link.framing]
        for side, end in enumerate(link.ends):
            device = devices.get(end.node)
            if device is None:
                continue
            owner = device.with_circuit(end.interface)
            steps: Steps = ("topology", "links", number, "ends", side)
            if owner.circuit is None:
                yield document.finding(
                    steps,
                    f"found no circuit on {end.interface} of {end.node} in arm {arm}, expected a pvc "
                    "there or on a subinterface",
                    f"configure pvc 0/33 with encapsulation {expected}",
                )
                continue
            found = owner.circuit.encapsulation or DEFAULT_ENCAPSULATION
            if found != expected:
                yield document.finding(
                    steps,
                    f"found encapsulation {found} on {owner.name} of {end.node} in arm {arm}, expected "
                    f"{expected} on a link with {link.framing} framing",
                )
