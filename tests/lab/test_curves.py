"""Curves of a report against its table, where tools report different intervals and flows come and go."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pandas as pd
import pytest
from commands import Command

from experiment_files import experiment_file
from qoslab.analysis.packets import ALL
from qoslab.analysis.series import reported_throughput
from qoslab.report import text

pytestmark = pytest.mark.lab

MIXED = """\
name: mixed
title: Several tools, one after the other
topology:
  nodes:
    client: {platform: host}
    R1: {platform: ios, model: "3725"}
    server: {platform: host}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {node: client, interface: eth0, address: 10.0.10.10/24}
        - {node: R1, interface: FastEthernet0/0, address: 10.0.10.1/24}
    - name: wan
      rate: 10 Mb/s
      ends:
        - {node: R1, interface: FastEthernet0/1, address: 10.0.20.1/24}
        - {node: server, interface: eth0, address: 10.0.20.10/24}
duration: 6 s
traffic:
  - {name: bulk, tool: iperf3, from: client, to: server, protocol: tcp, port: 5201}
  - {name: late, tool: iperf3, from: client, to: server, protocol: tcp, port: 5202, start_after: 2500 ms, duration: 2 s}
  - {name: voice, tool: flood, from: client, to: server, protocol: udp, port: 5003, rate: 80 kb/s, size: 200 B,
     start_after: 1 s, duration: 4 s}
arms:
  - {name: free, title: Free}
  - {name: shaped, title: Shaped, configure: {R1: {template: templates/shape.ios.j2}}}
"""
SHAPE = """\
policy-map Shape
 class class-default
  shape average 2000000
interface FastEthernet0/1
 service-policy output Shape
"""


@pytest.mark.parametrize("lab", ["simulated", pytest.param("virtual", marks=[pytest.mark.long, pytest.mark.slow])])
def test_mean_of_each_curve_is_its_value_in_the_table(clean: Path, lab: str) -> None:
    experiment_file(clean, "mixed.yml", MIXED)
    (clean / "templates/shape.ios.j2").write_text(SHAPE)
    command = Command(clean, "run", "mixed.yml", "--lab", lab, "--attempts", "1")
    _, output, errors = command.end()
    run = clean / "runs/mixed/latest"
    assert (run / "report.html").exists(), errors + output
    flows, intervals, metrics = (
        pd.read_parquet(run / f"tables/{name}.parquet") for name in ("flows", "intervals", "metrics")
    )
    values = metrics.set_index(["cell", "metric"])["value"]
    assert set(flows["traffic"]) == {"bulk", "late", "voice"} and flows["cell"].nunique() == 2
    for cell, mine in flows.groupby("cell"):
        curves = reported_throughput(intervals[intervals["cell"] == cell], mine)
        means = {name: float(curve.mean()) for name, curve in curves.items()}
        assert means.pop(ALL) == pytest.approx(values[cell, "goodput.sum"], rel=1e-6)
        assert set(means) == {"bulk 1", "late 1", "voice 1"}
        for name, mean in means.items():
            assert mean == pytest.approx(values[cell, f"goodput.sum({name.removesuffix(' 1')})"], rel=1e-6)
    page = html.unescape((run / "report.html").read_text())
    captions = re.findall(r"mean from first start to last end: ([^<]*)\.<", page)
    means_of_arms = [
        f"{arm.title()} {text.rate(float(values[f'{arm}/1', 'goodput.sum']))}" for arm in ("free", "shaped")
    ]
    assert "; ".join(means_of_arms) in captions
    for arm in ("free", "shaped"):
        whole = text.rate(float(values[f"{arm}/1", "goodput.sum"]))
        assert any(caption.startswith(f"{whole}; in single steps") for caption in captions), captions
