"""Files of an analysis: the tables of a run, the record of the cells in them, and the comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pandas as pd
from pydantic_core import PydanticSerializationError

from qoslab.analysis.judged import Judged
from qoslab.analysis.readings import RunReading
from qoslab.results import RunFolder, tables
from qoslab.results.baselines import AVERAGES, SCORES
from qoslab.results.csv_text import csv_text
from qoslab.results.file_access import WriteError
from qoslab.results.folder import SAVED_CELLS
from qoslab.results.sealed_files import add_seal, record_json, seal_of_content


def write(folder: RunFolder, found: RunReading, warnings: tuple[str, ...], judged: Judged) -> Iterator[str]:
    """Write the files of a run, without tables that are saved; yield a note if their record could not be saved."""
    texts: list[tuple[str, str | bytes]] = [("comparison.csv", csv_text(judged.comparison))]
    texts.append(("comparison.json", to_json(judged.comparison)))
    for file, table in ((AVERAGES, judged.averages), (SCORES, judged.scores)):
        if not table.empty:
            texts.append((file, csv_text(table)))
    for name, table in (("averages", judged.averages), ("pairs", judged.pairs)):
        texts.append((tables.table_path(name), tables.parquet(name, table)))
    unsaved = found.tables if found.unsaved is not None else {}
    made = {name: tables.parquet(name, table) for name, table in unsaved.items()}
    files: list[tuple[str, str | bytes]] = [(tables.table_path(name), content) for name, content in made.items()]
    try:
        if found.unsaved is not None:
            seals = {name: seal_of_content(content) for name, content in made.items()}
            record = found.unsaved.model_copy(update={"tables": seals, "warnings": warnings})
            files.append((SAVED_CELLS, add_seal(record_json(record))))
    except PydanticSerializationError:
        # A damaged file of a run may contain invalid UTF-8, which a message about it quotes.
        yield f"{SAVED_CELLS}: found invalid UTF-8 in a message about a cell, expected text: {_AGAIN}"
    for name, content in (*files, *texts):
        try:
            folder.replace(name, content)
        except WriteError as error:
            if name != SAVED_CELLS:
                raise
            yield f"{error.message}: {_AGAIN}"


_AGAIN = "the next report reads the cells again"


def to_json(comparison: pd.DataFrame) -> str:
    """Return the content of `comparison.json`: a list of objects with the same keys; null stands for a
    missing value.
    """

    def plain(value: object) -> object:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [{str(key): plain(value) for key, value in row.items()} for row in comparison.to_dict("records")]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
