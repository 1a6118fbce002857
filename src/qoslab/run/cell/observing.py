"""Show commands on several routers at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from qoslab.model.experiment import Observation
from qoslab.run.devices.collector import RouterAnswer
from qoslab.run.threads import run_parallel


class Observe(Protocol):
    """Function that runs a show command on a router."""

    def __call__(self, device: str, command: str) -> RouterAnswer:
        """Run the command now. Raise `DeviceError` if the router does not answer."""


def observe_all(wanted: Sequence[Observation], observe: Observe) -> list[RouterAnswer]:
    """Return the answers, in the order of `wanted`.

    Routers are queried in parallel, each with its commands in that order. Raise the errors of `observe` after all
    queries have ended; Ctrl-C waits for none.
    """
    routers = tuple(dict.fromkeys(each.node for each in wanted))
    if not routers:
        return []

    def ask(router: str) -> list[RouterAnswer]:
        return [observe(router, each.command) for each in wanted if each.node == router]

    taken, errors = run_parallel({router: partial(ask, router) for router in routers})
    if errors:
        raise errors[0]
    answers = {router: iter(each) for router, each in taken.items()}
    return [next(answers[each.node]) for each in wanted]
