"""A run as an RO-Crate 1.1 (w3id.org/ro/crate/1.1), packed into a ZIP file.

`ro-crate-metadata.json` has a description of each file with its size and SHA-256, the authors and tools of the
measurement, and the publication with which the run is compared. The rest is the run's folder unchanged, so that an
unpacked crate is a run: `qoslab verify` also compares its files with this list, and `qoslab report` reads it.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from qoslab.exchange.attribution import parse_author
from qoslab.exchange.base import ExportRequest
from qoslab.results import FileSeal, Manifest
from qoslab.results.sealed_files import CRATE

_CONFORMS = "https://w3id.org/ro/crate/1.1"
_TERMS = {"sha256": "https://schema.org/sha256"}
"""Terms that the context of RO-Crate 1.1 lacks."""
_KINDS = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".txt": "text/plain",
    ".ios": "text/plain",
    ".tc": "text/plain",
    ".err": "text/plain",
    ".yml": "application/yaml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".pcapng": "application/x-pcapng",
    ".parquet": "application/vnd.apache.parquet",
}
_FIRST = (1980, 1, 1, 0, 0, 0)
"""Time of all members, the earliest that ZIP supports, so that the same run produces the same file."""


def write_crate(request: ExportRequest, to: Path) -> None:
    """Write a ZIP file."""
    seals = request.folder.seals()
    metadata = json.dumps(describe(request, seals), indent=2, ensure_ascii=False) + "\n"
    with zipfile.ZipFile(to, "x", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_file_type(CRATE), metadata)
        for name in seals:
            with (
                (request.folder.path / name).open("rb") as source,
                archive.open(_file_type(name), "w", force_zip64=True) as member,
            ):
                shutil.copyfileobj(source, member, 2**20)


def describe(request: ExportRequest, seals: Mapping[str, FileSeal]) -> dict[str, Any]:
    """Return the content of `ro-crate-metadata.json` for files with these seals."""
    manifest = request.outcome.run.manifest
    authors = [_author_entity(text) for text in request.authors]
    files = [_file_entity(name, seal) for name, seal in seals.items()]
    return {
        "@context": [f"{_CONFORMS}/context", _TERMS],
        "@graph": [
            {"@id": CRATE, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": _CONFORMS}},
            _dataset_entity(request, manifest, authors, files),
            *files,
            *authors,
            *([_licence_entity(request.licence)] if request.licence else []),
            *_context_entities(manifest),
        ],
    }


def _dataset_entity(
    request: ExportRequest, manifest: Manifest, authors: list[dict[str, Any]], files: list[dict[str, Any]]
) -> dict[str, Any]:
    experiment = manifest.experiment
    outcome = request.outcome
    verdict = f"invalid: {'; '.join(outcome.reasons)}" if not outcome.valid else f"{outcome.outside} out of tolerance"
    found: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{experiment.title} ({experiment.name}, lab: {manifest.lab})",
        "description": f"{experiment.description.strip() or experiment.title}\n\nThe run is {verdict}.",
        "datePublished": manifest.started.date().isoformat(),
        "dateCreated": manifest.started.isoformat(),
        "hasPart": [{"@id": each["@id"]} for each in files],
        "mentions": {"@id": "#run"},
    }
    if request.licence:
        found["license"] = {"@id": _licence_entity(request.licence)["@id"]}
    if authors:
        found["author"] = _references(each["@id"] for each in authors)
    if experiment.compare is not None and experiment.compare.article:
        found["citation"] = experiment.compare.article
    return found


def _licence_entity(name: str) -> dict[str, Any]:
    return {"@id": f"https://spdx.org/licenses/{name}", "@type": "CreativeWork", "name": name}


def _references(names: Iterable[str]) -> Any:
    """Return references; a single one is not in a list, as RO-Crate 1.1 requires."""
    found = [{"@id": name} for name in names]
    return found[0] if len(found) == 1 else found


def _context_entities(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the run as an action of qoslab, and its instruments."""
    used = manifest.versions
    for name, version in used.items():
        yield {"@id": f"#{quote(name)}", "@type": "SoftwareApplication", "name": name, "version": version}
    yield {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"qoslab run {manifest.experiment.name} --lab {manifest.lab}",
        "startTime": manifest.started.isoformat(),
        **({"endTime": manifest.ended.isoformat()} if manifest.ended is not None else {}),
        "instrument": _references(f"#{quote(name)}" for name in used),
        "object": _references(_file_uri(name) for name in sorted(manifest.files)),
        "result": {"@id": "./"},
        "description": " ".join(manifest.overrides) or "as described in the experiment file",
    }


def _author_entity(text: str) -> dict[str, Any]:
    author = parse_author(text)
    identifier = author.address or f"#{quote(author.name.replace(' ', '-'))}"
    return {"@id": identifier, "@type": "Person", "name": author.name}


def _file_entity(name: str, seal: FileSeal) -> dict[str, Any]:
    kind = _KINDS.get(PurePath(name).suffix)
    return {
        "@id": _file_uri(name),
        "@type": "File",
        "contentSize": str(seal.bytes),
        "sha256": seal.sha256,
        **({"encodingFormat": kind} if kind else {}),
    }


def _file_uri(name: str) -> str:
    """Return a file's name as a relative URI, which `qoslab.results.verify` decodes."""
    return quote(name, safe="/!$&'()*+,;=@")


def _file_type(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _FIRST)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100644 << 16
    return info
