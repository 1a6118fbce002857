"""Catalogue of deliberate mistakes, and the document of the expectations that detect them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP / "tests/proof"))

from analysis_mistakes import ANALYSIS  # noqa: E402

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
