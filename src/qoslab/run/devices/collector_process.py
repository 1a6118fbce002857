"""The process behind `qoslab.run.devices.collector`: connects with Unicon, parses with Genie.

Requests and replies are JSON objects, one a line, on standard input and output. Each request has an `id`, which its
reply repeats; replies come in the order in which they are ready. It ends when its input does.

    {"id": 1, "op": "connect", "device": "1/R1", "name": "R1", "connection": {…}} -> {"id": 1, "ok": true}
    {"id": 2, "op": "observe", "device": "1/R1", "command": "…"}       -> {…, "raw": "…", "parsed": {…}, "reason": ""}
    {"id": 4, "op": "show", "device": "1/R1", "command": "…"}          -> {…, "raw": "…", "reason": ""}
    {"id": 5, "op": "configure", "device": "1/R1", "lines": ["…"]}     -> {…, "raw": "…"}
    {"id": 3, "op": "parse", "os": "ios", "command": "…", "text": "…"} -> {…, "parsed": null, "reason": "…"}
    {"id": 6, "op": "difference", "before": "…", "after": "…", "volatile": ["…"]} -> {…, "lines": ["+…"]}

`device` is the key of a router, which gets a new session when connected again; `name` is its hostname; `connection` is
a device of a pyATS testbed. A failure is `{"id": 1, "ok": false, "error": {"kind", "message"}}`, where `kind` is
`login`, `unreachable`, `unknown` or `internal`. Answers to show commands have `before_ns` and `after_ns`: the
wall-clock times of sending the command and of receiving the answer.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, TextIO

from qoslab.genie.configuration_diff import configuration_difference
from qoslab.genie.show_parser import IMPORT_LOCK, parse, register
from qoslab.ios.refusals import NO_SUCH_COMMAND
from qoslab.system.priority import lower_priority

PARSE_ONLY_ARGUMENT = "--parse-only"
"""Argument of a process that connects to no router."""
CONNECT_S = 20
"""Time limit of a login."""
COMMAND_S = 60
"""Time limit of a complete answer, unless its testbed grants more."""

_LOGIN_TROUBLE = re.compile(r"credentials|[Aa]uthenticat|[Pp]ermission denied|[Aa]ccess denied|[Bb]ad secrets")
_SPAWN = re.compile(r" to device spawn:.*")
"""Command line in Unicon's messages, which is removed."""
_SILENCE_PATTERN = re.compile(r" last_command: .*\]")
"""Pattern of Unicon's text about a silent device, with the last typed line (possibly a password) and all known
refusals.
"""


class ConnectError(Exception):
    """Failure to connect to a router; `kind` as in the protocol."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class CommandAnswer:
    """Answer of a router with its times: nanoseconds since 1970."""

    raw: str
    before_ns: int
    after_ns: int


class DeviceSession:
    """Command line of one router. Its methods may be called from any thread; one command runs at a time."""

    def __init__(self, name: str, device: Mapping[str, Any]) -> None:
        self._name = name
        self._device = device
        self._lock = threading.Lock()
        self._connection: Any = None

    @property
    def os(self) -> str:
        """The router's operating system, under its pyATS name."""
        return str(self._device["os"])

    @property
    def _command_s(self) -> int:
        settings = self._device["connections"]["cli"].get("settings", {})
        return max(COMMAND_S, int(settings.get("EXEC_TIMEOUT", 0)))

    def connect(self) -> None:
        """Log in, without configuring anything."""
        with self._lock:
            self._login()

    def execute(self, command: str) -> CommandAnswer:
        """Execute a command, with `\n` as line end; log in again if the router has hung up."""
        with self._lock:
            if self._connection is None:
                self._login()
            try:
                return self._ask(command)
            except Exception:
                self._hang_up()
                self._login()
                return self._ask(command)

    def configure(self, lines: list[str]) -> str:
        """Enter configuration lines and return the router's output, for use during a measurement."""
        with self._lock:
            if self._connection is None:
                self._login()
            output = self._connection.configure(lines, timeout=self._command_s, error_pattern=[])
            return str(output).replace("\r", "").strip("\n") + "\n"

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._hang_up()

    def _ask(self, command: str) -> CommandAnswer:
        before = time.time_ns()
        text = self._connection.execute(command, timeout=self._command_s, error_pattern=[])
        after = time.time_ns()
        return CommandAnswer(str(text).replace("\r", "").strip("\n") + "\n", before, after)

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.disconnect()
            except Exception:
                # After any error, the connection is unusable.
                logging.getLogger(__name__).info("%s: could not hang up", self._name, exc_info=True)

    def _login(self) -> None:
        with IMPORT_LOCK:
            from unicon import Connection
        cli = self._device["connections"]["cli"]
        login = self._device["credentials"].get("default", {})
        # ssh asks once: a second try with the same password could only lock the user out.
        command = ["ssh", "-p", str(cli.get("port", 22)), "-o", "NumberOfPasswordPrompts=1"]
        command += ["-o", f"ConnectTimeout={CONNECT_S}", *shlex.split(cli.get("ssh_options", ""))]
        if "username" in login:
            command += ["-l", str(login["username"])]
        command.append(str(cli["ip"]))
        connection = Connection(
            hostname=self._name,
            start=[shlex.join(command)],
            os=self._device["os"],
            credentials=dict(self._device["credentials"]),
            connection_timeout=CONNECT_S,
            log_stdout=False,
            logfile=os.devnull,
            settings={**_wait_settings(str(cli["ip"])), **cli.get("settings", {})},
            **cli.get("arguments", {}),
        )
        try:
            connection.connect()
        except Exception as error:
            text = _SPAWN.sub("", _exception_text(error))
            kind = "login" if _LOGIN_TROUBLE.search(text) else "unreachable"
            raise ConnectError(kind, text) from error
        self._connection = connection


def _wait_settings(host: str) -> dict[str, float]:
    """Return Unicon's wait settings for a host.

    By default, Unicon waits 50 ms for more output after a prompt, and checks the line six times for 20 ms before each
    command. A router on this machine sends an answer in one piece, and the end of its connection is noticed when the
    command is sent.
    """
    try:
        near = ip_address(host).is_loopback
    except ValueError:
        near = False
    return {"EXECUTE_MATCHED_RETRY_SLEEP": 0.01, "CONNECTED_CHECK_COUNT": 0} if near else {}


def _exception_text(error: BaseException | None) -> str:
    """Return the messages of an exception and its causes, the innermost last, each once."""
    texts: list[str] = []
    while error is not None:
        text = _SILENCE_PATTERN.sub("", " ".join(str(error).split()))
        if text and not any(text in other for other in texts):
            texts.append(text)
        error = error.__cause__ or error.__context__
    return ": ".join(texts)


class CollectorServer:
    """Server for requests; connections and commands of different routers run in parallel."""

    def __init__(self, replies: TextIO) -> None:
        self._replies = replies
        self._write = threading.Lock()
        self._sessions: dict[str, DeviceSession] = {}
        self._workers = ThreadPoolExecutor(max_workers=16, thread_name_prefix="observe")

    def serve(self, requests: TextIO) -> None:
        """Serve until the requests end."""
        for line in requests:
            request = json.loads(line)
            if request["op"] == "connect":
                before = self._sessions.get(request["device"])
                if before is not None:
                    self._workers.submit(before.close)
                # Created here, so that a command that follows at once finds it.
                self._sessions[request["device"]] = DeviceSession(request["name"], request["connection"])
            self._workers.submit(self._handle_request, request)
        for session in self._sessions.values():
            session.close()
        self._workers.shutdown()

    def _handle_request(self, request: Mapping[str, Any]) -> None:
        reply: dict[str, Any] = {"id": request["id"], "ok": True}
        try:
            reply |= self._execute(request)
        except ConnectError as error:
            reply |= {"ok": False, "error": {"kind": error.kind, "message": str(error)}}
        except Exception as error:
            reply |= {
                "ok": False,
                "error": {"kind": "internal", "message": f"{type(error).__name__}: {_exception_text(error)}"},
            }
        with self._write:
            self._replies.write(json.dumps(reply) + "\n")
            self._replies.flush()

    def _open_session(self, request: Mapping[str, Any]) -> DeviceSession:
        session = self._sessions.get(request["device"])
        if session is None:
            raise ConnectError("unknown", "it is not a connected router")
        return session

    def _execute(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "connect":
                self._sessions[request["device"]].connect()
                return {}
            case "observe":
                session, command = self._open_session(request), request["command"]
                shown = _answer_entry(session.execute(command))
                if shown["reason"]:
                    return {**shown, "parsed": None}
                found = parse(session.os, command, shown["raw"])
                return {**shown, "parsed": found.parsed, "reason": found.reason}
            case "show":
                return _answer_entry(self._open_session(request).execute(request["command"]))
            case "configure":
                return {"raw": self._open_session(request).configure(request["lines"])}
            case "parse":
                found = parse(request["os"], request["command"], request["text"])
                return {"parsed": found.parsed, "reason": found.reason}
            case "difference":
                return {"lines": configuration_difference(request["before"], request["after"], request["volatile"])}
            case other:
                raise ValueError(f"unknown op {other!r}")


def _answer_entry(answer: CommandAnswer) -> dict[str, Any]:
    refused = NO_SUCH_COMMAND.search(answer.raw)
    reason = f"the router refused the command: {refused[0]}" if refused else ""
    return {"raw": answer.raw, "before_ns": answer.before_ns, "after_ns": answer.after_ns, "reason": reason}


def main() -> None:
    """Serve standard input; other output of libraries goes to standard error."""
    _disable_sync()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    lower_priority()
    register()
    warm = threading.Thread(target=_import_slow_modules, args=(PARSE_ONLY_ARGUMENT in sys.argv,), daemon=True)
    warm.start()
    CollectorServer(replies).serve(sys.stdin)


def _disable_sync() -> None:
    """Disable `os.sync`.

    Unicon flushes all files of the machine to disk with each line that it sends, even while traffic is captured.
    Nothing in this process depends on that.
    """
    os.sync = lambda: None


def _import_slow_modules(parse_only: bool = False) -> None:
    """Import slow modules in advance, and make Genie read its list of parsers unless the process only parses.

    The imported objects live as long as the process: garbage collection during the import and later would take up to a
    third of its time.
    """
    gc.disable()
    try:
        if parse_only:
            # Other output of simulated routers is parsed without Genie, or rarely.
            parse("ios", "show interfaces", "")
            return
        with IMPORT_LOCK:
            import unicon  # noqa: F401
        parse("ios", "show clock", "*10:00:00.000 UTC Mon Jan 6 2025")
    finally:
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    main()
