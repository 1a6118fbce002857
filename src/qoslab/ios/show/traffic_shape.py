"""`show traffic-shape`: parameters, counters and queues of generic traffic shaping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device
from qoslab.ios.model.interface_queueing import Shaper
from qoslab.ios.model.ios_names import short_name
from qoslab.ios.show import join_lines
from qoslab.system import program_formats

InterfaceShaper = tuple[str, Shaper, "program_formats.InterfaceShaperCounters"]
"""Name of the interface, configured shaper, and its counters."""


def show_traffic_shape(
    device: Device, counters: Mapping[str, program_formats.InterfaceCounters], *, interface: str | None = None
) -> str:
    """Return `show traffic-shape [X]`: the effective parameters."""
    lines: list[str] = []
    last = None
    for name, shaper, counted in _interface_shapers(device, counters, interface):
        if name != last:
            lines += [
                "",
                f"Interface   {short_name(name)}",
                "       Access Target    Byte   Sustain   Excess    Interval  Increment Adapt",
                "VC     List   Rate      Limit  bits/int  bits/int  (ms)      (bytes)   Active",
            ]
        last, shape = name, counted["shape"]
        lines.append(
            f"-      {_list(shaper):<7}{shape['cir_bps']:<10}{shape['byte_limit']:<7}{shape['bc_bits']:<10}"
            f"{shape['be_bits']:<10}{shape['interval_ms']:<10g}{shape['increment_bytes']:<10}-   "
        )
    return join_lines(lines)


def show_traffic_shape_statistics(
    device: Device, counters: Mapping[str, program_formats.InterfaceCounters], *, interface: str | None = None
) -> str:
    """Return `show traffic-shape statistics [X]`: sent and delayed packets and bytes."""
    lines = [
        "                  Acc. Queue Packets   Bytes     Packets   Bytes     Shaping",
        "I/F               List Depth                     Delayed   Delayed   Active",
    ]
    for name, shaper, counted in _interface_shapers(device, counters, interface):
        shape = counted["shape"]
        sent, delayed = shape["sent"], shape["delayed"]
        lines.append(
            f"{short_name(name):<18}{_list(shaper):<6}{counted['depth_packets']:<6}{sent['packets']:<10}"
            f"{sent['bytes']:<10}{delayed['packets']:<10}{delayed['bytes']:<10}{'yes' if shape['active'] else 'no'}"
        )
    return join_lines(lines)


def show_traffic_shape_queue(
    device: Device, counters: Mapping[str, program_formats.InterfaceCounters], *, interface: str | None = None
) -> str:
    """Return `show traffic-shape queue [X]`: the shapers' queues, without individual packets."""
    lines: list[str] = []
    for name, shaper, counted in _interface_shapers(device, counters, interface):
        lines.append(f"Traffic queued in shaping queue on {name}")
        if shaper.access_list is not None:
            lines.append(f" Traffic shape group: {shaper.access_list}")
        active, most = counted["conversations"], counted["max_conversations"]
        threshold, drops = engine_defaults.CONGESTIVE_DISCARD_THRESHOLD, counted["drops"]["packets"]
        lines += [
            "  Queueing strategy: weighted fair",
            f"  Queueing Stats: {counted['depth_packets']}/{counted['limit_packets']}/{threshold}/{drops}"
            " (size/max total/threshold/drops)",
            # [I] The maximum number of active shapers is not counted for each shaper.
            f"     Conversations  {active}/{active}/{most} (active/max active/max total)",
            "     Reserved Conversations 0/0 (allocated/max allocated)",
        ]
    return join_lines(lines)


def _interface_shapers(
    device: Device, counters: Mapping[str, program_formats.InterfaceCounters], interface: str | None
) -> Iterator[InterfaceShaper]:
    for name, each in device.interfaces.items():
        if interface in (None, name) and name in counters:
            # The data plane may lag behind an edit of another login.
            yield from ((name, *pair) for pair in zip(each.shapers, counters[name]["shapers"], strict=False))


def _list(shaper: Shaper) -> str:
    return "" if shaper.access_list is None else str(shaper.access_list)
