"""Agent's server: answers requests, starts programs and forwards their output.

Input and output are frames: two lengths of four bytes, a JSON head, raw bytes. A request has `id` and `op`, and its
reply has the same `id` and `ok`; events have none. The operations are the methods `op_…`.
"""

# pathlib and similar modules take longer to import than everything else here; some hosts are slow.
# ruff: noqa: PTH108, PTH118, PTH123

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import IO, Any

from qoslab.run.real.agent.child import Child, end_with_parent, monotonic_ns
from qoslab.run.real.agent.host_facts import collect_facts, probe_cable
from qoslab.run.real.agent.kernel import AgentRefusedError
from qoslab.run.real.agent.lateness import LatenessWatch
from qoslab.run.real.agent.lock import lock_holder
from qoslab.run.real.agent.settings import CHUNK, HostSettings, Watchdog, new_namespace, settings_differences

LENGTHS = struct.Struct("!II")
PATIENCE_S = 3.5
"""Time limit without a message from the controller, which sends two a second. The cleanup ends within 5 s in total."""
GRACE_S = 0.5
"""Time between SIGTERM and SIGKILL if the output of the programs is not needed, in seconds."""
COMMAND_S = 20.0
"""Time limit for a command whose end is awaited, in seconds."""
ROOM = 1 << 20
"""Bytes waiting for the controller above which programs and files are not read."""


class Agent:
    """Server for requests, which forwards the output of programs."""

    def __init__(self, who: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="qoslab-agent-")
        self.watchdog = Watchdog(self.folder)
        self.settings = HostSettings(self.watchdog, who)
        self.children: dict[int, Child] = {}
        self.watch = LatenessWatch(self.running_programs)
        self.programs: dict[str, int] = {}
        self.trials: int | None = None
        """Descriptor of the network namespace for trials; None before the first one."""
        self.files: list[tuple[int, IO[bytes], Any]] = []
        self.input = bytearray()
        self.output: collections.deque[bytes] = collections.deque()
        self.waiting = 0
        self.paused = False
        self.over = False
        self.last = 0
        self.heard = time.monotonic()
        self.poll = select.poll()
        self.poll.register(0, select.POLLIN)
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self.wakeup, write_end = socket.socketpair()
        self.wakeup.setblocking(False)
        write_end.setblocking(False)
        self.wakeup_end = write_end  # Keeps the descriptor open.
        signal.set_wakeup_fd(write_end.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self.stop)
        self.poll.register(self.wakeup, select.POLLIN)

    def stop(self, *_: object) -> None:
        """End after the current work."""
        self.over = True

    # Frames

    def push(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Queue a message, which is sent when the channel has room."""
        text = json.dumps(head).encode()
        self.output.append(LENGTHS.pack(len(text), len(body)) + text + body)
        self.waiting += len(self.output[-1])
        self.flush()

    def flush(self) -> None:
        """Write pending messages, and continue with files and pipes when there is room again."""
        while True:
            try:
                while self.output:
                    written = os.write(1, self.output[0][:CHUNK])
                    self.waiting -= written
                    rest = self.output.popleft()[written:]
                    if rest:
                        self.output.appendleft(rest)
            except BlockingIOError:
                pass
            except OSError:
                self.over = True
                return
            if not self.files or self.waiting > ROOM:
                break
            self.send_next_piece()
        if self.output:
            self.poll.register(1, select.POLLOUT)
        else:
            self._forget(1)
        if (self.waiting > ROOM) != self.paused:
            self.paused = not self.paused
            for child in self.children.values():
                for pipe in child.pipes:
                    self._forget(pipe) if self.paused else self.poll.register(pipe, select.POLLIN)

    def _forget(self, descriptor: int) -> None:
        with contextlib.suppress(KeyError):
            self.poll.unregister(descriptor)

    def send_next_piece(self) -> None:
        """Send the next piece of a file, or report its end."""
        number, file, digest = self.files[0]
        data = file.read(CHUNK)
        digest.update(data)
        head: dict[str, Any] = {"file": number}
        if not data:
            self.files.pop(0)
            head = {"id": number, "ok": True, "size": file.tell(), "sha256": digest.hexdigest()}
            file.close()
            os.unlink(file.name)
        text = json.dumps(head).encode()
        self.output.append(LENGTHS.pack(len(text), len(data)) + text + data)
        self.waiting += len(self.output[-1])

    def serve(self) -> None:
        """Serve until the controller disconnects or closes the session."""
        try:
            self.push({"ready": True, "folder": self.folder, **host_facts()})
            while not self.over:
                left = self.heard + PATIENCE_S - time.monotonic()
                if left <= 0:
                    break
                for descriptor, _ in self.poll.poll(left * 1000):
                    if descriptor == 0:
                        self.read_requests()
                    elif descriptor == 1:
                        self.flush()
                    elif descriptor == self.wakeup.fileno():
                        with contextlib.suppress(BlockingIOError):
                            self.wakeup.recv(4096)
                        self.reap()
                    else:
                        self.forward_output(descriptor)
        finally:
            self.end()

    def read_requests(self) -> None:
        """Read available input, and answer complete requests."""
        try:
            data = os.read(0, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.over = True
            return
        self.heard = time.monotonic()
        self.input += data
        while len(self.input) >= LENGTHS.size:
            head_size, body_size = LENGTHS.unpack_from(self.input)
            end = LENGTHS.size + head_size + body_size
            if len(self.input) < end:
                return
            head = json.loads(bytes(self.input[LENGTHS.size : LENGTHS.size + head_size]))
            body = bytes(self.input[LENGTHS.size + head_size : end])
            del self.input[:end]
            self.execute_request(head, body)
            # Time spent on requests is not silence of the controller.
            self.heard = time.monotonic()

    def execute_request(self, head: dict[str, Any], body: bytes) -> None:
        """Execute a request, and send its reply."""
        number, op = head.pop("id", None), head.pop("op")
        if op == "beat":
            return
        try:
            reply = getattr(self, "op_" + op)(number, body, **head)
        except AgentRefusedError as error:
            self.push({"id": number, "ok": False, "error": str(error)})
        except (OSError, ValueError, LookupError, TypeError) as error:
            self.push({"id": number, "ok": False, "error": f"{op}: {type(error).__name__}: {error}"})
        else:
            if reply is not None:
                data = reply.pop("body", b"")
                self.push(dict(reply, id=number, ok=True), data)

    # Programs

    def reap(self) -> None:
        """Report ended programs, after all of their output."""
        for child in list(self.children.values()):
            status = child.poll()
            if status is None:
                continue
            for pipe in list(child.pipes):
                while self.forward_output(pipe):
                    pass
            for pipe in child.pipes:
                # Child processes of the program may hold the pipes open.
                self._forget(pipe)
                os.close(pipe)
            del self.children[child.number]
            self.push({"ended": child.number, "status": status})

    def forward_output(self, descriptor: int) -> bool:
        """Forward the output or the start report of a program; return whether more may be available at once."""
        for child in self.children.values():
            if descriptor in child.pipes:
                try:
                    data = os.read(descriptor, CHUNK)
                except BlockingIOError:
                    return False
                name = child.pipes[descriptor]
                if name == "begin":
                    child.output += data
                    if not data:
                        self.report_start(child)
                elif data:
                    self.push({"output": child.number, "stream": name}, data)
                if not data:
                    self._forget(descriptor)
                    os.close(descriptor)
                    del child.pipes[descriptor]
                return bool(data)
        return False

    def report_start(self, child: Child) -> None:
        """Report the start of a program, or the reason for its failure."""
        try:
            began_ns = child.began_ns()
        except OSError as error:
            text = f"{child.name} could not be started: {error}\n"
            self.push({"output": child.number, "stream": "stderr"}, text.encode())
        else:
            if began_ns is not None:
                self.push({"began": child.number, "at_ns": began_ns})

    def op_start(self, _: int, __: bytes, argv: list[str], stdout: bool, at_ns: int | None = None) -> dict[str, Any]:
        """Start a program, from `op_put` or from the path, at a time of CLOCK_MONOTONIC or now."""
        own = self.programs.get(argv[0])
        path = shutil.which(argv[0]) if own is None else f"/proc/self/fd/{own}"
        if path is None:
            raise AgentRefusedError(f"found no program {argv[0]} in {os.environ['PATH']}")
        self.last += 1
        child = self.children[self.last] = Child(self.last, argv, path, stdout, at_ns or 0, self.folder)
        for pipe in child.pipes:
            if not self.paused:
                self.poll.register(pipe, select.POLLIN)
        return {"process": self.last}

    def op_signal(self, _: int, __: bytes, process: int, number: int) -> dict[str, Any]:
        """Send a signal to a program, also before its start; ignore a program that has ended."""
        if process in self.children:
            self.children[process].signal(number)
        return {}

    def op_put(self, _: int, body: bytes, name: str) -> dict[str, Any]:
        """Receive a program, which is kept in memory only."""
        file = os.memfd_create(name)
        with os.fdopen(os.dup(file), "wb") as writer:
            writer.write(body)
        # A program cannot be executed while it is open for writing.
        self.programs[name] = os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
        os.close(file)
        return {"sha256": hashlib.sha256(body).hexdigest()}

    def op_try(self, _: int, __: bytes, name: str) -> dict[str, Any]:
        """Return why a received program cannot run here, in the words of the failing program; empty if it can."""
        own = self.programs[name]
        try:
            done = subprocess.run(
                [name, "--version"],
                executable=f"/proc/self/fd/{own}",
                pass_fds=(own,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_S,
                check=False,
            )
        except OSError as error:
            return {"why": str(error.strerror)}
        except subprocess.TimeoutExpired:
            return {"why": f"it does not end within {COMMAND_S:.0f} s"}
        output = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        return {"why": "" if done.returncode == 0 else (output or [f"ended with status {done.returncode}"])[0]}

    def op_run(self, _: int, __: bytes, argv: list[str], text: str = "", apart: bool = False) -> dict[str, Any]:
        """Run a command to its end with this input, and return its status and output.

        With `apart` it runs in a network namespace for trials, which is empty at first and ends with the agent.
        """
        fds: tuple[int, ...] = ()
        if apart:
            if self.trials is None:
                self.trials = new_namespace()
            fds = (self.trials,)
            argv = ["nsenter", f"--net=/proc/self/fd/{self.trials}", *argv]
        try:
            done = subprocess.run(
                argv,
                input=text.encode(),
                capture_output=True,
                pass_fds=fds,
                timeout=COMMAND_S,
                check=False,
                preexec_fn=end_with_parent,
            )
        except OSError as error:
            raise AgentRefusedError(f"{argv[0]}: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            raise AgentRefusedError(f"{' '.join(argv)[:200]}: did not end within {COMMAND_S:.0f} s") from None
        output, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
        return {"status": done.returncode, "stdout": output, "stderr": errors}

    def op_versions(self, _: int, __: bytes, names: list[str]) -> dict[str, Any]:
        """Return the first line of each program's version output; null if the program is missing."""
        found: dict[str, str | None] = {}
        for name in names:
            path = shutil.which(name)
            found[name] = None
            if path is not None:
                done = subprocess.run(
                    [path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False
                )
                lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
                found[name] = lines[0] if lines else "unknown"
        return {"versions": found}

    def op_load(self, _: int, __: bytes) -> dict[str, Any]:
        """Return the processor time of all programs so far, in seconds."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ticks = 0
        for child in self.children.values():
            with contextlib.suppress(OSError), open(f"/proc/{child.pid}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return {"seconds": ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")}

    # Files, clock, settings

    def op_read(self, _: int, __: bytes, paths: list[str]) -> dict[str, Any]:
        """Return the content of files, concatenated."""
        parts = []
        for path in paths:
            with open(path, "rb") as file:
                parts.append(file.read())
        return {"body": b"".join(parts)}

    def op_fetch(self, number: int, __: bytes, name: str) -> None:
        """Send a file of the folder in pieces, and remove it; the reply follows the last piece."""
        self.files.append((number, open(os.path.join(self.folder, name), "rb"), hashlib.sha256()))  # noqa: SIM115 (until it is sent)
        self.flush()

    def op_clock(self, _: int, __: bytes) -> dict[str, Any]:
        """Return the wall clock, and its offset and that of CLOCK_BOOTTIME from CLOCK_MONOTONIC."""
        before = monotonic_ns()
        wall, boot = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        steady = (before + monotonic_ns()) // 2
        return {"wall_ns": wall, "wall_ahead_ns": wall - steady, "boot_ahead_ns": boot - steady}

    def op_watched(self, _: int, __: bytes) -> dict[str, Any]:
        """See `Watch.taken`."""
        return {"stalls": self.watch.take_findings()}

    def running_programs(self) -> list[tuple[str, int]]:
        """Return name and process id of each program."""
        return [(child.name, child.pid) for child in list(self.children.values())]

    def op_held(self, _: int, __: bytes, devices: list[str]) -> dict[str, Any]:
        """Return the interfaces that another run has locked, with the owners."""
        return {"held": {device: who for device in devices for who in (lock_holder(device),) if who}}

    def op_facts(self, _: int, __: bytes, programs: list[str], far: list[str]) -> dict[str, Any]:
        """See `host_facts.collect_facts`."""
        return {"facts": collect_facts(programs, far, self.folder)}

    def op_cable(self, _: int, __: bytes, **asked: Any) -> dict[str, Any]:
        """See `host_facts.probe_cable`."""
        return {"cable": probe_cable(**asked)}

    def op_isolate(self, _: int, __: bytes, way: str, interfaces: list[dict[str, Any]]) -> dict[str, Any]:
        """See `Settings.isolate`."""
        self.settings.isolate(way, interfaces)
        return {"failed": self.settings.failed}

    def op_guard(self, _: int, __: bytes, devices: list[str]) -> dict[str, Any]:
        """See `Settings.guard_queues`."""
        self.settings.guard_queues(devices)
        return {"failed": self.settings.failed}

    def op_apply(
        self, _: int, __: bytes, sysctls: dict[str, str], routes: list[dict[str, Any]], far: dict[str, Any]
    ) -> dict[str, Any]:
        """See `Settings.apply`."""
        return {"settings": self.settings.apply(sysctls, routes, far)}

    def op_compare(self, _: int, __: bytes, sysctls: dict[str, str], far: dict[str, Any]) -> dict[str, Any]:
        """See `settings.differences`."""
        return {"differences": settings_differences(sysctls, far)}

    def op_bye(self, number: int, __: bytes) -> None:
        """Restore everything, report failures, and end."""
        self.push({"id": number, "ok": True, "failed": self.end()})
        deadline = time.monotonic() + PATIENCE_S
        while self.output and time.monotonic() < deadline:
            time.sleep(0.01)
            self.flush()
        os._exit(0)

    def end(self) -> list[str]:
        """End all programs, then let the watchdog restore the settings; return its failures."""
        for child in self.children.values():
            child.signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline and any(each.poll() is None for each in self.children.values()):
            time.sleep(0.01)
        for child in self.children.values():
            child.signal(signal.SIGKILL)
            child.wait()
        self.settings.close()
        return self.watchdog.finish()


def host_facts() -> dict[str, Any]:
    """Return the facts of the host."""
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
        boot = file.read().strip()
    return {
        "kernel": " ".join(os.uname()),
        "boot": boot,
        "machine": machine_identity(),
        "root": os.geteuid() == 0,
        "python": sys.version.split()[0],
    }


def machine_identity() -> str:
    """Return the identity of the machine, a hash of the private machine-id(5); empty if unknown."""
    try:
        with open("/etc/machine-id", "rb") as file:
            return hashlib.sha256(b"qoslab " + file.read().strip()).hexdigest()[:12]
    except OSError:
        return ""


def main(who: str) -> None:
    """Serve requests; `who` identifies the owner of the run to other users."""
    # The path of logins without a terminal often lacks root's folders of programs.
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
    Agent(who).serve()
