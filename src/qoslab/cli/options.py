"""Arguments that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from qoslab.model.experiment import Experiment
from qoslab.schema import load_experiment, parse_set
from qoslab.units import Duration, QuantityError

_F = TypeVar("_F", bound=Callable[..., Any])

EXPERIMENTS = Path("experiments")
"""Where experiment files are, seen from the working directory."""
RUNS = Path("runs")
"""Where run folders are, seen from the working directory."""


class DurationType(click.ParamType[Duration]):
    """A duration such as `10s`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        """Parse it, or fail with the proposal."""
        if isinstance(value, Duration):
            return value
        try:
            return Duration.parse(str(value))
        except QuantityError as error:
            self.fail(str(error), param, ctx)


DURATION = DurationType()

experiment_argument = click.argument("experiment", metavar="EXPERIMENT")
set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PATH=VALUE",
    help="Change one value of the file, as R1.platform=linux or arms.policed.configure.R1.variables.cir=2000000.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def cell_options(function: _F) -> _F:
    """`--arm`, `--duration`, `--repetitions`: which cells are run, and how long."""
    for option in (
        click.option("--repetitions", type=click.IntRange(min=1), help="How often each arm is run."),
        click.option("--duration", type=DURATION, help="Traffic time of each cell, as 10s."),
        click.option("--arm", "arms", multiple=True, metavar="ARM", help="Only this arm; may be given repeatedly."),
    ):
        function = option(function)
    return function


def experiment_file(given: str) -> Path:
    """The file that an argument means: a path, or the name of a file in `experiments/`."""
    path = Path(given)
    named = EXPERIMENTS / f"{given}.yml"
    return named if not path.exists() and path.name == given and named.exists() else path


def open_experiment(given: str, sets: Sequence[str]) -> tuple[Path, Experiment]:
    """Read and check an experiment, with `--set` options. `ExperimentError` where it does not hold."""
    file = experiment_file(given)
    return file, load_experiment(file, dict(map(parse_set, sets)))
