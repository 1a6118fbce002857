"""Runs with less traffic than their file defines: unreachable values do not fail without `--strict`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from test_idle import FILE

from qoslab.analysis import Outcome, analyse
from qoslab.analysis.averages import averages_table
from qoslab.analysis.expected_comparison import compare
from qoslab.analysis.verdicts import NOT_MEASURED, OUTSIDE, WITHIN
from qoslab.cli import main
from qoslab.errors import ExitStatus
from qoslab.model.comparison import Average, Comparison, Pair
from qoslab.model.expectations import Expectation
from qoslab.model.matrix import Scalar
from qoslab.model.units import Percent
from qoslab.results import CellSummary, RunFolder

LATER = "time 1800 ms was not reached: the last reading is at 1.2 s"
BUCKET = "the policer's bucket was full at the start and never ran empty"
METRIC = "goodput.spread"
FLOWS = """\
  - {name: late, tool: flood, from: client, to: server, protocol: udp, rate: 80 kb/s, size: 200 B, port: 5002,
     start_after: 1500 ms, duration: 1 s}
arms:
  - {name: plain}
  - {name: policy, configure: {R1: {template: t.j2}}}
compare:
  expectations:
    - {arm: plain, metric: goodput.together, at_least: 100 kb/s}
    - {arm: plain, metric: fairness.jain, at_least: 0.9}
    - {arm: policy, metric: goodput.steady, at_least: 50 kb/s}
    - {arm: policy, metric: police.bc(VOICE), at_least: 1 MB}
  averages:
    - {title: all, arm: plain, metric: fairness.jain, at_least: 0.9}
"""
TEMPLATE = """\
class-map match-all VOICE
 match dscp cs7
policy-map P
 class VOICE
  police 64000 8000
interface FastEthernet0/1
 service-policy output P
"""


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        (LATER, NOT_MEASURED),
        (f"{LATER}; only 0 of 1 pairs of cells have this value", NOT_MEASURED),
        (BUCKET, NOT_MEASURED),
        ("the flows never all ran at the same time", NOT_MEASURED),
        ("R1 FastEthernet0/1: the counters were read only once, which does not cover the traffic time", NOT_MEASURED),
        ("bytes 1 MB was not reached: 0 B at the end", OUTSIDE),
        ("bytes 1 MB was not reached: no counter recorded it", OUTSIDE),
        ("no answer", OUTSIDE),
        ("", OUTSIDE),
    ],
)
def test_value_beyond_shortened_traffic_is_not_measured(reason: str, verdict: str) -> None:
    rows = [{"arm": "a", "repetition": 1, "metric": METRIC, "valid": True, "value": math.nan, "missing": reason}]
    expected = Expectation(metric=METRIC, arm="a", at_least=1.0)
    assert list(compare("", pd.DataFrame(rows), [], [expected], shortened=True)["verdict"]) == [verdict]


@dataclass(frozen=True)
class Cells:
    """Cells of one arm with a parameter, with each value, or the reason of its absence."""

    values: dict[str, float | str]

    def judged(self, wanted: Comparison) -> list[str]:
        """Return the verdicts of averages and pairs in a shortened run."""
        cells = [CellSummary(arm="a", parameters={"load": load}, repetition=1, valid=True) for load in self.values]
        rows = [
            {
                "arm": "a",
                "repetition": 1,
                "cell": cell.name,
                "metric": METRIC,
                "unit": "ratio",
                "parameter.load": cell.values["load"],
                "value": float("nan") if isinstance(value, str) else value,
                "missing": value if isinstance(value, str) else None,
            }
            for cell, value in zip(cells, self.values.values(), strict=True)
        ]
        metrics = pd.DataFrame(rows)
        return list(averages_table(wanted.averages, metrics, cells, wanted.pairs, shortened=True)["verdict"])


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"1": 5.0, "2": 5.0}, WITHIN),
        ({"1": 5.0, "2": LATER}, NOT_MEASURED),
        ({"1": LATER, "2": BUCKET}, NOT_MEASURED),
        ({"1": 0.5, "2": LATER}, OUTSIDE),
        ({"1": 5.0, "2": "no answer"}, OUTSIDE),
        ({"1": LATER, "2": "no answer"}, OUTSIDE),
    ],
)
def test_average_fails_for_other_reasons_only(values: dict[str, float | str], verdict: str) -> None:
    average = Average(title="t", arm="a", metric=METRIC, at_least=1.0)
    assert Cells(values).judged(Comparison(averages=(average,))) == [verdict]


@pytest.mark.parametrize(("second", "verdict"), [(6.0, WITHIN), (LATER, NOT_MEASURED), ("no answer", OUTSIDE)])
def test_pair_without_its_value_is_not_measured(second: float | str, verdict: str) -> None:
    values: tuple[Scalar, Scalar] = ("1", "2")
    pair = Pair(
        title="t", arm="a", metric=METRIC, parameter="load", values=values, not_worse_at_least=Percent.parse("50 %")
    )
    found = Cells({"1": 7.0, "2": second}).judged(Comparison(pairs=(pair,)))
    assert found == [verdict]


def shortened_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[int, Outcome]:
    """Return the exit status and the outcome of a simulated run of 1200 ms."""
    (tmp_path / "e.yml").write_text(FILE + FLOWS)
    (tmp_path / "t.j2").write_text(TEMPLATE)
    monkeypatch.chdir(tmp_path)
    asked = ["run", "e.yml", "--lab", "simulated", "--jobs", "1", "--duration", "1200ms", *options]
    return main(asked), analyse(RunFolder((tmp_path / "runs" / "e" / "latest").resolve()))


@pytest.mark.parametrize(("options", "failed", "late"), [((), 1, 3), (("--strict",), 4, 0)])
def test_flows_that_no_longer_overlap_fail_with_strict_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], failed: int, late: int
) -> None:
    status, outcome = shortened_run(tmp_path, monkeypatch, *options)
    assert (status, outcome.outside, outcome.not_measured) == (ExitStatus.OUTSIDE, failed, late)
    assert list(outcome.averages["verdict"]) == [OUTSIDE if options else NOT_MEASURED]
