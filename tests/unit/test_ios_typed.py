"""Typed lines: each is executed or refused."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from ios_configured import BASE

from ios_commands import typed_line
from ios_strategies import hardware
from levels import example_count
from qoslab.errors import IosError
from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.config import CONFIG, ConfigSession
from qoslab.ios.model.device import Generation
from qoslab.ios.parse import parse_config
from qoslab.ios.running_config import render
from rollback_lines import undo_lines

_FORMS = [each for mode in CONFIG._modes for each in CONFIG.forms(mode)]
_WORDS = sorted({"no", "default"}.union(*(syntax.syntax_names(each.text) for each in _FORMS)))

_VALUES = [
    "0",
    "1",
    "5",
    "46",
    "101",
    "8000",
    "1000000",
    "10.0.0.1",
    "255.255.255.0",
    "Fa0/1",
    "Edge",
    "Data",
    "@",
    "é",
    "²",
]

_lines = st.lists(st.sampled_from(_WORDS) | st.sampled_from(_VALUES), max_size=8).map(" ".join) | st.text(max_size=30)


@given(st.lists(_lines, max_size=12))
@settings(max_examples=example_count(150), deadline=None)
def test_any_typed_line_is_executed_or_refused(lines: list[str]) -> None:
    device = parse_config(BASE, hardware())
    session = ConfigSession(device)
    for line in lines:
        before = device.copy()
        try:
            session.execute(line)
        except CliError:
            assert device == before
        if session.finished:
            break
    if not session.is_collecting_banner:
        assert parse_config(render(device), hardware()) == device


@given(st.randoms(use_true_random=False), st.sampled_from(["classic", "hqf"]))
@settings(max_examples=example_count(60), deadline=None)
def test_every_command_of_the_table_can_be_typed(random: Random, generation: Generation) -> None:
    device = parse_config(BASE, hardware(generation))
    start = render(device)
    session = ConfigSession(device)
    for _ in range(50):
        before = device.copy()
        try:
            session.execute(typed_line(random, session))
        except CliError:
            assert device == before
        if session.finished:
            session = ConfigSession(device)
    printed = render(device)
    again = parse_config(printed, device.hardware)
    assert again == device
    assert render(again) == printed
    undo_lines(start, printed, device.hardware)
    undo_lines(printed, start, device.hardware)


@given(st.text())
@settings(max_examples=example_count(50), deadline=None)
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    try:
        parse_config(text, hardware())
    except IosError as error:
        assert error.message.startswith("configuration:")
