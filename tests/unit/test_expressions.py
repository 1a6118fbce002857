"""Expressions, checked by hand: meaning and limits of each form, and messages about expressions without a value."""

from __future__ import annotations

from fractions import Fraction

import pytest

from qoslab.model.expressions import (
    DEPTH_LIMIT,
    DIGIT_LIMIT,
    LARGEST,
    WORD_LIMIT,
    ExpressionError,
    Value,
    kind_name,
    parse_expression,
    read_value,
    show_value,
    typed_value,
)
from qoslab.model.units import LENGTH_LIMIT, Duration, Percent, QuantityError, Rate, Size

VALUES: dict[str, Value] = {
    "pir": Rate(10**6),
    "link": Rate(10**7),
    "rtt": Duration(50_000_000),
    "loss": Percent(500_000),
    "count": 4,
    "ratio": 0.1,
    "on": True,
    "off": False,
    "queue": "fifo",
}


@pytest.fixture(autouse=True)
def clear_cache() -> None:
    """Clear the cache, so that nothing read before by an unchanged program is used."""
    parse_expression.cache_clear()


def refusal_message(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text).evaluate(VALUES)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Values and their spellings.
        (" 5 ", 5),
        ("1.50", 1.5),
        ("2Mb/s", Rate(2_000_000)),
        ("1.5 kB", Size(1500)),
        ("2 KiB", Size(2048)),
        ("28%", Percent(280_000)),
        ("true", True),
        ("false", False),
        ("''", ""),
        ('""', ""),
        ("'a\"b'", 'a"b'),
        ('"it\'s"', "it's"),
        ("pir", Rate(10**6)),
        ("count", 4),
        ("ratio", 0.1),
        ("queue", "fifo"),
        # Sums and products of two values of one kind, from left to right.
        ("7 - 2 - 1", 4),
        ("7 - 2 + 1", 6),
        ("24 / 4 / 2", 3),
        ("24 / 4 * 2", 12),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("ratio + 0.2", 0.3),
        ("pir + link", Rate(11 * 10**6)),
        ("link - pir", Rate(9 * 10**6)),
        ("pir - pir", Rate(0)),
        ("loss + 1 %", Percent(510_000)),
        # A number times or divided by any value; a share of any value.
        ("pir * 3", Rate(3 * 10**6)),
        ("3 * pir", Rate(3 * 10**6)),
        ("3 * 2", 6),
        ("pir / 2", Rate(500_000)),
        ("0 / 2", 0),
        ("7 / 2", 3.5),
        ("pir * 28 %", Rate(280_000)),
        ("28 % * pir", Rate(280_000)),
        ("50 % * 50 %", Percent(250_000)),
        ("3 * 25 %", Percent(750_000)),
        ("25 % * 3", Percent(750_000)),
        # Rates, sizes and durations.
        ("pir * rtt", Size(6250)),
        ("rtt * pir", Size(6250)),
        ("6250 B / pir", Duration(50_000_000)),
        ("6250 B / rtt", Rate(10**6)),
        ("link / pir", 10),
        ("pir / link", 0.1),
        ("50 % / 25 %", 2),
        # Conversions bind more weakly than products and sums, and more strongly than comparisons.
        ("rtt in ms", 50),
        ("1 s + rtt in ms", 1050),
        ("loss in %", 50),
        ("2048 B in KiB", 2),
        ("rtt in ms < 51", True),
        # Comparisons, also chained.
        ("pir < pir", False),
        ("pir <= pir", True),
        ("pir > pir", False),
        ("pir >= pir", True),
        ("pir == pir", True),
        ("pir != pir", False),
        ("pir < link", True),
        ("pir <= link", True),
        ("pir > link", False),
        ("pir >= link", False),
        ("pir == link", False),
        ("pir != link", True),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("3 < 1 < 2", False),
        ("1 < 3 > 2", True),
        ("queue == 'fifo'", True),
        ("queue != 'fifo'", False),
        ("on == off", False),
        ("on != off", True),
        # `or`, `and`, `not`.
        ("off or off", False),
        ("off or on", True),
        ("on or off", True),
        ("off or off or on", True),
        ("on and on", True),
        ("on and off", False),
        ("off and on", False),
        ("on and on and off", False),
        ("on or on and off", True),
        ("not off", True),
        ("not on", False),
        ("not not on", True),
        ("not not not on", False),
        ("not 1 > 2", True),
        ("not off and off", False),
        # Terms after the decisive one are not evaluated.
        ("on or 1 / 0", True),
        ("off and 1 / 0", False),
        # Functions.
        ("min(3)", 3),
        ("min(3, 2, 4)", 2),
        ("max(3, 4, 2)", 4),
        ("min(pir, link)", Rate(10**6)),
        ("max(pir, link)", Rate(10**7)),
        ("round(7 / 4)", 2),
        ("floor(7 / 4)", 1),
        ("ceil(5 / 4)", 2),
        ("floor(1 b/s * 1.9)", Rate(1)),
        ("ceil(1 b/s * 1.1)", Rate(2)),
        ("if(on, 1, 2)", 1),
        ("if(off, 1, 2)", 2),
        ("if(on, pir, link)", Rate(10**6)),
        ("if(off, pir, link)", Rate(10**7)),
        ("if(on, 1, 1 / 0)", 1),
        ("if(off, 1 / 0, 2)", 2),
    ],
)
def test_expression_evaluates_to_its_value(text: str, value: Value) -> None:
    found = parse_expression(text).evaluate(VALUES)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'found the end in "", expected a value, a parameter or an opening bracket'),
        ("1 +", 'found the end in "1 +", expected a value, a parameter or an opening bracket'),
        ("1 + )", 'found ) in "1 + )", expected a value, a parameter or an opening bracket'),
        ("1 2 Mb/s", 'found 2 Mb/s in "1 2 Mb/s", expected the end or an operator'),
        ("1 'a'", "found 'a' in \"1 'a'\", expected the end or an operator"),
        ("1 true", 'found true in "1 true", expected the end or an operator'),
        ("1 pir", 'found pir in "1 pir", expected the end or an operator'),
        ("rtt in s * 1", 'found * in "rtt in s * 1", expected the end or an operator'),
        ("rtt in ms in s", 'found s in "rtt in ms in s", expected the end or an operator'),
        ("rtt in x", 'found in in "rtt in x", expected the end or an operator'),
        ("1 not 2", 'found not in "1 not 2", expected the end or an operator'),
        ("10 Mb/sx", 'found Mb in "10 Mb/sx", expected the end or an operator'),
        (" 1 + §x ", 'found "§x" in " 1 + §x", expected a value or an operator'),
        ("1 +   § ", 'found "§" in "1 +   §", expected a value or an operator'),
        ("'a", 'found "\'a" in "\'a", expected a value or an operator'),
        ("(1", 'found the end in "(1", expected a closing bracket'),
        ("(1, 2)", 'found , in "(1, 2)", expected a closing bracket'),
        ("min(1, 2", 'found the end in "min(1, 2", expected a closing bracket'),
        ("min(1 2)", 'found 2 in "min(1 2)", expected a closing bracket'),
        ("f(1)", 'found f(…) in "f(1)", expected one of min, max, round, floor, ceil, if'),
        ("round(1, 2)", 'found 2 values in round(…) of "round(1, 2)", expected one'),
        ("if(on, 1)", 'found 2 values in if(…) of "if(on, 1)", expected a condition and two values'),
        ("if(on, 1, 2, 3)", 'found 4 values in if(…) of "if(on, 1, 2, 3)", expected a condition and two values'),
    ],
)
def test_syntax_error_is_reported_at_its_position(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert (caught.value.message, caught.value.hint) == (message, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pir < rtt", "found a rate < a duration, expected two of the same kind"),
        ("pir == 1", "found a rate == a number, expected two of the same kind"),
        ("queue != 1", "found a text != a number, expected two of the same kind"),
        ("queue < queue", "found a text < a text; these cannot be ordered"),
        ("on >= off", "found a truth value >= a truth value; these cannot be ordered"),
        ("on + 1", "found a truth value + a number, expected quantities"),
        ("true + 1", "found a truth value + a number, expected quantities"),
        ("(off or on) + 1", "found a truth value + a number, expected quantities"),
        ("(not off) - 1", "found a truth value - a number, expected quantities"),
        ("(1 < 2) / 1", "found a truth value / a number, expected quantities"),
        ("1 * queue", "found a number * a text, expected quantities"),
        ("1 / 0", "found a division by zero"),
        ("pir / (1 s - 1 s)", "found a division by zero"),
        ("pir + 1", "found a rate + a number, which is not defined"),
        ("rtt - loss", "found a duration - a percentage, which is not defined"),
        ("pir * link", "found a rate * a rate, which is not defined"),
        ("pir * 1 B", "found a rate * a size, which is not defined"),
        ("rtt * 1 B", "found a duration * a size, which is not defined"),
        ("1 / pir", "found a number / a rate, which is not defined"),
        ("pir / 1 %", "found a rate / a percentage, which is not defined"),
        ("pir / 1 B", "found a rate / a size, which is not defined"),
        ("rtt / pir", "found a duration / a rate, which is not defined"),
        ("pir in B", "found a rate in B, expected a size"),
        ("1 in %", "found a number in %, expected a percentage"),
        ("queue in ms", "found a text in ms, expected a duration"),
        ("not pir", "found a rate, expected a comparison"),
        ("pir or on", "found a rate, expected a comparison"),
        ("on and 1", "found a number, expected a comparison"),
        ("if(queue, 1, 2)", "found a text, expected a comparison"),
        ("round(queue)", "found round of a text, expected a quantity or a number"),
        ("ceil(on)", "found ceil of a truth value, expected a quantity or a number"),
        ("min(pir, 1, link)", "found min of a rate and a number, expected quantities of one kind"),
        ("max(queue)", "found max of a text, expected quantities of one kind"),
        ("max(on, 1 s, 2 s)", "found max of a truth value and a duration, expected quantities of one kind"),
    ],
)
def test_expression_without_value_is_refused(text: str, message: str) -> None:
    error = refusal_message(f" {text} ")
    assert (error.message, error.hint) == (f"{text}: {message}", "")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("1 s / 3", "3.33333e+08 ns, expected a duration of whole base units, not below zero", "write round(…)"),
        ("0.5 b/s", "0.5 b/s, expected a rate of whole base units, not below zero", "write round(…)"),
        ("0.5 B", "0.5 B, expected a size of whole base units, not below zero", "write round(…)"),
        ("1 % / 3", "0.333333 %, expected a percentage of whole base units, not below zero", "write round(…)"),
        ("0 % - 1 %", "-1 %, expected a percentage of whole base units, not below zero", ""),
        ("0 b/s - 1 b/s", "-1 b/s, expected a rate of whole base units, not below zero", ""),
        ("0 B - 0.5 B", "-0.5 B, expected a size of whole base units, not below zero", ""),
    ],
)
def test_impossible_quantity_is_refused(text: str, message: str, hint: str) -> None:
    error = refusal_message(text)
    assert (error.message, error.hint) == (f"{text}: found {message}", hint)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 s / 3", Duration(333_333_333)),
        ("2 s / 3", Duration(666_666_667)),
        ("pir - link", Rate(0)),
        ("0 B", Size(0)),
        ("1 B", Size(1)),
        ("1 % / 3", Percent(3333)),
        ("1 - 2", -1),
        ("1 / 4", 0.25),
        ("queue", "fifo"),
        ("on", True),
    ],
)
def test_result_is_rounded_to_a_whole_quantity_of_at_least_zero(text: str, value: Value) -> None:
    found = parse_expression(text).rounded_value(VALUES)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("1 / 0", "found a division by zero", ""),
        ("rtt + 1", "found a duration + a number, which is not defined", ""),
        ("2 * most", "found a rate of more than 30 digits, expected a smaller one", ""),
    ],
)
def test_result_without_a_value_is_refused_with_the_expression(text: str, message: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(f" {text} ").rounded_value({**VALUES, "most": Rate(LARGEST)})
    assert (caught.value.message, caught.value.hint) == (f"{text}: {message}", hint)


def test_condition_has_a_truth_value() -> None:
    assert parse_expression("pir < link").is_true(VALUES) is True
    assert parse_expression("pir > link").is_true(VALUES) is False
    for text, kind in (("pir", "rate"), (" count ", "number"), ("queue", "text")):
        with pytest.raises(ExpressionError) as caught:
            parse_expression(text).is_true(VALUES)
        assert caught.value.message == f"{text.strip()}: found a {kind}, expected a comparison"


def test_expression_knows_its_text_its_parameters_and_its_words() -> None:
    found = parse_expression(" max(pir * rtt, 3 kB) in B <= count and true ")
    assert found.text == "max(pir * rtt, 3 kB) in B <= count and true"
    assert found.names == {"pir", "rtt", "count"}
    assert found.words == 13


def test_numbers_have_at_most_thirty_digits() -> None:
    largest = "9" * DIGIT_LIMIT
    assert parse_expression(largest).evaluate({}) == 10**30 - 1
    assert parse_expression(f"{largest} - 1").evaluate({}) == 10**30 - 2
    for number in ("9" * 31, "1." + "0" * 29, "0" * 31):
        with pytest.raises(ExpressionError) as caught:
            parse_expression(f"1 + {number} B")
        assert caught.value.message == "found a number of 31 digits, expected at most 30"


def test_results_have_at_most_thirty_digits_and_steps_may_have_more() -> None:
    values: dict[str, Value] = {"a": LARGEST, "r": Rate(LARGEST)}
    assert parse_expression("a").evaluate(values) == LARGEST
    assert parse_expression("0 - a").evaluate(values) == -LARGEST
    assert parse_expression("r").evaluate(values) == Rate(LARGEST)
    assert parse_expression("a * a / a").evaluate(values) == LARGEST
    for text, kind in (("a + 0.1", "number"), ("0 - a - 0.1", "number"), ("r + 1 b/s", "rate")):
        with pytest.raises(ExpressionError) as caught:
            parse_expression(text).evaluate(values)
        answer = f"{text}: found a {kind} of more than 30 digits, expected a smaller one"
        assert (caught.value.message, caught.value.hint) == (answer, "")


@pytest.mark.parametrize("opening", ["(", "min(", "min(1, "])
def test_brackets_nest_thirty_two_deep(opening: str) -> None:
    def deep(depth: int) -> str:
        return opening * depth + "1" + ")" * depth

    surroundings = f"{deep(1)} + {deep(2)} - "
    assert parse_expression(deep(DEPTH_LIMIT)).evaluate({}) == 1
    assert parse_expression(surroundings + deep(DEPTH_LIMIT)).evaluate({}) == 1
    for text in (deep(DEPTH_LIMIT + 1), surroundings + deep(DEPTH_LIMIT + 1)):
        with pytest.raises(ExpressionError) as caught:
            parse_expression(text)
        assert caught.value.message == "found more than 32 nested brackets, expected fewer"


def test_expression_has_at_most_five_hundred_words() -> None:
    longest = "not " + "1 < " * (WORD_LIMIT // 2 - 1) + "2"
    found = parse_expression(longest)
    assert found.words == WORD_LIMIT and found.evaluate({}) is True
    # Nothing after that is read.
    for text in (f"{longest} <", f"{longest} < §"):
        with pytest.raises(ExpressionError) as caught:
            parse_expression(text)
        assert caught.value.message == "found more than 500 values and operators, expected fewer"


@pytest.mark.parametrize(
    ("value", "kind", "name", "exact"),
    [
        (Rate(7), Rate, "rate", Fraction(7)),
        (Size(7), Size, "size", Fraction(7)),
        (Duration(7), Duration, "duration", Fraction(7)),
        (Percent(7), Percent, "percentage", Fraction(7)),
        (7, "number", "number", Fraction(7)),
        (0.1, "number", "number", Fraction(1, 10)),
        (True, "truth value", "truth value", True),
        ("a", "text", "text", "a"),
    ],
)
def test_each_expression_value_has_a_kind(value: Value, kind: object, name: str, exact: object) -> None:
    found = typed_value(value)
    assert found.kind == kind and found.value == exact and type(found.value) is type(exact)
    assert kind_name(value) == name


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("10 Mb/s", Rate(10**7)),
        (" 10Mb/s ", Rate(10**7)),
        ("1.5 kB", Size(1500)),
        ("50 µs", Duration(50_000)),
        ("28 %", Percent(280_000)),
        # Words that are not a unit, nor similar to one.
        ("10", "10"),
        (" cubic ", " cubic "),
        ("10 apples", "10 apples"),
        ("x 10 MB", "x 10 MB"),
        ("10 MB/s 2", "10 MB/s 2"),
        # The maximum length of a quantity, without the blanks around it.
        (f" {1:0{LENGTH_LIMIT - 1}}B ", Size(1)),
        (f"{1:0{LENGTH_LIMIT}}B", f"{1:0{LENGTH_LIMIT}}B"),
        (5, 5),
        (1.5, 1.5),
        (True, True),
    ],
)
def test_text_that_is_a_number_with_a_unit_is_that_quantity(raw: str | int | float | bool, value: Value) -> None:
    found = read_value(raw)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            "10 mb/s",
            'found "10 mb/s" with the unit "mb/s", expected one of b/s, kb/s, Mb/s, Gb/s; did you mean "10 Mb/s"?',
        ),
        (
            "10 KB",
            'found "10 KB" with the unit "KB", expected one of B, kB, KiB, MB, MiB, GB, GiB; '
            'write "10 kB" for powers of 1000, "10 KiB" for powers of 1024',
        ),
        ("5 MS", 'found "5 MS" with the unit "MS", expected one of ns, us, ms, s, min, h; did you mean "5 ms"?'),
        ("0.5 B", 'found "0.5 B", expected a whole number of B'),
    ],
)
def test_misspelt_unit_is_refused(raw: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        read_value(raw)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Rate(10**7), "10 Mb/s"),
        (4, "4"),
        (4.0, "4"),
        (0.1, "0.1"),
        (1234567.5, "1234567.5"),
        (True, "true"),
        (False, "false"),
        ("cubic", "cubic"),
        ("2.0", "2.0"),
    ],
)
def test_value_is_printed_like_in_a_file(value: Value, text: str) -> None:
    assert show_value(value) == text


def test_name_without_a_value_is_reported_with_the_known_names() -> None:
    expression = parse_expression("x + 1")
    for values, reported in (({"a": 1, "b": 2}, "expected one of a, b"), ({}, "expected no name")):
        with pytest.raises(ExpressionError) as raised:
            expression.evaluate(values)
        assert raised.value.message == f'x + 1: found "x", {reported}'
