"""The catalogue of mistakes on purpose, and the document that says which expectations notice them."""

from __future__ import annotations

import re
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

from qoslab.analysis import reading as analysis  # noqa: E402

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
