"""Parser of `show atm pvc VPI/VCI`. Genie has none."""

from __future__ import annotations

import re
from typing import Any

Values = dict[str, Any]

_HEAD = re.compile(r"(?P<interface>[A-Z]\S*): VCD: (?P<vcd>\d+), VPI: (?P<vpi>\d+), VCI: (?P<vci>\d+)")
_LINES = [
    re.compile(r"(?:(?P<category>[A-Z-]+), )?PeakRate: (?P<peak_kbps>\d+)"),
    re.compile(
        r"(?:(?P<category>[A-Z-]+), )?PeakRate: (?P<peak_kbps>\d+), Average Rate: (?P<sustainable_kbps>\d+),"
        r" Burst Cells: (?P<burst_cells>\d+)"
    ),
    re.compile(r"(?P<encapsulation>AAL5-[^,]+), .*"),
    re.compile(r"VC TxRingLimit: (?P<tx_ring_limit>\d+)(?: particles)?"),
    re.compile(
        r"InPkts: (?P<in_packets>\d+), OutPkts: (?P<out_packets>\d+),"
        r" InBytes: (?P<in_bytes>\d+), OutBytes: (?P<out_bytes>\d+)"
    ),
    re.compile(r"InPktDrops: (?P<in_drops>\d+), OutPktDrops: (?P<out_drops>\d+).*"),
    re.compile(r"Status: (?P<status>\S+)"),
]
TEXTS = ("category", "encapsulation", "status")


def parse_atm_pvc(text: str) -> Values:
    """Parse `text` by interface and circuit: rates in kb/s, the transmit ring in particles; empty without a circuit."""
    result: Values = {}
    circuit: Values = {}
    for raw in text.splitlines():
        line = raw.strip()
        if head := _HEAD.fullmatch(line):
            circuit = {"vcd": int(head["vcd"])}
            result.setdefault(head["interface"], {})[f"{head['vpi']}/{head['vci']}"] = circuit
            continue
        found = next((match for pattern in _LINES if (match := pattern.fullmatch(line))), None)
        if circuit and found is not None:
            known = {name: value for name, value in found.groupdict().items() if value is not None}
            circuit |= {name: value if name in TEXTS else int(value) for name, value in known.items()}
    return result
