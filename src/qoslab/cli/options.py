"""Arguments that several subcommands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from qoslab.cli import completion
from qoslab.cli.places import RUNS
from qoslab.errors import ExperimentError, UserError, did_you_mean
from qoslab.lab_kinds import LABS, LabKind, find_kind
from qoslab.model.experiment import Order
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.partial_runs import STRICT
from qoslab.model.units import Duration, Quantity, QuantityError, Rate
from qoslab.plan import Options, Plan, make_plan

if TYPE_CHECKING:
    from qoslab.results import RunOptions
    from qoslab.schema import Sweep

_F = TypeVar("_F", bound=Callable[..., Any])


_Q = TypeVar("_Q", bound=Quantity)


class QuantityType(click.ParamType[_Q]):
    """A quantity such as `10s`."""

    def __init__(self, kind: type[_Q]) -> None:
        self.name = kind.__name__.lower()
        self._kind: type[_Q] = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _Q:
        """Parse the value, or fail with the proposal."""
        if isinstance(value, self._kind):
            return value
        try:
            return self._kind.parse(str(value))
        except QuantityError as error:
            self.fail(str(error), param, ctx)


DURATION = QuantityType(Duration)
RATE = QuantityType(Rate)

_KINDS = "; ".join(kind.help if kind.has_place else f"{kind.name}: {kind.help}" for kind in LABS.values())

experiment_argument = click.argument("experiment", metavar="EXPERIMENT", shell_complete=completion.complete_experiments)
set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a value of the file, such as R1.platform=engine or arms.policed.configure.R1.variables.cir=2000000.",
)


class LabType(click.ParamType[str]):
    """A kind of lab, or the path of an existing one."""

    name = "lab"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the kind, or the absolute path."""
        word = str(value)
        if not find_kind(word).has_place:
            return word
        if Path(word).exists():
            return str(Path(word).absolute())
        words = [name for name, kind in LABS.items() if not kind.has_place]
        folder = Path(word).parent
        siblings = [str(folder / each.name) for each in folder.iterdir()] if folder.is_dir() else []
        near = did_you_mean(word, (*words, *siblings))
        message = f'found "{word}", expected {", ".join(words)} or the path of an inventory'
        return self.fail(f"{message}; {near}" if near else message, param, ctx)


lab_option = click.option(
    "--lab",
    type=LabType(),
    shell_complete=completion.complete_labs,
    metavar="|".join([name for name, kind in LABS.items() if not kind.has_place] + ["PATH"]),
    help=f"Lab to run the cells in. {_KINDS}. [default: {DEFAULT_LAB}]",
)
ask_option = click.option("--ask", is_flag=True, help="Prompt for router passwords missing from the inventory.")


class JobsType(click.ParamType[int | str]):
    """A number of labs, or `auto`."""

    name = "jobs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return a number of at least 1, or `auto`."""
        text = str(value)
        if text == "auto":
            return text
        if not text.isdecimal() or int(text) < 1:
            self.fail(f'found "{text}", expected a number from 1, or auto', param, ctx)
        return int(text)


JOBS = JobsType()


@dataclass(frozen=True)
class CellChoice:
    """Choice of cells, and their duration."""

    arms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    duration: Duration | None = None
    repetitions: int | None = None
    order: Order | None = None
    lab: str | None = None
    """Kind of lab, or location of a lab; None if not given."""
    strict: bool = False
    """True if values that a shortened run did not reach count as failures."""

    @property
    def kind(self) -> LabKind:
        """The kind of lab."""
        return find_kind(self.lab or DEFAULT_LAB)

    @property
    def place(self) -> str:
        """Location of the lab, for kinds that are `placed`; else empty."""
        return (self.lab or "") if self.kind.has_place else ""

    def plan(self, sweep: Sweep) -> Plan:
        """Return the plan of a run. Raise `ExperimentError` for options that do not fit the experiment."""
        if self.kind.real_time:
            return make_plan(sweep, self.options())
        from qoslab.run.costs import simulation_costs  # loads the modules that read run folders

        return make_plan(sweep, self.options(simulation_costs(RUNS, sweep.experiment.name)))

    def options(self, costs: Mapping[str, float] = MappingProxyType({})) -> Options:
        """Convert the choice to options of the plan. Raise `ExperimentError` for an `--only` that is not KEY=VALUE."""
        only = []
        for each in self.only:
            name, equals, value = each.partition("=")
            if not equals or not name.strip() or not value.strip():
                raise ExperimentError(f'found --only "{each}", expected KEY=VALUE, such as rtt="50 ms"')
            only.append((name.strip(), value.strip()))
        return Options(
            arms=self.arms,
            duration=self.duration,
            repetitions=self.repetitions,
            only=tuple(only),
            order=self.order,
            lab=self.kind.name,
            costs=costs,
        )

    def to_words(self) -> tuple[str, ...]:
        """Return the options as typed."""
        found = [f"--duration {self.duration}"] if self.duration is not None else []
        found += [f"--arm {arm}" for arm in self.arms]
        found += [f"--repetitions {self.repetitions}"] if self.repetitions is not None else []
        found += [f"--only {each}" for each in self.only]
        found += [f"--order {self.order}"] if self.order is not None else []
        found += [f"--lab {self.lab}"] if self.lab is not None else []
        found += [STRICT] if self.strict else []
        return tuple(found)

    def to_record(self, file: Path, sets: Sequence[str]) -> RunOptions:
        """Convert the choice to the record of an experiment's run, from which `after` reads it."""
        from qoslab.results import RunOptions

        return RunOptions(
            file=str(file.resolve()),
            sets=tuple(sets),
            arms=self.arms,
            only=self.only,
            duration=self.duration,
            repetitions=self.repetitions,
            order=self.order,
            lab=self.lab or DEFAULT_LAB,
            strict=self.strict,
        )

    def merge_record(self, recorded: RunOptions) -> CellChoice:
        """Return the recorded choice with new options applied. Raise `UserError` for another lab: results of different
        labs are not mixed.
        """
        if self.lab not in (None, recorded.lab):
            raise UserError(
                f"found --lab {self.lab} for a run with --lab {recorded.lab}, expected the same",
                hint="Leave --lab out, or start a new run without --resume.",
            )
        return CellChoice(
            arms=self.arms or recorded.arms,
            only=self.only or recorded.only,
            duration=self.duration or recorded.duration,
            repetitions=self.repetitions or recorded.repetitions,
            order=self.order or recorded.order,
            lab=recorded.lab,
            strict=self.strict or recorded.strict,
        )


def cell_options(function: _F) -> _F:
    """Add `--arm`, `--only`, `--duration`, `--repetitions`, `--order`, `--lab` as one argument `choice`."""

    @functools.wraps(function)
    def gathered(
        *,
        arms: tuple[str, ...],
        only: tuple[str, ...],
        duration: Duration | None,
        repetitions: int | None,
        order: Order | None,
        lab: str | None,
        **rest: Any,
    ) -> Any:
        return function(choice=CellChoice(arms, only, duration, repetitions, order, lab), **rest)

    result: Any = gathered
    for option in (
        lab_option,
        click.option(
            "--order", type=click.Choice(["as written", "random", "blocked"]), help="Order in which to run the cells."
        ),
        click.option("--repetitions", type=click.IntRange(min=1), help="Number of times to run each cell."),
        click.option("--duration", type=DURATION, help="Duration of the traffic in each cell, such as 10s."),
        click.option(
            "--only",
            multiple=True,
            metavar="KEY=VALUE",
            shell_complete=completion.complete_parameters,
            help="Run only cells with this parameter value, such as rtt='50 ms'. Repeatable.",
        ),
        click.option(
            "--arm",
            "arms",
            multiple=True,
            metavar="ARM",
            shell_complete=completion.complete_arms,
            help="Run only this arm. Repeatable.",
        ),
    ):
        result = option(result)
    return cast("_F", result)


def tls_options(function: _F) -> _F:
    """Add `--tls-ca-file`, `--tls-cert`, `--tls-key` as one argument `tls` with the keys `ca_file`, `cert` and
    `key`.
    """

    @functools.wraps(function)
    def gathered(*, tls_ca_file: Path | None, tls_cert: Path | None, tls_key: Path | None, **rest: Any) -> Any:
        return function(tls={"ca_file": tls_ca_file, "cert": tls_cert, "key": tls_key}, **rest)

    result: Any = gathered
    for name, about in (
        ("key", "Private key for --tls-cert."),
        ("cert", "Client certificate for a tls:// scheduler."),
        ("ca-file", "CA certificate of a tls:// scheduler."),
    ):
        pem = click.Path(dir_okay=False, path_type=Path)
        result = click.option(f"--tls-{name}", type=pem, metavar="FILE", help=about)(result)
    return cast("_F", result)


@dataclass(frozen=True)
class LiveChoice:
    """Options for serving a running run."""

    browser: bool
    port: int
    metrics: int | None

    @property
    def is_requested(self) -> bool:
        """True if any of the options is given."""
        return self.browser or self.metrics is not None


def live_options(function: _F) -> _F:
    """Add `--live`, `--port`, `--metrics` as one argument `live`, a `LiveChoice`."""

    @functools.wraps(function)
    def gathered(*, live: bool, port: int | None, metrics: int | None, **rest: Any) -> Any:
        if port is not None and not live:
            raise click.UsageError("found --port without --live, expected both: --port sets the port of the live page")
        return function(live=LiveChoice(live, port or 0, metrics), **rest)

    result: Any = gathered
    ports = click.IntRange(0, 65535)
    result = click.option(
        "--metrics", type=ports, metavar="PORT", help="Serve OpenMetrics on this port of 127.0.0.1 during the run."
    )(result)
    result = click.option("--port", type=ports, metavar="PORT", help="Port for --live. [default: a free port]")(result)
    result = click.option(
        "--live", is_flag=True, help="Serve a live page to a browser on this machine and print its address."
    )(result)
    return cast("_F", result)
