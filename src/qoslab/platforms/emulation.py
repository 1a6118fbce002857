"""What a link does to frames, as the data plane wants it: delay, jitter and loss of docs/control-protocol.md."""

from __future__ import annotations

import hashlib
from typing import Any

from qoslab.model.experiment import BurstLoss, Link, RandomLoss


def link_configuration(link: Link, node: str, seed: int) -> dict[str, Any]:
    """The `link` of the port of `node` at that link.

    Jitter and loss of each port follow from the experiment's seed, the link's name and the node's, so that they stay
    the same when another part of the topology changes.
    """
    return {
        "rate_bps": link.rate.bps,
        "framing": link.framing,
        "delay_ns": int(link.delay),
        **link_emulation(link),
        "seed": int.from_bytes(hashlib.sha256(f"{seed} {link.name} {node}".encode()).digest()[:8], "big"),
    }


def link_emulation(link: Link) -> dict[str, Any]:
    """What makes a link differ from a cable of its length: `jitter` and `loss`, null where there is none."""
    jitter = link.jitter
    return {
        "jitter": None
        if jitter is None
        else {
            "distribution": jitter.distribution,
            "ns": int(jitter.size),
            "correlation": jitter.correlation.fraction,
            "reorder": jitter.reorder,
        },
        "loss": None if link.loss is None else _loss(link.loss),
    }


def _loss(loss: RandomLoss | BurstLoss) -> dict[str, Any]:
    if isinstance(loss, RandomLoss):
        return {"model": "random", "probability": loss.probability.fraction}
    return {
        "model": "gilbert_elliott",
        "p": loss.p.fraction,
        "r": loss.r.fraction,
        "loss_good": loss.loss_good.fraction,
        "loss_bad": loss.loss_bad.fraction,
    }
