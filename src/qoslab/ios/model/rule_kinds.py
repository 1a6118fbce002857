"""Kinds of rules for policy-maps; `engine_rules` has the rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement about a class in the engine's configuration: it has a key, with one of these words if there are any.

    The word of a key is its text, or the name of its only part.
    """

    name: str
    key: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Combination:
    """Facts about a class that are refused together: one, with another one or without any of several."""

    of: str
    with_: str | None = None
    without: tuple[str, ...] = ()
    unless: str | None = None
    """Name of the property of generations that have it."""


@dataclass(frozen=True, slots=True)
class Order:
    """Two values of a class by key, with their defaults: the first is at most the second."""

    least: tuple[str, int | None]
    greatest: tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of a class by key; it is not added without the word `when` of another key."""

    key: str
    when: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """Percentages that are added over the classes of a policy-map."""

    of: tuple[Amount, ...]
    most: int | None = None
    """Greatest sum; None for the share that classes may reserve. With class-default it is 100."""
    only: str | None = None
    """Name of the property of generations that have the limit; None for all."""
