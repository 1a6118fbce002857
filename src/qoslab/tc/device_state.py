"""State of a device's traffic control in a normal form, from a plan and from the kernel, to compare them by meaning.

Rates are bytes per second, buckets ticks of 64 ns, as the kernel holds them.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from qoslab.tc import rtnetlink_dump
from qoslab.tc.classify import NAMES
from qoslab.tc.leaves import red_weight
from qoslab.tc.objects import Action, Control, HtbClass, Police, Qdisc, SetClass, SetField, SetMark, TcObject
from qoslab.tc.rtnetlink_dump import Message, attributes_of

Key = tuple[str | int, ...]
Value = dict[str, Any]
State = dict[Key, Value]
TICKS_PER_S = 15_625_000
"""Ticks of buckets: 64 ns."""
POLICE_MTU = 2040
"""Greatest packet of a policer: that of a rate table for tc's default of 2047 bytes, which has cells of 8 bytes."""
ACTIONS = {0: "pass", 2: "drop", 3: "pipe"}
GOTO = 0x20000000
PROTOCOLS = {"all": 0x0003, "ip": 0x0800, "ipv6": 0x86DD, "arp": 0x0806}
CLSACT_PARENT = 0xFFFFFFF1
ROOT = 0xFFFFFFFF
RATE = struct.Struct("=BBHhHI")
"""tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate."""
ATM = 2


def number_of(handle: str) -> int:
    """Return a handle or class as a number: `1:10` is 0x10010."""
    major, _, minor = handle.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def handle_of(number: int) -> str:
    """Return a number as a handle or class."""
    return f"{number >> 16:x}:{number & 0xFFFF:x}" if number & 0xFFFF else f"{number >> 16:x}:"


def ticks_of(size_bytes: int, rate_bps: int) -> int:
    """Return the ticks that bytes take at a rate, as tc(8) computes them: it cuts to microseconds first."""
    return math.floor(size_bytes * 1_000_000 / (rate_bps // 8)) * TICKS_PER_S // 1_000_000


def planned(objects: tuple[TcObject, ...]) -> State:
    """Return the state that a plan wants."""
    return dict(_planned(each) for each in objects)


def _planned(each: TcObject) -> tuple[Key, Value]:
    if isinstance(each, Qdisc):
        if each.kind == "clsact":
            return ("qdisc", "ffff:"), {"kind": "clsact"}
        value = {"kind": each.kind, "parent": each.parent, **_qdisc_options(each)}
        return ("qdisc", each.handle), value
    if isinstance(each, HtbClass):
        return ("class", each.classid), {
            "parent": "root" if each.parent == "1:" else each.parent,
            "rate": each.rate_bps // 8,
            "ceil": each.ceil_bps // 8,
            "burst ticks": ticks_of(each.burst_bytes, each.rate_bps),
            "cburst ticks": ticks_of(each.cburst_bytes, each.ceil_bps),
            "prio": each.priority,
            "quantum": each.quantum_bytes,
            "overhead": each.overhead_bytes,
            "mpu": each.mpu_bytes,
            "cells": each.cells,
        }
    actions = [made for action in each.actions for made in _planned_actions(action)]
    kind, _, words = each.match.partition(" ")
    keys = {"flower": _flower_words, "basic": _basic_words}.get(kind, lambda _: {})(words)
    key = ("filter", each.hook, each.chain, each.order)
    return key, {"kind": kind, "protocol": each.protocol, "match": keys, "actions": actions}


def _qdisc_options(each: Qdisc) -> Value:
    options = dict(each.options)
    match each.kind:
        case "htb":
            return {"default": options["default"], "stab overhead": options.get("stab overhead", 0)}
        case "red":
            weight = red_weight(int(options["min"] or 0), int(options["avpkt"] or 0), int(options["burst"] or 0))
            names = ("limit", "min", "max")
            probability = round(float(options["probability"] or 0), 6)
            ecn = "ecn" in options
            return {name: options[name] for name in names} | {"weight": weight, "probability": probability, "ecn": ecn}
    return options


def _planned_actions(action: Action) -> list[Value]:
    match action:
        case Control():
            return [{"kind": "gact", "verdict": action.verdict()}]
        case Police():
            return [
                {
                    "kind": "police",
                    "rate": action.rate_bps // 8,
                    "burst ticks": ticks_of(action.burst_bytes, action.rate_bps),
                    "overhead": action.overhead_bytes,
                    "mtu": POLICE_MTU,
                    "exceed": "pipe" if action.exceed is None else action.exceed.verdict(),
                    "conform": "drop" if action.conform_drop else "pipe",
                }
            ]
        case SetClass():
            return [{"kind": "skbedit", "priority": action.classid, "verdict": "pipe"}]
        case SetMark():
            return [{"kind": "skbedit", "mark": action.value, "mask": action.mask, "verdict": "pipe"}]
        case SetField():
            # The field is bits 8 to 15 of the first word of IPv4, and 4 to 11 of that of IPv6.
            shift = 16 if action.network == "ip" else 20
            key = {"value": action.value << shift, "keep": 0xFFFFFFFF ^ action.mask << shift, "offset": 0}
            made: list[Value] = [{"kind": "pedit", "network": action.network, **key, "verdict": "pipe"}]
            return [*made, {"kind": "csum", "headers": 1, "verdict": "pipe"}] if action.network == "ip" else made


def _flower_words(words: str) -> Value:
    """Return the keys of flower's words, numbers as the kernel has them."""
    pieces = words.split()
    found: Value = {}
    numbers = {name: number for number, name in NAMES.items()}
    for name, text in zip(pieces[::2], pieces[1::2], strict=True):
        if name in ("indev", "src_ip", "dst_ip", "ip_flags"):
            found[name] = text
        elif name == "ip_proto":
            found[name] = numbers[text] if text in numbers else int(text)
        elif "/" in text:
            found[name] = tuple(int(each, 0) for each in text.split("/"))
        elif "-" in text:
            found[name] = tuple(int(each) for each in text.split("-"))
        else:
            found[name] = int(text)
    return found


def _basic_words(words: str) -> Value:
    comparisons = []
    for text in re.findall(r"\w+\([^)]*\)", words):
        comparisons.append(re.sub(r"0x[0-9a-f]+", lambda found: str(int(found[0], 16)), text))
    return {"comparisons": comparisons}


def seen(device: str) -> State:
    """Return the state of a device in this network namespace; default qdiscs, which have no handle, are left out."""
    state: State = {}
    clsact = False
    for message in rtnetlink_dump.dump(rtnetlink_dump.GET_QDISC, device):
        if message.kind == "clsact":
            clsact = True
            state["qdisc", "ffff:"] = {"kind": "clsact"}
        elif message.handle:
            parent = "root" if message.parent == ROOT else handle_of(message.parent)
            value = {"kind": message.kind, "parent": parent, **_seen_qdisc(message)}
            state["qdisc", handle_of(message.handle)] = value
    for message in rtnetlink_dump.dump(rtnetlink_dump.GET_CLASS, device):
        if message.kind == "htb":
            state["class", handle_of(message.handle)] = _seen_class(message)
    for hook in rtnetlink_dump.HOOKS if clsact else ():
        for message in rtnetlink_dump.filters(device, hook):
            state["filter", hook, message.chain, message.info >> 16] = _seen_filter(message)
    return state


def _u32(data: bytes) -> int:
    return int(struct.unpack_from("=I", data)[0])


def _seen_qdisc(message: Message) -> Value:
    options = message.options
    match message.kind:
        case "htb":
            init = attributes_of(options)[2]
            stab = attributes_of(message.attributes.get(rtnetlink_dump.STAB, b"")).get(1)
            overhead = 0 if stab is None else struct.unpack_from("=BBHi", stab)[3]
            return {"default": struct.unpack_from("=III", init)[2], "stab overhead": overhead}
        case "pfifo" | "bfifo":
            return {"limit": _u32(options)}
        case "sfq":
            quantum, _, limit, divisor, flows, depth = struct.unpack_from("=IiIIII", options)
            return {"limit": limit, "depth": depth, "flows": flows, "divisor": divisor, "quantum": quantum}
        case "red":
            given = attributes_of(options)
            limit, least, most, weight, _, _, flags = struct.unpack_from("=IIIBBBB", given[1])
            probability = round(_u32(given[3]) / 2**32, 6)
            value = {"limit": limit, "min": least, "max": most, "weight": weight}
            return value | {"probability": probability, "ecn": bool(flags & 1)}
    return {}


def _seen_class(message: Message) -> Value:
    given = attributes_of(message.options)
    parms = given[1]
    _, layer, overhead, _, mpu, rate = RATE.unpack_from(parms)
    ceil = RATE.unpack_from(parms, RATE.size)[5]
    buffer, cbuffer, quantum, _, prio = struct.unpack_from("=IIIII", parms, 2 * RATE.size)
    # Rates of 2^32 B/s and more have attributes of their own.
    rate = struct.unpack("=Q", given[6])[0] if 6 in given else rate
    ceil = struct.unpack("=Q", given[7])[0] if 7 in given else ceil
    return {
        "parent": "root" if message.parent == ROOT else handle_of(message.parent),
        "rate": rate,
        "ceil": ceil,
        "burst ticks": buffer,
        "cburst ticks": cbuffer,
        "prio": prio,
        "quantum": quantum,
        "overhead": overhead,
        "mpu": mpu,
        "cells": layer == ATM,
    }


ACTIONS_ATTRIBUTE = {"flower": 3, "matchall": 2, "basic": 3}


def _seen_filter(message: Message) -> Value:
    given = attributes_of(message.options)
    protocol = struct.unpack(">H", struct.pack("=H", message.info & 0xFFFF))[0]
    names = {number: name for name, number in PROTOCOLS.items()}
    match: Value = {}
    if message.kind == "flower":
        match = _seen_flower(given)
    elif message.kind == "basic":
        match = _seen_basic(given)
    actions = attributes_of(given.get(ACTIONS_ATTRIBUTE.get(message.kind, 0), b""))
    return {
        "kind": message.kind,
        "protocol": names.get(protocol, f"0x{protocol:04x}"),
        "match": match,
        "actions": [_seen_action(actions[number]) for number in sorted(actions)],
    }


def _verdict(code: int) -> str:
    if code & 0xF0000000 == GOTO:
        return f"goto chain {code & 0x0FFFFFFF}"
    return ACTIONS.get(code, str(code))


def _seen_action(data: bytes) -> Value:
    given = attributes_of(data)
    kind, options = rtnetlink_dump.text_of(given[1]), attributes_of(given[2])
    if kind == "police":
        parms = options[1]
        _, action, _, burst, mtu = struct.unpack_from("=IiIII", parms)
        _, _, overhead, _, _, rate = RATE.unpack_from(parms, 20)
        rate = struct.unpack("=Q", options[8])[0] if 8 in options else rate
        conform = _verdict(_u32(options[5])) if 5 in options else "pass"
        value = {"rate": rate, "burst ticks": burst, "overhead": overhead, "mtu": mtu}
        return {"kind": kind, **value, "exceed": _verdict(action), "conform": conform}
    # All others begin with index, capabilities and verdict.
    number = {"gact": 2, "skbedit": 2, "pedit": 4, "csum": 1}.get(kind)
    if number is None or number not in options:
        return {"kind": kind}
    parms = options[number]
    verdict = _verdict(struct.unpack_from("=IIi", parms)[2])
    value = {"kind": kind}
    match kind:
        case "skbedit" if 3 in options:
            value["priority"] = handle_of(_u32(options[3]))
        case "skbedit" if 5 in options:
            value |= {"mark": _u32(options[5]), "mask": _u32(options[8]) if 8 in options else 0xFFFFFFFF}
        case "csum":
            value["headers"] = _u32(parms[20:])
        case "pedit":
            keep, new = struct.unpack_from(">II", parms, 24)
            headers = attributes_of(attributes_of(options[5])[6])
            network = {2: "ip", 3: "ipv6"}.get(struct.unpack_from("=H", headers[1])[0], "other")
            value |= {"network": network, "value": new, "keep": keep, "offset": _u32(parms[32:])}
    return value | {"verdict": verdict}


PORTS = {18: "src_port", 19: "dst_port", 20: "src_port", 21: "dst_port"}
"""TCA_FLOWER_KEY_TCP_SRC and those that follow."""
RANGES = {"src_port": (87, 88), "dst_port": (89, 90)}
ADDRESSES = {"src_ip": ((10, 11), (14, 15)), "dst_ip": ((12, 13), (16, 17))}
ICMP = {"type": (51, 55), "code": (49, 53)}
"""Attributes of ICMP and ICMPv6."""
FRAGMENT, FIRST_FRAGMENT = 1, 2


def _seen_flower(given: Mapping[int, bytes]) -> Value:
    found: Value = {}
    if 2 in given:
        found["indev"] = rtnetlink_dump.text_of(given[2])
    if 73 in given:
        found["ip_tos"] = (given[73][0], given[74][0])
    if 9 in given:
        found["ip_proto"] = given[9][0]
    for name, families in ADDRESSES.items():
        for value, mask in families:
            if value in given:
                found[name] = _prefix(given[value], given[mask])
    for number, name in PORTS.items():
        if number in given:
            found[name] = struct.unpack(">H", given[number])[0]
    for name, (least, most) in RANGES.items():
        if least in given:
            found[name] = (struct.unpack(">H", given[least])[0], struct.unpack(">H", given[most])[0])
    if 71 in given:
        found["tcp_flags"] = (struct.unpack(">H", given[71])[0], struct.unpack(">H", given[72])[0])
    for name, numbers in ICMP.items():
        for number in numbers:
            if number in given:
                found[name] = given[number][0]
    if 47 in given:
        flags, mask = struct.unpack(">I", given[47])[0], struct.unpack(">I", given[48])[0]
        words = (("frag", FRAGMENT), ("firstfrag", FIRST_FRAGMENT))
        found["ip_flags"] = "/".join(("" if flags & bit else "no") + word for word, bit in words if mask & bit)
    return found


def _prefix(address: bytes, mask: bytes) -> str:
    import ipaddress

    return f"{ipaddress.ip_address(address)}/{int.from_bytes(mask).bit_count()}"


def _seen_basic(given: Mapping[int, bytes]) -> Value:
    tree = attributes_of(attributes_of(given[2])[2])
    return {"comparisons": [_seen_comparison(tree[number]) for number in sorted(tree)]}


def _seen_comparison(data: bytes) -> str:
    kind = struct.unpack_from("=HHHH", data)[1]
    body = data[8:]
    if kind == 1:
        value, mask, offset, align, layer = struct.unpack_from("=IIHBB", body)
        operator = ("eq", "gt", "lt")[layer >> 4]
        masked = f" mask {mask}" if mask else ""
        where = {1: "network"}.get(layer & 0xF, str(layer & 0xF))
        return f"cmp(u{8 * (align & 0xF)} at {offset} layer {where}{masked} {operator} {value})"
    if kind == 4:
        values = attributes_of(body)
        left, operator = struct.unpack_from("=HBB", values[1])[0] & 0xFFF, struct.unpack_from("=HBB", values[1], 4)[2]
        name = "nf_mark" if left == NFMARK else str(left)
        mask, value = (int.from_bytes(values[number][:4], "little") for number in (2, 3))
        return f"meta({name} mask {mask} {('eq', 'gt', 'lt')[operator]} {value})"
    return f"kind {kind}"


NFMARK = 12
"""TCF_META_ID_NFMARK."""


def differences(wanted: State, found: State) -> dict[Key, str]:
    """Return the objects that differ, with the difference in words: wanted, found.

    Buckets may differ by a tick, by which tc and the kernel round.
    """
    result: dict[Key, str] = {}
    for key in (*wanted, *(key for key in found if key not in wanted)):
        if key not in found:
            result[key] = "found none"
        elif key not in wanted:
            result[key] = "found one that is not part of the plan"
        elif not _same(wanted[key], found[key]):
            names = [name for name in wanted[key] if not _same(wanted[key][name], found[key].get(name), name)]
            parts = (f"{name}: found {found[key].get(name)}, expected {wanted[key][name]}" for name in names)
            result[key] = "; ".join(parts)
    return result


def _same(one: Any, other: Any, name: str = "") -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key], key) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*pair) for pair in zip(one, other, strict=True))
    if name.endswith("ticks"):
        return abs(int(one) - int(other)) <= 1
    return bool(one == other)


def title(key: Key) -> str:
    """Return an object's name in messages."""
    return f"filter {key[1]} chain {key[2]} pref {key[3]}" if key[0] == "filter" else f"{key[0]} {key[1]}"
