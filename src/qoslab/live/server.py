"""HTTP server for a watched run on loopback: a page for a browser, OpenMetrics for monitoring.

The path of the page contains an unguessable word, since other users of the machine can reach loopback too. OpenMetrics,
which a scraper has to find, shows rates and names and is open to them. Requests with another host name are refused, so
that a page from another site whose name resolves to 127.0.0.1 cannot read anything (DNS rebinding). Connections of
other users to the page are closed, so that they cannot use up its connections; those to OpenMetrics have a limited
time.
"""

from __future__ import annotations

import errno
import hmac
import json
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from qoslab import __version__
from qoslab.errors import QoslabError, UserError
from qoslab.live.watched_run import WatchedRun
from qoslab.system.peer import owner_of_peer
from qoslab.system.priority import step_last
from qoslab.system.shipped import shipped_path

ADDRESS = "127.0.0.1"
POLL_INTERVAL_S = 1.0
FAREWELL_S = 3.0
"""Wait at the end of the run, for a browser that sent a request within this time, in seconds."""
IDLE_S = 15.0
"""Timeout of connections without a request, in seconds."""
MAX_CONNECTIONS = 16
ROOT = 0
"""User id of forwarders, such as the forwarder of a container's ports."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FILES = {
    "": ("live.html", "text/html; charset=utf-8"),
    "live.js": ("live.js", "text/javascript; charset=utf-8"),
    "plotly.js": ("plotly/plotly-basic.min.js", "text/javascript; charset=utf-8"),
    "report.css": ("report.css", "text/css; charset=utf-8"),
}
"""Served files of `reports` with their types, by the end of the path."""


class LiveView:
    """Server that reads a run once a second and shows its progress; a context manager ends it.

    Its threads have the least priority, after the threads that measure.
    """

    def __init__(self, browser: bool = True, port: int = 0, metrics: int | None = None) -> None:
        """Listen on `port` (0: any free port) for the page if `browser`, and on `metrics` for OpenMetrics.

        Raise `UserError` if a port is in use, before a run is created that would be left behind.
        """
        self._run: WatchedRun
        self.lock = threading.Lock()
        """Held while the run is examined."""
        self._stop = threading.Event()
        self._servers: list[ThreadingHTTPServer] = []
        self._threads: list[threading.Thread] = []
        self.word = secrets.token_urlsafe(16)
        self.url = self.metrics_url = ""
        self.error: QoslabError | None = None
        """Reason for the end of the updates."""
        self._asked = -math.inf
        """Time of the page's last request, by the monotonic clock."""
        self._all_informed = threading.Event()
        """Set when the page has received the end of the run."""
        try:
            if browser:
                self.url = f"http://{ADDRESS}:{self._bind(port, '--port', self._page_reply, own=True)}/{self.word}/"
            if metrics is not None:
                bound = self._bind(metrics, "--metrics", self._metrics_reply, own=False)
                self.metrics_url = f"http://{ADDRESS}:{bound}/metrics"
        except BaseException:
            self._close()
            raise

    def serve(self, run: WatchedRun) -> None:
        """Read a run, and answer requests."""
        self._run = run
        self._threads = [threading.Thread(target=self._poll_run, name="live", daemon=True)]
        self._threads += [
            threading.Thread(target=self._accept, args=(each,), name="live-http", daemon=True) for each in self._servers
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._wait_for_last_poll()
        self._stop.set()
        # `shutdown` of a server that was never started would wait for ever.
        for server in self._servers if self._threads else ():
            server.shutdown()
        self._close()

    @property
    def addresses(self) -> list[str]:
        """Return the addresses for a browser and for a scraper."""
        addresses = (("Live", self.url), ("OpenMetrics", self.metrics_url))
        return [f"{what}: {url}" for what, url in addresses if url]

    def _wait_for_last_poll(self) -> None:
        """Wait for a browser that is still polling, so that it receives the end of the run."""
        if time.monotonic() - self._asked < FAREWELL_S:
            self._all_informed.wait(FAREWELL_S)

    def _close(self) -> None:
        for server in self._servers:
            server.server_close()

    def _bind(self, port: int, option: str, reply: Callable[[str], _Reply | None], own: bool) -> int:
        try:
            server = _HttpServer(port, reply, own)
        except OSError as error:
            raise UserError(
                f"{option} {port}: cannot listen: {error.strerror}",
                hint=f"{_BIND_ERRORS.get(error.errno or 0, '')}choose another port, or 0 for any free one",
            ) from error
        self._servers.append(server)
        return server.server_port

    def _accept(self, server: ThreadingHTTPServer) -> None:
        step_last()
        server.serve_forever(poll_interval=0.5)

    def _poll_run(self) -> None:
        step_last()
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                with self.lock:
                    self._run.read_new_data()
            except QoslabError as error:
                self.error = error
                return
            except Exception as error:
                # If a thread ended silently, the page would freeze without a message.
                self.error = QoslabError(
                    f"could not read the run, because of a bug in qoslab: {type(error).__name__}: {error}"
                )
                return
            due = max(due + POLL_INTERVAL_S, time.monotonic())
            self._stop.wait(due - time.monotonic())

    def _page_reply(self, path: str) -> _Reply | None:
        word, _, name = path.removeprefix("/").partition("/")
        if not hmac.compare_digest(word.encode(), self.word.encode()):
            return None
        if name in FILES:
            file, kind = FILES[name]
            return _Reply(kind, _static_file(file))
        if name != "data.json":
            return None
        from qoslab.live.page import page_content  # slow to load

        self._asked = time.monotonic()
        with self.lock:
            content = page_content(self._run)
        message = "" if self.error is None else self.error.message
        if self._run.is_over:
            self._all_informed.set()
        return _Reply("application/json", json.dumps({**content, "error": message}, allow_nan=False).encode())

    def _metrics_reply(self, path: str) -> _Reply | None:
        if path != "/metrics":
            return None
        from qoslab.live.openmetrics import CONTENT_TYPE, metrics_exposition

        with self.lock:
            return _Reply(CONTENT_TYPE, metrics_exposition(self._run))


class _Reply:
    def __init__(self, kind: str, content: bytes) -> None:
        self.headers: Mapping[str, str] = {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}
        self.content = content


_BIND_ERRORS = {errno.EADDRINUSE: "another program uses it; ", errno.EACCES: "ports below 1024 are for root; "}
"""Reasons why a port cannot be opened, by error number of the kernel."""


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, port: int, reply: Callable[[str], _Reply | None], own: bool) -> None:
        self.reply = reply
        self.own = own
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__((ADDRESS, port), _RequestHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Refuse connections of other users to the page, and connections beyond the limit: each has a thread."""
        if (self.own and owner_of_peer(request) not in (os.geteuid(), ROOT)) or not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection; connections to OpenMetrics have a limited time, however slow their requests are."""
        limit = threading.Timer(IDLE_S, self._close_connection, (request,))
        try:
            step_last()
            if not self.own:
                limit.start()
            super().process_request_thread(request, client_address)
        finally:
            limit.cancel()
            self._room.release()

    def _close_connection(self, request: Any) -> None:
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnect."""


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = f"qoslab/{__version__}"
    sys_version = ""
    timeout = IDLE_S
    server: _HttpServer

    def do_GET(self) -> None:
        """Answer a GET request."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return
        reply = self.server.reply(self.path.partition("?")[0])
        if reply is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.content)

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log no requests: their path contains the secret."""


@cache
def _static_file(name: str) -> bytes:
    return shipped_path(f"reports/{name}").read_bytes()
