"""The configuration lines that bring a device back from one running configuration to another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from qoslab.errors import IosError, QoslabError
from qoslab.ios.commands.system import PRINTED_DELIMITER
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.parse import apply, parse_config
from qoslab.ios.running_config import class_order, policy_order, render

_SETTINGS = (
    "bandwidth",
    "clock rate",
    "description",
    "duplex",
    "enable secret",
    "encapsulation",
    "exec-timeout",
    "auto qos voip",
    "fair-queue",
    "hostname",
    "ip address",
    "ip domain name",
    "load-interval",
    "logging buffered",
    "login",
    "max-reserved-bandwidth",
    "mls qos aggregate-policer",
    "mls qos dscp-mutation",
    "mls qos map cos-dscp",
    "mls qos map ip-prec-dscp",
    "mls qos srr-queue input bandwidth",
    "mls qos srr-queue input buffers",
    "mls qos srr-queue input priority-queue",
    "name",
    "password",
    "police",
    "priority",
    "privilege level",
    "queue-limit",
    "qoslab-extension police dynamic-bucket",
    "queue-set",
    "random-detect",
    "service timestamps debug",
    "service timestamps log",
    "service-policy input",
    "service-policy output",
    "service-policy",
    "set cos",
    "set dscp",
    "set ip dscp",
    "set ip precedence",
    "set precedence",
    "set qos-group",
    "shape",
    "speed",
    "srr-queue bandwidth limit",
    "srr-queue bandwidth shape",
    "srr-queue bandwidth share",
    "switchport access vlan",
    "switchport mode",
    "switchport trunk native vlan",
    "transport input",
    "trust",
    "tx-ring-limit",
)
"""What has one value: the leading words by which two lines are known to be about the same thing."""

_LISTED = (
    "access-list",
    "mls qos map dscp-cos",
    "mls qos map dscp-mutation",
    "mls qos map policed-dscp",
    "mls qos srr-queue input cos-map",
    "mls qos srr-queue input dscp-map",
    "mls qos srr-queue output cos-map",
    "mls qos srr-queue output dscp-map",
)
"""Lines that make one table together, without a line above them: an access list, a map. `no` clears the table."""

_NUMBERED = re.compile(
    r"mls qos queue-set output \d (buffers|threshold \d)|mls qos srr-queue input threshold \d"
    r"|mls qos cos(?= \d)|mls qos trust(?! device)|ip sla schedule \d+"
)
"""Further settings with one value, where the leading words alone don't tell."""

_OPERATION = re.compile(r"ip sla \d+")

_NAMED = ("access-list", "mls qos map dscp-mutation", "mls qos aggregate-policer")
"""What there may be several of, by the word that follows."""

_REMOVED_FIRST = ("ip sla ", "police", "random-detect", "username ", "ip access-list ", *_LISTED)
"""What keeps something of its old value, or the order of its lines, when it is only entered again."""

_DEFAULTED = ("fair-queue", "exec-timeout", "login")
"""Settings whose `no` form is a value of its own."""

_REFERRED_TO = ("policy-map ", "class-map ", "ip access-list ", "access-list ", "mls qos aggregate-policer ", "vlan ")
"""What something else may refer to, in the order in which it can be removed."""


@dataclass
class Block:
    """A line and those below it, by what they are about."""

    line: str
    children: dict[str, Block] = field(default_factory=dict)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the text of the whole block."""
        if self.line.startswith(_LISTED):
            yield from self.children
            return
        yield " " * depth + self.line
        for child in self.children.values():
            yield from child.lines(depth + 1)


def undo_lines(before: str, after: str, hardware: Hardware) -> list[str]:
    """Return the lines that, configured on a device which runs `after`, make it run `before`; none if they are alike.

    Both are running configurations as printed; IosError tells where one of them cannot be read. What differs is
    changed in place where that leads there; otherwise policies and addresses are taken off and written anew. The
    result is tried out on the device model before it is returned; QoslabError when it does not lead there.
    """
    wanted = parse_config(before, hardware, source="the configuration before")
    current = parse_config(after, hardware, source="the configuration after")
    if wanted == current:
        return []
    for attempt in (_in_place, _anew):
        lines = attempt(wanted, current)
        device = current.copy()
        try:
            apply(device, "\n".join(lines), source="lines that undo")
        except IosError:
            continue
        if device == wanted:
            return lines
    raise QoslabError(
        "no configuration lines are known that lead from the present running configuration back to the one before",
        hint="Compare the two by hand; both are in the run folder.",
    )


def _in_place(wanted: Device, current: Device) -> list[str]:
    """Detach policies that are not to stay attached, then change what differs."""
    bare = current.copy()
    lines: list[str] = []
    for interface in bare.interfaces.values():
        target = wanted.interfaces[interface.name]
        lines += _detached(
            bare,
            interface.name,
            inwards=interface.service_policy_input != target.service_policy_input,
            outwards=interface.service_policy_output != target.service_policy_output,
        )
    return lines + list(_difference(wanted, bare)) + _banner(wanted, current)


def _anew(wanted: Device, current: Device) -> list[str]:
    """Take off all policies and the addresses that differ, remove policies and class-maps, and write them anew."""
    bare = current.copy()
    lines: list[str] = []
    for interface in bare.interfaces.values():
        target = wanted.interfaces[interface.name]
        lines += _detached(bare, interface.name, inwards=True, outwards=True)
        have = (interface.address, interface.secondary_addresses)
        if have not in ((None, ()), (target.address, target.secondary_addresses)):
            lines += [f"interface {interface.name}", " no ip address"]
            interface.address, interface.secondary_addresses = None, ()
    # A name is removed before those that it refers to.
    lines += [f"no policy-map {name}" for name in reversed(policy_order(bare))]
    lines += [f"no class-map match-{bare.class_maps[name].match} {name}" for name in reversed(class_order(bare))]
    bare.policy_maps, bare.class_maps = {}, {}
    return lines + list(_difference(wanted, bare)) + _banner(wanted, current)


def _detached(device: Device, name: str, *, inwards: bool, outwards: bool) -> list[str]:
    """Detach the policies of an interface of `device`, and return the lines that do so."""
    interface = device.interfaces[name]
    lines: list[str] = []
    if inwards and interface.service_policy_input is not None:
        lines.append(f" no service-policy input {interface.service_policy_input}")
        interface.service_policy_input = None
    if outwards and interface.service_policy_output is not None:
        lines.append(f" no service-policy output {interface.service_policy_output}")
        interface.service_policy_output = None
    return [f"interface {name}", *lines] if lines else []


# The running configuration as a tree.


def tree(device: Device) -> Block:
    """Return the running configuration; a banner is no line of configuration and left out."""
    device = device.copy()
    device.banner_motd = None
    root = Block("")
    path = [root]
    for text in render(device).splitlines():
        line = text.strip()
        if line in ("!", "end") or line.startswith("version "):
            continue
        depth = _depth(text, path)
        del path[depth + 1 :]
        if line.startswith(_LISTED):
            path.append(path[0].children.setdefault(subject(line), Block(subject(line))))
            path[1].children[line] = Block(line)
            continue
        blocks = [Block(each) for each in _single_lines(line)]
        path[depth].children.update({subject(block.line): block for block in blocks})
        # What follows a range of terminal lines holds for each of them.
        for block in blocks[1:]:
            block.children = blocks[0].children
        path.append(blocks[0])
    return root


def _depth(text: str, path: list[Block]) -> int:
    """Return how deep a line is; below a policy-map the number of blanks doesn't tell."""
    if not text.startswith(" "):
        return 0
    if len(path) < 2 or not path[1].line.startswith("policy-map "):
        return 1
    word = text.split()[0]
    # Further lines about early detection go with the first, without which they would come to nothing.
    detail = word == "random-detect" and len(path) > 3 and path[3].line.startswith("random-detect")
    if word.endswith("-action") or detail:
        return 3
    return 1 if text.startswith(" ") and not text.startswith("  ") else 2


def _single_lines(line: str) -> list[str]:
    """Return `line vty 0 4` as one line for each terminal line; any other as it is."""
    words = line.split()
    if words[:2] != ["line", "vty"]:
        return [line]
    return [f"line vty {number}" for number in range(int(words[2]), int(words[-1]) + 1)]


def subject(line: str) -> str:
    """Return what a line is about."""
    text = line.removeprefix("no ")
    words = text.split()
    for name in _NAMED:
        if text.startswith(f"{name} "):
            return f"{name} {words[len(name.split())]}"
    if (listed := next((each for each in _LISTED if text.startswith(each)), None)) is not None:
        return listed
    if (numbered := _NUMBERED.match(text)) is not None:
        return numbered[0]
    if words[0] in ("class-map", "username"):
        return f"{words[0]} {words[-1] if words[0] == 'class-map' else words[1]}"
    if words[:2] == ["ip", "access-list"]:
        return f"access-list {words[3]}" if words[3].isdigit() else f"ip access-list {words[3]}"
    if words[0] == "hold-queue":
        return f"hold-queue {words[-1]}"
    if text.startswith("ip address ") and words[-1] == "secondary":
        return text
    if words[0] == "random-detect" and len(words) > 2:
        # A further line about early detection.
        return text
    return next((head for head in _SETTINGS if f"{text} ".startswith(f"{head} ")), text)


# The difference of two trees.


def _difference(wanted: Device, current: Device) -> Iterator[str]:
    """Yield the lines from one device to the other, except for banners."""
    target, present = tree(wanted), tree(current)
    _forget_schedules(target, present)
    gone = [key for key in present.children if key not in target.children and not key.startswith("line ")]
    for key in gone:
        if not key.startswith(_REFERRED_TO):
            yield _negated(key, present.children[key].line)
    # In the order of the running configuration, in which what is referred to comes first.
    for key, block in target.children.items():
        if not key.startswith("line "):
            yield from _changed(key, block, present.children.get(key), 0)
    for kind in _REFERRED_TO:
        # A name goes before those that it refers to.
        for key in reversed([each for each in gone if each.startswith(kind)]):
            yield _negated(key, present.children[key].line)
    yield from _terminal_lines(target, present)


def _forget_schedules(target: Block, present: Block) -> None:
    """An operation that is removed, be it to be entered anew, takes its schedule along."""
    for key in [key for key in present.children if _OPERATION.fullmatch(key)]:
        wanted = target.children.get(key)
        if wanted is None or list(wanted.lines()) != list(present.children[key].lines()):
            present.children.pop(f"ip sla schedule {key.split()[-1]}", None)


def _changed(key: str, target: Block, present: Block | None, depth: int) -> Iterator[str]:
    """Yield the lines that make a block of `present` that of `target`."""
    indent = " " * depth
    if present is None:
        yield from target.lines(depth)
    elif list(target.lines()) == list(present.lines()):
        return
    elif f"{key} ".startswith(_REMOVED_FIRST):
        yield indent + _negated(key, present.line)
        yield from target.lines(depth)
    else:
        yield indent + target.line
        yield from _below(target, present, depth + 1)


def _below(target: Block, present: Block, depth: int) -> Iterator[str]:
    """Yield the changes below a line: removals, the last first, then additions."""
    misplaced = _misplaced(target, present)
    for key, block in reversed(present.children.items()):
        if key not in target.children or key in misplaced:
            yield " " * depth + _negated(key, block.line)
    for key, block in target.children.items():
        yield from _changed(key, block, None if key in misplaced else present.children.get(key), depth)


def _misplaced(target: Block, present: Block) -> set[str]:
    """Return the match lines and classes that must be entered again, since new ones are appended."""
    wanted = [key for key in target.children if _is_ordered(key)]
    have = [key for key in present.children if _is_ordered(key) and key in target.children]
    kept = 0
    while kept < len(have) and wanted[kept] == have[kept]:
        kept += 1
    return set(have[kept:])


def _is_ordered(key: str) -> bool:
    return key.startswith(("match ", "class ")) and key != f"class {CLASS_DEFAULT}"


def _terminal_lines(target: Block, present: Block) -> Iterator[str]:
    """Yield the changes of terminal lines; neighbours with the same changes go together."""
    superfluous = [key for key in present.children if key.startswith("line vty ") and key not in target.children]
    if superfluous:
        # IOS removes those behind it too.
        yield f"no {superfluous[0]}"
    changes: list[tuple[str, int, list[str]]] = []
    for key, block in target.children.items():
        if key.startswith("line "):
            _, kind, number = key.split()
            changes.append((kind, int(number), list(_below(block, present.children.get(key, Block(key)), 1))))
    for (kind, below), group in groupby(changes, key=lambda each: (each[0], each[2])):
        numbers = [number for _, number, _ in group]
        if below:
            last = "" if len(numbers) == 1 else f" {numbers[-1]}"
            yield f"line {kind} {numbers[0]}{last}"
            yield from below


def _negated(key: str, line: str) -> str:
    """Return the line that takes `line` back."""
    if line.startswith("no "):
        return f"default {line.removeprefix('no ')}"
    if key in _DEFAULTED:
        return f"default {key}"
    bare = key in _SETTINGS or key.startswith(("username ", "mls qos ", "ip sla schedule ", *_LISTED))
    return f"no {key if bare else line}"


def _banner(wanted: Device, current: Device) -> list[str]:
    if wanted.banner_motd == current.banner_motd:
        return []
    if wanted.banner_motd is None:
        return ["no banner motd"]
    # As the running configuration prints it: the one form that Ansible takes for a banner, not for commands.
    return f"banner motd {PRINTED_DELIMITER}{wanted.banner_motd}{PRINTED_DELIMITER}".split("\n")
