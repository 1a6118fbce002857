"""Figures for papers have space for their texts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import sample_run

from qoslab.analysis import Outcome, analyse
from qoslab.errors import UserError
from qoslab.exchange import paper
from qoslab.results import Manifest, RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG = "Flood of random sizes to random ports, a packet every 3 ms, as the article has it"
WIDTHS_MM = [50.0, 60.0, 88.0, 180.0]
SLACK = 1.0
"""Tolerance in pixels: a letter may extend beyond its box."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Manifest, Outcome]:
    """Provide a run of two arms with long titles, with a figure of some cells each."""
    folder = sample_run.make_run(tmp_path_factory.mktemp("runs"))
    outcome = analyse(folder)
    manifest = folder.manifest()
    arms = tuple(arm.model_copy(update={"title": f"{LONG} ({arm.name})"}) for arm in manifest.experiment.arms)
    experiment = manifest.experiment.model_copy(update={"arms": arms})
    outcome.comparison["where"] = "line = 128 kb/s, ring = 1, policer = static"
    return folder, manifest.model_copy(update={"experiment": experiment}), outcome


def cut_off_texts(figure: Figure) -> list[str]:
    """Return the cut-off texts. Numbers at an axis are left out: those beyond its ends are not drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    texts = [each for each in figure.findobj(Text) if isinstance(each, Text) and each.get_visible()]
    boxes = [(each.get_text(), each.get_window_extent()) for each in texts if re.search("[a-z]", each.get_text())]
    return [
        text
        for text, box in boxes
        if box.x0 < -SLACK or box.y0 < -SLACK or box.x1 > width + SLACK or box.y1 > height + SLACK
    ]


@pytest.mark.sample(6)
@pytest.mark.parametrize("width", WIDTHS_MM)
@pytest.mark.parametrize("kind", paper.KINDS)
def test_long_names_are_complete(
    kind: paper.Kind, width: float, run: tuple[RunFolder, Manifest, Outcome], tmp_path: Path
) -> None:
    figure = paper.draw_metric(*run, "goodput.sum", kind, width)
    paper.save(figure, tmp_path / "a.svg")
    assert cut_off_texts(figure) == []
    output = " ".join((tmp_path / "a.svg").read_text().split())
    assert all(word in output for word in ("random", "policed", "shaped"))
    if kind == "bar":
        assert all(pair in output for pair in ("kb/s", "ring = 1", "static"))
    (axes,) = figure.axes
    box = axes.get_position()
    assert box.width > 0.2 and box.height * figure.get_figheight() > 0.3


def test_text_without_space_is_reported(tmp_path: Path) -> None:
    """Draw a text without enough space, as a chart of a plugin may have."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.2, 0.5), layout="constrained")
    figure.subplots().set_ylabel("\n".join(["more", "than", "there", "is", "room", "for"]))
    figure.axes[0].set_xlabel("\n" * 40)
    with pytest.raises(UserError, match=r"no space next to the labels in 30 mm, expected a larger --width"):
        paper.save(figure, tmp_path / "a.svg")
    assert list(tmp_path.iterdir()) == []


def test_curves_of_many_arms_are_distinguishable() -> None:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    paper._draw_ecdf(figure, axes, {f"arm {number}": np.array([number, number + 1.0]) for number in range(20)}, "ms")
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == 20


@pytest.mark.long
def test_style_file_of_the_current_folder_is_ignored(tmp_path: Path) -> None:
    """Start a separate process, since matplotlib reads the file when it is imported."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\nlines.linewidth: 20\n")
    code = (
        "import matplotlib; read = matplotlib.rcParams['text.usetex']\n"
        "from qoslab.exchange import paper; paper.set_style()\n"
        "print(read, *(matplotlib.rcParams[each] for each in ('text.usetex', 'font.size', 'lines.linewidth')))"
    )

    def program_output(folder: Path) -> list[str]:
        command = [sys.executable, "-P", "-c", code]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.split()

    (tmp_path / "without").mkdir()
    (read, *styled), (unread, *expected) = program_output(tmp_path), program_output(tmp_path / "without")
    assert (read, unread) == ("True", "False"), "matplotlib itself reads the file"
    assert styled == expected
