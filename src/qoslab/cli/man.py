"""`qoslab man`: manual pages of every command."""

from __future__ import annotations

import copy
import inspect
import os
import re
import tempfile
from pathlib import Path

import click

from qoslab import __version__
from qoslab.printing import echo
from qoslab.results.files import writing


@click.command()
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where they are written; man1 of the user's own manual pages where absent.",
)
def command(to: Path | None) -> None:
    """Write manual pages: qoslab(1), and one for each command, as qoslab-run(1).

    `man` finds them in ~/.local/share/man/man1 (of XDG_DATA_HOME) where ~/.local/bin is in PATH. What stands there of
    an older version is replaced.
    """
    folder = to or user_folder()
    count = write_pages(folder)
    echo(f"{count} pages written to {folder}; read them with: man qoslab")


def user_folder() -> Path:
    """Where `man` looks for the user's own pages, since the programs beside it are in his PATH."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "man" / "man1"


def write_pages(folder: Path) -> int:
    """Write a page for each command; how many there are. `UserError` where they cannot be; old ones stay then."""
    from click_man.core import write_man_pages

    from qoslab.cli import group

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".qoslab.") as place:
            pages = _eager(group, click.Context(group))
            write_man_pages("qoslab", pages, version=__version__, target_dir=place, date="")
            made = {page.name: page.rename(folder / page.name) for page in sorted(Path(place).iterdir())}
        for old in folder.glob("qoslab*.1"):
            if old.name not in made:
                old.unlink()
    return len(made)


def _eager(found: click.Command, context: click.Context) -> click.Command:
    """The same with all subcommands loaded, which is where click-man looks for them, and texts as troff takes them."""
    page = copy.copy(found)
    page.help = re.sub(
        r"^(?=['.])",
        r"\\&",
        inspect.cleandoc(found.help or "").replace("\\", "\\e").replace("\b\n", ""),
        flags=re.MULTILINE,
    )
    page.short_help = " ".join(page.help.split("\n\n")[0].split())
    if not isinstance(found, click.Group):
        return page
    loaded = {}
    for name in found.list_commands(context):
        each = found.get_command(context, name)
        assert each is not None
        loaded[name] = _eager(each, click.Context(each, parent=context, info_name=name))
    return click.Group(found.name, loaded, help=page.help, params=found.params, short_help=page.short_help)
