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

from qoslab.cli.output_options import json_option
from qoslab.errors import ExitStatus, QoslabError
from qoslab.system.extras import PURPOSE, extra_install_command, extra_packages, missing_packages
from qoslab.system.packages import install_command
from qoslab.system.plugins import KINDS, NAME_OF_KIND, PluginError, PluginRegistry, installed_plugins, plugin_package
from qoslab.system.printing import echo
from qoslab.system.programs import OWN_PROGRAMS, SIMULATOR, find_own_program
from qoslab.traffic import THIRD_PARTY_PROGRAMS

if TYPE_CHECKING:
    from qoslab.virtual_lab import Lab

State = Literal["ok", "missing", "optional"]
"""Result of a check. `optional`: missing, and only needed for the uses in `what_to_do`."""

RUST_MINIMUM = (1, 85)
DISK_MINIMUM = 1_000_000_000
"""Minimum free bytes in the working directory: enough for some runs of the longest experiments, captures included."""
TIMEOUT_S = 20.0
"""Timeout of version commands in seconds."""

MODERN_QDISCS = ("cake", "codel", "fq_codel", "pie", "red", "sfq")
"""Qdiscs that experiments with a Linux router often use."""

TOOLS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    *((name, ("--version",), name, "required") for name in THIRD_PARTY_PROGRAMS),
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
class MachineCheck:
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
    for check in examine_machine():
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


def examine_machine() -> Iterator[MachineCheck]:
    """Yield every check, in order."""
    yield from _check_tools()
    yield _check_chromium()
    yield from _check_rust()
    yield from _check_own_programs()
    yield from _check_python()
    yield from _check_plugins()
    yield _check_loopback()
    yield _check_disk()
    yield from _check_lab()
    yield _check_qdiscs()


def _version_line(argv: list[str]) -> str:
    """Return the first line of the version output of a tool."""
    try:
        done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not print its version: {error}"
    # Warnings, such as about running as root, go to stderr; so does the version of ssh.
    output = done.stdout.decode(errors="replace").strip() or done.stderr.decode(errors="replace").strip()
    return next(iter(output.splitlines()), "prints nothing")


def _check_tools() -> Iterator[MachineCheck]:
    for tool, arguments, package, need in TOOLS:
        # Administrators' tools are often not in an ordinary user's PATH.
        path = shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if path is not None:
            yield MachineCheck(tool, "ok", _version_line([path, *arguments]))
        elif need == "required":
            yield MachineCheck(tool, "missing", "no such program", install_command(package))
        else:
            yield MachineCheck(
                tool, "optional", "no such program", f"{need.partition(': ')[2]}: {install_command(package)}"
            )


def _check_chromium() -> MachineCheck:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return MachineCheck("chromium", "ok", _version_line([path, "--version"]))
    todo = f"the report's tests need it: {install_command('chromium')}"
    return MachineCheck("chromium", "optional", "no such program", todo)


def _check_rust() -> Iterator[MachineCheck]:
    wanted = ".".join(map(str, RUST_MINIMUM))
    todo = install_command("rustc", "cargo")
    if shutil.which("apt-get"):
        # Debian 12 has a second, current one, Ubuntu several by number.
        todo = "Debian 12: sudo apt-get install rustc-web cargo-web; Ubuntu: rustc-1.85 cargo-1.85 or later"
    for tool in ("rustc", "cargo"):
        output = _version_line([tool, "--version"]) if shutil.which(tool) else "no such program"
        numbers = re.search(r"(\d+)\.(\d+)", output)
        if numbers and (int(numbers[1]), int(numbers[2])) >= RUST_MINIMUM:
            yield MachineCheck(tool, "ok", output)
        else:
            yield MachineCheck(tool, "optional", f"{output}; building the data plane needs {wanted} or later", todo)


def _check_own_programs() -> Iterator[MachineCheck]:
    for name in OWN_PROGRAMS:
        try:
            program = find_own_program(name)
        except QoslabError as error:
            yield MachineCheck(name, "optional" if name == SIMULATOR else "missing", error.message, error.hint)
        else:
            yield MachineCheck(name, "ok", f"{_version_line([str(program), '--version'])} at {program}")


def _check_python() -> Iterator[MachineCheck]:
    yield MachineCheck("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")
    for extra in (None, *PURPOSE):
        name = "python packages" if extra is None else f"python packages for {PURPOSE[extra]}"
        if names := missing_packages(extra):
            todo = f"start ./qoslab in a working copy to install them, or: {extra_install_command(extra)}"
            # the check starts a virtual lab, so its requirements are not optional
            state: State = "missing" if extra in (None, "lab", "devices") else "optional"
            yield MachineCheck(name, state, f"not installed: {', '.join(names)}", todo)
        else:
            yield MachineCheck(
                name, "ok", ", ".join(f"{package} {metadata.version(package)}" for package in extra_packages(extra))
            )


def _check_plugins() -> Iterator[MachineCheck]:
    """Check the plug-ins of other packages by loading each."""
    from qoslab.exchange.plugin_figures import FIGURES
    from qoslab.model.metrics import METRICS
    from qoslab.platforms import PLATFORMS
    from qoslab.traffic import TOOLS as TRAFFIC_TOOLS

    registries: dict[str, PluginRegistry[Any]] = {
        each.kind: each for each in (TRAFFIC_TOOLS, PLATFORMS, METRICS, FIGURES)
    }
    for kind in KINDS:
        for name, point in installed_plugins(kind).items():
            what, package = f"{NAME_OF_KIND[kind]} {name}", plugin_package(point)
            if name in registries[kind].own:
                yield MachineCheck(
                    what, "optional", f"from {package}: the name is already used by qoslab", "give it another name"
                )
                continue
            try:
                registries[kind][name]
            except PluginError as error:
                yield MachineCheck(what, "optional", error.message, error.hint)
            else:
                yield MachineCheck(what, "ok", f"of {package}")


def _check_loopback() -> MachineCheck:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 2):
            return MachineCheck("loopback", "ok", "connections to 127.0.0.1 work")
    except OSError as error:
        return MachineCheck(
            "loopback", "missing", f"127.0.0.1: {error}", "bring the loopback up: sudo ip link set lo up"
        )


def _check_disk() -> MachineCheck:
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{free / 1e9:.1f} GB free in {Path.cwd()}"
    if free >= DISK_MINIMUM:
        return MachineCheck("disk", "ok", found)
    return MachineCheck("disk", "missing", found, f"free some space: at least {DISK_MINIMUM / 1e9:g} GB")


def _check_lab() -> Iterator[MachineCheck]:
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
        yield MachineCheck("virtual lab", "missing", error.message, error.hint)
        return
    with lab:
        who = "with its own user namespace" if lab.describe()["user_namespace"] else "without a user namespace"
        yield MachineCheck("virtual lab", "ok", f"namespaces, veth pairs, token buckets and routes, {who}")
        yield MachineCheck("offloads", "ok", "off on every interface (read back)")
        for name, check in (("packet sockets", _check_packet_socket), ("capture", _check_capture)):
            yield _check_inside_lab(name, check, lab)
        yield from _check_congestion_control(lab)


def _check_qdiscs() -> MachineCheck:
    """Return the place where routers of platform tc would run, and their qdiscs."""
    from qoslab.tc.kernel_kinds import probe_machine
    from qoslab.tc.user_mode_linux import HINT, find

    name = "kernel queueing"
    try:
        here, image = probe_machine(), find()
    except QoslabError as error:
        return MachineCheck(name, "optional", error.message, error.hint or "only tc routers need it")
    found = f"Linux {here.release} in the lab's namespaces: {', '.join(sorted(here.qdiscs))}"
    if image is not None and (others := image.kinds().qdiscs - here.qdiscs):
        return MachineCheck(name, "ok", f"{found}; user-mode Linux {image.release}: {', '.join(sorted(others))}")
    absent = [kind for kind in MODERN_QDISCS if kind not in here.qdiscs]
    if not absent:
        return MachineCheck(name, "ok", found)
    return MachineCheck(name, "optional", f"{found}; {', '.join(absent)} nowhere", f"{HINT} Only tc routers need it.")


def _check_inside_lab(name: str, check: Callable[[Lab], str], lab: Lab) -> MachineCheck:
    try:
        return MachineCheck(name, "ok", check(lab))
    except subprocess.CalledProcessError as error:
        output = (error.stderr or "").strip().splitlines()
        return MachineCheck(name, "missing", output[-1] if output else str(error), HINTS[name])


HINTS = {
    "packet sockets": "the kernel needs CONFIG_PACKET: sudo modprobe af_packet",
    "capture": "dumpcap must be executable for you: sudo chmod 755 $(which dumpcap)",
}


def _check_packet_socket(lab: Lab) -> str:
    code = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).bind(('eth0', 0))"
    lab.run("a", [sys.executable, "-I", "-S", "-c", code], check=True)
    return "AF_PACKET works in a node"


def _check_capture(lab: Lab) -> str:
    output = lab.run("a", ["dumpcap", "-i", "eth0", "-L"], check=True)
    return f"dumpcap opens a node's interface ({(output.stdout + output.stderr).strip().splitlines()[0]})"


def _check_congestion_control(lab: Lab) -> Iterator[MachineCheck]:
    from qoslab.model.experiment import TcpProfile

    for algorithm in ("cubic", "reno"):
        try:
            lab.apply_tcp_profile("a", TcpProfile(congestion_control=algorithm))
        except QoslabError as error:
            yield MachineCheck(f"TCP {algorithm}", "missing", error.message, error.hint)
        else:
            yield MachineCheck(f"TCP {algorithm}", "ok", "can be set and read back")
