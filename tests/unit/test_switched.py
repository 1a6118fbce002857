"""One program that has all changes in it: what its text is, and whom the compiler's errors are blamed on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
import switched  # noqa: E402
from switched import Change, refused  # noqa: E402

ON = switched.ON
FILE = "crates/qos-core/src/a.rs"


def change(number: int, genre: str, source: str, at: str, replacement: str = "") -> Change:
    """A change of what stands at `at` in the source."""
    start = len(source[: source.rindex(at)].encode())
    return Change(number, f"{number}", genre, start, start + len(at.encode()), replacement)


@pytest.mark.parametrize(
    ("genre", "source", "at", "replacement", "then"),
    [
        (
            "BinaryOperator",
            "fn f() -> bool { a as u32 + 1 > b }",
            ">",
            "==",
            f"fn f() -> bool {{ (match {ON} {{ 7 => (a as u32 + 1) == (b), _ => a as u32 + 1 > b }}) }}",
        ),
        (
            "BinaryOperator",
            "fn f() { self.a += b; }",
            "+=",
            "-=",
            f"fn f() {{ (match {ON} {{ 7 => (self.a) -= (b), _ => self.a += b }}); }}",
        ),
        (
            "UnaryOperator",
            "fn f() -> bool { !g(a) }",
            "!",
            "",
            f"fn f() -> bool {{ (match {ON} {{ 7 => (g(a)), _ => !g(a) }}) }}",
        ),
        (
            "FnValue",
            "fn f() -> u8 { let a = 1; a }",
            "let a = 1; a",
            "0",
            f"fn f() -> u8 {{if {ON} == 7 {{ return 0; }} let a = 1; a }}",
        ),
        (
            "MatchArmGuard",
            "fn f() { match a { b if c => d, _ => e } }",
            "c",
            "true",
            f"fn f() {{ match a {{ b if (match {ON} {{ 7 => true, _ => c }}) => d, _ => e }} }}",
        ),
        (
            "MatchArm",
            "fn f() { match a { Some(b) => { c }, _ => d } }",
            "Some(b) => { c }",
            "",
            f"fn f() {{ match a {{ Some(b) if {ON} != 7 => {{ c }}, _ => d }} }}",
        ),
        (
            "MatchArm",
            "fn f() { match a { b if c || d => e, _ => g } }",
            "b if c || d => e",
            "",
            f"fn f() {{ match a {{ b if {ON} != 7 && (c || d) => e, _ => g }} }}",
        ),
        (
            "StructField",
            "fn f() -> L { L { b: 3, c: 4, ..d() } }",
            "b: 3",
            "",
            f"fn f() -> L {{ (match {ON} {{ 7 => L {{ c: 4, ..d() }}, _ => L {{ b: 3, c: 4, ..d() }} }}) }}",
        ),
    ],
)
def test_a_change_is_one_of_what_may_stand_there(genre: str, source: str, at: str, replacement: str, then: str) -> None:
    made = switched.switched(source.encode(), [change(7, genre, source, at, replacement)])
    assert made.text.decode() == then
    assert made.without == frozenset()
    assert switched.switched(source.encode(), []).text.decode() == source


def test_changes_inside_each_other_are_all_there() -> None:
    source = "fn f(é: u8) -> bool { é + 1 < 2 }"
    changes = [
        change(1, "FnValue", source, "é + 1 < 2", "true"),
        change(2, "BinaryOperator", source, "<", "=="),
        change(3, "BinaryOperator", source, "<", ">"),
        change(4, "BinaryOperator", source, "+", "*"),
    ]
    made = switched.switched(source.encode(), changes)
    inner = f"(match {ON} {{ 4 => (é) * (1), _ => é + 1 }})"
    outer = f"(match {ON} {{ 2 => (é + 1) == (2), 3 => (é + 1) > (2), _ => {inner} < 2 }})"
    assert made.text.decode() == f"fn f(é: u8) -> bool {{if {ON} == 1 {{ return true; }} {outer} }}"


def test_what_is_not_found_is_left_to_others() -> None:
    source = "fn f() { g!(a < b) }"
    made = switched.switched(source.encode(), [change(7, "BinaryOperator", source, "<", "==")])
    assert made.without == {7} and made.text.decode() == source


def test_offsets_are_those_of_bytes() -> None:
    source = "// é\nfn é() { a < b }\n"
    span = {"start": {"line": 2, "column": 12}, "end": {"line": 2, "column": 13}}
    entry = {"file": FILE, "name": "n", "genre": "BinaryOperator", "replacement": ">", "span": span}
    (found,) = switched.listed(json.dumps([entry]), {FILE: source.encode()})[FILE]
    assert source.encode()[found.start : found.end] == b"<"


class TestRefused:
    SOURCE = "fn f() -> bool { a < b }"

    def made(self) -> switched.Switched:
        first = change(1, "FnValue", self.SOURCE, "a < b", "Default::default()")
        second = change(2, "BinaryOperator", self.SOURCE, "<", "==")
        return switched.switched(self.SOURCE.encode(), [first, second])

    def blamed(self, at: str, code: str, left: frozenset[int] = frozenset((1, 2))) -> tuple[set[int], set[int]]:
        made = self.made()
        span = {"file_name": FILE, "byte_start": made.text.index(at.encode()), "is_primary": True}
        found = refused([{"level": "error", "code": {"code": code}, "spans": [span]}], {FILE: made}, left)
        return set(found.in_itself), set(found.here)

    def test_what_is_wrong_in_itself_says_nothing(self) -> None:
        assert self.blamed("Default::default", "E0277") == ({1}, set())
        assert self.blamed("(a) ==", "E0369") == ({2}, set())

    def test_where_only_constants_are_nothing_is_switched(self) -> None:
        assert self.blamed("crate::switch::on() == 1", "E0015") == (set(), {1})
        assert self.blamed("crate::switch::on() {", "E0015") == (set(), {2})

    def test_what_is_wrong_around_changes_is_blamed_on_those_that_are_left(self) -> None:
        assert self.blamed("a < b", "E0308") == (set(), {2})
        assert self.blamed("a < b", "E0308", frozenset((1,))) == (set(), {1})
        assert self.blamed("a < b", "E0308", frozenset()) == (set(), set())

    def test_an_arm_that_is_needed_is_blamed_for_the_whole(self) -> None:
        source = "fn f() { match a { Some(b) => c, None => d } }"
        made = switched.switched(source.encode(), [change(7, "MatchArm", source, "None => d")])
        span = {"file_name": FILE, "byte_start": made.text.index(b"a {"), "is_primary": True}
        found = refused([{"level": "error", "code": {"code": "E0004"}, "spans": [span]}], {FILE: made}, frozenset((7,)))
        assert found.here == {7}

    def test_warnings_are_no_errors(self) -> None:
        found = refused([{"level": "warning", "spans": []}], {FILE: self.made()}, frozenset((1, 2)))
        assert not found.in_itself | found.here
