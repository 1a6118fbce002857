"""Parser of router output with the parsers of Genie and qoslab. Genie takes seconds to import, so it is imported on
first use.
"""

from __future__ import annotations

import inspect
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from qoslab.genie import OPS, PACKAGE

EXTERNAL = {"PYATS_LIBS_EXTERNAL_PARSER": PACKAGE, "PYATS_LIBS_EXTERNAL_OPS": OPS}
"""Environment variables that Genie reads for local packages, with qoslab's packages."""

IMPORT_LOCK = threading.Lock()
"""Lock for importing Genie or Unicon, which import each other: two threads that import one each would deadlock.

It is also held during the lookup of a parser: Genie fills its table of parsers at the first lookup and imports the
parser then, so another thread would find no parser in a half-filled table.
"""


@dataclass(frozen=True)
class ParsedOutput:
    """Parsed output, or the reason for its absence."""

    parsed: dict[str, Any] | None
    reason: str = ""
    """Reason why `parsed` is None; otherwise empty."""


UNKNOWN_COMMAND = ParsedOutput(None, "the parser recognised nothing in it")
_CLASSIC_OS = frozenset({"ios"})
"""Operating systems, by Genie's names, whose `show interfaces` needs only one parser class."""
_INTERFACES = re.compile(r"show interfaces(?: (?P<interface>[A-Za-z]+\d[\d/.:]*))?")


def failed_parse(error: Exception) -> ParsedOutput:
    """Return the result for a parser that failed."""
    return ParsedOutput(None, f"the parser failed: {type(error).__name__}: {error}")


def register() -> None:
    """Register qoslab's packages with Genie, before the first use of Genie. Does not import Genie."""
    for variable, package in EXTERNAL.items():
        packages = [name for name in os.environ.get(variable, "").split(",") if name]
        if package not in packages:
            os.environ[variable] = ",".join([*packages, package])


def parse(os_name: str, command: str, text: str, device: Any = None) -> ParsedOutput:
    """Parse `text`, the answer to the show command `command` of a device with the operating system `os_name`.

    `device` is the Genie device, if there is one. A missing parser or unparsable output raises no error: `reason` has
    the cause.
    """
    register()
    with IMPORT_LOCK:
        from genie.metaparser.util.exceptions import SchemaEmptyParserError
    try:
        if device is None and os_name in _CLASSIC_OS and (named := _INTERFACES.fullmatch(command)):
            parser, arguments = _interface_parser(named["interface"])
            device = SimpleNamespace(os=os_name, name="parser", alias=None)
        else:
            found = _find_parser(os_name, command, device)
            if found is None:
                return ParsedOutput(None, f"there is no parser for {command!r} on {os_name}")
            parser, arguments, device = found
        return ParsedOutput(to_json_types(parser(device=device).parse(output=text, **arguments)))
    except SchemaEmptyParserError:
        return UNKNOWN_COMMAND
    except Exception as error:
        # parsers raise any exception of their code
        return failed_parse(error)


def _interface_parser(interface: str | None) -> tuple[Any, dict[str, Any]]:
    """Return Genie's parser for interfaces without its table of all parsers, whose lookup takes as long as importing
    Genie.
    """
    with IMPORT_LOCK:
        from genie.libs.parser.ios.show_interface import ShowInterfaces
    return ShowInterfaces, {} if interface is None else {"interface": interface}


def _find_parser(os_name: str, command: str, device: Any) -> tuple[Any, dict[str, Any], Any] | None:
    """Return the parser for a command, its arguments and a device; None if there is no parser."""
    with IMPORT_LOCK:
        from genie.conf.base import Device
        from genie.libs.parser.utils import common
    if device is None:
        device = Device("parser", os=os_name)
    try:
        # not device.parse, which queries the device again for a running configuration
        with IMPORT_LOCK, _fill_parser_table() if common.parser_data is None else nullcontext():
            return *common.get_parser(command, device), device
    except common.ParserNotFound:
        return None


@contextmanager
def _fill_parser_table() -> Iterator[None]:
    """Fill Genie's table without the line numbers of qoslab's parsers.

    Genie records them for its documentation. Up to Python 3.12, `inspect` parses a file for each of its classes, which
    took a third of the time of the first lookup.
    """
    known = inspect.getsourcelines
    inspect.getsourcelines = lambda _: ([], 0)  # type: ignore[assignment]
    try:
        yield
    finally:
        inspect.getsourcelines = known


def to_json_types(value: Any) -> Any:
    """Convert a value to JSON types."""
    if isinstance(value, dict):
        return {str(name): to_json_types(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [to_json_types(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
