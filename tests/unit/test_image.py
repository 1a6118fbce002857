"""Contents of the image against the other lists of requirements; `tox -e image` builds and tests it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

from ruamel.yaml import YAML

from qoslab.cli.doctor import TOOLS
from qoslab.virtual_lab.supervision import CONTAINER_HINT

TOP = Path(__file__).parents[2]
STAGES = dict(
    re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", (TOP / "Containerfile").read_text(), re.DOTALL | re.MULTILINE)
)
RECORDS = 'printf "%s" "${0##*/}"; printf " <%s>" "$@"; echo'
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
