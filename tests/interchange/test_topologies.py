"""Topologies of other tools: the tools and `qoslab new topology` derive the same lab from a file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import test_foreign_topologies as samples
from other_tools import OtherTools, TestedTool, qoslab
from ruamel.yaml import YAML

from qoslab.model.experiment import Topology
from qoslab.schema.topology import load_topology


def our_conversion(file: Path) -> Topology:
    to = file.with_name(f"ours-of-{file.name}")
    qoslab("new", "topology", file, "--to", to, "--as", "cisco_iol=ios", "--as", "iol=ios", folder=file.parent)
    return load_topology(to)[1]


def ends(topology: Topology) -> list[tuple[str, ...]]:
    return [tuple(end.node for end in link.ends) for link in topology.links]


@pytest.fixture
def netlab(tools: OtherTools, tmp_path: Path) -> Path:
    """Yield a folder with a topology, its topology derived by netlab, and the file written for containerlab."""
    (tmp_path / "topology.yml").write_text(samples.NETLAB.replace("iosv", "iol"))
    words = ("create", "-q", "-p", "clab", "topology.yml")
    tools.run("netlab", *words, folder=tmp_path)
    tools.run("netlab", *words, "-o", "yaml:nodefault:noaddr=whole.yml", folder=tmp_path)
    return tmp_path


def test_converted_netlab_topology_equals_its_transformation(
    tools: OtherTools, record_tested_tool: TestedTool, netlab: Path
) -> None:
    """Topology and its transformation by netlab: nodes, ends, given addresses and rates are equal."""
    whole = YAML(typ="safe").load(netlab / "whole.yml")
    mine = our_conversion(netlab / "topology.yml")
    assert list(mine.nodes) == list(whole["nodes"])
    reported = [tuple(end["node"] for end in link["interfaces"]) for link in whole["links"]]
    assert ends(mine) == reported
    rates = [link.get("bandwidth") for link in whole["links"]]
    assert [rate and f"{rate // 1000} Mb/s" for rate in rates] == [None, "2 Mb/s", None]
    assert str(mine.links[1].rate) == "2 Mb/s"
    again = our_conversion(netlab / "whole.yml")
    assert ends(again) == reported
    addresses = [[end["ipv4"] for end in link["interfaces"]] for link in whole["links"]]
    assert [[str(end.address) for end in link.ends] for link in again.links] == addresses
    # The file gives no rate for the first link.
    assert [[str(end.address) for end in link.ends] for link in mine.links][1:] == addresses[1:]
    record_tested_tool("netlab in", "netlab", tools.version("netlab", "version"))


def test_containerlab_file_written_by_netlab_is_converted(
    tools: OtherTools, record_tested_tool: TestedTool, netlab: Path
) -> None:
    """File that netlab writes for containerlab: nodes and ends equal those of the original topology."""
    theirs: dict[str, Any] = YAML(typ="safe").load(netlab / "clab.yml")["topology"]
    mine = our_conversion(netlab / "clab.yml")
    assert {name: node.platform for name, node in mine.nodes.items()} == {
        name: "host" if node["kind"] == "linux" else "ios" for name, node in theirs["nodes"].items()
    }
    assert ends(mine) == [tuple(end.partition(":")[0] for end in link["endpoints"]) for link in theirs["links"]]
    record_tested_tool("containerlab in", "netlab", tools.version("netlab", "version"))


def test_converted_containerlab_topology_is_valid(
    tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Test topology against its JSON Schema, which also refuses an unknown kind."""
    schema = request.config.getoption("--clab-schema")
    if schema is None:
        pytest.skip("containerlab's schemas/clab.schema.json is not here: give --clab-schema FILE")
    file = tmp_path / "three.clab.yml"
    file.write_text(samples.CONTAINERLAB)
    tools.run("check-jsonschema", "--schemafile", schema.absolute(), file)
    assert ends(our_conversion(file)) == [("r1", "r2"), ("PC1", "r1"), ("PC2", "r2")]
    file.write_text(samples.CONTAINERLAB.replace("kind: cisco_iol", "kind: cisco_iou"))
    tools.run("check-jsonschema", "--schemafile", schema.absolute(), file, status=1)
    checksum = hashlib.sha256(schema.read_bytes()).hexdigest()
    record_tested_tool("containerlab in", "clab.schema.json", f"SHA-256 {checksum[:12]}…")
