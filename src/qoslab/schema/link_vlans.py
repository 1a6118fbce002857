"""Check that both ends of a link use the same VLANs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qoslab.errors import Finding
from qoslab.ios.model.device import Device, Interface
from qoslab.model.experiment import Experiment, LinkEnd
from qoslab.platforms import node_platform
from qoslab.schema.document import Document, Steps

TRUNK = "a host is in a VLAN behind an access port of a switch, or behind another router"


def unmatched_vlans(
    experiment: Experiment, document: Document, arm: str, devices: Mapping[str, Device]
) -> Iterator[Finding]:
    """Yield each subinterface of an arm's routers whose VLAN is missing at the other end of the link. `devices` are as
    configured.
    """
    for number, link in enumerate(experiment.topology.links):
        for side, (near, far) in enumerate((link.ends, link.ends[::-1])):
            device = devices.get(near.node)
            for each in [] if device is None else device.subinterfaces(near.interface):
                if each.vlan is None:
                    continue
                steps: Steps = ("topology", "links", number, "ends", side)
                vlan = f"VLAN {each.vlan}{' (native)' if each.native else ''}"
                found = f"found {vlan} on {each.name} of {near.node} in arm {arm}"
                if not node_platform(experiment.topology.nodes[near.node]).has_startup_config:
                    yield document.finding(
                        steps, f"{found}, expected no subinterface on an engine router", "use platform: ios"
                    )
                    continue
                expected = _missing_vlan(experiment, each, each.vlan, far, devices.get(far.node))
                if expected is not None:
                    yield document.finding(steps, f"{found}, expected {expected[0]}", expected[1])


def _missing_vlan(
    experiment: Experiment, each: Interface, vlan: int, far: LinkEnd, other: Device | None
) -> tuple[str, str] | None:
    """Return the missing part at the other end, and a hint."""
    if not node_platform(experiment.topology.nodes[far.node]).is_router:
        if each.native:
            return None
        return f"no tags on a link to the host {far.node}", TRUNK
    port = None if other is None else other.interfaces.get(far.interface)
    if port is not None and port.port is not None:
        return _switch_accepts_vlan(each, vlan, far, port)
    partners = [] if other is None else [sub for sub in other.subinterfaces(far.interface) if sub.vlan == vlan]
    if not partners:
        return f"it on a subinterface of {far.interface} of {far.node} too", "configure encapsulation dot1Q there"
    if partners[0].native != each.native:
        return f"{partners[0].name} of {far.node} to agree that it is {'' if each.native else 'not '}native", ""
    return None


def _switch_accepts_vlan(each: Interface, vlan: int, far: LinkEnd, port: Interface) -> tuple[str, str] | None:
    switched = port.port
    assert switched is not None
    where = f"{far.interface} of {far.node}"
    if not switched.switched:
        return f"no tags on a link to the routed port {where}", "use switchport mode trunk there"
    if switched.mode != "trunk":
        if each.native and vlan == switched.access_vlan:
            return None
        return f"{where} to be a trunk", "use switchport mode trunk there"
    if each.native != (vlan == switched.native_vlan):
        return f"{where} to agree: its native VLAN is {switched.native_vlan}", "frames of the native VLAN have no tag"
    return None
