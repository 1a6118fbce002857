"""Check that the kernel of a Linux router can carry out the experiment's configurations."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding


def check_linux_routers(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Report missing rights, no forwarding, and obstacles: qdiscs, offloads, missing kinds, rejected parameters."""
    for name, router in facts.hosts.items():
        kernel = router.kernel
        if kernel is None:
            continue
        if not router.root:
            message = "found a login without root privileges, expected them for changes to qdiscs"
            yield PreflightFinding(name, message, "set ansible_become: true, or log in as root")
        if not kernel.forwards:
            message = "found net.ipv4.ip_forward 0, expected 1 on a router of the experiment"
            yield PreflightFinding(name, message, "sysctl -w net.ipv4.ip_forward=1")
        for message, hint in kernel.obstacles:
            advice = hint[:1].lower() + hint[1:].removesuffix(".")
            yield PreflightFinding(name, message, advice or "change the template of the experiment")
