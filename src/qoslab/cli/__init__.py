"""The command line: one file per subcommand, imported only when it is called.

Data goes to stdout, talk to stderr. The exit status is that of `qoslab.errors.ExitStatus`: a subcommand returns one
(nothing means done), or raises. To add a subcommand, write `cli/NAME.py` (not the name of a builtin, which the imported
module would hide here) with a click command named `command`, and add its line to `SUBCOMMANDS`; what is slow to import
(pandas, Ansible, pyATS) belongs inside the command's function.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from qoslab.errors import ExitStatus, ExperimentError, QoslabError, shortage_behind
from qoslab.printing import bear_anything, echo

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "run": ("qoslab.cli.run", "Run an experiment, from policy push to report."),
    "watch": ("qoslab.cli.watch", "Show a run while it goes on."),
    "report": ("qoslab.cli.report", "Analyse a run again and write its report."),
    "infer": ("qoslab.cli.infer", "Say what limits between two captures."),
    "compare": ("qoslab.cli.compare", "Say what of a run is not as in a baseline."),
    "baseline": ("qoslab.cli.baseline", "Keep a full run in the tree, and the document of results with it."),
    "verify": ("qoslab.cli.verify", "Tell whether the files of a run are what it wrote."),
    "export": ("qoslab.cli.export", "Write a run in the format of another tool."),
    "import": ("qoslab.cli.foreign", "Make tables and graphs of other tools' files."),
    "figure": ("qoslab.cli.figure", "Draw a figure of a run for a paper."),
    "draw": ("qoslab.cli.draw", "Draw a topology."),
    "advise": ("qoslab.cli.advise", "Say how many repetitions would show a difference."),
    "notebook": ("qoslab.cli.notebook", "Open JupyterLab on the notebook of an experiment."),
    "init": ("qoslab.cli.init", "Make a folder for experiments of one's own."),
    "new": ("qoslab.cli.new", "Make an experiment file of one's own."),
    "validate": ("qoslab.cli.validate", "Check an experiment file."),
    "plan": ("qoslab.cli.plan", "Show what a run would do, without doing it."),
    "list": ("qoslab.cli.listing", "List experiments and runs."),
    "lab": ("qoslab.cli.lab", "Bring virtual labs up, look around in them, take them down."),
    "testbed": ("qoslab.cli.testbed", "Print the pyATS testbed of a running lab or of an inventory."),
    "job": ("qoslab.cli.job", "Print where the pyATS job is that runs an experiment."),
    "unparsed": ("qoslab.cli.unparsed", "List what routers printed and no parser took."),
    "man": ("qoslab.cli.man", "Write manual pages of every command."),
    "doctor": ("qoslab.cli.doctor", "Check whether this machine has what qoslab needs."),
    "schema": ("qoslab.cli.schema", "Print the JSON Schema of experiment files."),
    "generate": ("qoslab.cli.generate", "Write the files of a checkout that are made from others."),
}
"""Each subcommand's module, and its line in `qoslab --help`."""

# Looking for installed pydantic plugins, of which we use none, reads the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

BROKEN_PIPE = 141
"""128 + SIGPIPE: the reader of our output has gone, which is no mistake of anyone's."""


class ReaderGoneError(Exception):
    """Whoever read our output has closed it. Not an OSError, since click would turn that into exit status 1."""


class LazyGroup(click.Group):
    """A group that imports a subcommand's module when it is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the subcommand."""
        if cmd_name not in SUBCOMMANDS:
            return None
        # Imports allocate much and free nothing: collecting garbage meanwhile costs a tenth of the start.
        gc.disable()
        try:
            command = importlib.import_module(SUBCOMMANDS[cmd_name][0]).command
        finally:
            gc.enable()
        if not isinstance(command, click.Command):
            raise TypeError(f"{SUBCOMMANDS[cmd_name][0]}.command is not a click command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The table's own lines, and options, for the shell."""
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=help_line)
            for name, (_, help_line) in SUBCOMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table's own lines, so that `--help` imports nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in SUBCOMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, with near matches for a misspelt name."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in SUBCOMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(name, SUBCOMMANDS, 1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            raise click.UsageError(f'found "{name}", expected one of {", ".join(SUBCOMMANDS)}{hint}', ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="qoslab", prog_name="qoslab")
def group() -> None:
    """Run network quality-of-service experiments, each from one file.

    \b
    Exit status: 0 done, all figures within tolerance; 1 some figure outside;
    2 a mistake in the input, the machine or a device; 3 the run is invalid;
    4 a defect of qoslab; 130 interrupted.
    """


def _say(text: str) -> None:
    # Who has not loaded it knows no secret; where no file can be opened any more it could not be.
    if (redaction := sys.modules.get("qoslab.redaction")) is not None:
        text = redaction.KNOWN.hidden(text)
    echo(text, err=True)


def _say_what_was_left_out() -> None:
    """Name what other packages add and what did not load, where the command went on without it."""
    if (plugins := sys.modules.get("qoslab.plugins")) is None:
        return
    for error in plugins.LEFT_OUT.values():
        _say(f"qoslab: left out: {error.message}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` where no arguments are given) and return the exit status."""
    bear_anything()
    if os.environ.get("_QOSLAB_COMPLETE", "").startswith("bash_"):
        importlib.import_module("qoslab.cli.bash")
    try:
        result: Any = group.main(
            args=None if arguments is None else list(arguments), prog_name="qoslab", standalone_mode=False
        )
        sys.stdout.flush()
        _say_what_was_left_out()
        return int(result) if isinstance(result, int) else ExitStatus.WITHIN
    except click.ClickException as error:
        error.show(sys.stderr)
        return ExitStatus.USER_MISTAKE
    except (KeyboardInterrupt, click.Abort):
        _say("qoslab: interrupted")
        return ExitStatus.INTERRUPTED
    except (ReaderGoneError, BrokenPipeError):
        # Python flushes stdout at exit and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except QoslabError as error:
        _say(f"qoslab: {error.message}")
        if error.hint:
            _say(f"  {error.hint}")
        if isinstance(error, ExperimentError):
            from qoslab.cli.gate import annotate_findings, on_github

            if on_github():
                annotate_findings(error.findings)
        short = error.exit_status == ExitStatus.OUR_FAULT and shortage_behind(error)
        return ExitStatus.USER_MISTAKE if short else error.exit_status
    except Exception as error:
        if shortage := shortage_behind(error):
            _say(f"qoslab: this machine has no more of what is needed: {shortage}")
            _say("  Make room, or let the process have more of it (`ulimit -a`), and type the same again.")
            return ExitStatus.USER_MISTAKE
        _say(traceback.format_exc())
        _say(f"qoslab: this is a defect of qoslab, not of your input: {type(error).__name__}: {error}")
        _say("  Please report it with the lines above and the command that you typed.")
        return ExitStatus.OUR_FAULT
