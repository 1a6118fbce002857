"""`show atm pvc`, for which Genie has no parser."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey
from genie.metaparser.util.schemaengine import Optional

from qoslab.genie.atm import TEXTS, parse_atm_pvc

_NUMBERS = (
    "peak_kbps",
    "sustainable_kbps",
    "burst_cells",
    "tx_ring_limit",
    "in_packets",
    "out_packets",
    "in_bytes",
    "out_bytes",
    "in_drops",
    "out_drops",
)


class ShowAtmPvc(MetaParser):  # type: ignore[misc]
    """Parser for `show atm pvc VPI/VCI`."""

    schema: ClassVar[dict[Any, Any]] = {
        AnyKey(): {
            AnyKey(): {
                "vcd": int,
                **{Optional(name): str for name in TEXTS},
                **{Optional(name): int for name in _NUMBERS},
            }
        }
    }
    cli_command: ClassVar[list[str]] = ["show atm pvc {circuit}"]

    def cli(self, circuit: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_atm_pvc(self.device.execute(f"show atm pvc {circuit}") if output is None else output)
