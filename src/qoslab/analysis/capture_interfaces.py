"""Interfaces of a capture: selection of one among several, and detection of duplicate packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.capture import CaptureError
from qoslab.capture.packet_tables import column_array
from qoslab.errors import UserError

COLUMNS = ["time_ns", "identity", "ttl", "interface", "network_bytes"]
"""Columns of a packet that this module reads."""
_DUPLICATES = 0.01
"""Share of packets that two interfaces have in common, or that occur twice, above which they are duplicates."""
_OF_SMALL, _SMALL_BYTES = 0.15, 100
"""The same share for packets up to a size: acknowledgements of a host without IP identification can be identical."""
_FEWEST = 10
_TOGETHER_NS = 50_000_000
"""Maximum time between two copies of a packet with the same TTL; identical packets of a test are sent further apart."""


def choose(file: Path, packets: pd.DataFrame, names: Sequence[str], wanted: str | None) -> pd.DataFrame:
    """Return the packets of the interface with a name or number; if `wanted` is None, all packets if there are no
    duplicates.

    Raise `UserError` if there is no such interface, or if the capture has packets more than once.
    """
    found = labels(packets, names)
    if wanted is not None:
        numbers = interface_numbers(file, packets, found, wanted)
        packets = packets[packets["interface"].isin(numbers)].reset_index(drop=True)
    else:
        common = _count_duplicates(packets)
        if common:
            raise UserError(
                f"{file}: found {common:,} packets on more than one interface, expected packets from one interface",
                hint=f"Choose one with --interface: {_list_interfaces(packets, found)}.",
            )
    refuse_duplicates(file, packets)
    return packets


def interface_numbers(file: Path, packets: pd.DataFrame, found: Mapping[int, str], wanted: str) -> list[int]:
    """Return the numbers of the interfaces in `found` with a name or number. Raise `UserError` if there are none."""
    numbers = [number for number, label in found.items() if wanted in (label, str(number))]
    if not numbers:
        raise UserError(
            f'{file}: found no packets from interface "{wanted}", expected one of {_list_interfaces(packets, found)}'
        )
    return numbers


def unreadable(error: CaptureError) -> UserError:
    """Return the error for a capture that cannot be read, with a hint if only one of its interfaces is the reason."""
    of_interface = "found packets of link type" in error.message and "the interface " in error.message
    hint = "Choose another interface with --interface, if the capture has one." if of_interface else ""
    return UserError(error.message, hint=error.hint or hint)


def labels(packets: pd.DataFrame, names: Sequence[str]) -> dict[int, str]:
    """Return labels of the interfaces with packets, by number: the name if it is unique, otherwise the number.

    A capture merged from files of several machines may have the same name several times.
    """
    numbers = sorted(map(int, packets["interface"].unique()))
    named = {each: names[each] if 0 <= each < len(names) else "" for each in numbers}
    count = Counter(named.values())
    return {
        each: name if name and count[name] == 1 else f"{name}#{each}" if name else str(each)
        for each, name in named.items()
    }


def refuse_duplicates(file: Path, packets: pd.DataFrame) -> None:
    """Check that no packet of one interface is in the capture twice. Raise `UserError` if many are."""
    known = packets[packets["identity"] != 0]
    groups = known.groupby("identity")[["time_ns", "ttl", "network_bytes"]]
    pairs = groups.size() == 2
    most = groups.max()[pairs]
    apart = most - groups.min()[pairs]
    copied = (apart["ttl"] == 1) | (apart["time_ns"] <= _TOGETHER_NS)
    twice, large = int(copied.sum()), int((copied & (most["network_bytes"] > _SMALL_BYTES)).sum())
    if twice >= _FEWEST and (twice > _OF_SMALL * len(known) or large > _DUPLICATES * len(known)):
        raise UserError(
            f"{file}: found {twice:,} packets twice, expected each once",
            hint="The capture covers both sides of a device, or a mirror port copied both directions. Capture on one "
            "named interface instead of `any`, or remove the duplicates (editcap -d).",
        )


def _count_duplicates(packets: pd.DataFrame) -> int:
    """Return the number of packets that are duplicates of another interface's; 0 if they are few."""
    known = packets[packets["identity"] != 0]
    if known["interface"].nunique() < 2:
        return 0
    apart = known.groupby("identity")["interface"].nunique()
    common = int((apart > 1).sum())
    return common if common >= _FEWEST and common > _DUPLICATES * len(known) else 0


def _list_interfaces(packets: pd.DataFrame, found: Mapping[int, str]) -> str:
    counts = packets["interface"].value_counts()
    return ", ".join(f"{label} ({counts[number]:,} packets)" for number, label in found.items())


class Noted:
    """Pieces of a capture, which are passed on while the columns for `choose` are kept."""

    def __init__(self, pieces: Iterator[pa.RecordBatch]) -> None:
        self._pieces = pieces
        self._noted: list[pd.DataFrame] = []
        self.names: Sequence[str] = ()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                piece = next(self._pieces)
            except StopIteration as end:
                self.names = end.value or ()
                return
            self._noted.append(pd.DataFrame({name: column_array(piece, name) for name in COLUMNS}))
            yield piece

    @property
    def packets(self) -> pd.DataFrame:
        """Columns of all packets."""
        if not self._noted:
            return pd.DataFrame({name: pd.Series(dtype="int64") for name in COLUMNS})
        return pd.concat(self._noted, ignore_index=True)
