"""Counters of policy classes over time → what became of their packets. Pure.

Bits and bytes are those that the router counts: layer 3 and its layer-2 header.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from qoslab.analysis.class_lines import CLASS
from qoslab.model.drops import DROP_REASONS
from qoslab.model.metrics import ClassSelector

PRINTED_RATE_BPS = 1000
"""Routers print rates in whole multiples of this."""


def in_time(rows: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], np.ndarray]:
    """Numbers of the rows of each combination of values in the columns `keys`, in the order of their times.

    A row that lacks one of them is left out. Combinations are in the order of their first times.
    """
    order = rows["time_s"].to_numpy(dtype=float).argsort()
    columns = [rows[name].to_numpy(dtype=object)[order] for name in keys]
    lacking = np.logical_or.reduce([pd.isna(column) for column in columns])
    found: dict[tuple[Any, ...], list[int]] = {}
    for number, lacks, key in zip(order.tolist(), lacking.tolist(), zip(*columns, strict=True), strict=True):
        if not lacks:
            found.setdefault(key, []).append(number)
    return {key: np.array(numbers) for key, numbers in found.items()}


def last_of_class(classes: pd.DataFrame) -> pd.DataFrame:
    """Each class as it was counted last, before its policy was removed."""
    place = classes["time_s"].to_numpy(dtype=float).argsort().argsort()
    last = np.array([rows[-1] for rows in in_time(classes, CLASS).values()], dtype=int)
    return classes.take(last[place[last].argsort()])


def class_drops(classes: pd.DataFrame) -> pd.DataFrame:
    """Packets of each class of one cell at its last reading, by what became of them.

    The keys of a class, then offered, sent, one column for each of DROP_REASONS, queued (null without a queue). By the
    counters' identity offered = sent + dropped + queued. What the reading does not say is null, and so is what would be
    computed from it.
    """
    last = last_of_class(classes)
    found = last[CLASS].assign(offered=last["packets"])
    for reason in DROP_REASONS:
        found[reason] = last.get(f"drops_{reason}_packets", 0)
    found["queued"] = last["queue_depth_packets"]
    found["sent"] = found["offered"] - dropped(last, "packets") - waiting(last, "packets")
    return found[[*CLASS, "offered", "sent", *DROP_REASONS, "queued"]].reset_index(drop=True)


def dropped(classes: pd.DataFrame, unit: str) -> pd.Series:
    """Return the drops of each reading for any reason, in `packets` or `bytes`; nan if a part is missing."""
    known = [name for name in (f"drops_{reason}_{unit}" for reason in DROP_REASONS) if name in classes]
    counts = [classes[name].to_numpy(dtype=float, na_value=np.nan) for name in known]
    return pd.Series(np.sum(counts, axis=0), classes.index)


def printed_depth(classes: pd.DataFrame) -> pd.Series:
    """Packets in the class's queue as a router prints them, in all labs; nan if a reading does not say.

    The later generation's print has one figure for these and those of the class in the transmit ring and on the line.
    """
    in_ring = classes["queue_in_ring_packets"].astype(float).fillna(0.0)
    return classes["queue_depth_packets"].astype(float) + in_ring


def waiting(classes: pd.DataFrame, unit: str) -> pd.Series:
    """Return the content of the class's queue in each reading, in `packets` or `bytes`; nan if not shown.

    A class without a queue has nothing in it. So has a queue of no packets, whether its bytes are reported or not.
    """
    packets = classes["queue_depth_packets"].astype(float)
    none = (packets.isna() & classes["queue_discipline"].isna()) | (packets == 0)
    return classes[f"queue_depth_{unit}"].astype(float).mask(none, 0.0)


def interfaces_of(classes: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The routers and interfaces that have classes."""
    found: dict[str, list[str]] = {}
    for device, interface in dict.fromkeys(zip(classes["device"], classes["interface"], strict=True)):
        if not pd.isna(device):
            found.setdefault(str(device), []).append(interface)
    return {device: tuple(interfaces) for device, interfaces in found.items()}


def keys_of(classes: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The class of each row: its values of CLASS."""
    return list(zip(*(classes[name].tolist() for name in CLASS), strict=True))


def selected(classes: pd.DataFrame, selector: ClassSelector, *, nested: bool = False) -> pd.DataFrame:
    """The rows of the classes that are meant; `nested`: whether `*` means the classes of nested policies too."""
    chosen = classes[classes["direction"] == selector.direction]
    if selector.router is not None:
        chosen = chosen[chosen["device"] == selector.router]
    if selector.interface is not None:
        chosen = chosen[chosen["interface"] == selector.interface]
    if selector.path != "*":
        return chosen[chosen["class"] == selector.path]
    return chosen if nested else chosen[~chosen["class"].str.contains("/", regex=False)]


def only_value(values: pd.Series) -> float | None:
    """The value that all have; None if they differ or there is none."""
    found = values.dropna().unique()
    return float(found[0]) if len(found) == 1 else None


def printed(rates_bps: pd.Series) -> pd.Series:
    """Rates as a router prints them; nan if one is not known."""
    return (rates_bps.astype(float) / PRINTED_RATE_BPS + 0.5).floordiv(1) * PRINTED_RATE_BPS
