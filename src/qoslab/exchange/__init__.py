"""Export of runs to the formats of other tools, for `qoslab export`.

To add a format, write a module with a function that writes to a new path, and add its line to `EXPORTS`.
"""

from __future__ import annotations

from qoslab.exchange.base import Export, ExportRequest, write_export
from qoslab.exchange.datapackage import write_csv, write_parquet
from qoslab.exchange.flent import write_flent
from qoslab.exchange.ro_crate import write_crate

__all__ = ["EXPORTS", "Export", "ExportRequest", "write_export"]

EXPORTS: dict[str, Export] = {
    each.name: each
    for each in (
        Export(
            "csv",
            "a folder with the tables as CSV, their columns and units in datapackage.json",
            "-csv",
            write_csv,
            signed=True,
        ),
        Export("parquet", "the same as Parquet, with the units in the column metadata", "-parquet", write_parquet),
        Export("flent", "a folder with a data file of flent for each cell with traffic", "-flent", write_flent),
        Export("ro-crate", "the run's folder as an RO-Crate, a ZIP file", ".crate.zip", write_crate, signed=True),
    )
}
"""Formats by name."""
