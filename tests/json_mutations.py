"""Mutations of JSON documents: one value removed, moved to another key, or replaced by an unexpected value."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from levels import value_by_level

VALUES: tuple[Any, ...] = (
    *(None, True, "", "x", "../x", "\x1b[31m", "1 s", "1 Mb/s", "$(x)"),
    *(-1, 0, 10**30, 1e308, [], [1], {}, {"a": 1}),
)
LONG = 160
"""Factor of changes in the long level. Trying every change takes hours."""
PLACED = tuple[dict[Any, Any] | list[Any], Any]


def value_places(content: Any) -> Iterator[PLACED]:
    """Yield every value of a document as its container and its key."""
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(inner):
        yield content, key
        yield from value_places(value)


def mutated_documents(text: str, each: int) -> Iterator[tuple[str, str]]:
    """Yield changes of a document, and the changed document.

    The short level tries every `each`-th change, always the same ones. The long level tries `LONG` times as many from a
    random start; the description of a change is sufficient to reproduce it.
    """
    content = json.loads(text)
    each = value_by_level(short=each, long=max(1, each // LONG))
    number = count(value_by_level(short=0, long=random.randrange(each)))
    for around, key in value_places(content):
        value = around[key]
        for reported, change in value_changes(around, key):
            if next(number) % each:
                continue
            before = around.copy()
            change()
            yield f"{json.dumps(value)[:60]} of {key}: {reported}", json.dumps(content)
            around.clear()
            around.update(before) if isinstance(around, dict) else around.extend(before)


def value_changes(around: dict[Any, Any] | list[Any], key: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the changes of a value with their descriptions."""
    yield "removed", lambda: around.pop(key)
    if isinstance(around, dict):
        yield "has another key", lambda: around.update({f"x{key}": around.pop(key)})
    for value in VALUES:
        yield f"is {value!r}", lambda value=value: around.__setitem__(key, value)
