"""Check that expectations fit their experiment: arms, parameters, metrics, and the values of their expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from qoslab.errors import Finding, did_you_mean, format_alternatives
from qoslab.model.comparison import Comparison
from qoslab.model.expectations import (
    BOUND_KEYS,
    DURATION,
    FORMS,
    Expectation,
    Quantities,
    evaluate_quantities,
    expand_expectations,
    needed_quantities,
    parse_formula,
    used_names,
)
from qoslab.model.experiment import Experiment
from qoslab.model.expressions import ExpressionError, Value
from qoslab.model.matrix import BUILT_IN, Parameters, arm_combinations, parameters_text
from qoslab.model.units import Percent, QuantityError
from qoslab.schema.document import Document, Steps

MetricCheck = Callable[[Steps, str, Collection[str]], Iterator[Finding]]


MAX_EXPANSION_WORK = 160
"""Work to fill in an expectation for a combination, counted in evaluated words of an expression."""


class ExpectationChecker:
    """Checker of an expectation with the values of every cell that it covers."""

    def __init__(self, experiment: Experiment, document: Document, metric: MetricCheck) -> None:
        self.experiment = experiment
        self.document = document
        self.metric = metric
        self.arms = [arm.name for arm in experiment.arms]
        self.bad: set[str] = set()
        """Quantities without a value."""

    def check_quantities(self, compare: Comparison) -> Iterator[Finding]:
        """Check quantities: their expressions must be valid and use only earlier ones; none may be unused."""
        parameters = parameters_of(self.experiment)
        known = [*parameters, DURATION]
        used: set[str] = set()
        for expectation in compare.expectations:
            try:
                used |= used_names(expectation, compare.quantities)
            except ExpressionError:
                used |= {*compare.quantities}  # reported at its place
        for name, value in compare.quantities.items():
            steps: Steps = ("compare", "quantities", name)
            if name in (*parameters, *BUILT_IN, DURATION):
                message = f'found "{name}", expected a name that is not a parameter'
                yield self.document.finding(steps, message, at_key=True)
            if name not in used:
                message = f'found the quantity "{name}", not valid in an expectation'
                yield self.document.finding(steps, message, at_key=True)
            problems = [*self.check_expression(steps, value, known)] if isinstance(value, str) else []
            yield from problems
            self.bad |= {name} if problems or name in parameters else set()
            known.append(name)

    def check_expression(self, steps: Steps, text: str, known: Collection[str]) -> Iterator[Finding]:
        """Check that an expression is valid and uses only known values."""
        try:
            names = parse_formula(text).names
        except ExpressionError as error:
            yield self.document.finding(steps, error.message, error.hint)
            return
        for name in sorted(names - {*known}):
            message = f'found "{name}", expected a parameter or a quantity, {format_alternatives(known)}'
            yield self.document.finding(steps, message, did_you_mean(name, known))

    def expectation_findings(self, steps: Steps, expectation: Expectation, quantities: Quantities) -> Iterator[Finding]:
        """Yield all errors of one expectation."""
        unknown = [*self.check_names(steps, expectation, quantities)]
        yield from unknown
        forms = [form for form in FORMS if getattr(expectation, form) is not None]
        if len(forms) != 1:
            found = f"found {' and '.join(forms)}" if forms else "found no bound"
            yield self.document.finding(steps, f"{found}, expected exactly one of {', '.join(FORMS)}")
        elif forms == ["within"] and expectation.predicted is None:
            message = 'found "within" without "predicted", expected the predicted value'
            yield self.document.finding((*steps, "within"), message)
        no_metric = [*self.metric((*steps, "metric"), expectation.metric, expectation.arms)]
        yield from no_metric
        try:
            _ = expectation.unit
        except KeyError:
            return  # reported
        if unknown or len(forms) != 1 or used_names(expectation, quantities) & self.bad:
            return
        # The remaining checks have the same result for all combinations.
        asked, known = (*steps, self.experiment.duration), self.document.work.found
        if asked not in known:
            known[asked] = [*self.first_value_findings(steps, expectation, quantities)]
        yield from known[asked]

    def first_value_findings(self, steps: Steps, expectation: Expectation, quantities: Quantities) -> Iterator[Finding]:
        """Yield the errors of the values of the first combination with any."""
        arm = self.experiment.arm(expectation.arms[0])
        matrix = self.experiment.arm_matrix(arm)
        if matrix is not None:
            self.document.count_work(steps, matrix.count * (1 + matrix.test_count))
        texts = [text for _, text in expectation.formulas()]
        texts += [value for value in needed_quantities(expectation, quantities).values() if isinstance(value, str)]
        words = sum(parse_formula(text).words for text in texts)
        for each, values in expand_expectations(expectation, quantities, arm_combinations(matrix, arm.name)):
            self.document.count_work(steps, MAX_EXPANSION_WORK + words)
            problems = [*self.check_values(steps, each, values, quantities)]
            yield from problems
            if problems:
                return

    def check_names(self, steps: Steps, expectation: Expectation, quantities: Quantities) -> Iterator[Finding]:
        """Check that arms and parameters exist."""
        arms = [arm for arm in dict.fromkeys(expectation.arms) if arm in self.arms]
        for arm in dict.fromkeys(expectation.arms):
            if arm not in self.arms:
                message = f'found "{arm}", expected {format_alternatives(self.arms)}'
                yield self.document.finding((*steps, "arm"), message, did_you_mean(arm, self.arms))
        if len(expectation.arms) == 2 and len(set(expectation.arms)) == 1:
            yield self.document.finding((*steps, "arm"), f'found "{expectation.arm}", expected two different arms')
        for key in ("where", "each"):
            for name in getattr(expectation, key):
                for arm in arms:
                    known = parameters_of(self.experiment, (arm,))
                    if name not in known:
                        message = f'found "{name}", expected a parameter of arm "{arm}", {format_alternatives(known)}'
                        place: Steps = (*steps, key, name) if key == "where" else (*steps, key)
                        yield self.document.finding(place, message, did_you_mean(name, known))
        for inner, text in expectation.formulas():
            for arm in arms:
                known = (*parameters_of(self.experiment, (arm,)), *quantities, DURATION)
                yield from self.check_expression((*steps, *inner), text, known)

    def check_values(
        self, steps: Steps, expectation: Expectation, values: Parameters, quantities: Quantities
    ) -> Iterator[Finding]:
        """Check that the values of one combination have the metric's kind, and that a lower bound is not above the
        upper one.
        """
        words = f" (with {parameters_text(values)})" if values else ""
        known: dict[str, Value] = {DURATION: self.experiment.duration, **values}
        for name, value in needed_quantities(expectation, quantities).items():
            try:
                known = evaluate_quantities({name: value}, known)
            except ExpressionError as error:
                yield self.document.finding(("compare", "quantities", name), error.message + words, error.hint)
                return
        for inner, text in expectation.formulas():
            try:
                parse_formula(text).rounded_value(known)
            except ExpressionError as error:
                yield self.document.finding((*steps, *inner), error.message + words, error.hint)
                return
        found = expectation.evaluate_for(known)
        good = True
        for key in BOUND_KEYS:
            given = getattr(found, key)
            pair = isinstance(given, tuple)
            for index, metric_value in enumerate(given if pair else (given,)):
                try:
                    if metric_value is not None and not (key == "within" and isinstance(metric_value, Percent)):
                        found.in_unit(metric_value)
                except QuantityError as error:
                    place: Steps = (*steps, key, index) if pair else (*steps, key)
                    yield self.document.finding(place, error.message + words, error.hint)
                    good = False
        for key in ("between", "possible") if good else ():
            ends = getattr(found, key)
            least, greatest = map(found.in_unit, ends or (None, None))
            if least is not None and greatest is not None and least > greatest:
                message = f"found {ends[0]} before {ends[1]}, expected the smaller first"
                yield self.document.finding((*steps, key), message + words)


def parameters_of(experiment: Experiment, arms: Collection[str] | None = None) -> tuple[str, ...]:
    """Return every parameter of these arms, or of all arms."""
    matrices = [experiment.arm_matrix(arm) for arm in experiment.arms if arms is None or arm.name in arms]
    return tuple(dict.fromkeys(name for matrix in matrices if matrix is not None for name in matrix.names))
