"""Parser from configuration text to the device model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qoslab.errors import IosError
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.model.inert_lines import InertLine

# Heading of `show running-config`.
HEADING = re.compile(
    r"Building configuration\.\.\.|(Current|Startup) configuration ?: \d+ bytes|Using \d+ out of \d+ bytes"
)


class RefusedLineError(IosError):
    """Error for a configuration line that the device refuses."""

    def __init__(self, source: str, number: int, line: str, refusal: CliError) -> None:
        shown = "\n".join("    " + each for each in (line.expandtabs(1), *refusal.render())).rstrip()
        super().__init__(f"{source}:{number}: the device refuses this line\n{shown}")
        self.number = number
        self.line = line
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class ConfigRemark:
    """An inert line."""

    number: int
    """Line number, from 1."""
    line: InertLine


def parse_config(text: str, hardware: Hardware, *, source: str = "configuration") -> Device:
    """Return the device that a configuration describes. Raise IosError naming `source` and line of a refusal."""
    device = Device(hardware)
    apply_config(device, text, source=source)
    return device


def apply_config(device: Device, text: str, *, source: str = "configuration") -> list[ConfigRemark]:
    """Apply a configuration fragment to `device` as if typed; return the inert lines.

    Raise RefusedLineError at the first line that the device refuses; the lines before it have then taken effect, so
    pass a copy if that matters. The text may be a whole running configuration with its heading; only comments may
    follow `end`.
    """
    session = ConfigSession(device)
    remarks: list[ConfigRemark] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if session.finished and line.strip() and not line.lstrip().startswith("!"):
            raise IosError(
                f"{source}:{number}: there is a line after `end`: {line.strip()}", hint="remove it, or `end`"
            )
        if not session.is_collecting_banner and HEADING.fullmatch(line.strip()):
            continue
        try:
            session.execute(line)
        except CliError as error:
            raise RefusedLineError(source, number, line, error) from error
        remarks += [ConfigRemark(number, kept) for kept in session.remarks]
        session.remarks.clear()
    if session.is_collecting_banner:
        raise IosError(
            f"{source}:{len(lines)}: the banner has no closing delimiter", hint="end it with its opening delimiter"
        )
    return remarks
