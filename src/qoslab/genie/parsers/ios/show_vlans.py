"""`show vlans`, for which Genie has no parser."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey
from genie.metaparser.util.schemaengine import Optional

from qoslab.genie.vlans import parse_vlans


class ShowVlans(MetaParser):  # type: ignore[misc]
    """Parser for `show vlans` and `show vlans N`."""

    schema: ClassVar[dict[Any, Any]] = {
        AnyKey(): {
            "interfaces": list,
            "native": list,
            Optional("addresses"): list,
            "counters": {
                Optional(AnyKey()): {Optional(way): {"packets": int, "bytes": int} for way in ("input", "output")}
            },
        }
    }
    cli_command: ClassVar[list[str]] = ["show vlans", "show vlans {vlan}"]

    def cli(self, vlan: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_vlans(self.device.execute(f"show vlans {vlan}".strip()) if output is None else output)
