"""Probes of a cell, from their start to their values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from qoslab.errors import QoslabError, RunInvalid
from qoslab.model.experiment import Experiment, Probe
from qoslab.platforms import AccessMethod, host_names, node_platform
from qoslab.platforms.base import COMMAND_LINE, CONTROL_SOCKET, PROGRAMS
from qoslab.results import SenderRecord
from qoslab.run.cell.probes.base import Prober, Setting
from qoslab.run.cell.probes.engine_router import EngineProber
from qoslab.run.cell.probes.host_program import CONTROL_PORT, HostProber, HostResponder
from qoslab.run.cell.probes.ios_router import IosProber

PROBERS: Mapping[AccessMethod, Callable[[Setting, Probe], Prober]] = {
    COMMAND_LINE: IosProber,
    CONTROL_SOCKET: EngineProber,
    PROGRAMS: HostProber,
}
"""Probers by access method of the sending node."""
POLL_PHASE = 0.8
"""Reading time of a run, as a share of its period: the run has ended by then, except for a late answer."""


class CellProbes:
    """Runs each probe of a cell in its own thread: starts it at its time and reads it at its end.

    Order of calls: `prepare`, `start`, then `finish` or `cancel`, and `close` in every case.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._responders: list[HostResponder] = []
        self._stop = threading.Event()
        experiment = setting.experiment
        self._probers = [
            PROBERS[node_platform(experiment.topology.nodes[probe.source]).access](setting, probe)
            for probe in experiment.probes
        ]
        self._threads = [
            threading.Thread(target=self._run_guarded, args=(each,), name=f"probe {each.probe.name}", daemon=True)
            for each in self._probers
        ]
        self._began = 0.0
        self.errors: list[str] = []
        """Reasons for missing values of probes."""

    @property
    def warnings(self) -> list[str]:
        """Return warnings about the values."""
        return [f'probe "{each.probe.name}": {text}' for each in self._probers for text in each.warnings]

    @property
    def senders(self) -> dict[str, SenderRecord]:
        """Return how late the packets of each probe left, if that is known."""
        return {each.probe.name: each.sender for each in self._probers if each.sender is not None}

    def prepare(self) -> None:
        """Start the responders of hosts. Raise `RunInvalid` if one does not listen, or an operation cannot run."""
        experiment = self._setting.experiment
        for prober in self._probers:
            prober.prepare()
        hosts = {probe.destination for probe in experiment.probes if probe.is_udp} & set(
            host_names(experiment.topology)
        )
        for host in sorted(hosts):
            self._responders.append(HostResponder(self._setting, host))
        for responder in self._responders:
            responder.wait_listening()

    def start(self, zero: float) -> None:
        """Set the start time of the traffic (`time.monotonic`)."""
        self._began = zero
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait for all probes. Raise `RunInvalid` if one could not be measured."""
        for thread in self._threads:
            thread.join()
        failed = list(self.errors)
        for responder in self._responders:
            try:
                responder.check()
            except RunInvalid as error:
                failed.append(error.message)
        if failed:
            raise RunInvalid("; ".join(failed))

    def cancel(self) -> None:
        """Stop measuring, because the traffic ended early."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def close(self) -> None:
        """End every operation and responder. Raise `RunInvalid` if one could not be ended."""
        self.cancel()
        failed: list[str] = []
        for prober in self._probers:
            try:
                prober.stop()
            except QoslabError as error:
                failed.append(f'probe "{prober.probe.name}" could not be ended: {error.message}')
        for responder in self._responders:
            responder.stop()
        if failed:
            raise RunInvalid("; ".join(failed))

    def _run_guarded(self, prober: Prober) -> None:
        try:
            self._run(prober)
        except Exception as error:
            message = error.message if isinstance(error, QoslabError) else f"{type(error).__name__}: {error}"
            self.errors.append(f'probe "{prober.probe.name}": {message}')

    def _wait_until(self, seconds: float) -> bool:
        """Wait until this traffic time; return whether the traffic still runs."""
        return not self._stop.wait(max(0.0, self._began + seconds - time.monotonic()))

    def _run(self, prober: Prober) -> None:
        probe, setting = prober.probe, self._setting
        begin = probe.start_after.seconds
        end = begin + setting.experiment.duration_of_probe(probe).seconds
        if not self._wait_until(begin - prober.notice_s):
            return
        prober.start(int((self._began + begin) * 1e9))
        began, every = time.monotonic() - self._began, prober.poll_interval_s
        if every is not None:
            due = began + POLL_PHASE * every
            while due < end:
                if not self._wait_until(due):
                    return
                prober.poll()
                due += every
        if not self._wait_until(end):
            return
        values = prober.read()
        setting.cell.write_json(prober.probe_file("json"), values)


def reserved_ports(experiment: Experiment) -> set[int]:
    """Return the ports of responders on hosts, which traffic must not use."""
    hosts = host_names(experiment.topology)
    mine = {probe.port for probe in experiment.probes if probe.is_udp and probe.destination in hosts}
    return {port for port in mine if port is not None} | ({CONTROL_PORT} if mine else set())
