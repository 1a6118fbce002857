"""Quantities: exact, canonical, or refused with a proposal."""

from __future__ import annotations

import copy
import json
import pickle
import re
from decimal import Decimal

import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qoslab.errors import ExitStatus
from qoslab.model.units import Duration, Percent, Quantity, QuantityError, Rate, Size

KINDS = (Rate, Size, Duration, Percent)
kinds = st.sampled_from(KINDS)
counts = st.integers(min_value=0, max_value=10**21)


@given(kinds, st.integers(min_value=0, max_value=Quantity.LARGEST))
@example(Rate, 0)
@example(Size, 1024000)
@example(Duration, 0)
def test_printed_quantities_are_parsed_back(kind: type[Quantity], count: int) -> None:
    quantity = kind(count)
    assert kind.parse(str(quantity)) == quantity
    assert re.match(kind.PATTERN, str(quantity))


@given(kinds, counts, st.data())
def test_every_spelling_of_a_quantity_is_exact(kind: type[Quantity], count: int, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(sorted(kind.UNITS)))
    factor = kind.UNITS[unit]
    blank = data.draw(st.sampled_from(["", " ", "  "]))
    assert int(kind.parse(f"{count}{blank}{unit}")) == count * factor


@given(kinds, st.decimals(min_value=0, max_value=10**6, places=7), st.data())
def test_fractions_are_exact_or_refused(kind: type[Quantity], number: Decimal, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(sorted(kind.UNITS)))
    exact = number * kind.UNITS[unit]
    text = f"{number:f} {unit}"
    if exact == exact.to_integral_value():
        assert int(kind.parse(text)) == exact
    else:
        with pytest.raises(QuantityError, match="whole number of"):
            kind.parse(text)


@given(kinds, st.text(max_size=12))
def test_any_quantity_text_is_parsed_or_refused(kind: type[Quantity], text: str) -> None:
    try:
        quantity = kind.parse(text)
    except QuantityError as error:
        assert error.exit_status == ExitStatus.USER_MISTAKE
        assert "found" in error.message
    else:
        assert kind.parse(str(quantity)) == quantity
        assert re.match(kind.PATTERN, text)


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Rate(0), "0 b/s"),
        (Rate(128_000), "128 kb/s"),
        (Rate(93_500_000), "93.5 Mb/s"),
        (Rate(1_234_567), "1.234567 Mb/s"),
        (Rate(2 * 10**9), "2 Gb/s"),
        (Size(0), "0 B"),
        (Size(31250), "31250 B"),
        (Size(16384), "16 KiB"),
        (Size(64000), "64 kB"),
        (Size(2**20), "1 MiB"),
        (Duration(0), "0 s"),
        (Duration(1_500_000_000), "1.5 s"),
        (Duration(200_000_000), "200 ms"),
        (Duration(2_500), "2.5 us"),
        (Duration(300 * 10**9), "300 s"),
        (Percent(280_000), "28 %"),
        (Percent(5_000), "0.5 %"),
        (Percent(2_500_000), "250 %"),
    ],
)
def test_quantities_are_printed_canonically(quantity: Quantity, text: str) -> None:
    assert str(quantity) == f"{quantity}" == text
    assert f"{quantity:>12}" == text.rjust(12)


PROPOSED = {
    Rate: "b/s, kb/s, Mb/s, Gb/s",
    Size: "B, kB, KiB, MB, MiB, GB, GiB",
    Duration: "ns, us, ms, s, min, h",
    Percent: "%",
}
EXPECTED = {
    Rate: 'a rate such as "100 Mb/s"',
    Size: 'a size such as "16 KiB"',
    Duration: 'a duration such as "30 s"',
    Percent: 'a percentage such as "28 %"',
}
REFUSED = [
    (Rate, "100", "bare", 'did you mean "100 Mb/s"?'),
    (Rate, "7999", "bare", 'did you mean "7999 Mb/s"?'),
    (Rate, "8000", "bare", 'did you mean "8 kb/s" (8000 b/s)?'),
    (Rate, "8000.5", "bare", 'did you mean "8000.5 Mb/s"?'),
    (Rate, "1000000", "bare", 'did you mean "1 Mb/s" (1000000 b/s)?'),
    (Rate, "100 mb/s", "unit", 'did you mean "100 Mb/s"?'),
    (Rate, "100 mbps", "unit", 'did you mean "100 Mb/s"?'),
    (Rate, "100 Gbit", "unit", 'did you mean "100 Gb/s"?'),
    (Rate, "1 gbit/s", "unit", 'did you mean "1 Gb/s"?'),
    (Rate, "100M", "unit", 'did you mean "100 Mb/s"?'),
    (Rate, "5 K", "unit", 'did you mean "5 kb/s"?'),
    (Rate, "5 B", "unit", 'did you mean "5 b/s"?'),
    (Rate, "10 MB/s", "unit", 'B is a byte: write "80 Mb/s" if bytes were meant, "10 Mb/s" if bits were'),
    (Rate, "10 KBps", "unit", 'B is a byte: write "80 kb/s" if bytes were meant, "10 kb/s" if bits were'),
    (Rate, "1.5 kB/s", "unit", 'B is a byte: write "12 kb/s" if bytes were meant, "1.5 kb/s" if bits were'),
    (Rate, "9 B/s", "unit", 'B is a byte: write "72 b/s" if bytes were meant, "9 b/s" if bits were'),
    (Rate, "1,5 Mb/s", 'found "1,5 Mb/s", expected a rate such as "100 Mb/s"', 'did you mean "1.5 Mb/s"?'),
    (Rate, "1,5 MB", 'found "1,5 MB", expected a rate such as "100 Mb/s"', ""),
    (Rate, "5 parsec", "unit", ""),
    (Rate, "0.5 b/s", 'found "0.5 b/s", expected a whole number of b/s', ""),
    (Rate, "9" * 37 + " b/s", 'found "' + "9" * 37 + ' b/s", expected at most 1' + "0" * 27 + " Gb/s", ""),
    (
        Rate,
        "9" * 61,
        'found a text of 61 characters, "99999999999999999999…", expected a rate such as "100 Mb/s"',
        "",
    ),
    (Size, "1500", "bare", 'did you mean "1500 B"?'),
    (Size, "16 KB", "unit", 'write "16 kB" for powers of 1000, "16 KiB" for powers of 1024'),
    (Size, "16K", "unit", 'write "16 kB" for powers of 1000, "16 KiB" for powers of 1024'),
    (Size, "1 m", "unit", 'write "1 MB" for powers of 1000, "1 MiB" for powers of 1024'),
    (Size, "1 gbyte", "unit", 'write "1 GB" for powers of 1000, "1 GiB" for powers of 1024'),
    (Size, "1 mib", "unit", 'did you mean "1 MiB"?'),
    (Size, "8 Mb", "unit", "sizes are in bytes: 8 bits are 1 B"),
    (Size, "8 bits", "unit", "sizes are in bytes: 8 bits are 1 B"),
    (Size, "3 furlong", "unit", ""),
    (Size, "0.5 B", 'found "0.5 B", expected a whole number of B', ""),
    (Duration, "30", "bare", 'did you mean "30 s"?'),
    (Duration, "5 m", "unit", 'write "5 min" for minutes, "5 ms" for milliseconds'),
    (Duration, "10 Seconds", "unit", 'did you mean "10 s"?'),
    (Duration, "10 sec", "unit", 'did you mean "10 s"?'),
    (Duration, "2 minutes", "unit", 'did you mean "2 min"?'),
    (Duration, "2 Hours", "unit", 'did you mean "2 h"?'),
    (Duration, "2 hr", "unit", 'did you mean "2 h"?'),
    (Duration, "2 msec", "unit", 'did you mean "2 ms"?'),
    (Duration, "2 usecs", "unit", 'did you mean "2 us"?'),
    (Duration, "10 MS", "unit", 'did you mean "10 ms"?'),
    (Duration, "1 day", "unit", ""),
    (Duration, "0.5 ns", 'found "0.5 ns", expected a whole number of ns', ""),
    (Rate, "1 KB/S", "unit", 'did you mean "1 kb/s"?'),
    (Size, "3 kbyte", "unit", 'write "3 kB" for powers of 1000, "3 KiB" for powers of 1024'),
    (Size, "3 G", "unit", 'write "3 GB" for powers of 1000, "3 GiB" for powers of 1024'),
    (Percent, "28", "bare", 'did you mean "28 %"?'),
    (Percent, "0.28", "bare", 'did you mean "28 %"?'),
    (Percent, "0", "bare", 'did you mean "0 %"?'),
    (Percent, "1", "bare", 'did you mean "1 %"?'),
    (Percent, "28 percent", "unit", 'did you mean "28 %"?'),
    (Percent, "5 PCT", "unit", 'did you mean "5 %"?'),
    (Percent, "5 x", "unit", ""),
    (Percent, "0.00001 %", 'found "0.00001 %", expected a whole number of 0.0001 %', ""),
]
"""Kind, text, its message (`bare`: no unit, `unit`: an unknown unit), proposal."""


@pytest.mark.parametrize(("kind", "text", "message", "proposal"), REFUSED, ids=lambda value: str(value)[:20])
def test_refused_quantity_has_a_proposal(kind: type[Quantity], text: str, message: str, proposal: str) -> None:
    words = {
        "bare": f'found "{text}" without a unit, expected {EXPECTED[kind]}',
        "unit": f'found "{text}" with the unit "{text.lstrip("0123456789. ")}", expected one of {PROPOSED[kind]}',
    }
    with pytest.raises(QuantityError) as raised:
        kind.parse(f" {text} " if message in words else text)
    assert (raised.value.message, raised.value.hint) == (words.get(message, message), proposal)
    assert str(raised.value) == (f"{raised.value.message}; {proposal}" if proposal else raised.value.message)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["", "-1 {}", "+1 {}", "1e3 {}", "0x10 {}", ".5 {}", "1. {}", "1_0 {}", "١ {}", "1 2 {}", "{}"]
)
def test_unsupported_number_formats_are_refused(kind: type[Quantity], text: str) -> None:
    with pytest.raises(QuantityError):
        kind.parse(text.format(next(iter(kind.UNITS))))


@given(kinds, counts, counts, st.integers(min_value=0, max_value=1000))
def test_arithmetic_uses_exact_integers(kind: type[Quantity], a: int, b: int, n: int) -> None:
    assert kind(a) + kind(b) == kind(a + b)
    assert kind(a) * n == n * kind(a) == kind(a * n)
    assert (kind(a) < kind(b), kind(a) <= kind(b), kind(a) > kind(b), kind(a) >= kind(b)) == (
        a < b,
        a <= b,
        a > b,
        a >= b,
    )
    assert bool(kind(a)) == bool(a)
    if a >= b:
        assert kind(a) - kind(b) == kind(a - b)
    else:
        with pytest.raises(ValueError, match="negative"):
            kind(a) - kind(b)
    if n:
        assert kind(a) // n == kind(a // n)
    if b:
        assert kind(a) // kind(b) == a // b
        assert kind(a) / kind(b) == a / b


OPERATORS = (
    "__eq__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__add__",
    "__sub__",
    "__mul__",
    "__floordiv__",
    "__truediv__",
)


@pytest.mark.parametrize("name", OPERATORS)
def test_quantities_of_different_kinds_do_not_mix(name: str) -> None:
    assert len({Rate(5), Size(5), Rate(5)}) == 2
    others = [Size(5), 1.5, "5", None] + ([5] if name not in ("__mul__", "__floordiv__") else [])
    assert [getattr(Rate(5), name)(other) for other in others] == [NotImplemented] * len(others)


def test_each_operator_is_implemented() -> None:
    """Compare in both orders, not only by the other operand's mirrored operator."""
    answers = [getattr(Rate(6), name)(Rate(4)) for name in OPERATORS if name != "__mul__"]
    assert answers == [False, False, False, True, True, Rate(10), Rate(2), 1, 1.5]
    assert [getattr(Rate(5), name)(Rate(5)) for name in OPERATORS[:5]] == [True, False, True, False, True]
    assert [getattr(Rate(4), name)(Rate(6)) for name in OPERATORS[:5]] == [False, True, True, False, False]
    assert (Rate(7).__mul__(3), Rate(7).__rmul__(3), Rate(7).__floordiv__(2)) == (Rate(21), Rate(21), Rate(3))


@pytest.mark.parametrize("value", [1.0, True, "1", None])
def test_counts_are_integers(value: object) -> None:
    with pytest.raises(TypeError) as raised:
        Rate(value)  # type: ignore[arg-type]
    assert str(raised.value) == f"Rate counts whole base units: found {value!r}, expected an int"


def test_quantities_are_immutable() -> None:
    rate = Rate(5)
    with pytest.raises(AttributeError, match=r"^a Rate is immutable$"):
        rate._value = 6
    with pytest.raises(AttributeError, match=r"^a Rate is immutable$"):
        del rate._value
    assert repr(rate) == "Rate(5)"
    assert pickle.loads(pickle.dumps(rate)) == copy.deepcopy(rate) == rate


def test_longest_text_is_parsed() -> None:
    assert Rate.parse("1" + " " * 55 + "Mb/s") == Rate(10**6)


def test_largest_quantity_is_parsed() -> None:
    assert Rate.parse(f"{Rate.LARGEST} b/s") == Rate(Rate.LARGEST)
    with pytest.raises(QuantityError, match="expected at most"):
        Rate.parse(f"{Rate.LARGEST + 1} b/s")


def test_hash_depends_on_kind_and_count() -> None:
    assert hash(Rate(5)) == hash(Rate(5))
    assert len({hash(kind(count)) for kind in KINDS for count in range(3)}) == 12


def test_units_are_used_from_their_size_without_trailing_zeros() -> None:
    assert [str(Rate(count)) for count in (999, 1000, 10**6 - 10, 10**6, 1_250_000)] == [
        "999 b/s",
        "1 kb/s",
        "999.99 kb/s",
        "1 Mb/s",
        "1.25 Mb/s",
    ]
    assert [str(Duration(count)) for count in (999, 1000, 10**6, 1_100_000, 10**9, 10**11)] == [
        "999 ns",
        "1 us",
        "1 ms",
        "1.1 ms",
        "1 s",
        "100 s",
    ]
    # As one number of any size, with all its digits.
    assert str(Rate(10**36)) == "1" + "0" * 27 + " Gb/s"
    assert str(Rate(10**30 + 1)) == "1" + "0" * 21 + ".000000001 Gb/s"
    assert str(Rate(10**36 - 10)) == "9" * 27 + ".99999999 Gb/s"
    assert [str(Duration(count)) for count in (1_001, 1_010, 10**9 + 1)] == ["1.001 us", "1.01 us", "1.000000001 s"]
    assert [str(Percent(count)) for count in (0, 1, 10, 10_000, 100_000)] == [
        "0 %",
        "0.0001 %",
        "0.001 %",
        "1 %",
        "10 %",
    ]


def test_quantities_have_no_other_attributes() -> None:
    assert Rate.parse("1.5 Mb/s").bps == 1_500_000
    assert (Size.parse("2 kB").bytes, Size.parse("2 kB").bits) == (2000, 16000)
    assert (Duration.parse("1.5 s").ns, Duration.parse("1.5 s").seconds) == (1_500_000_000, 1.5)
    assert Percent.parse("32.6 %").fraction == pytest.approx(0.326)


class QuantityHolder(pydantic.BaseModel):
    """Model with a field of each kind."""

    rate: Rate
    size: Size = Size(0)
    duration: Duration = Duration(0)
    percent: Percent = Percent(0)


@given(counts, counts, counts, counts)
def test_models_keep_quantities_through_json(rate: int, size: int, duration: int, percent: int) -> None:
    held = QuantityHolder(rate=Rate(rate), size=Size(size), duration=Duration(duration), percent=Percent(percent))
    assert json.loads(held.model_dump_json())["rate"] == str(held.rate)
    assert QuantityHolder.model_validate_json(held.model_dump_json()) == held
    assert QuantityHolder.model_validate(held.model_dump()) == held


def test_bare_number_is_parsed_like_text() -> None:
    with pytest.raises(pydantic.ValidationError, match=r'found "8000" without a unit.*did you mean "8 kb/s"'):
        QuantityHolder.model_validate({"rate": 8000})
    with pytest.raises(pydantic.ValidationError, match="found True, expected a rate"):
        QuantityHolder.model_validate({"rate": True})


@pytest.mark.parametrize("value", [100, 1.5, True, None, ["1 Mb/s"], Size(1)])
def test_models_refuse_other_values(value: object) -> None:
    with pytest.raises(pydantic.ValidationError, match="expected a rate"):
        QuantityHolder.model_validate({"rate": value})


def test_json_schema_examples_fit_their_pattern() -> None:
    for kind, name in zip(KINDS, ("rate", "size", "duration", "percent"), strict=True):
        schema = QuantityHolder.model_json_schema()["properties"][name]
        assert schema["examples"]
        for text in schema["examples"]:
            assert re.match(schema["pattern"], text)
            assert str(kind.parse(text))


@pytest.mark.parametrize("kind", KINDS)
def test_quantity_is_text_only_in_json(kind: type[Quantity]) -> None:
    adapter = pydantic.TypeAdapter(kind)
    assert adapter.dump_json(kind(0)) == json.dumps(str(kind(0))).encode()
    assert adapter.dump_python(kind(5)) == kind(5)
    assert adapter.validate_python(str(kind(5))) == kind(5)
    expected = {"type": "string", "pattern": kind.PATTERN, "examples": list(kind.EXAMPLES), "title": kind.__name__}
    assert adapter.json_schema() == expected
