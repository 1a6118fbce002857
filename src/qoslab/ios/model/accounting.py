"""Overhead accounting of policies: inheritance by child policies, and changes of all shapers and shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.policy import Account, PolicyClass, PolicyMap

INHERITED = "limit-microseconds"
"""Capability of IOS-XE."""


def line_accounts(each: PolicyClass) -> list[Account | None]:
    """Return the accounting of each line of a class that may have one."""
    return [line.account for line in (each.shape, each.bandwidth) if line is not None]


def inherits_accounting(device: Device) -> bool:
    """Return whether child policies without `account` count the bytes of the class above them, as in IOS-XE."""
    return INHERITED in GENERATIONS[device.generation].capabilities


def inherit_accounts(device: Device) -> Device:
    """Return a device whose child policies have the accounting of the class above them.

    A policy-map below classes with different accounting is unchanged.
    """
    if not inherits_accounting(device):
        return device
    policies = dict(device.policy_maps)
    for _ in range(engine_defaults.MAX_LEVELS):
        above: dict[str, set[Account | None]] = {}
        for each in (each for policy in policies.values() for each in policy.classes if each.service_policy):
            above.setdefault(each.service_policy or "", set()).update(line_accounts(each) or [None])
        for name, found in above.items():
            if name in policies and len(found) == 1 and (account := next(iter(found))) is not None:
                policies[name] = replace_account(policies[name], partial(_own_or_inherited, account))
    made = device.copy()
    made.policy_maps = policies
    return made


def _own_or_inherited(inherited: Account, own: Account | None) -> Account:
    return own or inherited


def replace_account(policy: PolicyMap, change: Callable[[Account | None], Account | None]) -> PolicyMap:
    """Return a policy-map with a changed accounting of each shaper and share."""
    classes = []
    for each in policy.classes:
        shape, bandwidth = each.shape, each.bandwidth
        shape = None if shape is None else replace(shape, account=change(shape.account))
        bandwidth = None if bandwidth is None else replace(bandwidth, account=change(bandwidth.account))
        classes.append(replace(each, shape=shape, bandwidth=bandwidth))
    return replace(policy, classes=tuple(classes))
