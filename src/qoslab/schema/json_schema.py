"""The JSON Schema of experiment files, for editors: `docs/schema/experiment.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from qoslab.model.experiment import TCP_PROFILES, Experiment
from qoslab.model.metrics import METRICS
from qoslab.platforms import MODELS
from qoslab.traffic import TOOLS


def experiment_schema() -> dict[str, Any]:
    """The schema (draft 2020-12). Names from the registries are listed, so that editors complete them."""
    schema = Experiment.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    _suggest(definitions["Flow"]["properties"]["tool"], TOOLS)
    _suggest(definitions["Expectation"]["properties"]["metric"], METRICS)
    for branch in definitions["Node"]["properties"]["model"]["anyOf"]:
        if branch.get("type") == "string":
            _suggest(branch, MODELS)
    for owner in (schema, definitions["Arm"]):
        _suggest_profiles(owner["properties"]["tcp"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "qoslab experiment",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _suggest(schema: dict[str, Any], known: dict[str, Any]) -> None:
    schema["enum"] = list(known)


def _suggest_profiles(schema: dict[str, Any]) -> None:
    """Profile names, at whatever depth the union with the settings has them."""
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        if branch.get("type") == "string":
            _suggest(branch, dict(TCP_PROFILES))
        else:
            _suggest_profiles(branch)


def schema_text() -> str:
    """The schema as it is committed."""
    return json.dumps(experiment_schema(), indent=2, ensure_ascii=False) + "\n"
