"""Findings about a policy: settings that a router refuses, that have no effect, or that defeat their own purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from qoslab.ios.commands.queueing import SUM_EXCEEDS
from qoslab.policy import class_findings, interface_findings
from qoslab.policy.pasted_configuration import Configuration, is_refusal
from qoslab.policy.policy_finding import MQC, SEVERITIES, PolicyFinding, Subject

ONLY_ON_OUTPUT = "output feature only"


def find_policy_problems(subject: Subject) -> list[PolicyFinding]:
    """Return the findings, each once, most severe first."""
    found = dict.fromkeys(each for rule in RULES for each in rule(subject))
    return sorted(found, key=lambda each: (SEVERITIES.index(each.severity), each.line))


def find_refused_lines(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about lines that the rules of the generation refuse, and that therefore have no effect."""
    for unread in subject.configuration.reading.unread:
        if not is_refusal(unread.reason) or not _is_qos(unread.place, unread.text):
            continue
        if SUM_EXCEEDS in unread.reason or "requested bandwidth" in unread.reason:
            continue  # `oversubscribed` has the sum
        if ONLY_ON_OUTPUT in unread.reason:
            continue  # `find_queueing_on_input` names the classes
        where = " in " + ", ".join(unread.place) if unread.place else ""
        message = f"`{unread.text}`{where} is refused: {unread.reason.removeprefix('% ')}"
        yield PolicyFinding("error", "refused", message, "rules of the modelled release", unread.number)


def _is_qos(place: tuple[str, ...], text: str) -> bool:
    return (place[:1] != () and place[0].startswith(("policy-map", "class-map"))) or text.startswith("service-policy")


def find_missing_objects(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about class-maps and policy-maps that are referred to and not configured."""
    configuration = subject.configuration
    has_maps = set(configuration.device.class_maps) - configuration.missing_classes
    missing = sorted(configuration.missing_classes)
    if missing and not has_maps:
        names = ", ".join(missing)
        message = f"class-maps not in the input: {names}; the packets that they match are not checked"
        yield PolicyFinding("note", "class-map-missing", message, MQC)
    else:
        for name in missing:
            line = _class_line(configuration, name)
            message = f"class-map {name} is not configured: a router refuses the class"
            yield PolicyFinding("error", "class-map-missing", message, MQC, line)
    for name in sorted(configuration.missing_policies):
        lines = (each.number for each in configuration.reading.executed if each.text.endswith(f" {name}"))
        message = f"policy-map {name} is not configured: a router refuses the line that names it"
        yield PolicyFinding("error", "policy-map-missing", message, MQC, next(lines, 0))


def _class_line(configuration: Configuration, name: str) -> int:
    lines = (
        each.number
        for each in configuration.reading.executed
        if each.text in (f"class {name}", f"match class-map {name}")
    )
    return next(lines, 0)


RULES: tuple[Callable[[Subject], Iterator[PolicyFinding]], ...] = (
    find_refused_lines,
    interface_findings.find_queueing_on_input,
    find_missing_objects,
    class_findings.find_missing_access_lists,
    interface_findings.find_port_shapers,
    interface_findings.find_port_shapers_below_tunnels,
    interface_findings.find_port_channels_without_aggregate,
    class_findings.find_oversubscription,
    class_findings.find_small_bursts,
    class_findings.find_policer_before_shaper,
    class_findings.find_fast_shapers,
    class_findings.find_long_queues,
    class_findings.find_thresholds_above_limit,
    interface_findings.find_bandwidth_below_line,
    interface_findings.find_remaining_without_shaper,
    class_findings.find_policers_of_other_base,
    class_findings.find_unlimited_priority,
    interface_findings.find_percent_of_default_bandwidth,
    class_findings.find_ef_without_priority,
    class_findings.find_classes_without_packets,
    class_findings.find_classes_behind_tunnels,
    interface_findings.find_untrusted_ports,
    interface_findings.find_unattached_policies,
    interface_findings.find_other_limiters,
)
