"""Whether another run has the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.restore import MARK
from qoslab.run.labs.external.looks.facts import Facts, Found


def held(facts: Facts) -> Iterator[Found]:
    """Interfaces of hosts that an agent holds, routers with a mark."""
    for name, host in facts.hosts.items():
        for device, who in host.held.items():
            yield Found(name, f"found {device} held by {who}, expected it free", "wait for its end")
    for name, router in facts.routers.items():
        if router.mark:
            hint = f"wait for its end; where it is over, `qoslab lab rescue` where it was started, or `no {MARK}`"
            yield Found(name, f"found the mark of another run, {router.mark}, expected none", hint)
