"""Files that contain only a topology: `nodes` and `links`, as under `topology` of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qoslab.errors import ExperimentError
from qoslab.model.experiment import Topology
from qoslab.schema.document import Document, Place, Steps, read_document
from qoslab.schema.overrides import apply_overrides
from qoslab.schema.references import check_references
from qoslab.schema.structure import build

_TOPOLOGY_KEYS = frozenset({"nodes", "links"})
_EXPERIMENT_KEYS: dict[str, Any] = {
    "name": "topology",
    "title": "Topology",
    "duration": "1 s",
    "traffic": [],
    "arms": [{"name": "none"}],
}
"""Keys that extend a topology to an experiment, so that the same checks apply to both."""


def load_topology(path: Path, sets: Mapping[str, str] | None = None) -> tuple[str, Topology]:
    """Return the name and the topology of an experiment file or a topology file. Raise `ExperimentError`, which lists
    all errors.
    """
    from qoslab.schema import load_experiment

    if not path.exists():
        load_experiment(path)  # raises the error, with similar names
    document = read_document(path)
    if isinstance(document.data, dict) and document.data.keys() == {"topology"}:
        raise ExperimentError(
            findings=[
                document.finding(
                    ("topology",),
                    "found only topology:, expected an experiment (with name, traffic and arms), or a topology file",
                    "a topology file has nodes: and links: at the top, without topology: around them",
                    at_key=True,
                )
            ]
        )
    if not isinstance(document.data, dict) or not document.data.keys() <= _TOPOLOGY_KEYS:
        experiment = load_experiment(path, sets)
        return experiment.name, experiment.topology
    inside = _as_experiment(document)
    apply_overrides(inside, sets or {})
    built, findings = build(inside)
    if built is not None:
        findings = check_references(built, inside, path)
    if inside.findings or findings:
        raise ExperimentError(findings=[*inside.findings, *findings])
    assert built is not None
    return path.stem, built.topology


def _as_experiment(document: Document) -> Document:
    """Return the document with its content, and the places of the content, moved under `topology`."""

    def moved(places: Mapping[Steps, Place]) -> dict[Steps, Place]:
        return {("topology", *steps): place for steps, place in places.items()}

    return Document(
        document.file,
        data={**_EXPERIMENT_KEYS, "topology": document.data},
        values=moved(document.values),
        keys=moved(document.keys),
        findings=document.findings,
    )
