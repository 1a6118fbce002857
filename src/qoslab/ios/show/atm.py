"""`show atm pvc`: a circuit with traffic contract, transmit ring and counters."""

from __future__ import annotations

from qoslab.ios.model import engine_defaults
from qoslab.ios.model.circuit import DEFAULT_ENCAPSULATION, AtmEncapsulation
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.rules import interface_bandwidth_kbps
from qoslab.ios.show import join_lines
from qoslab.system import program_formats

ENCAPSULATIONS: dict[AtmEncapsulation, str] = {
    "aal5snap": "AAL5-LLC/SNAP",
    "aal5mux ip": "AAL5-MUX",
    "aal5mux ppp dialer": "AAL5-PPP",
}


def show_atm_pvc(device: Device, name: str, counters: program_formats.InterfaceCounters | None) -> str:
    """Return the output for the circuit of that name; empty if there is none. `counters` are its port's, None without a
    cable.

    First lines and names are those of Cisco's document 6200, the others are from memory [R]. Lines about cells, and
    packets by switching path, are left out because these are not counted separately."""
    interface = next((each for each in device.circuits().values() if each.circuit_name == name), None)
    if interface is None or interface.circuit is None:
        return ""
    circuit = interface.circuit
    vpi, vci = circuit.name.split("/")
    up = counters is not None and not device.is_shut_down(interface)
    sent, received = ({"packets": 0, "bytes": 0, "drops": 0},) * 2
    if counters is not None:
        sent = {key: int(counters["output"][key]) for key in ("packets", "bytes", "drops")}
        received = {key: int(counters["input"][key]) for key in ("packets", "bytes", "drops")}
    ring = engine_defaults.ATM_TX_RING if interface.tx_ring_limit is None else interface.tx_ring_limit
    lines = [
        f"{interface.name}: VCD: 1, VPI: {vpi}, VCI: {vci}",
        _contract_lines(device, interface),
        f"{ENCAPSULATIONS[circuit.encapsulation or DEFAULT_ENCAPSULATION]}, etype:0x0, Flags: 0x20, VCmode: 0x0",
        "OAM Loopback status: OAM Disabled",
        "OAM VC state: Not Managed",
        "ILMI VC state: Not Managed",
        f"VC TxRingLimit: {ring} particles",
        f"InPkts: {received['packets']}, OutPkts: {sent['packets']},"
        f" InBytes: {received['bytes']}, OutBytes: {sent['bytes']}",
        f"InPktDrops: {received['drops']}, OutPktDrops: {sent['drops']}",
        f"Status: {'UP' if up else 'DOWN'}",
    ]
    return join_lines(lines)


def _contract_lines(device: Device, interface: Interface) -> str:
    contract = None if interface.circuit is None else interface.circuit.contract
    if contract is None:
        port = device.interfaces[interface.parent or interface.name]
        return f"UBR, PeakRate: {interface_bandwidth_kbps(port if interface.bandwidth_kbps is None else interface)}"
    if contract.sustainable_kbps is None:
        return f"{contract.category.upper()}, PeakRate: {contract.peak_kbps}"
    burst = engine_defaults.ATM_MAXIMUM_BURST if contract.burst_cells is None else contract.burst_cells
    return f"VBR-NRT, PeakRate: {contract.peak_kbps}, Average Rate: {contract.sustainable_kbps}, Burst Cells: {burst}"
