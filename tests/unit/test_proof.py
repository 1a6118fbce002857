"""Catalogue of deliberate mistakes, and the document of the expectations that detect them."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP / "tests/proof"))

import prove  # noqa: E402
from analysis_mistakes import ANALYSIS  # noqa: E402
from document import FileProof, proof_details, proof_document  # noqa: E402

from qoslab.analysis import readings as analysis  # noqa: E402
from qoslab.results import tables  # noqa: E402
from qoslab.schema import load_sweep  # noqa: E402

CATALOGUE = re.findall(
    r'^    (\w+), "([a-z0-9-]+)", "', (TOP / "crates/mistakes/src/lib.rs").read_text(encoding="utf-8"), re.MULTILINE
)
"""Catalogue of the routers' mistakes: the name in sources, and the public name."""


def test_each_router_mistake_has_a_switch() -> None:
    assert len(CATALOGUE) >= 50
    sources = [file.read_text(encoding="utf-8") for file in (TOP / "crates").glob("*/src/**/*.rs")]
    switches = [name for text in sources for name in re.findall(r"mistaken!\((\w+)\)", text)]
    assert set(switches) == {name for name, _ in CATALOGUE}


def test_document_has_all_mistakes() -> None:
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


def test_mistake_may_violate_a_labelled_row() -> None:
    compare = load_sweep(TOP / "experiments/policing-vs-shaping.yml").experiment.compare
    assert compare is not None and any(each.unproven for each in compare.expectations)
    proven = prove.proven_experiment(compare)
    assert proven is not None and not any(each.unproven for each in proven.expectations)


@pytest.mark.sample(5)
@pytest.mark.parametrize("patched", [made for _, _, made in ANALYSIS], ids=[name for name, _, _ in ANALYSIS])
def test_injected_analysis_mistake_ends_with_its_block(patched: prove.Patch) -> None:
    compute, warm_up = analysis.metrics_of_cell, analysis.metrics_of_cell.__globals__.get("warm_up")
    with patched():
        pass
    now = analysis.metrics_of_cell
    assert now is compute and now.__globals__.get("warm_up") is warm_up


SEEN = [("a", "x"), ("a", "y"), ("a (rtt = 1 ms)", "x"), ("a (rtt = 1 ms)", "y"), ("b", "x")]
NOTICED = {"seen": SEEN, "unseen": [], "elsewhere": None}
MISTAKES = [(name, f"{name} is wrong") for name in NOTICED]
PROOF = FileProof("one", "0", 3, 5, 7.4, [*SEEN, ("b", "y")], [("c", "x")], NOTICED, [])


def test_detecting_and_other_rows_are_written() -> None:
    held = {("a", "x"): "within", ("a", "y"): "within", ("b", "x"): "outside"}
    file = prove.ExperimentFile("one", None, (), [], verdicts=held)  # type: ignore[arg-type]
    found = {("a", "x"): "outside", ("a", "y"): "within", ("b", "x"): "within"}
    assert prove.rows_that_fail(file, found) == [("a", "x")]
    assert prove.rows_that_fail(file, {("a", "y"): "within"}) == [("a", "x")], "a row that is gone is noticed"
    text, rows = proof_document(MISTAKES, [PROOF], ["other"]), proof_details(MISTAKES, [PROOF])
    assert "1 of 3 mistakes are detected in 1 files.\n\nNot simulated: other." in text
    assert "| one | 3 of 5 | 6 | 5 | 7 s |" in text
    assert "\n- one: 5 of 6 rows: `a`, `a (rtt = 1 ms)`: `x`, `y`; `b`: `x`\n" in rows, "those of one place together"
    assert "**No row detects it**, although it is made in one." in rows and "**No experiment executes it.**" in rows
    assert " | one 5 |\n" in text and text.count(" | **no file** |\n") == 2
    assert text.endswith("\n- one: `c`: `x`\n")
    assert all(len(line) <= 120 for line in [*text.splitlines(), *rows.splitlines()] if not line.startswith("| "))


def test_rows_that_detect_no_mistake_are_listed() -> None:
    def undetected_section(proof: FileProof) -> str:
        return proof_document(MISTAKES, [proof]).partition("## Rows that detect no mistake\n")[2].partition("\n## ")[0]

    assert "- one: 1 of 6 rows: `b`: `y`\n" in undetected_section(PROOF) and "may detect" not in undetected_section(
        PROOF
    )
    assert "- more rows of one may detect one: 1 of 3 mistakes were not made" in undetected_section(
        replace(PROOF, spared=["seen"])
    )
    untried = replace(PROOF, noticed={"seen": SEEN})
    assert "- more rows of one may detect one: 2 of 3 mistakes were not made" in undetected_section(untried)
    assert "one" not in undetected_section(replace(PROOF, held=SEEN)).partition("violate them.")[2], "all notice one"


def test_report_of_whole_reads_makes_the_cell_invalid() -> None:
    made = next(made for name, _, made in ANALYSIS if name == "whole-reads")
    rows = [{"bytes": 200_000, "seconds": 2.0, "protocol": protocol} for protocol in ("tcp", "udp")]
    flows = tables.plain("flows", rows)
    with patch.object(analysis, "report_mismatches", lambda flows, arriving: iter(flows["bytes"])), made():
        assert list(analysis.report_mismatches(flows, None)) == [131_072, 200_000]  # type: ignore[arg-type]
