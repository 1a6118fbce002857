"""What the data plane does and no IOS has a command for.

Each line begins with `qoslab-extension`, which is a word of no IOS: a real router refuses it, and in a configuration it
cannot be taken for one of IOS.
"""

from __future__ import annotations

from dataclasses import fields, replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.commands.police import with_one_bucket
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.policy import DynamicBucket
from qoslab.ios.running_config import DYNAMIC_BUCKET, DYNAMIC_BUCKET_WORDS

NOT_ORDERED = "% The size at the start must lie between the least and the greatest size"
NO_POLICER = "% The class has no policer: configure police first"

_SIZE = "1518-512000000"
_TIME = "1-60000"
_RANGES = {
    "initial_bytes": _SIZE,
    "minimum_bytes": _SIZE,
    "maximum_bytes": _SIZE,
    "monitoring_ms": _TIME,
    "idle_ms": _TIME,
    "first_growth_percent": "1-1000",
    "first_growths": "0-1000",
    "growth_percent": "1-1000",
    "shrink_percent": "1-99",
    "spare_percent": "1-99",
}


def _syntax() -> str:
    words = (f"[{word} <{word}-value:{_RANGES[name]}>]" for name, word in DYNAMIC_BUCKET_WORDS.items())
    return f"{DYNAMIC_BUCKET} {' '.join(words)}"


@CONFIG.add(
    "policy-class",
    _syntax(),
    no=DYNAMIC_BUCKET,
    requires={"router"},
    help={
        "qoslab-extension": "What qoslab's data plane does and no IOS",
        "police": "Police",
        "dynamic-bucket": "The policer's bucket finds its own size",
        "initial": "Size at the start, bytes",
        "minimum": "Least size, bytes",
        "maximum": "Greatest size, bytes",
        "monitoring": "Monitoring time, milliseconds",
        "idle": "Time without packets that ends monitoring, milliseconds",
        "first-growth": "First growths, percent of the overflow",
        "first-growths": "Number of first growths",
        "growth": "Later growths, percent of the overflow",
        "shrink": "Shrinking, percent of the size",
        "spare": "Never filled percent of the size that make it shrink",
        **{f"{word}-value": "Value" for word in DYNAMIC_BUCKET_WORDS.values()},
    },
)
def _dynamic_bucket(session: ConfigSession, args: Args) -> None:
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
        if not dynamic.ordered:
            raise RejectedError(NOT_ORDERED)
    change_class(session, replace(present, police=with_one_bucket(replace(present.police, dynamic=dynamic))))
