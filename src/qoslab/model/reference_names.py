"""Names by which an experiment refers to its nodes, TCP profiles and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from qoslab.model.comparison import PublishedValue
from qoslab.model.experiment import TCP_PROFILES, Experiment, Flow
from qoslab.model.metrics import Reference

Steps = tuple[str | int, ...]


def unknown_names(experiment: Experiment) -> Iterator[tuple[Steps, str]]:
    """Yield the unknown names, each with its place and message.

    A file with an unknown name is refused with its line (`qoslab.schema`); this check is for the records of a run.
    """
    known = experiment.topology.nodes
    for steps, name in _unknown_nodes(experiment):
        if name not in known:
            yield steps, f'found "{name}", expected a node of the topology'
    settings = (("tcp",), experiment.tcp), *((("arms", at, "tcp"), arm.tcp) for at, arm in enumerate(experiment.arms))
    for steps, tcp in settings:
        if isinstance(tcp, str) and tcp not in TCP_PROFILES:
            yield steps, f'found "{tcp}", expected settings or one of {", ".join(TCP_PROFILES)}'
    for steps, name in _named_metrics(experiment):
        if not _is_metric(name):
            yield steps, f'found "{name}", expected a metric'


def unknown_published_metrics(published: Iterable[PublishedValue]) -> Iterator[tuple[Steps, str]]:
    """Yield the metrics of published values that cannot be measured. A published value may lack a metric."""
    for index, value in enumerate(published):
        if value.metric and not _is_metric(value.metric):
            yield ("published", index, "metric"), f'found "{value.metric}", expected a metric'


def references(experiment: Experiment, published: Iterable[PublishedValue]) -> list[Reference]:
    """Return every metric that an experiment and its published values name."""
    names = [value.metric for value in published if value.metric]
    names += [name for _, name in _named_metrics(experiment)]
    return [Reference.parse(name) for name in dict.fromkeys(names)]


def _named_metrics(experiment: Experiment) -> Iterator[tuple[Steps, str]]:
    """Yield each metric that an experiment names, with its place."""
    for key in ("compare", "enough", "graphs", "notes"):
        yield from _referenced_metrics(getattr(experiment, key), (key,))
    for at, note in enumerate(experiment.notes):
        yield from ((("notes", at, "text"), value.metric) for value in note.text_values)
    if (answer := experiment.answer) is not None:
        yield from ((("answer", "bars"), name) for name in answer.bar_metrics)
        yield from ((("answer", "text"), value.metric) for value in answer.values)


def _unknown_nodes(experiment: Experiment) -> Iterator[tuple[Steps, str]]:
    for index, link in enumerate(experiment.topology.links):
        for side, end in enumerate(link.ends):
            yield ("topology", "links", index, "ends", side, "node"), end.node
    yield from _unknown_flow_names(("traffic",), experiment.traffic)
    yield from ((("configure", name), name) for name in experiment.configure)
    for number, arm in enumerate(experiment.arms):
        yield from _unknown_flow_names(("arms", number, "traffic"), arm.traffic or ())
        yield from ((("arms", number, "configure", name), name) for name in arm.configure)
    for index, probe in enumerate(experiment.probes):
        yield ("probes", index, "from"), probe.source
        yield ("probes", index, "to"), probe.destination
    for index, capture in enumerate(experiment.captures):
        yield ("captures", index, "node"), capture.node
    for index, observation in enumerate(experiment.observe):
        yield ("observe", index, "node"), observation.node


def _unknown_flow_names(here: Steps, flows: Iterable[Flow]) -> Iterator[tuple[Steps, str]]:
    for index, flow in enumerate(flows):
        yield (*here, index, "from"), flow.source
        yield (*here, index, "to"), flow.destination


def _referenced_metrics(value: object, steps: Steps) -> Iterator[tuple[Steps, str]]:
    """Yield each metric in a value, single or in lists, with its place. `show` lists metrics by arm."""
    if isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _referenced_metrics(inner, (*steps, index))
    elif isinstance(value, BaseModel):
        for key in type(value).model_fields:
            inner, here = getattr(value, key), (*steps, key)
            if key in ("metric", "metrics"):
                yield from ((here, name) for name in (inner if isinstance(inner, tuple) else (inner,)))
            elif key == "show":
                yield from (((*here, arm), name) for arm, names in inner.items() for name in names)
            else:
                yield from _referenced_metrics(inner, here)


def _is_metric(name: str) -> bool:
    try:
        Reference.parse(name)
    except KeyError:
        return False
    return True
