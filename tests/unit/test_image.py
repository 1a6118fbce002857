"""What the image is made of, beside what it is said to be elsewhere; `tox -e image` builds and tries it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from qoslab.cli.doctor import TOOLS
from qoslab.lab.supervision import CONTAINER_HINT

TOP = Path(__file__).parents[2]
STAGES = dict(
    re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", (TOP / "Containerfile").read_text(), re.DOTALL | re.MULTILINE)
)
OPTION = re.compile(r"--security-opt[ =](\S+?=\S+?)(?=[\s,;.\"`]|$)", re.MULTILINE)


def packages(stage: str) -> set[str]:
    found = re.search(r"--no-install-recommends((?:\s+\\?\s*[a-z0-9][\w.+-]*)+)", STAGES[stage])
    assert found is not None
    return set(found[1].replace("\\", " ").split())


def test_it_has_what_doctor_asks_for() -> None:
    needed = {package for _, _, package, need in TOOLS if need == "required"}
    assert needed - {"coreutils"} <= packages("product")


def test_what_a_clone_needs_for_its_checks_is_in_the_development_container() -> None:
    """As the bootstrap finds out; what it would install it could not keep."""
    bootstrap = (TOP / "qoslab").read_text()
    missing = bootstrap[bootstrap.index("missing() {") : bootstrap.index("python_packages() {")]
    named = re.findall(r'\|\| echo "\S+ ([^"$]+)"', missing)
    assert len(named) > 10
    there = packages("product") | packages("devcontainer")
    everywhere = {"diffutils", "findutils", "gawk"}  # of Debian, or what stands for it there
    assert {package for each in named for package in each.split()} - {"frr"} - everywhere <= there
    assert {"cargo", "rustc", "rust-clippy", "rustfmt", "python3-venv"} <= packages("devcontainer")


def test_the_build_gets_what_the_wheel_is_made_from_and_no_more() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    sources = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    lines = (TOP / ".containerignore").read_text().splitlines()
    given = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert given == {name.removeprefix("/") for name in sources} | {"pyproject.toml", "requirements"}
    assert "*" in lines


def test_the_development_container_is_a_stage_with_the_options_of_the_hint() -> None:
    text = (TOP / ".devcontainer/devcontainer.json").read_text()
    config = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert config["build"]["target"] in STAGES
    with_docker, with_podman = CONTAINER_HINT.split("with Podman")
    assert {each.partition("=")[2] for each in config["runArgs"]} == set(OPTION.findall(with_docker))
    assert OPTION.findall(with_podman) == ["unmask=ALL"]


def test_the_page_names_the_options_of_the_hint() -> None:
    page = " ".join((TOP / "docs/how-to/container.md").read_text().split())
    assert set(OPTION.findall(page)) == set(OPTION.findall(CONTAINER_HINT))
