"""Counters of policy classes over time: offered, sent, dropped and queued packets. Pure.

Bits and bytes are those that the router counts: layer 3 and the layer-2 header.
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
"""Resolution of printed rates in b/s."""


def in_time(rows: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], np.ndarray]:
    """Return the row numbers for each combination of values in the columns `keys`, ordered by time.

    A row with a missing key is left out. Combinations are ordered by their first times.
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
    """Return the last reading of each class, before its policy was removed."""
    place = classes["time_s"].to_numpy(dtype=float).argsort().argsort()
    last = np.array([rows[-1] for rows in in_time(classes, CLASS).values()], dtype=int)
    return classes.take(last[place[last].argsort()])


def class_drops(classes: pd.DataFrame) -> pd.DataFrame:
    """Return the packets of each class of one cell at its last reading, by their fate.

    The columns are the keys of a class, then offered, sent, one column for each of DROP_REASONS, and queued (null
    without a queue). The counters satisfy offered = sent + dropped + queued. Values that the reading lacks are null,
    and so are values computed from them.
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
    """Return the packets in the class's queue in a router's printed form, for all labs; nan if a reading lacks them.

    The later generation prints one value for these and for the class's packets in the transmit ring and on the line.
    """
    in_ring = classes["queue_in_ring_packets"].astype(float).fillna(0.0)
    return classes["queue_depth_packets"].astype(float) + in_ring


def waiting(classes: pd.DataFrame, unit: str) -> pd.Series:
    """Return the content of the class's queue in each reading, in `packets` or `bytes`; nan if not shown.

    It is 0 for a class without a queue, and for a queue of no packets, even if its bytes are not reported.
    """
    packets = classes["queue_depth_packets"].astype(float)
    none = (packets.isna() & classes["queue_discipline"].isna()) | (packets == 0)
    return classes[f"queue_depth_{unit}"].astype(float).mask(none, 0.0)


def interfaces_of(classes: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the routers and interfaces with classes."""
    found: dict[str, list[str]] = {}
    for device, interface in dict.fromkeys(zip(classes["device"], classes["interface"], strict=True)):
        if not pd.isna(device):
            found.setdefault(str(device), []).append(interface)
    return {device: tuple(interfaces) for device, interfaces in found.items()}


def keys_of(classes: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the class of each row, as its values of CLASS."""
    return list(zip(*(classes[name].tolist() for name in CLASS), strict=True))


def selected(classes: pd.DataFrame, selector: ClassSelector, *, nested: bool = False) -> pd.DataFrame:
    """Return the rows of the selected classes; with `nested`, `*` includes classes of nested policies."""
    chosen = classes[classes["direction"] == selector.direction]
    if selector.router is not None:
        chosen = chosen[chosen["device"] == selector.router]
    if selector.interface is not None:
        chosen = chosen[chosen["interface"] == selector.interface]
    if selector.path != "*":
        return chosen[chosen["class"] == selector.path]
    return chosen if nested else chosen[~chosen["class"].str.contains("/", regex=False)]


def only_value(values: pd.Series) -> float | None:
    """Return the value common to all; None if they differ or there are none."""
    found = values.dropna().unique()
    return float(found[0]) if len(found) == 1 else None


def printed(rates_bps: pd.Series) -> pd.Series:
    """Return rates rounded as a router prints them; nan if unknown."""
    return (rates_bps.astype(float) / PRINTED_RATE_BPS + 0.5).floordiv(1) * PRINTED_RATE_BPS
