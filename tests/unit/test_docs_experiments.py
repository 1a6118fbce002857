"""Pages on experiments: they explain every key, and their example and values are those of the model."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from qoslab.errors import ExperimentError
from qoslab.model.experiment import TCP_PROFILES
from qoslab.schema import experiment_schema, load_experiment

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "experiments.md"
TEXT = PAGE.read_text(encoding="utf-8")
EVERY_PAGE = TEXT + "".join((TOP / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("traffic", "sweeps"))
EXAMPLE = next(block for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL) if "\nname: " in block)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """Write the document's example as a file among templates."""
    shutil.copytree(TOP / "experiments" / "templates", tmp_path / "templates")
    file = tmp_path / "small.yml"
    file.write_text(EXAMPLE, encoding="utf-8")
    return file


def test_documented_example_is_valid(example: Path) -> None:
    assert [arm.name for arm in load_experiment(example).arms] == ["unrestricted", "policed"]


def test_documented_errors_equal_reported_errors(example: Path) -> None:
    example.write_text(EXAMPLE.replace("rate: 100 Mb/s", "rate: 100").replace("traffic:", "trafic:"), encoding="utf-8")
    with pytest.raises(ExperimentError) as raised:
        load_experiment(example)
    reported = [str(finding).replace(str(example), "experiments/small.yml") for finding in raised.value.findings]
    shown = re.findall(r"^experiments/small\.yml:.*$", TEXT, re.MULTILINE)
    assert len(shown) >= 2
    for line in shown:
        pattern = ".*".join(map(re.escape, line.split("…")))
        assert any(re.fullmatch(pattern, each) for each in reported), line


def test_every_key_is_explained() -> None:
    schema = experiment_schema()
    keys = {key for owner in (schema, *schema["$defs"].values()) for key in owner["properties"]}
    words = set(re.findall(r"[a-z_][a-z0-9_]*", EVERY_PAGE))
    assert keys <= words


def test_tcp_profiles_are_those_of_the_model() -> None:
    section = EVERY_PAGE.split("## TCP settings")[1].split("\n## ")[0]
    for key in ("congestion_control", "sack", "timestamps", "recovery", "early_retrans", "frto", "initcwnd", "rto_min"):
        row = re.search(rf"^\| `{key}` \| `?([^|`]+)`? \| `?([^|`]+)`? \|", section, re.MULTILINE)
        assert row is not None, key
        values = [str(getattr(TCP_PROFILES[name], key)).lower() for name in ("modern", "legacy-2008")]
        assert [cell.strip() for cell in row.groups()] == values
