"""Drawing of a topology: SVG with a layered layout, or Mermaid text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from qoslab.model.experiment import Link, LinkEnd, Topology
from qoslab.platforms import node_platform

COLUMN, ROW = 400, 110
"""Distance between nodes, in pixels."""
WIDTH, HEIGHT = 130, 46
"""Size of a node, in pixels."""
MARGIN = 20
LINE = 13
"""Distance between the lines of a label, in pixels."""
NEAR = 0.5
"""Position of labels along a line."""
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.name{font-weight:600;font-size:14px}"
    ".soft{fill:#56606b;font-size:11px}"
    "rect{fill:#f5f7f9;stroke:#56606b}.host rect{fill:#e8f1fb;stroke:#0b57a4}line{stroke:#56606b;stroke-width:1.5}"
    ".label{paint-order:stroke;stroke:#fff;stroke-width:4px}"
    # as in reports/report.css
    ":root{color-scheme:light dark}@media screen and (prefers-color-scheme:dark){text{fill:#e6e9ec}"
    ".soft{fill:#a7b0ba}rect{fill:#1d2329;stroke:#a7b0ba}.host rect{fill:#12283f;stroke:#7db8ff}line{stroke:#a7b0ba}"
    ".label{stroke:#14181c}}"
)


def layers(topology: Topology) -> list[list[str]]:
    """Return the nodes by distance from the first host, in the order of a breadth-first search."""
    near: dict[str, list[str]] = {name: [] for name in topology.nodes}
    for link in topology.links:
        one, other = (end.node for end in link.ends)
        near[one].append(other)
        near[other].append(one)
    hosts = [name for name in topology.nodes if not _is_router(topology, name)]
    found: list[list[str]] = []
    seen: set[str] = set()
    # Nodes without a connection to the previous ones begin at the left again.
    for first in (*hosts[:1], *topology.nodes):
        layer = [] if first in seen else [first]
        depth = 0
        while layer:
            seen.update(layer)
            if depth == len(found):
                found.append([])
            found[depth] += layer
            layer = list(dict.fromkeys(each for name in layer for each in near[name] if each not in seen))
            depth += 1
    return found


def svg(topology: Topology, title: str) -> str:
    """Return an SVG drawing with nodes, interfaces, addresses and rates, without external references."""
    columns = layers(topology)
    rows = max(len(column) for column in columns)
    places = {
        name: (MARGIN + COLUMN * x + WIDTH / 2, MARGIN + ROW * (y + (rows - len(column)) / 2) + HEIGHT / 2)
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }
    width = 2 * MARGIN + COLUMN * (len(columns) - 1) + WIDTH
    height = 2 * MARGIN + ROW * (rows - 1) + HEIGHT + 2 * LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
    ]
    # Links between the same nodes lie side by side.
    drawn: dict[frozenset[str], int] = {}
    for link in topology.links:
        pair = frozenset(end.node for end in link.ends)
        drawn[pair] = drawn.get(pair, 0) + 1
        parts.append(_line(link, places, 3.2 * LINE * (drawn[pair] - 1)))
    parts += [_box(topology, name, *places[name]) for name in topology.nodes]
    return "\n".join([*parts, "</svg>"]) + "\n"


def mermaid(topology: Topology, title: str) -> str:
    """Return a Mermaid flowchart, which forges draw in Markdown pages."""
    numbers = {name: f"n{number}" for number, name in enumerate(topology.nodes)}
    lines = ["---", f"title: {_quote_label(title)}", "---", "flowchart LR"]
    for name, number in numbers.items():
        what = _quote_label(f"{name}\n{_platform_text(topology, name)}")
        lines.append(f"  {number}[{what}]" if _is_router(topology, name) else f"  {number}([{what}])")
    for link in topology.links:
        one, other = link.ends
        label = _quote_label(" · ".join([_end_label(one), _link_label(link), _end_label(other)]))
        lines.append(f"  {numbers[one.node]} ---|{label}| {numbers[other.node]}")
    return "\n".join(lines) + "\n"


FORMATS: Mapping[str, Callable[[Topology, str], str]] = {"svg": svg, "mermaid": mermaid}


def _is_router(topology: Topology, name: str) -> bool:
    return node_platform(topology.nodes[name]).is_router


def _platform_text(topology: Topology, name: str) -> str:
    node = topology.nodes[name]
    return " ".join(filter(None, (node.platform, node.model)))


def _end_label(end: LinkEnd) -> str:
    return " ".join([end.interface, *map(str, end.addresses)])


def _link_label(link: Link) -> str:
    return f"{link.name}: {link.rate}" + (f", {link.delay}" if int(link.delay) else "")


def _quote_label(text: str) -> str:
    """Return text for Mermaid, which has its own entities and ends a label at a quote."""
    coded = re.sub(r"[#\"<>&;`\[\](){}|\\]", lambda found: f"#{ord(found[0])};", text)
    return '"' + coded.replace("\n", "<br/>") + '"'


def _box(topology: Topology, name: str, x: float, y: float) -> str:
    kind = "router" if _is_router(topology, name) else "host"
    return (
        f'<g class="{kind}"><rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="{4 if kind == "router" else HEIGHT / 2:g}"/>'
        + _text([name], x, y - 2, "name")
        + _text([_platform_text(topology, name)], x, y + LINE, "soft")
        + "</g>"
    )


def _line(link: Link, places: Mapping[str, tuple[float, float]], aside: float) -> str:
    (x1, y1), (x2, y2) = (places[end.node] for end in link.ends)
    y1, y2 = y1 + aside, y2 + aside
    parts = [f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>']
    for end, at in zip(link.ends, _ends(x1, x2), strict=True):
        label = [end.interface, *map(str, end.addresses)]
        parts.append(_text(label, x1 + (x2 - x1) * at, y1 + (y2 - y1) * at + LINE, "label soft"))
    middle = (x1 + (x2 - x1) * NEAR, y1 + (y2 - y1) * NEAR - 5)
    return "".join([*parts, _text([_link_label(link)], *middle, "label")])


def _ends(x1: float, x2: float) -> tuple[float, float]:
    """Return the positions of the labels of both ends along a line: next to a node if the line leaves at its side."""
    share = 0.34 if x1 == x2 else (WIDTH / 2 + 66) / abs(x2 - x1)
    return share, 1 - share


def _text(lines: list[str], x: float, y: float, kind: str) -> str:
    spans = "".join(
        f'<tspan x="{x:g}" dy="{LINE if number else 0}">{escape(line)}</tspan>' for number, line in enumerate(lines)
    )
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="middle">{spans}</text>'
