"""Expressions over quantities: `pir <= link`, `max(pir * rtt, 3000 B)`, `rtt / 2`, `bucket in B`. No side effects.

Arithmetic is exact, with units: a rate times a duration is a size, a size over a rate a duration, a size over a
duration a rate, a quantity over its own kind a number. Comparisons need two operands of one kind. Operators from
loosest to tightest: `or`, `and`, `not`, comparisons (which may be chained), `in UNIT` (converts to a plain number of
that unit), `+ -`, `* /`. Functions: `min`, `max`, `round`, `floor` and `ceil` (to whole base units, or whole numbers),
`if` (condition, value if true, value if false). Texts are quoted. Nothing else is supported: no attributes, no calls,
no eval.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from qoslab.errors import UserError
from qoslab.model.units import LENGTH_LIMIT, Duration, Percent, Quantity, QuantityError, Rate, Size

Value: TypeAlias = Quantity | int | float | bool | str
"""Value of a parameter: a quantity, a number, a truth value, a text."""

Kind: TypeAlias = "type[Quantity] | str"
"""Kind of a value: a class of quantities, or `number`, `text`, `truth value`."""

NUMBER, TEXT, FLAG = "number", "text", "truth value"

DEPTH_LIMIT = 32
"""Maximum depth of nested brackets; real expressions have one or two."""

DIGIT_LIMIT = 30
"""Maximum digits of a number; the bits of a year at a terabit per second have 20."""
WORD_LIMIT = 500
"""Maximum number of values, names and operators of an expression; real ones have about ten."""
LARGEST = 10**DIGIT_LIMIT
"""Largest result, in base units."""


class ExpressionError(UserError):
    """An expression that cannot be parsed, or that has no value."""


@dataclass(frozen=True)
class _TypedValue:
    kind: Kind
    value: Fraction | str | bool
    """A count of base units, or a number; a text; a truth value."""


_CLASSES: tuple[type[Quantity], ...] = (Rate, Size, Duration, Percent)
UNITS: dict[str, tuple[type[Quantity], int]] = {
    unit: (kind, factor) for kind in _CLASSES for unit, factor in kind.UNITS.items()
}
"""Every unit with its kind of quantity and its size in base units."""

_UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<number>[0-9]+(?:\.[0-9]+)?)(?:\s*(?P<unit>{_UNIT})(?![A-Za-z0-9_]))?
    | in\s+(?P<into>{_UNIT})(?![A-Za-z0-9_])
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | '(?P<single>[^']*)' | "(?P<double>[^"]*)"
    | (?P<sign><=|>=|==|!=|[-+*/(),<>])
    )""",
    re.VERBOSE,
)
_WORDS = ("and", "or", "not", "in", "true", "false")
_ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"round": round, "floor": math.floor, "ceil": math.ceil}
_FUNCTIONS = ("min", "max", *_ROUNDINGS, "if")
_NS = 10**9


def _known_value(name: str, values: Mapping[str, Value]) -> Value:
    if name not in values:
        known = ", ".join(values)
        raise ExpressionError(f'found "{name}", expected {f"one of {known}" if known else "no name"}')
    return values[name]


def typed_value(value: Value) -> _TypedValue:
    """Return the value with its kind."""
    match value:
        case bool():
            return _TypedValue(FLAG, value)
        case Quantity():
            return _TypedValue(type(value), Fraction(int(value)))
        case int():
            return _TypedValue(NUMBER, Fraction(value))
        case float():
            return _TypedValue(NUMBER, Fraction(str(value)))
        case _:
            return _TypedValue(TEXT, value)


def kind_name(value: Value) -> str:
    """Return the name of a value's kind for messages: `rate`, `number`, …."""
    return _name(typed_value(value).kind)


def _name(kind: Kind) -> str:
    return kind if isinstance(kind, str) else kind.KIND


def _plain_result(result: _TypedValue) -> Value:
    if not isinstance(result.value, Fraction):
        return result.value
    if abs(result.value) > LARGEST:
        raise ExpressionError(f"found a {_name(result.kind)} of more than {DIGIT_LIMIT} digits, expected a smaller one")
    if isinstance(result.kind, str):
        return int(result.value) if result.value.denominator == 1 else float(result.value)
    below = result.value < 0
    if below or result.value.denominator != 1:
        base = next(unit for unit, factor in result.kind.UNITS.items() if factor == 1 or result.kind is Percent)
        number = float(result.value) if result.kind is not Percent else float(result.value) / 10**4
        hint = "" if below else "write round(…)"
        raise ExpressionError(
            f"found {number:g} {base}, expected a {result.kind.KIND} of whole base units, not below zero", hint=hint
        )
    return result.kind(int(result.value))


_Evaluate: TypeAlias = Callable[[Mapping[str, Value]], _TypedValue]


@dataclass(frozen=True)
class Expression:
    """A parsed expression; `evaluate` returns its value."""

    text: str
    names: frozenset[str]
    """Names that the expression uses."""
    words: int
    """Number of values, names and operators, as a measure of the work of an evaluation."""
    _evaluate: _Evaluate

    def evaluate(self, values: Mapping[str, Value]) -> Value:
        """Return the value. Raise `ExpressionError` if kinds do not fit, a name has no value, or a quantity is not a
        whole number of base units.
        """
        try:
            return _plain_result(self._evaluate(values))
        except (ExpressionError, QuantityError) as error:
            raise ExpressionError(f"{self.text}: {error.message}", hint=error.hint) from error

    def rounded_value(self, values: Mapping[str, Value]) -> Value:
        """Return the value, with a quantity rounded to a whole number of base units, and at least zero. Raise
        `ExpressionError` as `evaluate` does.

        For bounds, for which a nanosecond does not matter.
        """
        try:
            found = self._evaluate(values)
            if isinstance(found.value, Fraction) and not isinstance(found.kind, str):
                found = _TypedValue(found.kind, Fraction(max(round(found.value), 0)))
            return _plain_result(found)
        except (ExpressionError, QuantityError) as error:
            raise ExpressionError(f"{self.text}: {error.message}") from error

    def is_true(self, values: Mapping[str, Value]) -> bool:
        """Return the truth value. Raise `ExpressionError` if the value is of another kind."""
        result = self.evaluate(values)
        if not isinstance(result, bool):
            raise ExpressionError(f"{self.text}: found a {kind_name(result)}, expected a comparison")
        return result


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """Parse an expression. Raise `ExpressionError` with the position of the first error."""
    parser = _Parser(text)
    evaluate = parser.parse()
    return Expression(text.strip(), frozenset(parser.names), len(parser.tokens) - 1, evaluate)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    value: _TypedValue | None = None


def _tokenise(text: str) -> Iterator[_Token]:
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ExpressionError(f'found "{text[position:].strip()}" in "{text}", expected a value or an operator')
        position = found.end()
        if found["number"] is not None:
            if len(found["number"]) > DIGIT_LIMIT:
                digits = f"found a number of {len(found['number'])} digits"
                raise ExpressionError(f"{digits}, expected at most {DIGIT_LIMIT}")
            number = Fraction(found["number"])
            unit = found["unit"]
            if unit is None:
                yield _Token("value", found["number"], _TypedValue(NUMBER, number))
            else:
                kind, factor = UNITS[unit]
                yield _Token("value", found[0].strip(), _TypedValue(kind, number * factor))
        elif found["into"] is not None:
            yield _Token("into", found["into"])
        elif found["name"] is not None:
            word = found["name"]
            if word in ("true", "false"):
                yield _Token("value", word, _TypedValue(FLAG, word == "true"))
            else:
                yield _Token(word if word in _WORDS else "name", word)
        elif found["sign"] is not None:
            yield _Token(found["sign"], found["sign"])
        else:
            quoted = found["single"] if found["single"] is not None else found["double"]
            yield _Token("value", found[0].strip(), _TypedValue(TEXT, quoted))


class _Parser:
    """Recursive descent parser with one method for each level of precedence."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*islice(_tokenise(text), WORD_LIMIT + 1), _Token("end", "the end")]
        if len(self.tokens) > WORD_LIMIT + 1:
            raise ExpressionError(f"found more than {WORD_LIMIT} values and operators, expected fewer")
        self.at = 0
        self.depth = 0
        self.names: set[str] = set()

    def parse(self) -> _Evaluate:
        result = self.parse_or()
        if self.peek_token() != "end":
            raise self.error("the end or an operator")
        return result

    def peek_token(self) -> str:
        return self.tokens[self.at].kind

    def take(self, *kinds: str) -> _Token | None:
        token = self.tokens[self.at]
        if token.kind not in kinds:
            return None
        self.at += 1
        return token

    def error(self, expected: str) -> ExpressionError:
        return ExpressionError(f'found {self.tokens[self.at].text} in "{self.text}", expected {expected}')

    def parse_or(self) -> _Evaluate:
        return self.parse_logic("or", self.parse_and, stop=True)

    def parse_and(self) -> _Evaluate:
        return self.parse_logic("and", self.parse_negation, stop=False)

    def parse_logic(self, word: str, term: Callable[[], _Evaluate], *, stop: bool) -> _Evaluate:
        """Parse operands of `or`, which stops at the first true term, or of `and`, which stops at the first
        false one.
        """
        terms = [term()]
        while self.take(word):
            terms.append(term())
        if len(terms) == 1:
            return terms[0]
        return lambda values: _TypedValue(
            FLAG, stop if any(_check_flag(each(values)) is stop for each in terms) else not stop
        )

    def parse_negation(self) -> _Evaluate:
        count = 0
        while self.take("not"):
            count += 1
        inner = self.parse_comparison()
        if not count:
            return inner
        return lambda values: _TypedValue(FLAG, _check_flag(inner(values)) is (count % 2 == 0))

    def parse_comparison(self) -> _Evaluate:
        terms = [self.parse_conversion()]
        signs: list[str] = []
        while token := self.take("<", "<=", ">", ">=", "==", "!="):
            signs.append(token.text)
            terms.append(self.parse_conversion())
        if not signs:
            return terms[0]

        def compare(values: Mapping[str, Value]) -> _TypedValue:
            found = [term(values) for term in terms]
            return _TypedValue(FLAG, all(map(_compare_values, signs, found, found[1:])))

        return compare

    def parse_conversion(self) -> _Evaluate:
        inner = self.sum()
        token = self.take("into")
        return _conversion_expression(inner, token.text) if token else inner

    def sum(self) -> _Evaluate:
        return self.parse_calculation(self.parse_product, "+", "-")

    def parse_product(self) -> _Evaluate:
        return self.parse_calculation(self.parse_atom, "*", "/")

    def parse_calculation(self, term: Callable[[], _Evaluate], *signs: str) -> _Evaluate:
        """Parse operators of one level, from left to right."""
        first = term()
        further: list[tuple[str, _Evaluate]] = []
        while token := self.take(*signs):
            further.append((token.text, term()))
        if not further:
            return first

        def calculate(values: Mapping[str, Value]) -> _TypedValue:
            result = first(values)
            for sign, each in further:
                result = _calculate_values(sign, result, each(values))
            return result

        return calculate

    def parse_atom(self) -> _Evaluate:
        if token := self.take("value"):
            value = token.value
            assert value is not None
            return lambda values: value
        if token := self.take("name"):
            if self.peek_token() == "(":
                return self.call(token.text)
            name = token.text
            self.names.add(name)
            return lambda values: typed_value(_known_value(name, values))
        if self.take("("):
            inner = self.parse_nested(self.parse_or)
            if not self.take(")"):
                raise self.error("a closing bracket")
            return inner
        raise self.error("a value, a parameter or an opening bracket")

    def parse_nested(self, read: Callable[[], _Evaluate]) -> _Evaluate:
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise ExpressionError(f"found more than {DEPTH_LIMIT} nested brackets, expected fewer")
        inner = read()
        self.depth -= 1
        return inner

    def call(self, function: str) -> _Evaluate:
        if function not in _FUNCTIONS:
            raise ExpressionError(f'found {function}(…) in "{self.text}", expected one of {", ".join(_FUNCTIONS)}')
        self.take("(")
        arguments = [self.parse_nested(self.parse_or)]
        while self.take(","):
            arguments.append(self.parse_nested(self.parse_or))
        if not self.take(")"):
            raise self.error("a closing bracket")
        if function in _ROUNDINGS:
            if len(arguments) != 1:
                raise ExpressionError(f'found {len(arguments)} values in {function}(…) of "{self.text}", expected one')
            return lambda values: _round(function, arguments[0](values))
        if function == "if":
            if len(arguments) != 3:
                found = f'found {len(arguments)} values in if(…) of "{self.text}"'
                raise ExpressionError(f"{found}, expected a condition and two values")
            holds, then, otherwise = arguments
            return lambda values: then(values) if _check_flag(holds(values)) else otherwise(values)
        return lambda values: _extreme_value(function, [argument(values) for argument in arguments])


def _check_flag(found: _TypedValue) -> bool:
    if not isinstance(found.value, bool):
        raise ExpressionError(f"found a {_name(found.kind)}, expected a comparison")
    return found.value


_ORDER: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compare_values(sign: str, left: _TypedValue, right: _TypedValue) -> bool:
    if left.kind != right.kind:
        raise ExpressionError(f"found a {_name(left.kind)} {sign} a {_name(right.kind)}, expected two of the same kind")
    if sign in ("==", "!="):
        return (left.value == right.value) == (sign == "==")
    if not isinstance(left.value, Fraction) or not isinstance(right.value, Fraction):
        raise ExpressionError(f"found a {_name(left.kind)} {sign} a {_name(right.kind)}; these cannot be ordered")
    return _ORDER[sign](left.value, right.value)


def _calculate_values(sign: str, left: _TypedValue, right: _TypedValue) -> _TypedValue:
    a, b = left.value, right.value
    if not isinstance(a, Fraction) or not isinstance(b, Fraction):
        raise ExpressionError(f"found a {_name(left.kind)} {sign} a {_name(right.kind)}, expected quantities")
    if sign == "/" and b == 0:
        raise ExpressionError("found a division by zero")
    kinds = (left.kind, right.kind)
    if sign in ("+", "-") and left.kind == right.kind:
        return _TypedValue(left.kind, a + b if sign == "+" else a - b)
    if sign == "*":
        if NUMBER in kinds:
            return _TypedValue(kinds[1 - kinds.index(NUMBER)], a * b)
        if Percent in kinds:
            return _TypedValue(kinds[1 - kinds.index(Percent)], a * b / 10**6)
        if set(kinds) == {Rate, Duration}:
            return _TypedValue(Size, a * b / (8 * _NS))
    if sign == "/":
        if right.kind == NUMBER:
            return _TypedValue(left.kind, a / b)
        if left.kind == right.kind:
            return _TypedValue(NUMBER, a / b)
        if kinds == (Size, Rate):
            return _TypedValue(Duration, a * 8 * _NS / b)
        if kinds == (Size, Duration):
            return _TypedValue(Rate, a * 8 * _NS / b)
    raise ExpressionError(f"found a {_name(left.kind)} {sign} a {_name(right.kind)}, which is not defined")


def _conversion_expression(inner: _Evaluate, unit: str) -> _Evaluate:
    kind, factor = UNITS[unit]

    def convert(values: Mapping[str, Value]) -> _TypedValue:
        found = inner(values)
        if found.kind != kind or not isinstance(found.value, Fraction):
            raise ExpressionError(f"found a {_name(found.kind)} in {unit}, expected a {kind.KIND}")
        return _TypedValue(NUMBER, found.value / factor)

    return convert


def _round(function: str, found: _TypedValue) -> _TypedValue:
    if not isinstance(found.value, Fraction):
        raise ExpressionError(f"found {function} of a {_name(found.kind)}, expected a quantity or a number")
    return _TypedValue(found.kind, Fraction(_ROUNDINGS[function](found.value)))


def _extreme_value(function: str, found: list[_TypedValue]) -> _TypedValue:
    kinds = list(dict.fromkeys(each.kind for each in found))
    if len(kinds) > 1 or not isinstance(found[0].value, Fraction):
        names = " and ".join(f"a {_name(kind)}" for kind in kinds)
        raise ExpressionError(f"found {function} of {names}, expected quantities of one kind")
    numbers = [each.value for each in found if isinstance(each.value, Fraction)]
    return _TypedValue(kinds[0], min(numbers) if function == "min" else max(numbers))


_QUANTITY_PATTERN = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*([A-Za-zµ%/]+)$")
_NORMALISED_NAMES = {unit.lower(): kind for unit, (kind, _) in UNITS.items()}


def read_value(raw: str | int | float | bool) -> Value:
    """Parse a value of a file or an option: a text of a number with a unit is that quantity, any other text remains a
    text.

    Raise `QuantityError` for a misspelled unit (`10 mb/s`).
    """
    if not isinstance(raw, str):
        return raw
    text = raw.strip()
    found = _QUANTITY_PATTERN.fullmatch(text) if len(text) <= LENGTH_LIMIT else None
    if found is not None:
        if found[1] in UNITS:
            return UNITS[found[1]][0].parse(text)
        if found[1].lower() in _NORMALISED_NAMES:
            return _NORMALISED_NAMES[found[1].lower()].parse(text)  # refuses, with a proposal
    return raw


def show_value(value: Value) -> str:
    """Format a value for display and files: `10 Mb/s`, `4`, `true`, `cubic`. Different numbers have different texts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
