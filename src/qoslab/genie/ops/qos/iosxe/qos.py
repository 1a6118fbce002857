"""The feature `qos` of IOS-XE, by Genie's own parsers."""

from __future__ import annotations

from qoslab.genie.ops.qos.ios.qos import Qos as IosQos


class Qos(IosQos):
    """Contents of `info`: `class_map` by name, `policy_map` by name, `interface` by name with the counters of its
    policies.
    """
