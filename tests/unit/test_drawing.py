"""Drawings of a topology as SVG and as a Mermaid flowchart; any node name stays text."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from qoslab.cli import main
from qoslab.cli.draw import FORMS, INVENTORY
from qoslab.report.drawing import FORMATS, layers, mermaid, svg
from qoslab.schema import load_experiment
from qoslab.schema.topology import load_topology

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.yml"))
SVG = "{http://www.w3.org/2000/svg}"


def test_help_lists_the_available_formats() -> None:
    assert (*FORMATS, INVENTORY) == FORMS


@pytest.mark.sample(6)
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_every_experiment_is_drawn_completely_inside_the_page(file: Path) -> None:
    topology = load_experiment(file).topology
    assert sorted(name for layer in layers(topology) for name in layer) == sorted(topology.nodes)
    drawn = ElementTree.fromstring(svg(topology, file.stem))
    words = {each.text for each in drawn.iter(f"{SVG}tspan")}
    for link in topology.links:
        for end in link.ends:
            assert {end.node, end.interface, *map(str, end.addresses)} <= words
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    boxes = [
        tuple(float(each.attrib[key]) for key in ("x", "y", "width", "height")) for each in drawn.iter(f"{SVG}rect")
    ]
    assert len(boxes) == len(topology.nodes) == len(set(boxes))
    assert all(x >= 0 and y >= 0 and x + wide <= width and y + high <= height for x, y, wide, high in boxes)


def test_path_is_drawn_from_left_to_right() -> None:
    topology = load_experiment(EXPERIMENTS[0].with_name("policing-vs-shaping.yml")).topology
    assert layers(topology) == [["client"], ["R1"], ["server"]]
    places = [float(each.attrib["x"]) for each in ElementTree.fromstring(svg(topology, "t")).iter(f"{SVG}rect")]
    assert all(left < right for left, right in pairwise(places))
    assert mermaid(topology, 'a "title"') == (
        '---\ntitle: "a #34;title#34;"\n---\nflowchart LR\n'
        '  n0(["client<br/>host"])\n  n1["R1<br/>ios 3725"]\n  n2(["server<br/>host"])\n'
        '  n0 ---|"eth0 192.168.10.2/24 · lan: 100 Mb/s · FastEthernet0/0 192.168.10.1/24"| n1\n'
        '  n1 ---|"FastEthernet0/1 192.168.20.1/24 · wan: 100 Mb/s · eth0 192.168.20.2/24"| n2\n'
    )


def test_drawing_keeps_text_as_text() -> None:
    topology = load_experiment(EXPERIMENTS[0].with_name("policing-vs-shaping.yml")).topology
    title = '"><script>alert(1)</script>&'
    drawn = ElementTree.fromstring(svg(topology, title))
    assert drawn.findtext(f"{SVG}title") == title and not list(drawn.iter(f"{SVG}script"))
    assert not re.search(r"[<>`]|\bscript\b.*\(", mermaid(topology, title).split("\n")[1])


def test_command_line_draws_the_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pair.yml"
    file.write_text(
        "nodes: {a: {platform: host}, b: {platform: host}}\nlinks:\n  - name: wire\n    rate: 10 Mb/s\n    ends:\n"
        "      - {node: a, interface: eth0, address: 10.0.0.1/24}\n"
        "      - {node: b, interface: eth0, address: 10.0.0.2/24}\n"
    )
    assert main(["draw", str(file)]) == 0
    assert capsys.readouterr().out == svg(load_topology(file)[1], "pair")
    to = tmp_path / "pair.mmd"
    assert main(["draw", str(file), "--format", "mermaid", "--to", str(to)]) == 0
    assert to.read_text().startswith('---\ntitle: "pair"\n')
    assert main(["draw", str(file), "--to", str(to)]) == 2
    assert "found an existing file" in capsys.readouterr().err
    assert main(["draw", "no-such"]) == 2
    for words in ([], [str(file), "--lab", "pair"], ["--lab", "pair", "--set", "nodes.a.platform=host"]):
        capsys.readouterr()
        assert main(["draw", *words]) == 2
        assert "--lab" in capsys.readouterr().err
