"""The catalogue of mistakes on purpose, and the document that says which expectations notice them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP / "tests/proof"))

import prove  # noqa: E402
from analysis_mistakes import ANALYSIS  # noqa: E402
from document import FileProof, document  # noqa: E402
from kept import SCENARIO, Kept  # noqa: E402

from qoslab.analysis import reading as analysis  # noqa: E402
from qoslab.results import Cell  # noqa: E402
from qoslab.schema import CellIdentity  # noqa: E402

CATALOGUE = re.findall(
    r'^    (\w+), "([a-z0-9-]+)", "', (TOP / "crates/mistakes/src/lib.rs").read_text(encoding="utf-8"), re.MULTILINE
)
"""Of routers: what it is called in sources, and its name."""


def test_each_mistake_of_a_router_has_a_switch() -> None:
    assert len(CATALOGUE) >= 50
    sources = [file.read_text(encoding="utf-8") for file in (TOP / "crates").glob("*/src/**/*.rs")]
    switches = [name for text in sources for name in re.findall(r"mistaken!\((\w+)\)", text)]
    assert set(switches) == {name for name, _ in CATALOGUE}


def test_the_document_has_all_mistakes() -> None:
    headings = re.findall(r"^## ([a-z0-9-]+)$", (TOP / "docs/proof.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = [name for _, name in CATALOGUE] + [name for name, _, _ in ANALYSIS]
    assert headings == listed, "run: tox -e prove"


def test_no_mistake_passes_unnoticed() -> None:
    text = (TOP / "docs/proof.md").read_text(encoding="utf-8")
    every = len(CATALOGUE) + len(ANALYSIS)
    assert f"\n{every} of {every} mistakes are noticed in " in text, "give an experiment an expectation that fails"


@pytest.mark.parametrize("patched", [made for _, _, made in ANALYSIS], ids=[name for name, _, _ in ANALYSIS])
def test_a_mistake_of_the_analysis_ends_with_its_block(patched: prove.Patch) -> None:
    compute, warm_up = analysis.metrics, analysis.metrics.__globals__.get("warm_up")
    with patched():
        pass
    assert analysis.metrics is compute and analysis.metrics.__globals__.get("warm_up") is warm_up


def test_a_table_is_changed_on_its_way_to_the_metrics() -> None:
    seen: dict[str, pd.DataFrame] = {}
    made = next(made for name, _, made in ANALYSIS if name == "first-stream-lost")
    with patch.object(analysis, "metrics", lambda read, *others: seen.update(read)), made():
        flows = pd.DataFrame({"stream": [1, 2], "bytes": [10, 20]})
        analysis.metrics({"flows": flows, "probes": flows})
    assert list(seen["flows"]["stream"]) == [2] and list(seen["probes"]["stream"]) == [1, 2]


def test_what_notices_and_what_does_not_is_written() -> None:
    held = {("a", "x"): "within", ("a", "y"): "within", ("b", "x"): "outside"}
    file = prove.File("one", None, (), [], verdicts=held)  # type: ignore[arg-type]
    assert prove.changed(file, {("a", "x"): "outside", ("a", "y"): "within", ("b", "x"): "within"}) == ["a x"]
    assert prove.changed(file, {("a", "y"): "within"}) == ["a x"], "a row that is gone is noticed"
    noticed = {"seen": ["a x"] * 8, "unseen": [], "elsewhere": None}
    proof = FileProof("one", "0", 3, 5, 7.4, 9, ["b x"], noticed)
    text = document([(name, f"{name} is wrong") for name in noticed], [proof], ["other"])
    assert "1 of 3 mistakes are noticed in 1 files.\n\nNot simulated for this: other." in text
    assert "| one | 3 of 5 | 9 | 7 s |" in text
    assert "- one: 8 of 9 rows: `a x`, `a x`, `a x`, `a x`, `a x`, `a x` and 2 more" in text
    assert "**No row notices**, though it is made in one." in text and "**No experiment comes by it.**" in text
    assert text.endswith("- one: `b x`\n")
    assert all(len(line) <= 120 for line in text.splitlines())


def test_what_metrics_are_computed_from_is_kept_cell_by_cell() -> None:
    kept: list[tuple[str, ...]] = []
    with patch.object(analysis, "metrics", lambda *given: len(given)), prove.recorded("metrics", kept):
        assert (analysis.metrics("a", "b"), analysis.metrics("c")) == (2, 1)
    assert kept == [("a", "b"), ("c",)]


def test_a_report_of_whole_reads_makes_the_cell_invalid() -> None:
    made = next(made for name, _, made in ANALYSIS if name == "whole-reads")
    flows = pd.DataFrame({"bytes": [200_000, 200_000], "seconds": [2.0, 2.0], "protocol": ["tcp", "udp"]})
    with patch.object(analysis, "unlike", lambda flows, arriving: iter(flows["bytes"])), made():
        assert list(analysis.unlike(flows, None)) == [131_072, 200_000]  # type: ignore[arg-type]


SIMULATOR = """#!/bin/sh
echo "$@" >>{calls}
[ "$1" = --version ] && exit
echo policer-rate-low >"$2"
shift 2
[ "$1" = --mistake ] && echo "$2" && shift 2
[ "$1" = run ] && cat "$2"
"""


def test_a_scenario_is_simulated_once_with_each_mistake(tmp_path: Path) -> None:
    program, calls = tmp_path / "program", tmp_path / "calls"
    program.write_text(SIMULATOR.format(calls=calls))
    program.chmod(0o755)
    cell = Cell(tmp_path / "cell", CellIdentity("arm", (), 1))
    (cell.path / "config").mkdir(parents=True)
    (cell.path / SCENARIO).write_text("a scenario\n")
    without, mistaken = Kept.of(program, tmp_path), Kept.of(program, tmp_path, "policer-rate-low")

    def printed(kept: Kept) -> bytes:
        return subprocess.run([kept.script, "run"], cwd=cell.path, input=b"", capture_output=True, check=True).stdout

    assert printed(without) == printed(without) == b"a scenario\n"
    assert printed(mistaken) == b"policer-rate-low\na scenario\n"
    assert len(calls.read_text().splitlines()) == 2
    assert without.reached(cell) == {"policer-rate-low"}
    assert without.result(cell) not in (None, mistaken.result(cell))
    assert len(calls.read_text().splitlines()) == 2
    captured = Kept.of(program, tmp_path, captures=True)
    assert printed(captured) == printed(captured) == b"a scenario\n", "captures are files, so nothing is kept"
    assert len(calls.read_text().splitlines()) == 4 and captured.reached(cell) == {"policer-rate-low"}
    (cell.path / SCENARIO).write_text("another\n")
    assert printed(without) == b"another\n" and len(calls.read_text().splitlines()) == 5
    program.write_text("#!/bin/sh\nexit 1\n")
    assert Kept.of(program, tmp_path).result(cell) is None, "another build has nothing, and this one fails"
