"""`show interfaces rate-limit`: the lines of committed access rate with their counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from qoslab.ios.commands.rate_limit import action_text, match_text
from qoslab.ios.model.device import Device
from qoslab.ios.model.rate_limit import RateLimit
from qoslab.ios.show.times import elapsed_text
from qoslab.system import program_formats

NANOSECONDS = 1_000_000_000


def show_rate_limit(
    device: Device, counters: Mapping[str, program_formats.InterfaceCounters], *, interface: str | None = None
) -> str:
    """Return `show interfaces [X] rate-limit` for the interfaces with `rate-limit` lines."""
    lines = [
        line
        for name, each in device.interfaces.items()
        if interface in (None, name) and each.rate_limits and name in counters
        for line in _interface_lines(name, each.description, each.rate_limits, counters[name])
    ]
    return "".join(line + "\n" for line in lines)


def _interface_lines(
    name: str, description: str | None, limits: Sequence[RateLimit], counters: program_formats.InterfaceCounters
) -> Iterator[str]:
    yield f"{name} {description or ''}"
    counted = {"input": counters["rate_limit_input"], "output": counters["rate_limit_output"]}
    for direction, values in counted.items():
        lines = [each for each in limits if each.direction == direction]
        if lines:
            yield f"  {direction.capitalize()}"
        # The data plane may lag behind an edit of another login.
        for limit, value in zip(lines, values, strict=False):
            yield from _limit_lines(limit, value)


def _limit_lines(limit: RateLimit, values: program_formats.RateLimitCounters) -> Iterator[str]:
    seconds = values["counting_ns"] / NANOSECONDS
    conformed, exceeded = values["conformed"], values["exceeded"]
    rates = [0 if seconds == 0 else int(8 * each["bytes"] / seconds) for each in (conformed, exceeded)]
    last = values["last_packet_ns"]
    # [I] Before the first packet: the time since the line was configured.
    age = (values["counting_ns"] if last is None else last) // 1_000_000
    yield f"    matches: {match_text(limit) or 'all traffic'}"
    yield (f"      params:  {limit.rate_bps} bps, {limit.normal_burst} limit, {limit.extended_burst} extended limit")
    for word, count, action in (("conformed", conformed, limit.conform), ("exceeded", exceeded, limit.exceed)):
        yield f"      {word} {count['packets']} packets, {count['bytes']} bytes; action: {action_text(action)}"
    yield f"      last packet: {age}ms ago, current burst: {values['current_burst_bytes']} bytes"
    yield (
        f"      last cleared {elapsed_text(timedelta(seconds=seconds))} ago,"
        f" conformed {rates[0]} bps, exceeded {rates[1]} bps"
    )
