"""Catalogue of deliberate mistakes, and the document of the expectations that detect them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP / "tests/proof"))

import prove  # noqa: E402
from analysis_mistakes import ANALYSIS  # noqa: E402
from document import FileProof, details, document  # noqa: E402
from simulation_cache import SCENARIO, SimulationCache  # noqa: E402

from qoslab.analysis import readings as analysis  # noqa: E402
from qoslab.analysis.metric_functions import CellFacts  # noqa: E402
from qoslab.results import Cell, tables  # noqa: E402
from qoslab.results.columns import Columns  # noqa: E402
from qoslab.schema import CellIdentity, load_sweep  # noqa: E402

CATALOGUE = re.findall(
    r'^    (\w+), "([a-z0-9-]+)", "', (TOP / "crates/mistakes/src/lib.rs").read_text(encoding="utf-8"), re.MULTILINE
)
"""Catalogue of the routers' mistakes: the name in sources, and the public name."""


def test_each_router_mistake_has_a_switch() -> None:
    assert len(CATALOGUE) >= 50
    sources = [file.read_text(encoding="utf-8") for file in (TOP / "crates").glob("*/src/**/*.rs")]
    switches = [name for text in sources for name in re.findall(r"mistaken!\((\w+)\)", text)]
    assert set(switches) == {name for name, _ in CATALOGUE}


def test_the_document_has_all_mistakes() -> None:
    page = (TOP / "docs/internals/proof.md").read_text(encoding="utf-8")
    table = page.partition("\n## Mistakes\n")[2].partition("\n## ")[0]
    listed = [name for _, name in CATALOGUE] + [name for name, _, _ in ANALYSIS]
    assert re.findall(r"^\| ([a-z0-9-]+) \| [^|]", table, re.MULTILINE) == listed, "run: tox -e prove"


def test_every_mistake_is_detected() -> None:
    text = (TOP / "docs/internals/proof.md").read_text(encoding="utf-8")
    every = len(CATALOGUE) + len(ANALYSIS)
    assert f"\n{every} of {every} mistakes are detected in " in text, "give an experiment an expectation that fails"


def test_rows_that_no_mistake_violates_are_labelled_in_their_experiments() -> None:
    page = (TOP / "docs/internals/proof.md").read_text(encoding="utf-8")
    text = page.partition("## Rows that detect no mistake\n")[2]
    listed = set()
    for name, rows in re.findall(r"^- (\S+): \d+ of \d+ rows: ((?:.+\n)(?:  .+\n)*)", text, re.MULTILINE):
        for part in rows.replace("\n ", "").split("; "):
            places, metrics = (re.findall(r"`([^`]+)`", each) for each in re.split(r"(?<=`): (?=`)", part))
            listed |= {(name, place, metric) for place in places for metric in metrics}
    labelled = set()
    for path in (TOP / "experiments").glob("*.yml"):
        if "unproven" not in path.read_text(encoding="utf-8"):
            continue
        compare = load_sweep(path).experiment.compare
        expectations = compare.expectations if compare else ()
        labelled |= {(path.stem, each.arm, each.metric) for each in expectations if each.unproven}
    assert labelled == listed


def test_a_mistake_may_violate_a_labelled_row() -> None:
    compare = load_sweep(TOP / "experiments/policing-vs-shaping.yml").experiment.compare
    assert compare is not None and any(each.unproven for each in compare.expectations)
    proven = prove.as_proven(compare)
    assert proven is not None and not any(each.unproven for each in proven.expectations)


@pytest.mark.sample(5)
@pytest.mark.parametrize("patched", [made for _, _, made in ANALYSIS], ids=[name for name, _, _ in ANALYSIS])
def test_a_mistake_of_the_analysis_ends_with_its_block(patched: prove.Patch) -> None:
    compute, warm_up = analysis.metrics_of_cell, analysis.metrics_of_cell.__globals__.get("warm_up")
    with patched():
        pass
    now = analysis.metrics_of_cell
    assert now is compute and now.__globals__.get("warm_up") is warm_up


def test_patched_table_changes_the_metrics() -> None:
    seen: dict[str, Columns] = {}
    made = next(made for name, _, made in ANALYSIS if name == "first-stream-lost")
    with patch.object(analysis, "metrics_of_cell", lambda key, facts: seen.update(facts.tables)), made():
        flows = tables.plain("flows", [{"stream": 1, "bytes": 10}, {"stream": 2, "bytes": 20}])
        analysis.metrics_of_cell((), CellFacts({"flows": flows, "probes": flows}, 1.0, {}, {}))
    assert list(seen["flows"]["stream"]) == [2] and list(seen["probes"]["stream"]) == [1, 2]


SEEN = [("a", "x"), ("a", "y"), ("a (rtt = 1 ms)", "x"), ("a (rtt = 1 ms)", "y"), ("b", "x")]
NOTICED = {"seen": SEEN, "unseen": [], "elsewhere": None}
MISTAKES = [(name, f"{name} is wrong") for name in NOTICED]
PROOF = FileProof("one", "0", 3, 5, 7.4, [*SEEN, ("b", "y")], [("c", "x")], NOTICED, [])


def test_detecting_and_other_rows_are_written() -> None:
    held = {("a", "x"): "within", ("a", "y"): "within", ("b", "x"): "outside"}
    file = prove.File("one", None, (), [], verdicts=held)  # type: ignore[arg-type]
    found = {("a", "x"): "outside", ("a", "y"): "within", ("b", "x"): "within"}
    assert prove.changed(file, found) == [("a", "x")]
    assert prove.changed(file, {("a", "y"): "within"}) == [("a", "x")], "a row that is gone is noticed"
    text, rows = document(MISTAKES, [PROOF], ["other"]), details(MISTAKES, [PROOF])
    assert "1 of 3 mistakes are detected in 1 files.\n\nNot simulated: other." in text
    assert "| one | 3 of 5 | 6 | 5 | 7 s |" in text
    assert "\n- one: 5 of 6 rows: `a`, `a (rtt = 1 ms)`: `x`, `y`; `b`: `x`\n" in rows, "those of one place together"
    assert "**No row detects it**, although it is made in one." in rows and "**No experiment executes it.**" in rows
    assert " | one 5 |\n" in text and text.count(" | **no file** |\n") == 2
    assert text.endswith("\n- one: `c`: `x`\n")
    assert all(len(line) <= 120 for line in [*text.splitlines(), *rows.splitlines()] if not line.startswith("| "))


def test_rows_that_detect_no_mistake_are_listed() -> None:
    def none(proof: FileProof) -> str:
        return document(MISTAKES, [proof]).partition("## Rows that detect no mistake\n")[2].partition("\n## ")[0]

    assert "- one: 1 of 6 rows: `b`: `y`\n" in none(PROOF) and "may detect" not in none(PROOF)
    assert "- more rows of one may detect one: 1 of 3 mistakes were not made" in none(replace(PROOF, spared=["seen"]))
    untried = replace(PROOF, noticed={"seen": SEEN})
    assert "- more rows of one may detect one: 2 of 3 mistakes were not made" in none(untried)
    assert "one" not in none(replace(PROOF, held=SEEN)).partition("violate them.")[2], "all notice one"


def test_saved_proofs_are_read_back() -> None:
    assert FileProof.of(json.loads(json.dumps(asdict(PROOF)))) == PROOF


def test_mistakes_are_tried_separately_and_reported_with_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
    file = prove.File("one", None, (), [], verdicts={("a", "x"): "within"})  # type: ignore[arg-type]
    # A patch is nothing that can be sent to another process.
    mistakes = [prove.Mistake(name, "", lambda: nullcontext()) for name in ("first", "second", "third")]
    makers = {"first": [("a", "x")], "second": [], "third": None}
    monkeypatch.setattr(prove, "noticed", lambda given, mistake, folder: given is not None and makers[mistake.name])
    found = {mistake.name: rows for mistake, rows, _ in prove.each_noticed(file, mistakes)}
    assert found == makers
    assert [(mistake.name, rows) for mistake, rows, _ in prove.each_noticed(file, mistakes[:1])] == [
        ("first", [("a", "x")])
    ]


def test_inputs_of_metrics_are_cached_by_cell() -> None:
    kept: list[tuple[str, ...]] = []
    computing = patch.object(analysis, "metrics_of_cell", lambda *given: len(given))
    with computing, prove.recorded("metrics_of_cell", kept):
        compute: Any = analysis.metrics_of_cell
        assert (compute("a", "b"), compute("c")) == (2, 1)
    assert kept == [("a", "b"), ("c",)]


def test_a_report_of_whole_reads_makes_the_cell_invalid() -> None:
    made = next(made for name, _, made in ANALYSIS if name == "whole-reads")
    rows = [{"bytes": 200_000, "seconds": 2.0, "protocol": protocol} for protocol in ("tcp", "udp")]
    flows = tables.plain("flows", rows)
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
    without, mistaken = SimulationCache.of(program, tmp_path), SimulationCache.of(program, tmp_path, "policer-rate-low")

    def printed(kept: SimulationCache) -> bytes:
        return subprocess.run([kept.script, "run"], cwd=cell.path, input=b"", capture_output=True, check=True).stdout

    assert printed(without) == printed(without) == b"a scenario\n"
    assert printed(mistaken) == b"policer-rate-low\na scenario\n"
    assert len(calls.read_text().splitlines()) == 2
    assert without.reached(cell) == {"policer-rate-low"}
    assert not mistaken.like(without, cell), "something else was printed"
    mistaken.simulate(cell)
    assert len(calls.read_text().splitlines()) == 2
    (cell.path / SCENARIO).write_text("another\n")
    assert printed(without) == b"another\n" and len(calls.read_text().splitlines()) == 3
    program.write_text("#!/bin/sh\nexit 1\n")
    failing, also = SimulationCache.of(program, tmp_path), SimulationCache.of(program, tmp_path, "policer-rate-low")
    failing.simulate(cell)
    also.simulate(cell)
    assert also.like(failing, cell), "another build has nothing, and this one fails"


CAPTURING = """#!/bin/sh
echo run >>{calls}
: >"$2"
[ "$3" = --mistake ] && echo "of a mistake" >captures/server.pcapng || echo packets >captures/server.pcapng
echo figures
"""


def test_captures_are_saved_with_the_output(tmp_path: Path) -> None:
    program, calls = tmp_path / "program", tmp_path / "calls"
    program.write_text(CAPTURING.format(calls=calls))
    program.chmod(0o755)
    cell = Cell(tmp_path / "cell", CellIdentity("arm", (), 1))
    for folder in ("config", "captures"):
        (cell.path / folder).mkdir(parents=True)
    (cell.path / SCENARIO).write_text("a scenario\n")
    capture = cell.path / "captures/server.pcapng"
    without, mistaken, other = (
        SimulationCache.of(program, tmp_path, name) for name in ("", "ring-longer", "ring-shorter")
    )
    for _ in range(2):
        subprocess.run([without.script, "run"], cwd=cell.path, input=b"", capture_output=True, check=True)
        assert capture.read_text() == "packets\n"
        capture.unlink()
    assert len(calls.read_text().splitlines()) == 1
    mistaken.simulate(cell)
    other.simulate(cell)
    assert not capture.exists(), "the cell without the mistake is left as it is"
    assert not mistaken.like(without, cell) and mistaken.like(other, cell), (
        "captures show differences that values do not"
    )
    inodes = {file.stat().st_ino for kept in (mistaken, other) for file in kept.folder.glob("*.captures")}
    assert len(inodes) == 1, "the same is kept once"
