"""Checks of hosts (rights, programs, disk space, clocks), and of access to routers' output."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding
from qoslab.system.programs import program_variable

MIN_FREE_BYTES = 64 * 1024 * 1024
"""Least number of free bytes for captures of any length."""
MAX_CLOCK_OFFSET_S = 1.0
"""Greatest difference of synchronised clocks, in seconds (TEACUP refuses more)."""
CLOCK_ERROR_MS = 50.0
"""Greatest error of a clock offset; beyond it, times of two hosts say nothing about queues."""


def check_rights(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check the rights of the login."""
    for name, host in facts.hosts.items():
        way = facts.host_settings[name].isolate
        if way != "as it is" and not host.root:
            message = f'found a login without root privileges, expected them for qoslab_isolate: "{way}"'
            yield PreflightFinding(
                name, message, "set ansible_become: true, log in as root, or set qoslab_isolate to `as it is`"
            )
        if host.no_capture:
            message = (
                f'found no permission to capture ("{host.no_capture}"), expected it for the experiment\'s captures'
            )
            hint = "add the user to the capture group (dpkg-reconfigure wireshark-common), or set ansible_become: true"
            yield PreflightFinding(name, message, hint)
    for name, router in facts.routers.items():
        if router.ios and router.refused:
            message = f'found "{router.refused}" for its configuration, expected its lines'
            yield PreflightFinding(name, message, "log in at privilege level 15, or give ansible_become_password")


def check_programs(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check for programs and congestion control algorithms."""
    experiment = facts.experiment
    wanted = sorted({experiment.arm_tcp_profile(arm).congestion_control for arm in experiment.arms})
    for name, host in facts.hosts.items():
        for program in host.missing:
            yield PreflightFinding(
                name,
                f"found no program {program} in PATH, expected it to be installed",
                "install it there (its package usually has the same name)",
            )
        for program, why in host.unfit.items():
            variable = program_variable(program)
            hint = (
                f"use a host like this machine, or name a {program} in {variable} that needs no library "
                "(cargo build --release --target x86_64-unknown-linux-musl, or this machine's architecture)"
            )
            yield PreflightFinding(
                name, f'found that {program} does not run there ("{why}"); the experiment needs it', hint
            )
        for algorithm in wanted if host.kernel is None else ():
            if algorithm not in host.congestion:
                there = ", ".join(sorted(host.congestion))
                message = f"found no TCP congestion control {algorithm}, expected one of {there}"
                yield PreflightFinding(name, message, f"modprobe tcp_{algorithm}, or use a kernel that has it")


def check_disk(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check for disk space for captures, up to the capacity of the links."""
    experiment = facts.experiment
    for name, host in facts.hosts.items():
        points = [point for point in experiment.captures if point.node == name]
        if not points:
            continue
        most = sum(
            link.rate.bps / 8 * facts.longest.seconds
            for point in points
            for link, near, _ in experiment.topology.node_links(name)
            if near.interface == point.interface
        )
        free = f"{host.free / 1e6:.0f} MB"
        if host.free < MIN_FREE_BYTES:
            yield PreflightFinding(
                name,
                f"found {free} free for captures, expected at least {MIN_FREE_BYTES / 1e6:.0f} MB",
                "free disk space there",
            )
        elif host.free < most:
            message = f"found {free} free for captures, expected up to {most / 1e6:.0f} MB"
            yield PreflightFinding(
                name, message, "free disk space there if the links will be fully loaded", is_error=False
            )


def check_clocks(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check the offset of a host's clock from this machine's, and the error of that offset."""
    for name, host in facts.hosts.items():
        if abs(host.clock_ahead_ms) > 1000 * MAX_CLOCK_OFFSET_S:
            away = f"{host.clock_ahead_ms / 1000:+.3f} s"
            message = f"found its clock {away} from this machine's, expected at most {MAX_CLOCK_OFFSET_S:g} s"
            yield PreflightFinding(name, message, "synchronise both with the same NTP servers", is_error=False)
        if host.clock_error_ms > CLOCK_ERROR_MS:
            message = (
                f"found a clock uncertainty of ±{host.clock_error_ms:.0f} ms, expected at most ±{CLOCK_ERROR_MS:.0f} ms"
            )
            yield PreflightFinding(name, message, "check why the path to it is slow", is_error=False)
