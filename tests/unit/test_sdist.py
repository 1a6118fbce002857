"""Source distribution: a build from it equals a build from a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from qoslab.cli.man import manual_pages

TOP = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Provide a copy of the working copy's files known to git; other files belong to no distribution."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    copy = tmp_path / "checkout"
    for name in filter(None, listed.split("\0")):
        if (TOP / name).is_file() and not name.startswith("tests/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, copy / name)
    return copy


def build(kind: str, sources: Path, to: Path) -> Path:
    """Return hatchling's archive without the programs: for a system that has none, so that cargo is not run."""
    environment = os.environ | {"CARGO_BUILD_TARGET": "x86_64-pc-windows-gnu"}
    environment.pop("QOSLAB_TARGET", None)
    argv = [sys.executable, "-P", "-m", "hatchling", "build", "-t", kind, "-d", str(to)]
    done = subprocess.run(argv, cwd=sources, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (made,) = to.iterdir()
    return made


def contents(wheel: Path) -> dict[str, int]:
    """Return the files of an archive with their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist()}


@pytest.mark.long
def test_wheel_from_the_sdist_equals_that_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    expected = contents(build("wheel", checkout, tmp_path / "of-checkout"))
    with tarfile.open(build("sdist", checkout, tmp_path / "sources")) as archive:
        # Python 3.11 has filters from its fourth release on, without which 3.12 warns.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert contents(build("wheel", unpacked, tmp_path / "of-sources")) == expected
    pages = {f"qoslab-0.1.0.data/data/share/man/man1/{name}" for name in manual_pages()}
    assert {"qoslab/__init__.py", "qoslab/data/project/.github/workflows/qos.yml", *pages} <= expected.keys()
