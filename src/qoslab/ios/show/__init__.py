"""Renderers of `show` output: functions from configuration, counters and clock to text; no IO.

Each returns lines joined by a newline, with a trailing newline (or the empty string when IOS prints nothing).
"""
