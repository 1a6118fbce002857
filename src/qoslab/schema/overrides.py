"""`--set PATH=VALUE`: changes to an experiment from the command line.

PATH consists of keys joined by dots: `duration`, `arms.policed.configure.R1.variables.cir`. An item of a list is named
by its `name` or its index from 0. If the first word is a node and no key of the file, it stands for that node:
`R1.platform` is `topology.nodes.R1.platform`. VALUE is YAML: `10 s`, `1000000`, `[before, after]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qoslab.errors import ExperimentError, Finding, did_you_mean
from qoslab.model.experiment import Experiment
from qoslab.schema.document import Document, Place, Steps, parse_value
from qoslab.schema.structure import wants_text

KEYS = tuple(field.alias or name for name, field in Experiment.model_fields.items())


def apply_overrides(document: Document, sets: Mapping[str, str]) -> None:
    """Change the document in place. Raise `ExperimentError`, which lists every option with an unknown path."""
    findings: list[Finding] = []
    for path, text in sets.items():
        option = f"--set {path}={text}"
        try:
            _apply(document, path, text, Place(option=option))
        except ExperimentError as error:
            findings.extend(error.findings)
    if findings:
        raise ExperimentError(findings=findings)


def parse_set(option: str) -> tuple[str, str]:
    """Split `PATH=VALUE`. Raise `ExperimentError` for any other form."""
    path, equals, text = option.partition("=")
    if not equals or not path.strip() or not text.strip():
        place = Place(option=f"--set {option}")
        raise ExperimentError(findings=[place.finding("", f'found "{option}", expected PATH=VALUE')])
    return path.strip(), text.strip()


def _apply(document: Document, path: str, text: str, place: Place) -> None:
    words = path.split(".")
    nodes = as_mapping(as_mapping(document.data).get("topology")).get("nodes")
    if words[0] not in KEYS:
        if _longest_key(as_mapping(nodes), words) is None:
            known = (*KEYS, *as_mapping(nodes))
            raise _override_error(
                place, words[0], f'found "{words[0]}", expected a key of the file or a node', words[0], known
            )
        words = ["topology", "nodes", *words]
    current: Any = document.data
    steps: Steps = ()
    while words:
        last = False
        if isinstance(current, dict):
            length = _longest_key(current, words) or 1
            step: str | int = ".".join(words[:length])
            words = words[length:]
            last = not words
            if not last:
                current.setdefault(step, {})
        elif isinstance(current, list):
            names = [item.get("name") if isinstance(item, dict) else None for item in current]
            length = _longest_key(dict.fromkeys(filter(None, names)), words) or 1
            word = ".".join(words[:length])
            words = words[length:]
            if word in names:
                step = names.index(word)
            elif word.isdigit() and int(word) < len(current):
                step = int(word)
            else:
                known_names = [name for name in names if isinstance(name, str)]
                expected = f"one of {', '.join(known_names)}" if known_names else f"an index below {len(current)}"
                raise _override_error(
                    place, document.path(steps), f'found "{word}", expected {expected}', word, known_names
                )
            last = not words
        else:
            raise _override_error(place, document.path(steps), f'found "{current}", which has no key "{words[0]}"')
        steps = (*steps, step)
        if last:
            value = parse_value(text, place.option)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            current[step] = text if number and wants_text(steps) else value
            break
        current = current[step]
    for places in (document.values, document.keys):
        for stale in [known for known in places if known[: len(steps)] == steps]:
            del places[stale]
        places[steps] = place


def as_mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, dict) else {}


def _longest_key(mapping: Mapping[str, Any], words: list[str]) -> int | None:
    """Return the number of words that form a key, as names may contain dots; None if no key matches."""
    return next((n for n in range(len(words), 0, -1) if ".".join(words[:n]) in mapping), None)


def _override_error(
    place: Place, path: str, message: str, word: str = "", known: Iterable[str] = ()
) -> ExperimentError:
    return ExperimentError(findings=[place.finding(path, message, did_you_mean(word, known))])
