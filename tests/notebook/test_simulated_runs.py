"""Notebooks on simulated runs.

No kernel is started: the test makes and shows the results of their cells. The others are in
tests/lab/test_notebooks.py.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from plotly.graph_objects import Figure

from qoslab.cli import main
from qoslab.errors import ExitStatus

pytestmark = [pytest.mark.lab, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def sets(**given: str) -> tuple[str, ...]:
    """Return options that set keys of the experiment."""
    return tuple(word for key, value in given.items() for word in ("--set", f"{key}={value}"))


SIZES = (
    "{policer: [static], link: [10 Mb/s], rtt: [50 ms], pir: [1 Mb/s], bucket: [3000 B, 9000 B], connections: [1],"
    " control: [reno], sender: [client], receiver: [server]}"
)
SCENARIOS = (
    "{policer: [dynamic, default], link: [10 Mb/s], rtt: [50 ms], pir: [1 Mb/s], bucket: [15000 B], connections: [1],"
    " control: [cubic], sender: [client], receiver: [server]}"
)
ONE_OF_MORE = ("--only", "pir=1 Mb/s", "--only", "connections=1")
STARTS = {f"arms.{arm}.matrix.time": "[8 s]" for arm in ("start-small", "start-large")}
NOTEBOOK_CASES: dict[str, tuple[int, tuple[str, ...]]] = {
    "atm-cells": (0, ("--duration", "2s")),
    "bucket-truth": (0, ("--duration", "5s")),
    "bufferbloat": (0, ("--duration", "10s")),
    "carrier-policer": (1, ()),
    "cbwfq-classic": (2, ()),
    "dot1q-subinterfaces": (1, ("--duration", "3s")),
    "ipv6-policing": (1, ("--duration", "3s")),
    "overhead-accounting": (0, ("--duration", "3s")),
    "policing-vs-shaping": (6, ("--duration", "5s")),
    "srr-3750": (5, ("--duration", "5s")),
    "tcp-friendly-policer": (5, sets(duration="4 s", **{"arms.size.matrix": SIZES, "arms.grid.matrix": SCENARIOS})),
    "tcp-friendly-policer-more": (3, (*ONE_OF_MORE, *sets(**STARTS))),
    "token-arithmetic": (2, ("--duration", "4s")),
    "tx-ring-limit": (0, ("--only", "ring=1", "--only", "ring=2")),
}
"""Number of graphs of each notebook, and options that shorten the run as far as possible."""


def code_cell_results(name: str) -> list[Any]:
    """Return the results of all code cells."""
    found, names = [], dict[str, Any]()
    for cell in json.loads((ROOT / f"analysis/{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        statements = ast.parse("".join(cell["source"])).body
        last = statements.pop()
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(statements, []), name, "exec"), names)
        found.append(eval(compile(ast.Expression(last.value), name, "eval"), names))
    return found


def test_experiment_without_a_run_is_simulated_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("QOSLAB_RUN", raising=False)
    started: list[list[str]] = []
    monkeypatch.setattr("os.execve", lambda program, words, environment: started.append(words))
    assert main(["init", str(tmp_path / "mine")]) == ExitStatus.WITHIN
    monkeypatch.chdir(tmp_path / "mine")
    for _ in range(2):
        assert main(["notebook", "first-policy", "--no-browser"]) == ExitStatus.WITHIN
    assert capsys.readouterr().err.count("first-policy has no run yet: simulating one first") == 1
    assert len(list(Path("runs/first-policy").glob("*Z*"))) == 1
    assert [words[4] for words in started] == [str(Path("analysis/first-policy.ipynb").absolute())] * 2
    # As the kernel runs it, in the notebook's folder.
    (cells,) = [json.loads(Path(words[4]).read_text(encoding="utf-8"))["cells"] for words in started[:1]]
    monkeypatch.chdir("analysis")
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)


@pytest.mark.long
@pytest.mark.parametrize("name", NOTEBOOK_CASES)
def test_notebook_shows_a_simulated_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, options = NOTEBOOK_CASES[name]
    monkeypatch.chdir(tmp_path)
    status = main(["run", str(ROOT / f"experiments/{name}.yml"), "--lab", "simulated", *options])
    assert status in (ExitStatus.WITHIN, ExitStatus.OUTSIDE)
    monkeypatch.setenv("QOSLAB_RUN", str(tmp_path / "runs" / name / "latest"))
    values = code_cell_results(name)
    assert all((value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)) for value in values)
    assert sum(isinstance(value, Figure) for value in values) == graphs
