"""The feature `qos` of IOS."""

from __future__ import annotations

from qoslab.genie.ops.learning import learn_parsed
from qoslab.genie.ops.qos.qos import Qos as AnyQos

QOS_COMMANDS = {
    "class_map": ("show class-map", "class_maps"),
    "policy_map": ("show policy-map", "policy_map"),
    "interface": ("show policy-map interface", ""),
}
"""Command and key of its answer for each part of `info`; an empty key stands for the whole answer."""
SWITCH_QOS_COMMANDS = {"mls_qos": ("show mls qos", "")}
"""Additional parts for a device of the type `switch`."""


class Qos(AnyQos):
    """Contents of `info`: `class_map` by name, `policy_map` by name, `interface` by name with the counters of its
    policies.
    """

    def learn(self) -> None:
        """Learn classes, policies and counters from the device."""
        parts = {**QOS_COMMANDS, **(SWITCH_QOS_COMMANDS if self.device.type == "switch" else {})}
        answers = {part: (learn_parsed(self.device, command), key) for part, (command, key) in parts.items()}
        self.info = {part: answer[key] if key else answer for part, (answer, key) in answers.items() if answer}
