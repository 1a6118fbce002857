"""The answer to a pasted configuration: values, findings and unread lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from qoslab.ios.model.catalyst import FULL_LIMIT
from qoslab.ios.model.device import Family
from qoslab.ios.model.generations import GENERATIONS
from qoslab.model.generation import Generation
from qoslab.policy.class_values import PolicyValues, flatten_values
from qoslab.policy.effective import effective_policies
from qoslab.policy.findings import find_policy_problems
from qoslab.policy.ignored import IgnoredLine, ignored_lines
from qoslab.policy.pasted_configuration import Configuration, read_configuration
from qoslab.policy.policy_finding import PolicyFinding, Subject
from qoslab.policy.rate import format_list

OPEN_NOTE = "No `version` line: release assumed; choose one with --model."


@dataclass(frozen=True)
class PolicyAnswer:
    """Values and findings of one configuration."""

    release: str
    generation: Generation
    family: Family
    notes: tuple[str, ...]
    policies: tuple[PolicyValues, ...]
    ports: tuple[str, ...]
    """Ports of a switch with QoS settings, one line each."""
    findings: tuple[PolicyFinding, ...]
    ignored: tuple[IgnoredLine, ...]

    @property
    def errors(self) -> int:
        """Number of findings of severity error."""
        return sum(each.severity == "error" for each in self.findings)


def answer_policy(
    pasted: str,
    *,
    rate_bps: int | None = None,
    rtt_s: float | None = None,
    family: Family | None = None,
    generation: Generation | None = None,
    source: str = "input",
) -> PolicyAnswer:
    """Return the answer for a pasted configuration. Raise UserError if it has no policy of Cisco IOS."""
    configuration = read_configuration(pasted, family=family, generation=generation, source=source)
    policies = effective_policies(configuration, rate_bps)
    device = configuration.device
    return PolicyAnswer(
        configuration.release,
        device.generation,
        device.hardware.family,
        tuple(_answer_notes(configuration, chosen=generation is not None)),
        tuple(policies),
        tuple(_port_settings(configuration)),
        tuple(find_policy_problems(Subject(configuration, policies, rtt_s))),
        tuple(ignored_lines(configuration)),
    )


def _answer_notes(configuration: Configuration, *, chosen: bool) -> Iterator[str]:
    if configuration.device.switch is not None:
        yield "Rules: Catalyst 3750, IOS 12.2(55)SE"
        return
    version = f" (version {configuration.release})" if configuration.release else ""
    yield f"Rules: {GENERATIONS[configuration.device.generation].title}{version}"
    if not configuration.release and not chosen:
        yield OPEN_NOTE


def _port_settings(configuration: Configuration) -> Iterator[str]:
    """Yield the QoS settings of a switch's ports; ports with equal settings share a line."""
    device = configuration.device
    if device.switch is None or not device.switch.enabled:
        return
    groups: dict[str, list[str]] = {}
    for interface in device.interfaces.values():
        port = interface.port
        if port is None:
            continue
        trust = f"trust {port.trust}" if port.trust else "no trust"
        priority = ", queue 1 priority" if port.priority_queue else ""
        limit = f", limit {port.limit} %" if port.limit != FULL_LIMIT else ""
        share, shape = (" ".join(map(str, each)) for each in (port.share, port.shape))
        text = f"{trust}, share {share}, shape {shape}{priority}{limit}, queue-set {port.queue_set}"
        groups.setdefault(text, []).append(interface.name)
    for text, names in groups.items():
        yield f"{format_list(names)}: {text}"


def to_json(answered: PolicyAnswer) -> dict[str, Any]:
    """Return the answer as plain values; a rate is in b/s, or a share of a line whose rate is unknown."""

    def plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(items)

    return asdict(answered, dict_factory=plain) | {"errors": answered.errors}


def class_differences(old: PolicyAnswer, new: PolicyAnswer) -> list[str]:
    """Return the class values that changed, one sentence each."""
    before, after = _answer_values(old), _answer_values(new)
    found = []
    for key in dict.fromkeys((*before, *after)):
        name = f"{key[0]}, {' / '.join(key[1])}"
        if key not in after:
            found.append(f"{name}: removed")
        elif key not in before:
            found.append(f"{name}: added")
        else:
            was, now = before[key], after[key]
            found += [
                f"{name}: {_value_label(each)}: {was.get(each, '-')} -> {now.get(each, '-')}"
                for each in dict.fromkeys((*was, *now))
                if was.get(each, "-") != now.get(each, "-")
            ]
    return found


LABELS = {
    "priority": "priority level",
    "guaranteed": "guaranteed rate",
    "maximum": "maximum rate",
    "busy": "rate when all are busy",
    "wait_ms": "longest wait in ms",
    "police": "policer",
    "shape": "shaper",
    "red": "WRED",
    "marks": "marking",
}


def _value_label(name: tuple[str, ...]) -> str:
    words = [LABELS.get(name[0], name[0]), *(part.replace("_", " ") for part in name[1:])]
    return " ".join(words)


def _answer_values(answered: PolicyAnswer) -> dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], str]]:
    made: dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], str]] = {}
    for policy in answered.policies:
        where = f"{policy.interface} {policy.direction}" if policy.interface else f"policy-map {policy.policy}"
        for path, name, text in flatten_values(policy):
            made.setdefault((where, path), {})[name] = text
    return made
