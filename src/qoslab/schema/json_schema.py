"""The JSON Schema of experiment files, for editors: `docs/schema/experiment.schema.json`."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from qoslab.model import comparison, expectations, experiment, matrix
from qoslab.model.experiment import TCP_PROFILES, Experiment
from qoslab.model.metrics import METRICS
from qoslab.platforms import MODELS
from qoslab.traffic import TOOLS


def experiment_schema() -> dict[str, Any]:
    """The schema (draft 2020-12). Names from the registries are listed, so that editors complete them."""
    schema = Experiment.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    for name, field, text in _field_docstrings():
        (schema if name == "Experiment" else definitions[name])["properties"][field]["description"] = text
    _suggest(definitions["Flow"]["properties"]["tool"], TOOLS.own)
    definitions["Flow"]["required"].remove("tool")
    definitions["Flow"]["anyOf"] = [{"required": ["tool"]}, {"required": ["kind"]}]
    for name in ("Expectation", "Average", "Pair", "SweepGraph"):
        _suggest_metrics(definitions[name]["properties"]["metric"])
    for branch in definitions["Node"]["properties"]["model"]["anyOf"]:
        if branch.get("type") == "string":
            _suggest(branch, MODELS)
    for owner in (schema, definitions["Arm"]):
        _suggest_profiles(owner["properties"]["tcp"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "qoslab experiment",
        **_with_placeholders(_without_titles(schema)),
    }


PLACEHOLDER = {"type": "string", "pattern": r"\$\(.+\)"}
"""A parameter of a sweep, or an expression of some, may stand wherever a single value does."""


def _with_placeholders(schema: Any) -> Any:
    """Let each property that is no free text, list or mapping be a placeholder too."""
    if isinstance(schema, list):
        return [_with_placeholders(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _with_placeholders(value) for key, value in schema.items()}
    if isinstance(changed.get("properties"), dict):
        changed["properties"] = {name: _or_placeholder(each) for name, each in changed["properties"].items()}
    return changed


def _or_placeholder(schema: dict[str, Any]) -> dict[str, Any]:
    alternatives = schema.get("anyOf", [])
    if any(_is_single(each) for each in alternatives):
        # A value that may be absent.
        return {**schema, "anyOf": [*alternatives, PLACEHOLDER]}
    if not _is_single(schema):
        return schema
    about = {key: value for key, value in schema.items() if key in ("description", "default")}
    return {"anyOf": [{key: value for key, value in schema.items() if key not in about}, PLACEHOLDER], **about}


def _is_single(schema: dict[str, Any]) -> bool:
    """Return whether it is that of one value of a certain form."""
    return schema.get("type") in ("integer", "number", "boolean") or bool({"pattern", "enum"} & schema.keys())


def _without_titles(schema: Any) -> Any:
    """Drop the titles that pydantic makes of field names; a property that is called `title` stays."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
        return {key: _without_titles(value) for key, value in kept.items()}
    return [_without_titles(each) for each in schema] if isinstance(schema, list) else schema


def _field_docstrings() -> Iterator[tuple[str, str, str]]:
    """Class, key and docstring of each field of the model.

    pydantic could do this when the classes are made, but every start of the command would pay for it.
    """
    modules = (experiment, comparison, expectations, matrix)
    sources = [(module, ast.parse(inspect.getsource(module)).body) for module in modules]
    for module, owner in ((module, owner) for module, body in sources for owner in body):
        if not isinstance(owner, ast.ClassDef):
            continue
        fields = getattr(getattr(module, owner.name), "model_fields", {})
        for statement, following in zip(owner.body, owner.body[1:], strict=False):
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    if name in fields:
                        yield owner.name, fields[name].alias or name, inspect.cleandoc(text)


def _suggest(schema: dict[str, Any], known: Mapping[str, Any]) -> None:
    schema["enum"] = list(known)


def _suggest_metrics(schema: dict[str, Any]) -> None:
    """Every metric, and every metric with a selector."""
    names = "|".join(re.escape(name) for name in METRICS.own)
    schema["anyOf"] = [{"enum": list(METRICS.own)}, {"pattern": rf"^({names})(\([^()]+\))?( @ [a-z_]+ [^()@]+)?$"}]


def _suggest_profiles(schema: dict[str, Any]) -> None:
    """Profile names, at any depth the union with the settings has them."""
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        if branch.get("type") == "string":
            _suggest(branch, dict(TCP_PROFILES))
        else:
            _suggest_profiles(branch)


def schema_text() -> str:
    """The schema as it is committed."""
    return json.dumps(experiment_schema(), indent=2, ensure_ascii=False) + "\n"
