"""Reports of sweeps."""

import json
from pathlib import Path

import pandas as pd
import pytest
from sample_run import EXPERIMENT, STARTED

from qoslab.model.experiment import Experiment
from qoslab.model.matrix import Scalar
from qoslab.report.sweep import SweepSection, sweep_sections
from qoslab.results import CellSummary, Manifest, RunFolder

GRAPHS = [
    {
        "title": "Goodput over the grid",
        "metric": "goodput.sum",
        "arms": ["policed"],
        "rows": ["rtt"],
        "columns": ["pir", "connections"],
    },
    {"title": "Goodput by rate", "metric": "goodput.sum", "arms": ["policed"], "over": "pir", "scale": "log"},
]


@pytest.fixture
def sections(tmp_path: Path) -> list[SweepSection]:
    experiment = Experiment.model_validate_json(json.dumps(EXPERIMENT | {"graphs": GRAPHS}))
    folder = RunFolder.create(tmp_path, experiment.name, STARTED)
    cells, rows = [], []
    for rtt in ("50 ms", "10 ms"):
        for pir, rate in (("500 kb/s", 5e5), ("1 Mb/s", 1e6)):
            for connections in (1, 10):
                if (rtt, pir, connections) == ("50 ms", "1 Mb/s", 10):
                    continue  # excluded from the matrix
                parameters: dict[str, Scalar] = {"rtt": rtt, "pir": pir, "connections": connections}
                for repetition in (1, 2):
                    cell = CellSummary(arm="policed", parameters=parameters, repetition=repetition, valid=True)
                    cells.append(cell.model_copy(update={"folder": f"cells/{cell.identity.folder}"}))
                    share = (0.9 if rtt == "10 ms" else 0.8) + repetition / 100
                    rows.append({"arm": "policed", "cell": cell.name, "metric": "goodput.sum", "value": rate * share})
    capture = folder.path / cells[0].folder / "captures" / "server.pcapng"
    capture.parent.mkdir(parents=True)
    capture.touch()
    manifest = Manifest(experiment=experiment, published=(), started=STARTED, ended=STARTED, cells=tuple(cells))
    return sweep_sections(manifest, map(folder.counted_cell_files, cells), pd.DataFrame(rows))


def test_map_has_ordered_parameters_and_gaps(sections: list[SweepSection]) -> None:
    shown = sections[0].maps[0]
    assert shown.head == [[("pir 500 kb/s", 2), ("pir 1 Mb/s", 2)], [("connections 1", 1), ("connections 10", 1)] * 2]
    assert [names for names, _ in shown.rows] == [["10 ms"], ["50 ms"]]
    texts = [[cell.text for cell in cells] for _, cells in shown.rows]
    assert texts[0] == ["457.5\u00a0kb/s", "457.5\u00a0kb/s", "915\u00a0kb/s", "915\u00a0kb/s"]
    assert texts[1][3] == ""
    shades = [cell.shade for cell in shown.rows[0][1]]
    assert shades[0] < shades[2] == 1.0


def test_map_has_a_colour_legend(sections: list[SweepSection]) -> None:
    shown = sections[0].maps[0]
    assert (shown.unit, shown.width) == ("kb/s", 4)
    assert [[cell.short for cell in cells] for _, cells in shown.rows] == [
        ["458", "458", "915", "915"],
        ["408", "408", "815", ""],
    ]
    assert [(cell.short, cell.shade) for cell in shown.legend] == [
        ("408", 0.0),
        ("458", 0.333),
        ("815", 0.667),
        ("915", 1.0),
    ]
    assert len({cell.colour for cell in shown.legend}) == 4


def test_worst_cells_have_results_and_captures(sections: list[SweepSection]) -> None:
    worst = sections[0].worst
    assert worst[0].figure == "407.5\u00a0kb/s"
    assert worst[0].parameters == "rtt 50 ms, pir 500 kb/s, connections 1"
    assert worst[0].captures == [("server", f"{worst[0].folder}/captures/server.pcapng")]
    assert worst[1].captures == []


def test_means_by_parameter_leave_out_the_axis(sections: list[SweepSection]) -> None:
    assert [name for name, _ in sections[0].tables] == ["rtt", "pir", "connections"]
    assert [name for name, _ in sections[1].tables] == ["rtt", "connections"]
    assert [(value, count) for value, _, _, count in sections[1].tables[0][1]] == [("10 ms", 4), ("50 ms", 3)]


def test_curves_have_error_bars(sections: list[SweepSection]) -> None:
    graph = sections[1].curves[0]
    value = graph.figure
    assert value["layout"]["xaxis"]["type"] == "log"
    assert [trace["name"] for trace in value["data"]] == [
        f"rtt {rtt}, connections {connections}" for rtt in ("10 ms", "50 ms") for connections in (1, 10)
    ]
    first = value["data"][0]
    assert first["x"] == [500000.0, 1000000.0]
    assert first["y"] == [457.5, 915.0]
    assert first["error_y"]["array"] == pytest.approx([2.5 * 12.7062, 5.0 * 12.7062])
    assert "95 % intervals" in graph.summary
