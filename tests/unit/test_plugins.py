"""Plugins of another package behind entry points: found, checked, used, and named if they do not load."""

from __future__ import annotations

import configparser
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.shell_completion import ShellComplete

from qoslab import cli, conformance
from qoslab.analysis.metric_functions import metric_functions
from qoslab.analysis.missing import Missing
from qoslab.exchange.plugin_figures import FIGURES
from qoslab.model.metrics import METRICS
from qoslab.platforms import PLATFORMS
from qoslab.results import tables
from qoslab.system import plugins
from qoslab.system.plugins import SKIPPED_PLUGINS, PluginError, installed_plugins, plugin_package
from qoslab.traffic import TOOLS, find_tool
from verdicts import newest_run, status_of

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "tests" / "plugin"
"""Installed package: its modules, and next to them the metadata with its entry points."""
EXPERIMENT = (TOP / "experiments" / "policing-vs-shaping.yml").read_text(encoding="utf-8")


def _forget_plugins() -> None:
    installed_plugins.cache_clear()
    SKIPPED_PLUGINS.clear()
    for each in (TOOLS, PLATFORMS, METRICS, FIGURES):
        each._loaded.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_qos"]:
        del sys.modules[name]


@pytest.fixture
def acme_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.syspath_prepend(PACKAGE)
        _forget_plugins()
        yield
    _forget_plugins()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a folder whose experiment is that of the article, with the router and the tool of the other package."""
    shutil.copytree(TOP / "experiments" / "templates", tmp_path / "experiments" / "templates")
    shutil.copytree(TOP / "reports" / "published", tmp_path / "reports" / "published")
    text = EXPERIMENT.replace("platform: ios", "platform: bsd").replace("tool: iperf3,", "tool: ramp,")
    assert text.count("bsd") == 1 and text.count("ramp") >= 1
    (tmp_path / "experiments" / "mine.yml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_plugins_are_loaded_only_on_request(acme_package: None) -> None:
    assert {*TOOLS} == {"iperf3", "iperf", "flood", "ramp", "broken", "hollow"}
    assert "broken" in TOOLS and "ramp" in TOOLS and "bsd" in PLATFORMS
    assert "acme_qos" not in sys.modules
    assert find_tool("ramp").name == "ramp" and "acme_qos" in sys.modules
    assert plugin_package(installed_plugins("tools")["ramp"]) == "acme-qos 1.2"


def test_plugin_cannot_replace_a_built_in_name(acme_package: None) -> None:
    assert find_tool("iperf3") is TOOLS.own["iperf3"]
    assert TOOLS.fingerprint("iperf3") == ""
    assert TOOLS.fingerprint("ramp").startswith("tool ramp: acme-qos 1.2, SHA-256 ")


def test_broken_plugin_is_reported_with_its_package(acme_package: None) -> None:
    with pytest.raises(
        PluginError, match=r'the tool "broken" of the package acme-qos 1\.2 .* cannot be loaded: Module'
    ):
        find_tool("broken")
    with pytest.raises(PluginError, match=r"acme-qos 1\.2 .* is not valid: it has no check; .*; its name is \"hole\""):
        find_tool("hollow")
    assert [name for name, _ in TOOLS.working_items()] == ["iperf3", "iperf", "flood", "ramp"]
    assert set(SKIPPED_PLUGINS) == {("tools", "broken"), ("tools", "hollow")}


def test_experiment_runs_with_a_plugin(
    acme_package: None, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "mine", "--lab", "simulated", "--duration", "1s", "--arm", "policed"]
    status = cli.main(words)
    assert status == status_of(newest_run(Path())) in (0, 1)
    output = capsys.readouterr()
    assert "The run is valid" in output.out
    # One metric fails to load: the others are available, and it is reported once.
    assert output.err.count('plug-in skipped: the metric "acme.gone" of the package acme-qos 1.2') == 1
    assert cli.main(["figure", "policing-vs-shaping"]) == 0
    listed = capsys.readouterr().out
    assert "acme.slowest(transfer)" in listed and " Goodput of each stream\n" in listed
    assert "acme.fails" not in listed
    assert cli.main(["figure", "policing-vs-shaping", "acme-shares"]) == 0
    assert (project / "acme-shares.svg").read_text().startswith("<?xml")
    # Without the package the word is unknown, and the run reports the missing package.
    monkeypatch.setattr(plugins, "installed_plugins", lambda kind: {})
    monkeypatch.setattr("qoslab.model.experiment.installed_plugins", lambda kind: {})
    assert cli.main(["validate", "mine"]) == 2
    assert 'R1.platform: found "bsd", expected one of host, ios, engine, tc' in capsys.readouterr().err
    assert cli.main(["report", "policing-vs-shaping"]) == 2
    assert "the package that adds it is not installed" in capsys.readouterr().err


def test_figure_of_a_plugin_is_completed(acme_package: None) -> None:
    shell = ShellComplete(cli.command_group, {}, "qoslab", "_QOSLAB_COMPLETE")
    offered = [item.value for item in shell.get_completions(["figure", "policing-vs-shaping"], "acme")]
    assert offered == ["acme-shares"]
    assert "acme_qos" not in sys.modules, "nobody waits at a key for another package to load"


def test_metric_of_a_failing_function_is_missing_with_the_reason(acme_package: None) -> None:
    (function,) = [each for each in metric_functions("flows") if "acme.fails" in each.names]
    selection = SimpleNamespace(rows=tables.plain("flows", [{"stream": 1}]))
    ((name, figure),) = function.call(selection)  # type: ignore[arg-type]
    assert name == "acme.fails"
    assert figure == Missing("its function failed: ZeroDivisionError: division by zero")


def test_commands_without_the_plugin_work(
    acme_package: None, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["validate", "policing-vs-shaping"]) == 0
    assert "left out" not in capsys.readouterr().err
    text = EXPERIMENT.replace("tool: iperf3,", "tool: broken,")
    (project / "experiments" / "mine.yml").write_text(text, encoding="utf-8")
    assert cli.main(["validate", "mine"]) == 2
    assert 'qoslab: the tool "broken" of the package acme-qos 1.2' in capsys.readouterr().err


def test_page_shows_this_package() -> None:
    """Compare with docs/internals/extending.md: it shows the whole package, and runs when the site is built."""
    page = (TOP / "docs" / "internals" / "extending.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```\w+\n# acme/(\S+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    for name in ("acme_qos/__init__.py", "acme_qos/figures.py"):
        assert shown[name] == (PACKAGE / name).read_text(encoding="utf-8")
    points = tomllib.loads(shown["pyproject.toml"])["project"]["entry-points"]
    ours = configparser.ConfigParser()
    ours.read(PACKAGE / "acme_qos-1.2.dist-info" / "entry_points.txt", encoding="utf-8")
    assert {(kind, *point) for kind, each in points.items() for point in each.items()} == {
        (kind, *point) for kind in ours.sections() for point in ours[kind].items() if _project_holds(*point)
    }


def _project_holds(word: str, named: str) -> bool:
    return word not in TOOLS.own and not re.search(r"faulty|nothing_there|GONE", named)


def test_conformance_names_each_failed_requirement(acme_package: None, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, name in (
        ("tools", "ramp"),
        ("platforms", "bsd"),
        ("metrics", "acme.slowest"),
        ("figures", "acme-shares"),
    ):
        conformance.require(kind, name)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"the metric acme\.fails:\nfor a table without rows: ZeroDivisionError"):
        conformance.require("metrics", "acme.fails")
    assert list(conformance.plugin_problems("tools", "iperf3")) == [
        "the name is already used by a built-in tool of qoslab"
    ]
    assert list(conformance.plugin_problems("figures", "nothing")) == [
        'no package of this environment has an entry point "nothing" in the group qoslab.figures'
    ]
    assert conformance.main() == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("differs")] == [
        *(f"differs  tool {name}, of acme-qos 1.2" for name in ("broken", "hollow", "iperf3")),
        *(f"differs  metric {name}, of acme-qos 1.2" for name in ("acme.fails", "acme.gone")),
    ]


@pytest.mark.parametrize("name", ["iperf3", "iperf", "flood"])
def test_built_in_tools_conform(name: str) -> None:
    assert list(conformance.tool_problems(name, TOOLS[name])) == []


@pytest.mark.parametrize("name", ["host", "ios", "engine"])
def test_built_in_platforms_conform(name: str) -> None:
    assert list(conformance.platform_problems(name, PLATFORMS[name])) == []
