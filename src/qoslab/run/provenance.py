"""Environment of a run (versions, machine, kernel), for readers who judge or repeat it."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from qoslab import __version__
from qoslab.run.threads import run_parallel
from qoslab.system.priority import processor_count
from qoslab.system.programs import kill_with_thread_prefix
from qoslab.system.shipped import find_checkout
from qoslab.traffic import THIRD_PARTY_PROGRAMS

PACKAGES = (
    "ansible",
    "ansible-core",
    "ansible-runner",
    "ansible-pylibssh",
    "asyncssh",
    "genie",
    "pandas",
    "pyats",
    "pyroute2",
    "unicon",
)

TOOLS = tuple(sorted({"dumpcap", "tshark", *THIRD_PARTY_PROGRAMS}))
"""Measuring programs that are not qoslab's own."""
VERSION_S = 20
"""Time limit for a tool to print its version, in seconds."""


def package_versions(names: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of the Python packages that influence the values."""
    found = {"qoslab": __version__, "python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            # The error also occurs if no folder can be read; then it is the relevant one.
            os.close(os.open(os.devnull, os.O_RDONLY))
            found[name] = "not installed"
    return found


def tool_versions() -> dict[str, str]:
    """Return the first line of the version output of each measuring tool.

    The lab waits for them, so they run in parallel; Ctrl-C waits for none.
    """
    return run_parallel({tool: partial(_tool_version, tool) for tool in TOOLS})[0]


def _tool_version(tool: str) -> str:
    if shutil.which(tool) is None:
        return f"not usable: there is no {tool}"
    command = [*kill_with_thread_prefix(), tool, "--version"]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"not usable: {error}"
    return next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), "unknown")


def source_commit() -> str | None:
    """Return the commit of the running working copy, with `-dirty` if files differ; None for an installed wheel."""
    directory = find_checkout()
    if directory is None:
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def machine_facts() -> dict[str, Any]:
    """Return kernel, processor, memory and default congestion control of this machine."""

    def read(path: str) -> str | None:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError:
            return None

    cpuinfo = read("/proc/cpuinfo") or ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", read("/proc/meminfo") or "", re.MULTILINE)
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": model.group(1) if model else None,
        "cpus": processor_count(),
        "memory_kib": int(memory.group(1)) if memory else None,
        "user_is_root": os.geteuid() == 0,
        "default_congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "available_congestion_control": read("/proc/sys/net/ipv4/tcp_available_congestion_control"),
    }


def configuration_digest(content: bytes) -> str:
    """Return the SHA-256 of a configuration, in hex."""
    return hashlib.sha256(content).hexdigest()
