"""What the shell is offered where the user presses the tabulator: experiments, arms, parameters and their values, runs.

It is asked by click (`_QOSLAB_COMPLETE=bash_source qoslab`). A file that does not hold offers nothing, and no message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from qoslab.cli.places import EXPERIMENTS, RUNS, open_sweep
from qoslab.errors import QoslabError
from qoslab.labs import LABS
from qoslab.shipped import shipped

if TYPE_CHECKING:
    from qoslab.schema import Sweep

Items = list[CompletionItem]


def _starting(words: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(incomplete)]


def experiments(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Names of experiments here and of shipped ones; else files."""
    found = [file.stem for folder in (EXPERIMENTS, shipped("experiments")) for file in sorted(folder.glob("*.yml"))]
    return _starting(found, incomplete) or [CompletionItem(incomplete, type="file")]


def runs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Experiments that have a finished run, and the folders of runs, newest first."""
    named = [link.parent.name for link in sorted(RUNS.glob("*/latest"))]
    folders = sorted((folder for folder in RUNS.glob("*/*Z*")), key=lambda folder: folder.name, reverse=True)
    return _starting([*named, *map(str, folders)], incomplete) or [CompletionItem(incomplete, type="dir")]


def _sweep(ctx: click.Context) -> Sweep | None:
    """The experiment that the line names."""
    # Behind an option that still lacks its value click leaves what it has read as it is.
    given = ctx.params.get("experiment") or next(iter(ctx.args), "")
    try:
        return open_sweep(str(given), ())[1]
    except QoslabError:
        return None


def arms(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Arms of the experiment that the line names."""
    sweep = _sweep(ctx)
    if sweep is None:
        return []
    return [
        CompletionItem(arm.name, help=arm.title or None)
        for arm in sweep.experiment.arms
        if arm.name.startswith(incomplete)
    ]


def parameters(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Parameters of the experiment that the line names, as `rtt=`; behind that the values that its cells have."""
    sweep = _sweep(ctx)
    if sweep is None:
        return []
    name, equals, _ = incomplete.partition("=")
    if not equals:
        return _starting((f"{each}=" for each in sweep.parameters), incomplete)
    cells = (values for arm in sweep.experiment.arms for values in sweep.combinations(arm.name))
    return _starting((f"{name}={values[name]}" for values in cells if name in values), incomplete)


def labs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Kinds of labs; else files, for inventories."""
    words = [name for name, kind in LABS.items() if not kind.placed]
    return _starting(words, incomplete) or [CompletionItem(incomplete, type="file")]
