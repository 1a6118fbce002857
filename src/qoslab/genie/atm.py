"""Parser of `show atm pvc VPI/VCI`. Genie has none."""

from __future__ import annotations

from typing import Any

from qoslab.genie.line_patterns import line_pattern

Values = dict[str, Any]

_HEAD = line_pattern(r"(?P<interface>[A-Z]\S*): VCD: <vcd>, VPI: <vpi>, VCI: <vci>")
_LINES = [
    line_pattern(r"(?:(?P<category>[A-Z-]+), )?PeakRate: <peak_kbps>"),
    line_pattern(
        r"(?:(?P<category>[A-Z-]+), )?PeakRate: <peak_kbps>, Average Rate: <sustainable_kbps>,"
        r" Burst Cells: <burst_cells>"
    ),
    line_pattern(r"(?P<encapsulation>AAL5-[^,]+), .*"),
    line_pattern(r"VC TxRingLimit: <tx_ring_limit>(?: particles)?"),
    line_pattern(r"InPkts: <in_packets>, OutPkts: <out_packets>, InBytes: <in_bytes>, OutBytes: <out_bytes>"),
    line_pattern(r"InPktDrops: <in_drops>, OutPktDrops: <out_drops>.*"),
    line_pattern(r"Status: (?P<status>\S+)"),
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
