"""The kind of lab of whatever says none: runs from before there were several. `qoslab.labs` has the kinds."""

from __future__ import annotations

DEFAULT_LAB = "virtual"
"""Default of `--lab`."""
