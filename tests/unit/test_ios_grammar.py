"""Command grammar: matching, abbreviations, error columns, help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import levels
from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import (
    AmbiguousError,
    Args,
    CliError,
    CommandTable,
    IncompleteError,
    InvalidInputError,
    RejectedError,
    Token,
)
from qoslab.ios.config import CONFIG
from qoslab.ios.exec import EXEC

WORDS = """
show interfaces ip interface brief route name port description text address mask secondary shape average peak rate
values dscp short shutdown exit clock class class-map
"""
TEXTS = dict.fromkeys(WORDS.split(), "x")
Handler = Callable[[Args], None]


@pytest.fixture(scope="module")
def table() -> CommandTable[Handler]:
    result: CommandTable[Handler] = CommandTable(texts=TEXTS, parents={"inner": "outer", "outer": None})

    def handler(args: Args) -> None: ...

    result.add("exec", "show interfaces [<port:interface>]")(handler)
    result.add("exec", "show ip interface [brief]")(handler)
    result.add("exec", "show ip route")(handler)
    result.add("exec", "show clock", requires={"clock"})(handler)
    result.add("outer", "class-map <name:word>")(handler)
    result.add("outer", "class <name:word>")(handler)
    result.add("outer", "ip route <address:address>")(handler)
    result.add(("outer", "inner"), "exit")(handler)
    result.add("inner", "ip address <address:address> <mask:mask> [secondary]", no=True)(handler)
    result.add("inner", "description <text:line>", no=True)(handler)
    result.add("inner", "shape (average|peak) <rate:8000-64000>", no="shape")(handler)
    result.add("inner", "dscp <values:dscp>+", no=True)(handler)
    result.add("inner", "shutdown", no=True)(handler)
    return result


@pytest.mark.parametrize(
    ("line", "keywords"),
    [
        ("show interfaces", ("show", "interfaces")),
        ("sh int", ("show", "interfaces")),
        ("  SH\t IP  Int  BR ", ("show", "ip", "interface", "brief")),
        ("sh int f0/1", ("show", "interfaces")),
    ],
)
def test_unique_prefixes_match(table: CommandTable[Handler], line: str, keywords: tuple[str, ...]) -> None:
    assert table.parse("exec", line).args.keywords == keywords


@pytest.mark.parametrize(
    "typed", ["FastEthernet0/1", "fa0/1", "F0/1", "fastethernet 0/1", "FAST 0/1", "fastEthernet  0/1"]
)
def test_interface_names_match_in_any_spelling(table: CommandTable[Handler], typed: str) -> None:
    assert table.parse("exec", f"show interfaces {typed}").args.value("port", str) == "FastEthernet0/1"


@pytest.mark.parametrize(
    ("mode", "line", "column"),
    [
        ("exec", "shoe ip route", 0),
        ("exec", "show ip routes", 8),
        ("exec", "show ip route x", 14),
        ("exec", "  show nothing", 7),
        ("exec", "show interfaces t0/1", 16),
        ("exec", "show interfaces fast x", 21),
        ("exec", "show clock", 5),
        ("inner", "ip address 10.0.0.256", 11),
        ("inner", "shape average 7999", 14),
        ("inner", "shape average 64001", 14),
        ("inner", "no shutdown now", 12),
        ("inner", "dscp ef af44", 8),
        ("inner", "ip nothing", 3),
    ],
)
def test_invalid_input_marks_the_first_bad_token(
    table: CommandTable[Handler], mode: str, line: str, column: int
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        table.parse(mode, line)
    assert caught.value.column == column
    assert caught.value.render(3) == [" " * (3 + column) + "^", "% Invalid input detected at '^' marker.", ""]


@pytest.mark.parametrize("line", ["show", "show ip", "show interfaces fast"])
def test_incomplete_command_is_refused(table: CommandTable[Handler], line: str) -> None:
    with pytest.raises(IncompleteError) as caught:
        table.parse("exec", line)
    assert caught.value.render() == ["% Incomplete command.", ""]


def test_ambiguous_command_is_refused(table: CommandTable[Handler]) -> None:
    with pytest.raises(AmbiguousError) as caught:
        table.parse("inner", " sh 1")
    assert caught.value.render() == ['% Ambiguous command:  "sh 1"']
    assert caught.value.column == 1


def test_whole_keyword_is_not_ambiguous(table: CommandTable[Handler]) -> None:
    assert table.parse("outer", "class x").args.keywords == ("class",)
    with pytest.raises(AmbiguousError):
        table.parse("outer", "clas x")


def test_command_of_an_outer_mode_is_found(table: CommandTable[Handler]) -> None:
    assert table.parse("inner", "ip route 10.0.0.1").mode == "outer"
    assert table.parse("inner", "ip add 10.0.0.1 255.0.0.0 sec").mode == "inner"


def test_endless_list_is_refused(table: CommandTable[Handler]) -> None:
    line = "dscp" + 127 * " 1"
    assert len(table.parse("inner", line).args.values("values", int)) == 127
    with pytest.raises(InvalidInputError) as caught:
        table.parse("inner", line + 5000 * " 1")
    assert caught.value.column == len(line) + 1
    assert table.parse("inner", "description" + 5000 * " x").args.value("text", str) == (5000 * " x").strip()


def test_parsed_values_have_their_columns(table: CommandTable[Handler]) -> None:
    args = table.parse("inner", "dscp EF 10 default").args
    assert args.values("values", int) == [46, 10, 0]
    assert args.invalid_repeat("values", 1).column == 8
    assert args.column("dscp") == 0
    assert args.column("nothing") == len("dscp EF 10 default")


def test_rest_of_a_line_keeps_its_blanks(table: CommandTable[Handler]) -> None:
    assert table.parse("inner", "desc  to  R2 | x  ").args.value("text", str) == "to  R2 | x"


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("no ip address", "no"),
        ("no ip address 10.0.0.1 255.0.0.0", "no"),
        ("default ip addr", "default"),
        ("no shape", "no"),
        ("shutdown", "set"),
    ],
)
def test_matched_line_has_the_form_of_its_syntax(table: CommandTable[Handler], line: str, form: str) -> None:
    args = table.parse("inner", line).args
    assert args.form == form
    assert "no" not in args.keywords and "default" not in args.keywords


@pytest.mark.parametrize(
    ("mode", "line", "words"),
    [
        ("exec", "", ["show"]),
        ("exec", "show ", ["interfaces", "ip"]),
        ("exec", "show i", ["interfaces", "ip"]),
        ("exec", "show ip interface ", ["brief", "<cr>"]),
        ("exec", "show interfaces ", ["Interface", "<cr>"]),
        ("inner", "ip address ", ["A.B.C.D"]),
        ("inner", "shape average ", ["<8000-64000>"]),
        ("inner", "no s", ["shape", "shutdown"]),
        ("inner", "dscp ef ", ["<0-63>", "<cr>"]),
    ],
)
def test_help_lists_the_next_words(table: CommandTable[Handler], mode: str, line: str, words: list[str]) -> None:
    assert [item.word for item in table.help(mode, line)] == words


def test_capabilities_enable_commands(table: CommandTable[Handler]) -> None:
    assert table.parse("exec", "show clock", capabilities={"clock"}).args.keywords == ("show", "clock")
    assert "clock" in [item.word for item in table.help("exec", "show ", capabilities={"clock"})]


@pytest.mark.parametrize(
    ("line", "word"), [("sho", "show"), ("show inter", "interfaces"), ("show i", None), ("show ", None), ("x", None)]
)
def test_tab_completes_one_keyword(table: CommandTable[Handler], line: str, word: str | None) -> None:
    assert table.complete("exec", line) == word


def test_command_definition_requires_help() -> None:
    with pytest.raises(ValueError, match="no help text for 'reload'"):
        CommandTable[Handler]().add("exec", "reload")(lambda args: None)


def test_refusal_prints_its_message() -> None:
    assert RejectedError("% one\n% two").render(9) == ["% one", "% two"]


@given(st.text(max_size=40), st.sampled_from(["exec", "inner", "outer"]))
def test_any_text_matches_or_is_refused(table: CommandTable[Handler], line: str, mode: str) -> None:
    for ask in (table.parse, table.help):
        try:
            ask(mode, line)
        except CliError as error:
            assert error.render(5)
    table.complete(mode, line)


EVERY_TABLE = pytest.mark.parametrize("commands", [CONFIG, EXEC], ids=["configuration", "exec"])


@EVERY_TABLE
def test_index_of_first_letters_loses_no_command(commands: CommandTable[Any]) -> None:
    assert commands._modes
    for mode in list(commands._modes)[:: levels.every_nth(9)]:
        given = frozenset(each for form in commands.forms(mode) for each in form.command.requires)
        every = commands._start(mode, given, [])
        assert len(every) == len(commands.forms(mode)) > 0
        words = [(thread, first_words(thread)) for thread in every]
        for first in beginnings(every):
            fit = [thread for thread, firsts in words if any(begins_with(each, first) for each in firsts)]
            assert_all_matches_are_found(fit, commands._start(mode, given, [Token(first, 0)]))


@EVERY_TABLE
def test_index_of_second_letters_loses_no_command(commands: CommandTable[Any]) -> None:
    for mode in list(commands._modes)[:: levels.every_nth(9)]:
        given = frozenset(each for form in commands.forms(mode) for each in form.command.requires)
        every = commands._start(mode, given, [])
        for first in {word for thread in every for word in first_words(thread) if word} | {"x"}:
            second = [(thread, words) for thread in every if (words := second_words(thread, first))]
            for word in {word[:2] for _, words in second for word in words if word} | {"10", "zz"}:
                fit = [thread for thread, words in second if any(begins_with(each, word) for each in words)]
                found = commands._start(mode, given, [Token(first, 0), Token(word, len(first) + 1)])
                assert_all_matches_are_found(fit, found)
                # If the second word is wrong, the first is still known to be right.
                read = {each for thread, _ in second for each in first_words(thread) if begins_with(each, first)}
                assert read <= {each for thread in found for each in first_words(thread)}


@EVERY_TABLE
def test_properties_of_a_syntax_are_known_without_parsing(commands: CommandTable[Any]) -> None:
    for mode in commands._modes:
        for form in commands.forms(mode):
            automaton = form.automaton
            edges = [edge for outgoing in automaton._edges for edge in outgoing]
            symbols = {edge.symbol if isinstance(edge.symbol, str) else edge.symbol.name for edge in edges}
            assert symbols == {*syntax.syntax_names(form.text), *([form.form] if form.form != "set" else [])}
            state = automaton.start
            for word in form.leading_keywords:
                (edge,) = automaton.edges(state)
                assert edge.symbol == word and not automaton.accepts(state)
                state = edge.target
            if len(form.leading_keywords) < 2:
                following = automaton.edges(state)
                certain = len(following) == 1 and isinstance(following[0].symbol, str)
                assert not certain or automaton.accepts(state) or "+" in form.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ip address <address:address>", ("ip", "address")),
        ("ip route vrf", ("ip", "route")),
        ("shape (average|peak) <rate:8000-64000>", ("shape",)),
        ("exit", ("exit",)),
        ("[ip] dscp", ()),
        ("dscp+ x", ()),
        ("dscp + x", ()),
        ("ip dscp+", ("ip",)),
        ("a b|c", ()),
        ("a (b|c)|d", ()),
        ("<text:line>", ()),
    ],
)
def test_leading_words_of_a_syntax_are_found(text: str, words: tuple[str, ...]) -> None:
    assert syntax.leading_keywords(text, 2) == words


def beginnings(threads: list[Any]) -> set[str]:
    """Return abbreviations of each first word, and one that matches none."""
    words = {word for thread in threads for word in first_words(thread) if word} | {"10", "NO", "x"}
    return {word[:length] for word in words for length in range(1, len(word) + 1)}


def begins_with(word: str | None, typed: str) -> bool:
    """Return whether this may be typed for the word; None is an argument."""
    return word is None or word.startswith(typed.lower())


def assert_all_matches_are_found(fit: list[Any], found: list[Any]) -> None:
    """Check that all matching commands are found, in their order."""
    wanted = [id(thread.compiled) for thread in fit]
    known = set(wanted)
    assert [number for thread in found if (number := id(thread.compiled)) in known] == wanted


def first_words(thread: Any) -> list[str | None]:
    """Return the possible first keywords of a command; None for an argument."""
    edges = thread.compiled.automaton.edges(thread.state)
    return [edge.symbol if isinstance(edge.symbol, str) else None for edge in edges]


def second_words(thread: Any, first: str) -> list[str | None]:
    """Return the possible keywords after a first word; None for an argument."""
    automaton = thread.compiled.automaton
    edges = (edge for edge in automaton.edges(thread.state) if edge.symbol == first or not isinstance(edge.symbol, str))
    following = [each.symbol for edge in edges for each in automaton.edges(edge.target)]
    return [each if isinstance(each, str) else None for each in following]
