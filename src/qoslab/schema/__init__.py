"""Reading and checking of experiment files, and their conversion into the model.

Names are imported on first use: reading the records of a run needs no code that checks an experiment file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from qoslab.errors import ExperimentError
from qoslab.system.first_use import lazy_imports

if TYPE_CHECKING:
    from qoslab.model.experiment import Experiment as Experiment
    from qoslab.schema.cell_identity import CellIdentified as CellIdentified
    from qoslab.schema.cell_identity import CellIdentity as CellIdentity
    from qoslab.schema.json_schema import experiment_schema as experiment_schema
    from qoslab.schema.json_schema import schema_text as schema_text
    from qoslab.schema.overrides import parse_set as parse_set
    from qoslab.schema.probe_lines import probe_configuration as probe_configuration
    from qoslab.schema.published import load_published as load_published
    from qoslab.schema.published import published_values as published_values
    from qoslab.schema.sweep import Check as Check
    from qoslab.schema.sweep import Sweep as Sweep
    from qoslab.schema.sweep import configuration_text as configuration_text
    from qoslab.schema.templates import render_configuration as render_configuration

_MODULES = {
    "CellIdentity": "cell_identity",
    "Check": "sweep",
    "CellIdentified": "cell_identity",
    "Sweep": "sweep",
    "configuration_text": "sweep",
    "experiment_schema": "json_schema",
    "load_published": "published",
    "parse_set": "overrides",
    "probe_configuration": "probe_lines",
    "published_values": "published",
    "render_configuration": "templates",
    "schema_text": "json_schema",
}
"""Module of each name."""
__getattr__ = lazy_imports(__name__, _MODULES)


def load_experiment(path: Path | str, sets: Mapping[str, str] | None = None) -> Experiment:
    """Load the experiment as `load_sweep` does, with the parameters of each arm's first combination."""
    return load_sweep(path, sets).experiment


def load_sweep(path: Path | str, sets: Mapping[str, str] | None = None, also: Check | None = None) -> Sweep:
    """Read and check an experiment file, with `sets` (`--set PATH=VALUE`) applied on top.

    Raise `ExperimentError`, which lists all findings of the first phase with any: YAML, overrides, parameters, keys and
    values, references; last the check `also`.
    """
    from qoslab.errors import did_you_mean
    from qoslab.schema.document import read_document
    from qoslab.schema.overrides import apply_overrides
    from qoslab.schema.sandbox import limited_check
    from qoslab.schema.sweep import make_sweep

    file = Path(path)
    if not file.exists():
        known = [str(each) for each in file.parent.glob("*.yml")] if file.parent.is_dir() else []
        raise ExperimentError(f"{file}: no such file", hint=did_you_mean(str(file), known))
    document = read_document(file)
    apply_overrides(document, sets or {})
    with limited_check():
        return make_sweep(document, file, also)
