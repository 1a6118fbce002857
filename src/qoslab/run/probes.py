"""IP SLA operations of a cell: their configuration, their start while the traffic runs, and what they measured."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from qoslab.errors import RunInvalid
from qoslab.genie.ip_sla import parse_statistics
from qoslab.ios.config.ip_sla import NOT_CONFIGURED
from qoslab.ios.show.ip_sla import jitter_samples, jitter_triplet, summary_triplet
from qoslab.lab import Lab
from qoslab.model.experiment import Experiment, Probe, probe_number, probe_target
from qoslab.results import Cell

Show = Callable[[str, str], str]
"""What a router answers to a show command."""
Enter = Callable[[str, list[str]], str]
"""What a router says to configuration lines."""


class Probes:
    """Starts each probe of a cell at its time and reads it at its end, in a thread of its own."""

    def __init__(self, lab: Lab, experiment: Experiment, cell: Cell, *, observe: Show, enter: Enter) -> None:
        self._lab = lab
        self._experiment = experiment
        self._cell = cell
        self._observe = observe
        self._enter = enter
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(probe,), name=f"probe {probe.name}", daemon=True)
            for probe in experiment.probes
        ]
        self._began = 0.0
        self.errors: list[str] = []
        """Why a probe has no figures."""

    def start(self) -> None:
        """The traffic starts now."""
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait for all of them. `RunInvalid` where one could not be measured."""
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise RunInvalid("; ".join(self.errors))

    def cancel(self) -> None:
        """The traffic broke off: measure no more."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _guarded(self, probe: Probe) -> None:
        try:
            self._run(probe)
        except Exception as error:
            self.errors.append(f'probe "{probe.name}": {error}')

    def _wait_until(self, seconds: float) -> bool:
        return not self._stop.wait(max(0.0, self._began + seconds - time.monotonic()))

    def _run(self, probe: Probe) -> None:
        number = probe_number(self._experiment, probe)
        length = self._experiment.duration_of_probe(probe)
        if not self._wait_until(probe.start_after.seconds):
            return
        ios = self._experiment.topology.nodes[probe.source].platform == "ios"
        if ios:
            said = self._enter(probe.source, [f"ip sla schedule {number} start-time now life forever"])
            if NOT_CONFIGURED in said or "% " in said:
                raise RunInvalid(f"{probe.source} did not start it: {said.strip()}")
        else:
            asyncio.run(self._schedule(probe.source, number))
        if not self._wait_until(probe.start_after.seconds + length.seconds):
            return
        folder = self._cell.path / "probes"
        if ios:
            text = self._observe(probe.source, f"show ip sla statistics aggregated {number}")
            self._cell.write(folder / f"{probe.name}.txt", text)
            figures = figures_of_print(text, number)
        report = asyncio.run(self._report(probe.source, number))
        self._cell.write(folder / f"{probe.name}.samples.json", json.dumps(report) + "\n")
        if not ios:
            figures = figures_of_report(report)
        self._cell.write(folder / f"{probe.name}.json", json.dumps(figures, indent=1) + "\n")

    async def _schedule(self, router: str, number: int) -> None:
        """Start an operation of a Linux router, which has no command line."""
        async with self._lab.control(router) as client:
            config = await client.config()
            config["ip_sla"]["operations"][str(number)]["schedule"] = {"life_s": None, "start": "now"}
            await client.configure(config)

    async def _report(self, router: str, number: int) -> dict[str, Any]:
        async with self._lab.control(router) as client:
            found = await client.ip_sla(number, samples=True)
            report: dict[str, Any] = found["operations"][str(number)]
            return report


def figures_of_print(text: str, number: int) -> dict[str, Any]:
    """The newest hour of `show ip sla statistics aggregated`. `RunInvalid` where nothing was answered."""
    groups = parse_statistics(text).get("operations", {}).get(str(number), {}).get("groups", [])
    if not groups or not groups[-1].get("rtt_count"):
        raise RunInvalid("no packet was answered")
    group = groups[-1]
    return {name: group[name] for name in ("rtt_count", "rtt_ms", "jitter_samples", "jitter_sd_ms", "jitter_ds_ms")}


def figures_of_report(report: dict[str, Any]) -> dict[str, Any]:
    """The same of the data plane's own answer, in the way of the print of 2008."""
    hours = report["hours"]
    if not hours or not hours[-1]["statistics"]["rtt"]["count"]:
        raise RunInvalid("no packet was answered")
    found = hours[-1]["statistics"]
    triplet: Callable[[str], dict[str, int]] = lambda text: dict(  # noqa: E731
        zip(("min", "avg", "max"), map(int, text.split("/")), strict=True)
    )
    return {
        "rtt_count": found["rtt"]["count"],
        "rtt_ms": triplet(summary_triplet(found["rtt"])),
        "jitter_samples": jitter_samples(found["jitter_sd"]),
        "jitter_sd_ms": triplet(jitter_triplet(found["jitter_sd"], "2008")),
        "jitter_ds_ms": triplet(jitter_triplet(found["jitter_ds"], "2008")),
    }


def probe_lines(experiment: Experiment) -> dict[str, str]:
    """The configuration lines of the probes, by router; they are pushed with the rest of its configuration."""
    lines: dict[str, list[str]] = {}
    for probe in experiment.probes:
        target = probe_target(experiment, probe)
        words = [probe.type, str(target)]
        if probe.port is not None:
            words.append(str(probe.port))
        if probe.packets is not None:
            words.append(f"num-packets {probe.packets}")
        if probe.interval is not None:
            words.append(f"interval {probe.interval.ns // 10**6}")
        mine = lines.setdefault(probe.source, [])
        mine += [f"ip sla {probe_number(experiment, probe)}", " " + " ".join(words)]
        if probe.size is not None:
            mine.append(f" request-data-size {probe.size.bytes}")
        if probe.timeout is not None:
            mine.append(f" timeout {probe.timeout.ns // 10**6}")
        if probe.tos is not None:
            mine.append(f" tos {probe.tos}")
        if probe.threshold is not None:
            mine.append(f" threshold {probe.threshold.ns // 10**6}")
        if probe.frequency is not None:
            mine.append(f" frequency {probe.frequency.ns // 10**9}")
        if probe.type in ("udp-echo", "udp-jitter") and probe.destination in experiment.routers:
            lines.setdefault(probe.destination, []).insert(0, "ip sla responder")
    return {router: "!\n" + "\n".join(dict.fromkeys(texts)) + "\n" for router, texts in lines.items()}
