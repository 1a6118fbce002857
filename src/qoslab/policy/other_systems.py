"""Refusal of pasted text that is not the configuration of a router or switch with a modelled release of Cisco IOS."""

from __future__ import annotations

import re

from qoslab.errors import UserError

EXPECTED = "expected a configuration of Cisco IOS or IOS-XE"
_SYSTEMS = (
    (
        r"(?m)^(?:ASA|PIX) Version |^ *nameif \S+ *$|^service-policy \S+ (?:global|interface )",
        "a configuration of a Cisco ASA or PIX firewall",
    ),
    (
        r"(?m)^!? ?(?:device|boot system)\b.*\bEOS\b|^! .*\bEOS-\d|^transceiver qsfp |^service routing protocols model "
        r"|^policy-map type quality-of-service ",
        "an Arista EOS configuration",
    ),
    (
        r"(?m)^\s*end-(?:policy|class)-map|^!! IOS XR|^ *(?:shape average|police rate) \d+ [kmg]bps\b"
        r"|^interface Bundle-Ether\d",
        "an IOS XR configuration",
    ),
    (
        r"(?m)^!Command: show running-config|^version \d+\.\d+\(\d+\)[A-Z]?\d*\(|^version \d+\.\d+\(\d+\) Bios"
        r"|^(?:policy|class)-map type (?:queuing|network-qos|qos)\b|^feature [a-z]",
        "an NX-OS configuration",
    ),
    (r"(?m)^!.*\bA(?:dvanced )?C(?:ore )?OS\b.*version", "an A10 ACOS configuration"),
    (
        r"(?m)^# TiMOS-|^/configure [a-z]|^/?configure \{|^#-+$\s+echo \"",
        "a Nokia SR OS configuration",
    ),
    (
        r"(?m)^(?:frr (?:version|defaults) |net add (?:interface|bgp|hostname) |iface \S+|! *Zebra configuration)",
        "a Linux or FRR configuration",
    ),
    (r"(?m)^set (?:qos|traffic-policy) |^set interfaces (?:ethernet|bonding) ", "a VyOS configuration"),
    (
        r"(?m)^set (?:class-of-service|firewall|interfaces|system|routing-options|protocols) "
        r"|^\s*(?:class-of-service|schedulers|firewall|interfaces|system|routing-options) \{|^version \d+\.\d\S*;",
        "a Junos configuration",
    ),
    (
        r"(?m)^ *traffic (?:classifier|behavior|policy) \S+|^ *qos (?:car|lr|apply)\b|^ ?sysname ",
        "a Huawei or H3C configuration",
    ),
    (
        r"(?m)^/(?:queue|interface|ip|system|routing)\b|^# .* by RouterOS|^add (?:max-limit|name=.*queue)",
        "a MikroTik configuration",
    ),
    (r"(?m)^#config-version=F|^ *config (?:firewall|system|router|vpn) |^ +edit \"", "a FortiOS configuration"),
    (r"(?m)^set deviceconfig |<config version=.*paloalto|<mgt-config>", "a PAN-OS configuration"),
    (r"(?m)^; J\w+ Configuration Editor|^!Current Configuration: Dell", "a switch of another vendor"),
    (r"(?m)^ *(?:sudo )?tc (?:qdisc|class|filter) ", "Linux tc commands"),
    (r"(?m)^ {3}ip address \d+\.\d+\.\d+\.\d+/\d+$", "an Arista EOS configuration"),
    (r"(?m)^ {2}ip address \d+\.\d+\.\d+\.\d+/\d+$", "an NX-OS configuration"),
)
"""Lines of other systems, most specific first."""
_SWITCH_MODELS = re.compile(
    r"(?im)^(?:switch \d+ provision (ws-\S+|c\d\S+)|license udi pid (WS-C\d\S+|C9[2-6]\d\d\S*)"
    r"|boot system (?:switch all )?\S*?((?:cat\d|c29[4-7]|c355|c356|c3650|c3750|c3850|c4500|c4900)\S*))"
)
_SWITCH_LINES = re.compile(
    r"(?m)^(?:mls qos\b|spanning-tree mode |vtp mode |switch \d+ provision |system mtu routing )"
)
_CATALYST_9000_LINES = re.compile(
    r"(?m)^ +queue-buffers ratio |^policy-map system-cpp-policy|^qos queue-(?:softmax-multiplier|stats-frame-count)"
    r"|^ *trust device |^policy-map AutoQos-4\.0-"
)
"""Lines of switches with IOS-XE that no router has."""
_PORTS_OF_SWITCH = re.compile(r"(?m)^interface (?:Fast|Gigabit|TenGigabit)Ethernet\d+/(?:0/)?\d+ *$")
_ONLY_SWITCHED = re.compile(r"(?m)^ +switchport|^ *srr-queue|^ *mls qos trust")
_ROUTED = re.compile(r"(?m)^ +(?:ip address (?:\d|dhcp|negotiated)|pppoe|no switchport|channel-group|encapsulation )")
_ROUTER_LINES = re.compile(
    r"(?m)^interface (?:Serial|Dialer|ATM|Tunnel|Multilink|Virtual-Template)|^(?:controller|dial-peer|vpdn|crypto map) "
    r"|^ *ip nat (?:inside|outside)|^ +shape "
)
"""Lines that only routers have, including routers with switch modules."""
_FEWEST_SWITCH_PORTS = 8
_CATALYST_3750 = re.compile(r"(?i)(?:ws-)?c?3750")


def refuse_other_systems(text: str, source: str) -> None:
    """Raise UserError, with one sentence, for the configuration of another operating system."""
    for pattern, name in _SYSTEMS:
        if re.search(pattern, text):
            raise UserError(
                f"{source}: found {name}, {EXPECTED}",
                hint="paste the output of `show running-config` from such a device",
            )


def refuse_unmodelled_switch(text: str, source: str) -> None:
    """Raise UserError, with one sentence, for a Catalyst 9000, 3850, 3650, 4500 or another switch with IOS-XE."""
    name = _switch_model(text)
    if re.match(r"(?i)(?:ws-)?c?(?:9[2-6]|3650|3850|45|49)|cat(?:9|3k|4)", name) or _CATALYST_9000_LINES.search(text):
        raise _system_refusal(name, source)


def refuse_switch(text: str, source: str) -> None:
    """Raise UserError, with one sentence, for the configuration of any Catalyst switch."""
    refuse_unmodelled_switch(text, source)
    name = _switch_model(text)
    if not name and (_ROUTER_LINES.search(text) or not _is_switch(text)):
        return
    if _CATALYST_3750.match(name) or (not name and re.search(r"(?m)^mls qos srr-queue|^ *srr-queue", text)):
        called = f" ({name})" if name else ""
        raise UserError(
            f"{source}: found the configuration of a Catalyst 3750{called}, expected a router configuration",
            hint="`qoslab policy` reads it; in an experiment write {platform: ios, model: 3750G}",
        )
    raise _system_refusal(name, source)


def _switch_model(text: str) -> str:
    """Return the model of a switch that a line names; empty without one."""
    named = _SWITCH_MODELS.search(text)
    return next(filter(None, named.groups())) if named else ""


def _is_switch(text: str) -> bool:
    """Return whether the ports of a configuration are those of a switch: many, or all of them switched."""
    if _ONLY_SWITCHED.search(text) and not any(_ROUTED.search(each) for each in _physical_interfaces(text)):
        return True
    return bool(_SWITCH_LINES.search(text)) and len(_PORTS_OF_SWITCH.findall(text)) >= _FEWEST_SWITCH_PORTS


def _physical_interfaces(text: str) -> list[str]:
    """Return the texts of the interfaces with a physical line."""
    blocks = re.split(r"(?m)^(?=interface )", text)
    return [each for each in blocks if re.match(r"interface (?:\w+Ethernet|\w+GigE|Serial|ATM|Cellular)", each)]


def _system_refusal(name: str, source: str) -> UserError:
    called = f" ({name})" if name else ""
    return UserError(
        f"{source}: found the configuration of a Catalyst switch{called}, expected one of an IOS or IOS-XE router",
        hint="the only modelled switch is the Catalyst 3750G; the queues of a Catalyst 9000 are different",
    )
