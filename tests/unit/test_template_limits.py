"""Limits of a template: one step more is refused by the limit itself, not by one behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile_files import TEMPLATED
from qoslab.errors import ExperimentError
from qoslab.schema import load_experiment

VALUE, RANGE, WORK = 65_536, 10_000, 200_000
"""Copies of the limits, so that a change of one is noticed."""
GROWING_TEXT = "{% set x = '" + "a" * 8192 + "' %}{% set x = x" + " ~ x" * 7
"""Value of the greatest permitted length; later operations may make it longer."""
LOOP = "{% for i in range(999) %}"
WITHIN = {
    "value": GROWING_TEXT + " %}hostname R9\n",
    "range": f"{{% for i in range({RANGE}) %}}{{% endfor %}}hostname R9\n",
    "work": f"{LOOP}{{% endfor %}}hostname R9\n",
}
BEYOND = {
    "value": (GROWING_TEXT + " ~ 'a' %}", f"one of its values has {VALUE + 1} characters"),
    "range": (
        f"{{% for i in range({RANGE + 1}) %}}{{% endfor %}}",
        f"a range of more than {RANGE} numbers",
    ),
    "work": (f"{LOOP}{LOOP}{{% endfor %}}{{% endfor %}}", f"it does more than {WORK} steps"),
}


def write_template(folder: Path, template: str) -> Path:
    (folder / "e.yml").write_text(TEMPLATED)
    (folder / "t.j2").write_text(template)
    return folder / "e.yml"


@pytest.mark.parametrize("limit", WITHIN)
def test_template_at_its_limits_is_accepted(tmp_path: Path, limit: str) -> None:
    assert load_experiment(write_template(tmp_path, WITHIN[limit])).name == "e"


@pytest.mark.parametrize("limit", BEYOND)
def test_template_beyond_a_limit_is_refused_by_it(tmp_path: Path, limit: str) -> None:
    text, answer = BEYOND[limit]
    file = write_template(tmp_path, text)
    with pytest.raises(ExperimentError) as raised:
        load_experiment(file)
    assert any(answer in finding.message for finding in raised.value.findings), raised.value.findings
