"""Probes of hosts and the responder of a host: the program `sla` (docs/internals/sla.md)."""

from __future__ import annotations

import json
import time
from typing import Any

from qoslab.errors import RunInvalid
from qoslab.ios.model.ip_sla import DEFAULT_INTERVAL_MS
from qoslab.model.experiment import Experiment, Family, Probe, probe_family, probe_target
from qoslab.model.units import Duration
from qoslab.results import Cell, SenderRecord
from qoslab.results.file_access import convert_write_errors
from qoslab.run.cell.pace import probe_sender
from qoslab.run.cell.probes.base import Prober, Setting
from qoslab.run.cell.probes.results import values_from_report
from qoslab.run.protocols import RunningLab
from qoslab.system import program_formats
from qoslab.system.programs import describe_exit
from qoslab.traffic import Listener, is_listening

CONTROL_PORT = 1967
"""UDP port of control messages."""
LISTENERS: dict[Family, str] = {4: "/proc/net/udp", 6: "/proc/net/udp6"}
"""Kernel tables of open UDP ports."""
END_S = 5.0
"""Time limit for the end of the program."""
LISTEN_S = 5.0
"""Time limit for the start of the responder."""
POLL_S = 0.02


class ProbeProgram:
    """`sla` running on a host; its output goes to files of the cell."""

    def __init__(
        self, lab: RunningLab, host: str, cell: Cell, name: str, arguments: list[str], at_ns: int | None = None
    ) -> None:
        """Start it at `at_ns` of CLOCK_MONOTONIC, or now."""
        folder = cell.path / "probes"
        self.output, self._errors = folder / f"{name}.json", folder / f"{name}.err"
        with convert_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with convert_write_errors(self.output):
            self._process = lab.host(host).start(
                ["sla", *arguments], stdout=self.output, stderr=self._errors, at_ns=at_ns
            )

    @property
    def reason(self) -> str:
        """Return its error output, in one line."""
        text = self._errors.read_text(encoding="utf-8", errors="replace") if self._errors.exists() else ""
        return "; ".join(line.removeprefix("sla: ") for line in text.splitlines() if line.strip())

    @property
    def end_reason(self) -> str:
        """Return how it ended; empty while it runs."""
        status = self._process.poll()
        return "" if status is None else describe_exit(status)

    def finish(self) -> None:
        """Wait for its end. Raise `RunInvalid` if it failed or does not end."""
        try:
            status = self._process.wait(END_S)
        except TimeoutError as error:
            self.stop()
            raise RunInvalid("sla did not finish in time") from error
        if status != 0:
            raise RunInvalid(f"sla {describe_exit(status)}: {self.reason or 'no reason was given'}")

    def stop(self) -> None:
        """End it if it still runs."""
        self._process.end(END_S)
        if self._errors.exists() and self._errors.stat().st_size == 0:
            self._errors.unlink()


class HostProber(Prober):
    """Runs the operation over sockets of the host, with time stamps of the kernel."""

    def __init__(self, setting: Setting, probe: Probe) -> None:
        super().__init__(setting, probe)
        self._program: ProbeProgram | None = None

    @property
    def notice_s(self) -> float:
        """See `Prober`."""
        return self.setting.lab.notice_s

    def start(self, at_ns: int) -> None:
        """See `Prober`."""
        experiment = self.setting.experiment
        arguments = probe_arguments(self.probe, str(probe_target(experiment, self.probe)))
        arguments += ["--duration", str(experiment.duration_of_probe(self.probe).seconds)]
        name = f"{self.probe.name}.samples"
        self._program = ProbeProgram(self.setting.lab, self.probe.source, self.setting.cell, name, arguments, at_ns)

    def read(self) -> dict[str, Any]:
        """See `Prober`."""
        assert self._program is not None
        self._program.finish()
        try:
            report = json.loads(self._program.output.read_text(encoding="utf-8"))
            values = values_from_report(report, jitter=self.probe.is_jitter)
            self.sender = self._sender_precision(report)
            code = str(report["latest"]["return_code"])
        except (ValueError, KeyError, TypeError) as error:
            raise RunInvalid(f"the output of sla is malformed ({type(error).__name__}: {error})") from error
        if values is None:
            raise self.unanswered_error(code, self._program.reason)
        return values

    def _sender_precision(self, report: program_formats.OperationReport) -> SenderRecord | None:
        """Return the precision of the sender; None if unknown.

        It is unknown if other traffic of the host may delay packets before their time stamp, and for an echo operation,
        which sends one packet at a time.
        """
        traffic = {flow.source for flow in self.setting.experiment.traffic}
        if not self.probe.is_jitter or self.probe.source in traffic:
            return None
        interval_ns = DEFAULT_INTERVAL_MS * 10**6 if self.probe.interval is None else self.probe.interval.ns
        return probe_sender(report["samples"], interval_ns)

    def stop(self) -> None:
        """See `Prober`."""
        if self._program is not None:
            self._program.stop()


def probe_arguments(probe: Probe, target: str) -> list[str]:
    """Return the command line of an operation."""

    def milliseconds(duration: Duration | None) -> int | None:
        return None if duration is None else duration.ns // 10**6

    options = {
        "port": probe.port,
        "packets": probe.packets,
        "interval": milliseconds(probe.interval),
        "frequency": None if probe.frequency is None else probe.frequency.ns // 10**9,
        "timeout": milliseconds(probe.timeout),
        "threshold": milliseconds(probe.threshold),
        "size": None if probe.size is None else probe.size.bytes,
        "tos": probe.tos,
    }
    given = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
    return ["probe", probe.type, target, *(word for pair in given for word in pair)]


def respond_arguments(experiment: Experiment) -> list[str]:
    """Return the command line of `sla respond`, which answers addresses in a subnet of the lab."""
    ends = [end for link in experiment.topology.links for end in link.ends]
    v4 = {end.address.network for end in ends if end.address is not None}
    v6 = {end.ipv6_address.network for end in ends if end.ipv6_address is not None}
    return ["respond", *(word for each in (*sorted(v4), *sorted(v6)) for word in ("--allow", str(each)))]


class HostResponder:
    """Responder on a host."""

    def __init__(self, setting: Setting, host: str) -> None:
        self._host = host
        self._lab = setting.lab
        probes = [each for each in setting.experiment.probes if each.is_udp and each.destination == host]
        families = {probe_family(setting.experiment, each) for each in probes}
        self._tables = [LISTENERS[family] for family in sorted(families)]
        # A program that listens there now is another one, and must not be mistaken for it.
        if any(self._listening_by_version()):
            raise RunInvalid(
                f"the responder on {host} cannot listen on UDP port {CONTROL_PORT}: another program uses it",
                hint="Stop that program, or choose another host as responder.",
            )
        arguments = respond_arguments(setting.experiment)
        self._program = ProbeProgram(setting.lab, host, setting.cell, f"responder-{host}", arguments)

    def wait_listening(self) -> None:
        """Wait until it answers. Raise `RunInvalid`, with its reason, if it does not."""
        deadline = time.monotonic() + LISTEN_S
        while True:
            if all(self._listening_by_version()):
                return
            if self._program.end_reason or time.monotonic() > deadline:
                raise RunInvalid(
                    f"the responder on {self._host} does not listen: {self._program.reason or 'no reason'}"
                )
            time.sleep(POLL_S)

    def check(self) -> None:
        """Raise `RunInvalid` if the program has ended, since another one may have answered later requests."""
        if how := self._program.end_reason:
            raise RunInvalid(f"the responder on {self._host} {how}: {self._program.reason or 'no reason was given'}")

    def stop(self) -> None:
        """End it."""
        self._program.stop()

    def _listening_by_version(self) -> list[bool]:
        """Return whether a program listens, by IP version."""
        shown = [self._lab.host(self._host).read(table) for table in self._tables]
        return [is_listening([each], Listener("udp", CONTROL_PORT)) for each in shown]
