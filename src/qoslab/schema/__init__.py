"""Experiment files: read, checked, turned into the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qoslab.errors import ExperimentError
from qoslab.model.experiment import Experiment
from qoslab.schema.document import read_document
from qoslab.schema.json_schema import experiment_schema, schema_text
from qoslab.schema.near import did_you_mean
from qoslab.schema.overrides import apply_overrides, parse_set
from qoslab.schema.probe_lines import probe_configuration
from qoslab.schema.published import load_published, published_figures
from qoslab.schema.sandbox import counted_together
from qoslab.schema.sweep import CellIdentity, Check, Identified, Sweep, configuration_text, make_sweep
from qoslab.schema.templates import render_configuration


def load_experiment(path: Path | str, sets: Mapping[str, str] | None = None) -> Experiment:
    """Load the experiment as `load_sweep` does, with the parameters of each arm's first combination."""
    return load_sweep(path, sets).experiment


def load_sweep(path: Path | str, sets: Mapping[str, str] | None = None, also: Check | None = None) -> Sweep:
    """Read and check an experiment file, with `sets` (`--set PATH=VALUE`) applied on top.

    `ExperimentError` lists all findings of the first phase that has any: YAML, overrides, parameters, keys and values,
    references; what `also` finds.
    """
    file = Path(path)
    if not file.exists():
        known = [str(each) for each in file.parent.glob("*.yml")] if file.parent.is_dir() else []
        raise ExperimentError(f"{file}: there is no such file", hint=did_you_mean(str(file), known))
    document = read_document(file)
    apply_overrides(document, sets or {})
    with counted_together():
        return make_sweep(document, file, also)


__all__ = [
    "CellIdentity",
    "Check",
    "Identified",
    "Sweep",
    "configuration_text",
    "experiment_schema",
    "load_experiment",
    "load_published",
    "load_sweep",
    "parse_set",
    "probe_configuration",
    "published_figures",
    "render_configuration",
    "schema_text",
]
