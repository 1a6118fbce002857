"""Data files of flent, format 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.exchange.flent import FORMAT
from qoslab.exchange.readers.base import Foreign, document_of, not_as_written, number

_RATES = {"Mbits/s": 1e6, "kbits/s": 1e3, "bits/s": 1.0}
_CONVERTED = (
    'flent itself converts it: python3 -c "from flent.resultset import ResultSet; '
    "ResultSet.load_file('OLD').dump_file('NEW.flent.gz')\""
)
_COMPUTED = ("sum", "avg", "fairness", "totals")


def knows(head: bytes) -> bool:
    """By a key that it begins with; files are written with sorted keys."""
    return head.lstrip().startswith(b"{") and (b'"metadata"' in head or b'"x_values"' in head)


def read(path: Path) -> Foreign:
    """Series in Mb/s become streams with intervals, all others samples. What flent computed of others is left out."""
    document = document_of(path, "flent")
    version = document.get("version")
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        raise UserError(
            f"{path}: found format {version!r} of flent, expected {FORMAT}",
            hint="a newer flent wrote it" if newer else _CONVERTED,
        )
    try:
        return _read(path, document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise not_as_written(path, "flent", error) from error


def _read(path: Path, document: dict[str, Any]) -> Foreign:
    about = document["metadata"]
    title = about.get("TITLE") or ""
    found = Foreign(
        " ".join(filter(None, (str(about["NAME"]), str(title)))), f"flent {about.get('FLENT_VERSION') or ''}".strip()
    )
    times = [number(time) for time in document["x_values"]]
    step = number(about.get("STEP_SIZE") or 0) or (times[1] - times[0] if len(times) > 1 else 0.0)
    found.seconds = times[-1] + step if times else 0.0
    streams = 0
    for name, values in document["results"].items():
        if len(values) != len(times):
            raise ValueError(f"series {name!r} has {len(values)} values, expected {len(times)}")
        if name.rsplit(" ", 1)[-1] in _COMPUTED:
            continue
        unit = str(about.get("SERIES_META", {}).get(name, {}).get("UNITS") or _unit_by(name))
        points = [(time, number(value)) for time, value in zip(times, values, strict=True) if value is not None]
        if unit in _RATES:
            streams += 1
            _stream(found, streams, name, [(time, value * _RATES[unit]) for time, value in points], step)
        else:
            found.samples += [{"series": name, "unit": unit, "time_s": time, "value": value} for time, value in points]
    if not streams and not found.samples:
        raise UserError(f"{path}: found no value that flent measured, expected some")
    found.notes.append(f"values are flent's at steps of {step:g} s; bytes are what they come to")
    return found


def _unit_by(name: str) -> str:
    """Where the file does not say, as flent's own tests have it."""
    if name.startswith(("TCP upload", "TCP download")):
        return "Mbits/s"
    return "ms" if "ping" in name.lower() or "(ms)" in name or "rtt" in name.lower() else ""


def _stream(found: Foreign, number_of: int, name: str, points: list[tuple[float, float]], step: float) -> None:
    count = 0
    for time, bps in points:
        octets = round(bps * step / 8)
        found.interval(number_of, max(time - step / 2, 0.0), time + step / 2, octets, bps)
        count += octets
    found.flow(number_of, len(points) * step, count, tool="flent", protocol="udp" if "UDP" in name else "tcp")
    found.notes.append(f"stream {number_of} is {name}")
