"""Lock of a host's interface: one run at a time, until its agent ends in any way, regardless of its rights.

A name in the abstract namespace of sockets is the lock. It is of the network namespace, as the interface is, needs no
rights and no file, is one for all users of the machine, and the kernel releases it when its process ends. Any client
that connects receives the name of its owner."""

from __future__ import annotations

import contextlib
import socket
import threading

NAME_BYTES = 400
"""Greatest number of bytes of a name."""
PATIENCE_S = 2.0
"""Time limit for the owner of an interface to identify itself."""
UNKNOWN = "another run"


def _name(device: str) -> str:
    return f"\0qoslab-agent/{device}"


class InterfaceLock:
    """One interface, held from now on until this process ends."""

    def __init__(self, device: str, who: str) -> None:
        """`OSError` (`EADDRINUSE`) if somebody has it."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(_name(device))
        self._listener.listen()
        self._name = who.encode()[:NAME_BYTES]
        # The agent may be busy for seconds.
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                asking, _ = self._listener.accept()
                with asking:
                    asking.sendall(self._name)


def holder(device: str) -> str:
    """Return whose run has an interface of this namespace; empty if none has."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(PATIENCE_S)
        try:
            asking.connect(_name(device))
        except ConnectionRefusedError:
            return ""
        except OSError:
            return UNKNOWN
        name = b""
        with contextlib.suppress(OSError):
            while len(name) < NAME_BYTES:
                part = asking.recv(NAME_BYTES)
                if not part:
                    break
                name += part
    # Another user may have said it.
    text = "".join(letter for letter in name.decode(errors="replace") if letter.isprintable())
    return text or UNKNOWN
