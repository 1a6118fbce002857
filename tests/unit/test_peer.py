"""Owner of a connection over the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from qoslab.system import peer
from qoslab.system.peer import is_own_peer, open_own_listener, owner_of_peer


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends of a connection: caller and called."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        caller = stack.enter_context(socket.create_connection(listener.getsockname()))
        yield caller, stack.enter_context(listener.accept()[0])


def test_peer_is_the_user_of_the_connecting_process(pair: tuple[socket.socket, socket.socket]) -> None:
    caller, called = pair
    assert owner_of_peer(called) == os.geteuid() and owner_of_peer(caller) == os.geteuid()
    assert is_own_peer(called)
    caller.close()
    # The kernel owns the rest of a closed connection.
    assert owner_of_peer(called) in (None, 0, os.geteuid())


def test_connection_of_another_user_is_recognised(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert not is_own_peer(pair[1])
    monkeypatch.undo()
    monkeypatch.setattr(peer, "_supports_queries", lambda: False)
    assert is_own_peer(pair[1])
    monkeypatch.setattr(peer, "TABLE", peer.TABLE.with_name("no-such-table"))
    assert not is_own_peer(pair[1])
    assert "cannot determine the owner of a connection" in capfd.readouterr().err


CALLS = """
import os, socket, sys
os.setuid(65534)
held = []
for number in range(2050):
    held.append(socket.socket())
    held[-1].settimeout(10)
    try:
        held[-1].connect(("127.0.0.1", int(sys.argv[1])))
    except ConnectionResetError:
        pass
    if number < 2000:
        held.pop().close()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user as well")
def test_connections_of_another_user_are_skipped() -> None:
    with open_own_listener("127.0.0.1", 0) as listener:
        command = [sys.executable, "-I", "-c", CALLS, str(listener.getsockname()[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"\n"
            with socket.create_connection(listener.getsockname()) as mine:
                accepted = None
                # Each call closes some hundred other connections, and then lets its process do something else.
                for _ in range(20):
                    with suppress(BlockingIOError):
                        accepted = listener.accept()[0]
                        break
                assert accepted is not None
                with accepted:
                    assert accepted.getpeername() == mine.getsockname()
            process.communicate()
