"""Check that links of switches form no loop in a VLAN: spanning tree is not modelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from qoslab.errors import Finding
from qoslab.ios.model.catalyst import FIRST_VLAN, SwitchPort
from qoslab.ios.model.device import Device
from qoslab.model.experiment import Experiment, LinkEnd
from qoslab.schema.document import Document

LOOP_HINT = (
    "remove one of these links, shut one of its ports down, give its ports their own VLAN (switchport access "
    "vlan), or route it (addresses at its ends, no switchport)"
)


@dataclass(frozen=True)
class _LinkDirection:
    """Direction of a frame over a link into a switch, in the VLAN `vlan`."""

    link: int
    side: int
    """Receiving end of the link."""
    vlan: int


def loop_findings(
    experiment: Experiment, document: Document, arm: str | None, devices: Mapping[str, Device]
) -> Iterator[Finding]:
    """Yield a finding for a loop of an arm's switches, at the last of its links. `devices` are as configured; `arm` is
    None if no arm configures them.
    """
    try:
        TopologicalSorter(_forwarding_directions(experiment, devices)).prepare()
    except CycleError as error:
        circle: list[_LinkDirection] = error.args[1][1:]
    else:
        return
    links = experiment.topology.links
    last = max(arc.link for arc in circle)
    others = [links[number].name for number in sorted({arc.link for arc in circle} - {last})]
    within = sorted({(arc.vlan, links[arc.link].ends[arc.side].node) for arc in circle})
    vlans = {vlan: [node for each, node in within if each == vlan] for vlan, _ in within}
    where = " and ".join(f"VLAN {vlan} of {', '.join(nodes)}" for vlan, nodes in vlans.items())
    yield document.finding(
        ("topology", "links", last),
        f'found link "{links[last].name}", closing a loop with {", ".join(others)} in {where}'
        f"{'' if arm is None else f' in arm {arm}'}, expected no loop: spanning tree is "
        "not modelled, a broadcast would circulate forever",
        LOOP_HINT,
    )


def _forwarding_directions(
    experiment: Experiment, devices: Mapping[str, Device]
) -> dict[_LinkDirection, list[_LinkDirection]]:
    """Return, for each direction of a link, the directions in which the switch at its end forwards a broadcast."""
    links = experiment.topology.links
    ports = [[_switched_port(devices, end) for end in link.ends] for link in links]
    between = [number for number, ends in enumerate(ports) if all(ends)]
    away: dict[str, list[tuple[int, int]]] = {}
    for number in between:
        for side, end in enumerate(links[number].ends):
            away.setdefault(end.node, []).append((number, 1 - side))
    vlans = _switch_vlans(devices)
    ways: dict[_LinkDirection, list[_LinkDirection]] = {}
    for number in between:
        for side, end in enumerate(links[number].ends):
            for vlan in vlans:
                onward = ((link, far, _vlan_at_far_end(ports[link], far, vlan)) for link, far in away[end.node])
                ways[_LinkDirection(number, side, vlan)] = [
                    _LinkDirection(link, far, there)
                    for link, far, there in onward
                    if there is not None and link != number
                ]
    return ways


def _switched_port(devices: Mapping[str, Device], end: LinkEnd) -> SwitchPort | None:
    """Return the port at that end if it is a switched port and up."""
    device = devices.get(end.node)
    interface = None if device is None else device.interfaces.get(end.interface)
    if interface is None or interface.port is None or interface.shutdown or not interface.port.switched:
        return None
    return interface.port


def _switch_vlans(devices: Mapping[str, Device]) -> list[int]:
    """Return every VLAN that a switch has."""
    switches = [device for device in devices.values() if device.switch is not None]
    ports = [interface.port for device in switches for interface in device.interfaces.values() if interface.port]
    known = {vlan for port in ports for vlan in (port.access_vlan, port.native_vlan)}
    return sorted({FIRST_VLAN, *known, *(vlan for device in switches for vlan, _ in device.mls_qos.vlans)})


def _vlan_at_far_end(ends: list[SwitchPort | None], far: int, vlan: int) -> int | None:
    """Return the VLAN at the far end of a frame in `vlan` at the near end; None if a port does not send or
    accept it.
    """
    sender, receiver = ends[1 - far], ends[far]
    assert sender is not None
    assert receiver is not None
    if sender.mode != "trunk":
        return receiver.vlan if vlan == sender.vlan else None
    if vlan == sender.vlan:
        return receiver.vlan
    return vlan if receiver.mode == "trunk" or vlan == receiver.vlan else None
