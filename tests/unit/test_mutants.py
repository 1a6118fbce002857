"""Small changes that no test notices: what is kept of them, and that those which are accepted are few, with reasons."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
import board as boards  # noqa: E402
import engine  # noqa: E402
import mistakes  # noqa: E402
import outcomes  # noqa: E402
import passes  # noqa: E402
import python_modules  # noqa: E402
import record  # noqa: E402
import tree as tree_of_crates  # noqa: E402
from record import Survivor, Tried  # noqa: E402
from switched import Change  # noqa: E402
from tree import NotTriedError, Tree  # noqa: E402

ACCEPTED_PERCENT = 3
TESTS = ROOT / "crates" / "qos-core" / "tests" / "it"
FILE = record.CRATE / "src" / "router" / "tx_ring.rs"
NAME = "crates/qos-core/src/router/tx_ring.rs"
LINE = "self.used < limit"
CHANGE = "replace < with <= in TxRing<P>::has_room"

CARGO = f"""#!{sys.executable}
# Stands for cargo: the first pass notices one change of three, the second another one.
import pathlib, sys
if sys.argv[1] == "test":
    sys.exit({{status}})
found = pathlib.Path(sys.argv[sys.argv.index("--output") + 1]) / "mutants.out"
found.mkdir(exist_ok=True, parents=True)
quick = "--cargo-arg=--lib" not in sys.argv
noticed = "a" if quick else "b"
asked = [word.removeprefix("--re=^").rstrip("$") for word in sys.argv if word.startswith("--re=")]
(found / "caught.txt").write_text("\\n".join(name for name in asked if name == noticed))
(found / "missed.txt").write_text("\\n".join(name for name in asked if name != noticed))
sys.exit(2)
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record of its own."""
    for name in ("TRIED", "SURVIVORS", "PAGE"):
        monkeypatch.setattr(record, name, tmp_path / name)
    record.PAGE.write_text(f"# Mutants\n\n{record.MARK}\nold\n")
    return tmp_path


def line_of(text: str) -> int:
    return FILE.read_text().splitlines().index(" " * 8 + text) + 1


def entry(**counts: int) -> Tried:
    none = {"caught": 0, "timeout": 0, "unviable": 0, "missed": 0}
    return Tried(NAME, record.digest(FILE), **{**none, **counts}, commit="abc", day="2026-01-02")


def test_accepted_survivors_are_few_and_have_reasons() -> None:
    tried = record.read_tried()
    accepted = [each for each in record.read_survivors() if each.reason]
    assert [each for each in accepted if len(each.reason.split()) < 5] == []
    assert 100 * len(accepted) <= ACCEPTED_PERCENT * sum(entry.compiled for entry in tried.values())


def test_what_lives_in_a_file_that_was_tried_is_accepted() -> None:
    assert [f"{each.file}: {each.change}" for each in record.read_survivors() if not each.reason] == []


def test_every_survivor_is_one_of_a_file_that_was_tried() -> None:
    names = [each.file for each in record.read_survivors()]
    assert {name: names.count(name) for name in names} == {
        name: entry.missed for name, entry in record.read_tried().items() if entry.missed
    }


def test_the_page_is_what_was_recorded() -> None:
    _, _, tables = record.PAGE.read_text().partition(record.MARK + "\n")
    assert tables == record.page(record.read_tried(), record.read_survivors())


@pytest.mark.parametrize("name", passes.SLOW)
def test_slow_tests_are_there(name: str) -> None:
    module, _, test = name.partition("::")
    assert f"fn {test}" in (TESTS / f"{module}.rs").read_text()


def test_a_survivor_is_known_by_the_text_of_its_line() -> None:
    found = Survivor.of(f"{NAME}:{line_of(LINE)}:19: {CHANGE}", FILE)
    assert found == Survivor(NAME, LINE, CHANGE)
    with pytest.raises(ValueError, match="expected FILE:LINE:COLUMN: CHANGE"):
        Survivor.of("nothing", FILE)


def test_a_reason_stays_with_its_change(kept: Path) -> None:
    accepted, other = Survivor(NAME, LINE, CHANGE), Survivor(NAME, 'say("a\\b")', "replace b with c")
    record.keep(entry(caught=8, missed=2, unviable=1), [other, accepted])
    reason = 'A ring of "no" packets cannot be configured. ' + "It is refused with its policy, by \\d. " * 4
    with_reason = record.SURVIVORS.read_text().replace(
        f'change = "{CHANGE}"\n', f"change = \"{CHANGE}\"\nreason = '''{reason}'''\n"
    )
    record.SURVIVORS.write_text(with_reason)
    for _ in range(2):
        record.keep(entry(caught=8, missed=2, unviable=1), [other, accepted])
    assert record.read_survivors() == [other, replace(accepted, reason=reason.strip())]
    assert all(len(line) <= 120 for line in record.SURVIVORS.read_text().splitlines())
    text = record.PAGE.read_text()
    assert "old" not in text
    assert "Of 10 changes that compile, the tests notice 8;\n1 are accepted (10.0 %), 1 are open." in text
    assert "| `qos-core/router/tx_ring.rs` | 10 | 8 | 1 | 1 | 1 | `abc` | 2026-01-02 |" in text
    assert (record.open_below("crates/"), record.open_below("src/")) == (True, False)
    record.keep(entry(caught=10), [])
    assert record.read_survivors() == []


def test_a_file_is_tried_again_when_it_is_another_one() -> None:
    assert engine.stale(FILE, {})
    assert not engine.stale(FILE, {NAME: entry()})
    assert engine.stale(FILE, {NAME: replace(entry(), digest="0")})


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A copy that is worked on by a cargo of ours."""
    cargo = tmp_path / "bin" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text(CARGO.format(status=0))
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(tree_of_crates, "environment", lambda how: dict(os.environ))
    (tmp_path / "tree").mkdir()
    return Tree(tmp_path / "tree")


def test_what_the_quick_pass_misses_is_tried_with_all_tests(tree: Tree, tmp_path: Path) -> None:
    assert tree.one_by_one(FILE, ["a", "b", "c"], tmp_path / "kept", float("inf"))
    assert outcomes.known(tmp_path / "kept") == {"a": "caught", "b": "caught", "c": "missed"}


def test_nothing_is_tried_where_tests_fail_without_a_change(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "bin" / "cargo").write_text(CARGO.format(status=101))
    with pytest.raises(NotTriedError, match="fail without a change"):
        tree.one_by_one(FILE, ["a"], tmp_path / "kept", float("inf"))


def test_a_copy_has_what_the_crates_have_and_no_more(tree: Tree, tmp_path: Path) -> None:
    gone = tmp_path / "tree" / "crates" / "qos-core" / "src" / "gone.rs"
    changed = tmp_path / "tree" / FILE.relative_to(ROOT)
    for file in (gone, changed):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("changed")
    tree.prepare()
    assert not gone.exists()
    assert changed.read_text() == FILE.read_text()
    at = changed.stat().st_mtime_ns
    tree.prepare()
    assert changed.stat().st_mtime_ns == at


@pytest.mark.parametrize(
    ("line", "dead"),
    [
        ("    7 if mistaken!(Low) => ^a / 2^, b", True),
        ("    x if ^x > 1^ && mistaken!(Low) => x - 1, b", True),
        ("    x if x ^== 1^ && mistaken!(Low) => x - 1, b", True),
        ("    x if mistaken!(Low) => f(1, ^2^), b", True),
        ("    a && !(x ^== 0^ && mistaken!(Low))", True),
        ("    a ^&& !^(x == 0 && mistaken!(Low))", False),
        ("    x if mistaken!(Low) => {\n        f(^1^)\n    }\n    y => b", True),
        ("    if mistaken!(Low) { ^a^ } else { b }", True),
        ("    if mistaken!(Low) { a } else { ^b^ }", False),
        ("    x if mistaken!(Low) => a, ^b^", False),
        ("    x if mistaken!(Low) => {\n        f(1)\n    }\n    y => ^b^", False),
        ("    if ^a^ && !mistaken!(Low) { b }", False),
        ("    if a && !mistaken!(Low) { ^b^ }", False),
        ("    if ^a^ && (b && mistaken!(Low) || c) { d }", False),
        ("    ^if mistaken!(Low) { a } else { b }^", False),
    ],
)
def test_what_is_done_by_mistake_alone_is_not_changed(line: str, dead: bool) -> None:
    text = f"fn f() {{\n{line}\n}}\n"
    before, _, _ = text.partition("^")
    place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    names = [f"a.rs:{place}: replace x with y in f"]
    assert list(mistakes.without_effect(names, text.replace("^", ""))) == names * dead


def test_a_change_of_a_python_module_is_its_lines() -> None:
    diff = "# name: survived\n--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2\n"
    assert python_modules.of_diff("a.py", diff) == Survivor("a.py", "return 1", "becomes return 2")


def test_changes_of_a_python_module_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_modules, "COPIES", tmp_path)
    monkeypatch.setattr(python_modules, "survivor", lambda file, key: Survivor(file, key, "becomes"))
    name = "src/qoslab/units.py"
    meta = tmp_path / f"{name}.meta"
    meta.parent.mkdir(parents=True)
    codes = {"killed": 1, "slow": 36, "lives": 0, "no test": 33, "later": None}
    meta.write_text(json.dumps({"exit_code_by_key": codes}))
    entry, lived = python_modules.outcome(meta, "abc")
    assert (entry.file, entry.caught, entry.timeout, entry.unviable, entry.missed) == (name, 1, 1, 0, 2)
    assert lived == [Survivor(name, "lives", "becomes"), Survivor(name, "no test", "becomes")]


@pytest.mark.parametrize(("names", "there"), [([], False), (["qoslab.units.x_f__mutmut_1"], True)])
def test_a_round_of_python_modules_begins_anew(
    names: list[str], there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_modules, "COPIES", tmp_path / "copies")
    monkeypatch.setattr(python_modules, "MUTMUT", ["false"])
    monkeypatch.setattr(sys, "argv", ["python_modules.py", *names])
    python_modules.COPIES.mkdir()
    assert python_modules.main() == 1, "mutmut could not do its work"
    assert python_modules.COPIES.exists() == there


def test_a_mistake_that_is_made_is_a_change() -> None:
    text = "x if x > 1 && mistaken!(Low) => a,\n"
    guard = "a.rs:1:6: replace match guard x > 1 && mistaken!(Low) with"
    names = [f"{guard} true in f", "a.rs:1:12: replace && with || in f", f"{guard} false in f"]
    assert list(mistakes.without_effect(names, text)) == names[2:]


def test_what_has_noticed_a_change_is_asked_before_all_others(tmp_path: Path) -> None:
    """The test `b` fails with changes 1 and 2, `c` with change 3; of the others none does."""
    asked = tmp_path / "asked"
    program = tmp_path / "tests"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$QOS_CORE_CHANGE $*" >> {asked}\n'
        "case $QOS_CORE_CHANGE in 1 | 2) failing=b ;; 3) failing=c ;; *) failing=none ;; esac\n"
        'case "$*" in *--exact) for name; do [ "$name" = $failing ] && fails=1; done ;; *) fails=1 ;; esac\n'
        '[ $failing != none ] && [ "$fails" ] && echo "test a ... ok\ntest $failing ... FAILED" && exit 101\n'
        "exit 0\n"
    )
    program.chmod(0o755)
    board = boards.Board(tmp_path / "tree", {"x.rs": [], "y.rs": []}, {})
    board._programs = [boards.Program(program, ("--quick",), {})]
    (tmp_path / "tree" / "crates" / "qos-core").mkdir(parents=True)
    changes = [Change(number, str(number), "FnValue", 0, 0, "") for number in range(5)]
    found = [board._outcome("x.rs", changes[number]) for number in (1, 2, 3, 4)]
    assert found == ["caught", "caught", "caught", "missed"]
    assert board._outcome("y.rs", changes[1]) == "caught"
    every = "--quick --test-threads=1"
    assert asked.read_text().splitlines() == [
        f"1 {every}",
        f"2 {every} b --exact",
        f"3 {every} b --exact",
        f"3 {every}",
        f"4 {every} c b --exact",
        f"4 {every}",
        f"1 {every}",
    ]
