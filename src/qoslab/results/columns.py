"""Rows of a table, read by column as NumPy arrays: for tables of some rows this is much faster than a data frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Column = np.ndarray[Any, Any]
_T = TypeVar("_T")
_P = ParamSpec("_P")


def once(compute: Callable[Concatenate[Columns, _P], _T]) -> Callable[Concatenate[Columns, _P], _T]:
    """Cache the results of a function of rows and hashable arguments with the rows, since these never change."""

    @wraps(compute)
    def cached(rows: Columns, /, *further: _P.args, **named: _P.kwargs) -> _T:
        assert not named
        found: _T = rows.compute_once((compute, *further), lambda: compute(rows, *further, **named))
        return found

    return cached


class Columns:
    """Rows of a table. Numbers are floats, nan if missing; texts and booleans are objects, None if missing.

    A column is read on first use.
    """

    __slots__ = ("_columns", "_computed", "_count", "_read")

    def __init__(self, count: int, read: Callable[[str], Column]) -> None:
        """Create it for `count` rows; `read` returns a column. Raise `KeyError` for a column that does not exist."""
        self._count, self._read = count, read
        self._columns: dict[str, Column] = {}
        self._computed: dict[object, Any] = {}

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type]) -> Columns:
        """Create it from rows; `kinds` is the type of each column, `float` or `object`."""

        def read(name: str) -> Column:
            values = [row.get(name) for row in rows]
            if kinds[name] is float:
                return np.array(values, dtype=float)
            column = np.empty(len(values), dtype=object)
            column[:] = values
            return column

        return cls(len(rows), read)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Columns:
        """Create it from the rows of a data frame."""

        def read(name: str) -> Column:
            column = frame[name]
            if column.dtype.kind in "iuf":
                return column.to_numpy(dtype=float, na_value=np.nan)
            found: Column = column.to_numpy(dtype=object, copy=True)
            found[column.isna().to_numpy(dtype=bool)] = None
            return found

        return cls(len(frame), read)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, name: str) -> Column:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = self._read(name)
        return column

    def compute_once(self, key: object, compute: Callable[[], _T]) -> _T:
        """Return the cached result for a key, which `compute` returns on first use."""
        if key not in self._computed:
            self._computed[key] = compute()
        found: _T = self._computed[key]
        return found

    def take_rows(self, places: Column) -> Columns:
        """Return the rows with these numbers, in their order."""
        return Columns(len(places), lambda name: self[name][places])

    def select(self, chosen: Column) -> Columns:
        """Return the rows with a true value in `chosen`."""
        places = np.flatnonzero(chosen)
        return self if len(places) == self._count else self.take_rows(places)

    def select_values(self, name: str, values: Collection[object]) -> Columns:
        """Return the rows with one of these values in a column."""
        return self.select(np.array([each in values for each in self[name].tolist()], dtype=bool))

    @once
    def has(self, name: str) -> Column:
        """Return for each row whether its value in a column is known."""
        column = self[name]
        if column.dtype == float:
            return ~np.isnan(column)
        return np.array([each is not None for each in column], dtype=bool)

    @once
    def distinct(self, name: str) -> list[Any]:
        """Return the known values of a column, in the order of their first rows."""
        return list(dict.fromkeys(self[name][self.has(name)].tolist()))
