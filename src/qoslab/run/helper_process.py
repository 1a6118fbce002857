"""Helper process that answers requests in JSON lines, for slow imports and work that must be killable."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from qoslab.run.faults import TransientFault
from qoslab.system.programs import describe_exit

Message = dict[str, Any]


class HelperProcess:
    """Helper process that starts with the object, and ends when its input does.

    Each request has an `id`, which its answer repeats; unsolicited messages have none. The methods may be called from
    any thread.
    """

    def __init__(
        self,
        program: Sequence[str],
        what: str,
        *,
        heard: Callable[[Message], None] = lambda _: None,
        gone: Callable[[TransientFault], None] = lambda _: None,
    ) -> None:
        """`program` is its command; `what` is its description in messages.

        A thread calls `heard` with each unsolicited message, and `gone` when the process has ended.
        """
        self._what, self._heard, self._gone = what, heard, gone
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (lives as long as the process)
        # In its own session: Ctrl-C is for the run, which may still need the process.
        self.process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._lock = threading.Lock()
        self._pending: dict[int, Future[Message]] = {}
        self._last = 0
        self.over = False
        """True if it has ended."""
        self._reader = threading.Thread(target=self._read, name=self._what, daemon=True)
        self._reader.start()

    def ask(self, **request: Any) -> Future[Message]:
        """Send a request and return its future answer; `TransientFault` if the process ends first."""
        future: Future[Message] = Future()
        with self._lock:
            if self.over:
                future.set_exception(self._exit_error())
                return future
            self._last += 1
            self._pending[self._last] = future
            self.send({"id": self._last, **request})
        return future

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message that has no reply."""
        assert self.process.stdin is not None
        # If the process has ended, the reader detects it and fails what is pending.
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def close(self, patience_s: float) -> None:
        """End the process; kill it after `patience_s`."""
        with contextlib.suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self._log.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                message = json.loads(line)
                number = int(message["id"]) if "id" in message else None
            except (ValueError, LookupError, TypeError):
                # A library wrote to the descriptor; pending requests keep waiting.
                continue
            if number is None:
                self._heard(message)
                continue
            with self._lock:
                future = self._pending.pop(number, None)
            if future is not None:
                future.set_result(message)
        self.process.wait()
        with self._lock:
            self.over = True
            pending, self._pending = self._pending, {}
        for future in pending.values():
            future.set_exception(self._exit_error())
        self._gone(self._exit_error())

    def _exit_error(self) -> TransientFault:
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return TransientFault(
            f"{self._what} {describe_exit(self.process.wait())}" + (f": {lines[-1]}" if lines else "")
        )
