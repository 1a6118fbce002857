"""Python interface, and the promise of its page."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sample_run

from levels import run_all_cases
from qoslab import api
from qoslab.analysis import analyse
from qoslab.errors import ExperimentError, UserError
from qoslab.model.units import Rate
from qoslab.report.page import build_page
from qoslab.results import tables

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs/reference/python.md").read_text(encoding="utf-8")
PLAIN = {
    *("repetition", "stream", "local_port", "timeouts", "rtt_count", "bandwidth_remaining_ratio", "priority_level"),
    *("police_dynamic_growths", "police_dynamic_shrinks", "queue_flows", "queue_max_flows", "queue", "threshold"),
    *("queue_conversations", "queue_max_conversations", "queue_max_active_conversations", "cells", "excluded"),
    *("conversation", "weight", "dscp", "voice_r", "pages", "pages_unfinished"),
}
"""Columns with plain numbers."""
OF_METRIC = {"metrics", "averages", "pairs"}
"""Tables whose values have the unit in their column `unit`."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> api.Run:
    return api.open_run(str(sample_run.make_run(tmp_path_factory.mktemp("runs")).path))


def test_validation_returns_arms_and_parameters() -> None:
    checked = api.load("tcp-friendly-policer")
    assert checked.name == "tcp-friendly-policer" and checked.arms == ("size", "grid")
    assert {"rtt", "pir", "bucket"} <= set(checked.parameters)
    changed = api.load(checked.file, sets={"title": "Mine"})
    assert changed.title == "Mine" and changed.file == checked.file


def test_invalid_input_raises_its_findings() -> None:
    with pytest.raises(ExperimentError, match="no such file or experiment"):
        api.load("nothing-like-it")
    with pytest.raises(UserError, match="duration: "):
        api.run("policing-vs-shaping", lab="simulated", duration="ten")
    with pytest.raises(UserError, match='lab: found "simulatd"'):
        api.run("policing-vs-shaping", lab="simulatd")


@pytest.mark.parametrize("word", ["jobs", "repetitions"])
@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
def test_invalid_number_is_reported(word: str, number: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"duration": "1 s", word: number}
    with pytest.raises(UserError, match=re.escape(f"{word}: found {number!r}, expected a number from 1")):
        api.run("policing-vs-shaping", lab="simulated", root=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("duration", [10, 0, 1.5, b"10 s", Rate.parse("10 b/s")])
def test_invalid_duration_is_reported(duration: Any, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=re.escape(f'duration: found {duration!r}, expected text with a unit, such as "10 s"')
    ):
        api.run("policing-vs-shaping", lab="simulated", duration=duration, root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_tables_have_units(run: api.Run) -> None:
    flows = run.table("flows")
    assert len(flows) == 8
    units = flows.attrs["units"]
    assert (units["goodput_bps"], units["bytes"], units["rtt_mean_ms"]) == ("b/s", "B", "ms")
    assert "traffic" not in units
    with pytest.raises(UserError, match=r'found table "flow", expected one of flows, hosts'):
        run.table("flow")


@pytest.mark.parametrize("name", tables.SCHEMAS)
def test_every_number_has_a_unit_or_needs_none(name: str) -> None:
    numbers = [field.name for field in tables.SCHEMAS[name] if str(field.type) in ("int64", "double")]
    if name not in OF_METRIC:
        assert [column for column in numbers if not tables.column_unit(column) and column not in PLAIN] == []


@pytest.mark.long
def test_api_provides_every_graph_of_the_report(run: api.Run) -> None:
    page = build_page(run.folder, analyse(run.folder))
    assert list(run.graphs()) == [graph.id for graph in page.graphs]
    assert [line.name for line in run.graph("lead").data] == [arm["title"] for arm in sample_run.EXPERIMENT["arms"]]
    with pytest.raises(UserError, match=r'found graph "led", expected one of lead, '):
        run.graph("led")


def test_api_page_lists_every_public_name() -> None:
    named = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    functions = {"load", "run", "open_run"}
    assert functions <= named and all(name in api.__all__ for name in functions)
    rest = {name for name in named - functions if name not in ("rtt",)}
    of_run = {name for name in rest if not hasattr(api.Run, name)}
    assert of_run <= {"folder"}
    for name in functions:
        row = re.search(rf"^\| `{name}\((.*?)\)`", PAGE, re.MULTILINE)
        assert row is not None
        listed = [word.strip("= ") for word in row[1].split(",")]
        parameters = list(inspect.signature(getattr(api, name)).parameters)
        assert [word for word in listed if word not in (parameters[0], "run")] == parameters[1:]


def test_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    if not run_all_cases():
        code = [part.replace('arms=["policed"]', 'arms=["policed"], duration="1 s"') for part in code]
        assert any("duration" in part for part in code)
    monkeypatch.chdir(tmp_path)
    exec("\n".join(code), {})
    printed = capsys.readouterr()
    assert "Policing versus shaping" in printed.out and "b/s" in printed.out and "io-policed-server" in printed.out
    assert (tmp_path / "runs/policing-vs-shaping/latest/report.html").is_file()
    assert printed.err == ""


def test_help_loads_nothing_but_click() -> None:
    """Check the imports of `qoslab --help` instead of its duration."""
    code = (
        "import sys; before = set(sys.modules); from qoslab.cli import main; main(['--help']); "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)), "
        "*sorted(name for name in sys.modules if name.startswith('qoslab')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = ["qoslab", "qoslab.cli", "qoslab.errors", "qoslab.system", "qoslab.system.printing"]
    assert done.stderr.split() == ["click", "qoslab", *ours]
