"""Parser of `show running-config`, because Genie parses only parts of it."""

from __future__ import annotations

from typing import Any, ClassVar

from genie.metaparser import MetaParser
from genie.metaparser.util.schemaengine import Any as AnyKey

from qoslab.genie.policy_parsers import parse_running_config


class ShowRunningConfig(MetaParser):  # type: ignore[misc]
    """Parser for `show running-config`: lines nested by indentation."""

    schema: ClassVar[dict[Any, Any]] = {AnyKey(): dict}
    cli_command: ClassVar[list[str]] = ["show running-config"]

    def cli(self, output: str | None = None) -> dict[str, Any]:
        """Ask the device unless `output` is given."""
        return parse_running_config(self.device.execute(self.cli_command[0]) if output is None else output)
