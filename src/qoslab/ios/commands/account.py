"""`account` after `shape` and `bandwidth`, and below `police`: the bytes that a rate counts.

Sources: Cisco's "Ethernet Overhead Accounting" (IOS-XE: child policies inherit it), "MQC Traffic Shaping Overhead
Accounting for ATM" and chapter 10 of the Cisco 10000's QoS guide (before IOS-XE: a child needs it, too).
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.accounting import inherit_accounts, inherits_accounting, line_accounts, replace_account
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.policy import (
    Account,
    PolicyClass,
    PolicyMap,
    SubscriberEncapsulation,
    SubscriberLine,
    UserDefinedAccount,
)
from qoslab.ios.registry import ENGINE_CLASS, OUTPUT_RULES
from qoslab.ios.rules import descendants
from qoslab.system import program_formats

SYNTAX = (
    "[account (user-defined <offset:overhead> [atm]"
    f"|(dot1q|qinq) aal5 ({'|'.join(get_args(SubscriberEncapsulation))}))]"
)
WIDE_SYNTAX = SYNTAX.replace("<offset:overhead>", "<offset:wide-overhead>")
HELP = {
    "account": "Overhead Accounting",
    "user-defined": "Manually specify the overhead",
    "offset": "Overhead in bytes",
    "atm": "ATM cell tax",
    "dot1q": "IEEE 802.1Q between router and access multiplexer",
    "qinq": "Two IEEE 802.1Q tags between router and access multiplexer",
    "aal5": "ATM Adaptation Layer 5",
    "snap-1483routed": "LLC/SNAP, routed",
    "mux-1483routed": "Multiplexed by circuit, routed",
    "snap-pppoa": "LLC/SNAP, PPP over ATM",
    "mux-pppoa": "Multiplexed by circuit, PPP over ATM",
    "snap-rbe": "LLC/SNAP, bridged Ethernet",
    "mux-rbe": "Multiplexed by circuit, bridged Ethernet",
    "snap-dot1q-rbe": "LLC/SNAP, bridged Ethernet with a tag",
    "mux-dot1q-rbe": "Multiplexed by circuit, bridged Ethernet with a tag",
}

MAX_ACCOUNTED_BYTES = 63
"""Maximum bytes that `account user-defined` adds before IOS-XE."""

# The rules are Cisco's, the wording is our own.
NOT_ALL = "Overhead accounting has to be the same in all classes of policy-map {policy} with shape or bandwidth"
NOT_IN_HIERARCHY = "Overhead accounting of policy-map {child} has to be that of class {name} of policy-map {parent}"
ETHERNET_ONLY = "Overhead accounting for ATM is supported on Ethernet interfaces only"


def parse_account(args: Args) -> Account | None:
    """Return the values of a line after `account`."""
    if "account" not in args:
        return None
    if "user-defined" in args:
        return UserDefinedAccount(args.value("offset", int), "atm" in args)
    subscriber: SubscriberEncapsulation = next(each for each in get_args(SubscriberEncapsulation) if each in args)
    return SubscriberLine("dot1q" if "dot1q" in args else "qinq", subscriber)


def account_text(account: Account | None) -> str:
    """Return the printed end of a line."""
    return "" if account is None else f" account {account}"


def _configure_policer_account(session: ConfigSession, args: Args) -> None:
    """`account user-defined` below `police`, also one with its actions on the line: the lengths that it meters."""
    present = session.policy_class
    if present.police is None:
        raise args.invalid_argument(args.keywords[0])
    account = None if args.unset else UserDefinedAccount(args.value("offset", int), "atm" in args)
    change_class(session, replace(present, police=replace(present.police, account=account)))


for _kind, _requires in (("overhead", "queue-limit-units"), ("wide-overhead", "limit-microseconds")):
    _below_police = f"account user-defined <offset:{_kind}> [atm]"
    CONFIG.add("police", _below_police, no=True, requires={_requires}, help=HELP)(_configure_policer_account)
    # A policer with its actions on the line opens no submode.
    CONFIG.add("policy-class", _below_police, no=True, requires={_requires}, help=HELP)(_configure_policer_account)


@OUTPUT_RULES.register_family(30, family="router")
def _check(device: Device, policy: PolicyMap, interface: Interface) -> None:
    """Refuse accounting that differs between classes or from the parent class."""
    for part in descendants(device, policy):
        found = [account for each in part.classes for account in line_accounts(each)]
        if len(set(found)) > 1:
            raise RejectedError(NOT_ALL.format(policy=part.name))
        for each in part.classes:
            child = None if each.service_policy is None else device.policy_maps[each.service_policy]
            above = line_accounts(each)
            below = [] if child is None else [account for inner in child.classes for account in line_accounts(inner)]
            if inherits_accounting(device) and set(below) == {None}:
                continue
            if child is not None and below and set(below) != set(above or [None]):
                raise RejectedError(NOT_IN_HIERARCHY.format(child=child.name, name=each.name, parent=part.name))
        if (interface.is_serial or interface.is_atm) and any(_counts_cells(account) for account in found):
            raise RejectedError(ETHERNET_ONLY)


def with_account_offset(device: Device, name: str, offset: int) -> Device:
    """Return a device whose policy-map, with its child policies, counts `offset` more bytes for each packet: in
    shapers, shares and policers.
    """
    made = inherit_accounts(device).copy()

    def more(account: Account | None) -> UserDefinedAccount:
        own = account if isinstance(account, UserDefinedAccount) else UserDefinedAccount(0)
        return UserDefinedAccount(own.offset + offset, own.atm)

    for part in {each.name: each for each in descendants(made, made.policy_maps[name])}.values():
        classes = (
            each
            if each.police is None
            else replace(each, police=replace(each.police, account=more(each.police.account)))
            for each in part.classes
        )
        made.policy_maps[part.name] = replace_account(replace(part, classes=tuple(classes)), more)
    return made


def _counts_cells(account: Account | None) -> bool:
    return isinstance(account, SubscriberLine) or (account is not None and account.atm)


@ENGINE_CLASS.register_family(45)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    account = next((account for account in line_accounts(each) if account is not None), None)
    return {} if account is None else {"account": account_config(account)}


def account_config(account: Account) -> program_formats.AccountConfig:
    """Return the data plane's configuration of `account`."""
    if isinstance(account, UserDefinedAccount):
        return {"user_defined": {"offset": account.offset, "atm": account.atm}}
    return {"aal5": {"access": account.access, "subscriber": account.subscriber}}
