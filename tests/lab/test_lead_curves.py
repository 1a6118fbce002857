"""Curves of the first graph of a report, from whole runs: their means are the values of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

from experiment_files import experiment_file, two_links
from qoslab.analysis.packets import ALL
from qoslab.analysis.series import reported_throughput
from qoslab.report import text
from qoslab.report.headline_chart import headline_graph
from qoslab.results import RunFolder, tables
from verdicts import newest_run

pytestmark = pytest.mark.lab

FLOWS = ("bulk", "call", "late")
EXPERIMENT = (
    """\
name: curves
title: Curves of mixed tools
"""
    + two_links('ios, model: "3725"', wan="5 Mb/s", networks=("10.0.1", "10.0.2"))
    + """\
duration: 4 s
traffic:
  - {name: bulk, tool: iperf3, from: client, to: server, streams: 2}
  - {name: call, tool: flood, protocol: udp, from: client, to: server, rate: 400 kb/s, size: 200 B, port: 6000,
     start_after: 700 ms, duration: 1500 ms}
  - {name: late, tool: iperf, from: client, to: server, port: 7000, start_after: 5500 ms, duration: 2 s}
arms: [{name: one}, {name: two}]
compare:
  show:
    one: &shown [goodput.sum, goodput.sum(bulk), goodput.sum(call), goodput.sum(late)]
    two: *shown
"""
)


@pytest.mark.parametrize("lab", ["simulated", pytest.param("virtual", marks=[pytest.mark.long, pytest.mark.slow])])
def test_mean_of_each_curve_is_the_value_of_the_table(clean: Path, lab: str) -> None:
    file = experiment_file(clean, "curves.yml", EXPERIMENT)
    run(clean, "run", str(file), "--lab", lab)
    folder = RunFolder(newest_run(clean))
    found = {name: tables.read_table(folder, name) for name in ("flows", "intervals", "metrics")}
    captions = []
    for cell in folder.open().cells:
        flows, intervals, metrics = (table[table["cell"] == cell.name] for table in found.values())
        goodput = metrics.set_index("metric")["value"]
        curves = reported_throughput(intervals, flows)
        assert float(curves[ALL].mean()) == pytest.approx(goodput["goodput.sum"], rel=1e-3)
        for name in FLOWS:
            rows = flows[flows["traffic"] == name]
            own = [curves[f"{name} {stream}"] for stream in rows["stream"]]
            rates = rows["goodput_bps"].astype(float)
            assert [float(curve.mean()) for curve in own] == pytest.approx(list(rates), rel=0.02)
            if len(own) == 1:
                assert float(own[0].mean()) == pytest.approx(goodput[f"goodput.sum({name})"], rel=1e-3)
        captions.append(text.rate(float(curves[ALL].mean())))
    lead = headline_graph(folder.manifest().experiment, folder.open().cells, found, ())
    assert lead is not None and len(captions) == 2 and all(each in lead.summary for each in captions)
