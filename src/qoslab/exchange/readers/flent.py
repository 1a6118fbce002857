"""Reader of flent data files, format 4."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.exchange.flent import FORMAT
from qoslab.exchange.readers.base import (
    MAX_SERIES,
    ForeignResults,
    LimitError,
    parse_number,
    read_json_object,
    unexpected_content_error,
)

_RATES = {"Gbits/s": 1e9, "Mbits/s": 1e6, "kbits/s": 1e3, "bits/s": 1.0}
_CONVERTED = (
    'flent itself converts it: python3 -c "from flent.resultset import ResultSet; '
    "ResultSet.load_file('OLD').dump_file('NEW.flent.gz')\""
)
_COMPUTED = ("sum", "avg", "fairness", "totals")
_NUMBERED = re.compile(r"\d+")
_KEY = re.compile(r"(?:tcp|owd|ipdv)_\w+|ipdv|delay|loss|jitter|induced_delay|bitrate")
"""Names of further values that flent's runners report for a stream or a ping."""
_KEY_UNITS = {
    "tcp_cwnd": "segments",
    "tcp_delivery_rate": "Mbits/s",
    "tcp_pacing_rate": "Mbits/s",
    **dict.fromkeys(("tcp_rtt", "tcp_rtt_var", "ipdv", "ipdv_up", "ipdv_down", "owd_up", "owd_down"), "ms"),
}


def recognises(head: bytes) -> bool:
    """Recognise a key at the beginning; files are written with sorted keys."""
    return head.lstrip().startswith(b"{") and (b'"metadata"' in head or b'"x_values"' in head)


def read(path: Path) -> ForeignResults:
    """Return series in Mb/s as streams with intervals, and all others as samples, without series that flent computed.

    A sub-series, which has further values of a series (`TCP upload::tcp_rtt`), becomes samples regardless of its unit.
    """
    document = read_json_object(path, "flent")
    version = document.get("version")
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        raise UserError(
            f"{path}: found format {version!r} of flent, expected {FORMAT}",
            hint="it was written by a newer flent" if newer else _CONVERTED,
        )
    try:
        return _read(path, document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise unexpected_content_error(path, "flent", error) from error


def _read(path: Path, document: dict[str, Any]) -> ForeignResults:
    about = document["metadata"]
    title = about.get("TITLE") or ""
    found = ForeignResults(
        " ".join(filter(None, (str(about["NAME"]), str(title)))), f"flent {about.get('FLENT_VERSION') or ''}".strip()
    )
    times = [parse_number(time) for time in document["x_values"]]
    if any(after <= time for time, after in pairwise(times)):
        raise ValueError("times in x_values do not increase")
    step = parse_number(about.get("STEP_SIZE") or 0) or (times[1] - times[0] if len(times) > 1 else 0.0)
    if step < 0 or (times and times[0] < 0):
        raise ValueError("times in x_values or STEP_SIZE are negative")
    found.seconds = times[-1] + step if times else 0.0
    meta, results = about.get("SERIES_META", {}), document["results"]
    if len(results) > MAX_SERIES:
        raise LimitError(MAX_SERIES, "series", len(results))
    known = {*meta, *results}
    streams = 0
    for name, values in results.items():
        if len(values) != len(times):
            raise ValueError(f"series {name!r} has {len(values)} values, expected {len(times)}")
        if re.split(r" |::", name)[-1] in _COMPUTED:
            continue
        key = _series_key(name, known)
        own = meta.get(name, {})
        unit = str(own.get("UNITS") or (_KEY_UNITS.get(key, "") if key else _unit_of_name(name)))
        points = [(time, parse_number(value)) for time, value in zip(times, values, strict=True) if value is not None]
        if not points:
            found.notes.append(f"{name} is left out: it has no value")
        elif unit in _RATES and not key:
            streams += 1
            _add_stream(found, streams, name, [(time, value * _RATES[unit]) for time, value in points], step, own)
        else:
            for time, value in points:
                found.sample(name, unit, time, value)
    if not streams and not found.samples:
        raise UserError(f"{path}: found no value measured by flent, expected at least one")
    found.notes.append(f"values are taken from flent at steps of {step:g} s; interval bytes are computed from them")
    return found


def _series_key(name: str, known: Collection[str]) -> str:
    """Return the last part of a sub-series' name; empty for a series, such as `TCP upload::1` among several.

    flent names a sub-series after its series, which has an entry in `SERIES_META` or values of its own.
    """
    parts = name.split("::")
    if len(parts) == 1 or _NUMBERED.fullmatch(parts[-1]):
        return ""
    heads = ("::".join(parts[:end]) for end in range(1, len(parts)))
    return parts[-1] if _KEY.fullmatch(parts[-1]) or any(head in known for head in heads) else ""


def _unit_of_name(name: str) -> str:
    """Return the unit by the name, as in flent's own tests, for a file that lacks it."""
    if name.startswith(("TCP upload", "TCP download")):
        return "Mbits/s"
    return "ms" if "ping" in name.lower() or "(ms)" in name or "rtt" in name.lower() else ""


def _add_stream(
    found: ForeignResults,
    number_of: int,
    name: str,
    points: list[tuple[float, float]],
    step: float,
    own: dict[str, Any],
) -> None:
    """Add a stream. If values are missing between two points, the later one applies since the earlier one.

    Totals of netperf are used if flent recorded them in the metadata of the series.
    """
    count, seconds = 0, 0.0
    before: float | None = None
    sparse = 0
    for time, bps in points:
        start = max(time - step / 2, 0.0) if before is None else before + step / 2
        sparse += before is not None and time - before > 1.5 * step
        lasted = step if before is None else time - before
        octets = round(bps * lasted / 8)
        # Half of the first step would be before the beginning.
        found.add_interval(number_of, start, time + step / 2, round(bps * (time + step / 2 - start) / 8), bps)
        count, seconds, before = count + octets, seconds + lasted, time
    if own.get("BYTES_RECVD") and own.get("ELAPSED_TIME"):
        count, seconds = int(parse_number(own["BYTES_RECVD"])), parse_number(own["ELAPSED_TIME"])
    found.add_flow(number_of, seconds, count, tool="flent", protocol="udp" if "UDP" in name else "tcp")
    found.notes.append(f"stream {number_of} is {name}")
    if sparse:
        found.notes.append(
            f"stream {number_of} has {sparse} gaps without a value: the value after a gap applies to the whole gap"
        )
