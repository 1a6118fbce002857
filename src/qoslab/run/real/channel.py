"""SSH connection to the agent of a host: requests and replies, output of programs, check of the connection."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import shlex
import struct
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import InvalidStateError as FutureError
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any, BinaryIO

from qoslab.errors import DeviceError, MachineError
from qoslab.run.devices.ansible_inventory import HostAccess
from qoslab.run.faults import TransientFault
from qoslab.run.real.agent import agent_source
from qoslab.system.openssh import host_key_options, identity_options
from qoslab.system.programs import describe_exit

LENGTHS = struct.Struct("!II")
BEAT_S = 0.5
"""Interval of messages to the agent, in seconds; see `PATIENCE_S` there."""
KEEPALIVE_OPTIONS = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=4")
"""Options of ssh for a silent connection, which is lost after 4 s."""
START_S = 30.0
"""Time limit to log in and to start the agent, in seconds."""
REPLY_S = 60.0
"""Time limit of any request, in seconds; moving a NIC into a namespace takes longest."""
LOGIN_LIMIT = ("-o", f"ConnectTimeout={START_S:.0f}")
"""Option of ssh for a host that accepts the connection and sends nothing: ssh ends even if the run was killed."""
END_S = 5.0
MAX_HEAD_BYTES = 1 << 24
MAX_BODY_BYTES = 1 << 26
"""Greatest size of the body of one message, in bytes; an agent sends files in pieces of 64 KiB."""
MAX_EARLY_BYTES = 1 << 24
"""Greatest size of output from programs that are not yet known here, in bytes."""
HOST_KEY_ERROR = "Host key verification failed."
"""Last message of ssh if the host's key is unknown or has changed."""
BOOT = "import sys; exec(compile(sys.stdin.buffer.read({size}), 'qoslab-agent', 'exec'))"


_CONNECTING_LOGINS: set[subprocess.Popen[bytes]] = set()
"""Logins in progress; see `_end_logins`."""


@atexit.register
def _end_logins() -> None:
    """End the logins in progress: Ctrl-C waits for no thread, and without an agent nothing has to be restored."""
    for process in list(_CONNECTING_LOGINS):
        process.kill()


class HostLostFault(TransientFault):
    """Host that is no longer reachable."""


@dataclass
class ProgramOutput:
    """Destination of a program's output, and its status."""

    stdout: BinaryIO | None
    stderr: BinaryIO
    ended: threading.Event
    status: int | None = None
    began_ns: int | None = None
    """Start time by the host's CLOCK_MONOTONIC."""

    def write(self, stream: str, data: bytes) -> None:
        """Append data to one of the files."""
        file = self.stdout if stream == "stdout" else self.stderr
        if file is not None:
            file.write(data)

    def end(self, status: int) -> None:
        """Record the end of the program, after all of its output."""
        for file in (self.stdout, self.stderr):
            if file is not None:
                file.close()
        self.status = status
        self.ended.set()


class AgentChannel:
    """Connection to an agent, which starts with the object and restores the host when the connection ends (`close`).

    All methods may be called from any thread. They raise `HostLostFault` if the connection is lost, `DeviceError` if an
    agent cannot run there at all.
    """

    def __init__(self, name: str, access: HostAccess, who: str) -> None:
        """`name` is the host's name for people; `who` identifies the owner of the run to other users."""
        self.name = name
        text = agent_source(who)
        python = [*access.become, access.python, "-I", "-S", "-c", BOOT.format(size=len(text))]
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (lives as long as the connection)
        try:
            # In its own session: Ctrl-C is for the run, which ends the host's programs in order.
            self._process = subprocess.Popen(
                [*ssh_command(access), shlex.join(python)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as error:
            raise MachineError(f"ssh cannot be started: {error}") from error
        self._lock = threading.Lock()
        self._pending: dict[int, Future[tuple[dict[str, Any], bytes]]] = {}
        self._files: dict[int, tuple[BinaryIO, Any]] = {}
        self._outputs: dict[int, ProgramOutput] = {}
        self._early: dict[int, list[tuple[dict[str, Any], bytes]]] = {}
        """Messages of programs that are not yet known here: another thread handles the reply to their start."""
        self._early_bytes = 0
        self._last = 0
        self._closed = threading.Event()
        self.lost = ""
        """Reason why the host is unreachable; empty while it is reachable."""
        self._ready: Future[dict[str, Any]] = Future()
        threading.Thread(target=self._read, name=f"host {name}", daemon=True).start()
        # In a thread: a host that reads nothing would block the run for ever.
        threading.Thread(target=self._write, args=(text,), name=f"agent for {name}", daemon=True).start()
        _CONNECTING_LOGINS.add(self._process)
        try:
            self.facts: Mapping[str, Any] = self._ready.result(START_S)
        except FutureTimeoutError:
            self._process.kill()
            self.close()
            raise DeviceError(f"{name} cannot be used: no answer within {START_S:.0f} s") from None
        except HostLostFault as error:
            raise DeviceError(f"{name} cannot be used: {self.lost}", hint=_login_hint(self.lost, access)) from error
        finally:
            if not self._ready.done():
                self._process.kill()
            _CONNECTING_LOGINS.discard(self._process)
        threading.Thread(target=self._send_heartbeats, name=f"beat {name}", daemon=True).start()

    # Requests

    def ask(self, op: str, body: bytes = b"", *, timeout_s: float = REPLY_S, **keys: Any) -> dict[str, Any]:
        """Return the agent's reply. Raise `MachineError` if it refuses, in the host's words."""
        return self._wait(self._send(op, body, **keys), op, timeout_s)[0]

    def read(self, *paths: str) -> bytes:
        """Return the content of files, concatenated."""
        return self._wait(self._send("read", paths=list(paths)), "read", REPLY_S)[1]

    def start(
        self, argv: list[str], stdout: BinaryIO | None, stderr: BinaryIO, at_ns: int | None = None
    ) -> tuple[int, ProgramOutput]:
        """Start a program at a time of the host's CLOCK_MONOTONIC; its output files are closed at its end."""
        output = ProgramOutput(stdout, stderr, threading.Event())
        number = self.ask("start", argv=argv, stdout=stdout is not None, at_ns=at_ns)["process"]
        with self._lock:
            self._outputs[number] = output
            for head, body in self._early.pop(number, []):
                self._early_bytes -= len(body) + LENGTHS.size
                self._handle_program_output(output, head, body)
        return number, output

    def fetch(self, name: str, to: BinaryIO, timeout_s: float) -> None:
        """Copy a file of the agent's folder, complete. Raise `HostLostFault` if other bytes arrive."""
        digest = hashlib.sha256()
        future = self._send("fetch", name=name, file=(to, digest))
        reply, _ = self._wait(future, "fetch", timeout_s)
        to.flush()
        if (reply["size"], reply["sha256"]) != (to.tell(), digest.hexdigest()):
            raise HostLostFault(f"{self.name}: {name} arrived damaged")

    def give_up(self, reason: str) -> None:
        """Disconnect at once, regardless of the current work; the agent then restores everything.

        `reason` becomes the value of `lost`.
        """
        self._fail(reason)
        self._close()

    def close(self) -> list[str]:
        """Let the agent restore everything and disconnect; return settings that it could not restore."""
        if self._closed.is_set():
            return []
        failed: list[str] = []
        try:
            if not self.lost and self._ready.done():
                failed = list(self.ask("bye", timeout_s=END_S + REPLY_S)["failed"])
        except (HostLostFault, MachineError) as error:
            failed = [error.message]
        self._closed.set()
        self._close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return failed

    # Connection

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _send(
        self, op: str, body: bytes = b"", file: tuple[BinaryIO, Any] | None = None, **keys: Any
    ) -> Future[tuple[dict[str, Any], bytes]]:
        future: Future[tuple[dict[str, Any], bytes]] = Future()
        with self._lock:
            if self.lost:
                future.set_exception(HostLostFault(f"{self.name} is out of reach: {self.lost}"))
                return future
            self._last += 1
            self._pending[self._last] = future
            if file is not None:
                self._files[self._last] = file
            self._write(_frame_message({"id": self._last, "op": op, **keys}, body))
        return future

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        # If the connection is lost, the reader detects it and fails what is pending.
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def _wait(
        self, future: Future[tuple[dict[str, Any], bytes]], op: str, timeout_s: float
    ) -> tuple[dict[str, Any], bytes]:
        try:
            reply, body = future.result(timeout_s)
        except FutureTimeoutError as error:
            raise HostLostFault(f"{self.name} did not answer within {timeout_s:.0f} s ({op})") from error
        if not reply.get("ok"):
            raise MachineError(f"{self.name}: {reply.get('error', 'a reply without a result')}")
        return reply, body

    def _send_heartbeats(self) -> None:
        while not self._closed.wait(BEAT_S) and not self.lost:
            with self._lock:
                self._write(_frame_message({"op": "beat"}))

    def _read(self) -> None:
        assert self._process.stdout is not None
        stream = self._process.stdout
        reason = ""
        try:
            while lengths := stream.read(LENGTHS.size):
                head_size, body_size = LENGTHS.unpack(lengths)
                if head_size > MAX_HEAD_BYTES or body_size > MAX_BODY_BYTES:
                    raise ValueError(f"a message of {head_size + body_size} bytes, expected at most {MAX_BODY_BYTES}")
                head = json.loads(stream.read(head_size))
                self._handle_message(head, stream.read(body_size))
        except (ValueError, struct.error, TypeError, LookupError, AttributeError, RecursionError, FutureError) as error:
            # For example, a login with its own output, or an invalid message.
            reason = f"its output is not the agent's output ({type(error).__name__}: {error})"
            self._process.kill()
        except OSError as error:
            # A local file cannot be written: the disk is full.
            reason = f"its data cannot be saved: {error}"
            self._process.kill()
        status = self._process.wait()
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().splitlines() if line.strip()]
        # The reason precedes this last line.
        words = " ".join(lines[-2:] if lines[-1:] == [HOST_KEY_ERROR] else lines[-1:])
        self._fail(reason or words or f"ssh {describe_exit(status)}")

    def _fail(self, reason: str) -> None:
        with self._lock:
            self.lost = self.lost or reason
            pending, self._pending = self._pending, {}
            outputs, self._outputs = self._outputs, {}
        error = HostLostFault(f"{self.name} is out of reach: {reason}")
        for future in pending.values():
            future.set_exception(error)
        if not self._ready.done():
            self._ready.set_exception(error)
        for output in outputs.values():
            for file in (output.stdout, output.stderr):
                if file is not None:
                    file.close()

    def _handle_message(self, head: dict[str, Any], body: bytes) -> None:
        if not isinstance(head, dict):
            raise TypeError("a message that is not an object")
        if "ready" in head:
            self._ready.set_result(head)
            return
        for event, value in (("ended", "status"), ("began", "at_ns")):
            if event in head:
                head[value] = int(head[value])
        if "output" in head and head["stream"] not in ("stdout", "stderr"):
            raise ValueError(f'the stream "{head["stream"]}"')
        with self._lock:
            if "file" in head:
                file, digest = self._files[head["file"]]
                file.write(body)
                digest.update(body)
                return
            number = head.get("output", head.get("began", head.get("ended")))
            if number is not None:
                if number in self._outputs:
                    self._handle_program_output(self._outputs[number], head, body)
                else:
                    self._early_bytes += len(body) + LENGTHS.size
                    if self._early_bytes > MAX_EARLY_BYTES:
                        raise ValueError(f"more than {MAX_EARLY_BYTES} bytes of output from unknown programs")
                    self._early.setdefault(number, []).append((head, body))
                return
            if not isinstance(head["id"], int):
                raise TypeError("a response without a matching request")
            future = self._pending.pop(head["id"], None)
            self._files.pop(head["id"], None)
        if future is not None:
            future.set_result((head, body))

    def _handle_program_output(self, output: ProgramOutput, head: dict[str, Any], body: bytes) -> None:
        if "ended" in head:
            self._outputs.pop(head["ended"], None)
            output.end(head["status"])
        elif "began" in head:
            output.began_ns = head["at_ns"]
        else:
            output.write(head["stream"], body)


def _frame_message(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return LENGTHS.pack(len(text), len(body)) + text + body


def ssh_command(access: HostAccess) -> list[str]:
    """Return the command of the system's ssh, with the user's configuration, agent and jump hosts."""
    command = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none"]
    command += [*KEEPALIVE_OPTIONS, *LOGIN_LIMIT]
    if access.known_hosts is not None:
        command += host_key_options(access.known_hosts)
    if access.key is not None:
        command += identity_options(access.key)
    if access.port is not None:
        command += ["-p", str(access.port)]
    if access.user is not None:
        command += ["-l", access.user]
    return [*command, *access.arguments, "--", access.host]


def _login_hint(lines: str, access: HostAccess) -> str:
    """Return the hint for the last output of ssh, or of the host."""
    if "Permission denied" in lines:
        return "Install your key there (ssh-copy-id), or name it as ansible_ssh_private_key_file."
    if HOST_KEY_ERROR in lines and "has changed" in lines:
        place = access.host if access.port is None else f"[{access.host}]:{access.port}"
        file = "" if access.known_hosts is None else f" -f {shlex.quote(access.known_hosts)}"
        return (
            f"Find out why. If the change is legitimate: ssh-keygen -R {shlex.quote(place)}{file}, and accept the "
            f"new one."
        )
    if HOST_KEY_ERROR in lines:
        return "Compare the host's key (ssh-keyscan prints it), and add it to known_hosts."
    if "not found" in lines or "No such file" in lines:
        return f"The host needs {access.python} (3.8 or later), or name another as ansible_python_interpreter."
    if "sudo" in lines:
        return "Let sudo ask for no password there, or log in as root."
    return "Try the same login by hand: " + shlex.join(ssh_command(access))
