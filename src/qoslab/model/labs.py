"""The default kind of lab, and the kind of runs from before several kinds existed. See `qoslab.lab_kinds` for all
kinds.
"""

from __future__ import annotations

DEFAULT_LAB = "virtual"
"""Default of `--lab`."""
