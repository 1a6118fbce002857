"""Notebooks show a simulated run like a real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

from qoslab.tc.user_mode_linux import find
from verdicts import newest_run, status_of

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.slow]

ANALYSIS = Path(__file__).parents[2] / "analysis"
NOTEBOOK_CASES = {"hqf-classes": 1, "hqf-fair-queue": 1, "hqf-nested": 1, "wfq-precedence": 0, "ios-and-kernel": 0}
"""Number of graphs of each notebook. All others are in tests/notebook/test_simulated_runs.py."""
WITH_KERNEL = ("ios-and-kernel",)
"""Experiments whose kernel no simulation has."""


@pytest.mark.parametrize("name", NOTEBOOK_CASES)
def test_notebook_shows_a_run(name: str, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    if name in WITH_KERNEL and find() is None:
        pytest.skip("needs the Debian package user-mode-linux or QOSLAB_UML")
    lab = "virtual" if name in WITH_KERNEL else "simulated"
    status, output, errors = run(clean, "run", name, "--lab", lab, "--duration", "12s")
    # A busy machine makes a virtual run invalid, which the notebook also reports.
    assert status == status_of(newest_run(clean)) in ((0, 1, 3) if lab == "virtual" else (0, 1)), output + errors
    monkeypatch.setenv("QOSLAB_RUN", str(clean / "runs" / name / "latest"))
    # The files of its kernel do not belong to the run.
    monkeypatch.delenv("TMPDIR")
    monkeypatch.delenv("QOSLAB_TEST_FOLDER")
    book = nbformat.read(ANALYSIS / f"{name}.ipynb", as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in cells)
    drawn = [output for cell in cells for output in cell.outputs if "application/vnd.plotly.v1+json" in output["data"]]
    assert len(drawn) == NOTEBOOK_CASES[name]
