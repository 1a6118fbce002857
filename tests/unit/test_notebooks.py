"""Committed notebooks, and the choice of `qoslab notebook` among them."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from qoslab.cli import notebook
from qoslab.errors import UserError

NOTEBOOKS = sorted((Path(__file__).parents[2] / "analysis").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_store_no_output_and_compute_nothing(path: Path) -> None:
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    for cell in cells:
        assert cell["outputs"] == [] and cell["execution_count"] is None
        tree = ast.parse("".join(cell["source"]))
        assert all(isinstance(statement, allowed) for statement in tree.body)
        assert not any(isinstance(node, ast.BinOp | ast.Lambda | ast.comprehension) for node in ast.walk(tree))


def test_each_experiment_has_a_notebook() -> None:
    experiments = (Path(__file__).parents[2] / "experiments").glob("*.yml")
    assert sorted(path.stem for path in NOTEBOOKS) == sorted(path.stem for path in experiments)


def test_each_notebook_is_tested_with_a_simulated_run() -> None:
    reported = set[str]()
    for file in ("notebook/test_simulated_runs.py", "lab/test_notebooks.py"):
        for statement in ast.parse((Path(__file__).parents[1] / file).read_text()).body:
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
            value = getattr(statement, "value", None)
            named = [each.id for each in targets if isinstance(each, ast.Name)]
            if named == ["NOTEBOOK_CASES"] and isinstance(value, ast.Dict):
                reported |= {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}
    assert reported == {path.stem for path in NOTEBOOKS}


def test_single_notebook_needs_no_name_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notebook, "shipped_path", lambda name: tmp_path / "shipped" / name)
    with pytest.raises(UserError, match="there is no notebook"):
        notebook.find_notebook(None)
    (tmp_path / "analysis").mkdir()
    for name in ("a", "b"):
        (tmp_path / "analysis" / f"{name}.ipynb").write_text("{}")
    assert notebook.find_notebook("b") == Path("analysis/b.ipynb")
    assert notebook.find_notebook("experiments/a.yml") == Path("analysis/a.ipynb")
    with pytest.raises(UserError, match="found no name, expected one of a, b"):
        notebook.find_notebook(None)
    with pytest.raises(UserError, match='found "c", expected one of a, b'):
        notebook.find_notebook("c")
    (tmp_path / "analysis" / "a.ipynb").unlink()
    assert notebook.find_notebook(None) == Path("analysis/b.ipynb")


def test_shipped_notebook_is_copied_once_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = notebook.find_notebook("srr-3750")
    assert found == Path("analysis/srr-3750.ipynb")
    assert found.read_bytes() == next(path for path in NOTEBOOKS if path.stem == "srr-3750").read_bytes()
    found.write_text("mine")
    assert notebook.find_notebook("srr-3750").read_text() == "mine"
