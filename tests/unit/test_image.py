"""Contents of the image against the other lists of requirements; `tox -e image` builds and tests it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from qoslab.cli.doctor import TOOLS
from qoslab.virtual_lab.supervision import CONTAINER_HINT

TOP = Path(__file__).parents[2]
STAGES = dict(
    re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", (TOP / "Containerfile").read_text(), re.DOTALL | re.MULTILINE)
)
OPTION = re.compile(r"--security-opt[ =](\S+?=\S+?)(?=[\s,;.\"`]|$)", re.MULTILINE)


def packages(stage: str) -> set[str]:
    found = re.search(r"--no-install-recommends((?:\s+\\?\s*[a-z0-9][\w.+-]*)+)", STAGES[stage])
    assert found is not None
    return set(found[1].replace("\\", " ").split())


def test_image_meets_every_check_of_doctor() -> None:
    needed = {package for _, _, package, need in TOOLS if need == "required"}
    assert needed - {"coreutils"} <= packages("product")


def test_development_container_has_every_requirement_of_the_checks() -> None:
    """Check the container: the bootstrap finds the requirements; anything that it installed would be lost."""
    bootstrap = (TOP / "qoslab").read_text()
    missing = bootstrap[bootstrap.index("missing() {") : bootstrap.index("python_packages() {")]
    named = re.findall(r'\|\| echo "\S+ ([^"$]+)"', missing)
    assert len(named) > 10
    there = packages("product") | packages("devcontainer")
    everywhere = {"diffutils", "findutils", "gawk"}  # from Debian, or its replacement there
    assert {package for each in named for package in each.split()} - {"frr"} - everywhere <= there
    assert {"cargo", "rustc", "rust-clippy", "rustfmt", "python3-venv"} <= packages("devcontainer")


def test_build_context_has_only_the_sources_of_the_wheel() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    sources = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    lines = (TOP / ".containerignore").read_text().splitlines()
    given = {line.removeprefix("!") for line in lines if line.startswith("!")}
    at_top = {name.removeprefix("/").split("/")[0] for name in sources}
    assert given == at_top | {"pyproject.toml", "requirements"}
    assert "*" in lines


def test_development_container_is_a_stage_with_the_options_of_the_hint() -> None:
    text = (TOP / ".devcontainer/devcontainer.json").read_text()
    config = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert config["build"]["target"] in STAGES
    with_docker, with_podman = CONTAINER_HINT.split("with Podman")
    assert {each.partition("=")[2] for each in config["runArgs"]} == set(OPTION.findall(with_docker))
    assert OPTION.findall(with_podman) == ["unmask=ALL"]


def test_page_names_the_options_of_the_hint() -> None:
    page = " ".join((TOP / "docs/install.md").read_text().split())
    assert set(OPTION.findall(page)) == set(OPTION.findall(CONTAINER_HINT))


ELSEWHERE = TOP / "tests/image/Containerfile.elsewhere"
LAST_LINES = {
    "    sudo dnf install gcc iproute iproute-tc ": "dnf <install> <-y> <gcc> <iproute> <iproute-tc>",
    "    sudo pacman -S --needed gcc iproute2 ": "pacman <-S> <--needed> <--noconfirm> <gcc> <iproute2>",
    "qoslab: missing on this machine: gcc": None,
}
RECORDS = 'printf "%s" "${0##*/}"; printf " <%s>" "$@"; echo'


def steps() -> list[str]:
    """Return the steps of the build for other systems, as shell lines."""
    lines = re.sub(r"^#.*\n", "", ELSEWHERE.read_text(), flags=re.MULTILINE).replace("\\\n", "")
    return re.findall("^RUN (.*)$", lines, re.MULTILINE)


def run_build_step(folder: Path, step: str, qoslab: str) -> subprocess.CompletedProcess[str]:
    """Run a step with package managers that record their calls; a script replaces the clone's `qoslab`."""
    programs = {"bin/dnf": RECORDS, "bin/pacman": RECORDS, "qoslab": qoslab}
    for name, script in programs.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    path = f"{folder / 'bin'}:/usr/bin:/bin"
    step = step.replace("/tmp/said", str(folder / "said"))
    return subprocess.run(["sh", "-c", step], cwd=folder, env={"PATH": path}, capture_output=True, text=True)


@pytest.mark.parametrize(("line", "called"), LAST_LINES.items())
def test_other_distributions_use_the_last_command_of_the_bootstrap(
    tmp_path: Path, line: str, called: str | None
) -> None:
    for status in (0, 2):
        done = run_build_step(tmp_path, steps()[1], f"echo '{line}' >&2; exit {status}")
        typed = status == 2 and called is not None
        assert (done.returncode == 0) == typed and ((called or "-") in done.stdout.splitlines()) == typed


@pytest.mark.parametrize(("status", "passes"), [(0, True), (1, True), (2, False), (3, False)])
def test_clone_runs_an_experiment_on_other_distributions(tmp_path: Path, status: int, passes: bool) -> None:
    done = run_build_step(tmp_path, steps()[2], f"{RECORDS}; exit {status}")
    assert (done.returncode == 0) == passes
    program, run, experiment, *_ = done.stdout.split()
    assert (program, run) == ("qoslab", "<run>") and (TOP / experiment.strip("<>")).is_file()


def test_bootstrap_ends_with_the_command_for_other_distributions() -> None:
    words = re.findall('words="(sudo .*?)[$]', (TOP / "qoslab").read_text())
    assert len(words) == 2 and all(f"'    {each}'*)" in steps()[1] for each in words)


def test_ci_tests_the_image_the_container_and_other_distributions() -> None:
    jobs = YAML(typ="safe").load(TOP / ".github/workflows/image.yml")["jobs"]
    (elsewhere,) = (step["run"] for step in jobs["elsewhere"]["steps"] if "run" in step)
    named = re.findall(r"tests/image/\S+", elsewhere)
    assert len(named) == 2 and all((TOP / name).is_file() for name in named)
    bases = jobs["elsewhere"]["strategy"]["matrix"]["base"]
    assert [re.split("[/:]", base)[2] for base in bases] == ["fedora", "archlinux"]
    run = "\n".join(step["run"] for step in jobs["image"]["steps"] if "run" in step)
    (target,) = re.findall(r"--target (\S+)", run)
    assert target in STAGES and "./qoslab doctor" in run


def test_image_name_of_an_owner_with_capital_letters_is_lowercased(tmp_path: Path) -> None:
    """Run the step like on a forge; Podman refuses such names."""
    jobs = YAML(typ="safe").load(TOP / ".github/workflows/image.yml")["jobs"]
    (step,) = (step for step in jobs["image"]["steps"] if "podman push" in step.get("run", ""))
    given = {"github.repository": "Acme/QoSLab", "github.ref_name": "v1.0", "github.actor": "me"}
    given["secrets.GITHUB_TOKEN"] = "word"
    variables = {
        name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: given[found[1]], text) for name, text in step["env"].items()
    }
    # the word is read, as by Podman; otherwise SIGPIPE would end the shell that writes it
    (tmp_path / "podman").write_text(f"#!/bin/bash\n{RECORDS}; [ $1 = push ] || echo $(cat)\n")
    (tmp_path / "podman").chmod(0o755)
    own = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_REPOSITORY": given["github.repository"]}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]], env=own | variables, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "podman <login> <ghcr.io> <--username> <me> <--password-stdin>",
        "word",
        "podman <push> <qoslab> <ghcr.io/acme/qoslab:v1.0>",
    ], done.stderr


def test_short_run_passes_with_values_out_of_tolerance() -> None:
    """Shorten a run: the tolerances are those of the whole experiment."""
    steps = [
        step["run"]
        for name in ("image", "wheels")
        for job in YAML(typ="safe").load(TOP / f".github/workflows/{name}.yml")["jobs"].values()
        for step in job["steps"]
        if "--duration" in step.get("run", "")
    ]
    assert len(steps) == 4 and all(each.rstrip().endswith("|| [ $? -eq 1 ]") for each in steps)
