"""The mends that can be taken back are where the list of them says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mends"))
from mend import DANGERS, Mend  # noqa: E402
from take_back import FAILED, SKIPPED, run  # noqa: E402

from mends import MENDS  # noqa: E402


@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: mend.weakness)
def test_a_mend_can_be_taken_back(mend: Mend) -> None:
    text = (ROOT / mend.path).read_text()
    changed = mend.taken_back(text)
    assert changed != text
    if mend.path.endswith(".py"):
        compile(changed, mend.path, "exec")


@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: mend.weakness)
def test_its_tests_are_there(mend: Mend) -> None:
    """By name: of a whole file nobody would know which of its tests holds the mend."""
    file, _, name = mend.tests.partition("::")
    if file.startswith("tests/"):
        assert f"def {name.partition('[')[0].rpartition('::')[2]}(" in (ROOT / file).read_text()
    else:
        crate, _, name = file.partition(":")
        assert any(f"fn {name}" in each.read_text() for each in (ROOT / "crates" / crate).rglob("*.rs"))


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("def test_it(): pass", 0),
        ("def test_it(): assert False", FAILED),
        ("import pytest\n\ndef test_it(): pytest.skip('not here')", SKIPPED),
        ("import pytest\n\ndef test_it(): pass\n\ndef test_too(): pytest.skip('not here')", 0),
    ],
)
def test_tests_that_are_skipped_have_not_passed(text: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(text + "\n")
    assert run("tests/test_it.py", tmp_path) == status


def test_each_danger_has_mends_against_it() -> None:
    assert {mend.danger for mend in MENDS} == {*DANGERS, ""}
    assert {mend.weakness for mend in MENDS if not mend.danger} == {"a fuzz target is in no check"}
    assert len({mend.weakness for mend in MENDS}) == len(MENDS)
