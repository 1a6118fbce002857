"""Rules of the repository that no other tool checks."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML
from syntax import statements

TOP = Path(__file__).parents[2]
WIDTH = 120
LONGEST_FUNCTION = 60
"""Number of lines, from `def` to the last one."""


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the repository, as paths in it."""
    done = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=TOP, capture_output=True, check=True)
    found = [Path(name) for name in done.stdout.decode().split("\0") if name]
    assert found, patterns
    return found


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a document that could be wrapped: no tables, no listings, no images and links
    alone.
    """
    listing = False
    for number, line in enumerate((TOP / file).read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            listing = not listing
        elif not listing and not line.startswith(("|", "    ", "![")):
            yield number, line


def test_documents_are_wrapped() -> None:
    assert [f"{file}:{at}" for file in tracked("*.md") for at, line in prose(file) if len(line) > WIDTH] == []


def test_rust_lines_are_wrapped() -> None:
    """Check comments, macros and long texts, which rustfmt leaves unwrapped."""
    files = {file: enumerate((TOP / file).read_text(encoding="utf-8").splitlines(), 1) for file in tracked("*.rs")}
    assert [f"{file}:{at}" for file, lines in files.items() for at, line in lines if len(line) > WIDTH] == []


def test_formatter_is_never_disabled() -> None:
    mark = "# fmt: " + "skip"
    assert [str(file) for file in tracked("*.py") if mark in (TOP / file).read_text(encoding="utf-8")] == []


def too_long(text: str) -> list[str]:
    """Yield the functions and methods of a module that exceed the limit."""
    functions = (each for each in statements(text) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    lines = [(each.name, (each.end_lineno or each.lineno) - each.lineno + 1) for each in functions]
    return [f"{name}: {count} lines" for name, count in lines if count > LONGEST_FUNCTION]


def test_no_function_is_too_long() -> None:
    files = [file for file in tracked("*.py") if file.parts[0] != "tests"]
    found = {file: too_long((TOP / file).read_text(encoding="utf-8")) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def too_long_in_rust(text: str) -> list[str]:
    """Yield the functions of a Rust file, as rustfmt indents them, that exceed the limit."""
    lines = text.splitlines()
    found = []
    for start, line in enumerate(lines):
        function = re.match(r"( *)(?:[a-z()]+ )*fn (\w+)", line)
        # A function on a single line has no closing brace of its own.
        if function and not line.endswith((";", "}")):
            count = lines[start:].index(f"{function[1]}}}") + 1
            found += [f"{function[2]}: {count} lines"] if count > LONGEST_FUNCTION else []
    return found


def test_no_rust_function_is_too_long() -> None:
    found = {file: too_long_in_rust((TOP / file).read_text(encoding="utf-8")) for file in tracked("*.rs")}
    assert {file: names for file, names in found.items() if names} == {}


def tox_lists() -> tuple[list[str], list[str], configparser.ConfigParser]:
    """Return the environments of the short level, those of the long one, and the file."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(TOP / "tox.ini")
    _, _, long = tox["tox"]["labels"].partition("all =")
    return re.split(r",\s*", tox["tox"]["env_list"]), re.split(r",\s*", long.strip()), tox


def test_workflow_runs_the_short_level() -> None:
    short, _, _ = tox_lists()
    workflow = YAML(typ="safe").load(TOP / ".github/workflows/checks.yml")
    assert workflow["jobs"]["tox"]["strategy"]["matrix"]["environment"] == short
    commands = [step["run"] for step in workflow["jobs"]["tox"]["steps"] if "run" in step]
    assert commands[-1] == "./qoslab test -e ${{ matrix.environment }}"


def test_long_level_has_every_test_of_the_short_level() -> None:
    short, long, tox = tox_lists()
    # `long` runs pytest on the folders of `unit` and `lab`, `rust-long` the commands of `rust`.
    assert set(short) - set(long) == {"rust", "unit", "lab"}
    assert "{[testenv:rust]commands}" in tox["testenv:rust-long"]["commands"]
    assert all(f"testenv:{name}" in tox for name in (*short, *long))
    for name in ("unit", "lab"):
        folders = set(re.findall(r"tests/\w+", tox[f"testenv:{name}"]["commands"]))
        assert folders <= set(re.findall(r"tests/\w+", tox["testenv:long"]["commands"]))
    commands = [line for line in tox["testenv:long"]["commands"].splitlines() if "pytest" in line]
    assert commands and all("--all" in line for line in commands)


def test_long_level_runs_each_night() -> None:
    _, long, _ = tox_lists()
    workflow = YAML(typ="safe").load(TOP / ".github/workflows/nightly.yml")
    assert [each["cron"] for each in workflow["on"]["schedule"]]
    each = workflow["jobs"]["tox"]["strategy"]["matrix"]["include"]
    # Lint, types and wheel ran for the change itself.
    assert [entry["environment"] for entry in each] == [name for name in long if name not in ("lint", "types", "wheel")]
    # With `--` and nothing after it, an environment would have no default either.
    given = [entry["arguments"] for entry in each if "arguments" in entry]
    assert given and all(re.match("-- .", arguments) for arguments in given)
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert "./qoslab test -e ${{ matrix.environment }} ${{ matrix.arguments }}" in commands
    assert "cargo check --locked --manifest-path fuzz/Cargo.toml" in commands


def test_nightly_job_installs_third_party_programs() -> None:
    """Check the nightly job: without a third-party program its tests are skipped, and the job still passes."""
    tree = ast.parse((TOP / "tests/interchange/other_tools.py").read_text(encoding="utf-8"))
    assigned = {ast.unparse(each.targets[0]): each.value for each in tree.body if isinstance(each, ast.Assign)}
    packages = ast.literal_eval(assigned["PACKAGES"])
    needed = {package for each in packages.values() for package in each.split(", ")}
    workflow = YAML(typ="safe").load(TOP / ".github/workflows/nightly.yml")
    (entry,) = (
        each
        for each in workflow["jobs"]["tox"]["strategy"]["matrix"]["include"]
        if each["environment"] == "interchange"
    )
    # The bootstrap installs a browser.
    assert set(entry["packages"].split()) == needed - {"chromium"}
    steps = [step for step in workflow["jobs"]["tox"]["steps"] if step.get("if") == "matrix.packages"]
    assert [step["run"].rpartition("--no-install-recommends ")[2] for step in steps] == ["${{ matrix.packages }}"]


def test_image_is_tested_weekly() -> None:
    workflow = YAML(typ="safe").load(TOP / ".github/workflows/image.yml")
    (schedule,) = workflow["on"]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \d", schedule["cron"])
    pushed = [step for step in workflow["jobs"]["image"]["steps"] if "podman push" in step.get("run", "")]
    assert [step["if"] for step in pushed] == ["github.ref_type == 'tag'"]


def test_fuzz_lock_file_has_all_dependencies_of_the_crates() -> None:
    """Compare the lock file of the separate fuzz workspace, which no regular check builds."""
    text = (TOP / "fuzz/Cargo.lock").read_text(encoding="utf-8")
    locked = {each["name"]: each for each in tomllib.loads(text)["package"]}
    for file in sorted((TOP / "crates").glob("*/Cargo.toml")):
        crate = tomllib.loads(file.read_text(encoding="utf-8"))
        if (name := crate["package"]["name"]) not in locked:
            continue
        elsewhere = [each.get("dependencies", {}) for each in crate.get("target", {}).values()]
        needed = crate.get("dependencies", {}) | {name: how for each in elsewhere for name, how in each.items()}
        found = {each.split()[0] for each in locked[name].get("dependencies", [])}
        always = {each for each, how in needed.items() if not (isinstance(how, dict) and how.get("optional"))}
        assert always <= found <= needed.keys(), f"{name}: cargo check --manifest-path fuzz/Cargo.toml fixes it"


def test_every_experiment_is_described() -> None:
    text = (TOP / "README.md").read_text(encoding="utf-8").partition("## The experiments")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    described = [name for row in rows for name in re.findall("`(.*?)`", row)]
    assert sorted(described) == sorted(path.stem for path in (TOP / "experiments").glob("*.yml"))


def test_every_crate_is_described() -> None:
    text = (TOP / "crates/README.md").read_text(encoding="utf-8")
    crates = sorted(path.parent.name for path in (TOP / "crates").glob("*/Cargo.toml"))
    assert [name for name in crates if f"`{name}`" not in text] == []
