"""What a run will do, in order: cells (arm × parameters × repetition) and their steps, with estimates. Pure.

`qoslab plan` prints it, `run` carries it out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from qoslab.errors import ExperimentError
from qoslab.model.experiment import Arm, Configuration, Experiment, Flow, Moment, Order
from qoslab.model.expressions import Value, read_value, show_value
from qoslab.model.labs import VIRTUAL
from qoslab.model.matrix import BUILT_IN, CELL_LIMIT, as_scalar, as_texts, same
from qoslab.platforms import hosts_of, platform_of, routers_of
from qoslab.schema import CellIdentity, Identified, Sweep
from qoslab.schema.near import did_you_mean
from qoslab.units import Duration, QuantityError, Rate, Size

StepKind = Literal[
    "lab up",
    "workers up",
    "prepare",
    "apply",
    "verify",
    "capture on",
    "observe",
    "traffic",
    "simulate",
    "probe",
    "collect",
    "capture off",
    "restore",
    "lab down",
    "report",
]

# Estimates in seconds, for people who wait: rough, from runs on a machine with two cores.
LAB_UP_S = 4.0
"""The lab takes a tenth of it; Ansible and Unicon start meanwhile."""
LAB_DOWN_S = 0.3
PREPARE_S = 0.1
PLAYBOOK_S = 0.8
"""A few commands to one device."""
SHOW_S = 0.2
CAPTURE_ON_S = 0.3
CAPTURE_OFF_S = 0.2
DRAIN_S = 0.3
"""Connections end after what their queues still hold has arrived."""
COLLECT_S = 0.1
REPORT_S = 4.0
REPORT_CELL_S = 0.1
"""What each cell adds to that."""
WORKERS_UP_S = 3.0
"""The processes that simulate."""
SIMULATED_CELL_S = 0.1
"""What a simulated cell takes besides: it is sent to a process, and its files come back."""

BESIDE: frozenset[StepKind] = frozenset({"apply", "verify", "collect", "capture off", "restore"})
"""Steps during which another cell has traffic, where there are several labs; observations after the traffic too."""

DURING = (2, 3)
"""The moment `during`, as a fraction of the traffic time."""


@dataclass(frozen=True)
class Options:
    """What the command line changes about an experiment."""

    arms: tuple[str, ...] = ()
    """Only these, in the experiment's order; all where empty."""
    duration: Duration | None = None
    """Instead of the experiment's."""
    repetitions: int | None = None
    """Instead of the experiment's."""
    lab: str = VIRTUAL
    """The kind of lab; see `qoslab.model.labs`."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """By arm, the seconds that a second of a cell's traffic takes where it is simulated; of none, it is not known."""
    only: tuple[tuple[str, str], ...] = ()
    """Only cells with these values, by parameter (or `arm`, `repetition`); of one parameter any of its values."""
    order: Order | None = None
    """Instead of the experiment's."""


@dataclass(frozen=True)
class Step:
    """One thing that is done."""

    kind: StepKind
    nodes: tuple[str, ...]
    """The nodes that it concerns."""
    detail: str
    """What exactly, for people."""
    seconds: float | None
    """Estimate; None where nobody knows."""
    after_s: float | None = None
    """Started so long after the cell's traffic, while that goes on: takes no time of its own."""
    moment: Moment | None = None
    """Of an observation."""


@dataclass(frozen=True)
class Cell(Identified):
    """One arm with one combination of parameters, once."""

    identity: CellIdentity
    sweep: Sweep = field(repr=False, compare=False)
    lab: str = VIRTUAL
    """The kind of lab that it is to be run in."""
    cost: float | None = field(default=None, repr=False, compare=False)
    """Seconds that a second of its traffic takes where it is simulated; None where nobody knows."""

    @property
    def experiment(self) -> Experiment:
        """The experiment that this cell is: one arm, all values in their places."""
        return self.sweep.resolve(self.identity)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is done, in order."""
        experiment = self.experiment
        arm = experiment.arm(self.arm)
        return tuple(_steps(experiment, arm) if self.lab == VIRTUAL else _simulation(experiment, arm, self.cost))

    @property
    def seconds(self) -> float | None:
        """Estimate of all steps one after another; None where nobody knows."""
        return _sum(step.seconds for step in self.steps if step.after_s is None)

    @property
    def turn_seconds(self) -> float | None:
        """Estimate of the part during which it keeps others from having traffic; None where nobody knows."""
        return _sum(
            step.seconds
            for step in self.steps
            if step.after_s is None and step.kind not in BESIDE and step.moment != "after"
        )


def _sum(parts: Iterable[float | None]) -> float | None:
    """The sum; None where a part is not known."""
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


TIMES = frozenset({"duration", "start_after", "frequency", "interval", "count", "packets"})
"""Keys of an experiment whose values make a cell longer; for the estimate."""


@dataclass(frozen=True)
class Plan:
    """A whole run."""

    sweep: Sweep
    """The experiment with the options applied; it still lists the arms that are left out."""
    lab: str
    before: tuple[Step, ...]
    cells: tuple[Cell, ...]
    after: tuple[Step, ...]

    @property
    def experiment(self) -> Experiment:
        """The experiment, with the parameters of each arm's first combination."""
        return self.sweep.experiment

    @property
    def seconds(self) -> float | None:
        """Estimate of the run, cells one after another; None where nobody knows."""
        return self.seconds_with(1)

    def seconds_with(self, labs: int) -> float | None:
        """Estimate of the run with so many cells having traffic side by side, and further labs made ready meanwhile.

        None where nobody knows.
        """
        known: dict[tuple[object, ...], tuple[float, float]] = {}
        names = {arm.name: self.sweep.names_at(arm.name, TIMES) for arm in self.experiment.arms}
        whole = turns = 0.0
        for cell in self.cells:
            # Cells that differ in other things take as long as each other.
            key = (cell.arm, *(cell.identity.get(name) for name in names[cell.arm]))
            if key not in known:
                seconds, turn = cell.seconds, cell.turn_seconds
                if seconds is None or turn is None:
                    return None
                known[key] = seconds, turn
            whole += known[key][0]
            turns += known[key][1]
        around = sum(step.seconds or 0.0 for step in (*self.before, *self.after))
        side_by_side = min(labs, len(self.cells))
        if side_by_side <= 1:
            return around + whole
        # Nobody has traffic while the first cells are configured, and after the last. No cell is shorter beside others.
        longest = max(turn for _, turn in known.values())
        return around + (whole - turns) / len(self.cells) + max(turns / side_by_side, longest)

    def as_dict(self) -> dict[str, Any]:
        """For `--json`: plain values, times in seconds."""
        return {
            "experiment": self.experiment.name,
            "lab": self.lab,
            "seconds": self.seconds,
            "before": [asdict(step) for step in self.before],
            "cells": [
                {
                    "arm": cell.arm,
                    "parameters": as_texts(cell.parameters),
                    "repetition": cell.repetition,
                    "seconds": cell.seconds,
                    "steps": [asdict(step) for step in cell.steps],
                }
                for cell in self.cells
            ],
            "after": [asdict(step) for step in self.after],
        }


def traffic_time(experiment: Experiment, arm: Arm) -> Duration:
    """From the start of the first flow to the end of the last."""
    ends = [flow.start_after + experiment.duration_of(arm, flow) for flow in experiment.flows_of(arm)]
    return max(ends, default=Duration(0))


def make_plan(experiment: Experiment | Sweep, options: Options | None = None) -> Plan:
    """The run of a checked experiment. `ExperimentError` for options that it cannot follow."""
    chosen = options or Options()
    sweep = experiment if isinstance(experiment, Sweep) else Sweep.of(experiment)
    names = [arm.name for arm in sweep.experiment.arms]
    for name in chosen.arms:
        if name not in names:
            raise ExperimentError(
                f'found the arm "{name}", expected one of {", ".join(names)}', hint="The arms are those of --arm."
            )
    if chosen.repetitions is not None and chosen.repetitions < 1:
        raise ExperimentError(f"found {chosen.repetitions} repetitions, expected at least 1")
    if chosen.duration is not None and not chosen.duration:
        raise ExperimentError(f"found the duration {chosen.duration}, expected one above zero")
    changes: dict[str, Any] = {}
    if chosen.duration is not None:
        changes["duration"] = chosen.duration
    if chosen.repetitions is not None:
        changes["repetitions"] = chosen.repetitions
    if chosen.order is not None:
        changes["order"] = chosen.order
    sweep = sweep.with_experiment(**changes)
    if sweep.count > CELL_LIMIT:
        found = f"found {sweep.count} cells, repetitions counted, expected at most {CELL_LIMIT}"
        raise ExperimentError(found, hint="Repeat less often.")
    experiment = sweep.experiment
    everyone = tuple(experiment.topology.nodes)
    up = Step("lab up", everyone, f"{len(everyone)} nodes, {len(experiment.topology.links)} links", LAB_UP_S)
    down = Step("lab down", everyone, "", LAB_DOWN_S)
    workers = Step("workers up", (), "processes that simulate", WORKERS_UP_S)
    has_lab = chosen.lab == VIRTUAL
    cells = tuple(
        Cell(identity, sweep, chosen.lab, chosen.costs.get(identity.arm))
        for identity in _ordered(sweep, _selected(sweep, chosen))
    )
    report = Step("report", (), "tables, comparison, report.html", REPORT_S + REPORT_CELL_S * len(cells))
    return Plan(
        sweep=sweep,
        lab=chosen.lab,
        before=(up if has_lab else workers,),
        cells=cells,
        after=(down, report) if has_lab else (report,),
    )


def _selected(sweep: Sweep, options: Options) -> list[CellIdentity]:
    """All cells as written, but for those that the options leave out."""
    experiment = sweep.experiment
    # Repetitions outermost: what drifts with time then touches all arms alike.
    cells = [
        CellIdentity(arm.name, tuple(parameters.items()), repetition)
        for repetition in range(1, experiment.repetitions + 1)
        for arm in experiment.arms
        if not options.arms or arm.name in options.arms
        for parameters in sweep.combinations(arm.name)
    ]
    wanted: dict[str, list[Value]] = {}
    known = (*BUILT_IN, *sweep.parameters)
    for name, text in options.only:
        if name not in known:
            raise ExperimentError(
                f'found --only {name}={text}, expected one of {", ".join(known)} before the "="',
                hint=did_you_mean(name, known),
            )
        values = list(dict.fromkeys(value for cell in cells if (value := cell.get(name)) is not None))
        try:
            value = read_value(as_scalar(text))
        except QuantityError as error:
            raise ExperimentError(f"--only {name}={text}: {error.message}", hint=error.hint) from error
        found = [each for each in values if same(each, value) or show_value(each) == text]
        if not found:
            listed = ", ".join(map(show_value, values)) or "nothing: no cell is left"
            raise ExperimentError(f"found --only {name}={text}, expected a value of {name}: {listed}")
        wanted.setdefault(name, []).extend(found)
    chosen = [cell for cell in cells if all(cell.get(name) in values for name, values in wanted.items())]
    if not chosen:
        said = " ".join(f"--only {name}={text}" for name, text in options.only)
        raise ExperimentError(f"found no cell with {said}, expected at least one")
    return chosen


def _ordered(sweep: Sweep, cells: list[CellIdentity]) -> list[CellIdentity]:
    """In the experiment's order. A cell's place at random depends on the seed and on itself, not on the other cells."""
    seed = sweep.experiment.seed

    def place(cell: CellIdentity) -> bytes:
        return hashlib.sha256(f"{seed} {cell.folder}".encode()).digest()

    match sweep.experiment.order:
        case "random":
            return sorted(cells, key=place)
        case "blocked":
            return sorted(cells, key=lambda cell: (cell.repetition, place(cell)))
        case "as written":
            return cells


def _steps(experiment: Experiment, arm: Arm) -> Iterator[Step]:
    tcp = experiment.tcp if arm.tcp is None else arm.tcp
    profile = tcp if isinstance(tcp, str) else "own settings"
    control = experiment.tcp_of(arm).congestion_control
    yield Step("prepare", hosts_of(experiment.topology), f"TCP: {profile} ({control})", PREPARE_S)
    configurations = {
        device: [_configuration(layer) for layer in layers]
        for device, layers in experiment.configurations_of(arm).items()
    }
    for device, what in _of_probes(experiment).items():
        configurations.setdefault(device, []).append(what)
    for device, parts in configurations.items():
        node = experiment.topology.nodes[device]
        role = platform_of(node).ansible_role(node)
        yield Step("apply", (device,), f"{'; '.join(parts)} by role {role}", PLAYBOOK_S)
    for device in configurations:
        yield Step("verify", (device,), "what it says equals what was asked", PLAYBOOK_S)
    for capture in experiment.captures:
        text = " ".join(filter(None, (capture.interface, capture.filter)))
        yield Step("capture on", (capture.node,), f"{capture.name}: {text}", CAPTURE_ON_S)
    yield from _observations(experiment, "before")
    length = traffic_time(experiment, arm)
    flows = experiment.flows_of(arm)
    nodes = tuple(dict.fromkeys(node for flow in flows for node in (flow.source, flow.destination)))
    text = "; ".join(_flow(flow, experiment.duration_of(arm, flow)) for flow in flows)
    yield Step("traffic", nodes, text, length.seconds + DRAIN_S)
    for probe in experiment.probes:
        text = f"{probe.name}: {probe.type} every {probe.frequency_or_default}, {experiment.duration_of_probe(probe)}"
        yield Step("probe", (probe.source, probe.destination), text, 0.0, probe.start_after.seconds)
    part, whole = DURING
    yield from _observations(experiment, "during", (length * part // whole).seconds)
    yield Step("collect", nodes, "output of the traffic tools, counters", COLLECT_S)
    yield from _observations(experiment, "after")
    for capture in experiment.captures:
        yield Step("capture off", (capture.node,), capture.name, CAPTURE_OFF_S)
    for device in configurations:
        yield Step("restore", (device,), "the configuration from before", PLAYBOOK_S)


def _simulation(experiment: Experiment, arm: Arm, cost: float | None) -> Iterator[Step]:
    text = "; ".join(_flow(flow, experiment.duration_of(arm, flow)) for flow in experiment.flows_of(arm))
    seconds = None if cost is None else cost * traffic_time(experiment, arm).seconds + SIMULATED_CELL_S
    yield Step("simulate", tuple(experiment.topology.nodes), text, seconds)


def _of_probes(experiment: Experiment) -> dict[str, str]:
    """What routers are configured with for probes: operations, the responder, or both."""
    routers = routers_of(experiment.topology)
    senders = [probe.source for probe in experiment.probes if probe.source in routers]
    responders = [probe.destination for probe in experiment.probes if probe.udp and probe.destination in routers]
    return {
        router: " and ".join(
            each for each, whose in (("IP SLA operations", senders), ("responder", responders)) if router in whose
        )
        for router in dict.fromkeys((*senders, *responders))
    }


def _observations(experiment: Experiment, moment: Moment, after_s: float | None = None) -> Iterator[Step]:
    for observation in experiment.observe:
        if moment in observation.when:
            yield Step("observe", (observation.node,), f"{moment}: {observation.command}", SHOW_S, after_s, moment)


def _configuration(configuration: Configuration) -> str:
    variables = ", ".join(f"{name}={value}" for name, value in configuration.variables.items())
    return f"{configuration.template} ({variables})" if variables else configuration.template


def _flow(flow: Flow, duration: Duration) -> str:
    words = [f"{flow.name}: {flow.tool} {flow.protocol}", f"{flow.source} to {flow.destination}"]
    if flow.streams > 1:
        words.append(f"{flow.streams} streams")
    settings: tuple[tuple[str, Rate | Size | Duration | int | None], ...] = (
        ("rate", flow.rate),
        ("delay", flow.delay),
        ("size", flow.size),
        ("window", flow.window),
        ("dscp", flow.dscp),
    )
    words.extend(f"{name} {value}" for name, value in settings if value is not None)
    words.extend(f"random {each}" for each in flow.random)
    words.append(f"{duration} as background" if flow.background else str(duration))
    if flow.may_fail:
        words.append("may fail")
    if flow.start_after:
        words.append(f"from {flow.start_after} on")
    return ", ".join(words)
