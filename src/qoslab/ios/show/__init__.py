"""Renderers of `show` output: functions from configuration, counters and clock to text, without I/O.

Each returns lines joined by a newline, with a trailing newline (or the empty string if IOS prints nothing).
"""
