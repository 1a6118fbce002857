"""Whether another run has the nodes: asked before all else, since whatever the looks send would be in its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qoslab.ios.restore import MARK
from qoslab.run.labs.external.looks.facts import Found


def held(interfaces: Mapping[str, Mapping[str, str]], marks: Mapping[str, str]) -> Iterator[Found]:
    """Interfaces that an agent holds, by host, and marks of routers: with whose run it is."""
    for name, whose in interfaces.items():
        for device, who in whose.items():
            yield Found(name, f"found {device} held by {who}, expected it free", "wait for its end")
    for name, who in marks.items():
        if who:
            hint = f"wait for its end; where it is over, `qoslab lab rescue` where it was started, or `no {MARK}`"
            yield Found(name, f"found the mark of another run, {who}, expected none", hint)
