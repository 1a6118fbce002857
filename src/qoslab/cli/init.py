"""`qoslab init`: a new project folder for experiments."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from qoslab.cli.program import program_name
from qoslab.errors import UserError
from qoslab.results.file_access import draft_path, fill_folder
from qoslab.system.printing import echo
from qoslab.system.shipped import shipped_path

_SHIPPED_NAMES = {"gitignore": ".gitignore"}
"""Files with a meaning for git, shipped under other names."""
_OTHER_FILES = ("inventory/hardware.example.yml",)
"""Additional shipped files of a project."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Create FOLDER with an experiment that runs, its template, published values, a notebook, an inventory and CI
    workflows.

    FOLDER must not exist, or must be empty. Everything that belongs to the project stays in it.
    """
    make_project(folder)
    echo(f"Created {folder}. Next:")
    echo(f"  cd {shlex.quote(str(folder))}")
    echo(f"  {program_name()} run first-policy --lab simulated")


def make_project(folder: Path) -> None:
    """Write a complete project or nothing. Raise `UserError` if the folder is not empty or cannot be written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "a folder that is not empty" if folder.is_dir() else "a file"
        raise UserError(f"{folder}: found {what}, expected none", hint="Name a folder that does not exist yet.")
    with fill_folder(folder) if folder.is_dir() else draft_path(folder) as draft:
        for name, source in _project_files():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, draft / name)


def _project_files() -> Iterator[tuple[str, Path]]:
    """Yield the file names of a project, each with the shipped file to copy."""
    top = shipped_path("project")
    for file in sorted(top.rglob("*")):
        if file.is_file():
            name = file.relative_to(top).as_posix()
            yield _SHIPPED_NAMES.get(name, name), file
    for name in _OTHER_FILES:
        yield name, shipped_path(name)
