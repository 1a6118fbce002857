"""ATM interfaces: the permanent virtual circuit, its encapsulation, its traffic contract.

A link of a lab has one neighbour, so a port has one circuit, on itself or on a subinterface.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import CIRCUIT_MODES, ConfigSession, UnsupportedError, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.circuit import DEFAULT_ENCAPSULATION, AtmEncapsulation, Circuit, Contract
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.ios.rules import interface_bandwidth_kbps
from qoslab.system import program_formats

# Our own wording.
ONE_CIRCUIT = "a port has one circuit, and {interface} already has {circuit}: enter `no pvc {circuit}` there first"

ENGINE_ENCAPSULATIONS: dict[AtmEncapsulation, program_formats.Framing] = {
    "aal5snap": "aal5snap",
    "aal5mux ip": "aal5mux",
    "aal5mux ppp dialer": "pppoa-mux",
}


@router_command(
    ("interface", "subinterface"),
    "pvc <circuit:circuit>",
    no="pvc <circuit:circuit>",
    undo=Undo(first=True),
    help={"pvc": "Configure ATM PVC parameters", "circuit": "Enter VPI/VCI value(slash required)"},
)
def _configure_pvc(session: ConfigSession, args: Args) -> None:
    interface, name = session.interface, args.value("circuit", str)
    if not interface.is_atm:
        raise args.invalid_argument("pvc")
    present = interface.circuit
    if args.unset:
        if present is None or present.name != name:
            raise args.invalid_argument("circuit")
        _remove(interface)
        return
    port = interface.parent or interface.name
    for other in (session.device.interfaces[port], *session.device.subinterfaces(port)):
        if other.circuit is not None and (other is not interface or other.circuit.name != name):
            session.skip_block()
            raise UnsupportedError(ONE_CIRCUIT.format(interface=other.name, circuit=other.circuit.name))
    if present is None:
        interface.circuit = Circuit(name)
    session.enter(CIRCUIT_MODES[interface.parent is not None], name)


def _remove(interface: Interface) -> None:
    """Remove the circuit and all its settings."""
    interface.circuit, interface.tx_ring_limit = None, None
    interface.service_policy_input = interface.service_policy_output = None


def _change(session: ConfigSession, circuit: Circuit) -> None:
    session.interface.circuit = circuit


def _current_circuit(session: ConfigSession) -> Circuit:
    circuit = session.interface.circuit
    assert circuit is not None  # the mode is that of a circuit
    return circuit


@router_command(
    CIRCUIT_MODES,
    "encapsulation (aal5snap|aal5mux (ip|ppp dialer))",
    no="encapsulation",
    help={
        "encapsulation": "Select ATM Encapsulation for VC",
        "aal5snap": "AAL5+LLC/SNAP Encapsulation",
        "aal5mux": "AAL5+MUX Encapsulation",
        "ip": "IP",
        "ppp": "Point-to-Point Protocol",
        "dialer": "PPP over ATM on a dialer",
    },
)
def _configure_encapsulation(session: ConfigSession, args: Args) -> None:
    chosen: AtmEncapsulation | None = None
    if not args.unset:
        chosen = "aal5snap" if "aal5snap" in args else "aal5mux ip" if "ip" in args else "aal5mux ppp dialer"
    _change(session, replace(_current_circuit(session), encapsulation=chosen))


_CONTRACT_HELP = {
    "ubr": "Enter Unspecified Peak Cell Rate (pcr) in Kbps.",
    "cbr": "Enter Average Cell Rate in Kbps.",
    "vbr-nrt": "Enter Variable Bit Rate (pcr)(scr)(bcs)",
    "peak": "Peak Cell Rate(PCR) in Kbps",
    "sustainable": "Sustainable Cell Rate(SCR) in Kbps",
    "burst": "Maximum Burst Size(MBS) in Cells",
}
_CONTRACT_UNDO = Undo(key="ubr", line="(ubr|cbr|vbr-nrt)")


@router_command(CIRCUIT_MODES, "(ubr|cbr) <peak:1-155000>", no="(ubr|cbr)", undo=_CONTRACT_UNDO, help=_CONTRACT_HELP)
@router_command(
    CIRCUIT_MODES,
    "vbr-nrt <peak:1-155000> <sustainable:1-155000> [<burst:1-65535>]",
    no="vbr-nrt",
    undo=_CONTRACT_UNDO,
    help=_CONTRACT_HELP,
)
def _configure_contract(session: ConfigSession, args: Args) -> None:
    circuit = _current_circuit(session)
    if args.unset:
        _change(session, replace(circuit, contract=None))
        return
    peak, sustainable = args.value("peak", int), args.optional("sustainable", int)
    if sustainable is not None and sustainable > peak:
        raise args.invalid_argument("sustainable")
    category = next(word for word in ("ubr", "cbr", "vbr-nrt") if word in args)
    contract = Contract(category, peak, sustainable, args.optional("burst", int))  # type: ignore[arg-type]
    _change(session, replace(circuit, contract=contract))


@INTERFACE_LINES.register_family(152, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    circuit = interface.circuit
    if circuit is None:
        return
    yield f"pvc {circuit.name}"
    if circuit.contract is not None:
        yield f" {circuit.contract}"
    if interface.tx_ring_limit is not None:
        yield f" tx-ring-limit {interface.tx_ring_limit}"
    if circuit.encapsulation is not None:
        yield f" encapsulation {circuit.encapsulation}"
    if interface.service_policy_input is not None:
        yield f" service-policy input {interface.service_policy_input}"
    if interface.service_policy_output is not None:
        yield f" service-policy output {interface.service_policy_output}"


@ENGINE_INTERFACE.register_family(90, family="router")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    if not interface.is_atm:
        return {}
    own = device.with_circuit(interface.name)
    circuit = own.circuit
    if circuit is None:
        # Without a circuit nothing is sent.
        return {"enabled": False, "encapsulation": None}
    bandwidth = own if own.bandwidth_kbps is not None or circuit.contract is not None else interface
    contract = circuit.contract
    return {
        "enabled": not device.is_shut_down(own),
        "bandwidth_kbps": interface_bandwidth_kbps(bandwidth),
        "encapsulation": ENGINE_ENCAPSULATIONS[circuit.encapsulation or DEFAULT_ENCAPSULATION],
        "virtual_circuit": None
        if contract is None
        else {
            "peak_bps": 1000 * contract.peak_kbps,
            "sustainable_bps": None if contract.sustainable_kbps is None else 1000 * contract.sustainable_kbps,
            "burst_cells": contract.burst_cells,
        },
        "tx_ring_limit": own.tx_ring_limit,
        "service_policy_input": own.service_policy_input,
        "service_policy_output": own.service_policy_output,
    }
