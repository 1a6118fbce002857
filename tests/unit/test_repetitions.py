"""Repetitions: their sufficient and advised numbers."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sample_run import EXPERIMENT, make_run, reseal

from qoslab.analysis import analyse, stopping_reason
from qoslab.cli import command_group
from qoslab.errors import UserError
from qoslab.model.experiment import StoppingRule
from qoslab.results import CellSummary, RunFolder
from qoslab.schema import load_experiment

ENOUGH = StoppingRule.model_validate_json('{"metric": "goodput.sum", "interval": "5 %", "at_least": 3}')


def scale_values(content: Any, factor: float) -> Any:
    """Return iperf3's JSON with every count of bytes multiplied."""
    if isinstance(content, dict):
        return {
            key: round(value * factor) if key == "bytes" and isinstance(value, int) else scale_values(value, factor)
            for key, value in content.items()
        }
    return [scale_values(each, factor) for each in content] if isinstance(content, list) else content


@pytest.fixture
def repeated_run(tmp_path: Path) -> Callable[..., RunFolder]:
    """Return a run whose arm `policed` was repeated, with the given change of goodput each time."""

    def make(*factors: float, valid: bool = True, spared: str = "") -> RunFolder:
        # Captures would contradict them.
        run = make_run(tmp_path / "runs", experiment=EXPERIMENT | {"captures": []})
        manifest = run.manifest()
        first = run.cell("policed")
        summaries = [each for each in manifest.cells if each.arm == "policed"]
        for number, factor in enumerate(factors, start=2):
            cell = run.cell("policed", number)
            shutil.copytree(first.path, cell.path)
            record = json.loads((cell.path / "cell.json").read_text()) | {"repetition": number}
            record |= {} if valid else {"valid": False, "reasons": ["R1 was late"]}
            (cell.path / "cell.json").write_text(json.dumps(record))
            output = cell.traffic("transfer", "server", "json")
            output.write_text(json.dumps(scale_values(json.loads(output.read_text()), factor)))
            reasons = () if valid else ("R1 was late",)
            summaries.append(CellSummary(arm="policed", repetition=number, valid=valid, reasons=reasons))
        if spared:
            summaries.append(CellSummary(arm="policed", repetition=9, valid=False, spared=spared))
        others = [each for each in manifest.cells if each.arm != "policed"]
        run.write_manifest(manifest.model_copy(update={"cells": (*summaries, *others)}))
        reseal(run.path)
        return run

    return make


def test_agreeing_repetitions_meet_the_stopping_rule(repeated_run: Callable[..., RunFolder]) -> None:
    run = repeated_run(1.01, 0.99)
    why = stopping_reason(ENOUGH, [cell for cell in run.open().cells if cell.arm == "policed"])
    assert "after 3 repetitions" in why and "within 5 %" in why


def test_differing_repetitions_do_not_meet_the_stopping_rule(repeated_run: Callable[..., RunFolder]) -> None:
    run = repeated_run(1.4, 0.6)
    assert stopping_reason(ENOUGH, [cell for cell in run.open().cells if cell.arm == "policed"]) == ""


def test_invalid_repetitions_do_not_count(repeated_run: Callable[..., RunFolder]) -> None:
    run = repeated_run(1.0, 1.0, valid=False)
    assert stopping_reason(ENOUGH, [cell for cell in run.open().cells if cell.arm == "policed"]) == ""
    comparison = analyse(run).comparison
    row = comparison[(comparison["arm"] == "policed") & (comparison["metric"] == "goodput.sum")].iloc[0]
    assert (row["n"], row["excluded"]) == (1, 2)


def test_value_is_the_median_with_its_interval(repeated_run: Callable[..., RunFolder]) -> None:
    comparison = analyse(repeated_run(1.5, 0.9)).comparison
    row = comparison[(comparison["arm"] == "policed") & (comparison["metric"] == "goodput.sum")].iloc[0]
    # Student's t of two degrees of freedom, 4.3027, times the standard error of the median of 1, 1.5 and 0.9.
    assert row["low"] == pytest.approx(row["measured"] * (1 - 0.93058), rel=0.01)
    assert row["high"] == pytest.approx(row["measured"] * (1 + 0.93058), rel=0.01)
    assert (row["n"], row["over"]) == (3, "repetitions")


@pytest.mark.long
def test_skipped_repetitions_are_neither_missing_nor_invalid(repeated_run: Callable[..., RunFolder]) -> None:
    run = repeated_run(1.0, 1.0, spared="the interval of goodput.sum is narrow")
    outcome = analyse(run)
    assert outcome.valid, outcome.reasons


@pytest.mark.long
def test_advice_is_for_the_cells_that_were_repeated(
    repeated_run: Callable[..., RunFolder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = repeated_run(1.05, 0.95)
    reported = CliRunner().invoke(
        command_group, ["advise", str(run.path), "goodput.sum", "--difference", "5 %", "--json"]
    )
    assert reported.exit_code == 0, reported.output
    cells = json.loads(reported.stdout)["cells"]
    assert [(cell["cell"], cell["n"]) for cell in cells] == [("policed", 3)]
    assert cells[0]["repetitions"] == 17  # a difference of one standard deviation


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["goodput.some", "--difference", "5 %"], "goodput.some"),
        (["goodput.sum", "--difference", "5 ms"], "5 ms"),
        (["goodput.sum", "--difference", "0 %"], "above 0"),
        (["police.bc", "--difference", "1"], "a value in B"),
    ],
)
def test_impossible_advice_has_a_reason(
    repeated_run: Callable[..., RunFolder], arguments: list[str], message: str
) -> None:
    run = repeated_run(1.05)
    found = CliRunner().invoke(command_group, ["advise", str(run.path), *arguments])
    assert isinstance(found.exception, UserError)
    assert message in str(found.exception)


def test_stopping_rule_needs_extra_repetitions(tmp_path: Path) -> None:
    text = Path("experiments/policing-vs-shaping.yml").read_text()
    file = tmp_path / "experiment.yml"
    file.write_text(
        text.replace("../reports", str(Path("reports").resolve())).replace(
            "template: ", f"template: {Path('experiments').resolve()}/"
        )
        + "\nenough: {metric: goodput.som, interval: 3 %}\n"
    )
    with pytest.raises(UserError) as caught:
        load_experiment(file)
    assert "goodput.som" in str(caught.value)
    assert "expected more than at_least: 3" in str(caught.value)
