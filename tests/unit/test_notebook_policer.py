"""The notebook on the TCP friendly policer with a small run, without a kernel."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sample_run import HEALTH, RECORDED, STARTED, counters_reply

from qoslab.results import CaptureRecord, Cell, CellRecord, CellSummary, FlowRecord, Health, Manifest, RunFolder
from qoslab.results.records import ObservedCommand
from qoslab.schema import load_sweep

ROOT = Path(__file__).parents[2]
SETS = {
    "duration": "4 s",
    "arms.size.matrix": "{policer: [static], link: [10 Mb/s], rtt: [50 ms], pir: [1 Mb/s], bucket: [3000 B, 9000 B],"
    " connections: [1], control: [reno], sender: [client], receiver: [server]}",
    "arms.grid.matrix": "{policer: [dynamic, default], link: [10 Mb/s], rtt: [50 ms], pir: [1 Mb/s], bucket: [15000 B],"
    " connections: [1], control: [cubic], sender: [client], receiver: [server]}",
}


def one_stream(side: str) -> str:
    """Turn the recorded test of four streams into one of one stream."""
    document: dict[str, Any] = json.loads((RECORDED / "traffic" / f"iperf3-tcp.{side}.json").read_text())
    document["start"]["connected"] = document["start"]["connected"][:1]
    for entry in (*document["intervals"], document["end"]):
        entry["streams"] = entry["streams"][:1]
    return json.dumps(document)


def measured(cell: Cell, arm: str, parameters: Mapping[str, Any]) -> CellSummary:
    """Write the measurements of a cell, and its record."""
    for side in ("client", "server"):
        cell.write(cell.traffic("transfer", side, "json"), one_stream(side))
    shutil.copyfile(RECORDED / "capture" / "four-streams.pcapng", cell.capture("receiver"))
    for second in range(-1, 6):
        reply = counters_reply(second, "Police", police=True)
        if parameters["policer"] == "dynamic":
            (entry,) = reply["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"]
            dynamic = {"bucket_bytes": 15000 + second, "level_bytes": 700, "growths": 1, "shrinks": 2}
            entry["police"]["dynamic"] = dynamic
        cell.append_counters("R1", reply)
    command = "show policy-map interface"
    base = cell.observation("R1", "during", command)
    cell.write(base.with_name(base.name + ".txt"), "Service-policy input: Police\n")
    printed = base.relative_to(cell.path).as_posix()
    names = {**{name: str(value) for name, value in parameters.items()}, "connections": 1}
    flow = {"traffic": "transfer", "source": "192.168.10.2", "destination": "192.168.20.2", "port": 5201}
    cell.write_record(
        CellRecord(
            arm=arm,
            parameters=names,
            repetition=1,
            valid=True,
            flows=(FlowRecord.model_validate(flow | {"started": STARTED}),),
            observed=(ObservedCommand(device="R1", moment="during", command=command, file=printed),),
            captures={"receiver": CaptureRecord(received=628, dropped=0)},
            health={"R1": Health.model_validate(HEALTH)},
        )
    )
    return CellSummary(arm=arm, parameters=names, repetition=1, folder=f"cells/{cell.name}", valid=True)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    sweep = load_sweep(ROOT / "experiments/tcp-friendly-policer.yml", SETS)
    folder = RunFolder.create(tmp_path, sweep.experiment.name, STARTED)
    folder.write_experiment("name: tcp-friendly-policer\n")
    summaries = []
    for arm in ("size", "grid"):
        for parameters in sweep.combinations(arm):
            cell = folder.cell(arm, 1, parameters)
            experiment = sweep.resolve(cell.identity)
            cell.write_experiment(experiment)
            text = sweep.configuration_text(experiment, experiment.arms[0])["R1"]
            cell.write(cell.configuration("R1.ios"), text)
            summaries.append(measured(cell, arm, parameters))
    folder.write_manifest(
        Manifest(experiment=sweep.experiment, published=(), started=STARTED, ended=STARTED, cells=tuple(summaries))
    )
    folder.publish()
    return folder


@pytest.mark.long
def test_every_notebook_cell_has_output(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QOSLAB_RUN", str(run.path))
    shown: dict[str, Any] = {}
    names: dict[str, Any] = {}
    for cell in json.loads((ROOT / "analysis/tcp-friendly-policer.ipynb").read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        statements = ast.parse("".join(cell["source"])).body
        last = statements.pop()
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(statements, []), "notebook", "exec"), names)
        shown[ast.unparse(last)] = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    assert "police cir 1009333 bc 3028" in shown["small.configuration('size', 'R1')"]
    assert [line.name for line in shown["dynamic.class_graph('grid')"].data] == [
        *("offered", "sent", "dropped", "bucket", "level")
    ]
    curve = shown["run.sweep_graph('Goodput over the size of a static bucket')"]
    assert list(curve.data[0].x) == [3000, 9000]
    assert shown['run.sweep_map("Goodput over the article\'s scenarios")'].shape == (2, 1)
    averages = shown["run.averages()"]
    assert set(averages["cells"]) == {1} and set(averages["published"].dropna()) == {0.92}
    scores = shown["run.scores()"]
    assert list(scores.index) == ["Dynamic bucket versus the IOS default of 250 ms"] and scores["equal"].iloc[0] == 1
