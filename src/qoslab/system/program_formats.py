"""Formats that the programs of `crates/` read and print: types for annotations, in `program_formats.pyi`."""
