"""`qoslab doctor`: check of this machine for the requirements of qoslab."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from qoslab.cli.options import json_option
from qoslab.errors import ExitStatus, QoslabError
from qoslab.system.extras import PURPOSE, how_to_get, lacking, packages
from qoslab.system.packages import how_to_install
from qoslab.system.plugins import KINDS, ONE, PluginError, Registry, installed, package_of
from qoslab.system.printing import echo
from qoslab.system.programs import OWN_PROGRAMS, SIMULATOR, own_program
from qoslab.traffic import INSTALLED

if TYPE_CHECKING:
    from qoslab.virtual_lab import Lab

State = Literal["ok", "missing", "optional"]
"""Result of a check. `optional`: missing, and only needed for the uses in `what_to_do`."""

RUST_MINIMUM = (1, 85)
DISK_MINIMUM = 1_000_000_000
"""Minimum free bytes in the working directory: enough for some runs of the longest experiments, captures included."""
PATIENCE = 20.0
"""Timeout of version commands in seconds."""

MODERN_QDISCS = ("cake", "codel", "fq_codel", "pie", "red", "sfq")
"""Qdiscs that experiments with a Linux router often use."""

TOOLS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    *((name, ("--version",), name, "required") for name in INSTALLED),
    ("dumpcap", ("--version",), "tshark", "required"),
    ("tshark", ("--version",), "tshark", "required"),
    ("nsenter", ("--version",), "util-linux", "required"),
    ("setpriv", ("--version",), "util-linux", "required"),
    ("env", ("--version",), "coreutils", "required"),
    ("ssh", ("-V",), "openssh-client", "required"),
    ("ip", ("-V",), "iproute2", "required"),
    ("tc", ("-V",), "iproute2", "optional: for tc routers, and to inspect queues in `qoslab lab shell`"),
    ("ethtool", ("--version",), "ethtool", "optional: the tests use it to read offload settings"),
)
"""Program, its version option, its Debian package, and its use."""


@dataclass(frozen=True)
class Check:
    """Result of one check."""

    name: str
    state: State
    found: str
    what_to_do: str = ""


@click.command()
@json_option
def command(as_json: bool) -> ExitStatus:
    """Check that this machine meets the requirements, and print how to install anything that is missing.

    Starts a small lab and stops it. The exit status is 0 if virtual runs work on this machine, else 2.
    """
    checks = []
    for check in examine():
        checks.append(check)
        if not as_json:
            echo(f"{check.state:<9} {check.name}: {check.found}")
            if check.state != "ok" and check.what_to_do:
                echo(f"{'':9} → {check.what_to_do}")
    failed = [check for check in checks if check.state == "missing"]
    if as_json:
        echo(json.dumps({"ok": not failed, "checks": [asdict(check) for check in checks]}, indent=2))
    elif failed:
        echo(f"{len(failed)} of {len(checks)} checks failed", err=True)
    return ExitStatus.USER_MISTAKE if failed else ExitStatus.WITHIN


def examine() -> Iterator[Check]:
    """Yield every check, in order."""
    yield from _tools()
    yield _chromium()
    yield from _rust()
    yield from _own_programs()
    yield from _python()
    yield from _plugins()
    yield _loopback()
    yield _disk()
    yield from _lab()
    yield _qdiscs()


def _version(argv: list[str]) -> str:
    """Return the first line of the version output of a tool."""
    try:
        done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not print its version: {error}"
    # Warnings, such as about running as root, go to stderr; so does the version of ssh.
    output = done.stdout.decode(errors="replace").strip() or done.stderr.decode(errors="replace").strip()
    return next(iter(output.splitlines()), "prints nothing")


def _tools() -> Iterator[Check]:
    for tool, arguments, package, need in TOOLS:
        # Administrators' tools are often not in an ordinary user's PATH.
        path = shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if path is not None:
            yield Check(tool, "ok", _version([path, *arguments]))
        elif need == "required":
            yield Check(tool, "missing", "no such program", how_to_install(package))
        else:
            yield Check(tool, "optional", "no such program", f"{need.partition(': ')[2]}: {how_to_install(package)}")


def _chromium() -> Check:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return Check("chromium", "ok", _version([path, "--version"]))
    todo = f"the report's tests need it: {how_to_install('chromium')}"
    return Check("chromium", "optional", "no such program", todo)


def _rust() -> Iterator[Check]:
    wanted = ".".join(map(str, RUST_MINIMUM))
    todo = how_to_install("rustc", "cargo")
    if shutil.which("apt-get"):
        # Debian 12 has a second, current one, Ubuntu several by number.
        todo = "Debian 12: sudo apt-get install rustc-web cargo-web; Ubuntu: rustc-1.85 cargo-1.85 or later"
    for tool in ("rustc", "cargo"):
        output = _version([tool, "--version"]) if shutil.which(tool) else "no such program"
        numbers = re.search(r"(\d+)\.(\d+)", output)
        if numbers and (int(numbers[1]), int(numbers[2])) >= RUST_MINIMUM:
            yield Check(tool, "ok", output)
        else:
            yield Check(tool, "optional", f"{output}; building the data plane needs {wanted} or later", todo)


def _own_programs() -> Iterator[Check]:
    for name in OWN_PROGRAMS:
        try:
            program = own_program(name)
        except QoslabError as error:
            yield Check(name, "optional" if name == SIMULATOR else "missing", error.message, error.hint)
        else:
            yield Check(name, "ok", f"{_version([str(program), '--version'])} at {program}")


def _python() -> Iterator[Check]:
    yield Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")
    for extra in (None, *PURPOSE):
        name = "python packages" if extra is None else f"python packages for {PURPOSE[extra]}"
        if names := lacking(extra):
            todo = f"start ./qoslab in a working copy to install them, or: {how_to_get(extra)}"
            # the check starts a virtual lab, so its requirements are not optional
            state: State = "missing" if extra in (None, "lab", "devices") else "optional"
            yield Check(name, state, f"not installed: {', '.join(names)}", todo)
        else:
            yield Check(name, "ok", ", ".join(f"{package} {metadata.version(package)}" for package in packages(extra)))


def _plugins() -> Iterator[Check]:
    """Check the plug-ins of other packages by loading each."""
    from qoslab.exchange.plugin_figures import FIGURES
    from qoslab.model.metrics import METRICS
    from qoslab.platforms import PLATFORMS
    from qoslab.traffic import TOOLS as TRAFFIC_TOOLS

    registries: dict[str, Registry[Any]] = {each.kind: each for each in (TRAFFIC_TOOLS, PLATFORMS, METRICS, FIGURES)}
    for kind in KINDS:
        for name, point in installed(kind).items():
            what, package = f"{ONE[kind]} {name}", package_of(point)
            if name in registries[kind].own:
                yield Check(
                    what, "optional", f"from {package}: the name is already used by qoslab", "give it another name"
                )
                continue
            try:
                registries[kind][name]
            except PluginError as error:
                yield Check(what, "optional", error.message, error.hint)
            else:
                yield Check(what, "ok", f"of {package}")


def _loopback() -> Check:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 2):
            return Check("loopback", "ok", "connections to 127.0.0.1 work")
    except OSError as error:
        return Check("loopback", "missing", f"127.0.0.1: {error}", "bring the loopback up: sudo ip link set lo up")


def _disk() -> Check:
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{free / 1e9:.1f} GB free in {Path.cwd()}"
    if free >= DISK_MINIMUM:
        return Check("disk", "ok", found)
    return Check("disk", "missing", found, f"free some space: at least {DISK_MINIMUM / 1e9:g} GB")


def _lab() -> Iterator[Check]:
    """Start two hosts on a link, and check that they support everything that a run needs."""
    from qoslab.model.experiment import Topology

    ends = [{"node": node, "interface": "eth0", "address": f"10.0.0.{n}/24"} for n, node in ((1, "a"), (2, "b"))]
    topology = Topology.model_validate_json(
        json.dumps(
            {
                "nodes": {"a": {"platform": "host"}, "b": {"platform": "host"}},
                "links": [{"name": "link", "rate": "100 Mb/s", "ends": ends}],
            }
        )
    )
    try:
        from qoslab.virtual_lab import Lab  # missing in an installation of the core

        lab = Lab.up(topology, name=f"doctor-{os.getpid()}")
    except QoslabError as error:
        yield Check("virtual lab", "missing", error.message, error.hint)
        return
    with lab:
        who = "with its own user namespace" if lab.describe()["user_namespace"] else "without a user namespace"
        yield Check("virtual lab", "ok", f"namespaces, veth pairs, token buckets and routes, {who}")
        yield Check("offloads", "ok", "off on every interface (read back)")
        for name, check in (("packet sockets", _packet_socket), ("capture", _capture)):
            yield _inside(name, check, lab)
        yield from _congestion(lab)


def _qdiscs() -> Check:
    """Return the place where routers of platform tc would run, and their qdiscs."""
    from qoslab.tc.kernel_kinds import probe_machine
    from qoslab.tc.user_mode_linux import HINT, find

    name = "kernel queueing"
    try:
        here, image = probe_machine(), find()
    except QoslabError as error:
        return Check(name, "optional", error.message, error.hint or "only tc routers need it")
    found = f"Linux {here.release} in the lab's namespaces: {', '.join(sorted(here.qdiscs))}"
    if image is not None and (others := image.kinds().qdiscs - here.qdiscs):
        return Check(name, "ok", f"{found}; user-mode Linux {image.release}: {', '.join(sorted(others))}")
    absent = [kind for kind in MODERN_QDISCS if kind not in here.qdiscs]
    if not absent:
        return Check(name, "ok", found)
    return Check(name, "optional", f"{found}; {', '.join(absent)} nowhere", f"{HINT} Only tc routers need it.")


def _inside(name: str, check: Callable[[Lab], str], lab: Lab) -> Check:
    try:
        return Check(name, "ok", check(lab))
    except subprocess.CalledProcessError as error:
        output = (error.stderr or "").strip().splitlines()
        return Check(name, "missing", output[-1] if output else str(error), HINTS[name])


HINTS = {
    "packet sockets": "the kernel needs CONFIG_PACKET: sudo modprobe af_packet",
    "capture": "dumpcap must be executable for you: sudo chmod 755 $(which dumpcap)",
}


def _packet_socket(lab: Lab) -> str:
    code = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).bind(('eth0', 0))"
    lab.run("a", [sys.executable, "-I", "-S", "-c", code], check=True)
    return "AF_PACKET works in a node"


def _capture(lab: Lab) -> str:
    output = lab.run("a", ["dumpcap", "-i", "eth0", "-L"], check=True)
    return f"dumpcap opens a node's interface ({(output.stdout + output.stderr).strip().splitlines()[0]})"


def _congestion(lab: Lab) -> Iterator[Check]:
    from qoslab.model.experiment import TcpProfile

    for algorithm in ("cubic", "reno"):
        try:
            lab.apply_tcp_profile("a", TcpProfile(congestion_control=algorithm))
        except QoslabError as error:
            yield Check(f"TCP {algorithm}", "missing", error.message, error.hint)
        else:
            yield Check(f"TCP {algorithm}", "ok", "can be set and read back")
