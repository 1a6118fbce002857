"""An analysis opens a run once and works with plain values: its folder is not handed around."""

from __future__ import annotations

import textwrap
from pathlib import Path

from script import TOP, script

MOST_RETURNS = 15


def test_an_analysis_seldom_returns_to_a_file_with_the_run_folder() -> None:
    found = script("benches/walk.py").walk(TOP / "src", "qoslab.analysis.run_analysis:analyse", "folder")
    assert {"qoslab.results.folder", "qoslab.results.checksums", "qoslab.analysis.saved"} < set(found.stops)
    assert found.returns <= MOST_RETURNS


def test_walk_counts_returns_to_a_file(tmp_path: Path) -> None:
    files = {
        "top": """
            from pack.other import Cell, read, text_of
            def start(folder: Path) -> None:
                cell = Cell(folder / "cell")
                again(cell)
                size(read(cell.path))
            def again(cell: Cell) -> str:
                return text_of(cell)
            def size(text: str) -> int:
                return len(text)
            """,
        "other": """
            class Cell:
                def __init__(self, path: Path) -> None:
                    self.path = path
            def text_of(cell: Cell) -> str: ...
            def read(path: Path) -> str: ...
            """,
    }
    for name, source in files.items():
        (tmp_path / "pack").mkdir(exist_ok=True)
        (tmp_path / "pack" / f"{name}.py").write_text(textwrap.dedent(source))
    found = script("benches/walk.py").walk(tmp_path, "pack.top:start", "folder")
    assert [function.node.name for _, function in found.calls] == ["start", "__init__", "again", "text_of", "read"]
    assert found.returns == 2
