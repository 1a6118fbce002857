"""Parser of `show class-map`; Genie only has one for IOS XE."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey

from qoslab.genie.policy_parsers import parse_class_map


class ShowClassMap(MetaParser):  # type: ignore[misc]
    """Parser for `show class-map [NAME]`."""

    schema: ClassVar[dict[Any, Any]] = {
        "class_maps": {
            AnyKey(): {"match_criteria": str, "cm_id": int, "index": {AnyKey(): {"match": {AnyKey(): list}}}}
        }
    }
    cli_command: ClassVar[list[str]] = ["show class-map {name}", "show class-map"]

    def cli(self, name: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        if output is None:
            output = self.device.execute(f"show class-map {name}".strip())
        return parse_class_map(output)
