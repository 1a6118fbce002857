"""Measure the requests of a cell to a router of platform tc; print a section for docs/internals/performance.md.

    python benches/kernel_router.py [--rounds 5] [--write]

A cell with the engine differs from one with a kernel by these requests: the configuration is read, tried, applied, read
back twice and made once more with empty queues; counters are read once a second. The engine answers each within
milliseconds. The policies are an HTB with a FIFO of tc commands in a namespace, and the IOS policy of `ios-and-kernel`
in user-mode Linux, whose start is a part of the lab's. Needs root and the Debian package user-mode-linux.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import page

from qoslab.platforms.kernel_router import kernel_config
from qoslab.schema import configuration_text, load_sweep
from qoslab.tc.daemon import KernelRouter, guest_runner, namespace_runner
from qoslab.tc.user_mode_linux import UserModeKernel

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## Routers with a kernel"
EXPERIMENT = ROOT / "experiments" / "ios-and-kernel.yml"
LINKS = """\
for name in eth0 eth1; do
    ip link add $name type veth peer name far-$name
    ip link set $name up; ip link set far-$name up
    ethtool -K $name tso off gso off gro off
done
"""
COMMANDS = """\
tc qdisc add dev eth1 root handle 1: htb default 1
tc class add dev eth1 parent 1: classid 1:1 htb rate 2mbit
tc qdisc add dev eth1 parent 1:1 handle 10: pfifo limit 20
"""
CELL = ("config", "configure", "config", "clear")
"""Requests of a cell before its traffic."""


@contextlib.contextmanager
def namespace() -> Iterator[str]:
    """A network namespace, as a path, with two interfaces."""
    script = f"{LINKS}echo ready; exec sleep infinity"
    with subprocess.Popen(["unshare", "--net", "sh", "-ec", script], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            while holder.stdout.readline().strip() != "ready":
                pass
            yield f"/proc/{holder.pid}/ns/net"
        finally:
            holder.kill()


def time_command(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def measure(router: KernelRouter, text: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each kind of request, and of all requests of a cell, in each round."""
    topology = load_sweep(EXPERIMENT, {}).experiment.topology
    config = kernel_config(topology, "linux", text).as_config()
    empty: dict[str, Any] = {"format": 1, "router": "linux", "commands": []}
    router.start(())
    found: dict[str, list[float]] = {name: [] for name in ("configure", "config", "clear", "counters", "cell")}
    for _ in range(rounds):
        router.handle({"op": "configure", "config": empty})
        took = 0.0
        for name in CELL:
            seconds = time_command(lambda name=name: router.handle({"op": name, "config": config}))  # type: ignore[misc]
            found[name].append(seconds)
            took += seconds
        found["cell"].append(took)
        found["counters"].append(time_command(lambda: router.handle({"op": "counters"})))
    return found


def rows(rounds: int) -> Iterator[str]:
    """The table."""
    yield "| kernel | policy | configure, s | read back, s | clear, s | all before the traffic, s | counters, s |"
    yield "|" + "---|" * 7
    interfaces: dict[str, Any] = {name: {"line": None} for name in ("eth0", "eth1")}

    def row(place: str, policy: str, found: dict[str, list[float]]) -> str:
        shown = [
            f"{statistics.median(found[name]):.2f}" for name in ("configure", "config", "clear", "cell", "counters")
        ]
        return f"| {place} | {policy} | {' | '.join(shown)} |"

    with namespace() as path:
        yield row(
            "this machine's",
            "HTB and FIFO",
            measure(KernelRouter("linux", namespace_runner(path), interfaces), COMMANDS, rounds),
        )
    experiment = load_sweep(EXPERIMENT, {}).experiment
    text = configuration_text(EXPERIMENT, experiment, experiment.arm("kernel"))["linux"]
    begun = time.monotonic()
    with UserModeKernel() as kernel:
        started = time.monotonic() - begun
        run = guest_runner(kernel)
        run(["sh", "-ec", LINKS], "")
        yield row("user-mode Linux", "IOS", measure(KernelRouter("linux", run, interfaces), text, rounds))
    yield ""
    yield f"User-mode Linux started in {started:.1f} s, in parallel with the rest of the lab."


def main() -> None:
    """Reads the arguments and prints or writes the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    arguments = parser.parse_args()
    head = page.head("Source: `benches/kernel_router.py`; its docstring describes the measurement. Medians.")
    section = "\n".join([HEADING, "", head, "", *rows(arguments.rounds), ""])
    page.print_summary(section, write_it=arguments.write)


if __name__ == "__main__":
    main()
