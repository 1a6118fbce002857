"""Telnet protocol, byte by byte according to RFC 854."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qoslab.system.telnet import DO, DONT, ECHO, IAC, SB, SE, SUPPRESS_GO_AHEAD, WILL, WONT, TelnetConnection

TERMINAL_TYPE = 24


def test_telnet_server_announces_echo_once() -> None:
    server = TelnetConnection.server()
    assert server.initial_options() == bytes((IAC, WILL, ECHO, IAC, WILL, SUPPRESS_GO_AHEAD))
    assert server.receive(bytes((IAC, DO, ECHO, IAC, DO, SUPPRESS_GO_AHEAD))) == (b"", b"")
    # A client that wants its own echo gets it.
    assert server.receive(bytes((IAC, DONT, ECHO))) == (b"", bytes((IAC, WONT, ECHO)))
    assert server.receive(bytes((IAC, DONT, ECHO))) == (b"", b"")


def test_unknown_telnet_option_is_refused() -> None:
    client = TelnetConnection.client()
    proposed = bytes((IAC, WILL, ECHO, IAC, DO, TERMINAL_TYPE, IAC, WILL, TERMINAL_TYPE))
    refused = bytes((IAC, WONT, TERMINAL_TYPE, IAC, DONT, TERMINAL_TYPE))
    assert client.receive(proposed) == (b"", bytes((IAC, DO, ECHO)) + refused)


def test_option_parameters_and_commands_are_not_text() -> None:
    data = b"a" + bytes((IAC, SB, TERMINAL_TYPE, 1, IAC, SE)) + b"b" + bytes((IAC, 241)) + b"c"
    assert TelnetConnection.client().receive(data) == (b"abc", b"")


def test_line_ends_and_byte_255_are_decoded() -> None:
    client = TelnetConnection.client()
    assert client.send(b"show version\r") == b"show version\r\0"
    assert client.send(b"\r\n\xff") == b"\r\n\xff\xff"
    assert client.receive(b"a\r\0b\r\n\xff\xff") == (b"a\rb\r\n\xff", b"")


@given(st.binary(max_size=40), st.lists(st.integers(1, 5), max_size=40))
def test_text_arrives_unchanged_in_any_fragments(text: bytes, cuts: list[int]) -> None:
    # A single line feed is no end of line on this connection.
    text = text.replace(b"\n", b"").replace(b"\r\0", b"\r")
    sent = TelnetConnection.client().send(text)
    server, arrived = TelnetConnection.server(), b""
    for cut in cuts:
        arrived += server.receive(sent[:cut])[0]
        sent = sent[cut:]
    assert arrived + server.receive(sent)[0] == text
