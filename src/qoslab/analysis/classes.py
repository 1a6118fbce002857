"""Counters of policy classes over time: offered, sent, dropped and queued packets. Pure.

Bits and bytes are those that the router counts: layer 3 and the layer-2 header.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from qoslab.analysis.class_lines import CLASS
from qoslab.model.drops import DROP_REASONS
from qoslab.model.metrics import ClassSelector
from qoslab.results.columns import Column, Columns, once

PRINTED_RATE_BPS = 1000
"""Resolution of printed rates in b/s."""


@once
def group_rows(rows: Columns, *keys: str) -> dict[tuple[Any, ...], Column]:
    """Return the row numbers for each combination of values in the columns `keys`, ordered by their first rows.

    A row with a missing key is left out.
    """
    found: dict[tuple[Any, ...], list[int]] = {}
    known = np.logical_and.reduce([rows.has(name) for name in keys])
    columns = (rows[name].tolist() for name in keys)
    for number, (complete, *key) in enumerate(zip(known.tolist(), *columns, strict=True)):
        if complete:
            found.setdefault(tuple(key), []).append(number)
    return {key: np.array(numbers) for key, numbers in found.items()}


@once
def group_rows_by_time(rows: Columns, *keys: str) -> dict[tuple[Any, ...], Column]:
    """Return the row numbers for each combination of values in the columns `keys`, ordered by time, as `grouped`."""
    order = rows["time_s"].argsort()
    return {key: order[places] for key, places in group_rows(rows.take_rows(order), *keys).items()}


def sums_by_time(rows: Columns, name: str) -> tuple[Column, Column]:
    """Return the times of readings in order, and the sum of the known values of a column at each."""
    times, place = np.unique(rows["time_s"], return_inverse=True)
    return times, np.bincount(place, np.nan_to_num(rows[name]), len(times))


def _last_places(classes: Columns) -> Column:
    """Return the row number of the last reading of each class, in order of time."""
    place = classes["time_s"].argsort().argsort()
    last = np.array([rows[-1] for rows in group_rows_by_time(classes, *CLASS).values()], dtype=int)
    found: Column = last[place[last].argsort()]
    return found


@once
def last_of_class(classes: Columns) -> Columns:
    """Return the last reading of each class, before its policy was removed."""
    return classes.take_rows(_last_places(classes))


def class_drops(classes: pd.DataFrame) -> pd.DataFrame:
    """Return the packets of each class of one cell at its last reading, by their fate.

    The columns are the keys of a class, then offered, sent, one column for each of DROP_REASONS, and queued (null
    without a queue). The counters satisfy offered = sent + dropped + queued. Values that the reading lacks are null,
    and so are values computed from them.
    """
    last = classes.take(_last_places(Columns.from_frame(classes)))
    found = last[CLASS].assign(offered=last["packets"])
    for reason in DROP_REASONS:
        found[reason] = last[f"drops_{reason}_packets"]
    found["queued"] = last["queue_depth_packets"]
    counted = Columns.from_frame(last)
    found["sent"] = found["offered"] - dropped_amounts(counted, "packets") - queued_amounts(counted, "packets")
    return found[[*CLASS, "offered", "sent", *DROP_REASONS, "queued"]].reset_index(drop=True)


@once
def dropped_amounts(classes: Columns, unit: str) -> Column:
    """Return the drops of each reading for any reason, in `packets` or `bytes`; nan if a part is missing."""
    found: Column = np.sum([classes[f"drops_{reason}_{unit}"] for reason in DROP_REASONS], axis=0)
    return found


def printed_depth(classes: Columns) -> Column:
    """Return the packets in the class's queue in a router's printed form, for all labs; nan if a reading lacks them.

    The later generation prints one value for these and for the class's packets in the transmit ring and on the line.
    """
    found: Column = classes["queue_depth_packets"] + np.nan_to_num(classes["queue_in_ring_packets"])
    return found


@once
def queued_amounts(classes: Columns, unit: str) -> Column:
    """Return the content of the class's queue in each reading, in `packets` or `bytes`; nan if not shown.

    It is 0 for a class without a queue, and for a queue of no packets, even if its bytes are not reported.
    """
    packets = classes["queue_depth_packets"]
    none = (np.isnan(packets) & ~classes.has("queue_discipline")) | (packets == 0)
    return np.where(none, 0.0, classes[f"queue_depth_{unit}"])


@once
def class_interfaces(classes: Columns) -> dict[str, tuple[str, ...]]:
    """Return the routers and interfaces with classes."""
    found: dict[str, list[str]] = {}
    for device, interface in dict.fromkeys(zip(classes["device"], classes["interface"], strict=True)):
        if device is not None:
            found.setdefault(str(device), []).append(interface)
    return {device: tuple(interfaces) for device, interfaces in found.items()}


def class_keys(classes: Columns) -> list[tuple[Any, ...]]:
    """Return the class of each row, as its values of CLASS."""
    return list(zip(*(classes[name].tolist() for name in CLASS), strict=True))


def select_classes(classes: Columns, selector: ClassSelector, *, nested: bool = False) -> Columns:
    """Return the rows of the selected classes; with `nested`, `*` includes classes of nested policies."""
    chosen = classes["direction"] == selector.direction
    if selector.router is not None:
        chosen &= classes["device"] == selector.router
    if selector.interface is not None:
        chosen &= classes["interface"] == selector.interface
    if selector.path != "*":
        chosen &= classes["class"] == selector.path
    elif not nested:
        chosen &= np.array(["/" not in str(name) for name in classes["class"]], dtype=bool)
    return classes.select(chosen)


def common_value(rows: Columns, name: str) -> float | None:
    """Return the known value common to all rows; None if they differ or there are none."""
    found = rows.distinct(name)
    return float(found[0]) if len(found) == 1 else None


def round_as_printed(rates_bps: Column) -> Column:
    """Return rates rounded as a router prints them; nan if unknown."""
    found: Column = np.floor_divide(rates_bps / PRINTED_RATE_BPS + 0.5, 1) * PRINTED_RATE_BPS
    return found
