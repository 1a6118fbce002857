"""Relays and servers on loopback that misbehave like networks, slow devices and hostile routers."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self


class MisbehavingRelay:
    """Relay as a context manager. `port` accepts connections and relays them to `target`."""

    def __init__(
        self,
        target: int,
        *,
        delay_s: float = 0.0,
        asked_s: float = 0.0,
        piece: int | None = None,
        pause_s: float = 0.0,
    ) -> None:
        """Start the relay.

        Requests arrive `asked_s` later; answers `delay_s`, in pieces of so many bytes with pauses between them.
        """
        self._target = target
        self._delay_s = delay_s
        self._asked_s = asked_s
        self._piece = piece
        self._pause_s = pause_s
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread that still waits at the descriptor could accept the connections of the next socket with the same
        # number.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        self._flows.set()
        self.cut()

    def cut(self) -> None:
        """End every open connection."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def stall(self) -> None:
        """Relay nothing from now on, while connections stay open."""
        self._flows.clear()

    def flow(self) -> None:
        """Relay everything again."""
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self.connections += 1
            self._sockets += [client, server]
            for source, sink, answers in ((client, server, False), (server, client, True)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._carry, args=(source, sink, answers), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        come: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._deliver, args=(come, sink, answers), daemon=True).start()
        data = b"."
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            come.put((time.monotonic(), data))

    def _deliver(self, come: queue.SimpleQueue[tuple[float, bytes]], sink: socket.socket, answers: bool) -> None:
        delay_s = self._delay_s if answers else self._asked_s
        with contextlib.suppress(OSError):
            while True:
                came, data = come.get()
                time.sleep(max(0.0, came + delay_s - time.monotonic()))
                if not data:
                    break
                step = self._piece if answers and self._piece else len(data)
                for at in range(0, len(data), step):
                    self._flows.wait()
                    sink.sendall(data[at : at + step])
                    if answers:
                        time.sleep(self._pause_s)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def telnet_server(serve: Callable[[socket.socket], object]) -> Iterator[int]:
    """Return the port of a server that answers each client like this, in a separate thread."""

    def take() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    def talk(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            serve(client)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=take, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
