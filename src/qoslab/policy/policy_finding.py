"""A finding about a policy, its sources, and the configuration that is its subject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from qoslab.ios.model.policy import PolicyClass
from qoslab.policy.class_values import ClassValues, PolicyValues
from qoslab.policy.pasted_configuration import Configuration

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

SYSTEM = ("system-cpp-", "non-client-")
"""Prefixes of built-in class-maps and policy-maps of a Catalyst 9000."""
ARITHMETIC = "arithmetic"
RFC_2697 = "RFC 2697, section 2: a bucket holds the largest packet"
RFC_3246 = "RFC 3246, section 2.2: EF leaves at its rate regardless of other traffic"
RFC_7567 = "RFC 7567, section 1.2: long queues delay all traffic in them"
CONGESTION = "Cisco QoS Congestion Management Configuration Guide"
MQC = "Cisco QoS Modular QoS CLI Configuration Guide"
POLICING = "Cisco QoS Policing and Shaping Configuration Guide"
STARVATION = "weights of classic CBWFQ (experiment cbwfq-classic)"
ETHERCHANNEL = "Cisco QoS: Aggregate EtherChannel Quality of Service, IOS XE"
TUNNELS = "Cisco document 10106, Quality of Service Options on GRE Tunnel Interfaces"
SWITCH = "Cisco Catalyst 3750 Software Configuration Guide 12.2(55)SE, Configuring QoS"


@dataclass(frozen=True)
class PolicyFinding:
    """A finding with its reason, its source and its line of the input."""

    severity: Severity
    code: str
    message: str
    source: str
    line: int = 0
    """Line, from 1; 0 if no single line is the cause."""


@dataclass(frozen=True)
class Subject:
    """A configuration with its values, and the options of the command."""

    configuration: Configuration
    policies: list[PolicyValues]
    rtt_s: float | None = None

    def classes(self) -> Iterator[tuple[PolicyValues, ClassValues]]:
        """Yield each class of each policy."""
        for policy in self.policies:
            for each in policy.classes:
                yield policy, each

    def line_number(self, each: ClassValues, command: str) -> int:
        """Return the line of a command below a class, or that of the class."""
        return self.configuration.line_number(
            each.policy, each.name, command=command
        ) or self.configuration.line_number(each.policy, each.name)

    def configured_class(self, each: ClassValues) -> PolicyClass | None:
        """Return a class as configured."""
        policy = self.configuration.device.policy_maps.get(each.policy)
        return None if policy is None else policy.find(each.name)


def policy_place(policy: PolicyValues) -> str:
    """Return the place of a policy as text for messages."""
    return f"{policy.interface} {policy.direction}" if policy.interface else f"policy-map {policy.policy}"


def class_place(each: ClassValues) -> str:
    """Return a class with its policy-map as text for messages."""
    return f"class {each.name} of policy-map {each.policy}"
