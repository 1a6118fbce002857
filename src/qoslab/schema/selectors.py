"""Check that a metric's selector names a part of the experiment: a traffic entry, or a class that an arm configures."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from qoslab.errors import ExperimentError, did_you_mean, format_alternatives
from qoslab.model.experiment import Arm, Configuration, Experiment
from qoslab.model.metrics import (
    COUNTERS,
    METRICS,
    SELECTOR_FORMS,
    CapturesSelector,
    ClassSelector,
    QueueSelector,
    Reference,
    SelectorError,
)
from qoslab.platforms import host_names, router_names

CLASS_DEFAULT = "class-default"
"""The class that every policy has."""


@dataclass(frozen=True)
class Problem:
    """Error of a metric, and the proposed metric."""

    message: str
    hint: str = ""


def unknown_metric(found: str, expected: str) -> Problem:
    """Return the error for an unknown metric."""
    base, at, moment = found.partition(" @ ")
    if at and base.partition("(")[0] in METRICS:
        forms = " or ".join(f"{name} {kind.EXAMPLES[0]}" for name, kind in COUNTERS.items())
        of = "" if METRICS[base.partition("(")[0]].selector == "class" else ", of a metric of classes"
        return Problem(f'found "{moment}", expected an instant: {forms}{of}')
    name, bracket, rest = found.partition("[")
    if bracket and name in METRICS:
        return Problem(f'found "{found}", expected {expected}', f'did you mean "{name}({rest.rstrip("]")})"?')
    name = found.partition("(")[0]
    if name in METRICS:
        return Problem(f'found "{found}", expected {expected}')
    # A common short form: loss for datagrams.loss.
    whole = [known for known in METRICS if known.endswith(f".{name}")]
    return Problem(f'found "{found}", expected {expected}', did_you_mean(name, whole or METRICS) or _quoted_name(whole))


def _quoted_name(whole: list[str]) -> str:
    return f'did you mean "{whole[0]}"?' if whole else ""


class Selectors:
    """Names that selectors may use in each arm. `render` returns the text of a configuration."""

    def __init__(self, experiment: Experiment, render: Callable[[Configuration], str]) -> None:
        self.experiment = experiment
        self.render = render

    def problems(self, reference: Reference, arms: Collection[str]) -> Iterator[Problem]:
        """Yield the errors in the first arm that has any; unknown arms are skipped."""
        if reference.selector is None:
            return
        for arm in self.experiment.arms:
            if arm.name in arms:
                found = list(self._arm_problem(reference, arm, reference.selector))
                yield from found
                if found:
                    return

    def _capture_problem(self, reference: Reference, selector: str) -> Iterator[Problem]:
        known = [point.name for point in self.experiment.captures]
        try:
            given = CapturesSelector.parse(selector)
        except SelectorError:
            yield Problem(f'found "{selector}" in {reference}, expected {SELECTOR_FORMS["captures"]}')
            return
        for word in (given.before, given.after):
            if word not in known:
                message = f'found "{word}" in {reference}, expected a capture point, {format_alternatives(known)}'
                yield Problem(message, did_you_mean(word, known))

    def _arm_problem(self, reference: Reference, arm: Arm, selector: str) -> Iterator[Problem]:
        named = {
            "traffic": (f"a traffic entry of {arm.name}", [flow.name for flow in self.experiment.arm_flows(arm)]),
            "host": ("a host", list(host_names(self.experiment.topology))),
            "probe": ("a probe", [probe.name for probe in self.experiment.probes]),
        }
        if reference.metric.selector in named:
            what, known = named[reference.metric.selector]
            if selector not in known:
                message = f'found "{selector}" in {reference}, expected {what}, {format_alternatives(known)}'
                yield Problem(message, did_you_mean(selector, known))
            return
        if reference.metric.selector == "captures":
            yield from self._capture_problem(reference, selector)
            return
        interfaces = {
            router: tuple(near.interface for _, near, _ in self.experiment.topology.node_links(router))
            for router in router_names(self.experiment.topology)
        }
        kind = reference.metric.selector
        form = SELECTOR_FORMS[kind]
        given: ClassSelector | QueueSelector
        try:
            given = (ClassSelector if kind == "class" else QueueSelector).parse(selector, interfaces)
        except SelectorError as error:
            expected = format_alternatives(error.known) if error.known else "each kind of word once"
            where = "" if kind == "interface" or error.word.isdecimal() else f" before the {kind}"
            message = f'found "{error.word}" in {reference}, expected {expected}{where} ({form})'
            yield Problem(message, did_you_mean(error.word, error.known))
            return
        if given.interface is not None and given.router is not None and given.interface not in interfaces[given.router]:
            near = interfaces[given.router]
            message = (
                f'found "{given.interface}" in {reference}, expected an interface of {given.router}, '
                f"{format_alternatives(near)}"
            )
            yield Problem(message, did_you_mean(given.interface, near))
            return
        if isinstance(given, QueueSelector):
            whole = (
                (given.queue is not None) if kind == "queue" else (given.interface is not None and given.queue is None)
            )
            if not whole:
                yield Problem(f'found "{selector}" in {reference}, expected {form}')
            return
        classes = self._classes(arm, given.router)
        for part in given.path.split("/") if classes and given.path != "*" else ():
            if part not in classes:
                message = (
                    f'found "{part}" in {reference}, expected a class that {arm.name} configures, '
                    f"{format_alternatives(classes)}"
                )
                yield Problem(message, did_you_mean(part, classes))

    def _classes(self, arm: Arm, router: str | None) -> list[str]:
        """Return the classes of the configured policy-maps; empty without a policy-map, as the router may already have
        some.
        """
        texts = []
        for device, layers in self.experiment.arm_configurations(arm).items():
            for layer in layers if router in (None, device) else ():
                try:
                    texts.append(self.render(layer))
                except ExperimentError:
                    return []  # the template itself is reported
        if not any(re.search(r"^policy-map ", text, re.MULTILINE) for text in texts):
            return []
        found = [name for text in texts for name in re.findall(r"^ +class (\S+)", text, re.MULTILINE)]
        return list(dict.fromkeys([*found, CLASS_DEFAULT]))
