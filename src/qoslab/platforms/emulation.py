"""Link emulation as data plane configuration: delay, jitter and loss of internals/control-protocol.md."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from qoslab.system import program_formats

if TYPE_CHECKING:
    from qoslab.model.experiment import Link


def link_configuration(link: Link, node: str, seed: int) -> program_formats.LinkConfig:
    """Return the `link` setting of the port of `node` on that link.

    Jitter and loss of each port depend only on the seed of the experiment and the names of link and node, so that they
    do not change with other parts of the topology.
    """
    return {
        "rate_bps": link.rate.bps,
        "framing": link.framing,
        "delay_ns": int(link.delay),
        "jitter": jitter_config(link),
        "loss": loss_config(link),
        "seed": int.from_bytes(hashlib.sha256(f"{seed} {link.name} {node}".encode()).digest()[:8], "big"),
    }


def jitter_config(link: Link) -> program_formats.JitterConfig | None:
    """Return the jitter of the link; None if its delay is constant."""
    jitter = link.jitter
    if jitter is None:
        return None
    return {
        "distribution": jitter.distribution,
        "ns": int(jitter.size),
        "correlation": jitter.correlation.fraction,
        "reorder": jitter.reorder,
    }


def loss_config(link: Link) -> program_formats.LossConfig | None:
    """Return the loss model of the link; None without loss."""
    from qoslab.model.experiment import RandomLoss  # slow to import, and a router's command line needs none of it

    loss = link.loss
    if loss is None:
        return None
    if isinstance(loss, RandomLoss):
        return {"model": "random", "probability": loss.probability.fraction}
    return {
        "model": "gilbert_elliott",
        "p": loss.p.fraction,
        "r": loss.r.fraction,
        "loss_good": loss.loss_good.fraction,
        "loss_bad": loss.loss_bad.fraction,
    }
