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
    plain = {"rate_bps": link.rate.bps, "framing": link.framing, "delay_ns": int(link.delay)}
    jitter = link.jitter
    return plain | {
        "jitter": None
        if jitter is None
        else {
            "distribution": jitter.distribution,
            "ns": int(jitter.size),
            "correlation": jitter.correlation.fraction,
            "reorder": jitter.reorder,
        },
        "loss": None if link.loss is None else _loss(link.loss),
        "seed": int.from_bytes(hashlib.sha256(f"{seed} {link.name} {node}".encode()).digest()[:8], "big"),
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
