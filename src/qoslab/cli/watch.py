"""`qoslab watch`: the progress of a run."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.options import LiveChoice, live_options
from qoslab.cli.output_options import json_option
from qoslab.cli.places import RUNS
from qoslab.errors import ExitStatus
from qoslab.system.printing import echo
from qoslab.system.priority import step_last

if TYPE_CHECKING:
    from qoslab.live.counter_rates import ClassKey
    from qoslab.live.server import LiveView
    from qoslab.live.watched_run import WatchedRun

REFRESH_INTERVAL_S = 1.0


@click.command()
@click.argument("run", required=False, shell_complete=complete_runs)
@live_options
@json_option
def command(run: str | None, live: LiveChoice, as_json: bool) -> ExitStatus:
    """Show the progress of a run: rates, queues, drops and delays of each class, and the values so far.

    RUN is a run folder or an experiment name (its newest run). [default: the newest run of all] The run may have been
    started elsewhere, in any kind of lab: only its folder is read. Without a terminal, one line is printed for each
    class and reading; with --json, one object per second. The command ends with the run; the exit status is 3 if the
    run was aborted, else 0.
    """
    from qoslab.live.watched_run import WatchedRun
    from qoslab.results import find_run_to_resume

    watched = WatchedRun(find_run_to_resume(RUNS, run))
    # Processes that measure have priority.
    step_last()
    with ExitStack() as serving:
        view = None
        if live.is_requested:
            from qoslab.live.server import LiveView

            view = serving.enter_context(LiveView(live.browser, live.port, live.metrics))
            view.serve(watched)
            for line in view.addresses:
                echo(line, err=True)
        _watch(watched, view, as_json=as_json)
    if watched.state == "finished":
        if watched.folder.report.exists() and not as_json:
            echo(f"Report: {watched.folder.report}")
        return ExitStatus.WITHIN
    return ExitStatus.RUN_INVALID


def _watch(run: WatchedRun, view: LiveView | None, *, as_json: bool) -> None:
    """Watch until the run ends."""
    from rich.console import Console
    from rich.live import Live

    from qoslab.live.screen import new_lines, render_screen, state_line

    console = Console()
    printed: dict[tuple[str, ClassKey], float] = {}
    with ExitStack() as drawing:
        live = None
        if console.is_terminal and not as_json:
            live = drawing.enter_context(Live(console=console, auto_refresh=False, vertical_overflow="crop"))
        while True:
            if view is None:
                run.read_new_data()
            elif view.error is not None:
                raise view.error
            with nullcontext() if view is None else view.lock:
                over = run.is_over
                if as_json:
                    from qoslab.live.page import page_content

                    echo(json.dumps(page_content(run, graphs=False)))
                elif live is not None:
                    live.update(render_screen(run, console, whole=over), refresh=True)
                else:
                    for line in new_lines(run, printed):
                        echo(line)
            if over:
                break
            time.sleep(REFRESH_INTERVAL_S)
    if live is None and not as_json:
        echo(state_line(run))
