"""Departures of packets from a port of the engine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from peer_programs import FOLDER, engine_program

PACKET = np.dtype([("time", "<u8"), ("bytes", "<u4"), ("class", "<u4")])
"""Packet: arrival (ns), bytes, and its class: its code point, and its flow in the engine."""
LINE_OVERHEAD_BYTES = 24
"""Ethernet overhead on the line, in addition to the layer-2 bytes: FCS 4, preamble 8, interframe gap 12."""
INTERFACE = "Fa0/0"

Times = npt.NDArray[np.uint64]


def router(interface: Mapping[str, object], **rest: object) -> dict[str, object]:
    """Return the configuration of a router of IOS 15 with one interface."""
    base = {"format": 1, "router": "R1", "generation": "hqf", "interfaces": {INTERFACE: {"enabled": True} | interface}}
    return base | rest


def departures(
    configuration: Mapping[str, object], rate_bps: int, packets: npt.NDArray[np.void], seed: int = 0
) -> Times:
    """Return the departure time of each packet's last bit (ns); 0 if it was dropped. Bytes are those of layer 2."""
    path = FOLDER / "port.json"
    FOLDER.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(configuration), encoding="utf-8")
    return times_of([engine_program("port"), path, str(rate_bps), str(seed)], packets)


def times_of(command: list[Path | str], packets: npt.NDArray[np.void]) -> Times:
    """Run a program that reads packets from the file named last, and writes a time for each."""
    stream = FOLDER / "port.packets"
    packets.astype(PACKET).tofile(stream)
    written = subprocess.run([*command, stream], stdout=subprocess.PIPE, check=True, timeout=900).stdout
    stream.unlink()
    times = np.frombuffer(written, "<u8")
    if len(times) != len(packets):
        raise RuntimeError(f"{command[0]} wrote {len(times)} times for {len(packets)} packets")
    return times
