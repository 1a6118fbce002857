"""Workflows and the action: they pin their dependencies and have only the necessary permissions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

TOP = Path(__file__).parents[2]
WORKFLOWS = sorted((TOP / ".github/workflows").glob("*.yml"))
WRITING = {
    ("image", "image"): {"packages"},
    ("wheels", "release"): {"contents", "id-token", "attestations"},
}
"""Workflow, job and write permissions."""


@pytest.mark.parametrize("file", [*WORKFLOWS, TOP / "action.yml"], ids=lambda file: file.stem)
def test_actions_are_named_by_commit(file: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", file.read_text())
    assert used
    for action, comment in used:
        if action != "./":
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action} has no version next to it"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_jobs_have_write_permission_only_for_their_releases(file: Path) -> None:
    workflow: dict[str, Any] = YAML(typ="safe").load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        written = {what for what, right in job.get("permissions", {}).items() if right == "write"}
        assert written == WRITING.get((file.stem, name), set()), name


IMAGES = (
    "Containerfile",
    "tests/image/Containerfile.elsewhere",
    ".github/workflows/image.yml",
    "templates/qoslab.gitlab-ci.yml",
    "project/.gitlab-ci.yml",
)


@pytest.mark.parametrize("name", IMAGES)
def test_base_images_are_named_by_digest(name: str) -> None:
    images = re.findall(
        r"(?m)^(?:ARG BASE=|  image: |FROM | *- (?=docker\.io/))(?!\$BASE|product)(\S+)", (TOP / name).read_text()
    )
    assert images
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", each) for each in images), images
