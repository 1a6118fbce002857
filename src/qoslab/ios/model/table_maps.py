"""Table-maps: conversion from the value of one field of a packet to that of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from qoslab.ios.model.policy import MarkFromField

VALUES = {"cos": 8, "precedence": 8, "discard_class": 8, "dscp": 64, "qos_group": 100}
"""Number of values of each field."""
THREE_BITS = ("cos", "precedence", "discard_class")


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table-map, usable for any fields of a `set` line."""

    name: str
    rows: tuple[tuple[int, int], ...] = ()
    """`map from VALUE to VALUE`, in order of the first."""
    default: int | Literal["copy", "ignore"] | None = None
    """New value for values without a row; None is copy."""


def mapped_values(mark: MarkFromField, tables: Mapping[str, TableMap]) -> list[int | None]:
    """Return the new value for each value of the other field; None if the packet is not marked.

    Cisco, "Enhanced Packet Marking": without a table the value is copied. A field of three bits gets the class selector
    bits of a code point, and a value outside the range of the field marks nothing. A table that is not configured
    copies [I].
    """
    table = tables.get(mark.table or "", TableMap(""))
    rows, field = dict(table.rows), mark.field.removeprefix("ip_")
    found: list[int | None] = []
    for value in range(VALUES[mark.source]):
        copied = value >> 3 if mark.source == "dscp" and field in THREE_BITS else value
        others = copied if table.default in (None, "copy") else table.default
        new = rows.get(value, others)
        found.append(new if isinstance(new, int) and new < VALUES[field] else None)
    return found
