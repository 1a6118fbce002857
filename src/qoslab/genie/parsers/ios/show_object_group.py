"""`show object-group`, for which Genie has no parser."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey

from qoslab.genie.object_groups import parse_object_groups


class ShowObjectGroup(MetaParser):  # type: ignore[misc]
    """Parser for `show object-group [X]`."""

    schema: ClassVar[dict[Any, Any]] = {AnyKey(): {"kind": str, "objects": list}}
    cli_command: ClassVar[list[str]] = ["show object-group", "show object-group {name}"]

    def cli(self, name: str = "", output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_object_groups(
            self.device.execute(f"show object-group {name}".strip()) if output is None else output
        )
