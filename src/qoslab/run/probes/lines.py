"""The configuration of probes on routers."""

from __future__ import annotations

from qoslab.model.experiment import PROBE_FREQUENCY, Experiment, probe_number, probe_target

RESPONDER = "ip sla responder"


def probe_lines(experiment: Experiment) -> dict[str, str]:
    """The configuration lines of operations and responders, by router; they are pushed with the rest of its own."""
    lines: dict[str, list[str]] = {}
    for probe in experiment.probes:
        if probe.udp and probe.destination in experiment.routers:
            theirs = lines.setdefault(probe.destination, [])
            if RESPONDER not in theirs:
                theirs.insert(0, RESPONDER)
        if probe.source not in experiment.routers:
            continue
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
        times = []
        if probe.timeout is not None:
            times.append(f" timeout {probe.timeout.ns // 10**6}")
        if probe.frequency is not None:
            times.append(f" frequency {probe.frequency.ns // 10**9}")
        # At no moment may the timeout be longer than the frequency, whose defaults hold at first.
        mine += times if probe.frequency_or_default < PROBE_FREQUENCY else times[::-1]
        if probe.tos is not None:
            mine.append(f" tos {probe.tos}")
        if probe.threshold is not None:
            mine.append(f" threshold {probe.threshold.ns // 10**6}")
    return {router: "!\n" + "\n".join(texts) + "\n" for router, texts in lines.items()}
