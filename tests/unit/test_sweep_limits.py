"""Work of a check that grows with the size of a file times the values of its matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoslab.errors import ExperimentError
from qoslab.schema import load_sweep

EXPERIMENT = """\
name: e
title: One
topology:
  nodes: {client: {platform: host}, server: {platform: host}}
  links:
    - name: wan
      rate: 10 Mb/s
      ends:
        - {node: client, interface: eth0, address: 192.168.20.1/24}
        - {node: server, interface: eth0, address: 192.168.20.2/24}
duration: 3 s
traffic:
"""


def test_large_file_with_many_values_is_refused_with_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qoslab.schema.sweep.CHECK_LIMIT", 1000)
    flows = "".join(
        f"  - {{name: t{number}, tool: iperf3, from: client, to: server, streams: $(p)}}\n" for number in range(10)
    )
    values = ", ".join(map(str, range(1, 101)))
    file = tmp_path / "e.yml"
    file.write_text(f"{EXPERIMENT}{flows}arms:\n  - {{name: one}}\nmatrix: {{p: [{values}]}}\n")
    with pytest.raises(ExperimentError, match="expected at most 1000 values for all combinations"):
        load_sweep(file)
