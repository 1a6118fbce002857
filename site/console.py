"""Blocks of the languages `console` and `python`: they are run when the site is built, and what they print is shown.

A line that begins with `$ ` is a command; it is run by bash in a folder of the page, which is empty at first. A block
whose first line is a comment with nothing but a path, such as `# experiments/mine.yml`, is written to that file before
the next command; `cd` counts for all that follows. Any other block of Python is a program, which runs in the folder
that the commands before it have come to. A figure that a command writes is shown below its block, a report is linked.
What fails, in front of a `|` too, is a warning, which ends the build with an error: only `qoslab run`, `report` and
`compare` may end with status 1, which is a figure outside its tolerance.

Everything that a page has run is kept in target/site-work until one of its blocks or qoslab itself has changed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

TOP = Path(__file__).resolve().parents[1]
WORK = TOP / "target" / "site-work"
MADE = "_made"
"""Folder of the site with figures and reports."""
PROMPT = "$ "
_FILE = re.compile(r"(?:#|!) (?P<path>[\w.-]+(?:/[\w.-]+)+)")
_FIGURE = re.compile(r"^Written: (\S+\.svg)$", re.MULTILINE)
_REPORT = re.compile(r"^Report: (\S+/report\.html)$", re.MULTILINE)
_MOVE = re.compile(r"cd ([\w./-]+)")
_OUTSIDE = re.compile(r"(?:\w+=\S+ )*qoslab (?:run|report|compare)\b")
"""Commands whose status 1 says something of the figures, with what is set for them."""
_LOG = logging.getLogger(__name__)


@functools.cache
def _sources() -> str:
    """SHA-256 of what commands may print other things after a change of."""
    digest = hashlib.sha256()
    for folder in ("src", "experiments", "reports", "project", "tests/plugin", "target/release/qos-sim", "site"):
        place = TOP / folder
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _environment() -> dict[str, str]:
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "110",
        "LINES": "50",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }


def commands_of(text: str) -> Iterator[str]:
    """The commands of a block; a line that ends with a backslash goes on in the next one."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(PROMPT):
            command = line.removeprefix(PROMPT)
            while command.endswith("\\"):
                command += "\n" + next(lines)
            yield command


def file_of(block: nodes.literal_block) -> str | None:
    """The file that it is written to, which its first line names; None if it is none."""
    named = _FILE.fullmatch(block.astext().partition("\n")[0])
    return None if named is None or block.get("language") == "console" else named["path"]


def is_program(block: nodes.literal_block) -> bool:
    """Return whether Python runs it."""
    return block.get("language") == "python" and file_of(block) is None


class Page:
    """Blocks of one page, in their order."""

    def __init__(self, docname: str, blocks: list[nodes.literal_block]) -> None:
        self.docname = docname
        self.folder = WORK / docname.replace("/", "-")
        self.home = self.folder / "home"
        self._here = self.home
        self._failed = False
        self.blocks = blocks
        text = json.dumps([(block.get("language"), block.astext()) for block in blocks])
        self.key = hashlib.sha256(f"{_sources()} {text}".encode()).hexdigest()

    def outputs(self) -> list[list[tuple[str, str, str]]]:
        """Return the commands of each block with output and folder; those of the last build if nothing has changed."""
        kept = self.folder / "outputs.json"
        if kept.exists():
            found = json.loads(kept.read_text(encoding="utf-8"))
            if found["key"] == self.key:
                return [[(command, text, place) for command, text, place in block] for block in found["outputs"]]
        shutil.rmtree(self.folder, ignore_errors=True)
        self.home.mkdir(parents=True)
        outputs = [list(self._carry_out(block)) for block in self.blocks]
        if not self._failed:
            kept.write_text(json.dumps({"key": self.key, "outputs": outputs}), encoding="utf-8")
        return outputs

    def _carry_out(self, block: nodes.literal_block) -> Iterator[tuple[str, str, str]]:
        text = block.astext()
        if (name := file_of(block)) is not None:
            file = self._here / name
            file.parent.mkdir(parents=True, exist_ok=True)
            # The line with the path stays: a comment there, too.
            file.write_text(text + "\n", encoding="utf-8")
            return
        if is_program(block):
            yield "", self._run(text, [sys.executable, "-c", text]), str(self._here)
            return
        for command in commands_of(text):
            if moved := _MOVE.fullmatch(command):
                self._here /= moved[1]
                yield command, "", str(self._here)
            else:
                yield command, self._run(command, ["bash", "-o", "pipefail", "-c", command]), str(self._here)

    def _run(self, command: str, words: list[str]) -> str:
        _LOG.info("%s: $ %s", self.docname, command)
        done = subprocess.run(
            words,
            cwd=self._here,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        output = "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())
        output = re.sub(r"\n{2,}", "\n\n", output.replace(str(self.home), "~").replace(str(TOP), "~/qoslab"))
        if done.returncode and not (done.returncode == 1 and _OUTSIDE.match(command)):
            self._failed = True
            _LOG.warning("`%s` ended with status %d:\n%s", command, done.returncode, output, location=self.docname)
        return output


class RunCommands(SphinxTransform):
    """Runs the page's commands and puts what they print below them."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Blocks of the page in their order: commands, and files that these need."""
        blocks = [
            block
            for block in self.document.findall(nodes.literal_block)
            if any(commands_of(block.astext())) or file_of(block) is not None or is_program(block)
        ]
        if not any(block.get("language") == "console" or is_program(block) for block in blocks):
            return
        page = Page(self.env.docname, blocks)
        for block, text in zip(blocks, page.outputs(), strict=True):
            if not text:
                continue
            below = [each for _, output, place in text for each in self._made(page, output, Path(place))]
            block.replace_self([*_shown(block, text), *below])

    def _made(self, page: Page, message: str, inside: Path) -> Iterator[nodes.Node]:
        up = "../" * page.docname.count("/")
        for name in _FIGURE.findall(message):
            there = self._copy(page, inside / name)
            yield nodes.raw("", f'<img class="made" src="{up}{there}" alt="{Path(name).stem}">', format="html")
        for name in _REPORT.findall(message):
            there = self._copy(page, inside / name)
            title = "The report of this run"
            yield nodes.raw("", f'<p><a class="report" href="{up}{there}">{title}</a></p>', format="html")

    def _copy(self, page: Page, file: Path) -> str:
        folder = Path(MADE) / page.docname.replace("/", "-")
        name = f"{file.parents[1].name}.html" if file.name == "report.html" else file.name
        target = Path(self.app.outdir) / folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        return (folder / name).as_posix()


def _shown(block: nodes.literal_block, message: list[tuple[str, str, str]]) -> list[nodes.Node]:
    """Commands, each with what it printed; a program as it is, and what it printed in a block of its own."""
    if is_program(block):
        output = "\n".join(output for _, output, _ in message if output)
        printed = nodes.literal_block(output, output, language="text", classes=["ran"])
        return [block.deepcopy(), *([printed] if output else [])]
    text = "\n".join(f"{PROMPT}{command}" + (f"\n{output}" if output else "") for command, output, _ in message)
    return [nodes.literal_block(text, text, language="console", classes=["ran"])]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_transform(RunCommands)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
