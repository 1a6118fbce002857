"""Metrics that an experiment names anywhere: each of them is computed."""

from __future__ import annotations

import json

import pytest

from qoslab.model.experiment import Experiment
from qoslab.model.reference_names import references, unknown_names

BASE = {
    "name": "named",
    "title": "Named metrics",
    "duration": "10 s",
    "topology": {"nodes": {}, "links": []},
    "arms": [{"name": "a"}],
    "traffic": [],
}
"""An experiment without references."""
GRAPH = {"title": "g", "metric": "class.share(DATA)", "arms": ["a"], "over": "p"}
PLACES = {
    "graph": {"graphs": [GRAPH]},
    "note": {"notes": [{"title": "n", "text": "{a class.share(DATA)}"}]},
    "note table": {"notes": [{"title": "n", "table": {"arms": ["a"], "metrics": ["class.share(DATA)"]}}]},
    "answer": {"answer": {"text": "{a class.share(DATA)}"}},
    "bars": {"answer": {"text": "", "bars": "class.share(DATA)"}},
    "stopping rule": {"enough": {"metric": "class.share(DATA)", "interval": "5 %", "at_least": 2}},
    "published table": {
        "compare": {
            "tables": [
                {
                    "title": "t",
                    "by": "p",
                    "values": [1],
                    "columns": [{"title": "c", "arm": "a", "metrics": ["class.share(DATA)"]}],
                }
            ]
        }
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_metric_is_computed_wherever_it_is_named(place: str) -> None:
    experiment = Experiment.model_validate_json(json.dumps({**BASE, **PLACES[place]}))
    assert [str(each) for each in references(experiment, ())] == ["class.share(DATA)"]
    assert not list(unknown_names(experiment))
