"""Project folders of `qoslab init`."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import ansible_runner
import pytest

from qoslab.cli import main
from qoslab.cli.init import _project_files
from qoslab.run.devices.ansible.playbooks import AnsibleSession
from qoslab.system.shipped import shipped_path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "deep" / "mine"
    assert main(["init", str(folder)]) == 0
    monkeypatch.chdir(folder)
    return folder


PUBLISHED = [("policed", 1923000, "within", "as predicted"), ("shaped", 1916000, "within", "as predicted")]


def published_values(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in ("arm", "published", "verdict", "reproduction")) for row in found["comparison"]]


def test_experiment_of_init_passes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "first-policy", "--lab", "simulated", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] and published_values(found) == PUBLISHED
    assert (project / "runs/first-policy/latest/report.html").is_file()
    shown: dict[str, object] = {}
    for cell in json.loads((project / "analysis/first-policy.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), shown)
    assert str(shown["run"]).startswith("A policer and a shaper of 2 Mb/s, run ")


def test_project_needs_no_file_outside_its_folder(project: Path) -> None:
    assert [path.name for path in project.parent.iterdir()] == ["mine"]
    made = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}
    assert {".gitignore", ".gitlab-ci.yml", ".github/workflows/qos.yml", "README.md"} <= made
    assert {"reports/README.md", "reports/published/first-policy.csv"} <= made
    assert {"experiments/first-policy.yml", "analysis/first-policy.ipynb", "inventory/hardware.example.yml"} <= made


@pytest.mark.long
def test_report_shows_values_next_to_published_ones(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "first-policy", "--lab", "simulated", "--json"]) == 0
    assert published_values(json.loads(capsys.readouterr().out)) == PUBLISHED
    page = (project / "runs/first-policy/latest/report.html").read_text()
    assert "qoslab&#39;s own virtual lab" in page or "qoslab's own virtual lab" in page
    file = project / "reports/published/first-policy.csv"
    file.write_text(file.read_text().replace("1916000", "1700000"))
    assert main(["run", "first-policy", "--lab", "simulated", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparison"]
    assert [row["reproduction"] for row in rows] == ["as predicted", "not reproduced"]


def test_playbooks_of_a_folder_are_not_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a playbook into an experiment folder: the folder is data, a playbook is a program."""
    played: list[dict[str, Any]] = []
    monkeypatch.setattr(ansible_runner, "run", lambda **given: played.append(given))
    (project / "playbooks").mkdir()
    (project / "playbooks/session.yml").write_text("- hosts: localhost\n  tasks: [{command: touch PWNED}]\n")
    with AnsibleSession(project / "inventory/mine.yml", before=project / "before") as session:
        session.start()
        assert session._thread is not None
        session._thread.join(30)
    (given,) = played
    assert Path(given["project_dir"]) == shipped_path("playbooks") != (project / "playbooks").resolve()
    assert given["envvars"]["ANSIBLE_ROLES_PATH"] == str(shipped_path("playbooks") / "roles")


def test_existing_files_are_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    assert main(["init", str(mine)]) == 0  # an empty folder is accepted
    before = {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()}
    assert main(["init", str(mine)]) == 2
    assert "found a folder that is not empty, expected none" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()} == before
    file = tmp_path / "file"
    file.touch()
    assert main(["init", str(file)]) == 2
    assert "found a file, expected none" in capsys.readouterr().err


@pytest.mark.parametrize("named", [".", "link", "../mine"])
def test_empty_folder_is_accepted_under_any_of_its_names(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (tmp_path / "link").symlink_to(mine)
    monkeypatch.chdir(tmp_path if named == "link" else mine)
    assert main(["init", named]) == 0
    assert sorted(path.name for path in mine.iterdir()) == sorted({name.split("/")[0] for name, _ in _project_files()})
    assert all((mine / name).is_file() for name, _ in _project_files())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "mine"]


@pytest.mark.parametrize("number", [1, 5])
def test_empty_folder_stays_empty_if_init_fails(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rename, moved = Path.rename, iter(range(number))

    def fail_to_rename(self: Path, target: Path) -> Path:
        if self.parent.name.startswith(".draft.") and next(moved, None) is None:
            raise OSError(errno.ENOSPC, "full")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_to_rename)
    assert main(["init", "."]) == 2
    assert ".: cannot be written, the disk is full" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_created_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "/proc/nobody/mine"]) == 2
    assert "/proc/nobody/mine: cannot be written: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
