"""Files with only a topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoslab.errors import ExperimentError
from qoslab.schema.topology import load_topology

NODES = """\
nodes:
  a: {platform: host}
  b: {platform: host}
links:
  - name: link
    rate: 10 Mb/s
    ends:
      - {node: a, interface: eth0, address: 10.0.0.1/24}
      - {node: b, interface: eth0, address: 10.0.0.2/24}
"""


def test_topology_file_needs_only_nodes_and_links(tmp_path: Path) -> None:
    file = tmp_path / "pair.yml"
    file.write_text(NODES)
    name, topology = load_topology(file)
    assert (name, sorted(topology.nodes)) == ("pair", ["a", "b"])


def test_topology_file_alone_names_the_expected_keys(tmp_path: Path) -> None:
    file = tmp_path / "pair.yml"
    file.write_text("# two hosts\ntopology:\n" + "".join(f"  {line}\n" for line in NODES.splitlines()))
    with pytest.raises(ExperimentError) as caught:
        load_topology(file)
    assert [str(finding) for finding in caught.value.findings] == [
        f"{file}:2:1: topology: found only topology:, expected an experiment (with name, traffic and arms), or a"
        " topology file; a topology file has nodes: and links: at the top, without topology: around them"
    ]
