"""The feature `ip_sla` of any system, with its counters."""

from __future__ import annotations

from typing import ClassVar

from genie.ops.base import Base


class IpSla(Base):  # type: ignore[misc]
    """IP SLA operations of a device."""

    exclude: ClassVar[list[str]] = ["latest", "aggregated"]
    """Keys that Genie's Diff ignores: all measurements of an operation."""
