"""Conversion of plain values into the model; every invalid key, type and bound becomes a finding."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network, ip_network
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from qoslab.errors import Finding, did_you_mean, format_alternatives, format_found
from qoslab.model.experiment import Experiment
from qoslab.model.units import QuantityError
from qoslab.schema.document import Document, Step, Steps
from qoslab.schema.kinds import expand_kinds

_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping (KEY: VALUE)",
    "model_type": "a mapping (KEY: VALUE)",
    "model_attributes_type": "a mapping (KEY: VALUE)",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}
"""Expected values for pydantic's error types, in the words of the author of a file."""

_EXPECTED_TYPES: dict[Any, str] = {
    IPv4Address | IPv6Address: "an address such as 192.168.10.1 or 2001:db8:10::1",
    IPv4Interface: "an IPv4 address with prefix length such as 192.168.10.1/24",
    IPv4Network | IPv6Network: "a network such as 192.168.10.0/24 or 2001:db8:10::/64",
    IPv6Interface: "an IPv6 address with prefix length such as 2001:db8:10::1/64",
}
"""More precise expected values for some types of the model."""


def build(document: Document) -> tuple[Experiment | None, list[Finding]]:
    """Return the experiment and the findings; the experiment is None if it is invalid."""
    if not isinstance(document.data, dict):
        required = format_alternatives(name for name, field in Experiment.model_fields.items() if field.is_required())
        return None, [
            document.finding(
                (), f"found {format_found(document.data)}, expected a mapping with the keys {required[7:]}"
            )
        ]
    try:
        # Through JSON, since strict validation then takes lists for tuples and texts for addresses, and nothing else.
        experiment = Experiment.model_validate_json(
            json.dumps(expand_kinds(document.data)), by_alias=True, by_name=False
        )
    except ValidationError as error:
        return None, list(structure_findings(document, error.errors(include_url=False)))
    return experiment, []


def structure_findings(document: Document, errors: Iterable[ErrorDetails]) -> Iterator[Finding]:
    """Yield one finding for each place; the errors of all branches of a union are combined."""
    grouped: dict[tuple[Steps, bool], list[ErrorDetails]] = {}
    for error in errors:
        if _counts_valid_items_only(error):
            continue
        steps = _value_path(document.data, error)
        grouped.setdefault((steps, error["type"] in ("missing", "extra_forbidden")), []).append(error)
    found = [_structure_finding(document, steps, group) for (steps, _), group in grouped.items()]
    yield from sorted(found, key=lambda finding: (finding.option, finding.line, finding.column))


def _counts_valid_items_only(error: ErrorDetails) -> bool:
    """Return whether a sequence is too short only because its invalid items, which have findings, are not counted."""
    found = error["input"]
    return error["type"] == "too_short" and isinstance(found, list) and len(found) >= error["ctx"]["min_length"]


def _value_path(data: Any, error: ErrorDetails) -> Steps:
    """Return the path of the value in the file. pydantic's location also names union members, which are not in the
    file.
    """
    steps: list[Step] = []
    # For an invalid key, pydantic appends a marker to the location; a file may have a key with the marker's name.
    location = error["loc"][:-1] if _is_key_error(error) else error["loc"]
    for index, step in enumerate(location):
        last = index == len(location) - 1
        if isinstance(data, dict) and isinstance(step, str) and (step in data or (last and error["type"] == "missing")):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step] if step < len(data) else None
        else:
            continue
        steps.append(step)
    return tuple(steps)


def _is_key_error(error: ErrorDetails) -> bool:
    """Return whether the error is in a key, not in the value of the key."""
    return error["loc"][-1:] == ("[key]",) and error["type"] != "extra_forbidden"


def _structure_finding(document: Document, steps: Steps, group: list[ErrorDetails]) -> Finding:
    error = group[0]
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        if isinstance(steps[-1], int):
            return document.finding(
                steps[:-1], f"found {format_found(document.get(steps[:-1]))}, expected {steps[-1] + 1}"
            )
        # The place is the beginning of the mapping that lacks the key.
        place = document.place(steps[:-1])
        return place.finding(document.path(steps[:-1]), f'found no key "{steps[-1]}", which is required')
    if kind == "extra_forbidden":
        known = sorted(_known_keys(steps[:-1]))
        return document.finding(
            steps,
            f'found the unknown key "{steps[-1]}", expected {format_alternatives(known)}',
            did_you_mean(str(steps[-1]), known),
            at_key=True,
        )
    if _is_key_error(error):
        return document.finding(steps, f'found the name "{steps[-1]}", expected {_NAME}', at_key=True)
    value, found = error["input"], format_found(error["input"])
    if kind == "value_error" and isinstance(context.get("error"), QuantityError):
        return document.finding(steps, context["error"].message, context["error"].hint)
    if kind == "literal_error":
        known = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        return document.finding(
            steps, f"found {found}, expected {format_alternatives(known)}", did_you_mean(str(value), known)
        )
    if kind.startswith("union_tag_"):
        key = context["discriminator"].strip("'")
        known = [tag.strip("'") for tag in context.get("expected_tags", "").split(", ")]
        if kind == "union_tag_not_found":
            return document.finding(steps, f'found no key "{key}", which is required')
        tag = context["tag"]
        return document.finding(
            (*steps, key), f'found "{tag}", expected {format_alternatives(known)}', did_you_mean(tag, known)
        )
    if kind == "string_pattern_mismatch":
        expected = "an arm, or A/B for a ratio of two arms" if steps[-1] == "arm" else _NAME
        return document.finding(steps, f"found {found}, expected {expected}")
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return document.finding(steps, f"found the number {found}, expected a text", f'write "{found}", in quotes')
    if kind in ("too_short", "missing") or (kind == "too_long"):
        least, most = context.get("min_length"), context.get("max_length")
        bound = f"at least {least}" if least is not None else f"at most {most}"
        return document.finding(steps, f"found {format_found(value)}, expected {bound}")
    for word, text in (("ge", "at least"), ("le", "at most"), ("gt", "more than"), ("lt", "less than")):
        if word in context:
            return document.finding(steps, f"found {found}, expected {text} {context[word]}")
    if any("has host bits set" in each["msg"] for each in group):
        hint = f'did you mean "{_containing_network(str(value))}"?'
        return document.finding(steps, f"found {found}, expected a network without host bits", hint)
    by_type = [_EXPECTED_TYPES[each] for each in _model_types(steps) if each in _EXPECTED_TYPES]
    wanted = list(
        dict.fromkeys(by_type or [_EXPECTED.get(each["type"]) or _plain_message(each["msg"]) for each in group])
    )
    return document.finding(steps, f"found {found}, expected {' or '.join(wanted)}")


_NAME = "a name: a letter, then letters, digits, _ . -, at most 40 in all"


def _plain_message(message: str) -> str:
    """Convert pydantic's message so that it can follow `expected`."""
    return message.removeprefix("Input should be ").removeprefix("a valid ").removeprefix("Value error, ")


def wants_text(steps: Steps) -> bool:
    """Return whether the model takes a text there and no number, so that a number is read as the text of its digits."""
    members = _model_types(steps)
    return str in members and not {int, float} & set(members)


def _known_keys(steps: Steps) -> set[str]:
    """Return the keys that the model has there."""
    models = [each for each in _model_types(steps) if _is_model(each)]
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def _containing_network(value: str) -> IPv4Network | IPv6Network:
    """Return the network of an address with a prefix length."""
    return ip_network(value, strict=False)


def _model_types(steps: Steps) -> list[Any]:
    """Return the types that the model takes there, with unions split into their members."""
    annotations: list[Any] = [Experiment]
    for step in steps:
        annotations = [inner for annotation in annotations for inner in _inner_annotation(annotation, step)]
    return [member for annotation in annotations for member in _union_members(annotation)]


def _inner_annotation(annotation: Any, step: Step) -> Iterator[Any]:
    for member in _union_members(annotation):
        arguments = typing.get_args(member)
        if _is_model(member):
            yield from (f.annotation for name, f in member.model_fields.items() if (f.alias or name) == step)
        elif typing.get_origin(member) is dict:
            yield arguments[1]
        elif typing.get_origin(member) is tuple and isinstance(step, int):
            yield arguments[0] if arguments[-1] is Ellipsis else arguments[min(step, len(arguments) - 1)]


def _union_members(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, the inside of an `Annotated`, or the annotation itself."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _union_members(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for member in typing.get_args(annotation):
            yield from _union_members(member)
    else:
        yield annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
