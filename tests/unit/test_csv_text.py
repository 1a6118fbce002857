"""CSV of tables whose names come from routers or other tools."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from qoslab.results.csv_text import csv_text


@pytest.mark.parametrize(
    "text", ["=1+1", "@SUM(1)", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "\t=1", "\r=1", "-1+1"]
)
def test_formulas_are_texts(text: str) -> None:
    shown = pd.read_csv(io.StringIO(csv_text(pd.DataFrame({"class": [text], "bps": [-1.5]}))), dtype=str)
    assert shown["class"][0] == "'" + text.replace("\r", " ")
    assert shown["bps"][0] == "-1.5"


@pytest.mark.parametrize("text", ["-", "-5", "+14 %", "-1.5 ms", "class-default", "", "3 Mb/s", "a=b"])
def test_other_texts_are_unchanged(text: str) -> None:
    written = csv_text(pd.DataFrame({"class": [text], "n": [1]}))
    assert written.splitlines()[1] == f"{text},1"


def test_missing_values_and_mixed_columns_are_unchanged() -> None:
    table = pd.DataFrame({"matrix.rate": [1e6, None], "value": pd.Series([None, True], dtype=object)})
    assert csv_text(table) == table.to_csv(index=False, lineterminator="\n")
