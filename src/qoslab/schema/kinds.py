"""Kinds of traffic in experiment files: keys of flows that the catalogue fills in."""

from __future__ import annotations

from typing import Any

from qoslab.model.traffic_kinds import KINDS, flow_keys


def expand_kinds(data: dict[str, Any]) -> dict[str, Any]:
    """Return the plain values of an experiment with the keys that `kind` of a flow stands for; as a copy if any is
    added.
    """
    made = dict(data)
    if isinstance(made.get("traffic"), list):
        made["traffic"] = [_expand_flow(each) for each in made["traffic"]]
    if isinstance(made.get("arms"), list):
        made["arms"] = [_expand_arm(each) for each in made["arms"]]
    return made


def _expand_arm(arm: Any) -> Any:
    if not isinstance(arm, dict) or not isinstance(arm.get("traffic"), list):
        return arm
    return arm | {"traffic": [_expand_flow(each) for each in arm["traffic"]]}


def _expand_flow(flow: Any) -> Any:
    if not isinstance(flow, dict) or "kind" not in flow:
        return flow
    kind = KINDS.get(str(flow["kind"]))
    if kind is None:
        # Only the name of the kind is an error, not the keys that it would have filled in.
        return {"tool": "iperf3", **flow}
    keys = flow_keys(kind, ipv6=flow.get("family") == 6)
    if flow.get("rate") is not None:
        keys.pop("delay", None)
    return {**keys, **flow}
