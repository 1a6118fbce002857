"""The device model to the data plane's configuration (docs/control-protocol.md); each command compiles its own part."""

from __future__ import annotations

from typing import Any

from qoslab.ios.config import load
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE, ENGINE_INTERFACE

FORMAT = 1


def compile_device(device: Device) -> dict[str, Any]:
    """Return the configuration of the data plane that does what the device says; plain values, ready for JSON."""
    process_ns = device.hardware.process_ns
    config: dict[str, Any] = {"format": FORMAT, "router": device.hostname, "generation": device.generation}
    if process_ns is not None:
        config["process_ns"] = process_ns
    for part in ENGINE.of(device.hardware.family):
        config |= part(device)
    config["interfaces"] = {name: _interface(device, each) for name, each in device.interfaces.items()}
    return config


def _interface(device: Device, interface: Interface) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for part in ENGINE_INTERFACE.of(device.hardware.family):
        config |= part(device, interface)
    return config


load()
