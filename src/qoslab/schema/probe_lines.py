"""Configuration lines of probes on routers."""

from __future__ import annotations

from qoslab.model.experiment import PROBE_FREQUENCY, Experiment, probe_family, probe_number, probe_target
from qoslab.platforms import router_names

RESPONDER = "ip sla responder"


def probe_lines(experiment: Experiment) -> dict[str, list[tuple[str, int]]]:
    """Return the configuration lines of operations and responders by router, to be pushed after its own configuration.

    Each line has the index of its probe in the list.
    """
    found: dict[str, list[tuple[str, int]]] = {}
    routers = router_names(experiment.topology)
    for index, probe in enumerate(experiment.probes):
        if probe.is_udp and probe.destination in routers:
            theirs = found.setdefault(probe.destination, [])
            if all(line != RESPONDER for line, _ in theirs):
                theirs.insert(0, (RESPONDER, index))
        if probe.source not in routers:
            continue
        target = probe_target(experiment, probe)
        words = [probe.type, str(target)]
        if probe.port is not None:
            words.append(str(probe.port))
        if probe.packets is not None:
            words.append(f"num-packets {probe.packets}")
        if probe.interval is not None:
            words.append(f"interval {probe.interval.ns // 10**6}")
        mine = [f"ip sla {probe_number(experiment, probe)}", " " + " ".join(words)]
        if probe.size is not None:
            mine.append(f" request-data-size {probe.size.bytes}")
        times = []
        if probe.timeout is not None:
            times.append(f" timeout {probe.timeout.ns // 10**6}")
        if probe.frequency is not None:
            times.append(f" frequency {probe.frequency.ns // 10**9}")
        # The timeout may never be longer than the frequency, including the initial default values.
        mine += times if probe.frequency_or_default < PROBE_FREQUENCY else times[::-1]
        if probe.tos is not None:
            mine.append(f" {'tos' if probe_family(experiment, probe) == 4 else 'traffic-class'} {probe.tos}")
        if probe.threshold is not None:
            mine.append(f" threshold {probe.threshold.ns // 10**6}")
        found.setdefault(probe.source, []).extend((line, index) for line in mine)
    return found


def probe_configuration(experiment: Experiment) -> dict[str, str]:
    """Return the lines of each router as text, below a comment line."""
    lines = probe_lines(experiment).items()
    return {router: "!\n" + "".join(f"{text}\n" for text, _ in texts) for router, texts in lines}
