"""Times and durations as IOS prints them."""

from __future__ import annotations

from datetime import datetime, timedelta

_MINUTE, _HOUR, _DAY, _WEEK = 60, 3600, 86_400, 604_800
_YEAR = 365 * _DAY


def clock_text(now: datetime) -> str:
    """Return `*10:20:30.123 UTC Mon Jan 6 2025`; the star means that the clock is not synchronised."""
    return f"*{now:%H:%M:%S}.{now.microsecond // 1000:03} UTC {now:%a %b} {now.day} {now.year}"


def elapsed_text(elapsed: timedelta | None) -> str:
    """Return `01:28:07`, from a day on `1d02h`, from a week on `1w2d`; `never` for None."""
    if elapsed is None:
        return "never"
    seconds = max(0, int(elapsed.total_seconds()))
    if seconds < _DAY:
        return f"{seconds // _HOUR:02}:{seconds % _HOUR // _MINUTE:02}:{seconds % _MINUTE:02}"
    if seconds < _WEEK:
        return f"{seconds // _DAY}d{seconds % _DAY // _HOUR:02}h"
    return f"{seconds // _WEEK}w{seconds % _WEEK // _DAY}d"


def uptime_text(uptime: timedelta) -> str:
    """Return `1 week, 3 days, 4 hours, 30 minutes`; zero parts are left out, except minutes alone."""
    rest = max(0, int(uptime.total_seconds()))
    parts: list[str] = []
    for unit, size in (("year", _YEAR), ("week", _WEEK), ("day", _DAY), ("hour", _HOUR), ("minute", _MINUTE)):
        count, rest = divmod(rest, size)
        if count or (unit == "minute" and not parts):
            parts.append(f"{count} {unit}" + ("" if count == 1 else "s"))
    return ", ".join(parts)


def moment_text(at: datetime) -> str:
    """Return a time as `10:20:30 UTC Mon Jan 6 2025`."""
    return f"{at:%H:%M:%S} UTC {at:%a %b} {at.day} {at.year}"


def duration_in_words(left: timedelta) -> str:
    """Return `8 minutes and 12 seconds`: hours, minutes and seconds, without zero parts."""
    seconds = max(0, round(left.total_seconds()))
    parts = ((seconds // _HOUR, "hour"), (seconds % _HOUR // _MINUTE, "minute"), (seconds % _MINUTE, "second"))
    texts = [f"{number} {word}{'' if number == 1 else 's'}" for number, word in parts if number]
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]])) or "0 seconds"
