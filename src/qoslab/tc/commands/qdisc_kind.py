"""Interface of a kind of queueing discipline, and the parser of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from qoslab.errors import did_you_mean, format_alternatives
from qoslab.system import program_formats
from qoslab.tc.commands.command_words import RefusedWordError, Word, WordReader
from qoslab.tc.commands.tc_units import UnitError


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with a value."""

    name: str
    """Name of the argument of the settings."""
    read: Callable[[str], Any]
    """Parser of the value; raises `UnitError`."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A parameter without a value, with the settings that it makes."""

    sets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A queue in the engine's configuration."""

    queue: program_formats.QueueDiscipline
    shape: program_formats.TreeShape | None = None


def on_off(name: str) -> dict[str, Flag]:
    """Return the words of a setting that is on or off: `ecn` and `noecn`."""
    return {name: Flag({name: True}), f"no{name}": Flag({name: False})}


def direct_leaf(kind: str) -> Callable[[Any], Leaf]:
    """Return the function to the queue from settings that have the names of the engine."""
    return lambda settings: Leaf(cast("program_formats.QueueDiscipline", {"kind": kind, **asdict(settings)}))


@dataclass(frozen=True, slots=True)
class QdiscKind:
    """A kind of qdisc, or the classes of one."""

    name: str
    """Name in tc."""
    settings: Callable[..., Any]
    """Constructor of the settings from the given parameters; the others have tc's defaults."""
    words: Mapping[str, Parameter | Flag]
    """Parameters and flags by word."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Reasons by parameter of tc that the engine does not support."""
    leaf: Callable[[Any], Leaf] | None = None
    """Function from settings to the queue; None for a kind with classes or with another qdisc below it."""
    shape: Callable[[Any], program_formats.TreeShape] | None = None
    """Function from settings to the shaper, for a kind with one qdisc below it."""
    classes: QdiscKind | None = None
    """Kind of the classes, for a kind with classes."""
    class_share: Callable[[Any], ClassShare] | None = None
    """Function from settings to the share of a class, for the kind of classes."""

    def read(self, reader: WordReader) -> Any:
        """Read the rest of a command and return the settings. Raise `RefusedWordError`."""
        given: dict[str, Any] = {}
        places: dict[str, Word] = {}
        while (word := reader.peek_word()) is not None:
            reader.take("")
            known = self.words.get(word.text)
            if known is None:
                raise self._unknown_parameter(word)
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

    def _unknown_parameter(self, word: Word) -> RefusedWordError:
        if word.text in self.refused:
            expected = "a parameter that the engine implements"
            return RefusedWordError(
                word, f'found "{word.text}" of {self.name}, expected {expected}: {self.refused[word.text]}'
            )
        known = (*self.words, *self.refused)
        hint = did_you_mean(word.text, known)
        return RefusedWordError(
            word, f'found "{word.text}", expected a parameter of {self.name}: {format_alternatives(self.words)}', hint
        )


@dataclass(frozen=True, slots=True)
class ClassShare:
    """The share of a class: guaranteed rate, maximum rate, and weight in the rest."""

    minimum_bps: int
    weight: int
    shape: program_formats.TreeShape


class ParameterError(ValueError):
    """Error for contradictory or missing parameters; `name` is the first of them."""

    def __init__(self, name: str, found: str) -> None:
        super().__init__(found)
        self.name = name
