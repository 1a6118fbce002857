"""Linux router of an inventory: its agent runs tc(8) commands, and this process serves the control protocol for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from qoslab.errors import DeviceError, MachineError, QoslabError
from qoslab.platforms.kernel_router import kernel_config
from qoslab.run.real.nodes import ExternalHost
from qoslab.system.waiting import answers_hello, wait_until
from qoslab.tc.commands.kernel_commands import unsupported_lines
from qoslab.tc.daemon import CONFIG_FORMAT, KernelRouter, serve
from qoslab.tc.kernel_kinds import KernelKinds, probe

FORWARDING = "/proc/sys/net/ipv4/ip_forward"
LISTEN_S = 10.0
"""Time for the server of the control protocol to listen, in seconds."""
END_S = 30.0
"""Time for its last request to end, in seconds."""


class Queues(KernelRouter):
    """Requests to a Linux router. A lost one has no configuration: its watchdog has removed it."""

    def __init__(self, router: LinuxRouter, interfaces: Sequence[str], devices: Mapping[str, str]) -> None:
        super().__init__(router.name, router.run, {name: {"line": None} for name in interfaces}, devices)
        self._router = router

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """See `Router.handle`."""
        if self._router.lost_reason and request.get("op") == "config":
            return {"config": {"format": CONFIG_FORMAT, "router": self._router.name, "commands": []}}
        return super().handle(request)


class LinuxRouter(ExternalHost):
    """Linux router. Only the qdiscs of the experiment's interfaces are changed; the agent's watchdog removes them."""

    _server: threading.Thread | None = None
    _daemon_loop: Queues
    _loop: asyncio.AbstractEventLoop
    _ended: asyncio.Event

    @property
    def queues(self) -> Queues:
        """Return the requests to its interfaces, whose configuration is unknown."""
        interfaces = [near.interface for _, near, _ in self._place.topology.node_links(self.name)]
        devices = {each: self._place.settings.device(each) for each in interfaces}
        return Queues(self, interfaces, devices)

    def run(self, argv: Sequence[str], text: str, *, apart: bool = False) -> tuple[int, str, str]:
        """Run a command there (`qoslab.tc.interface_qdiscs.Run`), or in a namespace for trials."""
        reply = self.ask("run", argv=list(argv), text=text, apart=apart)
        return int(reply["status"]), str(reply["stdout"]), str(reply["stderr"])

    def kinds(self) -> KernelKinds:
        """Return the kinds of qdiscs, filters and actions of its kernel. Raise `MachineError` without permission."""

        def run_in_new_namespace(argv: Sequence[str]) -> tuple[int, str]:
            status, output, errors = self.run(argv, "", apart=True)
            return status, output + errors

        return probe(run_in_new_namespace)

    def forwards(self) -> bool:
        """Return whether its kernel forwards packets of IPv4."""
        return self.read(FORWARDING).strip() != "0"

    def obstacles(self, kinds: KernelKinds, texts: Sequence[str]) -> Iterator[QoslabError]:
        """Yield the reasons against these configurations: qdiscs, offloads, missing kinds, rejected parameters.

        Nothing changes: commands are tried in a separate network namespace.
        """
        queues = self.queues
        yield from queues.qdiscs.obstacles()
        for text in texts:
            made = kernel_config(self._place.topology, self.name, text, lab=False)
            language = "tc" if made.classes is None else "ios"
            missing = dict.fromkeys(unsupported_lines(made.commands, kinds))
            for line, kind in missing:
                yield DeviceError(
                    f"{self.name}.{language} line {line}: the kernel {kinds.release} lacks the {kind}",
                    hint="Install the package with the kernel's other modules there, or use another kind.",
                )
            if not missing:
                try:
                    queues.try_out(made.as_config())
                except DeviceError as error:
                    yield error

    def isolate(self) -> list[str]:
        """Lock its interfaces, and have the watchdog remove their qdiscs at the end; see `ExternalHost.isolate`."""
        failed = super().isolate()
        devices = [each["device"] for each in self._place.interfaces()]
        return [*failed, *self.ask("guard", devices=devices)["failed"]]

    def serve(self, control: Path) -> None:
        """Serve the control protocol at this path until `close`. Raise `DeviceError` for a configured interface."""
        queues = self._daemon_loop = self.queues
        queues.start(())

        async def answer() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            await serve(queues, control, self._ended)

        self._server = threading.Thread(target=asyncio.run, args=(answer(),), name=f"queues {self.name}", daemon=True)
        self._server.start()
        server = self._server

        def check(late: bool) -> None:
            if late or not server.is_alive():
                raise MachineError(f"the control socket of {self.name} cannot be created: {control}")

        wait_until(lambda: answers_hello(control, LISTEN_S), LISTEN_S, check)

    def is_as_configured(self) -> bool:
        """Return whether the interfaces are as this run has configured them."""
        return self._daemon_loop.qdiscs.is_as_configured()

    def close(self) -> list[str]:
        """End the server, and restore the router; return the failures."""
        if self._server is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._ended.set)
            self._server.join(END_S)
        return super().close()
