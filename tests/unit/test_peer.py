"""Whose a connection over the loopback interface is."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from qoslab import peer
from qoslab.peer import is_own, owner_of_peer


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection: who called, who was called."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        caller = stack.enter_context(socket.create_connection(listener.getsockname()))
        yield caller, stack.enter_context(listener.accept()[0])


def test_it_is_whose_process_made_it(pair: tuple[socket.socket, socket.socket]) -> None:
    caller, called = pair
    assert owner_of_peer(called) == os.geteuid() and owner_of_peer(caller) == os.geteuid()
    assert is_own(called)
    caller.close()
    # What is left of a closed connection is the kernel's.
    assert owner_of_peer(called) in (None, 0, os.geteuid())


def test_another_user_s_is_not_ours(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert not is_own(pair[1])
    monkeypatch.undo()
    monkeypatch.setattr(peer, "TABLE", peer.TABLE.with_name("no-such-table"))
    assert not is_own(pair[1])
    assert "cannot determine the owner of a connection" in capfd.readouterr().err
