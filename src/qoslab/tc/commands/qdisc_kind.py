"""Interface of a kind of queueing discipline, and the reading of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from qoslab.tc.commands.command_words import Reader, RefusedWordError, Word, did_you_mean, one_of
from qoslab.tc.commands.tc_units import UnitError

if TYPE_CHECKING:
    from qoslab.system import program_formats


@dataclass(frozen=True, slots=True)
class Parameter:
    """A word with a value."""

    name: str
    """Argument of the settings."""
    read: Callable[[str], Any]
    """Raises `UnitError`."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A word without a value: what it sets."""

    sets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A queue in the engine's configuration."""

    queue: program_formats.QueueDiscipline
    shape: program_formats.TreeShape | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of qdisc, or the classes of one."""

    name: str
    """Name in tc."""
    settings: Callable[..., Any]
    """Makes its settings from the parameters that were given; the others have tc's defaults."""
    words: Mapping[str, Parameter | Flag]
    """Parameters and flags by word."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Words that tc knows and the engine does not: the reason."""
    leaf: Callable[[Any], Leaf] | None = None
    """The queue of its settings; None for a kind that has classes or another qdisc below it."""
    shape: Callable[[Any], program_formats.TreeShape] | None = None
    """A kind with one qdisc below it: its shaper."""
    classes: Kind | None = None
    """A kind with classes: theirs."""
    sharing: Callable[[Any], ClassShare] | None = None
    """Part of each class, for classes."""

    def read(self, reader: Reader) -> Any:
        """Return the settings of the rest of a command. Raise `RefusedWordError`."""
        given: dict[str, Any] = {}
        places: dict[str, Word] = {}
        while (word := reader.peek()) is not None:
            reader.take("")
            known = self.words.get(word.text)
            if known is None:
                raise self._unknown(word)
            if isinstance(known, Flag):
                given |= known.sets
                continue
            value = reader.take(f"the value of {word.text}")
            try:
                given[known.name] = known.read(value.text)
            except UnitError as error:
                raise RefusedWordError(value, f'found {word.text} "{value.text}", expected {error}') from None
            places[known.name] = value
        try:
            return self.settings(**given)
        except ParameterError as error:
            raise RefusedWordError(places.get(error.name, reader.last), f"{self.name}: {error}") from None

    def _unknown(self, word: Word) -> RefusedWordError:
        if word.text in self.refused:
            expected = "a parameter that the engine implements"
            return RefusedWordError(
                word, f'found "{word.text}" of {self.name}, expected {expected}: {self.refused[word.text]}'
            )
        known = (*self.words, *self.refused)
        hint = did_you_mean(word.text, known)
        return RefusedWordError(
            word, f'found "{word.text}", expected a parameter of {self.name}: {one_of(self.words)}', hint
        )


@dataclass(frozen=True, slots=True)
class ClassShare:
    """The part of a class: what it is sure of, what it may have, and how it shares the rest."""

    minimum_bps: int
    weight: int
    shape: program_formats.TreeShape


class ParameterError(ValueError):
    """Parameters that do not fit together, or are missing; `name` is that of the first one."""

    def __init__(self, name: str, found: str) -> None:
        super().__init__(found)
        self.name = name
