"""Drawing at the start of docs/internals/architecture.md, from the tables and the path of a run on that page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

HEADING = "## Packages"
LAYER = "### "
PATH = "Path of a run:"
WIDTH = 960
LABEL_WIDTH = 150
"""Width of the column of layer names in pixels."""
CHARACTER = 8
"""Width of a character of a name in pixels."""
BOX_HEIGHT, GAP = 28, 10
STYLE = (
    "text{font:13px monospace;fill:#222}.layer{font:bold 13px sans-serif}.band{fill:#f3f5f7}"
    ".box{fill:#fff;stroke:#8a96a3}.step{fill:#d9e8f7;stroke:#2a6db0;stroke-width:2}"
    ".number{font:bold 11px sans-serif;fill:#fff;text-anchor:middle}.dot{fill:#2a6db0}"
)


@dataclass(frozen=True)
class Layer:
    """A layer of the drawing: packages that import only from their own layer and the layers below."""

    title: str
    packages: tuple[str, ...]


def read_layers(page: str) -> list[Layer]:
    """Return the layers of the page's tables, top first as in the drawing. Raise ValueError if there are none."""
    section = page.partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    found = []
    for part in section.split(f"\n{LAYER}")[1:]:
        title, _, table = part.partition("\n")
        rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
        found.append(Layer(title.strip(), tuple(name for row in rows for name in re.findall(r"`([a-z_]+)`", row))))
    if not found:
        raise ValueError(f"expected tables below {HEADING!r} and {LAYER!r}, found none")
    return found[::-1]


def run_path(page: str) -> list[str]:
    """Return the packages that a run passes through, in order."""
    line = next((line for line in page.splitlines() if line.startswith(PATH)), "")
    return re.findall(r"`([a-z_]+)`", line)


def draw_architecture(page: str) -> str:
    """Return the drawing as SVG: a bar for each layer, and numbers along the path of a run."""
    bands = read_layers(page)
    steps = {name: number for number, name in enumerate(run_path(page), 1)}
    if lost := set(steps) - {name for layer in bands for name in layer.packages}:
        raise ValueError(f"{PATH} names {', '.join(sorted(lost))}, expected packages that are in the tables")
    body, y = [], GAP
    for layer in bands:
        boxes, height = _layer_boxes(layer, steps, y + GAP)
        body.append(f'<rect class="band" x="0" y="{y}" width="{WIDTH}" height="{height + 2 * GAP}"/>')
        body.append(f'<text class="layer" x="{GAP}" y="{y + GAP + 19}">{escape(layer.title)}</text>')
        body += boxes
        y += height + 3 * GAP
    described = "Packages of qoslab in layers; the path of a run is numbered"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{described}">'
    ground = f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>'
    return "\n".join([head, f"<title>{described}</title>", f"<style>{STYLE}</style>", ground, *body, "</svg>"]) + "\n"


def _layer_boxes(layer: Layer, steps: dict[str, int], top: int) -> tuple[list[str], int]:
    """Return the boxes of a layer, in as many rows as necessary, and their height in pixels."""
    found: list[str] = []
    x, y = LABEL_WIDTH, top
    for name in layer.packages:
        width = len(name) * CHARACTER + 2 * GAP
        if x + width > WIDTH - GAP:
            x, y = LABEL_WIDTH, y + BOX_HEIGHT + GAP
        found += _box_svg(name, steps.get(name), x, y, width)
        x += width + GAP
    return found, y + BOX_HEIGHT - top


def _box_svg(name: str, step: int | None, x: int, y: int, width: int) -> Iterator[str]:
    kind = "box" if step is None else "step"
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="4"/>'
    yield f'<text x="{x + GAP}" y="{y + 19}">{escape(name)}</text>'
    if step is not None:
        yield f'<circle class="dot" cx="{x + width}" cy="{y}" r="9"/>'
        yield f'<text class="number" x="{x + width}" y="{y + 4}">{step}</text>'
