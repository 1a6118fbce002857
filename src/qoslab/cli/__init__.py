"""The command line: one file per subcommand, imported only when it is called.

Data goes to standard output, messages to standard error. The exit status is that of `qoslab.errors.ExitStatus`: a
subcommand returns one (None means success), or raises. To add a subcommand, write `cli/NAME.py` (not the name of a
builtin, which the imported module would hide here) with a click command named `command`, and add its line to
`SUBCOMMANDS`. Slow imports (pandas, Ansible, pyATS) belong inside the command's function.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qoslab.errors import (
    ExitStatus,
    ExperimentError,
    QoslabError,
    UserError,
    did_you_mean,
    find_damaged_bytecode,
    find_shortage,
)
from qoslab.system.printing import echo, escape_unencodable_output, one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "policy": ("qoslab.cli.policy", "Show the effective values of a QoS policy, with findings."),
    "try": ("qoslab.cli.trial", "Simulate a QoS policy under traffic, with and without a change."),
    "explain": ("qoslab.cli.explain", "Trace one packet through a router, step by step."),
    "run": ("qoslab.cli.run", "Run an experiment, from policy push to report."),
    "watch": ("qoslab.cli.watch", "Show the progress of a run."),
    "report": ("qoslab.cli.report", "Analyse a run again and write its report."),
    "infer": ("qoslab.cli.infer", "Infer the policer, shaper or line rate between two captures."),
    "compare": ("qoslab.cli.compare", "Compare a run with a baseline and list the differences."),
    "baseline": ("qoslab.cli.baseline", "Save a complete run as the baseline and update the results page."),
    "verify": ("qoslab.cli.verify", "Verify the checksums of a run's files."),
    "export": ("qoslab.cli.export", "Export a run to the format of another tool."),
    "import": ("qoslab.cli.importing", "Import router configurations, captures or results of other tools."),
    "figure": ("qoslab.cli.figure", "Draw one figure of a run, for a paper."),
    "draw": ("qoslab.cli.draw", "Draw a topology."),
    "advise": ("qoslab.cli.advise", "Estimate the number of repetitions needed to detect a difference."),
    "notebook": ("qoslab.cli.notebook", "Open the notebook of an experiment in JupyterLab."),
    "init": ("qoslab.cli.init", "Create a project folder for your experiments."),
    "new": ("qoslab.cli.new", "Create an experiment file or a topology file."),
    "validate": ("qoslab.cli.validate", "Check an experiment file."),
    "plan": ("qoslab.cli.plan", "Show the steps of a run without running it."),
    "list": ("qoslab.cli.listing", "List experiments and runs."),
    "lab": ("qoslab.cli.lab", "Start, inspect and stop virtual labs."),
    "testbed": ("qoslab.cli.testbed", "Print the pyATS testbed of a running lab or of an inventory."),
    "job": ("qoslab.cli.job", "Print the path of the pyATS job file."),
    "unparsed": ("qoslab.cli.unparsed", "List router output that no parser recognised."),
    "man": ("qoslab.cli.man", "Write the manual pages."),
    "doctor": ("qoslab.cli.doctor", "Check that this machine meets the requirements."),
    "schema": ("qoslab.cli.schema", "Print the JSON Schema of experiment files."),
    "generate": ("qoslab.cli.generate", "Regenerate the generated files of a checkout."),
}
"""Module of each subcommand, and its line in `qoslab --help`."""

# Looking for installed pydantic plugins, of which we use none, reads the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

MAX_NAME_CHARACTERS = 200
"""Maximum characters of a name in a message."""
BROKEN_PIPE = 141
"""Exit status if the reader closed our output: 128 + SIGPIPE. It is not an error."""


class ReaderGoneError(Exception):
    """The reader closed our output. Not an OSError, which click would turn into exit status 1."""


class LazyGroup(click.Group):
    """A click group that imports a subcommand's module only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the subcommand."""
        if cmd_name not in SUBCOMMANDS:
            return None
        # Imports allocate much and free nothing: collecting garbage in the meantime costs a tenth of the start.
        gc.disable()
        try:
            command = importlib.import_module(SUBCOMMANDS[cmd_name][0]).command
        finally:
            gc.enable()
        if not isinstance(command, click.Command):
            raise TypeError(f"{SUBCOMMANDS[cmd_name][0]}.command is not a click command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the subcommands of the table, and options, as shell completions."""
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
        """Write the lines of the table, so that `--help` imports no subcommand."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in SUBCOMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, but propose similar names for a misspelled one."""
        name = args[0] if args else ""
        if not name.startswith("-") and name not in SUBCOMMANDS:
            hint = did_you_mean(name, SUBCOMMANDS)
            message = f'found "{name}", expected one of {", ".join(SUBCOMMANDS)}'
            raise click.UsageError("; ".join(filter(None, (message, hint))), ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="qoslab", prog_name="qoslab")
def command_group() -> None:
    """Run network quality-of-service experiments, each described by one file.

    \b
    Exit status:
      0    success; all values are within tolerance
      1    the run is valid, but a value is out of tolerance
      2    error in the input, on this machine or on a device
      3    the run finished, but its results are invalid or undecided
      4    bug in qoslab
      130  interrupted
    """


def _print_message(text: str) -> None:
    # Without this module there are no known secrets. It may be impossible to load if no file can be opened.
    if (redaction := sys.modules.get("qoslab.results.redaction")) is not None:
        text = redaction.KNOWN.hidden(text)
    echo(text, err=True)


def _print_skipped_plugins() -> None:
    """Print the plug-ins that did not load and were skipped."""
    if (plugins := sys.modules.get("qoslab.system.plugins")) is None:
        return
    for error in plugins.SKIPPED_PLUGINS.values():
        _print_message(f"qoslab: plug-in skipped: {error.message}")


def _refuse_line_ends(words: Sequence[str]) -> None:
    """Refuse names with line ends, which messages and results would print as separate lines."""
    for place, text in (
        *(("on the command line", word) for word in words),
        ("as the current folder", _working_folder()),
    ):
        if "\n" in text:
            shown = one_line(text if len(text) < MAX_NAME_CHARACTERS else f"{text[:MAX_NAME_CHARACTERS]}…")
            message = f'found "{shown}" {place}, expected no line break'
            raise UserError(message, hint="Rename the file or folder.")


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        # The folder was removed; a command that needs it reports the error.
        return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with `sys.argv`, and return the exit status. No arguments: print the help."""
    escape_unencodable_output()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if os.environ.get("_QOSLAB_COMPLETE", "").startswith("bash_"):
        importlib.import_module("qoslab.cli.bash")
    try:
        _refuse_line_ends(given)
        result: Any = command_group.main(args=given or ["--help"], prog_name="qoslab", standalone_mode=False)
        sys.stdout.flush()
        _print_skipped_plugins()
        return int(result) if isinstance(result, int) else ExitStatus.WITHIN
    except click.ClickException as error:
        error.show(sys.stderr)
        return ExitStatus.USER_MISTAKE
    except (KeyboardInterrupt, click.Abort) as error:
        # click treats any EOFError as the end of the input.
        if damaged := find_damaged_bytecode(error):
            return _remove_bytecode(damaged)
        _print_message("qoslab: interrupted")
        return ExitStatus.INTERRUPTED
    except (ReaderGoneError, BrokenPipeError):
        # Python flushes stdout at exit and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except QoslabError as error:
        _print_message(f"qoslab: {error.message}")
        if error.hint:
            _print_message(f"  {error.hint}")
        if isinstance(error, ExperimentError):
            from qoslab.cli.gate import annotate_findings, is_on_github

            if is_on_github():
                annotate_findings(error.findings)
        short = error.exit_status == ExitStatus.OUR_FAULT and find_shortage(error)
        return ExitStatus.USER_MISTAKE if short else error.exit_status
    except Exception as error:
        if damaged := find_damaged_bytecode(error):
            return _remove_bytecode(damaged)
        if shortage := find_shortage(error):
            _print_message(f"qoslab: this machine has run out of a resource: {shortage}")
            _print_message("  Free some of it, or raise the limit (`ulimit -a`), and run the command again.")
            return ExitStatus.USER_MISTAKE
        _print_message(traceback.format_exc())
        _print_message(f"qoslab: this is a defect of qoslab, not of your input: {type(error).__name__}: {error}")
        _print_message("  Please report it with the lines above and the command that you typed.")
        return ExitStatus.OUR_FAULT


def _remove_bytecode(damaged: str) -> int:
    """Remove a damaged file of compiled Python, which Python then writes again."""
    _print_message(f"qoslab: found {one_line(damaged)} truncated, possibly because of a full disk or a file size limit")
    try:
        Path(damaged).unlink()
        _print_message("  It was removed: run the command again, and Python recompiles it.")
    except OSError as error:
        _print_message(f"  It could not be removed ({error.strerror}): remove it and run the command again.")
    return ExitStatus.USER_MISTAKE
