"""Tables as CSV that a spreadsheet shows and does not run."""

from __future__ import annotations

import re

import pandas as pd

_FORMULA = re.compile(r"[=@\t]|[+-](?!$| ?[\d.,]+ ?[%\w/]*$)")
"""Beginning of a text that spreadsheets take as a formula (OWASP, CSV injection), except of numbers with a unit."""


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV; an empty cell stands for a missing value.

    Names in a table can be those of a router or of a file of another tool. A text that a spreadsheet would run as a
    formula gets an apostrophe before it.
    """
    texts = {name: table[name].map(_escape_formula) for name in table.columns if table[name].dtype.kind == "O"}
    return table.assign(**texts).to_csv(index=False, lineterminator="\n")


def _escape_formula(value: object) -> object:
    if not isinstance(value, str):
        return value
    # A carriage return is not quoted, and readers take it as the end of a row.
    text = value.replace("\r", " ")
    return f"'{text}" if _FORMULA.match(text.lstrip(" ")) else text
