"""Reading what others wrote runs no code, reads nothing of theirs or ours, and ends soon, with a finding."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile_files import BASE, ESCAPES, TEMPLATED, experiments
from qoslab.cli import main
from qoslab.errors import ExperimentError
from qoslab.schema import load_experiment

CASES = dict(experiments())
SECONDS, MEMORY = 2.0, 500 * 2**20


def written(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return folder / "e.yml"


@pytest.fixture
def small_machine() -> Iterator[None]:
    """No more memory than `MEMORY` besides what the process has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_the_base_holds(tmp_path: Path) -> None:
    assert load_experiment(written(tmp_path, {"e.yml": BASE})).name == "e"
    files: dict[str, str | bytes] = {
        "e.yml": TEMPLATED,
        "t.j2": "{% include 'sub/u.j2' %}",
        "sub/u.j2": "hostname R9\n",
    }
    assert load_experiment(written(tmp_path, files)).arm("one").configure["R1"].template == "t.j2"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("small_machine")
def test_a_hostile_experiment_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, CASES[name])
    began = time.process_time()
    with pytest.raises(ExperimentError) as raised:
        load_experiment(file)
    # Processor time, which does not depend on what else the machine does.
    assert time.process_time() - began < SECONDS
    assert raised.value.findings or str(file) in raised.value.message
    assert all(finding.file for finding in raised.value.findings)
    assert "root:" not in raised.value.message, "nothing of /etc/passwd is quoted"
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize(
    "command",
    [["validate", "experiments/e.yml"], ["plan", "experiments/e.yml"], ["run", "experiments/e.yml", "--dry-run"]],
)
def test_no_command_runs_code_of_a_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "experiments", {"e.yml": TEMPLATED, "t.j2": ESCAPES["globals of a helper"]})
    assert main(command) == 2
    assert "cycler" in "".join(capfd.readouterr())
    assert not list(tmp_path.rglob("PWNED"))


@pytest.mark.parametrize("what", ["template", "folder of templates", "published", "FIFO"])
def test_links_lead_nowhere_else(tmp_path: Path, what: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "t.j2").write_text("secret of mine\n")
    folder = tmp_path / "folder"
    text = TEMPLATED if what in ("template", "FIFO") else TEMPLATED.replace("t.j2", "sub/t.j2")
    if what == "published":
        text = BASE + "compare: {article: A, published: p.csv}\n"
    file = written(folder, {"e.yml": text})
    match what:
        case "template":
            (folder / "t.j2").symlink_to(secret / "t.j2")
        case "folder of templates":
            (folder / "sub").symlink_to(secret)
        case "published":
            (folder / "p.csv").symlink_to(secret / "t.j2")
        case _:
            os.mkfifo(folder / "t.j2")
    with pytest.raises(ExperimentError) as raised:
        load_experiment(file)
    assert "secret of mine" not in raised.value.message
    assert "expected a file below" in raised.value.message or "no file" in raised.value.message


def test_a_project_has_its_published_figures_beside_its_experiments(tmp_path: Path) -> None:
    text = BASE + "compare: {article: A, published: ../reports/published/p.csv}\n"
    figures = {"reports/published/p.csv": "arm,metric,unit,value,source\n"}
    written(tmp_path, figures)
    assert load_experiment(written(tmp_path / "experiments", {"e.yml": text})).compare is not None
    with pytest.raises(ExperimentError, match="expected a file below"):
        load_experiment(written(tmp_path / "other", {"e.yml": text}))
