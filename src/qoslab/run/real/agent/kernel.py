"""Reading and changing the settings of the host's kernel, by `ip` and by files."""

# pathlib and similar modules take longer to import than everything else here; some hosts are slow.
# ruff: noqa: PTH123

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time

MOMENTARY = ("linkdown", "dead")
"""Words of a route that describe its state, not its origin."""


class AgentRefusedError(Exception):
    """Refusal with a message for the controller."""


def call(*argv: str, pass_fds: tuple[int, ...] = ()) -> str:
    """Return the output of a program. Raise `AgentRefusedError` if it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, pass_fds=pass_fds, check=False)
    except OSError as error:
        raise AgentRefusedError(f"{argv[0]}: {error.strerror}") from error
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip() or f"ended with status {done.returncode}"
        raise AgentRefusedError(f"{' '.join(argv)}: {text}")
    return done.stdout.decode(errors="replace")


def family_option(prefix: str) -> str:
    """Return the option of `ip` for the family of an address."""
    return "-6" if ":" in prefix else "-4"


def sysctl_path(key: str) -> str:
    """Return the file of a setting; if its interface name may have dots, the key is already a path."""
    return "/proc/sys/" + (key if "/" in key else key.replace(".", "/"))


def read_sysctl(key: str) -> str | None:
    """Return a setting with its blanks normalised; None if the kernel lacks it."""
    try:
        with open(sysctl_path(key), encoding="utf-8") as file:
            return " ".join(file.read().split())
    except OSError:
        return None


def write_sysctl(key: str, value: str) -> None:
    """Change a setting."""
    try:
        with open(sysctl_path(key), "w", encoding="utf-8") as file:
            file.write(value)
    except OSError as error:
        raise AgentRefusedError(f"{key} cannot be set to {value}: {error.strerror}") from error


def output_interface(address: str) -> list[str]:
    """Return the output interface for an address, and the prefix of its route; both empty without a route."""
    try:
        shown = json.loads(call("ip", "-j", family_option(address), "route", "get", "fibmatch", address))
    except AgentRefusedError:
        return ["", ""]
    return [str(shown[0].get("dev", "")), str(shown[0].get("dst", ""))] if shown else ["", ""]


def ssh_connection() -> list[str]:
    """Return the words of SSH_CONNECTION: client address and port, server address and port; empty if unknown.

    sudo removes it from the environment, but a parent process still has it, and root may read it there.
    """
    text, process = os.environ.get("SSH_CONNECTION", ""), os.getppid()
    while not text and process > 1:
        with contextlib.suppress(OSError), open(f"/proc/{process}/environ", "rb") as file:
            variables = dict(each.partition(b"=")[::2] for each in file.read().split(b"\0"))
            text = variables.get(b"SSH_CONNECTION", b"").decode(errors="replace")
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            break
    words = text.split()
    return words if len(words) == 4 else []


def input_interface(words: list[str]) -> str:
    """Return the interface of such a connection: that of its answers, or the one in its link-local address."""
    return words[2].partition("%")[2] or output_interface(words[0])[0]


def route_metrics(route: str) -> dict[str, str]:
    """Return the attributes in a line of `ip route`, in the form of the controller: times in ms."""
    words = [word for word in route.split() if word != "lock"]
    found = {}
    for name, value in zip(words, words[1:]):  # noqa: B905, RUF007 (of Python 3.10)
        if name in ("congctl", "initcwnd"):
            found[name] = value
        elif name == "rto_min":
            number = float(value[:-2]) if value.endswith("ms") else 1000 * float(value[:-1])
            found[name] = f"{number:g}"
    return found


def active_settings(address: str) -> dict[str, str]:
    """Return the settings of a new connection to an address, in the terms of `ip route`; empty without a route.

    Defaults of the kernel replace attributes missing from the route (`tcp_init_cwnd`, `tcp_rto_min` in Linux'
    net/ipv4/tcp.c; older kernels have no setting for them).
    """
    try:
        shown = route_lines(call("ip", family_option(address), "route", "get", "fibmatch", address))
    except AgentRefusedError:
        return {}
    rto_min_us = int(read_sysctl("net.ipv4.tcp_rto_min_us") or 200_000)
    congestion_control = read_sysctl("net.ipv4.tcp_congestion_control") or ""
    own = {"initcwnd": "10", "rto_min": f"{rto_min_us / 1000:g}", "congctl": congestion_control}
    return {**own, **route_metrics(shown[0])} if shown else {}


def route_lines(routes: str) -> list[str]:
    """Return the routes of `ip route`, one line each; further next hops begin with spaces."""
    return routes.replace("\n\t", " ").splitlines()


def route_metric(route: str) -> str:
    """Return the metric in a line of `ip route`; empty if it has none, as in IPv4."""
    words = route.split()
    return words[words.index("metric") + 1] if "metric" in words else ""


def recreate_arguments(route: str) -> list[str]:
    """Return the arguments that create a route again, from a line of `ip route`."""
    words = [word for word in route.split() if word not in MOMENTARY]
    # `rto_min` is always locked: `ip` prints the word `lock` and does not accept it.
    pairs = [(before, word) for before, word in zip(["", *words], words) if (before, word) != ("rto_min", "lock")]  # noqa: B905
    return [
        remaining_placeholder(int(word.replace("sec", ""))) if before == "expires" else word for before, word in pairs
    ]


def remaining_placeholder(seconds: int) -> str:
    """Return a placeholder for the remaining seconds at the time of restoring, `seconds` from now."""
    return "{until " + str(int(time.clock_gettime(time.CLOCK_BOOTTIME)) + seconds) + "}"


def substitute_remaining(word: str) -> str:
    """Return the remaining seconds for such a placeholder; other words unchanged."""
    if not word.startswith("{until "):
        return word
    return str(max(1, int(word[len("{until ") : -1]) - int(time.clock_gettime(time.CLOCK_BOOTTIME))))
