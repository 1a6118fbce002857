"""`qoslab policy`: effective values and findings of a pasted router configuration."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from qoslab.errors import ExitStatus, UserError
from qoslab.model.generation import Generation
from qoslab.printing import echo

if TYPE_CHECKING:
    from qoslab.ios.model.device import Family
    from qoslab.policy.answer import Answer

STDIN = "-"
LARGEST = 16_000_000
"""Bytes of input that are read at most."""
_SHORT = re.compile(r"(\d+(?:\.\d+)?) *([kmg]?)", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


@click.command()
@click.argument("file", default=STDIN, type=click.Path(allow_dash=True))
@click.option("--rate", metavar="RATE", help="Rate of the line, such as 20m or 1.5 Mb/s, for all interfaces.")
@click.option("--rtt", metavar="TIME", help="Round-trip time, such as 50 ms, to check policer bursts for TCP.")
@click.option(
    "--model",
    metavar="MODEL",
    help="Router model (3725, 2811, 7206VXR, 3750G) or release (classic, hqf). [default: by the version line]",
)
@click.option("--diff", "old", metavar="OLD", type=click.Path(), help="Show the class values that changed since OLD.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
def command(
    file: str, rate: str | None, rtt: str | None, model: str | None, old: str | None, as_json: bool
) -> ExitStatus:
    """Show the effective values of a QoS policy, with findings.

    FILE is a policy-map or a whole running configuration, as it was pasted from a terminal; standard input without it.
    Lines that are not read are listed. Secrets are not printed. Exit status: 0 no errors, 1 findings of severity error,
    2 the input cannot be read.
    """
    from qoslab.policy.answer import answer, differences, to_json
    from qoslab.policy.render import answer_text

    family, generation = model_of(model)
    rate_bps, rtt_s = _rate(rate), rtt_of(rtt)

    def answered(name: str) -> Answer:
        source = "standard input" if name == STDIN else name
        return answer(
            read_pasted(name), rate_bps=rate_bps, rtt_s=rtt_s, family=family, generation=generation, source=source
        )

    new = answered(file)
    changed = None if old is None else differences(answered(old), new)
    if as_json:
        found = to_json(new) if changed is None else to_json(new) | {"differences": changed}
        echo(json.dumps(found, indent=2))
    elif changed is None:
        echo(answer_text(new), nl=False)
    else:
        echo("\n".join(changed) if changed else "No class value changed.")
    return ExitStatus.OUTSIDE if new.errors else ExitStatus.WITHIN


def read_pasted(name: str) -> str:
    """Return the text of a file, or of standard input. Raise UserError where it is no text."""
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
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(f"{name}: found binary data, expected a configuration")
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    return data.decode(encoding, errors="replace")


def _rate(text: str | None) -> int | None:
    if text is None:
        return None
    if (short := _SHORT.fullmatch(text.strip())) is not None:
        bps = round(float(short[1]) * _FACTORS[short[2].lower()])
    else:
        from qoslab.units import QuantityError, Rate

        try:
            bps = Rate.parse(text).bps
        except QuantityError as error:
            raise UserError(f"--rate: {error}", hint="give a rate such as 20m or 1.5 Mb/s") from None
    if bps < 1:
        raise UserError(f'--rate: found "{text}", expected a rate above 0')
    return bps


def rtt_of(text: str | None) -> float | None:
    """Return the time of --rtt in seconds. Raise UserError."""
    if text is None:
        return None
    from qoslab.units import Duration, QuantityError

    try:
        return Duration.parse(text if re.search(r"[a-z]", text) else f"{text} ms").ns / 1e9
    except QuantityError as error:
        raise UserError(f"--rtt: {error}", hint="give a time such as 50 ms") from None


def model_of(name: str | None) -> tuple[Family | None, Generation | None]:
    """Return family and generation of a model, or of a release."""
    if name is None:
        return None, None
    for generation in get_args(Generation):
        if name.lower() == generation:
            return "router", generation
    from qoslab.platforms.ios import MODELS

    found = next((model for key, model in MODELS.items() if key.lower() == name.lower()), None)
    if found is None:
        known = ", ".join((*MODELS, *get_args(Generation)))
        raise UserError(f'--model: found "{name}", expected one of {known}')
    return found.family, found.default_generation
