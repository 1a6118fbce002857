"""Interfaces of a capture: one chosen among several, and packets that stand in the capture more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.capture.packet_tables import column
from qoslab.errors import UserError

COLUMNS = ["time_ns", "identity", "ttl", "interface", "network_bytes"]
"""Columns of a packet that are examined here."""
_DUPLICATES = 0.01
"""Share of the packets that two interfaces have in common, or that stand twice, above which they are duplicates."""
_OF_SMALL, _SMALL_BYTES = 0.15, 100
"""The same of packets up to a size: acknowledgements of a host that numbers no packets can be identical."""
_FEWEST = 10
_TOGETHER_NS = 50_000_000
"""Greatest time between two copies of a packet with one TTL; identical packets of a test are sent further apart."""


def choose(file: Path, packets: pd.DataFrame, names: Sequence[str], wanted: str | None) -> pd.DataFrame:
    """The packets of the interface that is wanted, by name or number; without one all, if none is a duplicate.

    `UserError` if there is no such interface, or if packets stand in the capture more than once.
    """
    found = labels(packets, names)
    if wanted is not None:
        numbers = numbers_of(file, packets, found, wanted)
        packets = packets[packets["interface"].isin(numbers)].reset_index(drop=True)
    else:
        common = _at_several(packets)
        if common:
            raise UserError(
                f"{file}: found {common:,} packets at more than one interface, expected those of one",
                hint=f"Choose one with --interface: {_listed(packets, found)}.",
            )
    refuse_duplicates(file, packets)
    return packets


def numbers_of(file: Path, packets: pd.DataFrame, found: Mapping[int, str], wanted: str) -> list[int]:
    """Return the numbers of the interfaces with a name or number, of those in `found`. `UserError` without any."""
    numbers = [number for number, label in found.items() if wanted in (label, str(number))]
    if not numbers:
        raise UserError(f'{file}: found no packets of interface "{wanted}", expected one of {_listed(packets, found)}')
    return numbers


def labels(packets: pd.DataFrame, names: Sequence[str]) -> dict[int, str]:
    """Names of the interfaces that have packets, by number; of one without a name, or with that of another, the number.

    A capture that was merged from files of several machines has one name several times.
    """
    numbers = sorted(map(int, packets["interface"].unique()))
    named = {each: names[each] if 0 <= each < len(names) else "" for each in numbers}
    count = Counter(named.values())
    return {
        each: name if name and count[name] == 1 else f"{name}#{each}" if name else str(each)
        for each, name in named.items()
    }


def refuse_duplicates(file: Path, packets: pd.DataFrame) -> None:
    """Check that no packet of one interface stands in the capture twice. `UserError` if many do."""
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
            hint="The capture has both sides of a device, or a mirror port sent both directions. Capture on one "
            "interface by name instead of `any`, or remove the copies (editcap -d).",
        )


def _at_several(packets: pd.DataFrame) -> int:
    """Packets that are duplicates of one at another interface; 0 if they are too few to be the rule."""
    known = packets[packets["identity"] != 0]
    if known["interface"].nunique() < 2:
        return 0
    apart = known.groupby("identity")["interface"].nunique()
    common = int((apart > 1).sum())
    return common if common >= _FEWEST and common > _DUPLICATES * len(known) else 0


def _listed(packets: pd.DataFrame, found: Mapping[int, str]) -> str:
    counts = packets["interface"].value_counts()
    return ", ".join(f"{label} ({counts[number]:,} packets)" for number, label in found.items())


class Noted:
    """Pieces of a capture, passed on, with the columns kept that `choose` needs."""

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
            self._noted.append(pd.DataFrame({name: column(piece, name) for name in COLUMNS}))
            yield piece

    @property
    def packets(self) -> pd.DataFrame:
        """The columns of all packets."""
        if not self._noted:
            return pd.DataFrame({name: pd.Series(dtype="int64") for name in COLUMNS})
        return pd.concat(self._noted, ignore_index=True)
