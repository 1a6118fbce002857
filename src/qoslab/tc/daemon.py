"""Control socket of a router whose data plane is the Linux kernel: `python -m qoslab.tc.daemon SPEC`.

SPEC is a JSON file:

    {"format": 1,
     "router": "R1",
     "control": "/run/qoslab/R1/control.sock",
     "netns": "/proc/1/fd/7",        namespace of the interfaces; null: that of this process
     "guest": false,                 true: the router is a user-mode kernel, connected to these interfaces
     "interfaces": {"eth0": {"mac": "02:00:5e:00:00:01", "line": null}},
     "setup": [["ip", "address", "add", "10.0.0.1/24", "dev", "eth0"]]}

`line` is null, or has the fields of `lab_line.Line`. `setup` are commands that enable forwarding, run in the router's
kernel at the start. No other interfaces are changed.

Requests and replies are those of docs/internals/control-protocol.md, `hello`, `configure`, `config`, `counters`,
`clear` and `shutdown`. A configuration is `{"format": 1, "router": "R1", "commands": [{"line": 3, "words": ["qdisc",
"add", …]}], "classes": null, "shapes_lines": false}`; it is tried in a network namespace of its own, applied as a
difference, read back and compared with the trial, or not applied at all. `classes` are those of an IOS policy by
interface (`qoslab.platforms.kernel_router`), whose commands shape the lines themselves. `config` is null if the
interfaces are not as they were configured.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from qoslab import __version__
from qoslab.errors import DeviceError, ExitStatus, QoslabError
from qoslab.tc.commands.kernel_commands import replace_interfaces
from qoslab.tc.interface_qdiscs import InterfaceQdiscs, RefusedCommandError, Run
from qoslab.tc.lab_line import Line, line_commands, move_below_line
from qoslab.tc.user_mode_linux import Device, UserModeKernel

SPEC_FORMAT = CONFIG_FORMAT = 1
LINE_LIMIT = 4 * 1024 * 1024
"""Bytes of a request."""
COMMAND_TIMEOUT_S = 20.0
FAULTS = (LookupError, TypeError, ValueError, AttributeError, OSError, subprocess.SubprocessError)
"""Errors raised by a request without a valid configuration, or by commands that cannot be run."""


def namespace_runner(netns: str | None) -> Run:
    """Return a function that runs commands of this machine in a network namespace."""
    prefix = [] if netns is None else ["nsenter", f"--net={netns}", "--"]

    def run(argv: Sequence[str], text: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [*prefix, *argv],
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def guest_runner(kernel: UserModeKernel) -> Run:
    """Return a function that runs commands in a user-mode kernel."""

    def run(argv: Sequence[str], text: str) -> tuple[int, str, str]:
        done = kernel.run(argv, input=text, timeout_s=COMMAND_TIMEOUT_S)
        return done.status, done.stdout, done.stderr

    return run


class KernelRouter:
    """The requests of one router."""

    def __init__(
        self, name: str, run: Run, interfaces: Mapping[str, Any], devices: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`devices` are the kernel's names of interfaces of the experiment, where they differ."""
        self._lines = {name: Line(**each["line"]) for name, each in interfaces.items() if each["line"] is not None}
        self._name = name
        self._run = run
        self._devices = {name: devices.get(name, name) for name in interfaces}
        self.qdiscs = InterfaceQdiscs(run, list(self._devices.values()))
        self._config: dict[str, Any] = {"format": CONFIG_FORMAT, "router": name, "commands": []}

    def start(self, setup: Sequence[Sequence[str]]) -> None:
        """Run the commands that enable forwarding, and set the line rates of the interfaces."""
        for argv in setup:
            status, output, errors = self._run(argv, "")
            if status != 0:
                raise DeviceError(f"{self._name}: {' '.join(argv)}: {(errors or output).strip()}")
        self.qdiscs.refuse_foreign()
        self.qdiscs.configure(line_commands(self._lines))

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a request, without `ok`. Raise `QoslabError` if the request fails."""
        operations: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "hello": self._handle_hello,
            "configure": self._configure,
            "config": self._show,
            "counters": self._handle_counters,
            "clear": self._clear,
        }
        operation = operations.get(request.get("op", ""))
        if operation is None:
            raise DeviceError(f"unknown operation {request.get('op')!r}, expected {', '.join(operations)}")
        return operation(request)

    def _handle_hello(self, _: Mapping[str, Any]) -> dict[str, Any]:
        release = self._run(["uname", "-r"], "")[1].strip()
        return {"program": "qoslab.tc", "version": __version__, "router": self._name, "kernel": release}

    def _configure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        config = request["config"]
        if config.get("format") != CONFIG_FORMAT or not isinstance(config.get("commands"), list):
            raise DeviceError(f"found no configuration of tc commands in format {CONFIG_FORMAT}")
        lines = {} if config.get("shapes_lines") else self._lines
        ahead = line_commands(lines)
        with self._with_template_line(config, len(ahead)):
            self.qdiscs.configure([*ahead, *(move_below_line(each, lines) for each in self._device_commands(config))])
        self._config = dict(config)
        return {}

    def try_out(self, config: Mapping[str, Any]) -> None:
        """Try a configuration in a separate network namespace. Raise `DeviceError` for a rejected command."""
        with self._with_template_line(config):
            self.qdiscs.try_out(self._device_commands(config))

    def _device_commands(self, config: Mapping[str, Any]) -> list[list[str]]:
        """Return the commands of a configuration with the names of network devices."""
        return [replace_interfaces(each["words"], self._devices) for each in config["commands"]]

    @contextlib.contextmanager
    def _with_template_line(self, config: Mapping[str, Any], ahead: int = 0) -> Iterator[None]:
        """Name the line and the words of the template in the error about a rejected command.

        The first `ahead` commands are not from the template.
        """
        try:
            yield
        except RefusedCommandError as error:
            if error.index < ahead:
                raise DeviceError(f"{self._name}: {error.message}") from error
            command = config["commands"][error.index - ahead]
            kind = "tc" if config.get("classes") is None else "ios"
            refused = RefusedCommandError(error.index, " ".join(command["words"]), error.errors)
            raise DeviceError(f"{self._name}.{kind} line {command['line']}: {refused.message}") from error

    def _show(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"config": self._config if self.qdiscs.is_as_configured() else None}

    def _handle_counters(self, _: Mapping[str, Any]) -> dict[str, Any]:
        source = self._config.get("counters", QDISCS)
        if source not in READERS:
            raise DeviceError(f"found counters from {source!r}, expected one of {', '.join(READERS)}")
        return READERS[source](self)

    def qdisc_counters(self) -> dict[str, Any]:
        """Return the counters of the kernel's qdiscs, classes and filters."""
        classes: Mapping[str, Any] | None = self._config.get("classes")
        hooks = dict.fromkeys(
            (self._devices[name], each["hook"]) for name, some in (classes or {}).items() for each in some
        )
        # Filters and queues count the classes of a policy.
        found = self.qdiscs.counters(hooks, classes=classes is None)
        counted = {name: found["interfaces"][device] for name, device in self._devices.items()}
        for name, each in counted.items():
            each["policy"] = None if classes is None else classes.get(name, [])
        return {"time_ns": found["time_ns"], "interfaces": {}, "tc": counted}

    def _clear(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.qdiscs.reset()
        return {}


QDISCS = "qdiscs"
READERS: dict[str, Callable[[KernelRouter], dict[str, Any]]] = {QDISCS: KernelRouter.qdisc_counters}
"""Readers of counters, by `counters` of the configuration."""


async def serve(router: KernelRouter, control: Path, ended: asyncio.Event) -> None:
    """Answer requests until `ended` is set, which the request `shutdown` does too."""
    lock = asyncio.Lock()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Connections that are open at the end are cancelled.
        with contextlib.suppress(ConnectionError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
            while line := await reader.readline():
                reply: dict[str, Any]
                try:
                    request = json.loads(line)
                    if request.get("op") == "shutdown":
                        reply = {}
                        ended.set()
                    else:
                        async with lock:
                            reply = await asyncio.to_thread(router.handle, request)
                    reply = {"ok": True, **reply}
                except QoslabError as error:
                    reply = {"ok": False, "error": {"code": "refused", "message": error.message}}
                except FAULTS as error:
                    reply = {"ok": False, "error": {"code": "invalid", "message": f"{type(error).__name__}: {error}"}}
                writer.write(json.dumps(reply).encode() + b"\n")
                await writer.drain()
        writer.close()

    control.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(answer, control, limit=LINE_LIMIT)
    async with server:
        await ended.wait()
    control.unlink(missing_ok=True)


async def serve_process(router: KernelRouter, control: Path) -> None:
    """Answer requests until SIGTERM, SIGINT or the request `shutdown`."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await serve(router, control, ended)


def main(path: str) -> None:
    """Run the router described by a specification file."""
    spec = json.loads(Path(path).read_text(encoding="utf-8"))
    if spec["format"] != SPEC_FORMAT:
        raise DeviceError(f"{path}: format {spec['format']!r}, expected {SPEC_FORMAT}")
    with contextlib.ExitStack() as stack:
        if spec["guest"]:
            devices = [Device(name, name, each["mac"]) for name, each in spec["interfaces"].items()]
            prefix = [] if spec["netns"] is None else ["nsenter", f"--net={spec['netns']}", "--"]
            # In a lab this folder is removed with the lab, even if the lab is killed.
            parent = Path(spec["control"]).parent
            kernel = UserModeKernel(devices, prefix=prefix, name=spec["router"].lower(), parent=parent)
            run = guest_runner(stack.enter_context(kernel))
        else:
            run = namespace_runner(spec["netns"])
        router = KernelRouter(spec["router"], run, spec["interfaces"])
        router.start(spec["setup"])
        asyncio.run(serve_process(router, Path(spec["control"])))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except QoslabError as error:
        print(error.message, error.hint, file=sys.stderr)
        sys.exit(ExitStatus.USER_MISTAKE)
