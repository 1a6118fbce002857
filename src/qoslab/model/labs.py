"""The default kind of lab, of runs from before there were several. `qoslab.lab_kinds` has the kinds."""

from __future__ import annotations

DEFAULT_LAB = "virtual"
"""Default of `--lab`."""
