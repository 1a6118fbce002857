"""Tests of the image, built and run with Podman (`tox -e image`).

`QOSLAB_IMAGE_BASE` names another base image, `QOSLAB_IMAGE_MOUNTS` files of this machine that the build needs, such as
those that name a mirror: `/etc/pip.conf /etc/apt/apt.conf.d`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from verdicts import newest_run, status_of

TOP = Path(__file__).parents[2]
PODMAN = shutil.which("podman") or ""
IMAGE = "localhost/qoslab-tried"
ELSEWHERE = re.findall(r"(?m)^ *- (docker\.io/\S+)", (TOP / ".github/workflows/image.yml").read_text(encoding="utf-8"))
UNMASKED = ("--security-opt", "unmask=ALL")


def call(argv: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True)


def build(*words: str | Path, base: str = "") -> None:
    assert PODMAN, "no podman on this machine: sudo apt-get install podman"
    mounts = [f"--volume={path}:{path}:ro" for path in os.environ.get("QOSLAB_IMAGE_MOUNTS", "").split()]
    given = [f"--build-arg=BASE={base}"] if base else []
    built = call([PODMAN, "build", *mounts, *given, *words, TOP])
    assert built.returncode == 0, built.stderr[-4000:]


@pytest.fixture(scope="module")
def image() -> str:
    build("--tag", IMAGE, base=os.environ.get("QOSLAB_IMAGE_BASE", ""))
    return IMAGE


def qoslab(image: str, folder: Path, *words: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return call([PODMAN, "run", "--rm", f"--volume={folder}:/work", *options, image, *words])


def test_simulated_run_writes_its_report_to_the_mounted_folder(image: str, tmp_path: Path) -> None:
    done = qoslab(image, tmp_path, "run", "policing-vs-shaping", "--lab", "simulated", "--duration", "10s")
    assert done.returncode == status_of(newest_run(tmp_path)) in (0, 1), done.stderr
    (report,) = tmp_path.glob("runs/policing-vs-shaping/2*/report.html")
    assert report.owner() == tmp_path.owner()


def test_virtual_run_works_with_the_option_in_the_hint(image: str, tmp_path: Path) -> None:
    words = ("run", "policing-vs-shaping", "--duration", "5s", "--arm", "policed", "--attempts", "3")
    refused = qoslab(image, tmp_path, *words)
    assert refused.returncode == 2 and "--security-opt unmask=ALL" in refused.stderr, refused.stderr
    done = qoslab(image, tmp_path, *words, options=UNMASKED)
    # Two spare attempts: one of three is enough.
    assert done.returncode == status_of(newest_run(tmp_path)) in (0, 1), done.stderr
    assert qoslab(image, tmp_path, "doctor", options=UNMASKED).returncode == 0


def test_doctor_names_the_option(image: str, tmp_path: Path) -> None:
    done = qoslab(image, tmp_path, "doctor")
    assert done.returncode == 2 and "--security-opt unmask=ALL" in done.stdout, done.stdout


def test_clone_installs_in_the_development_container() -> None:
    tag = f"{IMAGE}-devcontainer"
    build("--target", "devcontainer", "--tag", tag, base=os.environ.get("QOSLAB_IMAGE_BASE", ""))
    config = json.loads(
        re.sub(r"^\s*//.*$", "", (TOP / ".devcontainer/devcontainer.json").read_text(), flags=re.MULTILINE)
    )
    # The user owns nothing in the clone; changes to it are discarded.
    begins = f"sudo chown {config['remoteUser']}: . && {config['postCreateCommand']}"
    volumes = [f"--volume=/clone/{name}" for name in (".venv", ".qoslab", "target")]
    clone = [f"--volume={TOP}:/clone:O", "--workdir=/clone", *volumes]
    done = call([PODMAN, "run", "--rm", *UNMASKED, *clone, tag, "bash", "-c", begins])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("base", ELSEWHERE)
def test_clone_prints_the_commands_of_other_distributions(base: str) -> None:
    folder = TOP / "tests/image"
    ignored = folder / "elsewhere.containerignore"
    build("--ignorefile", ignored, "--file", folder / "Containerfile.elsewhere", base=base)
