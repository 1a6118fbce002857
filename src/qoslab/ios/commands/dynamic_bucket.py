"""Extension command: a feature of the data plane without an IOS command.

Each line begins with `qoslab-extension`, which no IOS has: a real router refuses the line, and in a configuration it
cannot be mistaken for an IOS command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from typing import cast

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.commands.police import PARTS, check_one_bucket
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.engine_rules import RANGES
from qoslab.ios.model.policy import DynamicBucket, Police
from qoslab.ios.registry import ORDER_WORDS
from qoslab.system import program_formats

NOT_ORDERED = "% The initial size must be between the minimum and the maximum size"
NO_POLICER = "% The class has no policer: configure police first"

DYNAMIC_BUCKET = "qoslab-extension police dynamic-bucket"
"""Beginning of the line; IOS has no such command."""


DYNAMIC_BUCKET_WORDS = {
    "initial_bytes": "initial",
    "minimum_bytes": "minimum",
    "maximum_bytes": "maximum",
    "monitoring_ms": "monitoring",
    "idle_ms": "idle",
    "first_growth_percent": "first-growth",
    "first_growths": "first-growths",
    "growth_percent": "growth",
    "shrink_percent": "shrink",
    "spare_percent": "spare",
}
"""The words of the line by field, in their order."""

_RANGES = {
    "initial_bytes": "bytes",
    "minimum_bytes": "bytes",
    "maximum_bytes": "bytes",
    "monitoring_ms": "ms",
    "idle_ms": "ms",
    "first_growth_percent": "growth_percent",
    "first_growths": "first_growths",
    "growth_percent": "growth_percent",
    "shrink_percent": "share_percent",
    "spare_percent": "share_percent",
}
"""Names of the ranges in `engine_rules.RANGES`."""


def _dynamic_bucket_syntax() -> str:
    words = []
    for name, word in DYNAMIC_BUCKET_WORDS.items():
        least, most = RANGES[f"police.dynamic.{_RANGES[name]}"]
        words.append(f"[{word} <{word}-value:{least}-{most}>]")
    return f"{DYNAMIC_BUCKET} {' '.join(words)}"


@router_command(
    "policy-class",
    _dynamic_bucket_syntax(),
    no=DYNAMIC_BUCKET,
    help={
        "qoslab-extension": "Extensions of the qoslab data plane",
        "police": "Police",
        "dynamic-bucket": "Policer bucket that adapts its size",
        "initial": "Initial size, bytes",
        "minimum": "Minimum size, bytes",
        "maximum": "Maximum size, bytes",
        "monitoring": "Monitoring time, milliseconds",
        "idle": "Time without packets that ends monitoring, milliseconds",
        "first-growth": "Initial growth, percent of the overflow",
        "first-growths": "Number of initial growths",
        "growth": "Later growth, percent of the overflow",
        "shrink": "Reduction, percent of the size",
        "spare": "Unused percent of the size above which it shrinks",
        **{f"{word}-value": "Value" for word in DYNAMIC_BUCKET_WORDS.values()},
    },
)
def _configure_dynamic_bucket(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if present.police is None:
        if args.unset:
            return
        raise RejectedError(NO_POLICER)
    dynamic = None
    if not args.unset:
        values = {
            each.name: args.optional(f"{DYNAMIC_BUCKET_WORDS[each.name]}-value", int) for each in fields(DynamicBucket)
        }
        dynamic = DynamicBucket(**values)
    change_class(session, replace(present, police=check_one_bucket(replace(present.police, dynamic=dynamic))))


class _DynamicBucket:
    """The policer part of the command."""

    def lines(self, police: Police) -> list[str]:
        return [] if police.dynamic is None else [_dynamic_bucket_text(police.dynamic)]

    def engine(self, police: Police) -> program_formats.PoliceConfigPart:
        # Both have the same names.
        config = None if police.dynamic is None else cast("program_formats.DynamicBucketConfig", asdict(police.dynamic))
        return {"dynamic": config}

    def show_policy_map_lines(self, resolved: program_formats.ResolvedPolice) -> Iterator[str]:
        if resolved["dynamic"] is not None:
            dynamic: Mapping[str, object] = resolved["dynamic"]
            values = (f" {word} {dynamic[name]}" for name, word in DYNAMIC_BUCKET_WORDS.items())
            yield f"{DYNAMIC_BUCKET}{''.join(values)}"

    def show_interface_lines(self, police: program_formats.PoliceCounters) -> Iterator[str]:
        if police["dynamic"] is not None:
            yield from _bucket_counter_lines(police["dynamic"])


PARTS.append(_DynamicBucket())
ORDER_WORDS.update({"police.dynamic.initial_bytes": NOT_ORDERED, "police.dynamic.maximum_bytes": NOT_ORDERED})


def _dynamic_bucket_text(dynamic: DynamicBucket) -> str:
    given = ((word, getattr(dynamic, name)) for name, word in DYNAMIC_BUCKET_WORDS.items())
    return " ".join([DYNAMIC_BUCKET, *(f"{word} {value}" for word, value in given if value is not None)])


def _bucket_counter_lines(bucket: program_formats.DynamicCounters) -> Iterator[str]:
    # No IOS prints this.
    yield "qoslab-extension dynamic-bucket:"
    yield f"  bucket {bucket['bucket_bytes']} bytes, level {bucket['level_bytes']}, mean {bucket['mean_bucket_bytes']}"
    yield (
        f"  initial {bucket['initial_bytes']} bytes, minimum {bucket['minimum_bytes']}, "
        f"maximum {bucket['maximum_bytes']}, monitoring {bucket['monitoring_ms']} ms"
    )
    yield (
        f"  growths {bucket['growths']}, shrinks {bucket['shrinks']}, "
        f"overflow {bucket['overflow_bytes']} bytes, most {bucket['most_overflow_bytes']}"
    )
