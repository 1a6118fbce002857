"""Traffic of a cell: servers start first, then clients, until all are done."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from qoslab.errors import RunInvalid
from qoslab.model.experiment import Flow, Topology
from qoslab.model.instants import observation_time as moment_during
from qoslab.model.units import Duration
from qoslab.platforms import router_names
from qoslab.results import Cell, FlowRecord
from qoslab.results.file_access import convert_write_errors
from qoslab.run.protocols import RemoteProcess, RunningLab
from qoslab.schema.devices import configured_devices
from qoslab.schema.packet_routes import path_faults
from qoslab.schema.traffic_ways import traffic_paths
from qoslab.system.programs import describe_exit
from qoslab.traffic import (
    Commands,
    Endpoints,
    FlowOutput,
    FlowResult,
    TrafficError,
    TrafficTool,
    count_connections,
    find_tool,
    is_listening,
    used_ports,
)
from qoslab.traffic.endpoints import flow_addresses

LISTEN_WAIT_S = 10.0
CLIENT_PORTS_WAIT_S = 60.0
"""Time for connections of an earlier cell to end: they send the data in their buffers and may have to repeat it."""
POLL_S = 0.02
CONNECT_WAIT_S = 10.0
"""Time to connect, in seconds; a later flow may never connect, so the search for its start ends then."""
STOP_WAIT_S = 2.0
"""Seconds for programs to end after SIGTERM, or for a server after SIGINT, before they are killed."""

Check = Callable[[], None]
"""Check that raises when the cell must end now: after an interrupt or the death of a router."""


@dataclass
class _FlowSide:
    process: RemoteProcess
    stdout: Path
    stderr: Path

    def read_output(self) -> FlowOutput:
        """Return the output so far."""
        errors = self.stderr.read_text(encoding="utf-8", errors="replace") if self.stderr.exists() else ""
        return FlowOutput(self.stdout.read_text(encoding="utf-8", errors="replace"), errors, self.process.poll())


@dataclass(frozen=True)
class FlowLocation:
    """Ends of a flow, and the folder of its output."""

    topology: Topology
    port: int
    seed: int
    """Seed of the tool's random values."""
    cell: Cell


def unreachable_reason(cell: Cell, flow: Flow) -> str:
    """Return why packets of a flow, or their answers, cannot arrive by the configurations: `no route from …`."""
    files = cell.files()
    experiment = files.experiment()
    devices = configured_devices(experiment, files.configurations(router_names(experiment.topology)))
    ways = traffic_paths(experiment, experiment.arm(cell.arm), devices)
    faults = path_faults(way for each in ways if each.description == f'traffic "{flow.name}"' for way in each.paths)
    return "; ".join(fault.reason for fault in faults)


class RunningFlow:
    """One flow of a cell, from the start of its server to its values."""

    def __init__(
        self, lab: RunningLab, flow: Flow, duration: Duration, congestion_control: str, place: FlowLocation
    ) -> None:
        self.flow = flow
        self.duration = duration
        self._lab = lab
        self._tool: TrafficTool = find_tool(flow.tool)
        source, destination = flow_addresses(place.topology, flow)
        ends = Endpoints(source, destination, place.port, client_port=flow.client_port, seed=place.seed)
        self.commands: Commands = self._tool.commands(flow, self.duration, ends, congestion_control)
        self._cell = place.cell
        self._port = place.port
        self._ends = ends
        self._started: tuple[int, datetime] | None = None
        """Start time sent to the client's host, by CLOCK_MONOTONIC and by the wall clock."""
        self._began: datetime | None = None
        self._server: _FlowSide | None = None
        self._client: _FlowSide | None = None
        self._deadline = 0.0
        self._watched_until = 0.0
        self._cut = False
        self._stopped = False

    @property
    def notice_s(self) -> float:
        """Return how long before its start time `start_client` must be called, in seconds."""
        return self._lab.notice_s

    def _start(self, node: str, argv: Sequence[str], side: str, at_ns: int | None = None) -> _FlowSide:
        stdout = self._cell.traffic(self.flow.name, side, self._tool.suffix)
        stderr = self._cell.traffic(self.flow.name, side, "err")
        with convert_write_errors(stdout):
            stdout.parent.mkdir(parents=True, exist_ok=True)
        with convert_write_errors(stdout):
            process = self._lab.host(node).start(argv, stdout=stdout, stderr=stderr, at_ns=at_ns)
        return _FlowSide(process, stdout, stderr)

    def start_server(self) -> None:
        """Start the server; `wait_listening` returns when it is ready."""
        self._server = self._start(self.flow.destination, self.commands.server, "server")

    def wait_listening(self, check: Check) -> None:
        """Wait until the server accepts its client."""
        assert self._server is not None
        listener = self.commands.listener
        deadline = time.monotonic() + LISTEN_WAIT_S
        while True:
            check()
            if is_listening([self._read_sockets(self.flow.destination, listener.protocol)], listener):
                return
            if self._server.process.poll() is not None or time.monotonic() > deadline:
                output = self._server.read_output()
                text = (output.stderr.strip() or output.stdout.strip() or "it printed nothing")[:400]
                raise TrafficError(
                    f'{self.flow.tool} server, traffic "{self.flow.name}": did not start to listen on '
                    f"{listener.protocol} port {listener.port} of {self.flow.destination}: {text}"
                )
            time.sleep(POLL_S)

    def wait_client_ports(self, check: Check) -> None:
        """Wait until the fixed client ports are free on the source."""
        first = self.flow.client_port
        if first is None:
            return
        ports = range(first, first + self.flow.streams)
        deadline = time.monotonic() + CLIENT_PORTS_WAIT_S
        while used := used_ports([self._read_sockets(self.flow.source, self.flow.protocol)], ports):
            check()
            if time.monotonic() > deadline:
                raise TrafficError(
                    f'{self.flow.tool} client, traffic "{self.flow.name}": found client port {used[0]} of '
                    f"{self.flow.source} in use for {CLIENT_PORTS_WAIT_S:g} s, expected a free one; choose another "
                    "`client_port`"
                )
            time.sleep(POLL_S)

    def _read_sockets(self, node: str, protocol: str) -> str:
        """Read a host's sockets as one text of two tables; the header in the middle is not a socket line."""
        return self._lab.host(node).read(f"/proc/net/{protocol}", f"/proc/net/{protocol}6")

    def watch(self) -> None:
        """Record the start of the flow once its connections exist; the retry of a lost SYN is not part of the test."""
        expected = self.commands.connections
        if self._began is not None or not expected or time.monotonic() > self._watched_until:
            return
        if count_connections([self._read_sockets(self.flow.destination, "tcp")], self._port) >= expected:
            self._began = datetime.now(UTC)

    def start_client(self, at_ns: int) -> None:
        """Start its client at a time of CLOCK_MONOTONIC."""
        self._started = (time.monotonic_ns(), datetime.now(UTC))
        self._client = self._start(self.flow.source, self.commands.client, "client", at_ns)
        self._deadline = at_ns / 1e9 + self.commands.deadline_s
        self._watched_until = at_ns / 1e9 + CONNECT_WAIT_S

    def start_lateness_s(self, at_ns: int) -> float:
        """Return how late its client started, in seconds, as far as known."""
        began_ns = None if self._client is None else self._client.process.began_ns()
        return 0.0 if began_ns is None else (began_ns - at_ns) / 1e9

    def record(self) -> FlowRecord | None:
        """Return its record with place and time; None if its client was never started."""
        began_ns = None if self._client is None else self._client.process.began_ns()
        if self._started is None or began_ns is None:
            return None
        start_ns, start = self._started
        return FlowRecord(
            traffic=self.flow.name,
            source=self._ends.source,
            destination=self._ends.destination,
            port=self._port,
            started=start + timedelta(microseconds=(began_ns - start_ns) / 1000),
            start_after_s=self.flow.start_after.seconds,
            began=self._began,
        )

    def is_done(self) -> bool:
        """Return whether both sides are done. If a side died, the flow is done, and `result` raises the reason.

        A flow that may fail is cut off at its deadline. Raise `TrafficError` if another flow is past its deadline.
        """
        if self._client is None or self._server is None:
            return False
        client_ended = self._client.process.poll() is not None
        server_ended = self._server.process.poll() is not None
        if server_ended and not client_ended and self._server.process.poll() != 0 and not self.flow.may_fail:
            # The client of a dead server may wait for minutes.
            return True
        if client_ended and not server_ended:
            if self._client.process.poll() != 0 and not self.flow.may_fail:
                return True
            if not self.commands.server_exits and self._tool.is_finished(self.flow, self._server.read_output().stdout):
                self._server.process.signal(signal.SIGINT)
        if client_ended and server_ended:
            return True
        if time.monotonic() > self._deadline:
            if self.flow.may_fail:
                self.stop()
                return True
            if client_ended and self.commands.cut_off and not self._cut:
                self._cut = True
                self._deadline += STOP_WAIT_S
                self._server.process.signal(signal.SIGINT)
                return False
            side = "server" if client_ended else "client"
            raise TrafficError(
                f'{self.flow.tool} {side}, traffic "{self.flow.name}": {self._unreachable_reason() or "not finished"} '
                f"{self.commands.deadline_s:.0f} s after its start"
            )
        return False

    def _unreachable_reason(self) -> str:
        """Return why nothing arrives, by the routers' configurations and by missing connections; empty if unknown."""
        if reason := unreachable_reason(self._cell, self.flow):
            return f"{reason},"
        if self.commands.connections and self._began is None:
            return f"no connection from {self._ends.source} to {self._ends.destination},"
        return ""

    def result(self) -> FlowResult:
        """Return the values. Raise `TrafficError` if a side failed."""
        assert self._client is not None and self._server is not None
        for side in (self._client, self._server):
            if side.stderr.exists() and side.stderr.stat().st_size == 0:
                side.stderr.unlink()
        if killed := self._killed_ends():
            raise TrafficError("; ".join(killed))
        result = self._tool.parse(self.flow, self.duration, self._client.read_output(), self._server.read_output())
        if not self._cut:
            return result
        late = f"still arriving {self.commands.deadline_s - self.duration.seconds:g} s after its end"
        return replace(result, warnings=(*result.warnings, f"{late}: the rest counts as lost"))

    def _killed_ends(self) -> list[str]:
        """Return the ends that another process killed, which makes their output meaningless."""
        sides = [] if self._stopped else [("client", self._client), ("server", self._server)]
        statuses = [(name, side.process.poll()) for name, side in sides if side is not None]
        return [
            f'{self.flow.tool} {name}, traffic "{self.flow.name}": {describe_exit(status)}'
            for name, status in statuses
            if status is not None and status < 0 and status != -signal.SIGINT
        ]

    def terminate(self) -> None:
        """Ask all running programs to end."""
        self._stopped = True
        for side in (self._client, self._server):
            if side is not None:
                side.process.signal(signal.SIGTERM)
                # A stopped program reacts to no other signal.
                side.process.signal(signal.SIGCONT)

    def stop(self) -> None:
        """End all running programs."""
        self._stopped = True
        for side in (self._client, self._server):
            if side is not None:
                side.process.end(STOP_WAIT_S)


def run_flows(
    flows: Sequence[RunningFlow],
    check: Check,
    during: Callable[[], None],
    *,
    ready: Callable[[], None] = lambda: None,
    started: Callable[[float], None] = lambda _: None,
    began: Callable[[float], None] = lambda _: None,
) -> dict[str, FlowResult]:
    """Run the flows of a cell to their end and return their values by name.

    `during` is called once, in its own thread, after two thirds of the longest flow. Everything is stopped before an
    error is raised. `ready` is called when all servers listen; no flow starts before it returns. `started` receives the
    zero of all times (`time.monotonic`), as soon as hosts can receive it. `began` is called once the first flow runs,
    which may be later than planned.
    """
    moment = moment_during(max(flow.flow.start_after + flow.duration for flow in flows))
    try:
        for flow in flows:
            flow.start_server()
        for flow in flows:
            flow.wait_listening(check)
            flow.wait_client_ports(check)
        ready()
        # The callbacks run one after the other.
        notice_s = sum(flow.notice_s for flow in flows)
        start = time.monotonic() + notice_s
        started(start)
        waiting = sorted(flows, key=lambda flow: flow.flow.start_after.ns)
        first = waiting[0]
        running: list[RunningFlow] = []
        watcher = _Observer(during)
        while waiting or running:
            check()
            elapsed = time.monotonic() - start
            while waiting and elapsed + notice_s >= waiting[0].flow.start_after.seconds:
                flow = waiting.pop(0)
                at_ns = int(start * 1e9) + flow.flow.start_after.ns
                flow.start_client(at_ns)
                if flow is first:
                    began(start + flow.start_lateness_s(at_ns))
                running.append(flow)
            if elapsed >= moment.seconds:
                watcher.start()
            for flow in running:
                flow.watch()
            running = [flow for flow in running if not flow.is_done()]
            next_s = waiting[0].flow.start_after.seconds - notice_s if waiting else math.inf
            time.sleep(min(POLL_S, max(0.0, start + next_s - time.monotonic())))
        # The message of a tool about its end takes precedence over observations that failed because of it.
        results = {flow.flow.name: flow.result() for flow in flows}
        watcher.finish()
        return results
    finally:
        # All have the same time to end.
        for flow in flows:
            flow.terminate()
        for flow in flows:
            flow.stop()


class _Observer:
    """Calls a function once in a thread, and passes on its error."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="observe-during", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        if self._thread is None:
            raise RunInvalid(
                "the traffic ended before two thirds of its duration", hint="see the raw output in traffic/"
            )
        self._thread.join()
        if self._error is not None:
            raise self._error
