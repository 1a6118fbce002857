"""Qdiscs of a set of interfaces: trial, change by difference, verification, counters and restoration.

Commands are those of tc(8) without the word `tc`. A trial runs them in a separate network namespace, on interfaces of
the same names: a parameter that tc or the kernel rejects is found before an interface changes, and the state of the
trial is the expected state of the real interfaces. Each kind of qdisc is thus compared by its meaning, in the kernel's
own output, and needs no code here.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from qoslab.errors import DeviceError
from qoslab.tc.command_difference import command_difference, command_place

Run = Callable[[Sequence[str], str], tuple[int, str, str]]
"""Runs a command in a kernel with this standard input; returns exit status, standard output and error."""
Commands = Sequence[Sequence[str]]

_AUTOMATIC = re.compile(r"\b[89a-f][0-9a-f]{3}:")
"""Handles that the kernel assigns automatically."""
_VOLATILE_WORDS = re.compile(
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
_FLOW_DELAY = re.compile(
    r"^class fq_codel \S+ parent (?P<qdisc>\S+) *\n(?: .*\n)*? .* ldelay (?P<number>[\d.]+)(?P<unit>\w+)$", re.MULTILINE
)
"""The delay of the last packet of a flow of FQ-CoDel, which only flows with packets have."""
_TIMES = {"us": 1, "ms": 1_000, "s": 1_000_000}
"""Microseconds of the units of tc."""
_CLASS_NUMBERS = ("bytes", "packets", "drops", "overlimits", "backlog", "qlen")
CONFIGURED_CLASS_KINDS = ("htb", "hfsc", "drr", "qfq", "ets")
"""Kinds of classes that commands create; the classes of other qdiscs are their transient flows and bands."""
_DEFAULT = re.compile(r"qdisc \S+ 0: ")
"""A default qdisc, which depends on the interface: that of a NIC has a queue for each hardware queue."""
_FLOW = re.compile(rf"class (?!(?:{'|'.join(CONFIGURED_CLASS_KINDS)}) )")
_COUNTERS = """\
tc -s -j -batch -
for device in "$0" "$@"; do printf '\\f'; tc -s class show dev "$device"; done
"""
"""Prints JSON, then the classes of each interface after a form feed: tc 6.1 prints no JSON for HTB classes."""
TRIAL_REFUSED = 99
_TRIAL = f"""\
set -e
printf %s "$0" | ip -batch - || exit {TRIAL_REFUSED}
printf %s "$1" | tc -batch - >&2
printf %s "$2" | tc -batch -
"""
"""Creates the interfaces, executes the commands, and prints the result."""
_FAILED = re.compile(r"^Command failed -:(\d+)\s*$", re.MULTILINE)


class RefusedCommandError(DeviceError):
    """A command that tc or the kernel rejects."""

    def __init__(self, index: int, command: str, errors: str) -> None:
        """`index` counts the commands from 0."""
        super().__init__(f'tc refused "tc {command}": {errors}')
        self.index, self.command, self.errors = index, command, errors


class InterfaceQdiscs:
    """The qdiscs, classes and filters of some interfaces; no others are touched."""

    def __init__(self, run: Run, interfaces: Sequence[str]) -> None:
        self._run = run
        self.interfaces = tuple(interfaces)
        self._commands: list[list[str]] = []
        """The active commands."""
        self._state = ""
        """Listing of the interfaces after the last configuration; empty before the first one."""
        self._trial_links: list[str] = []
        """Commands of ip(8) for the interfaces of a trial; empty before the first one."""

    def refuse_foreign(self) -> None:
        """Raise `DeviceError` if an interface has a configured qdisc, or offloads are on."""
        for error in self.obstacles():
            raise error

    def obstacles(self) -> Iterator[DeviceError]:
        """Yield an error for each configured qdisc of an interface, and for offloads that are on.

        Raise `DeviceError` if an interface does not exist.
        """
        self._trial_links = list(self._link_commands())
        for interface in self.interfaces:
            for each in self._run_json(["tc", "-j", "qdisc", "show", "dev", interface]):
                if each["handle"] != "0:":
                    place = each["kind"] if each["kind"] in ("ingress", "clsact") else "root"
                    yield DeviceError(
                        f"{interface} has the qdisc {each['kind']} {each['handle']}, expected only the default",
                        hint=f"Remove it if it is not needed: tc qdisc del dev {interface} {place}",
                    )
            yield from self._find_offloads(interface)

    def _find_offloads(self, interface: str) -> Iterator[DeviceError]:
        status, output, errors = self._run(["ethtool", "-k", interface], "")
        if status != 0:
            yield DeviceError(f"ethtool -k {interface}: {(errors or output).strip()}", hint="Install ethtool there.")
        names = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
        on = [name for name in names if re.search(rf"^{name}: on", output, re.MULTILINE)]
        if on:
            yield DeviceError(
                f"{interface} has {', '.join(on)} on, expected off: qdiscs would see segments of 64 KiB as one packet",
                hint=f"ethtool -K {interface} tso off gso off gro off",
            )

    def configure(self, commands: Commands) -> list[list[str]]:
        """Replace the active commands; return the executed commands.

        Raise `RefusedCommandError` for the first rejected command, before an interface changes. Raise `DeviceError` if
        the kernel's resulting state is different; the interfaces then have their default qdiscs.
        """
        wanted = [list(each) for each in commands]
        expected = self.try_out(wanted)
        try:
            steps = self._change(wanted, expected)
            if steps is None:
                self._remove()
                self._run_batch(wanted)
                steps, self._state = wanted, self.listing(wanted)
            self._commands = wanted
            if self._state != expected:
                missing = sorted(set(expected.splitlines()) - set(self._state.splitlines()))
                found = sorted(set(self._state.splitlines()) - set(expected.splitlines()))
                raise DeviceError(f"the kernel accepted the commands but shows {found}, expected {missing}")
        except BaseException:
            self.restore()
            raise
        return steps

    def _change(self, wanted: list[list[str]], expected: str) -> list[list[str]] | None:
        """Execute the difference to the wanted state and return it; None if everything must be replaced."""
        found = command_difference(self._commands, wanted) if self.is_as_configured() else None
        if not found:
            return None if found is None else []
        steps = [list(each) for each in found]
        try:
            self._run_batch(steps)
        except RefusedCommandError:
            # A parameter that cannot change.
            return None
        self._state = self.listing(wanted)
        return steps if self._state == expected else None

    def try_out(self, commands: Commands) -> str:
        """Run commands on interfaces of a new network namespace, and return the listing that results.

        Raise `RefusedCommandError` for the first rejected command, with the message of tc.
        """
        if not self._trial_links:
            self._trial_links = list(self._link_commands())
        texts = [
            "".join(f"{line}\n" for line in self._trial_links),
            _batch_input(commands),
            f"{self._show(commands)}\n",
        ]
        # Starting a process is the slow part in user-mode Linux.
        status, output, errors = self._run(["unshare", "--net", "sh", "-c", _TRIAL, *texts], "")
        if status == TRIAL_REFUSED or "unshare:" in errors:
            raise DeviceError(
                f"the commands cannot be tried in a network namespace: {_FAILED.sub('', errors).strip()}",
                hint="It needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN.",
            )
        if status != 0:
            _explain(commands, errors)
        return _comparable_listing(output)

    def _link_commands(self) -> Iterator[str]:
        """Yield the commands that make interfaces like these; default parameters depend on their MTU and queue."""
        links = {each["ifname"]: each for each in self._run_json(["ip", "-j", "link", "show"])}
        for number, name in enumerate(self.interfaces):
            if name not in links:
                raise DeviceError(
                    f"found no interface {name}, expected one of {', '.join(links)}",
                    hint="Name the device of each interface of the experiment, in an inventory by qoslab_interfaces.",
                )
            like = f"mtu {links[name]['mtu']} txqueuelen {links[name].get('txqlen', 0)}"
            yield f"link add {name} {like} type veth peer name qoslab{number}"
            yield from (f"link set {each} up" for each in (name, f"qoslab{number}"))

    def _run_batch(self, commands: Commands) -> None:
        if not commands:
            return
        status, _, errors = self._run(["tc", "-batch", "-"], _batch_input(commands))
        if status != 0:
            _explain(commands, errors)

    def is_as_configured(self) -> bool:
        """Return whether the interfaces are still as last configured; False before the first configuration."""
        return bool(self._state) and self.listing(self._commands) == self._state

    def reset(self) -> None:
        """Reapply the active configuration, so that queues are empty and counters zero."""
        self._remove()
        self._run_batch(self._commands)

    def restore(self) -> None:
        """Remove the qdiscs of the interfaces; the default qdiscs remain."""
        self._remove()
        self._commands, self._state = [], ""

    def _remove(self) -> None:
        lines = [
            f"qdisc del dev {name} {place}\n" for name in self.interfaces for place in ("root", "ingress", "clsact")
        ]
        # It fails if there is no qdisc.
        self._run(["tc", "-force", "-batch", "-"], "".join(lines))

    def listing(self, commands: Commands) -> str:
        """Return the state of the interfaces in the form of `try_out`, with the filters of these commands' qdiscs."""
        status, output, errors = self._run(["tc", "-batch", "-"], f"{self._show(commands)}\n")
        if status != 0:
            raise DeviceError(f"cannot read the qdiscs: {errors.strip()}")
        return _comparable_listing(output)

    def counters(self, hooks: Iterable[tuple[str, str]] = (), *, classes: bool = True) -> dict[str, Any]:
        """Return the time, and the counters by interface: `qdiscs` as tc prints them, `classes` and `filters`.

        `hooks` are the interfaces and hooks, `ingress` or `egress`, whose filters to read; `classes` is true to read
        classes too. `time_ns` is the realtime clock in the middle of reading.
        """
        before = time.time_ns()
        hooks = list(hooks)
        shown = [f"qdisc show dev {name}" for name in self.interfaces]
        shown += [f"filter show dev {name} {hook}" for name, hook in hooks]
        with_classes = [
            name
            for name in self.interfaces
            if any((classes and each[0] == "class") or "fq_codel" in each for each in self._interface_commands(name))
        ]
        batch = "".join(f"{each}\n" for each in shown)
        # Starting a process is the slow part in user-mode Linux.
        alone = ["tc", "-s", "-j", "-batch", "-"]
        argv, text = (["sh", "-ec", _COUNTERS, *with_classes], batch) if with_classes else (alone, batch)
        status, output, errors = self._run(argv, text)
        if status != 0:
            raise DeviceError(f"cannot read the counters of the qdiscs: {errors.strip()}")
        printed, *texts = output.split("\f")
        arrays = list(_json_arrays(printed))
        found: dict[str, Any] = {name: {"qdiscs": [], "classes": [], "filters": []} for name in self.interfaces}
        for name, each in zip(self.interfaces, arrays, strict=False):
            found[name]["qdiscs"] = each
        for (name, hook), each in zip(hooks, arrays[len(self.interfaces) :], strict=True):
            found[name]["filters"] += _filter_counters(hook, each)
        for name, text in zip(with_classes, texts, strict=True):
            found[name]["classes"] = list(_class_counters(text)) if classes else []
            _add_delays(found[name]["qdiscs"], text)
        return {"time_ns": (before + time.time_ns()) // 2, "interfaces": found}

    def _interface_commands(self, interface: str) -> list[list[str]]:
        return [each for each in self._commands if each[each.index("dev") + 1] == interface]

    def _show(self, commands: Commands) -> str:
        """Return the commands that list qdiscs and classes, and the filters at qdiscs with handles."""
        lines = [f"{what} show dev {name}" for name in self.interfaces for what in ("qdisc", "class")]
        for words in commands:
            if words[0] == "filter":
                place = command_place(words)
                at = place.get("hook") or f"parent {place['parent']}"
                lines.append(f"filter show dev {place['dev']} {at}")
        return "\n".join(dict.fromkeys(lines))

    def _run_json(self, argv: Sequence[str]) -> list[dict[str, Any]]:
        status, output, errors = self._run(argv, "")
        if status != 0:
            raise DeviceError(f"{' '.join(argv)}: {errors.strip()}")
        found = _parse_listing(output)
        return [] if found is None else found


def _batch_input(commands: Commands) -> str:
    return "".join(f"{shlex.join(each)}\n" for each in commands)


def _explain(commands: Commands, errors: str) -> None:
    failed = _FAILED.search(errors)
    index = int(failed[1]) - 1 if failed else -1
    # After an error message tc prints all options of a kind. Warnings may be about commands that succeeded.
    lines = _FAILED.sub("", errors).partition("Usage:")[0].splitlines()
    words = " ".join(" ".join(each for each in lines if not each.startswith("Warning: ")).split())
    if 0 <= index < len(commands):
        raise RefusedCommandError(index, " ".join(commands[index]), words)
    raise DeviceError(f"tc failed: {words}")


def _filter_counters(hook: str, printed: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the counters of the actions of filters."""
    for each in printed:
        actions = each.get("options", {}).get("actions", ())
        if actions:
            counted = [
                {"kind": one["kind"]}
                | {name: one["stats"][name] for name in ("packets", "bytes", "drops", "overlimits")}
                for one in actions
            ]
            yield {"hook": hook, "chain": each.get("chain", 0), "pref": each["pref"], "actions": counted}


def _add_delays(qdiscs: Iterable[dict[str, Any]], text: str) -> None:
    """Add the greatest delay of its flows, in microseconds, to each FQ-CoDel; `text` is `tc -s class show`."""
    for flow in _FLOW_DELAY.finditer(text):
        delay = round(float(flow["number"]) * _TIMES[flow["unit"]])
        for each in qdiscs:
            if each["kind"] == "fq_codel" and each["handle"] == flow["qdisc"]:
                each["ldelay"] = max(delay, each.get("ldelay", 0))


def _json_arrays(text: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the consecutive JSON arrays in a text."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("[", at)) >= 0:
        found, at = decoder.raw_decode(text, at)
        yield [each for each in found if each]


def _parse_listing(text: str) -> list[dict[str, Any]] | None:
    try:
        found: list[dict[str, Any]] = json.loads(text or "[]")
    except ValueError:
        return None
    return [each for each in found if each]


def _class_counters(text: str) -> Iterator[dict[str, Any]]:
    """Yield the counters of each class of `tc -s class show`."""
    for found in _CLASS.finditer(text):
        if found["kind"] not in CONFIGURED_CLASS_KINDS:
            continue
        numbers = {name: int(found[name]) for name in _CLASS_NUMBERS}
        yield {"kind": found["kind"], "handle": found["handle"], "parent": found["parent"], **numbers}


def _comparable_listing(listing: str) -> str:
    """Return a listing without the parts that vary between equal configurations.

    These are the order of objects, numbers assigned by the kernel, reference counts, and default qdiscs.
    """
    handles: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        return handles.setdefault(found[0], f"auto{len(handles)}:")

    objects: list[str] = []
    for line in listing.splitlines():
        if _FLOW.match(line) or _DEFAULT.match(line) or not line.strip():
            continue
        text = " ".join(_AUTOMATIC.sub(renamed, _VOLATILE_WORDS.sub("", line)).split())
        if line[0].isspace() and objects:
            objects[-1] += f"\n  {text}"
        else:
            objects.append(text)
    return "\n".join(sorted(objects)) + "\n"
