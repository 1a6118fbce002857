"""An experiment with its parameters: the combinations of each arm, and the experiment of each combination."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from qoslab.errors import ExperimentError, Finding, did_you_mean, format_alternatives, format_found
from qoslab.model.experiment import Arm, Experiment
from qoslab.model.expressions import (
    Expression,
    ExpressionError,
    Value,
    kind_name,
    parse_expression,
    read_value,
    show_value,
)
from qoslab.model.instants import MeasurementDemand, measurement_demand
from qoslab.model.matrix import (
    BUILT_IN,
    CELL_LIMIT,
    COMBINATION_LIMIT,
    RESERVED,
    VALUE_LIMIT,
    WORK_LIMIT,
    Matrix,
    Parameters,
    Scalar,
    as_texts,
    combinations,
    exclusion_test,
    parameters_text,
)
from qoslab.model.units import QuantityError
from qoslab.schema.cell_identity import CellIdentity
from qoslab.schema.document import Document, Steps
from qoslab.schema.kinds import expand_kinds
from qoslab.schema.placeholders import Placeholder, fill_path, fill_placeholders, find_placeholders
from qoslab.schema.references import check_references
from qoslab.schema.structure import build, structure_findings
from qoslab.schema.templates import render_configuration

MAX_CHECKED_COMBINATIONS = 400
"""Maximum number of combinations that are checked as whole experiments. Beyond it, every value of every parameter is
checked, but not every pair.
"""

OVERRIDDEN_BY_ARM = ("traffic", "tcp")
"""Keys of the file that an arm may override."""

DEFINING_THROUGH_ARM: tuple[Steps, ...] = (("configure",), *((key,) for key in OVERRIDDEN_BY_ARM))
"""Parts of the file that define a cell through its arm."""

NON_DEFINING_KEYS = frozenset(
    {
        *("name", "title", "description", "arms", "repetitions", "enough", "matrix", "order", "configure"),
        *("compare", "answer", "graphs", "traces", "notes", "allow_idle"),
        *OVERRIDDEN_BY_ARM,
    }
)
"""Keys of the file that do not define a cell, or only through its arm."""
NON_DEFINING_ARM_KEYS = frozenset({"title", "matrix", "configure", *OVERRIDDEN_BY_ARM})

Context = Mapping[str, Value]
Check = Callable[[Experiment, Document, Path], list[Finding]]
"""Further check of a valid experiment."""


CHECK_LIMIT = 250_000
"""Maximum number of values in all experiments that are checked for a matrix; a processor checks some 60,000 per second.
"""


class Sweep:
    """A checked experiment file.

    `experiment` is the file with the values of each arm's first combination; `resolve` gives the experiment of a cell.
    """

    def __init__(
        self,
        experiment: Experiment,
        file: Path,
        data: Any,
        placeholders: Mapping[Steps, Placeholder],
        cells: Mapping[str, Sequence[Parameters]],
    ) -> None:
        self.experiment = experiment
        self.file = file
        self._data = data
        self._placeholders = placeholders
        self._cells = cells
        self._parts: dict[tuple[Steps, tuple[Value, ...]], Any] = {}
        self._digests: dict[tuple[Steps, tuple[Value, ...]], str] = {}
        self._demands: dict[str, MeasurementDemand] = {}
        self._latest: tuple[CellIdentity, Experiment] | None = None
        """Latest resolved cell: a worker's data, key and configurations are made one after another."""
        self._names: dict[Steps, tuple[str, ...]] = {}
        for steps, placeholder in placeholders.items():
            known = self._names.get(fill_path(steps), ())
            self._names[fill_path(steps)] = tuple(sorted({*known, *placeholder.names}))
        self._arms = {arm.name: index for index, arm in enumerate(experiment.arms)}
        self._fields = {field.alias or name: name for name, field in Experiment.model_fields.items()}
        self._base: dict[str, Any] = {} if not placeholders else _fill_part(data, placeholders, self._first_value)

    @classmethod
    def from_experiment(cls, experiment: Experiment, file: Path | None = None) -> Sweep:
        """Return the sweep of an experiment without parameters."""
        return cls(experiment, file or Path(), None, {}, {arm.name: ({},) for arm in experiment.arms})

    def with_experiment(self, **changes: Any) -> Sweep:
        """Return the sweep with some keys of the experiment replaced in every cell (`duration`, `repetitions`,
        `order`).
        """
        changed = self.experiment.model_copy(update=changes)
        # No placeholder of a replaced part may remain in the text.
        data = None if self._data is None else {**self._data, **changed.model_dump(mode="json", include=set(changes))}
        return Sweep(
            changed,
            self.file,
            data,
            {steps: each for steps, each in self._placeholders.items() if steps[0] not in changes},
            self._cells,
        )

    def _first_value(self, steps: Steps) -> Context:
        arm = self.experiment.arms[_arm_of_value(self._data, steps, 0)].name
        return _cell_context(arm, self._cells[arm][0], 1)

    def _arm_uses(self, arm: str, steps: Steps) -> bool:
        """Return whether an arm uses the value at this place of the file, rather than its own."""
        index = self._arms[arm]
        return _arm_of_value(self._data, steps, index) == index

    @property
    def count(self) -> int:
        """Number of cells, repetitions counted."""
        return self.experiment.repetitions * sum(map(len, self._cells.values()))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Every parameter of every arm, in the order of the file."""
        return tuple(dict.fromkeys(name for cells in self._cells.values() for name in cells[0]))

    def relevant_parameters(self, arm: str, keys: frozenset[str]) -> tuple[str, ...]:
        """Return the parameters of an arm's cells on which the values of these keys depend, anywhere in the file."""
        found = {
            name
            for steps, placeholder in self._placeholders.items()
            if steps[-1] in keys and self._arm_uses(arm, steps)
            for name in placeholder.names
        }
        return tuple(sorted(found))

    def parameters_of_keys(self, *keys: str) -> tuple[str, ...]:
        """Return the parameters on which the values of these top-level keys depend (such as `topology`), in all
        arms.
        """
        return tuple(name for key in keys for name in self._names.get((key,), ()))

    @property
    def is_order_random(self) -> bool:
        """True if the order of the cells is random, so that another order is equivalent."""
        return self.experiment.order != "as written"

    @property
    def is_ordered_by_repetition(self) -> bool:
        """True if each repetition ends before the next begins."""
        return self.experiment.order == "blocked"

    def combinations(self, arm: str) -> Sequence[Parameters]:
        """Return the parameters of each of an arm's cells; one empty combination if it has no parameters."""
        return self._cells[arm]

    def resolve(self, cell: CellIdentity) -> Experiment:
        """Return the experiment of one cell: only its arm, all values filled in, without comparison."""
        if (latest := self._latest) is not None and latest[0] is cell:
            return latest[1]
        context = _cell_context(cell.arm, cell.values, cell.repetition)
        changes: dict[str, Any] = {
            self._fields[str(part[0])]: self._built_part(part, context)
            for part in self._names
            if part[0] != "arms" and self._arm_uses(cell.arm, part)
        }
        arm = self._arm(cell.arm, context)
        update = {**changes, "arms": (arm,), "matrix": None, "compare": None, "repetitions": 1}
        found = self.experiment.model_copy(update=update)
        self._latest = cell, found
        return found

    def _arm(self, name: str, context: Context) -> Arm:
        part: Steps = ("arms", self._arms[name])
        arm: Arm = self._built_part(part, context) if part in self._names else self.experiment.arm(name)
        return arm.model_copy(update={"matrix": None})

    def _built_part(self, part: Steps, context: Context) -> Any:
        """Return a part of the experiment with the values of a cell, built once for each combination that it depends
        on.
        """
        key = (part, tuple(context[name] for name in self._names[part]))
        if key not in self._parts:
            data = dict(self._base)
            inner = fill_placeholders(_look_up_value(self._data, part), part, self._placeholders, lambda steps: context)
            if part[0] == "arms":
                data["arms"] = [inner if index == part[1] else arm for index, arm in enumerate(data["arms"])]
            else:
                data[str(part[0])] = inner
            try:
                made = Experiment.model_validate_json(json.dumps(expand_kinds(data)), by_alias=True, by_name=False)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = ".".join(map(str, first["loc"]))
                raise ExperimentError(
                    f"{self.file}: {where}: {first['msg']}, with {parameters_text(dict(context))}"
                ) from error
            self._parts[key] = (
                made.arms[int(part[1])] if part[0] == "arms" else getattr(made, self._fields[str(part[0])])
            )
        return self._parts[key]

    def configuration_text(self, experiment: Experiment, arm: Arm) -> dict[str, str]:
        """Return the rendered configuration of each device that the arm configures, its layers in order."""
        return configuration_text(self.file, experiment, arm)

    def demand(self, arm: str) -> MeasurementDemand:
        """Return the requirements of an arm's expected values on their measurement, computed once."""
        if arm not in self._demands:
            self._demands[arm] = measurement_demand(self.experiment, arm)
        return self._demands[arm]

    def digest(self, cell: CellIdentity) -> str:
        """Return the SHA-256 of everything in the file and its templates that defines the cell, including its identity.

        Titles, descriptions, expectations and parts of other cells are not included: they may change without an effect
        on it.
        """
        experiment = self.resolve(cell)
        arm = experiment.arms[0]
        context = _cell_context(cell.arm, cell.values, cell.repetition)
        lines = [
            json.dumps([cell.arm, as_texts(cell.values), cell.repetition]),
            *(
                self._part_digest((alias,), context, lambda name=name: getattr(experiment, name))
                for alias, name in self._fields.items()
                if alias not in NON_DEFINING_KEYS
            ),
            self._part_digest(
                ("arms", self._arms[cell.arm]),
                context,
                lambda: _arm_parts(self.file, experiment, arm),
                also=[part for part in self._names if part in DEFINING_THROUGH_ARM and self._arm_uses(cell.arm, part)],
            ),
        ]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def _part_digest(self, part: Steps, context: Context, value: Any, also: Sequence[Steps] = ()) -> str:
        names = [name for each in (part, *also) for name in self._names.get(each, ())]
        key = (part, tuple(context[name] for name in names))
        if key not in self._digests:
            text = json.dumps(_plain_value(value()), sort_keys=True)
            self._digests[key] = f"{part[0]}: {hashlib.sha256(text.encode()).hexdigest()}"
        return self._digests[key]


def _arm_of_value(data: Any, steps: Steps, index: int) -> int:
    """Return the arm whose values are filled in at this place for a cell of arm `index`: that arm if it uses the value
    of the file, else the first arm that does, or the first of all.
    """
    if steps[0] == "arms":
        return int(steps[1])
    takers = [
        at for at, arm in enumerate(data["arms"]) if steps[0] not in OVERRIDDEN_BY_ARM or arm.get(steps[0]) is None
    ]
    return index if index in takers else next(iter(takers), 0)


def configuration_text(experiment_file: Path, experiment: Experiment, arm: Arm) -> dict[str, str]:
    """Return the rendered configuration of each device that the arm configures, its layers in order."""
    return {
        device: "".join(render_configuration(experiment_file, layer) for layer in layers)
        for device, layers in experiment.arm_configurations(arm).items()
    }


def _arm_parts(file: Path, experiment: Experiment, arm: Arm) -> dict[str, Any]:
    return {
        **{name: getattr(arm, name) for name in Arm.model_fields if name not in NON_DEFINING_ARM_KEYS},
        "tcp": experiment.arm_tcp_profile(arm),
        "traffic": experiment.arm_flows(arm),
        "configuration": configuration_text(file, experiment, arm),
    }


def _plain_value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _plain_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(inner) for inner in value]
    return value if isinstance(value, bool | int | float | None) else str(value)


def _cell_context(arm: str, parameters: Context, repetition: int) -> dict[str, Value]:
    return {**parameters, "arm": arm, "repetition": repetition}


def _look_up_value(data: Any, steps: Steps) -> Any:
    for step in steps:
        data = data[step]
    return data


def _fill_part(data: Any, placeholders: Mapping[Steps, Placeholder], values: Any) -> Any:
    return fill_placeholders(data, (), placeholders, values)


# From the document


def make_sweep(document: Document, file: Path, also: Check | None = None) -> Sweep:
    """Return the sweep of a document. Raise `ExperimentError`, which lists all findings of the first phase with any.

    `also` is called last, for each experiment that is checked.
    """
    placeholders, findings = find_placeholders(document)
    names = _arm_names(document.data)
    if names is None or not (placeholders or findings or _has_matrix(document.data)):
        return _check_cell_count(Sweep.from_experiment(_check_combinations(document, file, also), file), document)
    found = [*document.findings, *findings]
    matrices: dict[str, tuple[Steps, Matrix]] = {}
    shared = _read_matrix(document, ("matrix",), found)
    for index, name in enumerate(names):
        steps: Steps = ("arms", index, "matrix")
        own = _read_matrix(document, steps, found)
        if own is not None:
            matrices[name] = (steps, own)
        elif shared is not None:
            matrices[name] = (("matrix",), shared)
    _raise_findings(found)
    _check_size(document, [matrices[name] for name in names if name in matrices])
    reader = _Reader(document, placeholders)
    for steps, matrix in dict(matrices.values()).items():
        reader.read(steps, matrix)
    _raise_findings(reader.findings)
    cells: dict[str, Sequence[Parameters]] = {}
    for index, name in enumerate(names):
        cells[name] = reader.read_cells(name, index, matrices.get(name))
    _raise_findings(reader.findings)
    return _check_cell_count(_build_all(document, file, placeholders, names, cells, also), document)


def _check_size(document: Document, matrices: Sequence[tuple[Steps, Matrix]]) -> None:
    """Refuse more combinations, or more values to check, than a machine has memory and time for, before they
    are built.
    """
    total = values = work = 0
    for steps, matrix in matrices:
        total += matrix.count
        values += sum(map(len, matrix.parameters.values())) + len(matrix.include) + len(matrix.exclude)
        work += matrix.count * matrix.test_count
        sizes = " × ".join(f"{len(each)} of {name}" for name, each in islice(matrix.parameters.items(), 10))
        counts = {
            "combinations": (total, COMBINATION_LIMIT),
            "values": (values, VALUE_LIMIT),
            "comparisons with exclude and words of constraints": (work, WORK_LIMIT),
        }
        for what, (count, limit) in counts.items():
            if count > limit:
                message = f"found {_format_count(count)} {what} ({sizes}), expected at most {limit} of all arms"
                raise ExperimentError(
                    findings=[document.finding(steps, message, "give fewer values, or several files")]
                )


def _check_cell_count(sweep: Sweep, document: Document) -> Sweep:
    """Return the sweep if its number of cells can be planned. Raise `ExperimentError` otherwise."""
    if (count := sweep.count) > CELL_LIMIT:
        message = f"found {_format_count(count)} cells, repetitions counted, expected at most {CELL_LIMIT}"
        raise ExperimentError(
            findings=[document.finding(("repetitions",), message, "reduce the number of repetitions")]
        )
    return sweep


def _format_count(count: int) -> str:
    return str(count) if count < 10**12 else "more than 10^12"


def _raise_findings(findings: list[Finding]) -> None:
    if findings:
        found = sorted(dict.fromkeys(findings), key=lambda each: (each.option, each.line, each.column))
        raise ExperimentError(findings=found)


def _check_combinations(document: Document, file: Path, also: Check | None) -> Experiment:
    experiment, findings = build(document)
    _raise_findings([*document.findings, *findings])
    assert experiment is not None
    findings = check_references(experiment, document, file) or (
        [] if also is None else also(experiment, document, file)
    )
    if findings:
        raise ExperimentError(findings=findings)
    return experiment


def _has_matrix(data: Any) -> bool:
    return data.get("matrix") is not None or any(arm.get("matrix") is not None for arm in data["arms"])


def _arm_names(data: Any) -> list[str] | None:
    """Return the names of the arms; None if the structure of the file must be fixed first."""
    arms = data.get("arms") if isinstance(data, dict) else None
    if not isinstance(arms, list) or not arms or not all(isinstance(arm, dict) for arm in arms):
        return None
    names = [arm.get("name") for arm in arms]
    return names if all(isinstance(name, str) for name in names) and len(set(names)) == len(names) else None


def _read_matrix(document: Document, steps: Steps, found: list[Finding]) -> Matrix | None:
    try:
        raw = document.get(steps)
    except (KeyError, TypeError):
        return None
    if raw is None:
        return None
    try:
        return Matrix.model_validate_json(json.dumps(raw), by_alias=True, by_name=False)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        found += structure_findings(document, [{**each, "loc": (*steps, *each["loc"])} for each in errors])
        return None


class _Reader:
    """Reader of matrices, which checks them and builds their combinations."""

    def __init__(self, document: Document, placeholders: Mapping[Steps, Placeholder]) -> None:
        self.document = document
        self.placeholders = placeholders
        self.findings: list[Finding] = []

    def note(self, steps: Steps, message: str, hint: str = "", *, at_key: bool = False) -> None:
        self.findings.append(self.document.finding(steps, message, hint, at_key=at_key))

    def read(self, steps: Steps, matrix: Matrix) -> None:
        """Check names, kinds of values, and expressions."""
        kinds: dict[str, str] = {}
        used = {name for placeholder in self.placeholders.values() for name in placeholder.names}
        if not matrix.names:
            self.note(steps, "found no parameter, expected at least one with its values")
        for name, values in matrix.parameters.items():
            here: Steps = (*steps, name)
            if name in RESERVED:
                self.note(here, f'found the parameter "{name}", a reserved word', at_key=True)
            elif not name.isidentifier() or not name.islower() or not name.isascii() or name.startswith("_"):
                self.note(
                    here,
                    f'found the parameter "{name}", expected small letters, digits and _, a letter first',
                    at_key=True,
                )
            elif name not in used:
                self.note(
                    here,
                    f'found the unused parameter "{name}", expected $({name}) somewhere',
                    did_you_mean(name, used - set(matrix.names)),
                    at_key=True,
                )
            if not values:
                self.note(here, "found an empty list, expected at least one value")
            seen: dict[Value, int] = {}
            for index, raw in enumerate(values):
                value = self.read_value((*here, index), name, raw, kinds)
                if value is not None and seen.setdefault(value, index) != index:
                    self.note((*here, index), f"found {show_value(value)} a second time, expected it once")
        for index, entry in enumerate(matrix.include):
            place: Steps = (*steps, "include", index)
            missing = [name for name in matrix.names if name not in entry]
            if missing:
                self.note(place, f"found no value of {', '.join(missing)}, expected one for every parameter")
            self.read_entry(place, entry, matrix, kinds)
        for index, entry in enumerate(matrix.exclude):
            place = (*steps, "exclude", index)
            if not entry:
                self.note(place, "found nothing, expected values of at least one parameter")
            self.read_entry(place, entry, matrix, kinds)
        for index, text in enumerate(matrix.constraints):
            place = (*steps, "constraints", index)
            try:
                expression = parse_expression(text)
            except ExpressionError as error:
                self.note(place, error.message, error.hint)
                continue
            self.check_known(place, expression.names, (*matrix.names, "arm"))

    def read_entry(
        self, steps: Steps, entry: Mapping[str, Scalar | tuple[Scalar, ...]], matrix: Matrix, kinds: dict[str, str]
    ) -> None:
        for name, wanted in entry.items():
            if name not in matrix.names:
                self.note(
                    (*steps, name),
                    f'found "{name}", expected a parameter, {format_alternatives(matrix.names)}',
                    did_you_mean(name, matrix.names),
                    at_key=True,
                )
                continue
            for index, raw in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
                place: Steps = (*steps, name, index) if isinstance(wanted, tuple) else (*steps, name)
                self.read_value(place, name, raw, kinds)

    def read_value(self, steps: Steps, name: str, raw: Scalar, kinds: dict[str, str]) -> Value | None:
        """Return a parameter's value; None if it is not of the same kind as the parameter's other values."""
        try:
            value = read_value(raw)
        except QuantityError as error:
            self.note(steps, error.message, error.hint)
            return None
        kind = kinds.setdefault(name, kind_name(value))
        if kind != kind_name(value):
            self.note(
                steps, f"found {format_found(raw)}, a {kind_name(value)}, expected a {kind} like the values before it"
            )
            return None
        return value

    def check_known(self, steps: Steps, names: frozenset[str], known: Sequence[str]) -> None:
        for name in sorted(names - set(known)):
            self.note(
                steps, f'found "{name}", expected a parameter, {format_alternatives(known)}', did_you_mean(name, known)
            )

    def read_cells(self, arm: str, index: int, matrix: tuple[Steps, Matrix] | None) -> Sequence[Parameters]:
        """Return the combinations of an arm."""
        used: set[str] = set()
        for steps, placeholder in self.placeholders.items():
            if _arm_of_value(self.document.data, steps, index) != index:
                continue
            names = matrix[1].names if matrix else ()
            self.check_known(steps, placeholder.names, (*names, *BUILT_IN))
            used |= placeholder.names
        if matrix is None:
            return ({},)
        steps, declared = matrix
        constraints = [parse_expression(text) for text in declared.constraints]
        try:
            found = list(self.read_selection(arm, steps, declared, constraints))
        except ExpressionError as error:
            self.note((*steps, "constraints"), error.message, error.hint)
            return ()
        if not found:
            total = 1
            for values in declared.parameters.values():
                total *= len(values)
            left = f"exclude and constraints leave none of {total} combinations"
            self.note(steps, f'found no cell of arm "{arm}": {left}')
            return ()
        seen: dict[tuple[Value, ...], Parameters] = {}
        for parameters in found:
            same = tuple(value for name, value in parameters.items() if name in used)
            first = seen.setdefault(same, parameters)
            if first is not parameters:
                if first == parameters:
                    self.note(steps, f"found the cell {parameters_text(parameters)} a second time, expected it once")
                else:
                    unused = [name for name in parameters if name not in used]
                    self.note(
                        steps,
                        f'found {" and ".join(unused)}, unused in arm "{arm}": identical cells would be '
                        "measured more than once",
                        f"write $({unused[0]}) where it belongs, or give the arm its own matrix",
                    )
                break
        return found

    def read_selection(
        self, arm: str, steps: Steps, matrix: Matrix, constraints: Sequence[Expression]
    ) -> Iterator[Parameters]:
        excluded = exclusion_test(matrix)
        for parameters in combinations(matrix.parameters) if matrix.parameters else ():
            if excluded(parameters):
                continue
            if all(constraint.is_true({**parameters, "arm": arm}) for constraint in constraints):
                yield parameters
        for index, entry in enumerate(matrix.include):
            for found in combinations({name: entry[name] for name in matrix.names}):
                broken = [each for each in constraints if not each.is_true({**found, "arm": arm})]
                if broken:
                    place: Steps = (*steps, "include", index)
                    self.note(place, f"found {parameters_text(found)}, excluded by {broken[0].text}")
                    return
                yield found


def _build_all(
    document: Document,
    file: Path,
    placeholders: Mapping[Steps, Placeholder],
    names: list[str],
    cells: Mapping[str, Sequence[Parameters]],
    also: Check | None,
) -> Sweep:
    """Check the experiments of enough combinations that every value is checked in its place."""
    base: Experiment | None = None
    findings: dict[tuple[str, int, int, str], Finding] = {}
    size = _count_values(document.data)
    chosen = list(islice(_representative_combinations(placeholders, names, cells), CHECK_LIMIT // size + 1))
    if len(chosen) * size > CHECK_LIMIT:
        found_work = f"found {size} values to check for more than {CHECK_LIMIT // size} combinations of the matrix"
        message = f"{found_work}, expected at most {CHECK_LIMIT} values for all combinations"
        raise ExperimentError(findings=[document.finding((), message, "give fewer values, or several files")])
    for arm, parameters in chosen:

        def context_of(steps: Steps, arm: str = arm, parameters: Parameters = parameters) -> Context:
            own = names[_arm_of_value(document.data, steps, names.index(arm))]
            return _cell_context(own, parameters if own == arm else cells[own][0], 1)

        found: list[Finding] = []
        data: Any = None
        try:
            data = _fill_part(document.data, placeholders, context_of)
        except ExpressionError:
            for steps, placeholder in placeholders.items():
                try:
                    placeholder.value(context_of(steps))
                except ExpressionError as error:
                    found.append(document.finding(steps, error.message, error.hint))
        else:
            resolved = replace(document, data=data)
            experiment, found = build(resolved)
            if experiment is not None:
                found = check_references(experiment, resolved, file) or (
                    [] if also is None else also(experiment, resolved, file)
                )
                base = base or experiment
        for each in found:
            key = (each.file, each.line, each.column, each.path)
            # Messages about expectations of all cells already have the parameters.
            own = "(with " in each.message or not parameters
            words = f" (with {parameters_text(parameters)})"
            findings.setdefault(key, each if own else replace(each, message=each.message + words))
        if findings and len(findings) >= 20:
            break
    _raise_findings([*document.findings, *findings.values()])
    assert base is not None
    return Sweep(base, file, document.data, placeholders, cells)


def _count_values(data: Any) -> int:
    """Return the number of values in nested lists and mappings, containers included. Matrices are not counted."""
    if isinstance(data, dict):
        return 1 + sum(_count_values(value) for key, value in data.items() if key != "matrix")
    return 1 + sum(map(_count_values, data)) if isinstance(data, list) else 1


def _representative_combinations(
    placeholders: Mapping[Steps, Placeholder], names: list[str], cells: Mapping[str, Sequence[Parameters]]
) -> Iterator[tuple[str, Parameters]]:
    """Yield combinations with every value of every parameter, then combinations with new pairs of values, up to
    `MAX_CHECKED_COMBINATIONS`.
    """
    together = {frozenset(each.names) for each in placeholders.values()}
    for steps in placeholders:
        # The values of one mapping are checked together.
        siblings = [each.names for other, each in placeholders.items() if other[:-1] == steps[:-1]]
        together.add(frozenset().union(*siblings))
    groups = sorted((sorted(group) for group in together), key=len)
    count = 0
    for arm in names:
        seen: set[tuple[Any, ...]] = set()
        for parameters in cells[arm]:
            fresh = [(name, value) for name, value in parameters.items() if (name, value) not in seen]
            if fresh or not seen:
                seen.update(fresh)
                seen.add(())
                count += 1
                yield arm, parameters
        pairs: set[tuple[Any, ...]] = set()
        for parameters in cells[arm]:
            if count >= MAX_CHECKED_COMBINATIONS:
                break
            values = [(tuple(group), tuple(parameters.get(name) for name in group)) for group in groups]
            if not pairs.issuperset(values):
                pairs.update(values)
                count += 1
                yield arm, parameters
