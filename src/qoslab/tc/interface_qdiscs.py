"""The qdiscs of some interfaces of a kernel: tried, applied, read back, compared, and counted.

Commands are those of tc(8) without the word `tc`. A trial runs them in a network namespace of its own, on interfaces
of the same names: a parameter that tc or the kernel rejects is known before an interface is touched, and the trial's
state is the one that the real interfaces must have afterwards.

An interface of a lab has a line rate: its root is then an HTB of that rate, whose overhead and least size make it count
bytes on the wire, and the commands' root is below it. Queues so build in the commands' qdisc, as they do above the
driver of a network card.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qoslab.errors import DeviceError

Run = Callable[[Sequence[str], str], tuple[int, str, str]]
"""Runs a command in a kernel with this standard input; returns exit status, standard output and error."""

LINE = "7fff:"
"""Handle of the qdisc that gives an interface its line rate."""
UNDER_LINE = f"{LINE}1"
_AUTOMATIC = re.compile(r"\b[89a-f][0-9a-f]{3}:")
"""Handles that the kernel gives by itself."""
_PASSING = re.compile(
    r"\b(refcnt \d+|direct_packets_stat \d+|ref \d+|bind \d+|index \d+)|(?<=police )0x[0-9a-f]+|fh [0-9a-f:]+"
    r"|\[[^\]]*\]"
)
"""Words of a listing that differ between equal configurations."""
_CLASS = re.compile(
    r"^class (?P<kind>\S+) (?P<handle>\S+) (?:root|parent (?P<parent>\S+)) .*\n"
    r" Sent (?P<bytes>\d+) bytes (?P<packets>\d+) pkt \(dropped (?P<drops>\d+), overlimits (?P<overlimits>\d+) .*\n"
    r"(?:.*\n)??"
    r" backlog (?P<backlog>\d+)b (?P<qlen>\d+)p",
    re.MULTILINE,
)
"""A class in `tc -s class show`; tc prints a large backlog as `12Kb` only without -s."""
_CLASS_NUMBERS = ("bytes", "packets", "drops", "overlimits", "backlog", "qlen")
CONFIGURED = ("htb", "hfsc", "drr", "qfq", "ets")
"""Kinds of classes that commands make; those of other qdiscs are their flows and bands, which come and go."""
_FLOW = re.compile(rf"class (?!(?:{'|'.join(CONFIGURED)}) )")
_FAILED = re.compile(r"^Command failed -:(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """The line behind an interface of a lab."""

    rate_bps: int
    """Rate of bytes on the wire."""
    overhead_bytes: int
    """Added to the frame that the kernel sees to give its bytes on the wire."""
    minimum_bytes: int
    """Least bytes of a frame on the wire."""
    burst_bytes: int


class RefusedCommandError(DeviceError):
    """A command that tc or the kernel rejects."""

    def __init__(self, index: int, command: str, said: str) -> None:
        """`index` counts the commands from 0."""
        super().__init__(f'tc refused "tc {command}": {said}')
        self.index, self.command, self.said = index, command, said


class Qdiscs:
    """The qdiscs, classes and filters of some interfaces; no others are touched."""

    def __init__(self, run: Run, interfaces: Sequence[str], lines: Mapping[str, Line] | None = None) -> None:
        """`lines` are the lines of those interfaces that need a rate."""
        self._run = run
        self.interfaces = tuple(interfaces)
        self._lines = dict(lines or {})

    def refuse_foreign(self) -> None:
        """Raise `DeviceError` if an interface has a qdisc that somebody configured, or offloads are on."""
        for interface in self.interfaces:
            for each in self._json(["tc", "-j", "qdisc", "show", "dev", interface]):
                if each["handle"] not in ("0:", LINE):
                    raise DeviceError(
                        f"{interface} has the qdisc {each['kind']} {each['handle']}, expected none but the default",
                        hint=f"Remove it if it is not needed: tc qdisc del dev {interface} root",
                    )
            self._refuse_offloads(interface)

    def _refuse_offloads(self, interface: str) -> None:
        status, output, said = self._run(["ethtool", "-k", interface], "")
        if status != 0:
            raise DeviceError(f"ethtool -k {interface}: {(said or output).strip()}", hint="Install ethtool there.")
        names = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
        on = [name for name in names if re.search(rf"^{name}: on", output, re.MULTILINE)]
        if on:
            raise DeviceError(
                f"{interface} has {', '.join(on)} on, expected off: qdiscs would see segments of 64 KiB as one packet",
                hint=f"ethtool -K {interface} tso off gso off gro off",
            )

    def line_commands(self) -> list[str]:
        """Return the commands that give the interfaces their line rates."""
        commands = []
        for interface, line in self._lines.items():
            burst = line.burst_bytes
            commands += [
                f"qdisc add dev {interface} root handle {LINE} htb default 1",
                f"class add dev {interface} parent {LINE} classid {UNDER_LINE} htb rate {line.rate_bps}bit "
                f"ceil {line.rate_bps}bit burst {burst} cburst {burst} overhead {line.overhead_bytes} "
                f"mpu {line.minimum_bytes} quantum 1514",
            ]
        return commands

    def placed(self, words: Sequence[str]) -> list[str]:
        """Return a command with its root below the line of its interface."""
        words = list(words)
        interface = words[words.index("dev") + 1]
        if words[0] == "qdisc" and interface in self._lines and "root" in words:
            at = words.index("root")
            words[at : at + 1] = ["parent", UNDER_LINE]
        return words

    def try_out(self, commands: Sequence[Sequence[str]]) -> str:
        """Run the commands on interfaces of a new network namespace, and return the listing that results.

        `RefusedCommandError` names the first command that is rejected, with the words of tc.
        """
        links = []
        for number, name in enumerate(self.interfaces):
            links += [f"link add {name} type veth peer name qoslab{number}", f"link set {name} up"]
            links.append(f"link set qoslab{number} up")
        texts = [f"{line}\n" for line in ("\n".join(links), self._batch(commands).rstrip("\n"), self._show(commands))]
        # A starting process is what takes time in user-mode Linux.
        script = 'set -e; printf %s "$0" | ip -batch -; printf %s "$1" | tc -batch - >&2; printf %s "$2" | tc -batch -'
        status, output, said = self._run(["unshare", "--net", "sh", "-c", script, *texts], "")
        if status != 0:
            self._explain(commands, said)
        return _meaning(output)

    def apply(self, commands: Sequence[Sequence[str]]) -> None:
        """Replace everything on the interfaces by these commands, which a trial has accepted."""
        self.clear()
        status, _, said = self._run(["tc", "-batch", "-"], self._batch(commands))
        if status != 0:
            self._explain(commands, said)

    def clear(self) -> None:
        """Remove the qdiscs of the interfaces; their default ones remain."""
        lines = [f"qdisc del dev {name} {place}\n" for name in self.interfaces for place in ("root", "ingress")]
        # It fails for what is not there.
        self._run(["tc", "-force", "-batch", "-"], "".join(lines))

    def listing(self, commands: Sequence[Sequence[str]]) -> str:
        """Return the state of the interfaces in the form of `try_out`, with the filters of these commands' qdiscs."""
        status, output, said = self._run(["tc", "-batch", "-"], f"{self._show(commands)}\n")
        if status != 0:
            raise DeviceError(f"the qdiscs cannot be read: {said.strip()}")
        return _meaning(output)

    def counters(self, commands: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Return the counters by interface, `qdiscs` as tc prints them and `classes`, and the time.

        `time_ns` is the realtime clock in the middle of reading.
        """
        before = time.time_ns()
        shown = "".join(f"qdisc show dev {name}\n" for name in self.interfaces)
        status, output, said = self._run(["tc", "-s", "-j", "-batch", "-"], shown)
        if status != 0:
            raise DeviceError(f"the counters of the qdiscs cannot be read: {said.strip()}")
        found: dict[str, Any] = {name: {"qdiscs": [], "classes": []} for name in self.interfaces}
        for name, each in zip(self.interfaces, _arrays(output), strict=True):
            found[name]["qdiscs"] = each
        with_classes = [name for name in self.interfaces if any(_is_class_of(name, each) for each in commands)]
        for name in with_classes:
            # tc 6.1 prints no JSON of HTB's classes.
            status, output, said = self._run(["tc", "-s", "class", "show", "dev", name], "")
            if status != 0:
                raise DeviceError(f"the counters of the classes cannot be read: {said.strip()}")
            found[name]["classes"] = list(_classes(output))
        return {"time_ns": (before + time.time_ns()) // 2, "interfaces": found}

    def _show(self, commands: Sequence[Sequence[str]]) -> str:
        """Return the commands that list qdiscs and classes, and the filters at qdiscs with handles."""
        lines = [f"{what} show dev {name}" for name in self.interfaces for what in ("qdisc", "class")]
        for words in commands:
            if words[0] == "filter":
                interface = words[words.index("dev") + 1]
                place = next((word for word in ("ingress", "egress") if word in words), None)
                at = place or f"parent {words[words.index('parent') + 1]}"
                lines.append(f"filter show dev {interface} {at}")
        return "\n".join(dict.fromkeys(lines))

    def _batch(self, commands: Sequence[Sequence[str]]) -> str:
        return "".join(f"{line}\n" for line in [*self.line_commands(), *(shlex.join(self.placed(e)) for e in commands)])

    def _explain(self, commands: Sequence[Sequence[str]], said: str) -> None:
        failed = _FAILED.search(said)
        index = int(failed[1]) - 1 - len(self.line_commands()) if failed else -1
        # After its complaint tc prints all options of a kind.
        words = " ".join(_FAILED.sub("", said).partition("Usage:")[0].split())
        if 0 <= index < len(commands):
            raise RefusedCommandError(index, " ".join(commands[index]), words)
        raise DeviceError(f"tc failed: {words}")

    def _json(self, argv: Sequence[str]) -> list[dict[str, Any]]:
        status, output, said = self._run(argv, "")
        if status != 0:
            raise DeviceError(f"{' '.join(argv)}: {said.strip()}")
        found = _parsed(output)
        return [] if found is None else found


def _is_class_of(interface: str, words: Sequence[str]) -> bool:
    return words[0] == "class" and words[words.index("dev") + 1] == interface


def _arrays(text: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the JSON arrays that follow one another in a text."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("[", at)) >= 0:
        found, at = decoder.raw_decode(text, at)
        yield [each for each in found if each]


def _parsed(text: str) -> list[dict[str, Any]] | None:
    try:
        found: list[dict[str, Any]] = json.loads(text or "[]")
    except ValueError:
        return None
    return [each for each in found if each]


def _classes(text: str) -> Iterator[dict[str, Any]]:
    """Yield the counters of each class of `tc -s class show`."""
    for found in _CLASS.finditer(text):
        if found["kind"] not in CONFIGURED:
            continue
        numbers = {name: int(found[name]) for name in _CLASS_NUMBERS}
        yield {"kind": found["kind"], "handle": found["handle"], "parent": found["parent"], **numbers}


def _meaning(listing: str) -> str:
    """Return a listing without what differs between equal configurations: numbers given by the kernel, references."""
    handles: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        return handles.setdefault(found[0], f"auto{len(handles)}:")

    lines = (_PASSING.sub("", line) for line in listing.splitlines() if not _FLOW.match(line))
    return "\n".join(" ".join(_AUTOMATIC.sub(renamed, line).split()) for line in lines) + "\n"
