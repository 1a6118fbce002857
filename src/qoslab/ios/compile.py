"""Compiler from the device model to the data plane's configuration (internals/control-protocol.md).

Each command compiles its part.
"""

from __future__ import annotations

from typing import cast

from qoslab.ios.config import load
from qoslab.ios.model.accounting import inherit_accounts
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE, ENGINE_INTERFACE
from qoslab.system import program_formats

FORMAT = 1


def compile_device(device: Device) -> program_formats.DataPlaneConfig:
    """Return the data plane configuration of a device as plain values for JSON."""
    device = inherit_accounts(device)
    process_ns = device.hardware.process_ns
    config: program_formats.DataPlaneConfig = {
        "format": FORMAT,
        "router": device.hostname,
        "generation": device.generation,
    }
    if process_ns is not None:
        config["process_ns"] = process_ns
    for part in ENGINE.family_functions(device.hardware.family):
        config |= part(device)
    config["interfaces"] = {
        # A subinterface is part of the configuration of its port.
        name: _interface_config(device, each)
        for name, each in device.interfaces.items()
        if each.parent is None
    }
    return config


def engine_config(config: program_formats.DataPlaneConfig) -> program_formats.RouterConfig:
    """Return the engine's part of a configuration, without the part of the router's processor."""
    engine = {key: part for key, part in config.items() if key not in ("process_ns", "ip_sla")}
    return cast("program_formats.RouterConfig", engine)


def _interface_config(device: Device, interface: Interface) -> program_formats.InterfaceConfig:
    config: program_formats.InterfaceConfigPart = {}
    for part in ENGINE_INTERFACE.family_functions(device.hardware.family):
        config |= part(device, interface)
    # `commands.interface` adds the required keys.
    return cast("program_formats.InterfaceConfig", config)


load()
