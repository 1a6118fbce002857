"""Quantities with units: rates, sizes, durations, percentages. The only module that parses or prints them.

Every type is an immutable, non-negative integer count of its base unit, so that arithmetic is exact. `parse` is exact
or an error: a text that names a fraction of the base unit is refused, as is a number without a unit, and any unit whose
meaning is not beyond doubt (`mb/s`, `MB/s` for a rate, `KB`, `m`), each with a proposal. Blanks between number and unit
are optional. Upper and lower case matter: M is mega (10^6), m would be milli, b is bit, B is byte.

| type | base unit | printed as | also read |
|---|---|---|---|
| `Rate` | bit/s | `b/s`, `kb/s`, `Mb/s`, `Gb/s` | `bps` and `bit/s` for `b/s`, with the same prefixes; K for k |
| `Size` | byte | `B`, `kB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB` (powers of 1024) | `byte`, `bytes` |
| `Duration` | ns | `s`, `ms`, `us`, `ns` | `µs`, `min`, `h` |
| `Percent` | 0.0001 % | `%` | |
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, ClassVar, Self, overload

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from qoslab.errors import UserError

_QUANTITY = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>\S*)\s*\Z")
_COMMA = re.compile(r"\s*([0-9]+),([0-9]+)\s*(\S*)\s*\Z")
_SHORT_RATE = re.compile(r"(\d+(?:\.\d+)?) *([kmg]?)", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}

LENGTH_LIMIT = 60
"""Maximum characters of a quantity; a real one has about ten."""


class QuantityError(UserError, ValueError):
    """A text that is not a quantity, or an ambiguous one; `hint` has the proposal."""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


def _format_decimal(value: int, factor: int) -> str:
    """Format `value / factor` exactly, without trailing zeros or exponent; `factor` is a power of ten."""
    whole, rest = divmod(value, factor)
    # The added factor keeps the leading zeros of the fraction.
    digits = str(factor + rest)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


class Quantity:
    """Common base class of the four types.

    Quantities can be compared, added and subtracted only with their own kind. `*` and `//` take an integer; `/` with
    the same kind returns the ratio. A result below zero raises `ValueError`.
    """

    __slots__ = ("_value",)
    _value: int

    KIND: ClassVar[str]
    """Name of the quantity in messages."""
    UNITS: ClassVar[dict[str, int]]
    """Accepted spellings, each with its size in base units; proposals use the first spelling of each size."""
    LARGEST: ClassVar[int] = 10**36
    """Largest accepted value in base units, so that parsing is fast. Values that can be run are far smaller."""
    PATTERN: ClassVar[str]
    """Regular expression (ECMA 262) of accepted texts, for JSON Schema."""
    EXAMPLES: ClassVar[tuple[str, ...]]

    def __init__(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{type(self).__name__} counts whole base units: found {value!r}, expected an int")
        if value < 0:
            raise ValueError(f"a {self.KIND} cannot be negative: {value}")
        object.__setattr__(self, "_value", value)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text exactly. Raise `QuantityError` if it is not a quantity."""
        if len(text) > LENGTH_LIMIT:
            long = f'found a text of {len(text)} characters, "{text[:20]}…"'
            raise QuantityError(f"{long}, expected {cls._expected_form()}")
        found = _QUANTITY.match(text)
        if found is None:
            comma = _COMMA.match(text)
            hint = f'did you mean "{comma[1]}.{comma[2]} {comma[3]}"?' if comma and comma[3] in cls.UNITS else ""
            raise QuantityError(f'found "{text}", expected {cls._expected_form()}', hint=hint)
        number, unit = Decimal(found["number"]), found["unit"]
        if not unit:
            raise QuantityError(
                f'found "{text.strip()}" without a unit, expected {cls._expected_form()}',
                hint=cls._missing_unit_hint(number),
            )
        factor = cls.UNITS.get(unit)
        if factor is None:
            raise QuantityError(
                f'found "{text.strip()}" with the unit "{unit}", expected one of {", ".join(cls._proposed_units())}',
                hint=cls._unaccepted_unit_hint(number, unit),
            )
        # Decimal multiplication rounds to the context's 28 digits; integers do not.
        digits, exponent = int(found["number"].replace(".", "")), len(found["number"].partition(".")[2])
        value, rest = divmod(digits * factor, 10**exponent)
        if rest:
            raise QuantityError(f'found "{text.strip()}", expected a whole number of {cls._base_unit_name()}')
        if value > cls.LARGEST:
            raise QuantityError(f'found "{text.strip()}", expected at most {cls(cls.LARGEST)}')
        return cls(value)

    @classmethod
    def _base_unit_name(cls) -> str:
        return next(unit for unit, factor in cls.UNITS.items() if factor == 1)

    @classmethod
    def _proposed_units(cls) -> list[str]:
        first: dict[int, str] = {}
        for unit, factor in cls.UNITS.items():
            first.setdefault(factor, unit)
        return list(first.values())

    @classmethod
    def _expected_form(cls) -> str:
        return f'a {cls.KIND} such as "{cls.EXAMPLES[0]}"'

    @classmethod
    def _missing_unit_hint(cls, number: Decimal) -> str:
        """Return the hint for a number without a unit."""
        raise NotImplementedError

    @classmethod
    def _unaccepted_unit_hint(cls, number: Decimal, unit: str) -> str:
        """Return the hint for a unit that is not accepted; empty if there is no proposal."""
        near = [known for known in cls._proposed_units() if known.lower() == unit.lower()]
        return f'did you mean "{number} {near[0]}"?' if near else ""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self._value,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value})"

    def __str__(self) -> str:
        raise NotImplementedError

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __bool__(self) -> bool:
        return self._value != 0

    def __int__(self) -> int:
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, type(self)) else NotImplemented

    def __lt__(self, other: Self) -> bool:
        return self._value < other._value if isinstance(other, type(self)) else NotImplemented

    def __le__(self, other: Self) -> bool:
        return self._value <= other._value if isinstance(other, type(self)) else NotImplemented

    def __gt__(self, other: Self) -> bool:
        return self._value > other._value if isinstance(other, type(self)) else NotImplemented

    def __ge__(self, other: Self) -> bool:
        return self._value >= other._value if isinstance(other, type(self)) else NotImplemented

    def __add__(self, other: Self) -> Self:
        return type(self)(self._value + other._value) if isinstance(other, type(self)) else NotImplemented

    def __sub__(self, other: Self) -> Self:
        return type(self)(self._value - other._value) if isinstance(other, type(self)) else NotImplemented

    def __mul__(self, factor: int) -> Self:
        return type(self)(self._value * factor) if isinstance(factor, int) else NotImplemented

    __rmul__ = __mul__

    @overload
    def __floordiv__(self, divisor: int) -> Self: ...
    @overload
    def __floordiv__(self, divisor: Self) -> int: ...
    def __floordiv__(self, divisor: int | Self) -> Self | int:
        if isinstance(divisor, int):
            return type(self)(self._value // divisor)
        return self._value // divisor._value if isinstance(divisor, type(self)) else NotImplemented

    def __truediv__(self, other: Self) -> float:
        return self._value / other._value if isinstance(other, type(self)) else NotImplemented

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return cls.parse(str(value))
        raise QuantityError(f"found {value!r}, expected {cls._expected_form()}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.to_string_ser_schema(when_used="json")
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": cls.PATTERN, "examples": list(cls.EXAMPLES), "title": cls.__name__}


class Rate(Quantity):
    """Rate in bits per second. Each use defines the layer of the bits."""

    __slots__ = ()
    KIND = "rate"
    UNITS: ClassVar[dict[str, int]] = {
        prefix + unit: factor
        for unit in ("b/s", "bps", "bit/s")
        for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9), ("K", 10**3))
    }
    PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*[kKMG]?(b/s|bps|bit/s)\s*$"
    EXAMPLES = ("100 Mb/s", "128 kb/s", "1.5 Mb/s")

    @property
    def bps(self) -> int:
        """Bits per second."""
        return self._value

    def __str__(self) -> str:
        for unit, factor in (("Gb/s", 10**9), ("Mb/s", 10**6), ("kb/s", 10**3)):
            if self._value >= factor:
                return f"{_format_decimal(self._value, factor)} {unit}"
        return f"{self._value} b/s"

    @classmethod
    def _missing_unit_hint(cls, number: Decimal) -> str:
        # IOS command lines use b/s, at least 8000; people use small numbers of megabits.
        if number >= 8000 and number == number.to_integral_value():
            return f'did you mean "{cls(int(number))}" ({number} b/s)?'
        return f'did you mean "{number} Mb/s"?'

    @classmethod
    def _unaccepted_unit_hint(cls, number: Decimal, unit: str) -> str:
        stem = re.fullmatch(r"([kKmMgG]?)(b/s|bps|bit/s|B/s|Bps|b|bit|bits|B|)", unit)
        if stem is None:
            return super()._unaccepted_unit_hint(number, unit)
        prefix = {"K": "k", "m": "M", "g": "G"}.get(stem[1], stem[1])
        if stem[2].startswith("B") and stem[2] != "B":
            octets = (number * 8).normalize()
            return (
                f'B is a byte: write "{octets:f} {prefix}b/s" if bytes were meant, "{number} {prefix}b/s" if bits were'
            )
        return f'did you mean "{number} {prefix}b/s"?'


class Size(Quantity):
    """Size in bytes."""

    __slots__ = ()
    KIND = "size"
    UNITS: ClassVar[dict[str, int]] = {
        "B": 1,
        "kB": 10**3,
        "KiB": 2**10,
        "MB": 10**6,
        "MiB": 2**20,
        "GB": 10**9,
        "GiB": 2**30,
        "byte": 1,
        "bytes": 1,
    }
    PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*(B|kB|KiB|MB|MiB|GB|GiB|bytes?)\s*$"
    EXAMPLES = ("16 KiB", "1500 B", "1 MB")

    @property
    def bytes(self) -> int:
        """Number of bytes."""
        return self._value

    @property
    def bits(self) -> int:
        """Number of bits."""
        return self._value * 8

    def __str__(self) -> str:
        # Only whole multiples, so that 31250 remains as a router prints it.
        for unit in ("GiB", "GB", "MiB", "MB", "KiB", "kB"):
            if self._value and self._value % self.UNITS[unit] == 0:
                return f"{self._value // self.UNITS[unit]} {unit}"
        return f"{self._value} B"

    @classmethod
    def _missing_unit_hint(cls, number: Decimal) -> str:
        return f'did you mean "{number} B"?'

    @classmethod
    def _unaccepted_unit_hint(cls, number: Decimal, unit: str) -> str:
        if re.fullmatch(r"[kKmMgG]?(b|bit|bits)", unit):
            return "sizes are in bytes: 8 bits are 1 B"
        stem = re.fullmatch(r"([kKmMgG])(B|byte|bytes|)", unit)
        if stem is None:
            return super()._unaccepted_unit_hint(number, unit)
        decimal = {"K": "k", "m": "M", "g": "G"}.get(stem[1], stem[1])
        return f'write "{number} {decimal}B" for powers of 1000, "{number} {decimal.upper()}iB" for powers of 1024'


class Duration(Quantity):
    """Duration in nanoseconds."""

    __slots__ = ()
    KIND = "duration"
    UNITS: ClassVar[dict[str, int]] = {
        "ns": 1,
        "us": 10**3,
        "ms": 10**6,
        "s": 10**9,
        "min": 60 * 10**9,
        "h": 3600 * 10**9,
        "µs": 10**3,  # micro sign
        "μs": 10**3,  # Greek mu
    }
    PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*(ns|us|µs|μs|ms|s|min|h)\s*$"
    EXAMPLES = ("30 s", "200 ms", "5 min")

    @property
    def ns(self) -> int:
        """Number of nanoseconds."""
        return self._value

    @property
    def seconds(self) -> float:
        """Number of seconds."""
        return self._value / 10**9

    def __str__(self) -> str:
        for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
            if self._value >= factor:
                return f"{_format_decimal(self._value, factor)} {unit}"
        return f"{self._value} ns" if self._value else "0 s"

    @classmethod
    def _missing_unit_hint(cls, number: Decimal) -> str:
        return f'did you mean "{number} s"?'

    @classmethod
    def _unaccepted_unit_hint(cls, number: Decimal, unit: str) -> str:
        if unit == "m":
            return f'write "{number} min" for minutes, "{number} ms" for milliseconds'
        word = re.sub(r"s$", "", unit.lower())
        plain = {"sec": "s", "second": "s", "minute": "min", "hour": "h", "hr": "h", "msec": "ms", "usec": "us"}.get(
            word
        )
        return f'did you mean "{number} {plain}"?' if plain else super()._unaccepted_unit_hint(number, unit)


class Percent(Quantity):
    """Percentage in ten-thousandths of one percent (millionths of the whole); may exceed 100 %."""

    __slots__ = ()
    KIND = "percentage"
    UNITS: ClassVar[dict[str, int]] = {"%": 10**4}
    PATTERN = r"^\s*[0-9]+(\.[0-9]{1,4}0*)?\s*%\s*$"
    EXAMPLES = ("28 %", "0.5 %")

    @property
    def fraction(self) -> float:
        """Fraction of the whole: 1.0 is 100 %."""
        return self._value / 10**6

    def __str__(self) -> str:
        return f"{_format_decimal(self._value, 10**4)} %"

    @classmethod
    def _base_unit_name(cls) -> str:
        return "0.0001 %"

    @classmethod
    def _missing_unit_hint(cls, number: Decimal) -> str:
        if number < 1 and number:
            return f'did you mean "{(number * 100).normalize():f} %"?'
        return f'did you mean "{number} %"?'

    @classmethod
    def _unaccepted_unit_hint(cls, number: Decimal, unit: str) -> str:
        return f'did you mean "{number} %"?' if unit.lower() in ("percent", "pct") else ""


# Code points: RFC 2474 (class selectors), RFC 2597 (assured forwarding), RFC 3246 (expedited forwarding).
DSCP_NUMBERS: dict[str, int] = {
    "default": 0,
    **{f"cs{n}": 8 * n for n in range(1, 8)},
    **{f"af{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
    "ef": 46,
}


def dscp_number(word: object) -> object:
    """Return the code point of a name, and anything but a text unchanged. Raise `QuantityError` for an unknown name."""
    if not isinstance(word, str):
        return word
    if word.lower() not in DSCP_NUMBERS:
        raise QuantityError(f'found "{word}", expected a DSCP: 0 to 63, or one of {", ".join(DSCP_NUMBERS)}')
    return DSCP_NUMBERS[word.lower()]


def parse_rate_option(text: str) -> int:
    """Return the b/s of a rate as typed in an option, such as 20m or 1.5 Mb/s. Raise `QuantityError` if it is not a
    rate.
    """
    short = _SHORT_RATE.fullmatch(text.strip())
    bps = round(float(short[1]) * _FACTORS[short[2].lower()]) if short else Rate.parse(text).bps
    if bps < 1:
        raise QuantityError(f'found "{text}", expected a rate above 0')
    return bps
