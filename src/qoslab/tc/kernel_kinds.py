"""Kinds of qdiscs, filters and actions that a kernel has.

Each kind is tried in a separate network namespace, since no file lists the built-in kinds of a kernel. A trial also
loads modules if the machine allows it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from qoslab.errors import MachineError
from qoslab.system.programs import python_module_command

QDISCS: dict[str, str] = {
    "bfifo": "limit 10000",
    "cake": "bandwidth 1mbit",
    "choke": "limit 100 bandwidth 1mbit",
    "codel": "",
    "drr": "",
    "ets": "bands 2",
    "fq": "",
    "fq_codel": "",
    "fq_pie": "",
    "gred": "setup DPs 2 default 0",
    "hfsc": "",
    "hhf": "",
    "htb": "",
    "netem": "delay 1ms",
    "pfifo": "limit 100",
    "pfifo_fast": "",
    "pie": "",
    "prio": "",
    "qfq": "",
    "red": "limit 100000 avpkt 1000 bandwidth 1mbit",
    "sfb": "",
    "sfq": "",
    "skbprio": "",
    "tbf": "rate 1mbit burst 10000 limit 10000",
    "clsact": "",
    "ingress": "",
}
"""Qdiscs by kind, with the minimum of parameters that tc requires."""
EARLY_DROPS: dict[str, Literal["random", "aqm"]] = {
    "cake": "aqm",
    "choke": "random",
    "codel": "aqm",
    "fq_codel": "aqm",
    "fq_pie": "aqm",
    "gred": "random",
    "pie": "aqm",
    "red": "random",
    "sfb": "random",
}
"""Qdiscs that drop before they are full, with the reason of these drops: at random by the depth of the queue, or active
management by the delay.
"""
INGRESS_QDISC = ("clsact", "ingress")

FILTERS: dict[str, str] = {
    "basic": "classid 1:1",
    "bpf": "bytecode '1,6 0 0 4294967295' classid 1:1",
    "cgroup": "",
    "flow": "map key dst divisor 4",
    "flower": "classid 1:1",
    "fw": "classid 1:1",
    "matchall": "classid 1:1",
    "route": "from 1 classid 1:1",
    "u32": "match u32 0 0 classid 1:1",
}
"""Filters by kind, on a qdisc with classes."""

ACTIONS: dict[str, str] = {
    "connmark": "",
    "csum": "ip",
    "ctinfo": "dscp 0xfc000000 0x01000000",
    "gact": "ok",
    "ife": "encode allow mark",
    "mirred": "egress redirect dev lo",
    "pedit": "munge offset 0 u8 set 0",
    "police": "rate 1mbit burst 10000 drop",
    "sample": "rate 10 group 1",
    "skbedit": "priority 1",
    "skbmod": "swap mac",
    "tunnel_key": "unset",
    "vlan": "pop",
}
"""Actions by kind, on a filter that matches everything."""
_CARRIERS = ("matchall", "u32 match u32 0 0", "basic")
_HANDLES = {"fw": ("handle", "1"), "cgroup": ("handle", "1"), "flow": ("handle", "1")}
CLASSFUL_QDISCS = ("htb", "prio", "drr", "hfsc")
"""Qdiscs to which filters can be attached; the first one that the kernel has is used."""
DEVICE = "qoslab-probe"
NOT_PERMITTED = "Operation not permitted"
_UNKNOWN = re.compile(
    r"unknown|not found|not supported|no such file or directory|failed to load|unspecific|can't find", re.IGNORECASE
)
"""Error messages of tc if the kernel or tc lacks the kind. Other errors are about parameters."""
MODULE_PREFIXES = {"qdisc": "sch", "filter": "cls", "action": "act"}
MODULE_NAMES = {"pfifo": "", "bfifo": "", "pfifo_fast": "", "clsact": "sch_ingress"}
"""Modules not named by prefix and kind; empty if part of every kernel with traffic control."""

Run = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a command in the kernel; returns its exit status and its output, standard error included."""


@dataclass(frozen=True)
class KernelKinds:
    """Kinds that a kernel has."""

    release: str
    qdiscs: frozenset[str]
    filters: frozenset[str]
    actions: frozenset[str]


def kernel_module(what: str, kind: str) -> str:
    """Return the kernel module of a kind; empty if it has none."""
    return MODULE_NAMES.get(kind, f"{MODULE_PREFIXES[what]}_{kind}")


def kind_and_module(what: str, kind: str) -> str:
    """Return the name of a kind and of its kernel module."""
    module = kernel_module(what, kind)
    return f"{what} {kind}" + (f" (module {module})" if module else "")


def run_command(argv: Sequence[str]) -> tuple[int, str]:
    """Run a command in this process's own network namespace."""
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    return done.returncode, done.stdout + done.stderr


def probe(run: Run = run_command) -> KernelKinds:
    """Try every kind in the network namespace of `run`, on the loopback interface if there are no dummy devices.

    This removes the qdiscs of that namespace's loopback interface: use `probe_machine` for the running kernel. Raise
    `MachineError` without the permission to set qdiscs.
    """
    release = run(["uname", "-r"])[1].strip()
    dummy = run(["ip", "link", "add", DEVICE, "type", "dummy"])[0] == 0
    on = ["dev", DEVICE if dummy else "lo"]

    def accepts(*argv: str) -> bool:
        status, errors = run(["tc", *argv])
        if status != 0 and NOT_PERMITTED in errors:
            raise MachineError(
                f"tc {' '.join(argv)}: {errors.strip()}", hint="It needs CAP_NET_ADMIN in its namespace."
            )
        return status == 0 or _UNKNOWN.search(errors) is None

    def clear() -> None:
        for place in ("root", "ingress"):
            run(["tc", "qdisc", "del", *on, place])

    qdiscs, filters, actions = set(), set(), set()
    for kind, arguments in QDISCS.items():
        clear()
        place = [kind] if kind in INGRESS_QDISC else ["root", "handle", "1:", kind]
        if accepts("qdisc", "add", *on, *place, *shlex.split(arguments)):
            qdiscs.add(kind)
    clear()
    base = next((kind for kind in CLASSFUL_QDISCS if kind in qdiscs), None)
    if base is not None:
        run(["tc", "qdisc", "add", *on, "root", "handle", "1:", base])
        place = ["filter", "add", *on, "parent", "1:", "protocol", "ip", "prio"]
        for number, (kind, arguments) in enumerate(FILTERS.items(), 1):
            if accepts(*place, str(number), *_HANDLES.get(kind, ()), kind, *shlex.split(arguments)):
                filters.add(kind)
        carrier = next((each for each in _CARRIERS if each.split()[0] in filters), None)
        for number, (kind, arguments) in enumerate(ACTIONS.items() if carrier is not None else (), 100):
            if accepts(*place, str(number), *str(carrier).split(), "action", kind, *shlex.split(arguments)):
                actions.add(kind)
    clear()
    if dummy:
        run(["ip", "link", "del", DEVICE])
    return KernelKinds(release, frozenset(qdiscs), frozenset(filters), frozenset(actions))


@cache
def probe_machine() -> KernelKinds:
    """Return the kinds of the running kernel, tried in a new network namespace.

    Raise `MachineError` without root or user namespaces.
    """
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    argv = [*own, *python_module_command("qoslab.tc.kernel_kinds")]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise MachineError(f"the kernel's queueing disciplines cannot be tried: {lines[-1] if lines else argv[0]}")
    found = json.loads(done.stdout)
    return KernelKinds(found["release"], *(frozenset(found[key]) for key in ("qdiscs", "filters", "actions")))


def read_module_kinds(modules: Path) -> KernelKinds:
    """Return the kinds of a kernel by its modules in this folder, whose name is the kernel's release."""
    names = {path.stem.replace("-", "_") for path in (modules / "kernel/net/sched").glob("*.ko*")}
    found = {
        what: frozenset(
            kind
            for kind in kinds
            if kernel_module(what, kind) == "" or kernel_module(what, kind).replace("-", "_") in names
        )
        for what, kinds in (("qdisc", QDISCS), ("filter", FILTERS), ("action", ACTIONS))
    }
    return KernelKinds(modules.name, found["qdisc"], found["filter"], found["action"])


def main() -> None:
    """Print the kinds of the kernel as JSON, tried in this process's network namespace."""
    found = probe()
    lists = {key: sorted(getattr(found, key)) for key in ("qdiscs", "filters", "actions")}
    print(json.dumps({"release": found.release, **lists}))


if __name__ == "__main__":
    main()
