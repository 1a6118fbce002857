"""Probes of routers with an IOS command line, real or virtual."""

from __future__ import annotations

from typing import Any

from qoslab.errors import RunInvalid
from qoslab.genie.ip_sla import parse_statistics
from qoslab.ios.refusals import find_refusal
from qoslab.model.experiment import Probe
from qoslab.run.cell.probes.base import Prober, Setting
from qoslab.run.cell.probes.results import values_from_output, values_from_runs


def schedule_line(number: int) -> str:
    """Return the line that starts an operation."""
    return f"ip sla schedule {number} start-time now life forever"


def stop_line(number: int) -> str:
    """Return the line that stops an operation."""
    return f"no ip sla schedule {number}"


class IosProber(Prober):
    """Schedules the operation and reads its statistics, both on the command line."""

    def __init__(self, setting: Setting, probe: Probe) -> None:
        super().__init__(setting, probe)
        self._scheduled = False
        self._prints: list[str] = []
        self._rtts: dict[str, int] = {}
        """Round-trip time of each run of an echo operation by its start, in ms."""

    @property
    def poll_interval_s(self) -> float | None:
        """Interval of reading: IOS prints the round-trip time of an echo operation only for its latest run."""
        return None if self.probe.is_jitter else self.probe.frequency_or_default.seconds

    def _show(self, command: str) -> str:
        return self.setting.observe(self.probe.source, f"show ip sla statistics {command}")

    def prepare(self) -> None:
        """See `Prober`. An operation of the router itself would be measured in place of the probe."""
        before = self.setting.cell.configuration(f"{self.probe.source}.before.ios")
        if before.exists() and f"ip sla {self.number}" in before.read_text(encoding="utf-8").splitlines():
            raise RunInvalid(
                f'probe "{self.probe.name}": {self.probe.source} already had an operation {self.number}; '
                "give the probe another number"
            )

    def start(self, at_ns: int) -> None:
        """See `Prober`."""
        line = schedule_line(self.number)
        self._scheduled = True
        answer = self.setting.enter(self.probe.source, [line])
        if (refusal := find_refusal(answer)) is not None:
            raise RunInvalid(f'{self.probe.source} refused "{line}": {refusal}')

    def poll(self) -> None:
        """See `Prober`."""
        text = self._show(str(self.number))
        self._prints.append(text)
        latest = self._latest_run(text)
        if isinstance(latest.get("latest_rtt_ms"), int) and latest.get("return_code") in ("OK", "Over threshold"):
            self._rtts[str(latest.get("start"))] = latest["latest_rtt_ms"]

    def _latest_run(self, text: str) -> dict[str, Any]:
        groups = parse_statistics(text).get("operations", {}).get(str(self.number), {}).get("groups", [])
        return groups[-1] if groups else {}

    def read(self) -> dict[str, Any]:
        """See `Prober`."""
        if self.probe.is_jitter:
            self._prints.append(self._show(f"aggregated {self.number}"))
            values = values_from_output(self._prints[-1], self.number)
        else:
            self.poll()
            values = values_from_runs(list(self._rtts.values()))
            answered = self._latest_run(self._prints[-1]).get("successes")
            if isinstance(answered, int) and answered > len(self._rtts):
                self.warnings.append(
                    f"{answered - len(self._rtts)} of {answered} answered runs ended before they were read and are "
                    f"missing from its results"
                )
        self.setting.cell.write(self.probe_file("txt"), "\n".join(self._prints))
        if self.probe.source in self.setting.lab.data_planes:
            self.save_samples(self.data_plane_report())
        if values is None:
            raise self.unanswered_error(
                str(self._latest_run(self._show(str(self.number))).get("return_code", "Unknown"))
            )
        return values

    def stop(self) -> None:
        """See `Prober`; the router may have had the operation before, without a schedule."""
        if self._scheduled:
            self.setting.enter(self.probe.source, [stop_line(self.number)])
            self._scheduled = False
