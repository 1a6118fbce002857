"""Counter names of Python exist in the data plane."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from loaded_formats import load_formats
from qoslab.model.drops import DROP_REASONS
from qoslab.report.arms import FATES
from qoslab.results import Health, tables

FORMATS = load_formats()


def flattened_names(counters: type, prefix: str = "", seen: tuple[type, ...] = ()) -> Iterator[str]:
    """Return the names of all counters, nested ones joined by `_`."""
    for name, hint in get_type_hints(counters).items():
        kinds = list(parts(hint))
        for kind in kinds:
            if is_typeddict(kind) and kind not in seen:
                yield from flattened_names(kind, f"{prefix}{name}_", (*seen, counters))
        if not all(map(is_typeddict, kinds)):
            yield prefix + name


def parts(hint: Any) -> Iterator[Any]:
    """Return the possible types of a value, except None."""
    if get_origin(hint) in (Union, types.UnionType, NotRequired):
        for each in get_args(hint):
            yield from parts(each)
    elif hint is not type(None):
        yield hint


KERNEL = {"queue_delay_ns", "queue_delay_peak_ns", "queue_delay_base_ns"}
"""Delays of active queue management, which only Linux routers and trees of queues measure."""
KEYS = {"arm", "repetition", "cell", "device", "interface", "time_s", "time_error_s"}


@pytest.mark.parametrize(
    ("table", "counters", "more"),
    [
        ("classes", FORMATS.ClassCounters, {"direction", "policy", "class", *KERNEL}),
        ("interfaces", FORMATS.InterfaceCounters, set()),
    ],
)
def test_every_counter_column_is_a_counter_of_the_engine(table: str, counters: type, more: set[str]) -> None:
    assert set(tables.columns(table)) - set(flattened_names(counters)) == KEYS | more


def test_every_reason_to_drop_has_columns_and_a_heading() -> None:
    assert set(DROP_REASONS) == set(get_type_hints(FORMATS.ClassDrops))
    assert set(FATES) == {"offered", "sent", "queued", *DROP_REASONS}


def test_health_record_has_every_value_of_the_daemon() -> None:
    assert set(Health.model_fields) == set(get_type_hints(FORMATS.Health))
