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
    """Return the schema (draft 2020-12). It lists names from the registries, so that editors complete them."""
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
        **_allow_placeholders(_drop_titles(schema)),
    }


PLACEHOLDER = {"type": "string", "pattern": r"\$\(.+\)"}
"""A placeholder: a parameter of a sweep or an expression, allowed in place of any single value."""


def _allow_placeholders(schema: Any) -> Any:
    """Allow a placeholder for each property that is not free text, a list or a mapping."""
    if isinstance(schema, list):
        return [_allow_placeholders(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _allow_placeholders(value) for key, value in schema.items()}
    if isinstance(changed.get("properties"), dict):
        changed["properties"] = {name: _allow_placeholder(each) for name, each in changed["properties"].items()}
    return changed


def _allow_placeholder(schema: dict[str, Any]) -> dict[str, Any]:
    alternatives = schema.get("anyOf", [])
    if any(_is_single(each) for each in alternatives):
        # A value that may be absent.
        return {**schema, "anyOf": [*alternatives, PLACEHOLDER]}
    if not _is_single(schema):
        return schema
    about = {key: value for key, value in schema.items() if key in ("description", "default")}
    return {"anyOf": [{key: value for key, value in schema.items() if key not in about}, PLACEHOLDER], **about}


def _is_single(schema: dict[str, Any]) -> bool:
    """Return whether the schema describes a single value with a certain form."""
    return schema.get("type") in ("integer", "number", "boolean") or bool({"pattern", "enum"} & schema.keys())


def _drop_titles(schema: Any) -> Any:
    """Drop the titles that pydantic derives from field names, but keep properties called `title`."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
        return {key: _drop_titles(value) for key, value in kept.items()}
    return [_drop_titles(each) for each in schema] if isinstance(schema, list) else schema


def _field_docstrings() -> Iterator[tuple[str, str, str]]:
    """Yield class, key and docstring of each field of the model.

    pydantic could do this on class creation, but every start of the command would take longer.
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
    """Suggest every metric, alone and with a selector."""
    names = "|".join(re.escape(name) for name in METRICS.own)
    schema["anyOf"] = [{"enum": list(METRICS.own)}, {"pattern": rf"^({names})(\([^()]+\))?( @ [a-z_]+ [^()@]+)?$"}]


def _suggest_profiles(schema: dict[str, Any]) -> None:
    """Suggest profile names, at any nesting depth of the union with the settings."""
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        if branch.get("type") == "string":
            _suggest(branch, dict(TCP_PROFILES))
        else:
            _suggest_profiles(branch)


def schema_text() -> str:
    """Return the schema as text, as in the repository."""
    return json.dumps(experiment_schema(), indent=2, ensure_ascii=False) + "\n"
