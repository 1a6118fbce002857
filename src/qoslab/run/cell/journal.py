"""Journal of a cell in any kind of lab: steps with times, findings, and reasons against its values."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from qoslab.errors import QoslabError
from qoslab.lab_kinds import lab_kind
from qoslab.model.experiment import Observation, Stage, Trigger
from qoslab.model.matrix import as_texts
from qoslab.model.steps import Step as PlannedStep
from qoslab.platforms import command_line_nodes
from qoslab.results import (
    CaptureRecord,
    Cell,
    CellRecord,
    ClockRecord,
    FlowRecord,
    Health,
    HostClockRecord,
    ObservedCommand,
    PollingRecord,
    SenderRecord,
    StallRecord,
    Step,
)
from qoslab.results.redaction import KNOWN
from qoslab.run.events import StepReceiver
from qoslab.run.task import CellTask

CONFIGURATION = re.compile(r"sh\w* +(?:run|start|conf|arch|deri|tech)|more\b", re.IGNORECASE)
"""Commands that print a configuration."""


@dataclass
class CellFindings:
    """Findings of a cell outside its files; the fields are those of `cell.json`."""

    flows: tuple[FlowRecord, ...] = ()
    captures: dict[str, CaptureRecord] = field(default_factory=dict)
    health: dict[str, Health] = field(default_factory=dict)
    fault: bool = False
    disagreeing: bool = False
    cpu_s: float | None = None
    virtual_s: float | None = None
    senders: dict[str, SenderRecord] = field(default_factory=dict)
    probe_senders: dict[str, SenderRecord] = field(default_factory=dict)
    polling: dict[str, PollingRecord] = field(default_factory=dict)
    host_clocks: dict[str, HostClockRecord] = field(default_factory=dict)
    stalls: dict[str, StallRecord] = field(default_factory=dict)
    clock: ClockRecord | None = None


class CellJournal:
    """Source of `cell.json`. Steps are opened by the keys of the plan, in its order."""

    def __init__(self, task: CellTask, cell: Cell, tell: StepReceiver) -> None:
        self.cell = cell
        self.task = task
        self.findings = CellFindings()
        self._tell = tell
        self._planned = step_keys(lab_kind(task.lab).steps(task.experiment))
        self._steps: list[Step] = []
        self._reasons: list[str] = []
        self._lateness: set[str] = set()
        self._warnings: list[str] = []
        self._observed: list[ObservedCommand] = []
        self._command_lines = command_line_nodes(task.experiment.topology)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the finished steps, in order."""
        return tuple(self._steps)

    @contextmanager
    def step(self, key: str, seconds: float | None = None) -> Iterator[None]:
        """Announce a step and record its times; steps that are not planned for this cell are not announced.

        Raise `ValueError` if the plan has it before a step that was already opened, since the plan is binding.
        """
        if key not in self._planned:
            yield
            return
        done = [self._planned.index(step.name) for step in self._steps]
        if done and self._planned.index(key) <= done[-1]:
            raise ValueError(f'the step "{key}" comes after "{self._steps[-1].name}", but precedes it in the plan')
        self._tell(self.cell.name, key, seconds)
        started = datetime.now(UTC)
        ended = None
        try:
            yield
            ended = datetime.now(UTC)
        finally:
            self._steps.append(Step(name=key, started=started, ended=ended))

    @property
    def is_valid(self) -> bool:
        """True if no finding makes the values invalid."""
        return not self._reasons

    def record_invalid(self, reason: str) -> None:
        """Record a reason why the values are invalid."""
        if reason not in self._reasons:
            self._reasons.append(reason)

    def record_lateness(self, reasons: Iterable[str]) -> None:
        """Record reasons why the values are invalid: the machine lacked time."""
        for reason in reasons:
            self.record_invalid(reason)
            self._lateness.add(reason)

    def fail(self, fault: str) -> None:
        """Record a failure of the lab, with the step; the cell may be tried again."""
        under_way = next((step.name for step in reversed(self._steps) if step.ended is None), "")
        self._reasons = [f"{fault} (in the step: {under_way})" if under_way else fault]
        self.findings.fault = True

    def warn(self, text: str) -> None:
        """Record a note for readers; the values remain valid."""
        if text not in self._warnings:
            self._warnings.append(text)

    def observations(self, moment: Stage | Trigger) -> Iterator[Observation]:
        """Yield the show commands for a trigger; warn for each router without a command line."""
        for observation in self.task.experiment.arm_observations(self.task.arm):
            if moment not in observation.moments:
                continue
            if observation.node in self._command_lines:
                yield observation
                continue
            self.warn(
                f"{observation.node} has no IOS command line, so its show commands were not taken; "
                f"its counters are in counters/{observation.node}.jsonl"
            )

    def save_observation(
        self,
        observation: Observation,
        moment: Stage | Trigger,
        raw: str,
        data: Mapping[str, Any],
        between_ns: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Save a router's answer, raw and parsed, without secrets.

        `between_ns` has the times of the request and of the answer, in nanoseconds since 1970.
        """
        base = self.cell.observation(observation.node, str(moment), observation.command)
        if CONFIGURATION.match(observation.command):
            # A parser separates a secret from its line, and the secret could no longer be recognised.
            data = {"unparsed": "a configuration, with its secrets removed"}
        self.cell.write(base.with_name(base.name + ".txt"), KNOWN.mask(raw))
        self.cell.write_json(base.with_name(base.name + ".json"), _mask_secrets(data))
        file = str(base.relative_to(self.cell.path))
        before, after = (None if each is None else datetime.fromtimestamp(each / 1e9, UTC) for each in between_ns)
        self._observed.append(
            ObservedCommand(
                device=observation.node,
                moment=str(moment),
                command=observation.command,
                file=file,
                before=before,
                after=after,
            )
        )

    def record_unobserved(self, observation: Observation, moment: Trigger, why: str) -> None:
        """Record that a show command was not run."""
        self.warn(
            f'{observation.node}: "{observation.command}" was due at {moment}, a time that was never reached: {why}'
        )

    def conclude(self) -> CellRecord:
        """Write `cell.json` of a completed cell, after checking if its counters agree; return the record."""
        # Slow to load. The package is imported before its module: another thread may be importing it, and if two
        # threads waited for each other's locks, Python would give one of them an incomplete module.
        from qoslab.analysis import conservation

        try:
            disagreements = conservation.counter_disagreements(self.cell.files(), self.record(), self.task.experiment)
        except QoslabError as error:
            disagreements = [f"the counters cannot be read: {error.message}"]
        self.findings.disagreeing = bool(disagreements)
        for sentence in disagreements:
            self.record_invalid(sentence)
        return self.write()

    def write(self, *, broken: bool = False) -> CellRecord:
        """Write `cell.json` and return it."""
        return self.cell.write_record(self.record(broken=broken))

    def record(self, *, broken: bool = False) -> CellRecord:
        """Return the record of the cell; `broken`: it was not completed."""
        if broken and self.is_valid:
            self.record_invalid("it was interrupted")
        found = self.findings
        lateness = tuple(reason for reason in self._reasons if reason in self._lateness)
        return CellRecord(
            arm=self.cell.arm,
            parameters=as_texts(self.cell.parameters),
            repetition=self.cell.repetition,
            attempt=self.cell.attempt,
            key=self.task.key,
            lab=self.task.lab,
            virtual_s=found.virtual_s,
            valid=self.is_valid,
            reasons=tuple(self._reasons),
            late=bool(lateness),
            lateness=lateness,
            fault=found.fault,
            disagreeing=found.disagreeing,
            worker=f"{platform.node()}, {platform.system()} {platform.release()}",
            cpu_s=found.cpu_s,
            warnings=tuple(self._warnings),
            steps=self.steps,
            flows=found.flows,
            observed=tuple(self._observed),
            captures=found.captures,
            health=found.health,
            senders=found.senders,
            probe_senders=found.probe_senders,
            polling=found.polling,
            host_clocks=found.host_clocks,
            stalls=found.stalls,
            clock=found.clock,
        )


def _mask_secrets(data: Any) -> Any:
    """Return parsed output with the secrets in its texts masked."""
    if isinstance(data, str):
        return KNOWN.mask(data)
    if isinstance(data, Mapping):
        return {key: _mask_secrets(value) for key, value in data.items()}
    return [_mask_secrets(each) for each in data] if isinstance(data, list | tuple) else data


def step_keys(steps: Sequence[PlannedStep]) -> tuple[str, ...]:
    """Return the keys of planned steps in order, each once: the steps of `cell.json`."""
    return tuple(dict.fromkeys(step.key for step in steps))
