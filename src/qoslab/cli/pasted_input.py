"""Input and options of the commands that read a pasted configuration."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from qoslab.errors import UserError
from qoslab.model.generation import Generation
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.ios.model.device import Family

STDIN = "-"
LARGEST = 16_000_000
"""Maximum bytes of input."""


def read_pasted(name: str) -> str:
    """Return the text of a file or of standard input. Raise UserError if it is not text."""
    try:
        if name == STDIN:
            if sys.stdin.isatty():
                echo("Paste the configuration, then press Enter and Ctrl-D.", err=True)
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(name).open("rb") as opened:
                data = opened.read(LARGEST + 1)
    except OSError as error:
        raise UserError(f"{name}: {error.strerror}") from error
    if len(data) > LARGEST:
        raise UserError(f"{name}: found more than {LARGEST} bytes, expected a configuration")
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    if encoding == "utf-8" and b"\0" in data:
        halves = {"utf-16-le": (data[:2000:2], data[1:2000:2]), "utf-16-be": (data[1:2000:2], data[:2000:2])}
        texts = [each for each, (letters, zeros) in halves.items() if not zeros.strip(b"\0") and not letters.count(0)]
        if not texts:
            raise UserError(f"{name}: found binary data, expected a configuration")
        encoding = texts[0]
    return data.decode(encoding, errors="replace")


def source_name(name: str) -> str:
    """Return the name of the input in messages."""
    return "standard input" if name == STDIN else name


def parse_rate(text: str | None) -> int | None:
    """Return the rate of --rate in b/s. Raise UserError if it is not a rate."""
    if text is None:
        return None
    from qoslab.model.units import QuantityError, parse_rate_option

    try:
        return parse_rate_option(text)
    except QuantityError as error:
        raise UserError(f"--rate: {error}", hint="give a rate such as 20m or 1.5 Mb/s") from None


def parse_rtt(text: str | None) -> float | None:
    """Return the time of --rtt in seconds. Raise UserError if it is not a duration."""
    if text is None:
        return None
    from qoslab.model.units import Duration, QuantityError

    try:
        return Duration.parse(text if re.search(r"[a-z]", text) else f"{text} ms").ns / 1e9
    except QuantityError as error:
        raise UserError(f"--rtt: {error}", hint="give a time such as 50 ms") from None


def parse_model(name: str | None) -> tuple[Family | None, Generation | None]:
    """Return family and generation of a model, or of a release."""
    if name is None:
        return None, None
    for generation in get_args(Generation):
        if name.lower() == generation:
            return "router", generation
    from qoslab.platforms import MODELS

    found = next((model for key, model in MODELS.items() if key.lower() == name.lower()), None)
    if found is None:
        known = ", ".join((*MODELS, *get_args(Generation)))
        raise UserError(f'--model: found "{name}", expected one of {known}')
    return found.family, found.default_generation
