"""Lock of a host's interface: one run at a time, until its agent ends in any way, independent of its rights.

The lock is a name in the abstract namespace of sockets. It belongs to the network namespace, like the interface, needs
no rights and no file, is common to all users of the machine, and is released by the kernel when its process ends. Any
client that connects receives the name of its owner.
"""

from __future__ import annotations

import contextlib
import socket
import threading

NAME_BYTES = 400
"""Greatest number of bytes of a name."""
PATIENCE_S = 2.0
"""Time limit for the owner of an interface to identify itself, in seconds."""
UNKNOWN = "another run"


def _name(device: str) -> str:
    return f"\0qoslab-agent/{device}"


class InterfaceLock:
    """Lock of one interface, held until this process ends."""

    def __init__(self, device: str, who: str) -> None:
        """Raise `OSError` (`EADDRINUSE`) if it is already locked."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(_name(device))
        self._listener.listen()
        self._name = who.encode()[:NAME_BYTES]
        # The agent may be busy for seconds.
        threading.Thread(target=self._answer_queries, daemon=True).start()

    def _answer_queries(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                asking, _ = self._listener.accept()
                with asking:
                    asking.sendall(self._name)


def lock_holder(device: str) -> str:
    """Return the owner of an interface's lock in this namespace; empty if there is none."""
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
    # The text may come from another user.
    text = "".join(letter for letter in name.decode(errors="replace") if letter.isprintable())
    return text or UNKNOWN
