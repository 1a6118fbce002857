"""`qoslab man`: manual pages of every command."""

from __future__ import annotations

import copy
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click

from qoslab import __version__
from qoslab.results.file_access import draft_folder
from qoslab.system.printing import echo


@click.command()
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Output folder. [default: ~/.local/share/man/man1]",
)
def command(to: Path | None) -> None:
    """Write the manual pages: qoslab(1), and one page for each command, such as qoslab-run(1).

    An installed qoslab has them already, in share/man/man1 next to its programs, where `man` finds them if the programs
    are in PATH. Pages of an older version are replaced.
    """
    folder = to or user_man_folder()
    count = write_pages(folder)
    echo(f"{count} pages written to {folder}; read them with: man qoslab")


def user_man_folder() -> Path:
    """Return the user's folder of manual pages, which `man` searches if ~/.local/bin is in PATH."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "man" / "man1"


def write_pages(folder: Path) -> int:
    """Write a page for each command and return the number of pages. Raise `UserError` if writing fails; old pages then
    remain.
    """
    texts = manual_pages()
    with draft_folder(folder / "qoslab.1") as place:
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")
        for name in texts:
            (place / name).rename(folder / name)
        for old in folder.glob("qoslab*.1"):
            if old.name not in texts:
                old.unlink()
    return len(texts)


def manual_pages() -> dict[str, str]:
    """Return the page of each command by file name, in the order of names; without a date, so that pages are
    reproducible.
    """
    from qoslab.cli import command_group

    return dict(sorted(_command_pages("qoslab", _load_subcommands(command_group, click.Context(command_group)), None)))


def _command_pages(name: str, command: click.Command, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    from click_man.core import generate_man_page

    context = click.Context(command, info_name=name, parent=parent)
    text = generate_man_page(context, version=__version__)
    text = re.sub(r'^(\.TH "[^"]*" "1") "[^"]*"', r'\1 ""', text.rstrip())
    yield f"{context.command_path.replace(' ', '-')}.1", re.sub(r" +$", "", text, flags=re.MULTILINE) + "\n"
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            if not each.hidden:
                yield from _command_pages(inner, each, context)


def _load_subcommands(found: click.Command, context: click.Context) -> click.Command:
    """Return the command with all subcommands loaded, as click-man requires, and with texts escaped for troff."""
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
        loaded[name] = _load_subcommands(each, click.Context(each, parent=context, info_name=name))
    return click.Group(found.name, loaded, help=page.help, params=found.params, short_help=page.short_help)
