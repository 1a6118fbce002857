"""The answer to a trial: a pasted configuration and its traffic, before and after a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.rules import descendants
from qoslab.policy.rate import format_list
from qoslab.system import program_formats
from qoslab.trial.change import ChangedDevice, apply_changes
from qoslab.trial.edge import TrialEdge
from qoslab.trial.outcome import ClassResult, KindResult, Path, TrialOutcome, traffic_class_paths, trial_outcome
from qoslab.trial.scenario import look_up_scenario, traffic_scenario

if TYPE_CHECKING:
    from qoslab.trial.demand import TrafficDemand

Simulate = Callable[[Sequence["program_formats.Scenario"]], list["program_formats.SimulationReport"]]


@dataclass(frozen=True)
class PolicyTrial:
    """Results of all variants."""

    interface: str
    direction: str
    policy: str
    line_bps: int
    seconds: float
    rtt_ms: float
    notes: tuple[str, ...]
    changes: tuple[str, ...]
    """Lines of the change, with their position."""
    variants: tuple[TrialOutcome, ...]
    findings: tuple[str, ...]
    two_way: bool = False


def try_policy(
    edge: TrialEdge,
    demands: Sequence[TrafficDemand],
    changes: Sequence[str],
    simulate: Simulate,
    *,
    seconds: float,
    rtt_s: float,
) -> PolicyTrial:
    """Return the results of the configuration and of the changed configuration. Raise UserError for a refused
    change.
    """
    devices: list[tuple[str, Device]] = [("before" if changes else "", edge.device)]
    lines: tuple[str, ...] = ()
    if changes:
        changed: ChangedDevice = apply_changes(edge.device, changes, edge.scope)
        lines = changed.lines
        devices.append(("after", changed.device))
    scenarios = [look_up_scenario(edge, device, demands) for _, device in devices]
    scenarios += [traffic_scenario(edge, device, demands, seconds=seconds, rtt_s=rtt_s) for _, device in devices]
    reports = simulate(scenarios)
    variants = []
    for number, (label, _) in enumerate(devices):
        paths = traffic_class_paths(reports[number], edge, demands)
        variants.append(trial_outcome(label, reports[len(devices) + number], edge, demands, paths, seconds))
    return PolicyTrial(
        edge.tried_interface,
        edge.direction,
        edge.policy,
        edge.tried_bps,
        seconds,
        rtt_s * 1000,
        edge.notes,
        lines,
        tuple(variants),
        tuple(_trial_findings(devices[-1][1], edge, variants[-1])),
        edge.two_way,
    )


def traffic_class_path(kind: KindResult, direction: str) -> Path:
    """Return the class of the tried policy for a kind of traffic; in the other direction, the class of any policy."""
    if kind.reverse:
        return kind.path or kind.input_path
    return kind.path if direction == "output" else kind.input_path


def _trial_findings(device: Device, edge: TrialEdge, found: TrialOutcome) -> Iterator[str]:
    """Yield mismatches of traffic and classes."""
    kinds = [each for each in found.kinds if not each.reverse]
    paths = [traffic_class_path(each, edge.direction) for each in kinds]
    default = [
        f"{each.name} ({dscp_text(each.dscp)})"
        for each, path in zip(kinds, paths, strict=True)
        if each.dscp and all(name == CLASS_DEFAULT for name in path)
    ]
    if default:
        yield f"no class matches {format_list(default, 8)}: this traffic is in class-default"
    met = {name for path in paths for name in path}
    interface = device.interfaces[edge.tried_interface]
    name = interface.service_policy_output if edge.direction == "output" else interface.service_policy_input
    policies = descendants(device, device.policy_maps[name or edge.policy])
    names = dict.fromkeys(each.name for policy in policies for each in policy.classes)
    idle = [name for name in names if name not in met and name != CLASS_DEFAULT]
    if idle:
        yield (
            f"no traffic matched class {format_list(idle, 8)}; set a code point such as `video 4 dscp "
            "af41` in --traffic"
        )
    for each in found.others:
        yield from _class_drops(each.classes, f"{each.interface} {each.direction}: ")
    yield from _class_drops(found.classes, "after the change: " if found.label else "")
    for kind in found.kinds:
        if kind.voice is not None and kind.voice.loss_percent > 1:
            yield f"{kind.name}: {kind.voice.loss_percent:.1f} % of the packets are lost or arrive too late"
        pages = kind.pages
        if pages is not None and pages.unfinished > UNFINISHED_SHARE * pages.total:
            yield f"{kind.name}: {pages.unfinished} of {pages.total} pages or answers were unfinished at the end"


UNFINISHED_SHARE = 0.1
"""Share of unfinished pages above which they are reported: each source may have one at the end of the traffic."""
REASONS = {
    "police": "policer",
    "priority": "priority policer",
    "tail": "queue full",
    "flow": "flow queue full",
    "random": "WRED",
    "random_tail": "WRED above the maximum threshold",
    "aqm": "active queue management",
    "purged": "interface shut down",
}
"""Reasons for drops as text."""


def _class_drops(classes: Sequence[ClassResult], place: str) -> Iterator[str]:
    """Yield the drops of the innermost classes, with their reasons."""
    for each in classes:
        if not each.drops or any(other.path[:-1] == each.path for other in classes):
            continue
        parts = [
            f"{100 * packets / each.offered_packets:.1f} % ({REASONS.get(reason, reason)})"
            for reason, packets in each.drops.items()
        ]
        yield f"{place}class {each.path[-1]} drops {', '.join(parts)}"


def to_json(trial: PolicyTrial) -> dict[str, Any]:
    """Return the trial as plain values; rates are in b/s, delays in milliseconds, losses fractions of 1."""
    made = asdict(trial)
    for plain, variant in zip(made["variants"], trial.variants, strict=True):
        for kind in plain["kinds"]:
            del kind["histogram"]
        lists = [(plain["classes"], variant.classes)]
        lists += [(one["classes"], each.classes) for one, each in zip(plain["others"], variant.others, strict=True)]
        for each, source in (pair for two in lists for pair in zip(*two, strict=True)):
            each["loss"] = source.loss
    return made
